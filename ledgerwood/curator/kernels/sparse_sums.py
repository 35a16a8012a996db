"""Sums over rows whose cells are sparse: what is stored is added up, and the usual cell has what is left of the total.

Sums of integers modulo 2**64, so that they are those of all cells spelled out: docs/explanation/places.md#sparse-cells.
"""
# mypy: disable-error-code="no-untyped-def"

from typing import Any, final

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels.histograms import CHUNK, take_apart
from ledgerwood.ensemble import Lowered
from ledgerwood.routing import parts_kernel
from ledgerwood.sparse_cells import SparseCells


@final
class SparseBinRows:
    """Each row's bins that are not usual, side by side; see `growing_histograms.BinRows`.

    Args:
        offsets, features: as there.
        cells: of the table.
        bins: whole (f, n), the bin of each cell, from 0; a cell that is not there has the last one's.
    """

    __slots__ = ("_bins", "_starts", "_usual", "complete", "offsets")

    def __init__(
        self, offsets: NDArray[np.int64], cells: SparseCells, features: NDArray[np.int64], bins: NDArray[Any]
    ) -> None:
        self.offsets, self.complete = offsets, True
        found = bins.astype(np.int32)
        last = found.shape[1] - 1
        usual = found[np.arange(len(features)), np.minimum(cells.usual[features].astype(np.int64), last)]
        self._usual = offsets[:-1] + usual
        counts = np.zeros(cells.n_rows + 1, dtype=np.int64)
        _count_bins(cells.starts, cells.rows, cells.cells, features, found, usual, counts)
        self._starts = np.cumsum(counts)
        self._bins = np.empty(int(self._starts[-1]), dtype=np.int32)
        free = self._starts[:-1].copy()
        _list_bins(cells.starts, cells.rows, cells.cells, features, found, usual, offsets, free, self._bins)

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
        """See `growing_histograms.BinRows.sums`."""
        partial = np.zeros((blocks, len(leaves), int(self.offsets[-1]) + 1, 2), dtype=np.int64)
        packed_sums(
            len(packed), len(leaves) * blocks, self._starts, self._bins, leaves, order, bounds, packed, shift, at_once,
            partial,
        )  # fmt: skip
        every = partial.sum(axis=0, dtype=np.int64)
        sums, total = np.ascontiguousarray(every[:, :-1]), every[:, -1:]
        # A feature has a usual bin, and so one bin at least.
        sums[:, self._usual] += total - np.add.reduceat(sums, self.offsets[:-1], axis=1)
        return sums


@numba.njit(cache=True, nogil=True)
def _count_bins(starts, rows, cells, features, bins, usual, counts):
    last = bins.shape[1] - 1
    for place in range(len(features)):
        for at in range(starts[features[place]], starts[features[place] + 1]):
            if bins[place, min(np.int64(cells[at]), last)] != usual[place]:
                counts[rows[at] + 1] += 1


@numba.njit(cache=True, nogil=True)
def _list_bins(starts, rows, cells, features, bins, usual, offsets, free, listed):
    last = bins.shape[1] - 1
    for place in range(len(features)):
        for at in range(starts[features[place]], starts[features[place] + 1]):
            own = bins[place, min(np.int64(cells[at]), last)]
            if own != usual[place]:
                listed[free[rows[at]]] = offsets[place] + own
                free[rows[at]] += 1


