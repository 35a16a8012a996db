"""Public descriptions of what may be asked of a column before its schema is known. Proofs: docs/explanation/queries.md.

Columns are numbered in the table's order; the target has the number after the last feature.
"""

import itertools
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.mechanisms import BoxShifts, Grid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinCounts:
    """Number of rows in each bin of a numeric column, shape (n_bins, 1); a missing value is in none.

    docs/explanation/queries.md#bin-counts.

    Args:
        column: whose values are counted.
        edges: n_bins + 1 rising finite numbers in the column's unit, public: bin i is [edges[i], edges[i + 1]), and a
            value outside is in the outermost bin.
    """

    column: int
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)
        edges = tuple(_validate.real("edges", edge, "column") for edge in self.edges)
        if len(edges) < 2 or not all(a < b for a, b in itertools.pairwise(edges)):
            raise _validate.fail("edges", edges, "at least two numbers that rise", "column")
        object.__setattr__(self, "edges", edges)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 in one bin; a replaced row leaves one bin and enters another."""
        if adjacency is Adjacency.REPLACE_ONE:
            return BoxShifts.moved(boxes=((1.0,),))
        return BoxShifts(boxes=((1.0,),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCounts:
    """Number of rows of each category that a column holds, for a stability histogram; a missing value has none.

    Args:
        column: whose categories are counted.
    """

    column: int

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)
