"""What a federation withstands: owners that are missing, and owners that pool what they know.

docs/explanation/federation.md#shared-noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate

LEAST_POOLING = 1 / 3
"""Fraction of the owners from whom, together with the server, secure aggregation hides the others in any case."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Fractions of the owners, in [0, 1), below 1 together.

    Args:
        colluding: that may pool what they know, with the server or with each other.
        dropouts: that may be missing in a round.
    """

    colluding: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        for name, given in (("colluding", self.colluding), ("dropouts", self.dropouts)):
            value = _validate.real(name, given, "share of the owners")
            if not 0.0 <= value < 1.0:
                raise _validate.fail(name, value, "in [0, 1)", "share of the owners")
            object.__setattr__(self, name, value)
        together = self.colluding + self.dropouts
        if together >= 1.0:
            raise _validate.fail(
                "colluding + dropouts", together, "below 1: nobody would be left", "share of the owners"
            )

    @property
    def masked_from(self) -> float:
        """The fraction that secure aggregation withstands: a third at least, since masks cost little."""
        return max(self.colluding, LEAST_POOLING)

    def least(self, owners: int) -> int:
        """The fewest survivors of a round that is unmasked; at least two, of whom neither is alone."""
        return max(2, owners - members(self.dropouts, owners))

    def honest(self, owners: int) -> int:
        """How many survivors carry the whole noise: all but those that pool what they know."""
        return self.least(owners) - pooling(self.colluding, owners)


def members(share: float, owners: int) -> int:
    """The most owners that are a share of all, as it is meant: .29 of 100 are 29, which floats make 28.99..."""
    return math.floor(Fraction(share).limit_denominator(1 << 32) * owners)


def pooling(share: float, owners: int) -> int:
    """How many owners may pool what they know: a share of all, and one in any case, who knows its own noise."""
    return max(1, members(share, owners))
