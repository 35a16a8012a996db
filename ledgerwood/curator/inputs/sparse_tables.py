"""Sparse tables from outside, of scipy: read by what is stored, and never spelled out.

What is not stored is 0. Duplicate entries are added up in the order in which they are stored, in the table's own type,
as `toarray` does.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.sparse_cells import row_dtype

_FORMATS = ("csr", "csc")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SparseTable:
    """A sparse table by column. Made by `by_column`.

    Args:
        n_rows, width: its shape.
        starts: int64 (width + 1,), where each column's own begin in the two below, and the end.
        rows: whole numbers (n_stored,), rising within each column.
        values: (n_stored,), of the table's type.
    """

    n_rows: int
    width: int
    starts: NDArray[np.int64]
    rows: NDArray[Any]
    values: NDArray[Any]

    def stored(self, place: int) -> slice:
        """Where a column's own are."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def column(self, place: int) -> NDArray[Any]:
        """One column, spelled out; (n_rows,)."""
        found, own = np.zeros(self.n_rows, dtype=self.values.dtype), self.stored(place)
        found[self.rows[own]] = self.values[own]
        return found


def is_sparse(X: object) -> bool:
    """Returns whether it is a sparse matrix or array of scipy, of any format."""
    return bool(issparse(X))


def require_sparse(X: Any) -> tuple[int, int]:
    """The shape of a sparse table that can be read.

    Raises:
        SchemaError: not two-dimensional.
        SchemaTypeError: another format than CSR and CSC, or values that are not real numbers.
    """
    if X.ndim != 2:
        raise SchemaError(
            f"Expected 2D array, got {X.ndim}D array instead: a sparse table has the shape (n_rows, n_features)"
        )
    if X.format not in _FORMATS:
        raise SchemaTypeError(
            f"Sparse data of format {X.format!r} was passed for X: convert it, X.tocsr() (formats that are read: "
            f"{', '.join(_FORMATS)})"
        )
    if X.dtype.kind == "c":
        raise SchemaError("Complex data not supported: X must be real")
    return int(X.shape[0]), int(X.shape[1])


def require_dense(X: object) -> None:
    """Refuse a sparse table where columns are needed as they are.

    Raises:
        SchemaTypeError: it is one.
    """
    if is_sparse(X):
        raise SchemaTypeError(
            "Sparse data was passed for X, but dense data is required: trainers of trees take it with a declared "
            "schema, everything else needs X.toarray()"
        )


def by_column(X: Any) -> SparseTable:
    """The table by column; errors as of `require_sparse`. Nothing of X is changed.

    Raises:
        SchemaError: indices or starts that are out of their bounds.
    """
    n_rows, width = require_sparse(X)
    rising = _rising(X)
    found = X
    # What X says of its own order may be out of date: a place that is there twice would count twice.
    if X.format == "csr" or not rising:
        # To rows and back: columns come out with rising rows, and equal places in the order that they had.
        found = X.tocsr().tocsc(copy=True)
        found.sum_duplicates()
    # The rows are kept, and must be nobody else's.
    rows = found.indices.astype(row_dtype(n_rows), copy=found is X)
    return SparseTable(n_rows=n_rows, width=width, starts=found.indptr.astype(np.int64), rows=rows, values=found.data)


def _rising(X: Any) -> bool:
    """Returns whether the indices of a CSR or CSC table rise within each of its rows or columns.

    Raises:
        SchemaError: indices or starts that are out of their bounds: scipy makes such tables, and reads beyond them.
    """
    most, others = X.shape if X.format == "csr" else X.shape[::-1]
    starts, indices = X.indptr, X.indices
    whole = len(starts) == most + 1 and starts[0] == 0 and bool((starts[1:] >= starts[:-1]).all())
    whole = whole and starts[-1] <= min(len(indices), len(X.data))
    stored = indices[: starts[-1]] if whole else indices[:0]
    if not whole or (len(stored) and (stored.min() < 0 or stored.max() >= others)):
        raise SchemaError("X is not a valid sparse table: its indices or starts are out of bounds")
    rises = np.ones(len(stored) + 1, dtype=np.bool_)
    np.greater(stored[1:], stored[:-1], out=rises[1:-1])
    rises[starts[:-1]] = True  # the first of each
    return bool(rises.all())


def rows_of(X: Any, places: NDArray[np.int64]) -> Any:
    """The rows at these places, as a table of the same kind; errors as of `by_column`."""
    require_sparse(X)
    _rising(X)
    return X[places]
