"""Sparse tables are encoded as the arrays that `toarray` makes of them; what is refused is refused by type."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator import column_count, encode_features
from ledgerwood.curator.inputs.encoding import encode_rows
from ledgerwood.curator.inputs.reading import row_count, rows_at
from ledgerwood.curator.inputs.sparse_tables import by_column
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.sparse_cells import SparseCells, spelled_out

KINDS = (np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_)
FORMATS = (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array)
FEATURES = (
    Numeric("a", 0, 1),
    Numeric("b", -3, 2, missing=True),
    Categorical("c", (0, 1, 2)),
    Categorical("d", (3, 1, -1.5), missing=True),
    Numeric("e", 5, 9),
)
MIXED = Schema(features=FEATURES)


@st.composite
def sparse_tables(draw):
    """Of any format that is read, with places that are stored twice or thrice, out of order, as 0 or as NaN."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, kind, make = draw(st.integers(0, 12)), draw(st.sampled_from(KINDS)), draw(st.sampled_from(FORMATS))
    lines, width = (n_rows, 5) if make in FORMATS[:2] else (5, n_rows)
    stored = int(generator.integers(0, 40)) if n_rows else 0
    values = generator.choice([0.0, 1.0, 2.0, -1.5, 0.1, 0.7, 6.0, 300.0, np.nan, np.inf], stored)
    if kind is not np.float64 and kind is not np.float32:
        values = np.nan_to_num(values, nan=3.0, posinf=120.0)
    starts = np.sort(np.concatenate(([0, stored], generator.integers(0, stored + 1, lines - 1)))) if lines else [0]
    places = generator.integers(0, max(1, width), stored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make((values.astype(np.int64).astype(kind) if kind not in KINDS[:2] else values.astype(kind),
                     places, starts), shape=(n_rows, 5))  # fmt: skip


@pytest.mark.slow  # reads hundreds of random tables
@given(sparse_tables(), st.sampled_from([2, 32, 300]), st.booleans())
@settings(deadline=None, max_examples=150)
def test_cells_and_rows_without_a_value_are_those_of_the_array(table, bins, uniform):
    schema = Schema.uniform(-1, 2, n_features=5) if uniform else MIXED
    before = [array.copy() for array in (table.data, table.indices, table.indptr)]
    with np.errstate(all="ignore"):
        expected, left_out = encode_rows(table.toarray(), schema, bins=bins)
        cells, gone = encode_rows(table, schema, bins=bins)
    assert isinstance(cells, SparseCells)
    np.testing.assert_array_equal(spelled_out(cells), expected)
    assert cells.dtype == expected.dtype
    np.testing.assert_array_equal(gone, left_out)
    for array, old in zip((table.data, table.indices, table.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)  # the caller's table does not change


def test_three_values_of_one_place_are_added_in_the_order_in_which_they_are_stored():
    """In another order the sum is another float, and another cell."""
    values, wide = [1e16, 1.0, -1e16], Schema.uniform(0, 1, n_features=1)
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2]):
        data = np.array(values)[order]
        for table in (
            sparse.csr_array((data, [0, 0, 0], [0, 3]), shape=(1, 1)),
            sparse.csc_array((data, [0, 0, 0], [0, 3]), shape=(1, 1)),
        ):
            expected = encode_features(table.toarray(), wide, bins=8)
            np.testing.assert_array_equal(spelled_out(encode_features(table, wide, bins=8)), expected)


def test_what_is_kept_is_not_the_callers():
    table = sparse.csc_array(np.eye(3))
    cells = encode_features(table, Schema.uniform(0, 1), bins=4)
    expected = spelled_out(cells)
    table.indices[:] = 0
    table.data[:] = 7
    np.testing.assert_array_equal(spelled_out(cells), expected)


def test_shape_and_rows_of_a_table():
    for make in FORMATS:
        table = make(np.arange(12).reshape(4, 3) % 5)
        assert (column_count(table), row_count(table)) == (3, 4)
        for places in (np.array([2, 0]), np.array([], dtype=np.int64)):
            found = rows_at(table, places)
            assert found.format == table.format
            np.testing.assert_array_equal(found.toarray(), table.toarray()[places])


@pytest.mark.parametrize("kind", ["coo", "lil", "dok", "dia", "bsr"])
def test_other_formats_are_refused_by_name(kind):
    table = sparse.csr_array(np.eye(3)).asformat(kind)
    for refused in (encode_features, lambda X, schema, bins: column_count(X, schema)):
        with pytest.raises(SchemaTypeError, match=f"Sparse data of format '{kind}'.*tocsr"):
            refused(table, Schema.uniform(0, 1), bins=4)


def test_refusals_are_of_types_and_shapes():
    uniform = Schema.uniform(0, 1)
    for table, words in (
        (sparse.csr_array(np.eye(3, dtype=complex)), "Complex data not supported"),
        (sparse.csr_array((3, 0)), "0 feature"),
        (sparse.csr_array(np.ones(3)), "got 1D array"),
    ):
        with pytest.raises(SchemaError, match=words):
            encode_features(table, uniform, bins=4)
    with pytest.raises(SchemaError, match="X has 3 columns, but the schema declares 5"):
        encode_features(sparse.csr_array((2, 3)), MIXED, bins=4)


def test_a_place_that_is_stored_twice_counts_once_whatever_the_table_says_of_its_order():
    stale = sparse.csc_array((np.array([0.2, 0.3, 0.4]), np.array([0, 1, 2]), np.array([0, 3])), shape=(5, 1))
    assert stale.has_canonical_format
    stale.indices[:] = [1, 1, 1]
    found = by_column(stale)
    assert found.rows.tolist() == [1]
    np.testing.assert_allclose(found.values, [0.9])
    np.testing.assert_array_equal(found.column(0), stale.toarray()[:, 0])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("index", [-1, 7])
def test_indices_out_of_bounds_are_refused_without_a_number(kind, index):
    table = kind((np.array([0.2, np.nan]), np.array([0, 1]), np.array([0, 1, 2, 2, 2, 2])), shape=(5, 5))
    table.indices[1] = index
    with pytest.raises(SchemaError, match="out of bounds$"):
        by_column(table)
    table.indices[1] = 1
    table.indptr[3] = 9
    with pytest.raises(SchemaError, match="out of bounds$"):
        by_column(table)
