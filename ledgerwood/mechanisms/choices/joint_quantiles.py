"""Joint quantiles: one exponential mechanism over all rising sequences of thresholds (JointExp), in integers.

Proof: docs/explanation/selection.md#joint-quantiles.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.accounting.events.stated import numbers
from ledgerwood.mechanisms.choices.gridless import GridlessMechanism
from ledgerwood.mechanisms.choices.quantiles import MOST_THRESHOLDS, RisingThresholds
from ledgerwood.mechanisms.choices.selection import MOST_POINTS, UtilityRange, require_vector
from ledgerwood.mechanisms.exact.choice import decide
from ledgerwood.mechanisms.exact.deviates import exp_bounds
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes

_BITS = 20
_UNIT = 1 << _BITS
_WORD = 64
_LARGEST_RATE = 1e3
_MOST_QUANTILES = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointQuantilesMechanism:
    """Thresholds p_1 <= ... <= p_m with probability proportional to exp(-rate * rows to move).

    The rows to move are half the sum over the m + 1 bins of |rows in the bin - its share of the rows|; for one quantile
    this is `QuantileMechanism`. Source: Gillenwater, Joseph and Kulesza 2021; the range under each adjacency and the
    sampler are our own: docs/explanation/selection.md#joint-quantiles.

    Args:
        quantiles: 1 to 64 numbers in (0, 1), increasing, each taken as the nearest whole number of 2**-20, which must
            increase and lie strictly inside too.
        rate: in [1e-200, 1e3], nats per row to move. The work of `select` grows with the rate times the rows to move,
            so that it depends on the data, as all exact choices' time does: exact-noise.md#exact-noise-limits.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    quantiles: tuple[float, ...]
    rate: float

    def __post_init__(self) -> None:
        exact = numbers("quantiles", self.quantiles)
        steps = [round(q * _UNIT) for q in exact if 0.0 < q < 1.0]
        rising = all(b > a for a, b in itertools.pairwise((0, *steps, _UNIT)))
        if not (len(steps) == len(exact) <= _MOST_QUANTILES and rising):
            bound = "at most 64 numbers in (0, 1) that rise by at least 2**-20"
            raise _validate.fail("quantiles", exact, bound, "share of the rows")
        object.__setattr__(self, "quantiles", tuple(step / _UNIT for step in steps))
        rate = GridlessMechanism(rate=self.rate).rate
        if rate > _LARGEST_RATE:
            raise _validate.fail("rate", self.rate, "in [1e-200, 1e3]", "nats per row to move")
        object.__setattr__(self, "rate", rate)

    def event(self, adjacency: Adjacency) -> BoundedRangeEvent:
        """BoundedRangeEvent of rate * range: 2 under replace-one, else 2 (1 - the least share of a bin).

        Under zero-out, a zeroed row is counted in no bin, and not among the rows.
        """
        least = Fraction(min(self._shares()), _UNIT)
        widest = 2.0 if adjacency is Adjacency.REPLACE_ONE else 2.0 * (1 - least)
        return GridlessMechanism(rate=self.rate).event(UtilityRange(range=float(widest)), adjacency)

    @passes("choice")
    def select(self, positions: NDArray[np.int64], points: int, source: RandomSource) -> tuple[int, ...]:
        """The chosen thresholds' places, rising (two may be equal), each in 0 .. points - 1.

        For n rows and m quantiles it takes m products of numbers of n digits and n m exponentials: 1000 rows and 9
        quantiles are fast enough for interactive use; for 10**5 rows use `select_from_counts`.

        Args:
            positions: int64 (n,), in any order: how many of the grid's thresholds are at or below each row's value;
                what is outside [0, points] is taken as its nearest end.
            points: in [1, 2**40), how many thresholds there are; public.
            source: random words.

        Raises:
            InvalidParameter: not an int64 vector, or a number of points outside its bound.
        """
        require_vector("positions", positions, "thresholds")
        points = _validate.count("points", points, "thresholds")
        if points >= MOST_POINTS:
            raise _validate.fail("points", points, "< 2**40", "thresholds")
        ends = [0, *np.clip(np.sort(positions), 0, points).tolist(), points]
        widths = [b - a for a, b in itertools.pairwise(ends)]
        chosen: list[int] = []
        for cell, times in self._choose_cells(widths, source):
            chosen.extend(ends[cell] + place for place in _multiset(widths[cell], times, source))
        return tuple(sorted(chosen))

    @passes("choice")
    def select_from_counts(self, counts: NDArray[np.int64], source: RandomSource) -> tuple[int, ...]:
        """Draw from the same distribution, by the numbers of rows between thresholds; time does not grow with the rows.

        For P thresholds and m quantiles it takes m P**2 / 2 exponentials: 255 and 9 some milliseconds, for a million
        rows, too. Proof: docs/explanation/selection.md#joint-quantiles-of-counts.

        Args:
            counts: int64 (P + 1,), 1 <= P <= 1024: the rows below the first threshold, between the first and the
                second, ..., not below the last; all rows that count at all. Numbers below 0, or above 2**40 / (P + 1),
                are taken as the nearest of these.
            source: random words.

        Raises:
            InvalidParameter: not an int64 vector of this length.
        """
        require_vector("counts", counts, "rows")
        if not 2 <= counts.size <= MOST_THRESHOLDS + 1:
            raise _validate.fail("len(counts)", counts.size, f"in 2..{MOST_THRESHOLDS + 1}", "cells")
        return RisingThresholds(counts, self._shares(), Fraction(self.rate) / (2 * _UNIT)).draw(source)

    def _shares(self) -> list[int]:
        """Of the m + 1 bins, in units of 2**-20."""
        steps = [0, *(round(q * _UNIT) for q in self.quantiles), _UNIT]
        return [b - a for a, b in itertools.pairwise(steps)]

    def _choose_cells(self, widths: list[int], source: RandomSource) -> Iterator[tuple[int, int]]:
        """The cells that have quantiles, and how many, from the last one down."""
        bits = 4 * _WORD
        weights = _Weights(self._shares(), Fraction(self.rate), widths, bits)
        left, before = len(self.quantiles), len(widths)
        while left:
            word, known = int(source.uint64(1)[0]), _WORD
            while True:
                lows, highs, options = weights.last_cells(left, before)
                place = decide(lows, highs, word, known)
                if place is not None:
                    break
                word, known = (word << _WORD) + int(source.uint64(1)[0]), known + _WORD
                if known * 2 > bits or not lows[-1]:
                    bits *= 2
                    weights = _Weights(self._shares(), Fraction(self.rate), widths, bits)
            times, cell = options[place]
            yield cell, times
            left, before = left - times, cell


