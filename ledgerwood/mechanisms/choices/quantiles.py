"""A quantile of rows on a public grid of thresholds, by the exponential mechanism.

Proof: docs/explanation/selection.md#quantiles.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.mechanisms.choices.gridless import GridlessMechanism, NumericCandidates
from ledgerwood.mechanisms.choices.selection import UtilityRange, require_vector
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.recording.points import passes

_BITS = 20
_UNIT = 1 << _BITS
_RANKS = Grid(exponents=(-_BITS,))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileMechanism:
    """Threshold p with probability proportional to exp(-rate * |rows below p - quantile * rows|).

    Source: Smith 2011 (exponential mechanism for quantiles); the range under each adjacency is our own derivation:
    docs/explanation/selection.md#quantiles.

    Args:
        quantile: q in (0, 1), taken as the nearest whole number of 2**-20 strictly inside.
        rate: in [1e-200, 1e200], nats per row of distance in rank.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    quantile: float
    rate: float

    def __post_init__(self) -> None:
        quantile = _validate.real("quantile", self.quantile, "share of the rows")
        if not 0.0 < quantile < 1.0:
            raise _validate.fail("quantile", self.quantile, "in (0, 1)", "share of the rows")
        object.__setattr__(self, "quantile", min(max(round(quantile * _UNIT), 1), _UNIT - 1) / _UNIT)
        object.__setattr__(self, "rate", GridlessMechanism(rate=self.rate).rate)

    def event(self, adjacency: Adjacency) -> BoundedRangeEvent:
        """BoundedRangeEvent of rate * range: 2 max(q, 1 - q) under add-remove and zero-out, 2 under replace-one.

        Under zero-out, a zeroed row is counted neither below a threshold nor among the rows.
        """
        share = self._share()
        widest = 2.0 if adjacency is Adjacency.REPLACE_ONE else 2.0 * max(share, 1 - share)
        return GridlessMechanism(rate=self.rate).event(UtilityRange(range=widest), adjacency)

    @passes("choice")
    def select(self, positions: NDArray[np.int64], points: int, source: RandomSource) -> int:
        """The chosen threshold's place in 0 .. points - 1; without rows it is uniform.

        Args:
            positions: int64 (n,), in any order: how many of the grid's thresholds are at or below each row's value;
                what is outside [0, points] is taken as its nearest end.
            points: in [1, 2**40), how many thresholds there are; public.
            source: random words.

        Raises:
            InvalidParameter: not an int64 vector, or a number of points outside its bound.
        """
        require_vector("positions", positions, "thresholds")
        utilities = self._utilities(positions.size)
        cells = NumericCandidates(positions=np.sort(positions), points=points, utilities=utilities)
        return GridlessMechanism(rate=self.rate).select((cells,), _RANKS, source).point

    def _utilities(self, n: int) -> NDArray[np.int64]:
        """-|r - q n| in steps of 2**-20, exactly, for r = 0 .. n."""
        share = self._share()
        ranks = np.arange(n + 1, dtype=np.int64) << _BITS
        utilities: NDArray[np.int64] = -np.abs(ranks - n * share.numerator * (_UNIT // share.denominator))
        return utilities

    def _share(self) -> Fraction:
        return Fraction(self.quantile)
