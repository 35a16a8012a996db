"""Quantiles of rows on a public grid of thresholds, by the exponential mechanism: one, and several at once.

Proof: docs/explanation/selection.md#quantiles. Several are drawn together from the numbers of rows between thresholds.
Least costs are exact integers, relative to which no sum of weights underflows; what float64 sums of known error cannot
decide, integers do: docs/explanation/selection.md#joint-quantiles-of-counts.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.choices.gridless import GridlessMechanism, NumericCandidates
from ledgerwood.mechanisms.choices.selection import UtilityRange, require_vector
from ledgerwood.mechanisms.exact.choice import Powers, decide, exponentials, first_between, scaled
from ledgerwood.mechanisms.exact.randomness import RandomSource
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


MOST_THRESHOLDS = 1 << 10
_MOST_ROWS = 1 << 40
_WORD = 64
_ERROR = 2.0**-38  # relative, of a float sum of weights, for each bin that it covers
_FAR = 1 << 62  # above every cost

Integers = NDArray[np.int64]
Bounds = tuple[list[int], list[int]]
"""From below and from above."""


@final
class RisingThresholds:
    """All ways to place m quantiles at P thresholds, j at a time; weighed relative to the cheapest.

    A way costs the sum over its bins of |rows in the bin * unit - its share * rows|, and weighs exp(-rate * cost).

    Args:
        counts: int64 (P + 1,), rows in each cell, 1 <= P <= 2**10; of a cell at most 2**40 / (P + 1) count, and what is
            below 0 is taken as 0, so that every vector has its thresholds.
        shares: m + 1 whole numbers > 0 that sum to `unit`, at most 2**20; m <= 64.
        rate: nats per unit of cost, a dyadic fraction.
    """

    def __init__(self, counts: Integers, shares: Sequence[int], rate: Fraction) -> None:
        held = np.clip(counts, 0, _MOST_ROWS // counts.size)
        rows = int(held.sum())
        self._below: Integers = np.cumsum(held[:-1])
        self._rows, self._unit, self._rate = rows, sum(shares), rate
        self._targets = [share * rows for share in shares]
        # By the number of quantiles placed, less one: for each threshold that the last of them is at, the least cost,
        # and the total weight relative to it, at least 1.
        self._costs: list[Integers] = [np.abs(self._below * self._unit - self._targets[0])]
        self._ways: list[NDArray[np.float64]] = [np.ones(self._below.size)]
        self._carry()

    def draw(self, source: RandomSource) -> tuple[int, ...]:
        """The thresholds' places, rising (neighbours may be equal), each in 0 .. P - 1."""
        chosen: list[int] = []
        rows, stop = self._rows, self._below.size
        for level in reversed(range(len(self._costs))):
            place = self._choose(level, self._gaps(level, rows, stop), source)
            chosen.append(place)
            rows, stop = int(self._below[place]), place + 1
        return tuple(reversed(chosen))

    def _carry(self) -> None:
        """Costs and ways of one quantile more, until all are placed."""
        later = np.triu(np.ones((self._below.size, self._below.size), dtype=np.bool_), 1)
        moved = np.subtract.outer(self._below, self._below) * self._unit
        for target in self._targets[1:-1]:
            gaps = np.abs(moved - target)
            gaps += self._costs[-1]
            np.copyto(gaps, _FAR, where=later)
            least = gaps.min(axis=1)
            gaps -= least[:, np.newaxis]
            weights = exponentials(gaps, self._rate)
            np.copyto(weights, 0.0, where=later)
            with np.errstate(under="ignore"):
                self._ways.append(weights @ self._ways[-1])
            self._costs.append(least)

    def _gaps(self, level: int, rows: int, stop: int) -> Integers:
        """What each place before `stop` costs above the cheapest, ahead of a threshold with `rows` below it."""
        costs = self._costs[level][:stop] + np.abs((rows - self._below[:stop]) * self._unit - self._targets[level + 1])
        gaps: Integers = costs - costs.min()
        return gaps

    def _choose(self, level: int, gaps: Integers, source: RandomSource) -> int:
        """A place with probability proportional to ways * exp(-gap * rate)."""
        word = int(source.uint64(1)[0])
        with np.errstate(under="ignore"):
            sums = np.cumsum(self._ways[level][: gaps.size] * exponentials(gaps, self._rate))
        error = float(sums[-1]) * (level + 2) * _ERROR
        place = first_between(sums, error, *scaled(word, float(sums[-1]), error))
        return self._choose_exactly(level, gaps, word, source) if place is None else place

    def _choose_exactly(self, level: int, gaps: Integers, word: int, source: RandomSource) -> int:
        """The same in integers, from the same word and as many more as it takes."""
        known = _WORD
        while True:
            # A bit more for each doubling of what the ways may add up to.
            bits = known + _WORD + math.comb(gaps.size + level, level + 1).bit_length()
            powers = Powers(self._rate, bits)
            lows, highs = _products(self._ways_exactly(level, gaps.size, powers, bits), gaps, powers)
            place = decide([*itertools.accumulate(lows)], [*itertools.accumulate(highs)], word, known)
            if place is not None:
                return place
            word, known = (word << _WORD) + int(source.uint64(1)[0]), known + _WORD

    def _ways_exactly(self, level: int, stop: int, powers: Powers, bits: int) -> Bounds:
        """Integers around 2**bits times the ways at each place before `stop`."""
        ways = [1 << bits] * stop, [1 << bits] * stop
        for before in range(level):
            lows, highs = [], []
            for place, rows in enumerate(self._below[:stop].tolist()):
                low, high = _products(ways, self._gaps(before, rows, place + 1), powers)
                lows.append(sum(low) >> bits)
                highs.append((sum(high) >> bits) + 1)
            ways = lows, highs
        return ways


def _products(ways: Bounds, gaps: Integers, powers: Powers) -> Bounds:
    """The first ways, each times the power of its gap; the scales multiply, too."""
    pairs = [powers.bounds(gap) for gap in gaps.tolist()]
    lows = [way * low for way, (low, _) in zip(ways[0], pairs, strict=False)]
    return lows, [way * high for way, (_, high) in zip(ways[1], pairs, strict=False)]
