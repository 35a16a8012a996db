"""Sums by leaf and bin: what the splits of a tree's level are chosen by, where histograms are released.

A row is in one bin of each of f features, so that it adds to f sums at once what it adds to its leaf's one. The proofs
are in docs/explanation/queries.md#bin-sums.
"""

from dataclasses import dataclass
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, Loss
from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels.growing_histograms import MAX_BINS, BinRows, LevelSums, bins_by_row
from ledgerwood.curator.kernels.sparse_sums import SparseBinRows, side_sums, sums_by_bin
from ledgerwood.curator.queries.bins import CandidateBins, binned, require_bins, require_size, sums_of_bins
from ledgerwood.curator.queries.leaf_statistics import LeafQuery, check_leaves
from ledgerwood.curator.queries.leaf_sums import LeafMoments, RowSteps
from ledgerwood.curator.queries.registry import TREES, Integers
from ledgerwood.curator.queries.row_counts import CellCounts, check_cells, weigh_sparse
from ledgerwood.curator.queries.scores import SCORES, ScoredRows, ScoreStatistic
from ledgerwood.curator.queries.units import grid_of, in_units, refuse_weights, steps_per_unit, whole_bits
from ledgerwood.curator.views.tree_rows import Mask, RowScores, TreeRows, TreeShape
from ledgerwood.ensemble import SplitTests
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid
from ledgerwood.mechanisms.block_shifts import Shifts
from ledgerwood.sparse_cells import SparseCells

LeafSumsQuery = LeafQuery[BoxShifts] | LeafQuery[BallShifts] | LeafQuery[BoxShifts | BallShifts] | LeafQuery[Shifts]
"""A query of `LeafMoments` or `LeafCurvatures`, or of one of them in whole units."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinSums:
    """Sums of a leaf query for each leaf and each bin of some features; shape (n_leaves * bins.total, 2).

    Leaf after leaf, in each the bins of all features: the histograms of a level of a tree.

    Args:
        leaf: the leaf of `LeafMoments` or `LeafCurvatures`, or of `WholeSums` of them: what a row contributes, and the
            leaves.
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

    def sensitivity(self, adjacency: Adjacency) -> Shifts:
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

    def sensitivity(self, adjacency: Adjacency) -> Shifts:
        """That of the leaf query in each of the places at once: a row passes the tests of one leaf, one a place."""
        return self.leaf.sensitivity(adjacency).repeated(histograms=self.tests_a_leaf)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinHessians(ScoreStatistic[BoxShifts]):
    """Sum of the logistic loss's hessians p (1 - p) in each bin of some features, over all rows; (bins.total, 1).

    Args:
        bins: the features and their candidates.
        bits: in [0, 20]: whole units of 2**-bits, for noise of whole numbers and rows without weights
            (docs/explanation/queries.md#whole-sums). None: the grid of all sums.

    Raises:
        InvalidParameter: more than 2**24 bins, or a number of bits outside its bound.
    """

    bins: CandidateBins
    bits: int | None = None

    def __post_init__(self) -> None:
        require_size("bins.total", self.bins.total)
        if self.bits is not None:
            object.__setattr__(self, "bits", whole_bits("bits", self.bits))

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return grid_of(self.bits, 1)

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """See `hessian_shifts`."""
        return hessian_shifts(len(self.bins), adjacency, bits=self.bits)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellHessians(ScoreStatistic[BoxShifts]):
    """Sum of the loss's hessians, each times its row's weight, in the cells of `CellCounts`; of as many numbers.

    Of the logistic loss the hessian is p (1 - p) at the ensemble's score, of the squared loss 1. A row without a target
    counts nowhere.

    Args:
        counts: the features and their cells.
        loss: whose hessians they are.
    """

    counts: CellCounts
    loss: Loss

    def __post_init__(self) -> None:
        if type(self.counts) is not CellCounts:
            raise _validate.fail("counts", self.counts, "CellCounts", "cells of features")
        if self.loss not in get_args(Loss):
            raise _validate.fail("loss", self.loss, f"one of {', '.join(get_args(Loss))}", "loss")

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """See `hessian_shifts`: a row is in one of a feature's cells at most."""
        return hessian_shifts(len(self.counts.features), adjacency, self.loss)