@final
class _Weights:
    """Bounds of the total weights of all ways to place the first j quantiles, times 2**bits.

    Cell r has r rows below it. `open[j][r]`: j quantiles are in cells before r, and bin j + 1 ends in cell r.
    """

    def __init__(self, shares: list[int], rate: Fraction, widths: list[int], bits: int) -> None:
        self._rows, self._widths, self._bits = len(widths) - 1, widths, bits
        shift = rate.denominator.bit_length() + _BITS  # nats are rate / 2**21 times whole numbers
        moves = [[abs((count << _BITS) - self._rows * share) for count in range(len(widths))] for share in shares]
        self._bins = [[exp_bounds(rate.numerator * move, shift, bits) for move in side] for side in moves]
        self._open: list[tuple[list[int], list[int]]] = [_sides(self._bins[0])]
        for j in range(1, len(shares) - 1):
            self._open.append(self._carry(j))

    def last_cells(self, j: int, before: int) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Running sums of bounds, and their (times, cell): where the last of j quantiles are, before a cell."""
        after = before if before < len(self._widths) else self._rows  # the rows below what follows
        lows, highs, options = [], [], []
        for times in range(1, j + 1):
            low, high = self._placed(j, times)
            for cell in range(before):
                if self._widths[cell]:
                    bin_low, bin_high = self._bins[j][after - cell]
                    lows.append(low[cell] * max(bin_low, 0))
                    highs.append(high[cell] * bin_high)
                    options.append((times, cell))
        return list(itertools.accumulate(lows)), list(itertools.accumulate(highs)), options

    def _placed(self, j: int, times: int) -> tuple[list[int], list[int]]:
        """By cell: the last `times` of j quantiles are in it, its points counted, and empty bins between them."""
        low, high = self._open[j - times]
        for empty in range(j - times + 1, j):
            bin_low, bin_high = self._bins[empty][0]
            low = [x * max(bin_low, 0) >> self._bits for x in low]
            high = [(x * bin_high >> self._bits) + 1 for x in high]
        ways = [math.comb(width + times - 1, times) if width else 0 for width in self._widths]
        return [x * w for x, w in zip(low, ways, strict=True)], [x * w for x, w in zip(high, ways, strict=True)]

    def _carry(self, j: int) -> tuple[list[int], list[int]]:
        """open[j]: over all cells of the last of j quantiles, with bin j + 1 from it to a later cell."""
        placed = [self._placed(j, times) for times in range(1, j + 1)]
        low, high = ([sum(column) for column in zip(*side, strict=True)] for side in zip(*placed, strict=True))
        bin_low, bin_high = _sides(self._bins[j])
        # A quantile in the same cell is counted by `times`: bin j + 1 has at least one row here.
        return (
            [x >> self._bits for x in _convolve(low, [0, *bin_low[1:]])],
            [(x >> self._bits) + 1 for x in _convolve(high, [0, *bin_high[1:]])],
        )


def _sides(bounds: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [max(low, 0) for low, _ in bounds], [high for _, high in bounds]


def _convolve(a: list[int], b: list[int]) -> list[int]:
    """The first n numbers of the convolution of n and n numbers >= 0: one product of two long integers."""
    n = len(a)
    slot = (max(a).bit_length() + max(b).bit_length() + n.bit_length()) // 8 + 1
    left, right = (int.from_bytes(b"".join(x.to_bytes(slot, "little") for x in side), "little") for side in (a, b))
    digits = (left * right).to_bytes(2 * n * slot, "little")
    return [int.from_bytes(digits[i * slot : (i + 1) * slot], "little") for i in range(n)]


def _multiset(width: int, times: int, source: RandomSource) -> list[int]:
    """A uniform rising sequence of `times` numbers in [0, width), which may repeat: as a set of width + times - 1."""
    taken: list[int] = []
    for drawn in range(times):
        place = int(source.integers(width + times - 1 - drawn, 1)[0])
        for other in sorted(taken):
            place += place >= other
        taken.append(place)
    return [place - i for i, place in enumerate(sorted(taken))]
