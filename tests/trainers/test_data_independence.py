"""What a fit does that is not a released value must not depend on the rows: structures, draws, ledger, statement."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)

SCHEMA = lw.Schema.uniform(0, 1, n_features=3, target=lw.Numeric("y", 0, 10))
CLASSES = lw.Schema.uniform(0, 1, n_features=3, target=lw.Categorical("y", (0, 1)))
GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (80, 3))
Y = np.round(X[:, 0] * 9, 2)
OTHER_X, OTHER_Y = GENERATOR.uniform(0, 1, (1, 3)), np.array([10.0])


def neighbours():
    """Tables that differ by one row, and one that has nothing in common with them but its columns."""
    return {
        "added": (np.vstack([X, OTHER_X]), np.append(Y, OTHER_Y)),
        "removed": (X[1:], Y[1:]),
        "replaced": (np.vstack([OTHER_X, X[1:]]), np.append(OTHER_Y, Y[1:])),
        "outlier": (np.vstack([X, [[1e300, -1e300, 0.5]]]), np.append(Y, 0.0)),
        "other rows": (np.full((7, 3), 0.25), np.full(7, 5.0)),
    }


def fitted(X, y, *, kind=SGBDTRegressor, monkeypatch, **options):
    """The model and the state of its randomness afterwards."""
    source = SeededRandom(11)
    monkeypatch.setattr(kind, "_random_source", lambda self: source)
    regression = kind in (SGBDTRegressor, DPBoostRegressor, DPXGBoostRegressor)
    y = y if regression else (y > 4).astype(int)
    schema = SCHEMA if regression else CLASSES
    trees = {} if kind is PrivaTreeClassifier else {"n_estimators": 4}
    model = kind(schema=schema, max_depth=3, max_bins=8, **trees, **options).fit(X, y)
    return model, source._bits.state


def structures(model):
    return [
        (t.structure.feature.tolist(), t.structure.split.tolist(), t.structure.equals.tolist())
        for t in model.ensemble_.trees
    ]


FULL_BATCH = [
    (SGBDTRegressor, {}),
    (SGBDTRegressor, {"initial_score": "laplace", "leaf_noise": "static", "reg_lambda": 2.0}),
    (SGBDTRegressor, {"adjacency": "replace-one"}),
    (SGBDTClassifier, {}),
    (SGBDTClassifier, {"leaf_statistic": "moments", "initial_score": "moments"}),
    (SGBDTRegressor, {"extra_trees": 12, "clip": 0.5}),
    (SGBDTClassifier, {"extra_trees": 12}),
]


@pytest.mark.slow_after(7)  # fits of each preset on many tables
@pytest.mark.parametrize("change", neighbours())
@pytest.mark.parametrize(("kind", "options"), FULL_BATCH)
def test_only_released_values_depend_on_the_rows(kind, options, change, monkeypatch):
    base, base_state = fitted(X, Y, kind=kind, monkeypatch=monkeypatch, **options)
    model, state = fitted(*neighbours()[change], kind=kind, monkeypatch=monkeypatch, **options)
    assert structures(model) == structures(base)
    # Entry by entry, hashes included; so neither carries a time, a row count or anything else of the rows.
    assert model.ledger_ == base.ledger_
    assert model.privacy_ == base.privacy_
    assert model.plan_ == base.plan_
    # As many random words were drawn: not one draw hung on a value.
    assert state == base_state
    arrays, base_arrays = model.ensemble_.to_arrays(), base.ensemble_.to_arrays()
    assert {name: a.shape for name, a in arrays.items()} == {name: a.shape for name, a in base_arrays.items()}
    assert not np.array_equal(arrays["values"], base_arrays["values"]), "the leaves do depend on the rows"


@pytest.mark.slow_after(1)  # fits of each system on many tables
@pytest.mark.parametrize("options", [{}, {"extra_trees": 12}])
@pytest.mark.parametrize("change", ["added", "removed"])
def test_a_sampled_plan_draws_the_same_trees(change, options, monkeypatch):
    base, _ = fitted(X, Y, monkeypatch=monkeypatch, subsample=0.4, **options)
    model, _ = fitted(*neighbours()[change], monkeypatch=monkeypatch, subsample=0.4, **options)
    assert structures(model) == structures(base)
    assert model.ledger_ == base.ledger_
    assert model.privacy_ == base.privacy_


GREEDY = [
    (DPBoostRegressor, {}),
    (DPBoostRegressor, {"adjacency": "replace-one", "candidates": "gridless"}),
    (DPBoostClassifier, {"loss": "logistic", "initial_score": "laplace"}),
    (DPXGBoostRegressor, {}),
    (DPXGBoostRegressor, {"adjacency": "replace-one", "preset": "paper", "min_child_weight_by": "levels"}),
    (DPXGBoostClassifier, {"sketch": "once"}),
    (PrivaTreeClassifier, {}),
    (PrivaTreeClassifier, {"adjacency": "replace-one", "preset": "paper", "candidate_bins": 4}),
    (PrivaTreeClassifier, {"preset": "joint_gaussian", "candidate_bins": 4, "delta": 1e-6}),
]
GROUPED = [(DPBoostRegressor, {"preset": "paper", "trees_per_ensemble": 3}), (DPXGBoostRegressor, {"preset": "paper"})]


@pytest.mark.slow  # fits of each preset on many tables
@pytest.mark.parametrize("change", neighbours())
@pytest.mark.parametrize(("kind", "options"), GREEDY + GROUPED)
def test_greedy_trees_are_paid_for_and_shaped_alike_whatever_the_rows(kind, options, change, monkeypatch):
    """Their tests are released values; which draws there are, what they cost and how deep a tree is, is public."""
    base, _ = fitted(X, Y, kind=kind, monkeypatch=monkeypatch, epsilon=50.0, **options)
    model, _ = fitted(*neighbours()[change], kind=kind, monkeypatch=monkeypatch, epsilon=50.0, **options)
    assert model.ledger_ == base.ledger_
    assert model.privacy_ == base.privacy_
    assert model.plan_ == base.plan_
    arrays, base_arrays = model.ensemble_.to_arrays(), base.ensemble_.to_arrays()
    assert {name: a.shape for name, a in arrays.items()} == {name: a.shape for name, a in base_arrays.items()}
    if change == "other rows":
        assert not np.array_equal(arrays["values"], base_arrays["values"]), "the leaves do depend on the rows"


@pytest.mark.slow_after(7)  # fits of each preset
@pytest.mark.parametrize(("kind", "options"), FULL_BATCH + GREEDY)
def test_the_order_of_rows_changes_nothing(kind, options, monkeypatch):
    shuffled = np.random.default_rng(3).permutation(len(X))
    base, _ = fitted(X, Y, kind=kind, monkeypatch=monkeypatch, **options)
    model, _ = fitted(X[shuffled], Y[shuffled], kind=kind, monkeypatch=monkeypatch, **options)
    for name, array in model.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, base.ensemble_.to_arrays()[name])


def test_the_first_tree_of_neighbours_differs_in_one_leaf(monkeypatch):
    """With the noise held fixed, one row moves one leaf of the first tree, and no other."""
    options = {"initial_score": "zero", "pooling": 0.0}
    base, _ = fitted(X, Y, monkeypatch=monkeypatch, **options)
    model, _ = fitted(*neighbours()["added"], monkeypatch=monkeypatch, **options)
    first, second = base.ensemble_.trees[0].values, model.ensemble_.trees[0].values
    assert (first != second).sum() <= 1


@pytest.mark.parametrize(("kind", "options"), FULL_BATCH)
def test_two_fits_at_different_times_are_equal(kind, options, monkeypatch):
    one, _ = fitted(X, Y, kind=kind, monkeypatch=monkeypatch, **options)
    other, _ = fitted(X, Y, kind=kind, monkeypatch=monkeypatch, **options)
    assert one.ledger_.lines == other.ledger_.lines
    assert one.privacy_.to_record() == other.privacy_.to_record()


def test_structures_follow_the_schema_and_not_the_values():
    """A feature that is constant in the rows is split like any other."""
    constant = X.copy()
    constant[:, 1] = 0.5
    model = SGBDTRegressor(schema=SCHEMA, n_estimators=30, max_depth=2, features_per_tree="all", random_state=0)
    features = np.concatenate([t.structure.feature for t in model.fit(constant, Y).ensemble_.trees])
    assert set(features.tolist()) == {0, 1, 2}
