"""Gains of all thresholds of fine grids from the sums of few bins: bounds of blocks, looked into where a choice asks.

A row is added to its bin of each feature once a level, and no gain is evaluated that cannot be chosen: what a choice
among bounds is distributed as is proven in docs/explanation/selection.md#bounded-choice, and the bounds are in
docs/explanation/gains.md#block-bounds. The bins follow the rows; they decide how long a choice takes, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels import coarse_gains as kernels
from ledgerwood.curator.kernels.growing_histograms import MAX_BINS, BinRows, NamedRoom, bins_by_row
from ledgerwood.curator.kernels.sparse_sums import SparseBinRows
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.curator.queries.splits.tests import CandidateParts, LevelPoints
from ledgerwood.ensemble import FeatureCells
from ledgerwood.mechanisms.choices.bounded import AbstractBoundedCandidates, Cells, Cover
from ledgerwood.sparse_cells import AnyCells, SparseCells

Division = tuple[np.uint64, np.uint64, int, int]
"""What a row counts, the damping, and the shifts of a gain to its grid, as `sorted_gains.share` takes them."""
_OWN_BINS = 128
"""So many cells that are tested by equality have bins of their own; those of a feature with more are counted apart."""
_BLOCKS = MAX_BINS - 1
"""Most blocks of a feature's ordered cells."""
_LOOKED_AT = 1 << 16
"""Rows by which the blocks are laid out."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockBins:
    """The bins of each feature: blocks of ordered cells, cells tested by equality, and all others.

    Args:
        features: int64 (f,), rising: those with bins.
        offsets: int64 (f + 1,), where the bins of each begin, and the end.
        bounds: int64 (f + 1,), where the edges of each begin, and the end.
        edges: int64: a feature's blocks end at them, from 0 to its last ordered cell, which is left of no threshold.
        equal_bins: int64 (n_equal,), the bin of each cell of `CandidateParts.equal`; -1 for those that have none.
        rows: the bins of each row.
    """

    features: Integers
    offsets: Integers
    bounds: Integers
    edges: Integers
    equal_bins: Integers
    rows: BinRows | SparseBinRows

    @classmethod
    def of(cls, cells: Sequence[FeatureCells], columns: AnyCells, room: NamedRoom) -> "BlockBins":
        """Blocks of about as many rows each, and of fewer towards both ends, where few rows are a large share."""
        features, edges, equal_bins, widths, lookups = [], [], [], [], []
        total = 0
        for feature, each in enumerate(cells):
            own = len(each.equality) if len(each.equality) <= _OWN_BINS else 0
            equal = np.full(len(each.equality), -1, dtype=np.int64)
            if each.ordered > 1 or own:
                cuts = _cuts(each.ordered, columns[feature], min(_BLOCKS, MAX_BINS - 1 - own))
                n_blocks = len(cuts) - 1
                reach = max(each.ordered, 1 + max(each.equality[:own], default=0)) + 1
                lookup = np.full(reach, n_blocks + own, dtype=np.uint8)
                lookup[: cuts[-1]] = np.repeat(np.arange(n_blocks), np.diff(cuts))
                lookup[list(each.equality[:own])] = n_blocks + np.arange(own)
                equal[:own] = total + n_blocks + np.arange(own)
                features.append(feature)
                edges.append(cuts)
                widths.append(n_blocks + own + 1)
                lookups.append(lookup)
                total += widths[-1]
            if each.equality:
                equal_bins.append(equal)
        reach = max((len(each) for each in lookups), default=1)
        # A cell beyond a feature's last one counts as that.
        table = np.array([np.pad(each, (0, reach - len(each)), mode="edge") for each in lookups], dtype=np.uint8)
        offsets, places = _ends(widths), np.array(features, dtype=np.int64)
        return cls(
            features=places,
            offsets=offsets,
            bounds=_ends([len(each) for each in edges]),
            edges=np.concatenate(edges) if edges else np.empty(0, dtype=np.int64),
            equal_bins=np.concatenate(equal_bins) if equal_bins else np.empty(0, dtype=np.int64),
            rows=bins_by_row(offsets, columns, places, table.reshape(len(places), reach), room),
        )


def _ends(widths: Sequence[int]) -> Integers:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.array(widths, dtype=np.int64))))


def _cuts(ordered: int, column: NDArray[Any], most: int) -> Integers:
    """The edges of at most `most` blocks of the cells 0 .. ordered - 2; (1,) where there are none."""
    last = max(ordered - 1, 0)
    if last <= most:
        return np.arange(last + 1, dtype=np.int64)
    seen = column[:: max(1, len(column) // _LOOKED_AT)]
    below = np.cumsum(np.bincount(np.minimum(seen, last), minlength=last + 1)[:last])
    # A block's bound is off by its rows squared over those of the side: sizes as the root of a side's rows.
    shares = np.sin(0.5 * np.pi * np.arange(1, most) / most) ** 2
    inner = np.searchsorted(below, shares * below[-1], side="right") if len(seen) else np.arange(1, most)
    return np.unique(np.concatenate((np.zeros(1, dtype=np.int64), inner, np.full(1, last)))).clip(0, last)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinnedRows:
    """The rows of a level by node, and what each adds. Within the curator alone.

    Args:
        cells: uint8 or uint16 (n_features, n_rows), in an array, or sparse.
        order, bounds: by node, as `LevelSums.rows` has them.
        counts, gradients: int32 (n_rows,).
    """

    cells: AnyCells
    order: NDArray[np.uint16]
    bounds: Integers
    counts: NDArray[np.int32]
    gradients: NDArray[np.int32]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoarseGains:
    """Bounds on the gains of a level's points, node after node, and the rows that tell more.

    Args:
        bins: of the table. parts, points: of the query.
        rows: of the level.
        sums: int64 (n_nodes, n_bins, 2).
        totals: int64 (n_nodes, 2), of each node.
        beside: int64 (n_nodes, n_parts, 2), of the cell that goes left besides a part's thresholds.
        division: see `Division`.
        offsets: int64 (n_nodes + 1,), where each node's stretches begin, and the end.
        ends: int64 (n,), the point after a stretch's last one on the node's `LevelPoints`; rising in a node.
        utilities: int64 (n,), no point's gain is above it. exact: bool (n,), it is their gain.
        of_part, of_block: int64 (n,), the part and the block that a stretch is.
        attained: int64 (n_nodes,), about the largest gain that is known.
    """

    bins: BlockBins
    parts: CandidateParts
    points: LevelPoints
    rows: BinnedRows
    sums: Integers
    totals: Integers
    beside: Integers
    division: Division
    offsets: Integers
    ends: Integers
    utilities: Integers
    exact: NDArray[np.bool_]
    of_part: Integers
    of_block: Integers
    attained: Integers

    @classmethod
    def of(
        cls,
        bins: BlockBins,
        parts: CandidateParts,
        points: LevelPoints,
        rows: BinnedRows,
        sums: Integers,
        division: Division,
        ratio: float,
    ) -> "CoarseGains":
        """The bounds, by the sums of a level's bins.

        Args:
            bins, parts, points, rows, sums, division: see the class.
            ratio: the most that a row adds to a sum, in steps of its gradient for each of its count's in 2**-20.
        """
        n_nodes = len(sums)
        # Each row is in one bin of the first feature.
        totals = np.ascontiguousarray(sums[:, : bins.offsets[1]].sum(axis=1))
        equal_sums = _equal_sums(bins, parts, rows, sums)
        thresholds = parts.ordered > 0
        places = np.where(thresholds, np.searchsorted(bins.features, parts.feature), -1)
        beside = np.zeros((n_nodes, len(parts), 2), dtype=np.int64)
        for part in np.flatnonzero(parts.besides >= 0).tolist():
            beside[:, part] = equal_sums[:, parts.equal_of(part)]
        counts = np.where(thresholds[:, np.newaxis], np.int64(0), points.stop - points.first)
        visits = int(counts.size * MAX_BINS)
        kernels.count_blocks(visits, len(parts), places, bins.bounds, bins.edges, points.first, points.stop, counts)
        stops = np.cumsum(counts.T.ravel())
        starts = np.ascontiguousarray((stops - counts.T.ravel()).reshape(counts.T.shape).T)
        n = int(stops[-1])
        ends, utilities = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        of_part, of_block = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        exact, attained = np.ones(n, dtype=np.bool_), np.zeros(counts.shape)
        kernels.bound_blocks(
            visits, len(parts), places, bins.bounds, bins.edges, bins.offsets, sums, totals, beside, parts.weight,
            points.first, points.stop, points.start, starts, division, ratio, ends, utilities, exact, of_part,
            of_block, attained,
        )  # fmt: skip
        gains = np.empty(equal_sums.shape[:2], dtype=np.int64)
        kernels.equality_gains(equal_sums, totals, division, gains)
        for part in np.flatnonzero(~thresholds).tolist():
            own = slice(int(parts.offsets[part]), int(parts.offsets[part + 1]))
            nodes, cells = np.nonzero(points.equal_open[:, own])
            # The tests of a node are numbered one after another, and those of the nodes, too.
            before = np.cumsum(points.equal_open[:, own], axis=1)[nodes, cells]
            at = starts[part, nodes] + before - 1
            ends[at] = points.start[part, nodes] + before * parts.weight[part]
            utilities[at], of_part[at] = gains[:, own][nodes, cells], part
        return cls(
            bins=bins, parts=parts, points=points, rows=rows, sums=sums, totals=totals, beside=beside,
            division=division, offsets=np.concatenate((starts[0], stops[-1:])), ends=ends, utilities=utilities,
            exact=exact, of_part=of_part, of_block=of_block,
            attained=attained.max(axis=0, initial=0.0).clip(0.0, 2.0**62).astype(np.int64),
        )  # fmt: skip

    def candidates(self, node: int) -> "NodeCandidates":
        """The points of one node, of which there are some."""
        return NodeCandidates(self, node)


def _equal_sums(bins: BlockBins, parts: CandidateParts, rows: BinnedRows, sums: Integers) -> Integers:
    """int64 (n_nodes, n_equal, 2): of each cell of `CandidateParts.equal`."""
    found = np.zeros((len(sums), len(parts.equal), 2), dtype=np.int64)
    binned = bins.equal_bins >= 0
    found[:, binned] = sums[:, bins.equal_bins[binned]]
    counted = [part for part in np.flatnonzero(np.diff(parts.offsets)).tolist() if not binned[parts.offsets[part]]]
    if counted:
        own = [np.arange(parts.offsets[part], parts.offsets[part + 1]) for part in counted]
        cells, features = rows.cells, parts.feature[counted]
        if isinstance(cells, SparseCells):
            cells, features = cells.columns(features), np.arange(len(counted))
        places = np.concatenate(own)
        apart = np.zeros((len(sums), len(places), 2), dtype=np.int64)
        kernels.equality_sums(
            len(rows.counts) * len(counted), len(counted), cells, rows.order, rows.bounds, rows.counts,
            rows.gradients, features, _ends([len(each) for each in own]), parts.equal[places], apart,
        )  # fmt: skip
        found[:, places] = apart
    return found


@final
class NodeCandidates(AbstractBoundedCandidates):
    """The points of one node of a level.

    Args:
        level: of all nodes.
        node: which of them.
    """

    __slots__ = ("_level", "_node")

    def __init__(self, level: CoarseGains, node: int) -> None:
        self._level = level
        self._node = node

    def cover(self) -> Cover:
        """See `AbstractBoundedCandidates.cover`."""
        level, own = self._level, self._own
        ends = level.ends[own]
        starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))
        return Cover(
            starts=starts,
            widths=ends - starts,
            utilities=level.utilities[own],
            exact=level.exact[own],
            families=level.of_part[own],
            attained=int(level.attained[self._node]),
        )

    @property
    def _own(self) -> slice:
        return slice(int(self._level.offsets[self._node]), int(self._level.offsets[self._node + 1]))

    def within(self, places: Integers) -> Cells:
        """See `AbstractBoundedCandidates.within`."""
        level, node, bins, points = self._level, self._node, self._level.bins, self._level.points
        parts, blocks = level.of_part[self._own][places], level.of_block[self._own][places]
        found = []
        for part in np.unique(parts).tolist():
            feature = int(level.parts.feature[part])
            place = int(np.searchsorted(bins.features, feature))
            edges = bins.edges[bins.bounds[place] : bins.bounds[place + 1]]
            wanted = blocks[parts == part]
            most = int((edges[wanted + 1] - edges[wanted]).sum())
            own = tuple(np.empty(most, dtype=np.int64) for _ in range(3))
            n = kernels.cells_of_blocks(
                level.rows.cells[feature], level.rows.order, level.rows.bounds, node, level.rows.counts,
                level.rows.gradients, edges, wanted, level.sums[node, bins.offsets[place] :], level.beside[node, part],
                level.totals[node], level.parts.weight[part], points.first[part, node], points.stop[part, node],
                points.start[part, node], level.division, *own,
            )  # fmt: skip
            found.append([each[:n] for each in own])
        starts, widths, utilities = (np.concatenate(each) for each in zip(*found, strict=True))
        return starts, widths, utilities
