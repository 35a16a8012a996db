"""How many queries the components of the federated framework make: Table 1 of its paper."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCounts:
    """Table 1: how many queries of one noise multiplier the components are worth, whose costs add up.

    Args:
        splits: kappa_s. weights: kappa_w. candidates: kappa_c. recalibration: 1, or 0.
    """

    splits: int
    weights: int
    candidates: int
    recalibration: int

    @property
    def total(self) -> int:
        """kappa: the plan's noise multiplier grows with its root."""
        return self.splits + self.weights + self.candidates + self.recalibration
