"""Trees that each see a sample: which sampler, what it costs, and what is refused by name before anything is spent."""

import dataclasses

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events import Composed, PoissonSampled, RandomAllocation, Repeated
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator import Table
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, PrivacyError
from ledgerwood.reading.cards import contents as cards
from ledgerwood.report import models as report
from ledgerwood.trainers import DPXGBoostClassifier, DPXGBoostRegressor, SGBDTClassifier, SGBDTRegressor
from ledgerwood.verification import verify_ledger

FEATURES = (lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 1))
THREE = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("u", "v", "w")))
ROWS = np.random.default_rng(1).uniform(size=(80, 2))
LABELS = ROWS[:, 0]
SMALL = {"epsilon": 2.0, "delta": 1e-5, "n_estimators": 4, "max_depth": 2, "initial_score": "zero"}
ALLOCATED = {"subsample": 0.3, "sampling": "allocation"}
KINDS = [SGBDTRegressor, DPXGBoostRegressor]


def model_of(kind, schema=NUMBERS, **options):
    return kind(schema=schema, **{**SMALL, **options})


@pytest.mark.parametrize("kind", KINDS)
def test_all_trees_are_one_draw_of_one_allocation(kind):
    model = model_of(kind, **ALLOCATED).fit(ROWS, LABELS)
    event = RandomAllocation(model.plan_.tree_event, selected=1, steps=4)
    assert model.plan_.event == Composed((event,))
    assert [each.event for each in model.ledger_.entries if isinstance(each, DrawEntry)] == [event]
    assert 1.999 < model.privacy_.epsilon <= 2.0
    assert any("each in exactly 1 of 4" in text for text in model.privacy_.assumptions)
    assert len(model.ensemble_.trees) == 4


def test_the_plan_with_poisson_samples_stays_as_it_is():
    plan = model_of(SGBDTRegressor, subsample=0.3).make_plan(NUMBERS)
    assert plan.event == Composed((Repeated(plan.tree_event, count=4),))
    assert isinstance(plan.tree_event, PoissonSampled)


@pytest.mark.slow_after(1)  # fits a tree after tree
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_in_exactly_as_many_trees_as_were_priced(kind, monkeypatch):
    seen, plain = [], Table._evaluated
    monkeypatch.setattr(Table, "_evaluated", lambda own, *given: (seen.append(given[2].copy()), plain(own, *given))[1])
    model = model_of(kind, max_depth=1, n_estimators=5, **{**ALLOCATED, "subsample": 0.4}).fit(ROWS, LABELS)
    trees = np.array(seen)[:: len(seen) // 5]
    assert len(seen) % 5 == 0
    assert model.plan_.trees_of_row == 2
    assert trees.sum(axis=0).tolist() == [2] * len(ROWS)


def test_an_allocation_needs_less_noise():
    sampled, allocated = (
        model_of(SGBDTRegressor, n_estimators=20, subsample=0.05, sampling=sampling).make_plan(NUMBERS)
        for sampling in ("poisson", "allocation")
    )
    assert allocated.noise_multiplier < 0.93 * sampled.noise_multiplier


@pytest.mark.slow  # calibrates and fits six trees
def test_of_several_classes_the_trees_of_all_forests_count():
    model = model_of(SGBDTClassifier, THREE, n_estimators=2, subsample=0.5, sampling="allocation")
    plan = model.make_plan(THREE)
    assert (plan.trees_of_row, plan.sampled_trees) == (3, 6)
    model.fit(ROWS, np.array(["u", "v", "w"])[(3 * LABELS).astype(int)])
    assert len(model.ensemble_.trees) == 6
    assert model_of(DPXGBoostClassifier, THREE, n_estimators=2, **ALLOCATED).make_plan(THREE).trees_of_row == 2


@pytest.mark.parametrize(("subsample", "trees_of_row"), [(0.3, 1), (0.4, 2), (0.62, 2), (0.13, 1)])
def test_the_trees_of_a_row_are_rounded_to_the_nearest_number(subsample, trees_of_row):
    plan = dataclasses.replace(model_of(SGBDTRegressor).make_plan(NUMBERS), subsample=subsample, sampling="allocation")
    assert plan.trees_of_row == trees_of_row
    assert plan.rows_of_tree(1000.0) == 250.0 * trees_of_row


def test_the_plan_and_the_statement_show_the_sampler_in_their_first_lines():
    model = model_of(SGBDTRegressor, n_estimators=5, max_depth=1, subsample=0.3, sampling="allocation")
    model.fit(ROWS, LABELS)
    shown = str(model.plan_).splitlines()[1:3]
    assert [line.split() for line in shown] == [["trees_of_row:", "2"], ["sampled_trees:", "5"]]
    said = " ".join(str(model.privacy_).split())
    assert "each in exactly 2 of 5, chosen uniformly (random allocation)" in said
    assert said.index("schema, hyper-parameters") < said.index("random allocation") < said.index("running time")
    plan = model_of(SGBDTRegressor, subsample=0.3).make_plan(NUMBERS)
    assert "trees_of_row" not in str(plan)
    for facts in (report.plan_values, cards.plan_facts):
        assert str(facts(model.plan_)["trees_of_row"]) == "2"
        assert "trees_of_row" not in facts(plan)


def test_a_stranger_confirms_the_cost_of_an_allocation_to_one_tree():
    model = model_of(SGBDTRegressor, **ALLOCATED).fit(ROWS, LABELS)
    report = verify_ledger(model.ledger_, head=model.privacy_.ledger_head)
    assert [each.verdict for each in report.verdicts] == ["confirmed"]


REFUSED = [
    (SGBDTRegressor, {"subsample": 1.0}, InvalidParameter, "puts each row into .* rounded to 4, .* below 4"),
    (SGBDTRegressor, {"subsample": 0.1}, InvalidParameter, "rounded to 0, .* set subsample between 0.25 and 0.75"),
    (SGBDTRegressor, {"adjacency": "replace-one"}, AdjacencyMismatch, "sampling='allocation' needs adjacency"),
    (SGBDTRegressor, {"filter": "renyi"}, InvalidParameter, "filter='renyi' needs sampling='poisson'"),
    (SGBDTRegressor, {"extra_trees": 2}, InvalidParameter, "^extra_trees=2 need a filter, .*; set extra_trees=0, or"),
    (SGBDTRegressor, {"sampling": "shuffle"}, InvalidParameter, "sampling='shuffle'"),
    (SGBDTRegressor, {"noise": "skellam"}, InvalidParameter, "a vector's noise has no price on a sample"),
    (DPXGBoostRegressor, {"delta": 0.0}, InvalidParameter, "^sampling='allocation' needs delta > 0(?!.*epsilon)"),
    (DPXGBoostRegressor, {"adjacency": "replace-one"}, AdjacencyMismatch, "sampling='allocation' needs adjacency"),
]


@pytest.mark.parametrize(("kind", "options", "error", "words"), REFUSED)
def test_what_has_no_cost_is_refused_by_name_and_nothing_is_spent(kind, options, error, words):
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    before = len(ledger.entries)
    with pytest.raises(error, match=words):
        model_of(kind, **{**ALLOCATED, **options}).fit(ROWS, LABELS, ledger=ledger)
    assert len(ledger.entries) == before


def test_a_stream_is_refused_by_name():
    with pytest.raises(PrivacyError, match="needs sampling='poisson'"):
        model_of(SGBDTRegressor, **ALLOCATED).partial_fit(ROWS, LABELS, keys=np.arange(len(ROWS)))
