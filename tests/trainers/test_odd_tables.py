"""Tables that nobody expects, for the systems of greedy trees: what a row could decide is never refused, and what is
refused costs nothing. Parameters out of bounds are in each system's own tests."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import SchemaError
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    PrivaTreeClassifier,
)

NUMBER, CLASSES = lw.Numeric("y", 0, 1), lw.Categorical("y", ("no", "yes"))
KINDS = [
    (DPBoostRegressor, NUMBER), (DPBoostClassifier, CLASSES), (DPXGBoostRegressor, NUMBER),
    (DPXGBoostClassifier, CLASSES), (PrivaTreeClassifier, CLASSES),
]  # fmt: skip
GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.uniform(0, 1, (30, 3))


def trees(kind):
    """PrivaTree has one."""
    return {} if kind is PrivaTreeClassifier else {"n_estimators": 2}


def labels(target, n, *, one_class=False):
    if target is NUMBER:
        return np.full(n, 0.5) if one_class else np.linspace(0, 1, n)
    return np.full(n, "no") if one_class else np.where(np.arange(n) % 2, "yes", "no")


TABLES = {
    "one class, or one number": (ROWS, True),
    "more features than rows": (GENERATOR.uniform(0, 1, (5, 40)), False),
    "all columns missing": (np.full((20, 3), np.nan), False),
    "some columns missing": (np.column_stack([ROWS[:, 0], np.full(30, np.nan)]), False),
    "one row": (ROWS[:1], False),
    "one column of one value": (np.zeros((20, 1)), False),
    "values outside of the schema": (ROWS * 1e300, False),
    "no rows": (ROWS[:0], False),
}


@pytest.mark.slow_after(12)  # each system on each odd table
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize(("kind", "target"), KINDS)
def test_a_table_that_is_odd_gets_trees_like_any_other(kind, target, preset, table):
    X, one_class = TABLES[table]
    features = tuple(lw.Numeric(f"f{i}", 0, 1, missing=True) for i in range(X.shape[1]))
    model = kind(
        schema=lw.Schema(features=features, target=target), preset=preset, max_depth=2, max_bins=8, **trees(kind)
    )
    model.fit(X, labels(target, len(X), one_class=one_class))
    assert [tree.structure.depth for tree in model.ensemble_.trees] == [2] * len(model.ensemble_.trees)
    assert all(np.isfinite(tree.values).all() for tree in model.ensemble_.trees)
    assert model.privacy_.epsilon == pytest.approx(1.0, rel=1e-9)
    found = model.predict(X)
    assert set(found) <= {"no", "yes"} if target is CLASSES else ((found >= 0) & (found <= 1)).all()


@pytest.mark.slow  # the deepest tree that is allowed
@pytest.mark.parametrize(("kind", "target"), [KINDS[0], KINDS[2]])
def test_a_tree_of_20_levels_is_trained(kind, target):
    schema = lw.Schema(features=(lw.Categorical("c", ("u", "v")),), target=target)
    X = np.where(ROWS[:, :1] < 0.5, "u", "v").astype(object)
    options = {"subsample": 1.0} if kind is DPXGBoostRegressor else {}
    model = kind(schema=schema, preset="paper", n_estimators=1, max_depth=20, **options).fit(X, labels(target, 30))
    assert model.ensemble_.trees[0].values.shape == (2**20,)
    assert ((model.predict(X) >= 0) & (model.predict(X) <= 1)).all()


@pytest.mark.parametrize(("kind", "target"), KINDS)
def test_what_the_schema_does_not_declare_costs_nothing(kind, target):
    """By names, types and shapes, before any budget moves."""
    features = tuple(lw.Numeric(name, 0, 1) for name in "abc")
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    model = kind(schema=lw.Schema(features=features, target=target), max_depth=2, **trees(kind))
    y = labels(target, 30)
    for X, labelled, said in (
        (ROWS[:, :2], y, "X has 2 columns, but the schema declares 3"),
        (ROWS[1:], y, "inconsistent numbers of samples"),
        (ROWS.astype(complex), y, "Complex data not supported"),
    ):
        with pytest.raises(SchemaError, match=said):
            model.fit(X, labelled, ledger=ledger)
        assert len(ledger.entries) == 1
    model.fit(ROWS, y, ledger=ledger)
    assert ledger.spent().epsilon == pytest.approx(1.0, rel=1e-9)
