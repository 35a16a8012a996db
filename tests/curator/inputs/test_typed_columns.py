"""Columns by their type: what is public, what is refused by type, and that no value is refused."""

import enum
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.curator.inputs.typed_columns import TypedColumn, TypedColumns, read_columns, read_target
from ledgerwood.curator.inputs.values import MISSING, NO_KEY
from ledgerwood.errors import SchemaError

Y = np.zeros(2)


def kinds(X, y=Y, *, numeric_target=True):
    return [column.kind for column in TypedColumns.of(X, y, numeric_target=numeric_target).features]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.zeros((2, 2)), "numeric"),
        (np.zeros((2, 2), dtype=np.float32), "numeric"),
        (np.zeros((2, 2), dtype=np.uint8), "numeric"),
        (np.zeros((2, 2), dtype=bool), "boolean"),
        (np.array([["a", "b"], ["c", "d"]]), "text"),
    ],
)
def test_an_arrays_one_type_is_every_columns(array, kind):
    assert TypedColumns.of(array, Y, numeric_target=True).features == (TypedColumn("x0", kind), TypedColumn("x1", kind))


def test_a_frames_columns_have_types_of_their_own():
    frame = pd.DataFrame(
        {
            "number": [1.0, 2.0],
            "whole": pd.array([1, None], dtype="Int64"),
            "flag": [True, False],
            "maybe": pd.array([True, None], dtype="boolean"),
            "word": ["a", "b"],
            "object": pd.Series([1, {}], dtype=object),
            "category": pd.Categorical([1, 2], categories=[1, 2, 3]),
        }
    )
    assert kinds(frame) == ["numeric", "numeric", "boolean", "boolean", "text", "text", "text"]
    other = pl.DataFrame({"n": [1, 2], "f": [True, None], "w": ["a", None]}).with_columns(
        c=pl.Series(["u", "v"], dtype=pl.Categorical)
    )
    assert kinds(other) == ["numeric", "boolean", "text", "text"]


@pytest.mark.parametrize("values", [["a", "b"], [1, 2], [1.5, None], [True, None], [None, None], [{}, b"x"]])
def test_the_kind_of_a_column_of_objects_does_not_hang_on_its_values(values):
    assert kinds(pd.DataFrame({"x": pd.Series(values, dtype=object)})) == ["text"]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (
            np.zeros((2, 1), dtype=object),
            "array of type object, which may hold values of any type: pass a typed data frame",
        ),
        ([[1.0], [2.0]], "X is a list, whose type depends on its values"),
        (np.zeros((2, 1), dtype=complex), "Complex data not supported"),
        (np.zeros((2, 1), dtype="timedelta64[s]"), "type timedelta64"),
        (pd.DataFrame({"t": pd.to_timedelta([1, 2], unit="s")}), "column 't' has type Duration"),
        (pd.DataFrame(np.zeros((2, 1))), "column name 0 must be a non-empty string"),
    ],
)
def test_a_column_without_a_type_is_refused_by_type(X, words):
    with pytest.raises(SchemaError, match=words):
        TypedColumns.of(X, Y, numeric_target=True)


@pytest.mark.parametrize(
    ("y", "numeric", "kind"),
    [
        (np.zeros(2), True, "numeric"),
        ([1, 2], True, "numeric"),
        (np.array([True, False]), True, "numeric"),
        (pd.Series([1.0, 2.0]), True, "numeric"),
        (np.zeros(2), False, "codes"),
        (np.array([True, False]), False, "boolean"),
        (np.array(["a", "b"]), False, "text"),
        (np.array(["a", 1], dtype=object), False, "text"),
        (["a", 1], False, "text"),
        (pd.Series([1, 2]), False, "codes"),
        (pl.Series([True, None]), False, "boolean"),
    ],
)
def test_the_target_is_what_the_estimator_takes_it_for(y, numeric, kind):
    assert TypedColumns.of(np.zeros((2, 1)), y, numeric_target=numeric).target == TypedColumn("y", kind)


@pytest.mark.parametrize(
    ("y", "words"), [(None, "requires y"), (np.array(["a", "b"]), "numeric type"), (np.zeros(2) * 1j, "Complex data")]
)
def test_labels_of_the_wrong_type_are_refused(y, words):
    with pytest.raises(SchemaError, match=words):
        TypedColumns.of(np.zeros((2, 1)), y, numeric_target=True)


