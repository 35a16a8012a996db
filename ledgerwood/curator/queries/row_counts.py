"""Numbers of rows, regardless of labels: in each leaf of a tree, in each cell, and in each bin of several features.

Also thresholds of several numeric features, by private quantiles among the borders of their cells. Proofs:
docs/explanation/queries.md#leaf-counts, #cell-counts, #bin-counts and #feature-quantiles.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Repeated
from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels import sums as sum_kernels
from ledgerwood.curator.kernels.sparse_sums import sums_by_bin
from ledgerwood.curator.queries.bins import CandidateBins, require_bins, require_size, sums_of_bins
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafRows, LeafStatistic
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES, Integers, no_refusal
from ledgerwood.curator.views.tree_rows import Mask, TreeRows, TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, Grid, JointQuantilesMechanism, RandomSource
from ledgerwood.mechanisms.choices.quantiles import MOST_THRESHOLDS
from ledgerwood.schema import Ranged
from ledgerwood.sparse_cells import SparseCells

MAX_FEATURE_CELLS = 1 << 16
MAX_COUNTS = 1 << 24
"""Most counts of one query: 128 MiB."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCounts(LeafStatistic[BoxShifts]):
    """Number of rows in each leaf, shape (n_leaves, 1), whole; a row counts for any gradient."""

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    @property
    def width(self) -> int:
        """1: the rows."""
        return 1

    @property
    def uses_scores(self) -> bool:
        """False: rows are counted."""
        return False

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 in one leaf; a replaced row leaves one leaf and enters another."""
        return BoxShifts.of_counts(adjacency)


@LEAVES.carries_out(LeafCounts, check=no_refusal)
def _by_leaf(_: LeafCounts, leaves: LeafRows) -> Integers:
    rows = leaves.rows
    partial = rows.blocks(leaves.n_leaves)
    with rows.routing(leaves.query.structure) as routed:
        kernels.leaf_counts(rows.n_rows, *leaves.routed, rows.sampled, routed, partial)
    return sum_kernels.total(partial)[:, np.newaxis]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """Number of rows in the cells 0 .. cells-1 of each named feature, shape (len(features) * cells, 1), whole.

    Feature after feature, in the order named. A row whose cell is `cells` or above, such as that of a missing value, is
    not counted for that feature.

    Args:
        features: which of the table's, at least one, each once.
        cells: how many cells of each are counted, in [1, 2**16].

    Raises:
        InvalidParameter: a feature that is no whole number >= 0 or is named twice, a number of cells outside its bound,
            or more than 2**24 counts.
    """

    features: tuple[int, ...]
    cells: int

    def __post_init__(self) -> None:
        given = _validate.several("features", self.features, "features")
        features = tuple(_validate.count("features", feature, "features", minimum=0) for feature in given)
        if len(set(features)) < len(features):
            raise _validate.fail("features", features, "each named once", "features")
        cells = _validate.count("cells", self.cells, "cells of a feature")
        if cells > MAX_FEATURE_CELLS:
            raise _validate.fail("cells", cells, f"at most {MAX_FEATURE_CELLS}", "cells of a feature")
        if len(features) * cells > MAX_COUNTS:
            raise _validate.fail("len(features) * cells", len(features) * cells, f"at most {MAX_COUNTS}", "counts")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "cells", cells)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count of each feature moves by 1; for a replaced row two of each."""
        return BoxShifts.of_counts(adjacency, histograms=len(self.features))


def check_cells(query: CellCounts, shape: TreeShape) -> None:
    """Refuse counts of features that are not there.

    Raises:
        RoundViolation: of such counts.
    """
    if max(query.features) >= shape.n_features:
        raise RoundViolation(f"counts of features outside {shape.features}")


@final
class _LastCounts:
    """The counts that were asked for last, and of which rows: those of all rows are the same for each tree."""

    __slots__ = ("counted",)

    def __init__(self) -> None:
        self.counted: tuple[CellCounts, Mask, Integers] | None = None


@TREES.carries_out(CellCounts, check=check_cells)
def count_cells(query: CellCounts, rows: TreeRows) -> Integers:
    """The exact counts; the caller's own."""
    kept = rows.memory(_LastCounts)
    if kept.counted is not None:
        before, sampled, counts = kept.counted
        if query == before and np.array_equal(rows.sampled, sampled):
            return counts.copy()
    counts = _counted(query, rows)
    kept.counted = query, rows.sampled.copy(), counts.copy()
    return counts


