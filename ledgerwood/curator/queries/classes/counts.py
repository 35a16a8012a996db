"""Numbers of rows of each class, in each leaf or in each bin of several features by leaf; and a private class per leaf.

Counts are of whole rows (docs/explanation/gini.md#class-counts). A leaf's class is chosen by its numbers of rows
(docs/explanation/gini.md#leaf-labels).
"""

from dataclasses import dataclass
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels.growing_histograms import MAX_BINS, BinRows, LevelSums, bins_by_row
from ledgerwood.curator.kernels.sparse_sums import SparseBinRows, sums_by_bin
from ledgerwood.curator.queries.bins import CandidateBins, binned, require_bins
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafQuery, LeafRows, LeafStatistic, check_leaves
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES, Integers
from ledgerwood.curator.queries.row_counts import MAX_COUNTS
from ledgerwood.curator.views.tree_rows import Mask, TreeRows, TreeShape
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import (
    BoxShifts,
    ExponentialMechanism,
    Grid,
    PermuteAndFlipMechanism,
    RandomSource,
    UtilityRange,
)
from ledgerwood.sparse_cells import AnyCells, SparseCells

MAX_CLASSES = 1 << 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafClassCounts(LeafStatistic[BoxShifts]):
    """Number of rows of each class in each leaf, shape (n_leaves * classes, 1), whole; leaf after leaf.

    A row counts as 1 for any weight; a row without a class is not counted.

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
    counts = np.bincount(codes_by_class(structure, classes, rows), minlength=structure.n_leaves * classes + 1)
    return counts.astype(np.int64, copy=False)[:-1, np.newaxis]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinClassCounts:
    """Number of rows of each class in each bin of each leaf, shape (n_leaves * bins.total * classes, 1), whole.

    Leaf after leaf, in each bin after bin, in each class after class. A row counts whatever it weighs; one of no class
    counts nowhere.

    Args:
        structure: the public tree; a tree without a test has one leaf.
        bins: the bins of at least one feature; a row is in one bin of each.
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
    structure: TreeStructure, classes: int, rows: TreeRows, columns: AnyCells, places: Integers, offsets: Integers
) -> Integers:
    """int64 (n_leaves, n_cells, classes): rows of each class by the cells of some of the columns (n_columns, n_rows).

    Args:
        structure: the structure of the leaves.
        classes: the classes of the target.
        rows: the rows that take part.
        columns: the cells, or the bins, of each row.
        places: which of the columns.
        offsets: int64 (len(places) + 1,), where each one's cells begin, and the end.
    """
    if classes == 2 and np.diff(offsets).max() <= MAX_BINS:
        return _two_classes_by_cell(structure, rows, columns, places, offsets)
    codes = codes_by_class(structure, classes, rows)
    if isinstance(columns, SparseCells):
        n_codes, one = structure.n_leaves * classes, np.ones_like(codes)
        nodes = np.where(codes < n_codes, codes, np.int32(-1))
        sums = sums_by_bin(columns, places, offsets, nodes, n_codes, one, one)[:, :, 0]
        return sums.reshape(structure.n_leaves, classes, -1).swapaxes(1, 2)
    counts = np.empty((structure.n_leaves * classes, int(offsets[-1])), dtype=np.int64)
    kernels.cell_code_counts(len(codes), len(places), columns, places, offsets, codes, counts)
    return counts.reshape(structure.n_leaves, classes, -1).swapaxes(1, 2)


@final
class _Levels:
    """What is kept between the levels of one tree, for one set of columns and one sample."""

    __slots__ = ("columns", "levels", "offsets", "places", "rows", "sampled")

    def __init__(self) -> None:
        self.columns: AnyCells | None = None
        self.places = self.offsets = np.empty(0, dtype=np.int64)
        self.rows: BinRows | SparseBinRows | None = None
        self.sampled: Mask = np.empty(0, dtype=np.bool_)
        self.levels: LevelSums | None = None


