"""How a table evaluates the queries of `histograms`: exact integers, of arrays that the table hands over."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.weights import Weights
from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.curator.kernels.level_sums import MAX_BINS, BinRows, LevelSums
from ledgerwood.curator.queries.histograms import CandidateCounts, CellHessians, CellSums, HistogramQuery, SideSums
from ledgerwood.curator.queries.sums import STEP, LeafCurvatures, LeafMoments
from ledgerwood.curator.tables.row_scores import RowScores

PER_UNIT = 1.0 / STEP


@final
class HistogramSums:
    """What a table keeps between the histograms of one tree: the exact sums of the last level, and rows by leaf.

    Kept for one set of contributions, and only read for the same ones: leaf query but for its structure, bins, sample.

    Args:
        cells: (n_features, n_rows), which do not change.
        weights: of the rows.
    """

    __slots__ = ("_bin_rows", "_cells", "_levels", "_weights")

    def __init__(self, cells: NDArray[Any], weights: Weights) -> None:
        self._cells = cells
        self._weights = weights
        self._bin_rows: BinRows | None = None
        self._levels: tuple[CellSums, NDArray[np.bool_], LevelSums] | None = None

    def of(
        self,
        query: HistogramQuery,
        binned: NDArray[Any] | None,
        state: RowScores | None,
        sampled: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """The query's exact value, in steps of its grid.

        Args:
            query: checked against the table.
            binned: the bin of each row, (f, n_rows), of a query with bins.
            state: scores by the query's ensemble and targets, of a query with an ensemble.
            sampled: bool (n_rows,), or empty where every row takes part.
        """
        match query:
            case CandidateCounts():
                assert binned is not None  # it has bins
                ones = sampled.astype(np.int32) if len(sampled) else np.ones(binned.shape[1], dtype=np.int32)
                return _one_column(query, binned, ones)
            case CellHessians():
                assert binned is not None
                assert state is not None  # it has an ensemble
                hessians = np.empty(len(state.scores), dtype=np.int32)
                histogram_kernels.row_hessians(
                    len(hessians), state.scores, state.targets, self._weights, sampled, PER_UNIT, hessians
                )
                return _one_column(query, binned, hessians)
            case CellSums():
                assert binned is not None
                assert state is not None
                return self._cells_of(query, binned, state, sampled).reshape(-1, 2)
            case SideSums():
                assert state is not None
                return self._sides(query, state, sampled).reshape(-1, 2)

    def _cells_of(
        self, query: CellSums, binned: NDArray[Any], state: RowScores, sampled: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        leaf, bins = query.leaf, query.bins
        if np.diff(bins.offsets).max() > MAX_BINS:
            firsts, seconds = _contributions(leaf, state, self._weights, sampled)
            sums = np.empty((leaf.structure.n_leaves, bins.total, 2), dtype=np.int64)
            nodes = leaf.structure.route(self._cells)
            histogram_kernels.bin_sums(len(nodes), binned, bins.offsets, nodes, firsts, seconds, sums)
            return sums
        if self._levels is None or not _alike(query, self._levels[0]) or not np.array_equal(sampled, self._levels[1]):
            self._levels = None  # two trees' at once are not needed
            if self._bin_rows is None or self._bin_rows.bins is not bins:
                self._bin_rows = BinRows(bins, binned)
            firsts, seconds = _contributions(leaf, state, self._weights, sampled)
            levels = LevelSums(self._bin_rows, firsts, seconds, largest=int(leaf.clip / STEP))
            self._levels = query, sampled.copy(), levels
        return self._levels[2].of(leaf.structure, self._cells)

    def _sides(self, query: SideSums, state: RowScores, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        firsts, seconds = _contributions(query.leaf, state, self._weights, sampled)
        nodes = query.leaf.structure.route(self._cells)
        sums = np.zeros((query.leaf.structure.n_leaves, query.tests_a_leaf, 2), dtype=np.int64)
        histogram_kernels.side_sums(
            len(nodes), self._cells, *query.tests.lowered(), nodes, firsts, seconds, sums
        )  # fmt: skip
        return sums


def _alike(query: CellSums, other: CellSums) -> bool:
    """Whether each row contributes the same to both, in the same bins, whatever the leaves."""
    mine, others = query.leaf, other.leaf
    if query.bins is not other.bins or mine.ensemble is not others.ensemble:
        return False
    if (mine.clip, mine.large_gradients, mine.positive) != (others.clip, others.large_gradients, others.positive):
        return False
    match mine, others:
        case LeafMoments(), LeafMoments():
            return mine.loss == others.loss
        case LeafCurvatures(), LeafCurvatures():
            return mine.curvature_scale == others.curvature_scale
    return False


def _contributions(
    leaf: LeafMoments | LeafCurvatures, state: RowScores, weights: Weights, sampled: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What each row adds to its leaf, int32 (n_rows,) for each of the two columns."""
    n_rows = len(state.scores)
    firsts, seconds = np.empty(n_rows, dtype=np.int32), np.empty(n_rows, dtype=np.int32)
    logistic, scale, squared = True, 0.0, 0
    match leaf:
        case LeafMoments():
            logistic = leaf.loss == "logistic"
        case LeafCurvatures():
            scale, squared = leaf.curvature_scale, leaf.squared_radius_steps
    histogram_kernels.row_contributions(
        n_rows, state.scores, state.targets, weights, sampled, logistic, scale, leaf.clip, PER_UNIT,
        int(leaf.clip / STEP), squared, leaf.large_gradients == "drop", firsts, seconds,
    )  # fmt: skip
    return firsts, seconds


def _one_column(
    query: CellHessians | CandidateCounts, binned: NDArray[Any], contributions: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The sums over all rows by bin, (bins.total, 1)."""
    nothing = np.zeros(len(contributions), dtype=np.int32)
    sums = np.empty((1, query.bins.total, 2), dtype=np.int64)
    histogram_kernels.bin_sums(len(nothing), binned, query.bins.offsets, nothing, contributions, nothing, sums)
    return sums[0, :, :1]