def hessian_shifts(
    features: int, adjacency: Adjacency, loss: Loss = "logistic", *, bits: int | None = None
) -> BoxShifts:
    """The shifts of some features' histograms of hessians, before there are bins: what a plan derives its cost from.

    The loss's largest hessian in one bin of each feature, a quarter of the logistic loss and 1 of the squared one; a
    replaced row changes one bin by as much, or two; in units of 2**-bits where bits are named. Derivation:
    docs/explanation/queries.md#bin-hessians.
    """
    largest = ((0.25 if loss == "logistic" else 1.0,),)
    once = BoxShifts.moved(boxes=largest) if adjacency is Adjacency.REPLACE_ONE else BoxShifts(boxes=largest)
    return in_units(once.repeated(histograms=features), bits)


# ------------------------------------------------------------------------------------------------------ how it is done


@final
class _HistogramLevels:
    """What is kept between the histograms of one tree: the exact sums of the last level, and rows by leaf.

    Kept for one set of contributions, and only read for the same ones: leaf query but for its structure, bins, sample.
    """

    __slots__ = ("bin_rows", "bins", "levels")

    def __init__(self) -> None:
        self.bins: CandidateBins | None = None
        self.bin_rows: BinRows | SparseBinRows | None = None
        self.levels: tuple[BinSums, Mask, LevelSums] | None = None


def _check_cells(query: BinSums, shape: TreeShape) -> None:
    RowSteps.of(query.leaf.statistic, "histograms part")
    check_leaves(query.leaf, shape)
    require_bins(query.bins, shape)


@TREES.carries_out(BinSums, check=_check_cells)
def _cells(query: BinSums, rows: TreeRows) -> Integers:
    leaf, bins = query.leaf, query.bins
    columns, state = binned(bins, rows), rows.scored(leaf.scored_by, leaf.positive)
    if np.diff(bins.offsets).max() > MAX_BINS:
        firsts, seconds = _contributions(query.leaf, rows, state)
        nodes = leaf.structure.route(rows.cells)
        if isinstance(columns, SparseCells):
            of_all = np.arange(len(bins))
            return sums_by_bin(columns, of_all, bins.offsets, nodes, leaf.structure.n_leaves, firsts, seconds).reshape(
                -1, 2
            )
        sums = np.empty((leaf.structure.n_leaves, bins.total, 2), dtype=np.int64)
        kernels.bin_sums(len(nodes), len(columns), columns, bins.offsets, nodes, firsts, seconds, sums)
        return sums.reshape(-1, 2)
    kept, room = rows.memory(_HistogramLevels), rows.named_room("histograms")
    before = kept.levels
    if before is None or not _alike(query, before[0]) or not np.array_equal(rows.sampled, before[1]):
        kept.levels = None  # two trees' at once are not needed
        if kept.bin_rows is None or kept.bins is not bins:
            # A bin that is not there is the feature's last one.
            same = np.minimum(np.arange(MAX_BINS), np.diff(bins.offsets)[:, np.newaxis] - 1)
            kept.bins = kept.bin_rows = None  # their room is filled anew: after an interrupt it is nobody's
            own = bins_by_row(bins.offsets, columns, np.arange(len(bins)), same, room)
            kept.bins, kept.bin_rows = bins, own
        firsts, seconds = _contributions(query.leaf, rows, state)
        before = (
            query,
            rows.sampled.copy(),
            LevelSums(kept.bin_rows, firsts, seconds, RowSteps.of(leaf.statistic, "histograms part").largest, room),
        )
        kept.levels = before
    return before[2].of(leaf.structure, rows.cells).reshape(-1, 2)


