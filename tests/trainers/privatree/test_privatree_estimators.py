"""PrivaTree's estimator: presets, parameters, several classes, bad input, models on disk, a schema that is bought."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.curator import GiniSplits, LabelledSplits, LeafLabels
from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.trainers import PrivateSearch, PrivaTreeClassifier
from ledgerwood.trainers.privatree.plan import default_depth

FEATURES = (
    lw.Numeric("a", 0.0, 1.0, missing=True), lw.Categorical("c", ("p", "q", "r", "s"), missing=True),
    lw.Numeric("b", 0.0, 1.0),
)  # fmt: skip
SCHEMA = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no", "perhaps", "yes")))
TWO = lw.Schema(features=FEATURES, target=lw.Categorical("y", (True, False)))
N_ROWS = 400
GENERATOR = np.random.default_rng(0)
X = np.empty((N_ROWS, 3), dtype=object)
X[:, 0] = np.where(GENERATOR.random(N_ROWS) < 0.1, np.nan, GENERATOR.uniform(0, 1, N_ROWS))
X[:, 1] = GENERATOR.choice(["p", "q", "r", "s"], N_ROWS)
X[:, 2] = GENERATOR.uniform(0, 1, N_ROWS)
ODD = np.isin(X[:, 1].astype(str), ["q", "s"])
Y = np.where(ODD, "yes", np.where(X[:, 2].astype(float) > 0.5, "perhaps", "no"))
ALMOST_NO_NOISE = 1e5


def classifier(**options):
    return PrivaTreeClassifier(**({"schema": SCHEMA, "max_bins": 16} | options))


PRESETS = {
    "paper": ("histograms", "quantiles", 10),
    "public_bins": ("histograms", "public", 10),
    "joint_gaussian": ("joint_gaussian", "quantiles", 10),
    "random": ("random", "public", 10),
    "default": ("accuracy", "public", 32),
}


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_it_says(preset):
    plan = PrivaTreeClassifier(schema=SCHEMA, preset=preset, delta=1e-6).make_plan(SCHEMA)
    assert (plan.split_method, plan.candidates, plan.candidate_bins) == PRESETS[preset]
    steps = 32 if preset == "default" else 255
    assert (plan.max_depth, plan.n_features, plan.n_numeric, plan.max_bins) == (4, 3, 2, steps)
    assert plan.leaf_share == (0.4 if preset == "default" else 0.5)  # as many rows as nobody knows
    assert plan.quantile_share == (0.25 if preset == "default" else 0.2)


@pytest.mark.parametrize(
    ("evidence", "depth"), [(None, 4), (10.0, 1), (149.0, 1), (150.0, 2), (699.0, 2), (700.0, 3), (2_500.0, 4)]
)
def test_the_default_is_as_deep_as_the_rows_can_pay_for(evidence, depth):
    assert default_depth(evidence) == depth
    rows = None if evidence is None else round(evidence / 0.5)
    plan = classifier(epsilon=0.5, expected_rows=rows).make_plan(SCHEMA)
    assert (plan.split_method, plan.max_depth) == ("accuracy", depth)
    assert plan.leaf_share == 2 / (max(depth, 2) + 1)
    assert classifier(epsilon=0.5, expected_rows=rows, preset="paper").make_plan(SCHEMA).max_depth == 4
    assert classifier(epsilon=0.5, expected_rows=rows, max_depth=3).make_plan(SCHEMA).max_depth == 3
    # A replaced row changes twice as much.
    twice = None if rows is None else 2 * rows
    replaced = classifier(epsilon=0.5, expected_rows=twice, adjacency="replace-one").make_plan(SCHEMA)
    assert replaced.max_depth == depth


def test_sets_of_categories_are_candidates_where_nothing_else_is():
    kinds = tuple(lw.Categorical(name, tuple("pqrstu")) for name in "abc")
    schema = lw.Schema(features=kinds, target=lw.Categorical("y", (0, 1)))
    assert classifier(schema=schema).make_plan(schema).set_categories == 9
    assert classifier().make_plan(SCHEMA).set_categories == 0
    generator = np.random.default_rng(5)
    rows = np.array(list("pqrstu"), dtype=object)[generator.integers(0, 6, (600, 3))]
    labels = np.isin(rows[:, 1].astype(str), ["q", "s", "u"]).astype(int)
    model = classifier(schema=schema, epsilon=10.0, expected_rows=30, max_depth=1).fit(rows, labels)
    assert (model.predict(rows) == labels).all()
    sets = model.ensemble_.trees[0].structure.left_sets
    assert sets.shape[0] == 1  # no other set is in the model
    single = classifier(schema=schema, epsilon=1e4, max_depth=1, set_categories=0).fit(rows, labels)
    assert (single.predict(rows) == labels).mean() < 0.8
    with pytest.raises(InvalidParameter, match="set_categories=13 must be at most 12"):
        classifier(set_categories=13).make_plan(SCHEMA)


def test_where_there_is_next_to_no_evidence_splits_are_free():
    plan = classifier(epsilon=0.1, expected_rows=99).make_plan(SCHEMA)
    assert (plan.split_method, plan.max_depth) == ("random", 4)
    assert classifier(epsilon=0.1, expected_rows=99, split_method="gini").make_plan(SCHEMA).split_method == "gini"


def test_many_classes_are_split_by_the_impurity_where_tests_and_labels_are_too_many_pairs():
    many = lw.Schema(features=FEATURES, target=lw.Categorical("y", tuple(range(400))))
    assert classifier(schema=many).make_plan(many).split_method == "gini"
    assert classifier(schema=many, max_depth=2).make_plan(many).split_method == "accuracy"
    with pytest.raises(InvalidParameter, match=r"max_depth=4 must be at most [23] for \d+ counts a node"):
        classifier(schema=many, split_method="accuracy").make_plan(many)


def test_labels_get_what_the_rule_gives():
    few = classifier(epsilon=1.0, expected_rows=20_000, split_method="gini").make_plan(SCHEMA)
    many = classifier(epsilon=1.0, expected_rows=40_000, split_method="gini").make_plan(SCHEMA)
    assert few.leaf_share == pytest.approx(2 * many.leaf_share, rel=1e-12)
    assert classifier(leaf_share=0.3, quantile_share=0.7, candidates="quantiles").make_plan(SCHEMA).leaf_share == 0.3


@pytest.mark.parametrize("rows", [10**12, 10**30])
@pytest.mark.parametrize("splits", ["accuracy", "gini", "histograms", "random"])
def test_more_rows_than_anybody_has_do_not_make_a_budget_too_small(rows, splits):
    plan = classifier(epsilon=1.0, expected_rows=rows, split_method=splits).make_plan(SCHEMA)
    assert 0.999 < lw.price(plan.event).epsilon(0.0) <= 1.0


@pytest.mark.parametrize("splits", ["accuracy", "gini", "histograms"])
def test_several_classes_are_learnt(splits):
    model = classifier(epsilon=ALMOST_NO_NOISE, split_method=splits).fit(X, Y)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert (model.predict(X) == Y).mean() > 0.97
    found = model.predict_proba(X)
    assert found.shape == (N_ROWS, 3)
    assert set(np.unique(found)) == {0.0, 1.0}
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))


def test_two_classes_part_categories_by_one_set():
    model = classifier(schema=TWO, epsilon=ALMOST_NO_NOISE, split_method="histograms", max_depth=1).fit(X, ODD)
    assert (model.predict(X) == ODD).all()
    assert model.predict(X).dtype == np.bool_
    np.testing.assert_array_equal(model.feature_importances_, [0.0, 1.0, 0.0])


def test_importances_are_of_labels_and_not_of_their_places():
    model = classifier(epsilon=ALMOST_NO_NOISE).fit(X, Y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[0] < 0.2


@pytest.mark.parametrize(
    "options", [{"split_method": "histograms"}, {"split_method": "gini"}, {}, {"preset": "paper", "max_bins": 50}]
)
def test_a_model_on_disk_predicts_as_before(options, tmp_path):
    model = classifier(epsilon=1e3, **options).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = PrivaTreeClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert (loaded.plan_, loaded.privacy_, loaded.ledger_) == (model.plan_, model.privacy_, model.ledger_)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    if options == {"split_method": "histograms"}:
        assert model.ensemble_.trees[0].structure.left_sets is not None
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    assert record["plan"]["split_method"] == model.plan_.split_method


def test_a_schema_is_bought_with_classes_nobody_listed():
    frame = pd.DataFrame(
        {"a": GENERATOR.uniform(0, 1, 3000), "c": pd.Series(GENERATOR.choice(["u", "v"], 3000), dtype="string")}
    )
    y = pd.Series(np.where(frame["a"] > 0.6, "x", np.where(frame["c"] == "u", "y", "z")), dtype="string")
    model = PrivaTreeClassifier(epsilon=20.0, delta=1e-6, expected_rows=3000).fit(frame, y)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert (model.predict(frame) == y).mean() > 0.9
    assert 0.99 * 20.0 < lw.price(model.plan_.event).epsilon(1e-6) == model.privacy_.epsilon <= 20.0
    assert model.plan_.purchase is not None


def test_rows_have_no_weights():
    with pytest.raises(TypeError, match="sample_weight"):
        classifier().fit(X, Y, sample_weight=np.ones(N_ROWS))
    weighted = lw.Schema(features=FEATURES, target=SCHEMA.target, weight_bound=2.0)
    with pytest.raises(InvalidParameter, match="weight_bound=2.0"):
        classifier(schema=weighted).fit(X, Y)


BAD = [
    (X[:, :2], Y, SCHEMA, "2 columns"),
    (X, Y[:-1], SCHEMA, "inconsistent"),
    (X, Y, lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 1)), "Categorical target"),
    (X, Y, lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no",))), "at least 2"),
    (X, Y, lw.Schema(features=FEATURES), "Categorical target"),
]


@pytest.mark.parametrize(("rows", "labels", "schema", "said"), BAD)
def test_what_does_not_fit_costs_nothing(rows, labels, schema, said):
    ledger = Ledger(Budget(epsilon=9.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with pytest.raises(SchemaError, match=said):
        classifier(schema=schema).fit(rows, labels, ledger=ledger)
    assert len(ledger.entries) == 1


def numeric_schema(classes, *, missing=False):
    return lw.Schema(features=(lw.Numeric("a", 0, 1, missing=missing),), target=lw.Categorical("y", range(classes)))


TOO_LARGE = [
    (1025, {"split_method": "random"}, "classes=1025"),
    (1025, {"max_depth": 0}, "classes=1025"),
    (1025, {"split_method": "gini", "max_depth": 1}, "classes=1025"),
    (1025, {"split_method": "histograms", "max_depth": 1}, "classes=1025"),
    (17, {"split_method": "random", "max_depth": 20}, "max_depth=20 must be at most 19"),
    (2, {"split_method": "gini", "max_bins": 200, "max_depth": 16}, "max_depth=16 must be at most 15"),
]


@pytest.mark.parametrize(("classes", "options", "said"), TOO_LARGE)
def test_what_is_too_large_for_a_level_or_the_labels_costs_nothing(classes, options, said):
    ledger = Ledger(Budget(epsilon=9.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    schema = numeric_schema(classes, missing=True)
    with pytest.raises(InvalidParameter, match=said):
        classifier(schema=schema, **options).fit(np.linspace(0, 1, 40)[:, None], np.arange(40) % classes, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("bins", [150, 200, 255])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("splits", ["accuracy", "gini"])
def test_the_greatest_depth_that_is_named_can_be_chosen_from(bins, missing, splits):
    """The last level's query and the labels' are within their bounds."""
    schema = numeric_schema(3, missing=missing)
    with pytest.raises(InvalidParameter, match="at most") as refused:
        classifier(schema=schema, max_bins=bins, max_depth=20, split_method=splits).make_plan(schema)
    depth = int(re.search(r"at most (\d+)", str(refused.value))[1])
    plan = classifier(schema=schema, max_bins=bins, max_depth=depth, split_method=splits).make_plan(schema)
    cells = schema.cells(bins)
    tests = SplitTests.every(cells, plan.thresholds(cells))
    structure = TreeStructure.root()
    for _ in range(depth - 1):
        structure = structure.deeper(tests.taken(np.zeros(structure.n_leaves, dtype=np.int64)))
    if plan.labels_splits:
        LabelledSplits(structure=structure, tests=tests, classes=3)
        return
    GiniSplits(structure=structure, tests=tests, classes=3)
    labelled = structure.deeper(tests.taken(np.zeros(structure.n_leaves, dtype=np.int64)))
    assert LeafLabels(structure=labelled, classes=3).counts.statistic.classes == 3


def test_a_search_may_choose_its_depth():
    search = PrivateSearch(classifier(epsilon=0.5), {"max_depth": [1, 2]}, epsilon=20.0, delta=1e-6)
    assert set(search.get_params()) > {"epsilon"}