def _two_classes_by_cell(
    structure: TreeStructure, rows: TreeRows, columns: AnyCells, places: Integers, offsets: Integers
) -> Integers:
    """The same of two classes, each level from half the rows of the one above: a row counts for one class or both."""
    kept, room = rows.memory(_Levels), rows.named_room("classes")
    alike = kept.columns is columns and np.array_equal(kept.places, places) and np.array_equal(kept.offsets, offsets)
    if not alike or kept.rows is None:
        kept.levels = kept.rows = None
        # A cell beyond the last one counts as the last one.
        same = np.minimum(np.arange(MAX_BINS), np.diff(offsets)[:, np.newaxis] - 1)
        kept.columns, kept.places, kept.offsets = columns, places, offsets
        kept.rows = bins_by_row(offsets, columns, places, same, room)
    if kept.levels is None or not np.array_equal(kept.sampled, rows.sampled):
        kept.levels = None  # their room is filled anew: after an interrupt it is nobody's
        labels = rows.labelled
        present = labels >= 0
        if rows.sampled.size:
            present &= rows.sampled
        second = (present & (labels == 1)).astype(np.int32)
        kept.levels = LevelSums(kept.rows, present.astype(np.int32), second, (1, 1), room)
        kept.sampled = rows.sampled.copy()
    counts = kept.levels.of(structure, rows.cells)
    counts[:, :, 0] -= counts[:, :, 1]
    return counts


def codes_by_class(structure: TreeStructure, classes: int, rows: TreeRows) -> NDArray[np.int32]:
    """Each row's leaf * classes + class, int32 (n_rows,); n_leaves * classes of one that takes no part."""
    codes = np.empty(rows.n_rows, dtype=np.int32)
    kernels.class_codes(len(codes), *rows.over(structure), rows.labelled, rows.sampled, classes, codes)
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


LabelMechanism = ExponentialMechanism | PermuteAndFlipMechanism


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafLabels:
    """One class for each leaf, by its place among the sorted classes, int64 (n_leaves,).

    A class's utility is its number of rows in the leaf, regardless of weights.

    Args:
        structure: the public tree.
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], or more than 2**24 leaves times classes.
    """

    structure: TreeStructure
    classes: int

    def __post_init__(self) -> None:
        counts = LeafClassCounts(classes=self.classes)
        counts.of(self.structure)  # not too many
        object.__setattr__(self, "classes", counts.classes)

    @property
    def counts(self) -> LeafQuery[BoxShifts]:
        """The counts that determine the choices."""
        return LeafClassCounts(classes=self.classes).of(self.structure)

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `label_range`."""
        return label_range(adjacency)

    def event(self, mechanism: LabelMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one leaf, for all of them; of a replaced row, which may change two leaves, twice that."""
        # A subclass could draw from another law than the one that its event prices.
        if type(mechanism) not in get_args(LabelMechanism):
            names = " or ".join(kind.__name__ for kind in get_args(LabelMechanism))
            raise RoundViolation(f"LeafLabels needs {names}, not {type(mechanism).__name__}")
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: LabelMechanism, evidence: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """The choices, from the counts int64 (n_leaves * classes, 1)."""
        grid = self.counts.grid
        leaves = evidence.reshape(self.structure.n_leaves, self.classes)
        return np.array([mechanism.select(counts, grid, source) for counts in leaves], dtype=np.int64)


def label_range(adjacency: Adjacency) -> UtilityRange:
    """The range of the utilities of a leaf's classes under a change of one row: 1, or 2 if a row is replaced."""
    return UtilityRange(range=2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0)


def _check_labels(query: LeafLabels, shape: TreeShape) -> None:
    check_leaves(query.counts, shape)


@TREE_CHOICES.carries_out(LeafLabels, check=_check_labels)
def _counts(query: LeafLabels, rows: TreeRows) -> Integers:
    """The numbers of rows that the choices are made by."""
    return classes_by_leaf(query.structure, query.classes, rows)