def test_values_become_numbers_or_keys_and_none_is_refused():
    odd = [1, 1.0, True, "1", None, math.nan, math.inf, 2**53, 10**400, {}, "x", np.int64(1), 0.5, pd.NA]
    keys = read_target(np.array(odd, dtype=object), TypedColumn("y", "text"))
    assert keys.keys == (1, "1", "x", 0.5)
    assert keys.codes.tolist() == [
        0, 0, 0, 1, MISSING, MISSING, NO_KEY, NO_KEY, NO_KEY, MISSING, 2, 0, 3, MISSING,
    ]  # fmt: skip
    numbers = read_target(np.array(odd, dtype=object), TypedColumn("y", "numeric"))
    expected = [1, 1, 1, math.nan, math.nan, math.nan, math.inf, 2.0**53, math.nan]
    np.testing.assert_array_equal(numbers, [*expected, math.nan, math.nan, 1, 0.5, math.nan])


class Colour(str, enum.Enum):  # noqa: UP042 - str() of it is "Colour.RED"
    RED = "red"


NEARLY = np.longdouble(2**53) - np.longdouble(0.25)  # a float64 rounds it up
NUMPY_FLOATS = [
    NEARLY,
    np.longdouble("nan"),
    np.longdouble("1e4000"),
    np.float16(0.5),
    np.float16("nan"),
    np.float16(3),
]


def test_what_numpy_rounds_or_cuts_short_is_a_category_that_a_schema_can_list_or_none():
    odd = np.array([Colour.RED, "red", "red\0", "\0", *NUMPY_FLOATS], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning of a value would tell of it
        keys = read_target(odd, TypedColumn("y", "text"))
        numbers = read_target(odd, TypedColumn("y", "numeric"))
        long = [np.array(NUMPY_FLOATS[:3]) for _ in range(2)]
        long_keys, long_numbers = (
            read_target(y, TypedColumn("y", kind)) for y, kind in zip(long, ("codes", "numeric"), strict=True)
        )
    assert [type(key) for key in keys.keys] == [str, float, int]
    lw.Categorical("y", keys.keys)
    assert (keys.keys, keys.codes.tolist()) == (
        ("red", 0.5, 3), [0, 0, NO_KEY, NO_KEY, NO_KEY, MISSING, NO_KEY, 1, MISSING, 2],
    )  # fmt: skip
    np.testing.assert_array_equal(numbers[4:], [2.0**53, math.nan, math.inf, 0.5, math.nan, 3.0])
    assert (long_keys.keys, long_keys.codes.tolist()) == ((), [NO_KEY, MISSING, NO_KEY])
    np.testing.assert_array_equal(long_numbers, [2.0**53, math.nan, math.inf])


def test_missing_values_of_a_frame_are_missing_keys():
    frame = pd.DataFrame({"w": ["a", None, "b"], "f": pd.array([True, None, False], dtype="boolean")})
    words, flags = read_columns(frame, TypedColumns.of(frame, np.zeros(3), numeric_target=True).features)
    assert (words.keys, words.codes.tolist()) == (("a", "b"), [0, MISSING, 1])
    assert (flags.keys, flags.codes.tolist()) == ((1, 0), [0, MISSING, 1])


ANY = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=2), st.just(())
)


def test_long_integers_are_read_whether_or_not_one_is_missing():
    for missing in ([], [None]):
        frame = pl.DataFrame({"n": [2**100, -7, *missing]}, schema={"n": pl.Int128})
        (values,) = read_columns(frame, TypedColumns.of(frame, Y, numeric_target=True).features)
        np.testing.assert_array_equal(values, [2.0**100, -7.0, *(math.nan for _ in missing)])


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(st.lists(ANY, min_size=1, max_size=6), ANY)
def test_a_value_is_read_by_itself_whatever_the_others_are(values, other):
    """One more row changes the reading of no other row: neither its number nor its key."""

    def read(items):
        array = np.empty(len(items), dtype=object)
        array[:] = items
        keys = read_target(array, TypedColumn("y", "text"))
        names = [keys.keys[code] if code >= 0 else code - 1000 for code in keys.codes.tolist()]
        return read_target(array, TypedColumn("y", "numeric")), [(type(name), name) for name in names]

    numbers, names = read(values)
    more_numbers, more_names = read([other, *values])
    np.testing.assert_array_equal(numbers, more_numbers[1:])
    assert names == more_names[1:]
