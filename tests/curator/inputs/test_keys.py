"""Keys: each read by itself, by type alone; who has none takes no part, and of several rows of a unit the first one."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.errors import SchemaError, SchemaTypeError

LONG = 2**70


@pytest.mark.parametrize(
    "keys",
    [
        [3, -1, 0],
        (3, -1, 0),
        np.array([3, -1, 0]),
        np.array([3, -1, 0], dtype=np.int8),
        np.array([3, -1, 0], dtype=object),
        np.array([np.int16(3), -1, np.int64(0)], dtype=object),
        pd.Series([3, -1, 0], index=[7, 8, 9]),
        pd.Series([3, -1, 0], dtype="Int64"),
        pl.Series([3, -1, 0]),
        np.ma.masked_array([3, -1, 0], mask=[False] * 3),
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_a_number_is_the_same_unit_in_every_container(keys):
    read = read_keys(keys, 3)
    assert (read.tokens, read.rows.tolist(), read.n_rows) == ((b"i3", b"i-1", b"i0"), [0, 1, 2], 3)
    typed = not isinstance(keys, list | tuple) and keys.dtype != object
    assert read.kind == ("integers" if typed else None)


@pytest.mark.parametrize(
    "keys",
    [
        ["ada", "b\u00e9", "1"],
        np.array(["ada", "b\u00e9", "1"]),
        np.array(["ada", "b\u00e9", "1"], dtype=object),
        np.array(["ada", "b\u00e9", "1"], dtype=np.dtypes.StringDType()),
        np.array([np.str_("ada"), "b\u00e9", "1"], dtype=object),
        pd.Series(["ada", "b\u00e9", "1"]),
        pd.Series(["ada", "b\u00e9", "1"], dtype="category"),
        pl.Series(["ada", "b\u00e9", "1"]),
        pl.Series(["ada", "b\u00e9", "1"], dtype=pl.Categorical),
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_a_text_is_the_same_unit_in_every_container(keys):
    read = read_keys(keys, 3)
    # A text that spells a whole number is that number, so that no type of a column makes two units of one.
    assert (read.tokens, read.rows.tolist()) == ((b"sada", b"sb\xc3\xa9", b"i1"), [0, 1, 2])
    assert read.kind in ("strings", None)


def test_numbers_beyond_64_bits_and_broken_surrogates_are_keys():
    assert read_keys([LONG, 2**64 - 1], 2).tokens == (b"i%d" % LONG, b"i18446744073709551615")
    assert read_keys(np.array([2**64 - 1], dtype=np.uint64), 1).tokens == (b"i18446744073709551615",)
    assert len(set(read_keys(["\ud800", "\ud801", "?"], 3).tokens)) == 3


@given(st.sets(st.integers()) | st.sets(st.text(st.characters(exclude_characters="\0"), min_size=1)))
def test_tokens_differ_where_keys_do(keys):
    assert len(set(read_keys(list(keys), len(keys)).tokens)) == len(keys)


@pytest.mark.parametrize(
    "keys",
    [
        [5, None],
        ["x", None],
        [5, float("nan")],
        ["x", np.nan],
        ["x", pd.NA],
        np.ma.masked_array([5, 6], mask=[False, True]),
        pd.Series([5, None], dtype="Int64"),
        pd.Series(["x", None]),
        pl.Series([5, None]),
        pl.Series(["x", None]),
        np.array(["x", None], dtype=np.dtypes.StringDType(na_object=None)),
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_a_row_without_a_key_takes_no_part(keys):
    read = read_keys(keys, 2)
    assert (read.tokens in ((b"i5",), (b"sx",)), read.rows.tolist(), read.n_rows) == (True, [0], 2)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (np.array([1.0, 2.0]), "float64.*gap"),
        (np.array([True, False]), "bool"),
        (np.array([b"a", b"b"]), "S1"),
        (np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"), "datetime64"),
    ],
)
def test_other_types_are_refused(keys, problem):
    with pytest.raises(SchemaTypeError, match=problem):
        read_keys(keys, 2)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([1, 2, 3], "inconsistent numbers of samples: X and keys"),
        (np.zeros((2, 2), dtype=int), "keys should be a 1d array"),
        (5, "keys is an int"),
        (None, "None"),
    ],
)
def test_other_shapes_are_refused(keys, problem):
    with pytest.raises(SchemaError, match=problem):
        read_keys(keys, 2)


def test_what_is_no_key_is_left_out_by_itself():
    for odd in (1.0, True, b"a", (1, 2), "", "y\0", {}, [3]):
        assert read_keys([7, odd, "x"], 3).tokens == (b"i7", b"sx")


def test_of_several_rows_of_a_unit_the_first_one_takes_part_and_no_key_is_shown():
    read = read_keys(["a", "secret-17", "b", "secret-17", 7, "7", "07"], 7)
    assert read.rows.tolist() == [0, 1, 2, 4, 6]
    assert "secret" not in repr(read)


@pytest.mark.parametrize(
    "key", [10**5000, -(10**5000), int("7" * 4300) * 10], ids=["long", "negative", "just too long"]
)
def test_a_number_that_python_does_not_spell_out_is_a_key_like_any_other(key):
    text = f"{Decimal(key):f}"
    read = read_keys([1, key, text], 3)
    assert read.tokens == (b"i1", b"i" + text.encode())