@parts_kernel
def packed_sums(first, end, starts, bins, leaves, order, bounds, packed, shift, at_once, partial):
    """Add up the packed contributions of some leaves' rows, by each bin that is listed; see `histograms.packed_sums`.

    Args:
        first, end: which parts of the work: a leaf's rows in a block of the chunks.
        starts: int64 (n_rows + 1,), where each row's bins begin.
        bins: int32 (n,), of all features together.
        leaves, order, bounds, packed, shift, at_once: as there.
        partial: int64 (n_blocks, n_leaves, n_bins + 1, 2), zeros: sums of each block; the last one is of all rows.
    """
    n_blocks, n_chunks, n_bins = partial.shape[0], bounds.shape[0], partial.shape[2] - 1
    for part in range(first, end):
        block, place = part % n_blocks, part // n_blocks
        sums, leaf, held = np.zeros(n_bins + 1, dtype=np.int64), leaves[place], 0
        for chunk in range(n_chunks * block // n_blocks, n_chunks * (block + 1) // n_blocks):
            base = np.int64(chunk) * CHUNK
            for i in range(bounds[chunk, leaf], bounds[chunk, leaf + 1]):
                if held == at_once:
                    take_apart(sums, shift, partial[block, place])
                    held = 0
                row = base + np.int64(order[i])
                value = packed[row]
                for at in range(starts[row], starts[row + 1]):
                    sums[bins[at]] += value
                sums[n_bins] += value
                held += 1
        take_apart(sums, shift, partial[block, place])


def sums_by_bin(
    cells: SparseCells,
    features: NDArray[np.int64],
    offsets: NDArray[np.int64],
    nodes: NDArray[np.int32],
    n_nodes: int,
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
) -> NDArray[np.int64]:
    """The sums of (first, second) of the rows of each node and cell, int64 (n_nodes, n_cells, 2).

    Args:
        cells: of the table.
        features: int64 (f,), which of them.
        offsets: int64 (f + 1,), where each one's cells begin; a cell beyond its last one counts as the last one.
        nodes: int32 (n_rows,), -1 for a row that takes no part.
        n_nodes: how many there are.
        firsts, seconds: int32 (n_rows,).
    """
    sums = np.zeros((n_nodes, int(offsets[-1]), 2), dtype=np.int64)
    totals = np.zeros((n_nodes, 2), dtype=np.int64)
    _add_nodes(nodes, firsts, seconds, totals)
    _add_cells(
        len(cells.rows), len(features), cells.starts, cells.rows, cells.cells, cells.usual, features, offsets, nodes,
        firsts, seconds, totals, sums,
    )  # fmt: skip
    return sums


@numba.njit(cache=True, nogil=True)
def _add_nodes(nodes, firsts, seconds, totals):
    for row in range(len(nodes)):
        if nodes[row] >= 0:
            totals[nodes[row], 0] += firsts[row]
            totals[nodes[row], 1] += seconds[row]


@parts_kernel
def _add_cells(first, end, starts, rows, cells, usual, features, offsets, nodes, firsts, seconds, totals, sums):
    n_nodes = len(totals)
    for place in range(first, end):
        feature, width = features[place], offsets[place + 1] - offsets[place]
        own = np.zeros((n_nodes, width, 2), dtype=np.int64)
        left = totals.copy()
        for at in range(starts[feature], starts[feature + 1]):
            row = rows[at]
            node = nodes[row]
            if node >= 0:
                cell = min(np.int64(cells[at]), width - 1)
                own[node, cell, 0] += firsts[row]
                own[node, cell, 1] += seconds[row]
                left[node, 0] -= firsts[row]
                left[node, 1] -= seconds[row]
        rest = min(np.int64(usual[feature]), width - 1)
        for node in range(n_nodes):
            own[node, rest] += left[node]
            for cell in range(width):
                sums[node, offsets[place] + cell] = own[node, cell]


def side_sums(
    cells: SparseCells,
    tests: Lowered,
    nodes: NDArray[np.int32],
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
    sums: NDArray[np.int64],
) -> None:
    """Add up the contributions of the rows that go left, by each test of their leaf; see `histograms.side_sums`."""
    totals = np.zeros((len(sums), 2), dtype=np.int64)
    _add_nodes(nodes, firsts, seconds, totals)
    _add_sides(
        len(cells.rows) * len(sums), sums.shape[1], cells.starts, cells.rows, cells.cells, cells.usual, *tests, nodes,
        firsts, seconds, totals, sums,
    )  # fmt: skip


@parts_kernel
def _add_sides(
    first, end, starts, rows, cells, usual, feature, below, besides, sets, nodes, firsts, seconds, totals, sums
):
    n_leaves, n_places = sums.shape[0], sums.shape[1]
    for place in range(first, end):
        for node in range(n_leaves):
            test = node * n_places + place
            tested, edge, beside = feature[test], below[test], besides[test]
            rest = _goes_left(usual[tested], edge, beside, sets)
            first_sum, second_sum = np.int64(0), np.int64(0)
            for at in range(starts[tested], starts[tested + 1]):
                row = rows[at]
                if nodes[row] == node and _goes_left(cells[at], edge, beside, sets) != rest:
                    first_sum += firsts[row]
                    second_sum += seconds[row]
            # Of the rows that are not like the usual ones; those are all others.
            sums[node, place, 0] = totals[node, 0] - first_sum if rest else first_sum
            sums[node, place, 1] = totals[node, 1] - second_sum if rest else second_sum


@numba.njit(inline="always")
def _goes_left(cell, edge, beside, sets):
    """As in `routing.leaf_of`."""
    own = np.int64(cell)
    if beside < -1:
        return own < sets.shape[1] and sets[-2 - beside, own]
    return own < edge or own == beside
