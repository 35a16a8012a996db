"""Sums by leaf and bin: what the splits of a tree's level are chosen by, where histograms are released.

A row is in one bin of each of f features, so that it adds to f sums at once what it adds to its leaf's one. The proofs
are in docs/explanation/queries.md#cell-sums.
"""

from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.candidate_bins import CandidateBins
from ledgerwood.curator.queries.sums import GRID_EXPONENT, LeafCurvatures, LeafMoments, class_place
from ledgerwood.ensemble import Ensemble, SplitTests
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid

MAX_SUMS = 1 << 24
"""Most sums of one query: 256 MiB in two columns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellSums:
    """What a leaf query adds up, for each leaf and each bin of some features; shape (n_leaves * bins.total, 2).

    Leaf after leaf, in each the bins of all features: the histograms of a level of a tree.

    Args:
        leaf: the contribution of a row, and the leaves: (1, clipped gradient) or (scaled hessian, clipped gradient).
        bins: of which features, and between which candidates.

    Raises:
        InvalidParameter: more than 2**24 sums of a column.
    """

    leaf: LeafMoments | LeafCurvatures
    bins: CandidateBins

    def __post_init__(self) -> None:
        _require_size("n_leaves * bins.total", self.leaf.structure.n_leaves * self.bins.total)

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
    """What a leaf query adds up, for each leaf and each of f tests over the rows that go left; (n_leaves * f, 2).

    Leaf after leaf, in each its tests; what goes right is what is left of the leaf's sum. A row adds to at most one sum
    at each place (docs/explanation/queries.md#side-sums).

    Args:
        leaf: as in `CellSums`.
        tests: f >= 1 for each leaf; the one at f * leaf + place is the leaf's at this place.

    Raises:
        InvalidParameter: not as many tests for each leaf, or more than 2**24.
    """

    leaf: LeafMoments | LeafCurvatures
    tests: SplitTests

    def __post_init__(self) -> None:
        if len(self.tests) % self.leaf.structure.n_leaves:
            bound = f"a multiple of {self.leaf.structure.n_leaves}, the leaves"
            raise _validate.fail("len(tests)", len(self.tests), bound, "tests")
        _require_size("len(tests)", len(self.tests))

    @property
    def tests_a_leaf(self) -> int:
        """How many tests each leaf has: f."""
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
class CellHessians:
    """Sum of the logistic loss's hessians p (1 - p) in each bin of some features, over all rows; (bins.total, 1).

    Args:
        bins: of which features, and between which candidates.
        ensemble: the released ensemble whose scores give p.
        positive: as in `LeafMoments`.

    Raises:
        InvalidParameter: more than 2**24 bins.
    """

    bins: CandidateBins
    ensemble: Ensemble
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive", class_place(self.positive))
        _require_size("bins.total", self.bins.total)

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """A quarter in one bin of each feature; a replaced row changes one bin by a quarter at most, or two.

        Derivation: docs/explanation/queries.md#cell-hessians.
        """
        quarter = ((0.25,),)
        once = BoxShifts.moved(boxes=quarter) if adjacency is Adjacency.REPLACE_ONE else BoxShifts(boxes=quarter)
        return once.repeated(histograms=len(self.bins))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateCounts:
    """Number of rows in each bin of some features, whatever their labels; whole, shape (bins.total, 1).

    Args:
        bins: of which features, and between which candidates.

    Raises:
        InvalidParameter: more than 2**24 bins.
    """

    bins: CandidateBins

    def __post_init__(self) -> None:
        _require_size("bins.total", self.bins.total)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """One count of each feature moves by 1; for a replaced row two of each."""
        return BoxShifts.of_counts(adjacency, histograms=len(self.bins))


HistogramQuery = CellSums | SideSums | CellHessians | CandidateCounts


def _require_size(name: str, number: int) -> None:
    if number > MAX_SUMS:
        raise _validate.fail(name, number, f"at most {MAX_SUMS}", "sums")
