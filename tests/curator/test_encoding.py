"""Rows into public cells: the same whatever holds them, and clear words for what does not fit."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator.encoding import (
    column_count,
    encode_classes,
    encode_features,
    encode_numeric_target,
    sorted_classes,
    two_classes,
)
from ledgerwood.errors import SchemaError, SchemaTypeError

MIXED = Schema(
    features=(
        Numeric("size", 0.0, 10.0),
        Numeric("age", 0, 100, missing=True),
        Categorical("colour", ("red", "blue")),
        Categorical("grade", (1, 2, 3), missing=True),
        Categorical("flag", (False, True)),
    )
)
SIZES = [0.0, 2.5, 10.0, 9.99]
AGES = [None, 50.0, 0.0, 100.0]
COLOURS = ["red", "blue", "green", "red"]
GRADES = [3.0, None, 1.0, 9.0]
FLAGS = [True, False, True, True]
# Four bins: 2.5 opens the second; cell 4 is a missing number. After the categories come "other" and missing.
EXPECTED = [[0, 1, 3, 3], [4, 2, 0, 3], [0, 1, 2, 0], [2, 4, 0, 3], [1, 0, 1, 1]]


def nan_for_none(values):
    return [math.nan if value is None else value for value in values]


def pandas_frame():
    return pd.DataFrame(
        {"size": SIZES, "age": nan_for_none(AGES), "colour": COLOURS, "grade": nan_for_none(GRADES), "flag": FLAGS}
    )


def pandas_nullable():
    return pd.DataFrame(
        {
            "flag": pd.array(FLAGS, dtype="boolean"),
            "grade": pd.array([None if g is None else int(g) for g in GRADES], dtype="Int64"),
            "colour": pd.Categorical(COLOURS),
            "age": pd.array(AGES, dtype="Float64"),
            "size": SIZES,
        }
    )


def pandas_strings():
    return pandas_frame().assign(colour=pd.array(COLOURS, dtype="string"))[["grade", "colour", "flag", "size", "age"]]


def polars_frame():
    return pl.DataFrame({"flag": FLAGS, "age": AGES, "colour": COLOURS, "grade": GRADES, "size": SIZES})


def polars_categories():
    return polars_frame().with_columns(
        pl.col("colour").cast(pl.Categorical), pl.col("grade").cast(pl.Int32), pl.col("size").cast(pl.Float32)
    )


def object_array():
    return np.array(list(zip(SIZES, AGES, COLOURS, GRADES, FLAGS, strict=True)), dtype=object)


def lists():
    return [list(row) for row in zip(SIZES, nan_for_none(AGES), COLOURS, GRADES, FLAGS, strict=True)]


def pandas_categories():
    return pandas_frame().astype(dict.fromkeys(("colour", "grade", "flag"), "category"))


@pytest.mark.parametrize(
    "frame",
    [
        pandas_frame, pandas_nullable, pandas_strings, pandas_categories, polars_frame, polars_categories,
        object_array, lists,
    ],
)  # fmt: skip
def test_every_kind_of_table_gives_the_same_cells(frame):
    X = frame()
    assert column_count(X) == 5
    cells = encode_features(X, MIXED, bins=4)
    assert cells.tolist() == EXPECTED
    assert cells.dtype == np.uint8


def test_a_list_of_lists_of_numbers_is_an_array():
    schema = Schema.uniform(0, 10, n_features=2)
    rows = [[0, 10.0], [2.5, 5]]
    assert encode_features(rows, schema, bins=4).tolist() == [[0, 1], [3, 2]]
    assert encode_features(np.array(rows), schema, bins=4).tolist() == [[0, 1], [3, 2]]
    assert column_count(rows) == 2


@pytest.mark.parametrize(
    ("values", "table", "categories"),
    [
        ([1, 2, "else"], lambda column: [[value] for value in column], (1, 2)),
        ([1.5, 2.5, None], lambda column: [[value] for value in column], (1.5, 2.5)),
        ([2**53 - 1, 2**53 - 2, None], lambda c: pd.DataFrame({"c": pd.array(c, dtype="Int64")}), (1, 2**53 - 1)),
        ([2**53 - 1, 2**53, None], lambda c: pl.DataFrame({"c": pl.Series(c, dtype=pl.Int64)}), (1, 2**53 - 1)),
        ([0.5, 0.1, None], lambda c: pl.DataFrame({"c": pl.Series(c, dtype=pl.Float32)}), (0.5, 0.1)),
        ([0.5, 0.1, None], lambda c: pd.DataFrame({"c": pd.array(c, dtype="Float32")}), (0.5, 0.1)),
        ([Decimal("0.5"), Decimal("0.1"), None], lambda c: pl.DataFrame({"c": c}), (0.5, 0.1)),
        ([True, False, None], lambda c: pd.DataFrame({"c": pd.array(c, dtype="boolean")}), (True, False)),
        ([1, *["a"] * 150, 7], lambda c: pd.DataFrame({"c": pd.Series(c[::-1], dtype=object)}), ("a", "1")),
        (["a", 1, pd.NA], lambda c: pd.DataFrame({"c": pd.Series(c, dtype=object)}), ("a", 1)),
    ],
)  # fmt: skip
def test_a_row_changes_the_cells_of_no_other_row(values, table, categories):
    # A sensitivity is that of one row: numpy and the data frames choose a column's type by all of them.
    schema = Schema(features=(Categorical("c", categories, missing=True),))
    with_it = encode_features(table(values), schema, bins=4)[0].tolist()
    without = encode_features(table(values[:-1]), schema, bins=4)[0].tolist()
    assert without in (with_it[:-1], with_it[1:])


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA])
def test_a_missing_string_is_missing_and_not_a_category(missing):
    frame = pd.DataFrame({"colour": ["red", missing, "blue"]}, dtype=object)
    allowed = Schema(features=(Categorical("colour", ("red", "blue"), missing=True),))
    assert encode_features(frame, allowed, bins=4).tolist() == [[0, 3, 1]]
    refused = Schema(features=(Categorical("colour", ("red", "blue")),))
    with pytest.raises(SchemaError, match="X contains NaN: column 'colour' in 1 rows; declare missing=True"):
        encode_features(frame, refused, bins=4)


def test_polars_nulls_are_missing():
    frame = pl.DataFrame({"colour": ["red", None, "blue"]})
    allowed = Schema(features=(Categorical("colour", ("red", "blue"), missing=True),))
    assert encode_features(frame, allowed, bins=4).tolist() == [[0, 3, 1]]


@given(st.lists(st.floats(-1e300, 1e300), min_size=1), st.integers(2, 300))
def test_numbers_are_clamped_into_even_steps(values, bins):
    low, high = -3.0, 5.0
    column = np.array(values)[:, None]
    cells = encode_features(column, Schema.uniform(low, high), bins=bins)[0]
    assert cells.dtype == (np.uint8 if bins + 1 <= 256 else np.uint16)
    clamped = np.clip(column[:, 0], low, high)
    # The cell's step holds the value, up to the rounding of the step's ends.
    width = (high - low) / bins
    assert (cells * width <= clamped - low + 1e-12).all()
    assert (clamped - low <= (cells + 1) * width + 1e-12).all()
    assert cells.max() < bins


def test_many_categories_take_sixteen_bits():
    names = tuple(f"c{i}" for i in range(1_000))
    column = np.array([["c0"], ["c999"], ["other"]], dtype=object)
    cells = encode_features(column, Schema(features=(Categorical("c", names),)), bins=4)
    assert cells.dtype == np.uint16
    assert cells.tolist() == [[0, 999, 1000]]


def refusal(X, schema=MIXED, error=SchemaError):
    with pytest.raises(error) as caught:
        encode_features(X, schema, bins=4)
    return str(caught.value)


def test_columns_that_are_absent_or_undeclared_are_named():
    text = refusal(pandas_frame().rename(columns={"age": "years"}))
    assert "lacks the declared columns ['age']" in text
    assert "undeclared columns ['years']" in text
    assert "5 features" in refusal(np.zeros((3, 4)))


def test_values_that_do_not_fit_a_numeric_column_are_named():
    frame = pandas_frame()
    assert "column 'size' in 1 rows; declare missing=True" in refusal(frame.assign(size=[0, np.nan, 1, 2]))
    assert "infinity or a value too large: column 'size'" in refusal(frame.assign(size=[0, np.inf, 1, 2]))
    assert "infinity or a value too large: column 'age'" in refusal(frame.assign(age=[0, -np.inf, 1, 2]))
    assert "column 'size' is declared numeric" in refusal(frame.assign(size=["a", "b", "c", "d"]))
    nested = object_array()
    nested[0, 0] = {"no": "number"}
    assert "column 'size' is declared numeric" in refusal(nested, error=SchemaTypeError)
    assert "column 'x0' is declared numeric" in refusal([[10**400]], Schema.uniform(0, 1))
    assert "Complex data not supported" in refusal(np.zeros((2, 1), complex), Schema.uniform(0, 1), error=ValueError)


def test_tables_without_rows_or_columns_and_sparse_ones_are_refused():
    for X, words in (
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 0)), "0 feature"),
        (np.zeros(3), "Expected 2D array, got 1D"),
        (np.zeros((2, 2, 2)), "got 3D"),
        (pd.DataFrame({"a": []}), "0 sample"),
    ):
        with pytest.raises(SchemaError, match=words):
            column_count(X)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        encode_features(sparse.csr_matrix(np.eye(3)), Schema.uniform(0, 1), bins=4)


def test_numeric_labels_are_scaled_to_minus_one_and_one():
    target = Numeric("y", 10, 30)
    for y in ([10, 20, 30], np.array([10.0, 20.0, 30.0]), pd.Series([10, 20, 30]), pl.Series([10, 20, 30])):
        assert encode_numeric_target(y, target).tolist() == [-1.0, 0.0, 1.0]
    nullable = pd.Series(pd.array([10, 20, 30], dtype="Int64"))
    assert encode_numeric_target(nullable, target).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1, 2, 3.5], r"label 3\.5 of target 'y' is outside the declared \[0\.0, 3\.0\] \(1 rows; unit: the label's\)"),
        ([1, np.nan, 2], "y contains NaN: the target 'y'"),
        ([1, np.inf, 2], "the target 'y' must be finite"),
        (["a", "b", "c"], "column 'y' is declared numeric"),
        (None, "requires y"),
        (np.array([1j, 2, 3]), "Complex data not supported"),
        (np.zeros((3, 2)), "1d array"),
    ],
)
def test_numeric_labels_that_do_not_fit_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        encode_numeric_target(y, Numeric("y", 0.0, 3.0))


def test_a_nullable_label_that_is_missing_is_refused():
    for y in (pd.Series(pd.array([1, None], dtype="Int64")), pl.Series([1, None])):
        with pytest.raises(SchemaError, match="y contains NaN"):
            encode_numeric_target(y, Numeric("y", 0.0, 3.0))


@pytest.mark.parametrize(
    ("categories", "y"),
    [
        (("no", "yes"), ["yes", "no", "yes"]),
        (("yes", "no"), np.array(["yes", "no", "yes"], dtype=object)),
        (("no", "yes"), pd.Series(pd.Categorical(["yes", "no", "yes"]))),
        (("no", "yes"), pl.Series(["yes", "no", "yes"])),
        ((1, 0), [1, 0, 1]),
        ((0, 1), np.array([1.0, 0.0, 1.0])),
        ((False, True), np.array([True, False, True])),
    ],
)
def test_classes_are_signs_in_sorted_order_whatever_the_declared_one(categories, y):
    assert encode_classes(y, Categorical("y", categories)).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (
            ["yes", "maybe"],
            r"'maybe' of target 'y' is not one of the declared classes \('no', 'yes'\) \(1 rows\)",
        ),
        (np.array(["yes", None], dtype=object), "y contains NaN: target 'y' in 1 rows"),
        ([0.5, 0.25], "Unknown label type"),
    ],
)
def test_labels_outside_the_declared_classes_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        encode_classes(y, Categorical("y", ("no", "yes")))


def test_three_classes_are_refused():
    with pytest.raises(SchemaError, match=r"declares 3 classes .* 2 are supported"):
        two_classes(Categorical("y", (0, 1, 2)))


def test_classes_of_two_kinds_are_refused():
    with pytest.raises(SchemaError, match="strings among numbers"):
        sorted_classes(Categorical("y", (10, "1")))


def test_a_list_of_labels_is_read_label_by_label():
    """One string among them would turn all others into strings, and these into other numbers."""
    target = Numeric("y", 0.0, 1.0)
    labels = [np.float32(i) / np.float32(7) for i in range(6)]
    alone = encode_numeric_target([*labels, 0.5], target)
    assert encode_numeric_target([*labels, "0.5"], target).tolist() == alone.tolist()