def _counted(query: CellCounts, rows: TreeRows) -> Integers:
    if isinstance(rows.cells, SparseCells):
        return _count_sparse(query, rows.cells, rows.sampled)
    counts = np.empty((len(query.features), query.cells), dtype=np.int64)
    chosen = np.flatnonzero(rows.sampled)
    if len(rows.sampled) and not len(chosen):
        counts[:] = 0  # no rows, which the loop would take for all of them
    else:
        features = np.array(query.features, dtype=np.int64)
        kernels.cell_counts(len(chosen) or rows.n_rows, len(features), rows.cells, features, chosen, counts)
    return counts.reshape(-1, 1)


def _count_sparse(query: CellCounts, cells: SparseCells, sampled: Mask) -> Integers:
    nodes = np.where(sampled, np.int32(0), np.int32(-1)) if len(sampled) else np.zeros(cells.n_rows, dtype=np.int32)
    return weigh_sparse(query, cells, nodes, np.ones(cells.n_rows, dtype=np.int32))


def weigh_sparse(
    query: CellCounts, cells: SparseCells, nodes: NDArray[np.int32], weights: NDArray[np.int32]
) -> Integers:
    """What the rows weigh in each cell that is counted, int64 (n, 1); nodes: 0, or -1 for a row that takes no part."""
    # What is not counted is in a cell of its own, the last one.
    width = query.cells + 1
    offsets = np.arange(len(query.features) + 1) * width
    sums = sums_by_bin(cells, np.array(query.features), offsets, nodes, 1, weights, weights)[0, :, 0]
    return sums.reshape(-1, width)[:, :-1].reshape(-1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinCounts:
    """Number of rows in each bin of some features, regardless of labels; whole, shape (bins.total, 1).

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
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count of each feature moves by 1; for a replaced row two of each."""
        return BoxShifts.of_counts(adjacency, histograms=len(self.bins))


def _check_bins(query: BinCounts, shape: TreeShape) -> None:
    require_bins(query.bins, shape)


@TREES.carries_out(BinCounts, check=_check_bins)
def _by_bin(query: BinCounts, rows: TreeRows) -> Integers:
    ones = rows.sampled.astype(np.int32) if len(rows.sampled) else np.ones(rows.n_rows, dtype=np.int32)
    return sums_of_bins(query.bins, rows, ones)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureQuantiles:
    """Increasing thresholds for each named feature, chosen jointly, at the mechanism's shares of the rows.

    A threshold t stands for the test "cell < t"; all t of 1 .. cells - 1 are candidates. Counted are whole rows,
    whatever they weigh; a row whose cell is `cells` or above, such as that of a missing value, is not among a feature's
    rows.

    Args:
        features: numeric, of the table's, at least one, each once.
        cells: how many cells of each, in [2, 1025].

    Raises:
        InvalidParameter: a feature that is no whole number >= 0 or is named twice, or a number of cells outside its
            bound.
    """

    features: tuple[int, ...]
    cells: int

    def __post_init__(self) -> None:
        counts = CellCounts(features=self.features, cells=self.cells)
        if not 2 <= counts.cells <= MOST_THRESHOLDS + 1:
            raise _validate.fail("cells", counts.cells, f"in 2..{MOST_THRESHOLDS + 1}", "cells of a feature")
        object.__setattr__(self, "features", counts.features)
        object.__setattr__(self, "cells", counts.cells)

    @property
    def counts(self) -> CellCounts:
        """The counts that determine the choice."""
        return CellCounts(features=self.features, cells=self.cells)

    def event(self, mechanism: JointQuantilesMechanism, adjacency: Adjacency) -> Repeated:
        """The mechanism's, once for each feature: a row is in all of them."""
        # A subclass could draw from another law than the one that its event prices.
        if type(mechanism) is not JointQuantilesMechanism:
            raise RoundViolation(f"FeatureQuantiles needs JointQuantilesMechanism, not {type(mechanism).__name__}")
        return Repeated(mechanism.event(adjacency), count=len(self.features))

    def select(self, mechanism: JointQuantilesMechanism, evidence: Integers, source: RandomSource) -> Integers:
        """Thresholds int64 (len(features), quantiles), rising, from the counts int64 (len(features) * cells, 1)."""
        counts = evidence.reshape(len(self.features), self.cells)
        places = [mechanism.select_from_counts(feature, source) for feature in counts]
        return np.array(places, dtype=np.int64) + 1


def _check(query: FeatureQuantiles, shape: TreeShape) -> None:
    check_cells(query.counts, shape)
    declared = shape.schema.resolved(shape.n_features).features
    if not all(isinstance(declared[feature], Ranged) for feature in query.features):
        raise RoundViolation(f"quantiles of features {query.features}: categories have no order")


@TREE_CHOICES.carries_out(FeatureQuantiles, check=_check)
def _counts(query: FeatureQuantiles, rows: TreeRows) -> Integers:
    """The numbers of rows that the choice is made by."""
    return count_cells(query.counts, rows)
