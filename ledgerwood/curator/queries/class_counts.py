"""How many rows of each class: in each leaf of a tree, and in each bin of several features by leaf. Whole rows.

The proofs are in docs/explanation/gini.md#class-counts.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.kernels import counts as kernels
from ledgerwood.curator.queries.bins import CandidateBins, binned, require_bins
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafRows, LeafStatistic
from ledgerwood.curator.queries.registry import TREES, Integers
from ledgerwood.curator.queries.row_counts import MAX_COUNTS
from ledgerwood.curator.views.tree_rows import TreeRows
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.ensemble import TreeStructure
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_CLASSES = 1 << 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafClassCounts(LeafStatistic[BoxShifts]):
    """Number of rows of each class in each leaf, shape (n_leaves * classes, 1), whole; leaf after leaf.

    A row counts whatever it weighs; one of no class counts nowhere.

    Args:
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10].
    """

    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    @property
    def width(self) -> int:
        """One number a class."""
        return self.classes

    @property
    def uses_scores(self) -> bool:
        """False: rows are counted."""
        return False

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count moves by 1; for a replaced row two."""
        return BoxShifts.of_counts(adjacency)


def _check_classes(statistic: LeafClassCounts, shape: TreeShape) -> None:
    shape.require_classes(statistic.classes)


@LEAVES.carries_out(LeafClassCounts, check=_check_classes)
def _by_leaf(statistic: LeafClassCounts, leaves: LeafRows) -> Integers:
    return classes_by_leaf(leaves.query.structure, statistic.classes, leaves.rows)


def classes_by_leaf(structure: TreeStructure, classes: int, rows: TreeRows) -> Integers:
    """int64 (n_leaves * classes, 1): rows of each class in each leaf."""
    counts = np.bincount(_codes(structure, classes, rows), minlength=structure.n_leaves * classes + 1)
    return counts.astype(np.int64, copy=False)[:-1, np.newaxis]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinClassCounts:
    """Number of rows of each class in each bin of each leaf, shape (n_leaves * bins.total * classes, 1), whole.

    Leaf after leaf, in each bin after bin, in each class after class. A row counts whatever it weighs; one of no class
    counts nowhere.

    Args:
        structure: the public tree; a tree without a test has one leaf.
        bins: of at least one feature; a row is in one bin of each.
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], or more than 2**24 counts.
    """

    structure: TreeStructure
    bins: CandidateBins
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        size = self.structure.n_leaves * self.bins.total * self.classes
        if size > MAX_COUNTS:
            raise _validate.fail("leaves * bins * classes", size, f"at most {MAX_COUNTS}", "counts")

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count of each feature moves by 1; for a replaced row two of each."""
        return BoxShifts.of_counts(adjacency, histograms=len(self.bins))


def _check_bins(query: BinClassCounts, shape: TreeShape) -> None:
    shape.require_classes(query.classes)
    shape.require_structure(query.structure)
    require_bins(query.bins, shape)


@TREES.carries_out(BinClassCounts, check=_check_bins)
def _by_bin(query: BinClassCounts, rows: TreeRows) -> Integers:
    columns = binned(query.bins, rows)
    places = np.arange(len(columns))
    return classes_by_cell(query.structure, query.classes, rows, columns, places, query.bins.offsets).reshape(-1, 1)


def classes_by_cell(
    structure: TreeStructure, classes: int, rows: TreeRows, columns: NDArray[Any], places: Integers, offsets: Integers
) -> Integers:
    """int64 (n_leaves, n_cells, classes): rows of each class by the cells of some of the columns (n_columns, n_rows).

    Args:
        structure: of the leaves.
        classes: of the target.
        rows: which take part.
        columns: the cells, or the bins, of each row.
        places: which of the columns.
        offsets: int64 (len(places) + 1,), where each one's cells begin, and the end.
    """
    codes = _codes(structure, classes, rows)
    counts = np.empty((structure.n_leaves * classes, int(offsets[-1])), dtype=np.int64)
    kernels.cell_code_counts(len(codes), len(places), columns, places, offsets, codes, counts)
    return counts.reshape(structure.n_leaves, classes, -1).swapaxes(1, 2)


def _codes(structure: TreeStructure, classes: int, rows: TreeRows) -> NDArray[np.int32]:
    codes = np.empty(rows.n_rows, dtype=np.int32)
    kernels.class_codes(len(codes), rows.cells, *structure.lowered(), rows.labelled, rows.sampled, classes, codes)
    return codes


def class_number(value: int) -> int:
    """A query's number of classes.

    Raises:
        InvalidParameter: no whole number in [2, 2**10].
    """
    classes = _validate.count("classes", value, "classes", minimum=2)
    if classes > MAX_CLASSES:
        raise _validate.fail("classes", value, f"at most {MAX_CLASSES}", "classes")
    return classes
