"""What no system's plan may hold, whichever system it is; fields of their own are in each plan's test."""

import dataclasses
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import DPBoostRegressor, DPXGBoostRegressor, SGBDTRegressor
from ledgerwood.trainers.dpboost import plan as dpboost
from ledgerwood.trainers.dpxgboost import plan as dpxgboost
from ledgerwood.trainers.sgbdt import plan as sgbdt

BUDGET = Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE)
PLANS = [
    sgbdt.preset_plan("paper", "squared", BUDGET, None),
    dpboost.PAPER,
    dpxgboost.preset_plan("paper", "squared", BUDGET, None, 2),
]
BAD = [
    ("max_depth", -1, "a whole number >= 0"),
    ("max_depth", 21, "at most 20"),
    ("max_depth", 2.0, "a whole number"),
    ("max_bins", 1, r"in \[2, 60000\]"),
    ("max_bins", 60_001, r"in \[2, 60000\]"),
    ("learning_rate", 0.0, r"(> 0|in \(0, 1\])"),
    ("learning_rate", math.nan, "a finite real number"),
    ("initial_share", 0.0, r"in \(0, 1\)"),
    ("initial_share", 1.0, r"in \(0, 1\)"),
    ("loss", "newton", "one of 'squared', 'logistic'"),
    ("large_gradients", "keep", "one of 'clip', 'drop'"),
    ("initial_score", "mean", "one of 'zero', 'moments', 'laplace', 'public_count'"),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
@pytest.mark.parametrize(("name", "value", "bound"), BAD)
def test_a_plan_names_the_field_the_value_and_the_bound(plan, name, value, bound):
    with pytest.raises(InvalidParameter, match=f"^{name}={value!r} must be {bound}.* \\(unit: .+\\)$"):
        dataclasses.replace(plan, **{name: value})


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_the_ends_of_the_bounds_are_allowed(plan):
    for depth, bins in ((0, 2), (20, 60_000)):
        assert dataclasses.replace(plan, max_depth=depth, max_bins=bins).max_bins == bins


SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1))
KINDS = [SGBDTRegressor, DPBoostRegressor, DPXGBoostRegressor]


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_may_be_numbers_of_numpy(kind):
    given = {
        "clip": np.float32(0.5),
        "count_share": np.float32(0.25),
        "n_estimators": np.int64(3),
        "max_depth": np.int8(2),
    }
    plain = {"clip": 0.5, "count_share": 0.25, "n_estimators": 3, "max_depth": 2}
    plan = kind(schema=SCHEMA, **given).make_plan(SCHEMA)
    assert plan == kind(schema=SCHEMA, **plain).make_plan(SCHEMA)
    assert (type(plan.clip), type(plan.max_depth)) == (float, int)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": np.array(["paper", "default"])}, "preset=array.* must be one of 'default', 'paper'"),
        ({"preset": ["paper"]}, "preset=.* must be one of 'default', 'paper'"),
        ({"initial_score": np.array(["zero", "zero"])}, "initial_score=array.* must be one value, not an array"),
        ({"clip": np.array([0.5, 0.25])}, "clip=array.* must be one value, not an array"),
        ({"initial_score": ["zero"]}, "initial_score=.* must be one of 'zero', 'moments'"),
        ({"expected_rows": 0}, "expected_rows=0 must be a whole number >= 1"),
        ({"expected_rows": 10**400}, "expected_rows=10+[.]{3} must be within float64"),
        ({"max_depth": np.nan}, "max_depth=nan must be a whole number"),
    ],
)
def test_parameters_that_are_none_are_named(kind, options, words):
    with pytest.raises(InvalidParameter, match=words):
        kind(schema=SCHEMA, **options).make_plan(SCHEMA)


@pytest.mark.parametrize("kind", [DPBoostRegressor, DPXGBoostRegressor])
def test_a_thousand_million_trees_are_planned_or_refused_at_once(kind):
    plan = kind(schema=SCHEMA, n_estimators=10**9, max_depth=2, epsilon=1e5).make_plan(SCHEMA)
    assert plan.n_estimators == 10**9
    if kind is DPBoostRegressor:
        assert plan.ensembles == ((1, 10**9),)
        with pytest.raises(InvalidParameter, match="trees_per_ensemble=1000000000 must be at most 10000"):
            kind(schema=SCHEMA, n_estimators=10**9, trees_per_ensemble=10**9).make_plan(SCHEMA)
