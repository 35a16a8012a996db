"""Small fitted models of every system, shared by the tests of exports."""

import functools
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

import ledgerwood as lw
from ledgerwood import trainers
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

N_ROWS = 200
FEATURES = (
    lw.Numeric("length", 0.1, 0.7),
    lw.Categorical("sold", (False, True)),
    lw.Numeric("weight", -1.0, 1.0, missing=True),
    lw.Categorical("colour", ("red", "green", "blue", "grey"), missing=True),
)
THREE = ("low", "high", "middle")
TARGETS = {
    "number": lw.Numeric("y", 2.0, 12.0),
    "two": lw.Categorical("y", (1, 0)),
    "two weighted": lw.Categorical("y", (1, 0), weights=(4.0, 1.0)),
    "three": lw.Categorical("y", THREE),
    "three weighted": lw.Categorical("y", THREE, weights=(1.0, 2.0, 4.0)),
}
KINDS = {
    name: kind
    for name, kind in vars(trainers).items()
    if inspect.isclass(kind)
    and issubclass(kind, AbstractTreeEstimator)
    and not inspect.isabstract(kind)
    and kind is not trainers.PrivateSearch  # which fits one of the others
}
CASES = [
    (name, target)
    for name, kind in KINDS.items()
    for target in TARGETS
    if is_regressor(kind()) == (target == "number") and not (name.startswith("PrivaTree") and "weighted" in target)
]
CASES.sort(key=lambda case: list(TARGETS).index(case[1]) if case[1] != "number" else 0)  # each system once, first

every_case = pytest.mark.parametrize("case", CASES, ids=[f"{name}-{target}" for name, target in CASES])


def table():
    """Rows with values on both sides of every declared range, unknown categories, and missing values."""
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "length": generator.uniform(0.0, 0.8, N_ROWS).astype(np.float32),
            "sold": generator.random(N_ROWS) < 0.5,
            "weight": np.where(generator.random(N_ROWS) < 0.2, np.nan, generator.uniform(-1.5, 1.5, N_ROWS)),
            "colour": generator.choice(["red", "green", "blue", "grey", "odd", None], N_ROWS),
        }
    ).astype({"weight": np.float32})


def labels(X, target):
    place = np.digitize(X["length"], (0.3, 0.6))
    if target == "number":
        return 2.0 + 10.0 * X["length"].to_numpy()
    return (place > 0).astype(int) if target.startswith("two") else np.array(THREE)[place]


@functools.cache
def fit(name, target, **options):
    kind, schema = KINDS[name], lw.Schema(features=FEATURES, target=TARGETS[target])
    size = {"n_estimators": 7, "max_depth": 3, "max_bins": 16}
    known = {key: value for key, value in size.items() if key in inspect.signature(kind).parameters}
    model = kind(schema=schema, epsilon=5.0, random_state=1, **(known | options))
    X = table()
    return model.fit(X, labels(X, target))


@pytest.fixture(scope="session")
def rows():
    return table()


@pytest.fixture(scope="session")
def fitted():
    """A function of an estimator's name and a target's: the model, fitted once."""
    return fit
