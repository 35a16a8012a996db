"""Keys: one a row, of one kind, none missing, none twice; and messages that show none of them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.curator.keys import read_keys
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
    assert (read.kind, read.tokens) == ("integers", [b"i3", b"i-1", b"i0"])


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
    assert (read.kind, read.tokens) == ("strings", [b"sada", b"sb\xc3\xa9", b"s1"])


def test_numbers_beyond_64_bits_and_broken_surrogates_are_keys():
    assert read_keys([LONG, 2**64 - 1], 2).tokens == [b"i%d" % LONG, b"i18446744073709551615"]
    assert read_keys(np.array([2**64 - 1], dtype=np.uint64), 1).tokens == [b"i18446744073709551615"]
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
        pd.Series([5.0, None]),
        pl.Series([5, None]),
        pl.Series(["x", None]),
        np.array(["x", None], dtype=np.dtypes.StringDType(na_object=None)),
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_a_missing_key_is_refused(keys):
    with pytest.raises(SchemaError, match="key of row 1 is missing"):
        read_keys(keys, 2)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([1.0, 2.0], "of type float"),
        (np.array([1.0, 2.0]), "float64.*gap"),
        (np.array([True, False]), "bool"),
        ([True, 2], "of type bool"),
        ([1, "1"], "mixes.*row 1"),
        (np.array([b"a", b"b"]), "S1"),
        ([b"a", b"b"], "of type bytes"),
        (np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"), "datetime64"),
        ([(1, 2), (3,)], "of type tuple"),
    ],
)
def test_other_types_are_refused(keys, problem):
    with pytest.raises(SchemaTypeError, match=problem):
        read_keys(keys, 2)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([1, 2, 3], "3 entries and X 2 rows"),
        ([[1], [2]], r"shape \(2, 1\)"),
        (5, r"shape \(\)"),
        (["x", ""], "row 1 is empty"),
        (["x", "y\0"], "row 1 is empty or has a NUL"),
        ([7, 7], "rows 0 and 1 have the same key"),
        (np.array(["x", "x"]), "rows 0 and 1 have the same key"),
    ],
)
def test_other_shapes_and_shared_keys_are_refused(keys, problem):
    with pytest.raises(SchemaError, match=problem):
        read_keys(keys, 2)


def test_the_rows_that_share_a_key_are_named_and_the_key_is_not():
    with pytest.raises(SchemaError, match="rows 1 and 3") as refusal:
        read_keys(["a", "secret-17", "b", "secret-17"], 4)
    assert "secret" not in str(refusal.value)
    assert "secret" not in repr(read_keys(["secret-17"], 1))
