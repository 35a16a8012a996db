"""Errors call every parameter of every estimator by its own name, cost nothing, and suggest what does fit."""

import inspect
import math
import re

import numpy as np
import pytest

import ledgerwood as lw
import ledgerwood.trainers as trainers
from ledgerwood.curator import TypedColumn, TypedColumns
from ledgerwood.errors import CalibrationFailed, InvalidParameter, PrivacyError
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

ESTIMATORS = [
    kind
    for kind in vars(trainers).values()
    if inspect.isclass(kind) and issubclass(kind, AbstractTreeEstimator) and not inspect.isabstract(kind)
]
FEATURES = (lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1), lw.Categorical("c", ("x", "y")))
NEVER = ("nonsense", object(), math.nan, [], {}, b"x", 1 + 2j, np.zeros(2))
"""No parameter takes one of these, but for lists of candidates."""
SELDOM = (math.inf, -math.inf, -1, -0.5, 0, 10**400, 10**5000, 1e300, 5e-324, None, True, 2.5)
"""Where one of these is out of a parameter's bound, or leaves no plan, the error names the parameter."""


def schema_for(kind):
    target = lw.Numeric("y", 0, 1) if "Regressor" in kind.__name__ else lw.Categorical("y", (0, 1))
    return lw.Schema(features=FEATURES, target=target)


def made(kind, **parameters):
    more = {"schema": schema_for(kind)}
    if kind is trainers.PrivateSearch:
        more |= {"estimator": trainers.SGBDTClassifier(), "candidates": [{"n_estimators": 3}]}
    elif "n_estimators" in inspect.signature(kind).parameters:
        more |= {"n_estimators": 2}
    return kind(**(more | parameters))


def test_all_estimators_are_found():
    assert len(ESTIMATORS) >= 10


CASES = [(kind, name) for kind in ESTIMATORS for name in inspect.signature(kind).parameters]


@pytest.mark.slow_after(9)  # each parameter of each estimator
@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_value_is_called_by_the_name_of_its_parameter(kind, name):
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW)
    before = ledger.entries
    rows = np.zeros((4, 3))  # which are not the schema's: that would be said, were they looked at
    for value in NEVER:
        with pytest.raises(InvalidParameter, match=rf"{name}=.* must be .*\(unit: ") as refused:
            made(kind, **{name: value}).fit(rows, np.zeros(4), ledger=ledger)
        if not isinstance(value, np.ndarray):
            assert repr(value) in str(refused.value)
    assert ledger.entries == before


@pytest.mark.slow_after(1)  # each parameter of each estimator, some of whose values make plans
@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_value_out_of_its_bound_is_called_by_the_name_of_its_parameter(kind, name):
    for value in SELDOM:
        model = made(kind, **{name: value})
        try:
            model._declared_schema()
            model.make_plan(schema_for(kind))
        except PrivacyError as refused:
            assert f"{name}=" in str(refused), value


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("name", ["n_estimators", "max_depth", "reg_lambda", "max_bins"])
def test_presets_keep_the_names(preset, name):
    for kind in (trainers.SGBDTRegressor, trainers.DPBoostRegressor, trainers.DPXGBoostRegressor):
        with pytest.raises(InvalidParameter, match=rf"^{name}=-3 must be "):
            made(kind, preset=preset, **{name: -3}).make_plan(schema_for(kind))


PLANS = [
    (trainers.SGBDTRegressor, {"epsilon": 1e-8}),
    (trainers.SGBDTRegressor, {"epsilon": 1e-9, "expected_rows": 10_000}),
    (trainers.SGBDTClassifier, {"epsilon": 1e-10, "preset": "paper"}),
    (trainers.DPBoostRegressor, {"epsilon": 1e-8}),
    (trainers.DPBoostClassifier, {"epsilon": 1e-8, "preset": "paper"}),
    (trainers.DPXGBoostRegressor, {"epsilon": 1e-8, "n_estimators": 100}),
    (trainers.DPXGBoostClassifier, {"epsilon": 1e-8}),
    (trainers.FederatedGBDTRegressor, {"epsilon": 1e-10}),
    (trainers.FederatedGBDTClassifier, {"epsilon": 1e-10}),
    (trainers.PrivaTreeClassifier, {"epsilon": 1e-10}),
]


@pytest.mark.slow  # calibrates the plan that a refusal suggests
@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize(("kind", "options"), PLANS, ids=str)
def test_what_is_said_to_fit_fits(kind, options, estimated):
    options = {"delta": 1e-18} | options
    schema = schema_for(kind)
    if estimated:
        columns = tuple(TypedColumn(name, "numeric") for name in ("a", "b"))
        target = TypedColumn("y", "numeric" if "Regressor" in kind.__name__ else "boolean")
        schema = TypedColumns(features=columns, target=target)
    with pytest.raises((CalibrationFailed, InvalidParameter), match=r"^epsilon=1e-\d+ nats at delta=.*too small") as no:
        kind(**options).make_plan(schema)
    said = dict(re.findall(r"(epsilon|n_estimators)=([^ ;]+)", str(no.value).split("what would fit: ")[1]))
    enough = float(said["epsilon"])
    kind(**(options | {"epsilon": enough})).make_plan(schema)
    if "n_estimators" in said:
        kind(**(options | {"n_estimators": int(said["n_estimators"])})).make_plan(schema)


def test_the_one_parameter_that_is_to_blame_is_named():
    with pytest.raises(PrivacyError, match=r"^subsample=5e-324 does not fit: .*; set subsample=None$"):
        made(trainers.SGBDTRegressor, subsample=5e-324).make_plan(schema_for(trainers.SGBDTRegressor))


CONSTRUCTORS = [
    (lambda **k: lw.Budget(**({"epsilon": 1.0, "delta": 1e-6, "adjacency": lw.Adjacency.ADD_REMOVE} | k)),
     ["epsilon", "delta", "adjacency"]),
    (lambda **k: lw.GaussianEvent(**({"noise_multiplier": 1.0, "adjacency": lw.Adjacency.ADD_REMOVE} | k)),
     ["noise_multiplier", "adjacency"]),
    (lambda **k: lw.LaplaceEvent(**({"noise_multiplier": 1.0, "adjacency": lw.Adjacency.ADD_REMOVE} | k)),
     ["noise_multiplier", "adjacency"]),
    (lambda **k: lw.PureEvent(**({"epsilon": 1.0, "adjacency": lw.Adjacency.ADD_REMOVE} | k)),
     ["epsilon", "adjacency"]),
    (lambda **k: lw.Numeric(**({"name": "a", "low": 0.0, "high": 1.0} | k)), ["name", "low", "high"]),
    (lambda **k: lw.Categorical(**({"name": "a", "categories": ("x",)} | k)), ["name", "categories"]),
    (lambda **k: lw.Schema(**({"features": FEATURES} | k)), ["weight_bound"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "name"), [(make, name) for make, names in CONSTRUCTORS for name in names], ids=lambda v: str(v)[:14]
)
def test_public_constructors_name_what_is_out_of_its_bound(make, name):
    for value in (object(), math.nan, [], 1 + 2j):
        with pytest.raises(PrivacyError, match=rf"\b{name}\b"):
            make(**{name: value})
