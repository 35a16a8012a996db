"""Exact histograms of a growing tree, level by level: each from the one above, of half the rows. For evaluators alone.

Integers: what a level's sums are does not depend on how they were found, and so neither does any release. Rows are
ordered by leaf in chunks, each by itself: the sums of two sets of rows are the sums of their chunks.
"""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels.sparse_sums import SparseBinRows
from ledgerwood.ensemble import Lowered, TreeStructure
from ledgerwood.sparse_cells import AnyCells, SparseCells

MAX_BINS = 256
"""Of a feature: what fits a byte."""
ALL_ROWS = np.empty(0, dtype=np.int64)
MAX_PARTIAL = 1 << 20
PARTS = 16
"""Into which the rows of a level are divided, for threads; of many leaves, each leaf's into as many fewer."""


NamedRoom = Callable[[str, int], NDArray[np.float64]]
"""Makes float64 (n,) for what has this name; what that held before is lost."""


def fresh(_: str, n: int) -> NDArray[np.float64]:
    """New room, in memory."""
    return np.zeros(n)


@final
class BinRows:
    """Each row's bins side by side, 64 at most: one row is read at once, wherever it lies.

    Args:
        offsets: int64 (f + 1,), where each feature's bins begin, and the end; at most `MAX_BINS` of each.
        cells: uint8 or uint16 (n_features, n_rows).
        features: int64 (f,), which of them.
        bins: whole (f, n), the bin of each cell, from 0; a cell that is not there has the last one's.
        room: for the bins.
        chosen: int64, the rows that are asked for; empty: all.
    """

    __slots__ = ("complete", "offsets", "words")

    def __init__(
        self,
        offsets: NDArray[np.int64],
        cells: NDArray[Any],
        features: NDArray[np.int64],
        bins: NDArray[Any],
        room: NamedRoom = fresh,
        *,
        chosen: NDArray[np.int64] = ALL_ROWS,
    ) -> None:
        self.offsets, self.complete = offsets, not len(chosen)
        n_rows, line = cells.shape[1], kernels.LINE
        lines = max(1, -(-len(features) // (8 * line)))
        # A row within one line of memory, or one line after another.
        width = line if lines > 1 else 1 << (max(1, -(-len(features) // 8)) - 1).bit_length()
        words = room("bins", lines * n_rows * width + line).view(np.uint64)
        begin = -(words.ctypes.data // 8) % line
        self.words: NDArray[np.uint64] = words[begin : begin + lines * n_rows * width].reshape(lines, n_rows, width)
        own = bins.astype(np.uint8)
        if self.complete:
            kernels.rows_first(n_rows, cells, features, own, self.words)
        else:
            kernels.some_rows_first(len(chosen), cells, features, own, chosen, self.words.view(np.uint8))

    def sums(
        self,
        leaves: NDArray[np.int64],
        blocks: int,
        order: NDArray[np.uint16],
        bounds: NDArray[np.int64],
        packed: NDArray[np.int64],
        shift: int,
        at_once: int,
    ) -> NDArray[np.int64]:
        """The sums of the rows of some leaves by bin, int64 (len(leaves), n_bins, 2).

        Args:
            leaves: int64 (n,), which ones.
            blocks: into which the chunks of rows are divided, for threads.
            order, bounds: of the rows by leaf, from `kernels.parted_rows`.
            packed, shift, at_once: contributions, as `kernels.packed_sums` takes them.
        """
        partial = np.zeros((blocks, len(leaves), int(self.offsets[-1]), 2), dtype=np.int64)
        groups = min(len(leaves), -(-PARTS // blocks))
        parts = groups * blocks * len(self.words)
        kernels.packed_sums(
            len(packed), parts, self.words, self.offsets.astype(np.uint64), leaves, order, bounds, packed, shift,
            at_once, partial, groups, np.empty(parts * kernels.LINE, dtype=np.uint64),
        )  # fmt: skip
        found: NDArray[np.int64] = partial.sum(axis=0, dtype=np.int64) if blocks > 1 else partial[0]
        return found


def bins_by_row(
    offsets: NDArray[np.int64],
    cells: AnyCells,
    features: NDArray[np.int64],
    bins: NDArray[Any],
    room: NamedRoom = fresh,
    *,
    chosen: NDArray[np.int64] = ALL_ROWS,
) -> BinRows | SparseBinRows:
    """The rows' bins side by side; arguments as of `BinRows`. Of sparse cells always those of all rows."""
    if isinstance(cells, SparseCells):
        return SparseBinRows(offsets, cells, features, bins)
    return BinRows(offsets, cells, features, bins, room, chosen=chosen)


@final
class LevelSums:
    """The sums of one tree's levels, for contributions and bins that do not change.

    Args:
        rows: the bins.
        firsts, seconds: int32 (n_rows,), what each row contributes; no first is negative.
        largest: that no first and no second is above, in size.
        room: for contributions, order and sums.
    """

    __slots__ = ("_at_once", "_bounds", "_order", "_packed", "_room", "_rows", "_shift", "_structure", "_sums")

    def __init__(
        self,
        rows: BinRows | SparseBinRows,
        firsts: NDArray[np.int32],
        seconds: NDArray[np.int32],
        largest: tuple[int, int],
        room: NamedRoom = fresh,
    ) -> None:
        self._rows = rows
        self._room = room
        first, second = (each.bit_length() for each in largest)
        # 2**bits rows at once: their seconds are below 2**(shift - 1) in size, their firsts below 2**(63 - shift).
        bits = (62 - first - second) // 2
        self._shift, self._at_once = bits + second + 1, 1 << bits
        n_rows = len(firsts)
        self._packed: NDArray[np.int64] = room("contributions", n_rows).view(np.int64)
        self._order: NDArray[np.uint16] = room("order", -(-n_rows // 4)).view(np.uint16)[:n_rows]
        kernels.packed_rows(len(firsts), firsts, seconds, self._shift, self._packed)
        self._bounds = np.empty((0, 2), dtype=np.int64)
        # None: order, bounds and sums are no tree's, as after an interrupt.
        self._structure: TreeStructure | None = None
        self._sums: NDArray[np.int64] = np.empty((0, 0, 2), dtype=np.int64)

    def of(self, structure: TreeStructure, cells: AnyCells) -> NDArray[np.int64]:
        """The sums of each leaf and bin, int64 (n_leaves, n_bins, 2); the caller's own.

        Args:
            structure: that tests features of the cells.
            cells: (n_features, n_rows), always the same.
        """
        above, self._structure = self._structure, None
        columns, tests = structure.over(cells)
        if above is not None and above.depth + 1 == structure.depth and _continues(structure, above):
            self._deepen(_level(tests, above.depth), columns)
        else:
            self._begin([_level(tests, level) for level in range(structure.depth)], columns)
        self._structure = structure
        return self._sums.copy()

    @property
    def rows(self) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
        """The rows that contribute, by leaf of the last structure; see `histograms.parted_rows`. The caller's own."""
        return self._order.copy(), self._bounds.copy()

    def _begin(self, levels: list[Lowered], cells: NDArray[Any]) -> None:
        """Of all rows that contribute."""
        self._bounds = np.empty((max(1, -(-len(self._packed) // kernels.CHUNK)), 2), dtype=np.int64)
        kernels.rows_in_order(len(self._packed), len(self._bounds), self._packed, self._order, self._bounds)
        for level in levels:
            self._part(level, cells)
        self._keep(self._counted(np.arange(2 ** len(levels))))

    def _deepen(self, level: Lowered, cells: NDArray[Any]) -> None:
        """Of the smaller child of each node; its sibling has the rest."""
        self._part(level, cells)
        counts = np.diff(self._bounds, axis=1).sum(axis=0).reshape(-1, 2)
        nodes, right = np.arange(len(counts)), (counts[:, 1] < counts[:, 0]).astype(np.int64)
        smaller = self._counted(2 * nodes + right)
        sums = np.empty((len(counts), 2, *smaller.shape[1:]), dtype=np.int64)
        sums[nodes, right] = smaller
        # Modulo 2**64, as all sums.
        sums[nodes, 1 - right] = self._sums - smaller
        self._keep(sums.reshape(2 * len(counts), *smaller.shape[1:]))

    def _keep(self, sums: NDArray[np.int64]) -> None:
        """Remember the sums of a level for the next one; those of many features take as much room as rows do."""
        kept: NDArray[np.int64] = self._room("sums", sums.size).view(np.int64)
        kept[:] = sums.ravel()
        self._sums = kept.reshape(sums.shape)

    def _part(self, tests: Lowered, cells: NDArray[Any]) -> None:
        """Order the rows by the leaves of one level more."""
        chunks, leaves = self._bounds.shape
        bounds = np.empty((chunks, 2 * leaves - 1), dtype=np.int64)
        kernels.parted_rows(len(self._order), chunks, cells, *tests, self._order, self._bounds, bounds)
        self._bounds = bounds

    def _counted(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of the rows of some leaves; (len(leaves), n_bins, 2)."""
        size = len(leaves) * int(self._rows.offsets[-1])
        blocks = max(1, min(len(self._bounds), max(PARTS // len(leaves), PARTS // 4), MAX_PARTIAL // size))
        return self._rows.sums(leaves, blocks, self._order, self._bounds, self._packed, self._shift, self._at_once)


def _level(tests: Lowered, level: int) -> Lowered:
    """The tests of one level of inner nodes."""
    feature, below, besides, sets = tests
    nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
    return feature[nodes], below[nodes], besides[nodes], sets


def _continues(structure: TreeStructure, above: TreeStructure) -> bool:
    """Returns whether a structure is another one with levels more: the upper tests send each cell to the same side."""
    n = len(above.feature)
    feature, below, besides, sets = structure.lowered()
    other_feature, other_below, other_besides, other_sets = above.lowered()
    lines, width = other_sets.shape
    return (
        np.array_equal(feature[:n], other_feature)
        and np.array_equal(below[:n], other_below)
        and np.array_equal(besides[:n], other_besides)
        and np.array_equal(sets[:lines, :width], other_sets)
        and not sets[:lines, width:].any()
    )
