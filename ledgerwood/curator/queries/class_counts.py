"""How many rows of each class: in each leaf of a tree, and in each bin of several features by leaf. Whole rows.

The proofs are in docs/explanation/gini.md#class-counts.
"""

from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.candidate_bins import CandidateBins
from ledgerwood.curator.queries.counts import MAX_COUNTS
from ledgerwood.ensemble import TreeStructure
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_CLASSES = 1 << 10


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassCounts:
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
        _require_size("leaves * bins * classes", self.structure.n_leaves * self.bins.total * self.classes)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count of each feature moves by 1; for a replaced row two of each."""
        return BoxShifts.of_counts(adjacency, histograms=len(self.bins))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafClassCounts:
    """Number of rows of each class in each leaf, shape (n_leaves * classes, 1), whole; leaf after leaf.

    Args:
        structure, classes: as in `ClassCounts`.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], or more than 2**24 counts.
    """

    structure: TreeStructure
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        _require_size("leaves * classes", self.structure.n_leaves * self.classes)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count moves by 1; for a replaced row two."""
        return BoxShifts.of_counts(adjacency)


def class_number(value: int) -> int:
    """A query's number of classes.

    Raises:
        InvalidParameter: no whole number in [2, 2**10].
    """
    classes = _validate.count("classes", value, "classes", minimum=2)
    if classes > MAX_CLASSES:
        raise _validate.fail("classes", value, f"at most {MAX_CLASSES}", "classes")
    return classes


def _require_size(name: str, size: int) -> None:
    if size > MAX_COUNTS:
        raise _validate.fail(name, size, f"at most {MAX_COUNTS}", "counts")
