"""Private splits by their gains among all thresholds of fine public grids, at a cost per row and not per threshold.

The candidates are those of `SplitTests.every`; the choice is by the exponential mechanism over all of them, proven in
docs/explanation/gains.md#gridless-gains.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.curator.grid import GRID_EXPONENT, STEP
from ledgerwood.curator.kernels import sorted_gains as kernels
from ledgerwood.curator.kernels.growing_histograms import LevelSums
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.splits.coarse_gains import BinnedRows, BlockBins, CoarseGains, Division
from ledgerwood.curator.queries.splits.gains import LevelGains, check_level, level_contributions, row_steps
from ledgerwood.curator.queries.splits.tests import (
    CandidateParts,
    LevelPoints,
    count_parts,
    count_tests,
    weights_of_tests,
)
from ledgerwood.curator.views.tree_rows import Mask, TreeRows, TreeShape
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import GridlessMechanism, NumericCandidates, RandomSource
from ledgerwood.sparse_cells import spelled_out

_CELLS = 1 << 16
"""A cell is a uint16."""
_MOST_BINS = 1 << 22
"""Most nodes times bins of a level whose sums are kept: 64 MiB."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedGains:
    """Points of one gain, node after node; what the groups are depends on the rows, what they cover does not.

    Args:
        offsets: int64 (n_nodes + 1,), where each node's groups begin, and the end.
        ends: int64 (n_groups,), the point after a group's last one on the node's `LevelPoints`; rising in a node.
        gains: int64 (n_groups,), in steps of the query's grid.
    """

    offsets: Integers
    ends: Integers
    gains: Integers

    def candidates(self, node: int) -> NumericCandidates:
        """The points of one node, of which there are some."""
        ends = self.ends[self.offsets[node] : self.offsets[node + 1]]
        return NumericCandidates(
            positions=ends[:-1], points=int(ends[-1]), utilities=self.gains[self.offsets[node] : self.offsets[node + 1]]
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridlessGains(LevelGains):
    """Chooses among all tests of the grid for every node of a tree's last level, by gain; releases a `SplitTests`.

    The candidates are those of `SplitTests.every(cells)` that the path to a node has not decided, as in `SplitGains`.
    Each has a public weight, by default such that features weigh about the same: see `weights_of_tests`.

    Args:
        structure, ensemble, loss, clip, damping, large_gradients, positive: as in `LevelGains`.
        cells: the cells of each feature of the table, as `Schema.cells` gives them; public.
        numeric_weight: what a feature with thresholds weighs, where a test of another feature weighs 1, in
            [2**-20, 2**20]; None: all features weigh about the same.

    Raises:
        InvalidParameter: a value outside its bound; no test at all; a cell tested by equality that is not distinct, in
            [ordered, 2**16); a level of more than 2**24 nodes times parts and tests of equality, or of 2**40 points.
    """

    cells: tuple[FeatureCells, ...]
    numeric_weight: float | None = None

    def __post_init__(self) -> None:
        LevelGains.__post_init__(self)  # a class with slots is made twice: super() would not know it
        object.__setattr__(self, "cells", tuple(_owned(each) for each in self.cells))
        # Before any array is made of them: so many may be asked for that none fits.
        tests = [count_tests(each) for each in self.cells]
        if not any(tests):
            raise _validate.fail("tests", 0, ">= 1", "tests")
        self._require_size(sum(count_parts(each) for each in self.cells))
        if self.numeric_weight is not None:
            weight = _validate.real("numeric_weight", self.numeric_weight, "tests of equality")
            if not 2.0**-20 <= weight <= 2.0**20:
                raise _validate.fail("numeric_weight", weight, "in [2**-20, 2**20]", "tests of equality")
        weights_of_tests(self.cells, self.numeric_weight)

    @property
    def parts(self) -> CandidateParts:
        """The candidates of a node whose path has decided none."""
        return CandidateParts.of(self.cells, self.numeric_weight)

    @property
    def points(self) -> LevelPoints:
        """The candidates of each node."""
        return LevelPoints.of(self.parts, self.structure)

    def event(self, mechanism: GridlessMechanism, adjacency: Adjacency) -> BoundedRangeEvent:
        """That of one node, for all nodes of the level: docs/explanation/gains.md#gain-levels."""
        self._require_mechanism(mechanism, (GridlessMechanism,))
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def sees_as(self, other: "GridlessGains") -> bool:
        """Returns whether each row contributes the same to both, for any leaves."""
        return (
            self.ensemble is other.ensemble
            and self.positive == other.positive
            and self.loss == other.loss
            and self.clip == other.clip
            and self.large_gradients == other.large_gradients
        )

    def select(
        self, mechanism: GridlessMechanism, evidence: CoarseGains | GroupedGains, source: RandomSource
    ) -> SplitTests:
        """One test a node, shape (n_nodes,), from the gains of the groups."""
        parts, points = self.parts, self.points
        chosen = [_EVERY_ROW_RIGHT] * self.structure.n_leaves
        for node, total in enumerate(points.totals.tolist()):
            if total:
                point = mechanism.select((evidence.candidates(node),), self.grid, source).point
                chosen[node] = points.test(parts, node, point)
        return SplitTests(
            feature=np.array([test[0] for test in chosen], dtype=np.int32),
            split=np.array([test[1] for test in chosen], dtype=np.uint16),
            equals=np.array([test[2] for test in chosen], dtype=np.bool_),
            besides=np.array([test[3] for test in chosen], dtype=np.int32),
        )


_EVERY_ROW_RIGHT = (0, 0, False, -1)


def _owned(cells: object) -> FeatureCells:
    own = FeatureCells.owned(cells)
    ordered, equality = own.ordered, own.equality
    if ordered > _CELLS:
        raise _validate.fail("ordered", ordered, f"at most {_CELLS}", "cells")
    if len(set(equality)) != len(equality) or any(not ordered <= cell < _CELLS for cell in equality):
        raise _validate.fail("equality", equality, f"distinct, in [ordered={ordered}, {_CELLS})", "cells")
    return own


def _check(query: GridlessGains, shape: TreeShape) -> None:
    check_level(query, shape)
    if len(query.cells) != shape.n_features:
        raise RoundViolation(f"candidates of {len(query.cells)} features: the table has {shape.n_features}")


@final
class _Blocks:
    """What is kept beside the rows: their bins, and the sums of the last level."""

    __slots__ = ("bins", "cells", "last")

    def __init__(self) -> None:
        self.cells: tuple[FeatureCells, ...] | None = None
        self.bins: BlockBins | None = None
        self.last: tuple[GridlessGains, Mask, BinnedSums] | None = None


BinnedSums = tuple[LevelSums, NDArray[np.int32], NDArray[np.int32]]
"""The sums of a tree's levels, and what each row adds to them."""


@TREE_CHOICES.carries_out(GridlessGains, check=_check, over_parts="one part")
def _gains(query: GridlessGains, rows: TreeRows) -> CoarseGains | GroupedGains:
    """Bounds on the gains of all points, and what tells more; all gains where there are more bins than a level has."""
    kept = rows.memory(_Blocks)
    if kept.bins is None or kept.cells != query.cells:
        # First: the room is filled anew, and an interrupt must not leave other cells' bins in it.
        kept.last = kept.cells = kept.bins = None
        kept.cells, kept.bins = query.cells, BlockBins.of(query.cells, rows.cells, rows.named_room("grid-less gains"))
    bins = kept.bins
    if not len(bins.features) or query.structure.n_leaves * int(bins.offsets[-1]) > _MOST_BINS:
        return grouped_gains(query, rows)
    levels, counts, gradients = _level_sums(query, kept, bins, rows)
    sums = levels.of(query.structure, rows.cells)
    order, bounds = levels.rows
    weighted = len(rows.weights) > 0
    return CoarseGains.of(
        bins, query.parts, query.points,
        BinnedRows(cells=rows.cells, order=order, bounds=bounds, counts=counts, gradients=gradients),
        sums, _division(query, weighted=weighted), query.clip_steps * STEP,
    )  # fmt: skip


def _level_sums(query: GridlessGains, kept: _Blocks, bins: BlockBins, rows: TreeRows) -> BinnedSums:
    """What gives the sums of the rows' (1, gradient), or (weight, weighted gradient)."""
    before = kept.last
    if before is not None and query.sees_as(before[0]) and np.array_equal(rows.sampled, before[1]):
        return before[2]
    kept.last = None  # two trees' at once are not needed
    counts, gradients, largest = row_steps(query, rows)
    levels = LevelSums(bins.rows, counts, gradients, largest, rows.named_room("grid-less gains"))
    found = levels, counts, gradients
    kept.last = query, rows.sampled.copy(), found
    return found


def _division(query: GridlessGains, *, weighted: bool) -> Division:
    shift = GRID_EXPONENT - query.grid.exponents[0]
    # An argument: numba's file cache would not see that a constant of another file changed.
    row = np.uint64(1 if weighted else 2**-GRID_EXPONENT)
    return row, np.uint64(query.damping_steps), max(shift, 0), max(-shift, 0)


def grouped_gains(query: GridlessGains, rows: TreeRows) -> GroupedGains:
    """The exact gains of all points, a group where the rows of a node do not tell points apart."""
    chosen, nodes, gradients, weights = level_contributions(query, rows)
    cells = spelled_out(rows.cells)  # rows are sorted by every feature
    parts, level = query.parts, query.points
    visits = len(nodes) * len(parts)
    weighted = len(weights) > 0
    given = (weights.astype(np.int64) << kernels.WEIGHT_BITS) + gradients if weighted else gradients
    bounds = np.zeros(query.structure.n_leaves + 1, dtype=np.int64)
    totals = np.zeros((query.structure.n_leaves, 2), dtype=np.int64)
    own_rows, own_steps = np.empty(len(nodes), dtype=np.int64), np.empty(len(nodes), dtype=given.dtype)
    kernels.rows_by_node(chosen, nodes, given, weighted, bounds, totals, own_rows, own_steps)
    thresholds = parts.ordered > 0
    features, inverse = np.unique(parts.feature[thresholds], return_inverse=True)
    place = np.full(len(parts), -1, dtype=np.int64)
    place[thresholds] = inverse
    keys = np.empty((len(features), len(nodes)), dtype=np.uint16)
    steps = np.empty(keys.shape, dtype=given.dtype)
    kernels.sort_rows(visits, len(features), cells, features, own_rows, own_steps, bounds, keys, steps)
    groups = np.where(thresholds[:, np.newaxis], np.int64(0), level.stop - level.first)
    kernels.count_groups(visits, len(parts), place, keys, bounds, level.first, level.stop, groups)
    stops = np.cumsum(groups.T.ravel())
    starts = np.ascontiguousarray((stops - groups.T.ravel()).reshape(groups.T.shape).T)
    ends, gains = np.empty(stops[-1], dtype=np.int64), np.empty(stops[-1], dtype=np.int64)
    division = _division(query, weighted=weighted)
    kernels.fill_thresholds(
        visits, len(parts), place, keys, steps, weighted, bounds, totals, parts.besides, parts.weight, level.first,
        level.stop, level.start, starts, division, ends, gains,
    )  # fmt: skip
    kernels.fill_equalities(
        visits, len(parts), cells, own_rows, own_steps, weighted, bounds, totals, parts.feature, parts.offsets,
        parts.equal, parts.width, parts.weight, level.equal_open, level.start, starts, division, ends, gains,
    )  # fmt: skip
    return GroupedGains(offsets=np.concatenate((starts[0], stops[-1:])), ends=ends, gains=gains)
