"""Numbers of rows with Laplace noise: of cells, for candidates, or of leaves."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.curator import CellCounts, LeafCounts, LeafQuery, Round
from ledgerwood.mechanisms import BoxShifts, LaplaceMechanism

Counts = CellCounts | LeafCounts | LeafQuery[BoxShifts]
"""Numbers of rows: a query, or the statistic that a query of leaves is made of."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceCounts:
    """One release of numbers of rows, at a privacy cost that does not depend on how many there are.

    The scale is the query's L1 sensitivity over epsilon: m / epsilon for the histograms of m features.

    Args:
        adjacency: the relation of neighbouring data sets.
        epsilon: of one release, in nats.
    """

    adjacency: Adjacency
    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive("count epsilon", self.epsilon, "nats")

    @property
    def event(self) -> LaplaceEvent:
        """One release."""
        return LaplaceEvent(noise_multiplier=float_up(1 / Fraction(self.epsilon)), adjacency=self.adjacency)

    def mechanism(self, query: Counts) -> LaplaceMechanism:
        """The noise mechanism that the event assumes."""
        return LaplaceMechanism.of_multiplier(
            self.event.noise_multiplier, query.sensitivity(self.adjacency), proportions=(1.0,)
        )

    def require_fit(self, query: Counts) -> None:
        """Refuse noise that cannot be drawn.

        Raises:
            InvalidParameter: it is too large for the counts' grid.
        """
        self.mechanism(query).require_fit(query.grid)

    def released(self, query: CellCounts | LeafQuery[BoxShifts], round_: Round, *, purpose: str) -> NDArray[np.float64]:
        """The numbers, noise included, float64 (k,)."""
        return round_.release(query, self.mechanism(query), purpose=purpose).real[:, 0]
