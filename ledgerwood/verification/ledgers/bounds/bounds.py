"""What the verifier knows of one amount: a bound from each side."""

from dataclasses import dataclass


class Untaken(ValueError):
    """A plan that the ledger's filter does not take: no library grants it there."""


@dataclass(frozen=True, slots=True)
class CostBounds:
    """lower <= truth <= upper, in the same unit.

    Args:
        lower: never above the truth.
        upper: never below it; infinite where there is none.
        missing: in words, what kept the upper bound from being found or being near; empty if nothing did.
    """

    lower: float
    upper: float
    missing: str
