"""Labels of a type that cannot be learned are refused by that type: no value is looked at, and nothing is spent."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ledgerwood as lw
from ledgerwood.curator import require_labels
from ledgerwood.errors import SchemaError
from ledgerwood.trainers import DPBoostRegressor, PrivaTreeClassifier, SGBDTClassifier, SGBDTRegressor

NUMBER = lw.Numeric("y", 0, 10)
CLASSES, NAMES = lw.Categorical("y", (0, 1)), lw.Categorical("y", ("no", "yes"))
LABELS = {
    "bool": np.array([True, False]),
    "int8": np.array([0, 1], dtype=np.int8),
    "float32": np.array([0.0, 1.0], dtype=np.float32),
    "complex": np.array([0j, 1j]),
    "datetime": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    "timedelta": np.array([1, 2], dtype="timedelta64[s]"),
    "bytes": np.array([b"no", b"yes"]),
    "str": np.array(["no", "yes"]),
    "object": np.array(["no", 1.0], dtype=object),
    "list": ["no", "yes"],
    "list of numbers": [0.5, 1.5],
    "tuple": (1, 2),
    "pandas object": pd.Series([1.0, 2.0], dtype=object),
    "pandas string": pd.Series(["no", "yes"], dtype="string"),
    "pandas categorical": pd.Series(["no", "yes"], dtype="category"),
    "pandas Int64": pd.Series([0, None], dtype="Int64"),
    "pandas Float64": pd.Series([0.5, None], dtype="Float64"),
    "pandas boolean": pd.Series([True, None], dtype="boolean"),
    "pandas datetime": pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])),
    "pandas complex": pd.Series([1j, 2j]),
    "polars string": pl.Series(["no", "yes"]),
    "polars int": pl.Series([0, 1]),
    "polars float": pl.Series([0.5, None]),
    "polars date": pl.Series(["2020-01-01"]).str.to_date(),
}
NUMBERS = {"int8", "float32", "pandas Int64", "pandas Float64", "polars int", "polars float"}
NUMBERS |= {"bool", "pandas boolean"}
UNTYPED = {"object", "list", "list of numbers", "tuple", "pandas object"}
TEXTS = {"str", "pandas string", "polars string"}
FLOATS = {"float32", "pandas Float64", "polars float"}
NEITHER = {"complex", "datetime", "timedelta", "bytes", "pandas datetime", "pandas complex", "polars date"}
ACCEPTED = {
    (True, None): NUMBERS,
    (True, NUMBER): NUMBERS | UNTYPED,
    (False, None): (NUMBERS - FLOATS) | UNTYPED | TEXTS | {"pandas categorical"},
    (False, CLASSES): NUMBERS | UNTYPED | {"pandas categorical"},
    (False, NAMES): TEXTS | UNTYPED | {"pandas categorical"},
}


@pytest.mark.parametrize(("numeric", "target"), ACCEPTED, ids=str)
@pytest.mark.parametrize("kind", LABELS)
def test_the_type_alone_decides(kind, numeric, target):
    assert set(LABELS) == NUMBERS | UNTYPED | TEXTS | NEITHER | {"pandas categorical"}
    if kind in ACCEPTED[numeric, target]:
        require_labels(LABELS[kind], target, numeric=numeric)
        return
    with pytest.raises(SchemaError, match=r"y is of type|Complex data not supported") as refused:
        require_labels(LABELS[kind], target, numeric=numeric)
    assert isinstance(refused.value, TypeError)


X = np.random.default_rng(0).uniform(size=(50, 2))
ODD = [
    ("yes", "no"),
    (0.5, "no"),
    (None, None),
    ([1.0], {}),
]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("kind", [SGBDTRegressor, DPBoostRegressor])
def test_no_value_makes_a_regressor_read_objects_without_a_declaration(kind, odd):
    """Whatever the labels hold the refusal is the same: one row cannot turn it into a fit."""
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW)
    before, said = ledger.entries, set()
    plain = [1.0] * 50
    for y in (plain, [*odd, *plain[2:]]):
        objects = np.empty(50, dtype=object)
        objects[:] = y
        for labels in (objects, pd.Series(objects)):
            with pytest.raises(SchemaError, match="declare the target") as refused:
                kind(delta=1e-6).fit(X, labels, ledger=ledger)
            said.add(str(refused.value))
    assert len(said) == 1
    with pytest.raises(SchemaError, match="y is of type list"):
        kind(delta=1e-6).fit(X, plain, ledger=ledger)
    with pytest.raises(SchemaError, match="y is of type <U3, and a regressor needs numbers"):
        kind(delta=1e-6).fit(X, np.array(["yes", "no"] * 25), ledger=ledger)
    assert ledger.entries == before


@pytest.mark.slow  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("kind", [SGBDTClassifier, PrivaTreeClassifier])
def test_floats_are_classes_only_where_these_are_declared(kind):
    y = np.array([0.0, 1.0] * 25)
    with pytest.raises(SchemaError, match="numbers with a fraction are not classes"):
        kind(delta=1e-6).fit(X, y)
    schema = lw.Schema.uniform(0, 1, n_features=2, target=CLASSES)
    assert kind(delta=1e-6, schema=schema).fit(X, y).classes_.tolist() == [0, 1]
    with pytest.raises(SchemaError, match="no label could be one of them"):
        kind(delta=1e-6, schema=schema).fit(X, np.array(["0", "1"] * 25))