def _check_sides(query: SideSums, shape: TreeShape) -> None:
    RowSteps.of(query.leaf.statistic, "histograms part")
    check_leaves(query.leaf, shape)
    shape.require_tests(query.tests)


@TREES.carries_out(SideSums, check=_check_sides)
def _sides(query: SideSums, rows: TreeRows) -> Integers:
    structure = query.leaf.structure
    state = rows.scored(query.leaf.scored_by, query.leaf.positive)
    firsts, seconds = _contributions(query.leaf, rows, state)
    nodes = structure.route(rows.cells)
    sums = np.zeros((structure.n_leaves, query.tests_a_leaf, 2), dtype=np.int64)
    tests, cells = query.tests.lowered(), rows.cells
    if isinstance(cells, SparseCells):
        side_sums(cells, tests, nodes, firsts, seconds, sums)
    else:
        kernels.side_sums(len(nodes), query.tests_a_leaf, cells, *tests, nodes, firsts, seconds, sums)
    return sums.reshape(-1, 2)


def _check_hessians(statistic: BinHessians, shape: TreeShape) -> None:
    require_bins(statistic.bins, shape)
    if statistic.bits is not None:
        refuse_weights(shape)


@SCORES.carries_out(BinHessians, check=_check_hessians)
def _hessians(statistic: BinHessians, scored: ScoredRows) -> Integers:
    bins, rows = statistic.bins, scored.rows
    return sums_of_bins(bins, rows, _row_hessians(scored, "logistic", steps_per_unit(statistic.bits)))


def _check_cell_hessians(statistic: CellHessians, shape: TreeShape) -> None:
    check_cells(statistic.counts, shape)


@SCORES.carries_out(CellHessians, check=_check_cell_hessians)
def _cell_hessians(statistic: CellHessians, scored: ScoredRows) -> Integers:
    rows, counts = scored.rows, statistic.counts
    hessians = _row_hessians(scored, statistic.loss)
    if isinstance(rows.cells, SparseCells):
        return weigh_sparse(counts, rows.cells, np.zeros(rows.n_rows, dtype=np.int32), hessians)
    sums = np.zeros((len(counts.features), counts.cells), dtype=np.int64)
    chosen = np.flatnonzero(hessians)
    if len(chosen):  # no rows are not all of them
        features = np.array(counts.features, dtype=np.int64)
        # A sample is gathered once, and not by each feature.
        some = chosen if 2 * len(chosen) < len(hessians) else np.empty(0, dtype=np.int64)
        own = hessians[some] if len(some) else hessians
        kernels.cell_weights(len(own), len(features), rows.cells, features, some, own, sums)
    return sums.reshape(-1, 1)


def _row_hessians(scored: ScoredRows, loss: Loss, per_unit: float = PER_UNIT) -> NDArray[np.int32]:
    """What each row counts in a histogram of hessians, int32 (n_rows,) in steps of 1 / per_unit."""
    rows, state = scored.rows, scored.state
    hessians = np.empty(rows.n_rows, dtype=np.int32)
    kernels.row_hessians(
        len(hessians), state.scores, state.targets, rows.weights, rows.sampled, loss == "logistic", per_unit, hessians
    )
    return hessians


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
    leaf_sums, per_unit, squared, coarser = steps = RowSteps.of(leaf.statistic, "histograms part")
    firsts, seconds = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows, dtype=np.int32)
    logistic, scale = True, 0.0
    if isinstance(leaf_sums, LeafMoments):
        logistic = leaf_sums.loss == "logistic"
    else:
        scale = leaf_sums.curvature_scale
    kernels.row_contributions(
        rows.n_rows, state.scores, state.targets, rows.weights, rows.sampled, logistic, scale, leaf_sums.clip, per_unit,
        steps.clip_steps, squared, leaf_sums.large_gradients == "drop", firsts, seconds,
    )  # fmt: skip
    firsts >>= coarser  # exact: each row adds one row
    return firsts, seconds
