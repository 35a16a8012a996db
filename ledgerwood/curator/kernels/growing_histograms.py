"""Exact histograms of a growing tree, level by level: each from the one above, of half the rows. For evaluators alone.

Integers: what a level's sums are does not depend on how they were found, and so neither does any release.
"""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.ensemble import Lowered, TreeStructure

FIRST_BITS = 21
"""A first column is at most 2**20 steps a row."""
MAX_BINS = 256
"""Of a feature: what fits a byte."""
MAX_PARTIAL = 1 << 20


@final
class BinRows:
    """Each row's bins side by side: one row is read at once, wherever it lies.

    Args:
        offsets: int64 (f + 1,), where each feature's bins begin, and the end; at most `MAX_BINS` of each.
        binned: uint8 or uint16 (f, n_rows).
    """

    __slots__ = ("by_row", "offsets")

    def __init__(self, offsets: NDArray[np.int64], binned: NDArray[Any]) -> None:
        self.offsets = offsets
        self.by_row = np.empty((binned.shape[1], len(binned)), dtype=np.uint8)
        histogram_kernels.rows_first(len(self.by_row), binned, offsets, self.by_row)


@final
class LevelSums:
    """The sums of one tree's levels, for contributions and bins that do not change.

    Args:
        rows: the bins.
        firsts, seconds: int32 (n_rows,), what each row contributes; 0 <= firsts <= 2**20.
        largest: that no second is above, in size.
    """

    __slots__ = ("_at_once", "_bounds", "_order", "_packed", "_rows", "_shift", "_structure", "_sums")

    def __init__(self, rows: BinRows, firsts: NDArray[np.int32], seconds: NDArray[np.int32], largest: int) -> None:
        self._rows = rows
        width = largest.bit_length()
        # 2**bits rows at once: their seconds are below 2**(shift - 1) in size, their firsts at most 2**(62 - shift).
        bits = (62 - FIRST_BITS - width) // 2
        self._shift, self._at_once = bits + width + 1, 1 << bits
        self._packed = (firsts.astype(np.int64) << self._shift) + seconds
        self._order = np.empty(0, dtype=np.uint32)
        self._bounds = np.empty(0, dtype=np.int64)
        # None: order, bounds and sums are no tree's, as after an interrupt.
        self._structure: TreeStructure | None = None
        self._sums = np.empty((0, 0, 2), dtype=np.int64)

    def of(self, structure: TreeStructure, cells: NDArray[Any]) -> NDArray[np.int64]:
        """The sums of each leaf and bin, int64 (n_leaves, n_bins, 2); the caller's own.

        Args:
            structure: that tests features of the cells.
            cells: (n_features, n_rows), always the same.
        """
        above, self._structure = self._structure, None
        if above is not None and above.depth + 1 == structure.depth and _continues(structure, above):
            self._deepen(structure, cells)
        else:
            self._begin(structure, cells)
        self._structure = structure
        return self._sums.copy()

    def _begin(self, structure: TreeStructure, cells: NDArray[Any]) -> None:
        """Of all rows that contribute."""
        rows = np.flatnonzero(self._packed)
        if structure.depth:
            leaves = structure.route(cells)[rows]
            rows = rows[np.argsort(leaves, kind="stable")]
            counts = np.bincount(leaves, minlength=structure.n_leaves)
        else:
            counts = np.array([len(rows)])
        self._order = rows.astype(np.uint32)
        self._bounds = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        self._sums = self._counted(self._bounds[:-1], self._bounds[1:])

    def _deepen(self, structure: TreeStructure, cells: NDArray[Any]) -> None:
        """Of the smaller child of each node; its sibling has the rest."""
        tests = _last_level(structure)
        order = np.empty_like(self._order)
        n_nodes = len(self._bounds) - 1
        middles = np.empty(n_nodes, dtype=np.int64)
        histogram_kernels.parted_rows(len(order), cells, *tests, self._order, self._bounds, order, middles)
        starts, stops = self._bounds[:-1], self._bounds[1:]
        right = stops - middles < middles - starts
        self._order = order
        smaller = self._counted(np.where(right, middles, starts), np.where(right, stops, middles))
        sums = np.empty((n_nodes, 2, *smaller.shape[1:]), dtype=np.int64)
        nodes = np.arange(n_nodes)
        sums[nodes, right.astype(np.int64)] = smaller
        # Modulo 2**64, as all sums.
        sums[nodes, 1 - right] = self._sums - smaller
        self._sums = sums.reshape(2 * n_nodes, *smaller.shape[1:])
        self._bounds = np.append(np.stack((starts, middles), axis=1).ravel(), stops[-1])

    def _counted(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of the rows from each start to its stop; (len(starts), n_bins, 2)."""
        offsets = self._rows.offsets
        n_rows = int((stops - starts).sum())
        size = len(starts) * int(offsets[-1])
        n_blocks = max(1, min(8, MAX_PARTIAL // size, n_rows // self._at_once))
        partial = np.zeros((n_blocks, len(starts), int(offsets[-1]), 2), dtype=np.int64)
        histogram_kernels.packed_sums(
            n_rows, self._rows.by_row, offsets.astype(np.uint64), self._order, starts, stops, self._packed,
            self._shift, self._at_once, partial,
        )  # fmt: skip
        sums: NDArray[np.int64] = partial.sum(axis=0, dtype=np.int64) if n_blocks > 1 else partial[0]
        return sums


def _last_level(structure: TreeStructure) -> Lowered:
    """The tests of the lowest inner nodes."""
    feature, below, besides, sets = structure.lowered()
    first = len(feature) // 2
    return feature[first:], below[first:], besides[first:], sets


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
