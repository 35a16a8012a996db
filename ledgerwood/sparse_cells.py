"""Cells of a table most of which are alike: of each feature the usual cell, and the rows that have another one.

Who routes rows, or counts them, gets the same numbers as from the array of all cells, at a cost in proportion to what
is stored and to the features that a tree tests. docs/explanation/places.md#sparse-cells.
"""

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.routing import CHUNK_ROWS, parts_kernel

# mypy: disable-error-code="no-untyped-def"

BLOCK_CELLS = 1 << 24
"""Cells that are spelled out at once, about, where rows are routed."""


@final
class SparseCells:
    """The cells of a table, of shape (n_features, n_rows), without those that are a feature's usual one.

    Args:
        n_rows: the number of rows.
        starts: int64 (n_features + 1,), where in the two below each feature's own begin, and the end.
        rows: whole numbers (n_stored,), the rows that are stored, rising within each feature.
        cells: uint8 or uint16 (n_stored,), the cell of each of them.
        usual: of the type of `cells` (n_features,), the cell of all other rows of each feature.
    """

    __slots__ = ("cells", "n_rows", "rows", "starts", "usual")

    def __init__(
        self, n_rows: int, starts: NDArray[np.int64], rows: NDArray[Any], cells: NDArray[Any], usual: NDArray[Any]
    ) -> None:
        self.n_rows = n_rows
        self.starts, self.rows, self.cells = starts, rows, cells
        self.usual = usual.astype(cells.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_features, n_rows)."""
        return len(self.usual), self.n_rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of a cell."""
        return self.cells.dtype

    @property
    def nbytes(self) -> int:
        """The bytes that are kept."""
        return int(self.rows.nbytes + self.cells.nbytes + self.starts.nbytes + self.usual.nbytes)

    def __len__(self) -> int:
        """The number of features."""
        return len(self.usual)

    def __getitem__(self, feature: int) -> NDArray[Any]:
        """The cells of one feature, spelled out; (n_rows,)."""
        if not 0 <= feature < len(self):
            raise IndexError(feature)
        own: NDArray[Any] = self.columns(np.array([feature]))[0]
        return own

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The cells of each feature in turn."""
        return (self[feature] for feature in range(len(self)))

    def columns(self, features: NDArray[Any], first: int = 0, end: int | None = None) -> NDArray[Any]:
        """The cells of some features and of the rows from `first` to `end` - 1, spelled out; (f, end - first)."""
        stop = self.n_rows if end is None else end
        found = np.empty((len(features), stop - first), dtype=self.cells.dtype)
        _spell_out(found.size, len(features), features, self.starts, self.rows, self.cells, self.usual, first, found)
        return found

    def blocks(self, features: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Consecutive rows, and their cells of some features, spelled out; all rows in turn."""
        size = max(1, BLOCK_CELLS // (CHUNK_ROWS * max(1, len(features)))) * CHUNK_ROWS
        for begin in range(0, self.n_rows, size):
            end = min(self.n_rows, begin + size)
            yield slice(begin, end), self.columns(features, begin, end)

    def of_rows(self, first: int, end: int) -> "SparseCells":
        """The cells of the rows from `first` to `end` - 1."""
        inside = (self.rows >= first) & (self.rows < end)
        before = np.zeros(len(inside) + 1, dtype=np.int64)
        np.cumsum(inside, out=before[1:])
        return SparseCells(
            end - first, before[self.starts], self.rows[inside] - self.rows.dtype.type(first), self.cells[inside],
            self.usual,
        )  # fmt: skip

    def mapped(self, features: NDArray[np.int64], lookups: Sequence[NDArray[Any]]) -> "SparseCells":
        """Each cell's entry in its feature's lookup: of these features alone, in this order.

        Args:
            features: int64 (f,), which of them.
            lookups: for each, whole (n_cells,).
        """
        kept = [slice(int(self.starts[feature]), int(self.starts[feature + 1])) for feature in features]
        starts = np.cumsum([0, *(own.stop - own.start for own in kept)], dtype=np.int64)
        every = np.array_equal(features, np.arange(len(self)))
        rows = self.rows if every else np.concatenate([self.rows[own] for own in kept])
        cells = np.empty(len(rows), dtype=np.result_type(*lookups))
        for place, (own, lookup) in enumerate(zip(kept, lookups, strict=True)):
            np.take(lookup, self.cells[own], out=cells[starts[place] : starts[place + 1]])
        usual = [lookup[self.usual[feature]] for feature, lookup in zip(features, lookups, strict=True)]
        return SparseCells(self.n_rows, starts, rows, cells, np.array(usual))

    def stack_into(self, more: Sequence["SparseCells"], rows: NDArray[Any], cells: NDArray[Any]) -> "SparseCells":
        """These rows and the ones of `more` after them, kept in the two arrays that are given.

        Args:
            more: of the same features.
            rows, cells: with room for all that is stored.
        """
        every = [self, *more]
        starts: NDArray[np.int64] = np.stack([each.starts for each in every]).sum(axis=0)
        free, offset = starts[:-1].copy(), 0
        for each in every:
            _copy_features(len(each.rows), len(each), each.starts, each.rows, each.cells, offset, free, rows, cells)
            offset += each.n_rows
        return SparseCells(offset, starts, rows, cells, self.usual)


AnyCells = NDArray[Any] | SparseCells
"""Cells of shape (n_features, n_rows): all of them in an array, or those that are not usual."""


def row_dtype(n_rows: int) -> type[np.int32 | np.int64]:
    """The type of rows' places."""
    return np.int32 if n_rows < 2**31 else np.int64


def of_rows(cells: AnyCells, first: int, end: int) -> AnyCells:
    """The cells of the rows from `first` to `end` - 1; the caller's own."""
    if isinstance(cells, SparseCells):
        return cells.of_rows(first, end)
    return np.ascontiguousarray(cells[:, first:end])


def spelled_out(cells: AnyCells) -> NDArray[Any]:
    """All cells, (n_features, n_rows): a byte or two each. For evaluators that sort rows by every feature."""
    return cells.columns(np.arange(len(cells))) if isinstance(cells, SparseCells) else cells


@parts_kernel
def _spell_out(first, end, features, starts, rows, cells, usual, begin, columns):
    """Write the cells of some features, `columns` (f, n), for the rows from `begin` on.

    Args:
        first, end: places among the features.
        features: whole numbers (f,).
        starts, rows, cells, usual: see `SparseCells`.
    """
    for place in range(first, end):
        feature = features[place]
        own, stored, stop = columns[place], starts[feature + 1], begin + columns.shape[1]
        own[:] = usual[feature]
        low, high = starts[feature], stored
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < begin:
                low = middle + 1
            else:
                high = middle
        for at in range(low, stored):
            if rows[at] >= stop:
                break
            own[rows[at] - begin] = cells[at]


@parts_kernel
def _copy_features(first, end, starts, rows, cells, offset, free, into_rows, into_cells):
    """Copy what some features have stored to where `free`, int64 (n_features,), says, which moves on."""
    for feature in range(first, end):
        at = free[feature]
        for each in range(starts[feature], starts[feature + 1]):
            into_rows[at] = rows[each] + offset
            into_cells[at] = cells[each]
            at += 1
        free[feature] = at
