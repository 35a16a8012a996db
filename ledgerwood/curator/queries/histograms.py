"""Sums by leaf and bin: what the splits of a tree's level are chosen by, where histograms are released.

A row is in one bin of each of f features, so that it adds to f sums at once what it adds to its leaf's one. The proofs
are in docs/explanation/queries.md#bin-sums.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, STEP
from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels.growing_histograms import MAX_BINS, BinRows, LevelSums
from ledgerwood.curator.queries.bins import CandidateBins, binned, require_bins, require_size
from ledgerwood.curator.queries.leaf_statistics import LeafQuery, check_leaves
from ledgerwood.curator.queries.leaf_sums import LeafMoments, LeafSums, require_sums
from ledgerwood.curator.queries.registry import TREES, Integers
from ledgerwood.curator.queries.scores import SCORES, ScoredRows, ScoreStatistic
from ledgerwood.curator.views.tree_rows import Mask, RowScores, TreeRows, TreeShape
from ledgerwood.ensemble import SplitTests
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid

LeafSumsQuery = LeafQuery[BoxShifts] | LeafQuery[BallShifts]
"""A query of `LeafMoments` or `LeafCurvatures`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinSums:
    """Sums of a leaf query for each leaf and each bin of some features; shape (n_leaves * bins.total, 2).

    Leaf after leaf, in each the bins of all features: the histograms of a level of a tree.

    Args:
        leaf: the leaf of `LeafMoments` or `LeafCurvatures`: what a row contributes, and the leaves.
        bins: the features and their candidates.

    Raises:
        InvalidParameter: more than 2**24 sums of a column.
    """

    leaf: LeafSumsQuery
    bins: CandidateBins

    def __post_init__(self) -> None:
        require_size("n_leaves * bins.total", self.leaf.structure.n_leaves * self.bins.total)

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return self.leaf.grid

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts | BallShifts:
        """That of the leaf query in each of the features at once: root(len(bins)) times its L2 norm."""
        return self.leaf.sensitivity(adjacency).repeated(histograms=len(self.bins))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideSums:
    """Sums of a leaf query over the rows that go left, for each leaf and each of f tests; (n_leaves * f, 2).

    Leaf after leaf, in each its tests; what goes right is what is left of the leaf's sum. A row adds to at most one sum
    at each place (docs/explanation/queries.md#side-sums).

    Args:
        leaf: as in `BinSums`.
        tests: f >= 1 for each leaf; the one at f * leaf + place is the leaf's at this place.

    Raises:
        InvalidParameter: not as many tests for each leaf, or more than 2**24.
    """

    leaf: LeafSumsQuery
    tests: SplitTests

    def __post_init__(self) -> None:
        if len(self.tests) % self.leaf.structure.n_leaves:
            bound = f"a multiple of {self.leaf.structure.n_leaves}, the leaves"
            raise _validate.fail("len(tests)", len(self.tests), bound, "tests")
        require_size("len(tests)", len(self.tests))

    @property
    def tests_a_leaf(self) -> int:
        """The number of tests of each leaf: f."""
        return len(self.tests) // self.leaf.structure.n_leaves

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return self.leaf.grid

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts | BallShifts:
        """That of the leaf query in each of the places at once: a row passes the tests of one leaf, one a place."""
        return self.leaf.sensitivity(adjacency).repeated(histograms=self.tests_a_leaf)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinHessians(ScoreStatistic[BoxShifts]):
    """Sum of the logistic loss's hessians p (1 - p) in each bin of some features, over all rows; (bins.total, 1).

    Args:
        bins: the features and their candidates.

    Raises:
        InvalidParameter: more than 2**24 bins.
    """

    bins: CandidateBins

    def __post_init__(self) -> None:
        require_size("bins.total", self.bins.total)

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """See `hessian_shifts`."""
        return hessian_shifts(len(self.bins), adjacency)


def hessian_shifts(features: int, adjacency: Adjacency) -> BoxShifts:
    """The shifts of some features' histograms of hessians, before there are bins: what a plan derives its cost from.

    A quarter in one bin of each feature; a replaced row changes one bin by a quarter at most, or two. Derivation:
    docs/explanation/queries.md#bin-hessians.
    """
    quarter = ((0.25,),)
    once = BoxShifts.moved(boxes=quarter) if adjacency is Adjacency.REPLACE_ONE else BoxShifts(boxes=quarter)
    return once.repeated(histograms=features)


# ------------------------------------------------------------------------------------------------------ how it is done


@final
class _HistogramLevels:
    """What is kept between the histograms of one tree: the exact sums of the last level, and rows by leaf.

    Kept for one set of contributions, and only read for the same ones: leaf query but for its structure, bins, sample.
    """

    __slots__ = ("bin_rows", "bins", "levels")

    def __init__(self) -> None:
        self.bins: CandidateBins | None = None
        self.bin_rows: BinRows | None = None
        self.levels: tuple[BinSums, Mask, LevelSums] | None = None


