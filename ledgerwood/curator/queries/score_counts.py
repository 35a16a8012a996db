"""How many rows, and of which label, have which score: what a recalibration of an ensemble needs."""

import itertools
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.stated import numbers
from ledgerwood.curator.queries.sums import GRID_EXPONENT, class_place, leaf_boxes
from ledgerwood.ensemble import Ensemble
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_EDGES = 1 << 12


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCounts:
    """(number of rows, sum of labels in [-1, 1]) of the rows of each bin of scores, shape (len(edges) + 1, 2).

    A row is in the one bin of its own score, so that it moves one count by 1 and one sum by at most 1; a replaced row
    moves inside one bin, or from one bin to another (docs/explanation/federated.md#score-counts).

    Args:
        ensemble: the released ensemble that gives the scores.
        edges: between the bins, rising; a score that equals an edge is above it.
        positive: as in `LeafMoments`.

    Raises:
        InvalidParameter: edges that do not rise, or more than 2**12.
    """

    ensemble: Ensemble
    edges: tuple[float, ...]
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive", class_place(self.positive))
        edges = numbers("edges", self.edges)
        if not 1 <= len(edges) <= MAX_EDGES or not all(a < b for a, b in itertools.pairwise(edges)):
            raise _validate.fail("edges", f"{len(edges)} edges", f"1 to {MAX_EDGES}, rising", "scores")
        object.__setattr__(self, "edges", tuple(edges))

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, 1) in one bin; as of leaves for a replaced row."""
        return leaf_boxes(1.0, 1.0, adjacency)
