"""How many rows, whatever their labels: in each leaf of a tree, in each cell, and in each bin of several features.

The proofs are in docs/explanation/queries.md#leaf-counts, docs/explanation/queries.md#cell-counts and
docs/explanation/queries.md#bin-counts.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.kernels import counts as kernels
from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.curator.kernels import sums as sum_kernels
from ledgerwood.curator.queries.bins import CandidateBins, binned, require_bins, require_size
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafRows, LeafStatistic
from ledgerwood.curator.queries.registry import TREES, Integers, no_refusal
from ledgerwood.curator.views.tree_rows import TreeRows
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_FEATURE_CELLS = 1 << 16
MAX_COUNTS = 1 << 24
"""Most counts of one query: 128 MiB."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCounts(LeafStatistic[BoxShifts]):
    """Number of rows in each leaf, shape (n_leaves, 1), whole; a row counts whatever its gradient."""

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
        kernels.leaf_counts(rows.n_rows, rows.cells, *leaves.tests, rows.sampled, routed, partial)
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


@TREES.carries_out(CellCounts, check=check_cells)
def count_cells(query: CellCounts, rows: TreeRows) -> Integers:
    """The exact counts."""
    counts = np.empty((len(query.features), query.cells), dtype=np.int64)
    chosen = np.flatnonzero(rows.sampled)
    if len(rows.sampled) and not len(chosen):
        counts[:] = 0  # no rows, which the loop would take for all of them
    else:
        features = np.array(query.features, dtype=np.int64)
        kernels.cell_counts(len(chosen) or rows.n_rows, len(features), rows.cells, features, chosen, counts)
    return counts.reshape(-1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinCounts:
    """Number of rows in each bin of some features, whatever their labels; whole, shape (bins.total, 1).

    Args:
        bins: of which features, and between which candidates.

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
    return histogram_kernels.one_column(binned(query.bins, rows), query.bins.offsets, ones)