def _check_cells(query: BinSums, shape: TreeShape) -> None:
    require_sums(query.leaf.statistic, "histograms part")
    check_leaves(query.leaf, shape)
    require_bins(query.bins, shape)


@TREES.carries_out(BinSums, check=_check_cells)
def _cells(query: BinSums, rows: TreeRows) -> Integers:
    leaf, bins = query.leaf, query.bins
    columns, state = binned(bins, rows), rows.scored(leaf.scored_by, leaf.positive)
    if np.diff(bins.offsets).max() > MAX_BINS:
        firsts, seconds = _contributions(query.leaf, rows, state)
        sums = np.empty((leaf.structure.n_leaves, bins.total, 2), dtype=np.int64)
        nodes = leaf.structure.route(rows.cells)
        kernels.bin_sums(len(nodes), len(columns), columns, bins.offsets, nodes, firsts, seconds, sums)
        return sums.reshape(-1, 2)
    kept = rows.memory(_HistogramLevels)
    before = kept.levels
    if before is None or not _alike(query, before[0]) or not np.array_equal(rows.sampled, before[1]):
        kept.levels = None  # two trees' at once are not needed
        if kept.bin_rows is None or kept.bins is not bins:
            # A bin that is not there is the feature's last one.
            same = np.minimum(np.arange(MAX_BINS), np.diff(bins.offsets)[:, np.newaxis] - 1)
            kept.bins, kept.bin_rows = bins, BinRows(bins.offsets, columns, np.arange(len(bins)), same)
        firsts, seconds = _contributions(query.leaf, rows, state)
        clip = require_sums(leaf.statistic, "histograms part").clip
        before = (
            query,
            rows.sampled.copy(),
            LevelSums(kept.bin_rows, firsts, seconds, (int(PER_UNIT), int(clip / STEP))),
        )
        kept.levels = before
    return before[2].of(leaf.structure, rows.cells).reshape(-1, 2)


def _check_sides(query: SideSums, shape: TreeShape) -> None:
    require_sums(query.leaf.statistic, "histograms part")
    check_leaves(query.leaf, shape)
    shape.require_tests(query.tests)


@TREES.carries_out(SideSums, check=_check_sides)
def _sides(query: SideSums, rows: TreeRows) -> Integers:
    structure = query.leaf.structure
    state = rows.scored(query.leaf.scored_by, query.leaf.positive)
    firsts, seconds = _contributions(query.leaf, rows, state)
    nodes = structure.route(rows.cells)
    sums = np.zeros((structure.n_leaves, query.tests_a_leaf, 2), dtype=np.int64)
    kernels.side_sums(len(nodes), query.tests_a_leaf, rows.cells, *query.tests.lowered(), nodes, firsts, seconds, sums)
    return sums.reshape(-1, 2)


def _check_hessians(statistic: BinHessians, shape: TreeShape) -> None:
    require_bins(statistic.bins, shape)


@SCORES.carries_out(BinHessians, check=_check_hessians)
def _hessians(statistic: BinHessians, scored: ScoredRows) -> Integers:
    rows, state = scored.rows, scored.state
    hessians = np.empty(rows.n_rows, dtype=np.int32)
    kernels.row_hessians(len(hessians), state.scores, state.targets, rows.weights, rows.sampled, PER_UNIT, hessians)
    return kernels.one_column(binned(statistic.bins, rows), statistic.bins.offsets, hessians)


def _alike(query: BinSums, other: BinSums) -> bool:
    """Returns whether each row contributes the same to both, in the same bins, for any leaves."""
    mine, others = query.leaf, other.leaf
    return (
        query.bins is other.bins
        and mine.ensemble is others.ensemble
        and mine.positive == others.positive
        and mine.statistic == others.statistic
    )


def _contributions(
    leaf: LeafSumsQuery, rows: TreeRows, state: RowScores
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What each row adds to its leaf, int32 (n_rows,) for each of the two columns."""
    statistic: LeafSums = require_sums(leaf.statistic, "histograms part")
    firsts, seconds = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows, dtype=np.int32)
    logistic, scale, squared = True, 0.0, 0
    if isinstance(statistic, LeafMoments):
        logistic = statistic.loss == "logistic"
    else:
        scale, squared = statistic.curvature_scale, statistic.squared_radius_steps
    kernels.row_contributions(
        rows.n_rows, state.scores, state.targets, rows.weights, rows.sampled, logistic, scale, statistic.clip, PER_UNIT,
        int(statistic.clip / STEP), squared, statistic.large_gradients == "drop", firsts, seconds,
    )  # fmt: skip
    return firsts, seconds
