"""How many rows: in each leaf of a tree, and in each cell of several features. Whole rows, whatever their labels.

The proofs are in docs/explanation/queries.md#leaf-counts and docs/explanation/queries.md#cell-counts.
"""

from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.ensemble import TreeStructure
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_FEATURE_CELLS = 1 << 16
MAX_COUNTS = 1 << 24
"""Most counts of one query: 128 MiB."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafCounts:
    """Number of rows in each leaf, shape (n_leaves, 1), whole; a row counts whatever its gradient.

    Args:
        structure: the public tree.
    """

    structure: TreeStructure

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 in one leaf; a replaced row leaves one leaf and enters another."""
        return BoxShifts.of_counts(adjacency)


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
