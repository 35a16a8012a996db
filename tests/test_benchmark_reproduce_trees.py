"""The rebuilt tables of PrivaTree's paper, the rules of its pages and of the federated framework's, on few rows."""

import math

import numpy as np
import pytest

from benchmarks import privatree_printed
from benchmarks.privatree_recipes import DIFFERENCES, RECIPES, compas_two_years
from benchmarks.reproduce.papers.federated import PAPER as FEDERATED
from benchmarks.reproduce.papers.federated import theorems as federated_theorems
from benchmarks.reproduce.papers.privatree import PAPER as PRIVATREE
from benchmarks.reproduce.papers.privatree import guarantees, learners, theorems
from benchmarks.utility import Scale
from ledgerwood import Categorical

QUICK = Scale(1, 400)


def test_compas_is_the_papers_table():
    data = compas_two_years(0)
    assert data.X.shape == (4_966, 11)
    assert sum(isinstance(feature, Categorical) for feature in data.schema.features) == 8
    assert np.unique(data.y, return_counts=True)[1].tolist() == [2_483, 2_483]
    assert set(np.unique(data.X[:, 3:]).tolist()) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("key", RECIPES, ids=" ".join)
def test_the_rebuilt_tables_are_the_printed_ones(key):
    data = RECIPES[key](0)
    categories = sum(isinstance(feature, Categorical) for feature in data.schema.features)
    share = np.unique(data.y, return_counts=True)[1].max() / data.rows
    found = (f"{data.rows:,}", str(data.X.shape[1]), str(categories), f"{share:.3f}")
    assert (found == privatree_printed.TABLE_IV[key]) is (key not in DIFFERENCES)


def test_every_printed_table_has_all_29_rows():
    tables_ = (privatree_printed.TABLE_II, privatree_printed.TABLE_VI, privatree_printed.TABLE_VII)
    assert {frozenset(table) for table in tables_} == {frozenset(privatree_printed.TABLE_IV)}
    assert all(len(row) == len(privatree_printed.METHODS) for table in tables_ for row in table.values())
    guaranteed = {key for key, _, _ in (*privatree_printed.TABLE_III, *privatree_printed.TABLE_VIII)}
    assert guaranteed == set(privatree_printed.TABLE_IV)


def test_the_noise_as_printed_costs_as_many_times_epsilon_as_there_are_features():
    data = compas_two_years(0)
    model = learners.noise_as_printed(data, 0.1)
    plan = model.make_plan(data.schema)
    stated = 0.1 - plan.labels.rate * 2.0  # of splits and quantiles, as the paper counts
    node = stated / (learners.DEPTH + 1)
    assert plan.level.scale == pytest.approx(1.0 / node, rel=1e-6)
    assert learners.spent(data, 0.1) == pytest.approx(
        3 * node + learners.DEPTH * 11 * node + plan.labels.rate, rel=1e-6
    )  # three numeric features have quantiles
    assert learners.spent(data, 0.1) > 8 * stated


def test_the_least_expectation_is_the_worst_of_all_sets():
    clean, poisoned = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    assert theorems.extreme(clean, poisoned, 0.5) == pytest.approx(0.2)
    assert theorems.extreme(clean, poisoned, 0.65) == pytest.approx(0.35)
    assert theorems.extreme(clean, poisoned, 1.0) == pytest.approx(1.0)


def test_the_errors_of_permute_and_flip_are_those_of_two_candidates():
    rate, gap = 0.7, 3.0
    (found,) = theorems.flip_errors(np.array([[0.0, gap]]), rate)
    assert found == pytest.approx(0.5 * math.exp(-rate * gap) * gap)


def test_printed_guarantees_are_corollary_2_of_their_own_accuracies():
    found = guarantees.guarantees_printed(QUICK)
    assert found["right"] == found["cells"] == 340


def test_a_moment_by_quadrature_is_the_gaussian_one():
    assert federated_theorems.gaussian_moment(4.0, 2.0) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "name"),
    [(paper, study.name) for paper in (PRIVATREE, FEDERATED) for study in paper.studies if study.kept is None],
    ids=lambda value: value if isinstance(value, str) else value.key,
)
def test_every_study_runs_on_few_rows_and_its_items_read_it(paper, name):
    (study,) = (study for study in paper.studies if study.name == name)
    found = {name: study.run(QUICK)}
    for item in paper.items:
        if item.study == name and name != "figure-1":  # of which a quick run has the ends only
            assert item.reading(found).ours or item.reading(found).as_printed
    if study.draw is not None:
        assert study.draw(found[name]).axes
