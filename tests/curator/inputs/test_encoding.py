"""Rows into public cells: the same whatever holds them, and clear words for what does not fit."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator.inputs.encoding import (
    column_count,
    encode_classes,
    encode_features,
    encode_numeric_target,
    encode_rows,
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


def dicts():
    return [dict(zip(("grade", "flag", "age", "colour", "size"), row, strict=True)) for row in zip(
        GRADES, FLAGS, nan_for_none(AGES), COLOURS, SIZES, strict=True
    )]  # fmt: skip


def list_of_series():
    return [pd.Series(row, dtype=object) for row in lists()[:2]] + [
        pl.Series(row, dtype=pl.Object) for row in lists()[2:]
    ]


def pandas_categories():
    return pandas_frame().astype(dict.fromkeys(("colour", "grade", "flag"), "category"))


@pytest.mark.parametrize(
    "frame",
    [
        pandas_frame, pandas_nullable, pandas_strings, pandas_categories, polars_frame, polars_categories,
        object_array, lists, dicts, list_of_series,
    ],
)  # fmt: skip
def test_every_kind_of_table_gives_the_same_cells(frame):
    X = frame()
    assert column_count(X, MIXED) == 5
    cells = encode_features(X, MIXED, bins=4)
    assert cells.tolist() == EXPECTED
    assert cells.dtype == np.uint8


def test_a_row_that_is_a_dict_of_other_names_leaves_itself_out_only():
    rows = [*dicts()[:2], {"size": 1.0}, {**dicts()[3], "more": 1}]
    cells, left_out = encode_rows(rows, MIXED, bins=4)
    assert [column[:2].tolist() for column in cells] == [column[:2] for column in EXPECTED]
    assert left_out.tolist() == [False, False, True, True]
    unnamed = encode_rows([[0.0, 1.0], {"a": 0.0, "b": 1.0}], Schema.uniform(0, 1, n_features=2), bins=4)
    assert unnamed[1].tolist() == [False, True]  # no names are declared


class Rude:
    """What a row may be of, that raises when anybody looks at it."""

    def keys(self):
        raise ValueError("the secret")

    def __iter__(self):
        raise ValueError("the secret")

    @property
    def ndim(self):
        raise ValueError("the secret")


@pytest.mark.parametrize("base", [dict, list, tuple, np.ndarray])
def test_a_row_that_raises_leaves_itself_out_only_and_no_error_tells_of_it(base):
    kind = type("RudeRow", (Rude, base), {})
    row = np.zeros(2).view(kind) if base is np.ndarray else kind(zip("ab", (0.0, 1.0), strict=True))
    schema = Schema(features=(Numeric("a", 0, 1), Numeric("b", 0, 1)))
    cells, left_out = encode_rows([[0.0, 1.0], row, [1.0, 0.0]], schema, bins=4)
    assert left_out.tolist() == [False, True, False]
    assert cells[:, [0, 2]].tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize(
    "texts", [pd.Series(["1", "2"], dtype="category"), pl.Series(["1", "2"], dtype=pl.Categorical)]
)
def test_categories_of_texts_are_no_numbers_by_their_type(texts):
    schema = Schema(features=(Numeric("c", 0, 10),))
    frame = (pd.DataFrame if isinstance(texts, pd.Series) else pl.DataFrame)({"c": texts})
    assert "declared to hold numbers" in refusal(frame, schema, error=SchemaTypeError)
    numbers = pd.DataFrame({"c": pd.Series([1, 9], dtype="category")})
    assert encode_features(numbers, schema, bins=2).tolist() == [[0, 1]]


def test_a_list_of_lists_of_numbers_is_an_array():
    schema = Schema.uniform(0, 10, n_features=2)
    rows = [[0, 10.0], [2.5, 5]]
    assert encode_features(rows, schema, bins=4).tolist() == [[0, 1], [3, 2]]
    assert encode_features(np.array(rows), schema, bins=4).tolist() == [[0, 1], [3, 2]]
    assert column_count(rows, schema) == 2
    with pytest.raises(SchemaError, match="whose number of columns depends on its rows"):
        column_count(rows)


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
    undeclared = Schema(features=(Categorical("colour", ("red", "blue")),))
    cells, left_out = encode_rows(frame, undeclared, bins=4)
    assert (cells.tolist(), left_out.tolist()) == ([[0, 2, 1]], [False, True, False])


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
    assert "has the undeclared columns ['years']: leave them out of X" in text
    text = refusal(pandas_frame().assign(id=0))
    assert "has the undeclared columns ['id']: leave them out of X" in text
    assert "lacks" not in text
    target = Schema(features=MIXED.features, target=Categorical("bought", ("no", "yes")))
    text = refusal(pandas_frame().assign(id=0, bought="no"), target)
    assert "['id', 'bought'], of which 'bought' is the target and belongs in y" in text
    assert "5 features" in refusal(np.zeros((3, 4)))


def test_a_value_that_does_not_fit_a_numeric_column_leaves_its_own_row_out():
    frame = pandas_frame()
    for odd, cell in ((math.nan, 2), ("a", 2), ({"no": "number"}, 2), (None, 2), (10**400, 2)):
        sizes = pd.Series(np.fromiter([0.0, odd, 10.0, 5.0], object, 4), dtype=object)
        cells, left_out = encode_rows(frame.assign(size=sizes), MIXED, bins=4)
        assert cells[0].tolist() == [0, cell, 3, 2]
        assert left_out.tolist() == [False, True, False, False]
    for odd, cell in ((math.inf, 3), (-math.inf, 0), (1e308, 3)):
        cells, left_out = encode_rows(frame.assign(size=[0, odd, 10, 5]), MIXED, bins=4)
        assert (cells[0].tolist(), left_out.any()) == ([0, cell, 3, 2], False)
    # A column that declares missing values has a cell for what cannot be read.
    cells, left_out = encode_rows(frame.assign(age=pd.Series(["x", 50, -1, None], dtype=object)), MIXED, bins=4)
    assert (cells[1].tolist(), left_out.any()) == ([4, 2, 0, 4], False)


def test_a_column_of_another_type_is_refused_by_its_type():
    frame = pandas_frame()
    texts = frame.assign(size=np.array(["a", "b", "c", "d"])).astype({"size": "str"})
    assert refusal(texts, error=SchemaTypeError).startswith("column 'size' ")
    assert "type datetime64" in refusal(np.zeros((2, 1), "datetime64[s]"), Schema.uniform(0, 1), error=SchemaTypeError)
    assert "Complex data not supported" in refusal(np.zeros((2, 1), complex), Schema.uniform(0, 1), error=ValueError)


def test_tables_without_columns_are_refused():
    assert column_count(np.zeros((0, 2))) == 2  # no rows are rows, too
    for X, words in (
        (np.zeros((2, 0)), "0 feature"),
        (np.zeros(3), "Expected 2D array, got 1D"),
        (np.zeros((2, 2, 2)), "got 3D"),
        (pd.DataFrame({}), "0 feature"),
    ):
        with pytest.raises(SchemaError, match=words):
            column_count(X)


def test_numeric_labels_are_scaled_to_minus_one_and_one():
    target = Numeric("y", 10, 30)
    for y in ([10, 20, 30], np.array([10.0, 20.0, 30.0]), pd.Series([10, 20, 30]), pl.Series([10, 20, 30])):
        assert encode_numeric_target(y, target).tolist() == [-1.0, 0.0, 1.0]
    nullable = pd.Series(pd.array([10, 20, 30], dtype="Int64"))
    assert encode_numeric_target(nullable, target).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y"),
        (np.array([1j, 2, 3]), "Complex data not supported"),
        (np.zeros((3, 2)), "1d array"),
        (np.array(["a", "b", "c"]), "'y' is an array of type <U1, and is declared to hold numbers"),
        ("abc", "y is a str; give a series"),
    ],
)
def test_numeric_labels_of_another_type_or_shape_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        encode_numeric_target(y, Numeric("y", 0.0, 3.0))


def test_numeric_labels_are_clamped_and_what_is_no_number_is_missing():
    y = [1, 9, -math.inf, math.nan, None, "2", [2.0], 10**400, 1.5]
    expected = [-1 / 3, 1, -1, *[math.nan] * 5, 0]
    np.testing.assert_allclose(encode_numeric_target(y, Numeric("y", 0.0, 3.0)), expected, rtol=0, atol=1e-15)
    for nullable in (pd.Series(pd.array([3, None], dtype="Int64")), pl.Series([3, None])):
        np.testing.assert_array_equal(encode_numeric_target(nullable, Numeric("y", 0.0, 3.0)), [1.0, math.nan])


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


def test_a_label_outside_the_declared_classes_is_none_of_them():
    y = ["yes", "maybe", None, 0.5, ["yes"], "no"]
    assert encode_classes(y, Categorical("y", ("no", "yes"))).tolist() == [1, -1, -1, -1, -1, 0]
    assert encode_classes([0.5, 0.25], Categorical("y", ("no", "yes"))).tolist() == [-1, -1]


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
    assert encode_numeric_target([*labels, "0.5"], target).tolist()[:-1] == alone.tolist()[:-1]
