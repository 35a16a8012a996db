"""Exact draws from distributions on the integers, by inverting bounds on their distribution functions.

A uniform real is read 64 bits at a time, until one atom is left. All but about one draw in 2**64 an atom are decided by
their first word against a table; the others by integer bounds at whatever precision it takes, from recurrences with
directed steps. A selection's number of runs (truncated negative binomial, K >= 1) has no table: its distribution
function is summed up to the drawn number, which costs less than that many runs.
Proofs: docs/explanation/exact-noise.md#integer-inversion and #integer-laws, docs/explanation/events.md#run-counts.
"""

import bisect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms.exact.deviates import exp_bounds
from ledgerwood.mechanisms.exact.randomness import RandomSource

_WORD = 64
_CHUNK = 1 << 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """Integers around 2**bits times the distribution function F at the atoms first, first + 1, ...

    Args:
        first: the first atom of the window.
        starts: at place j an upper bound of 2**bits F(first + j - 1); never falling.
        ends: at place j a lower bound of 2**bits F(first + j), below 2**bits.
    """

    first: int
    starts: list[int]
    ends: list[int]


DistributionBounds = Callable[[int], Enclosure]
"""bits -> bounds. As the bits grow the window widens and the bounds close."""


@final
class Inversion:
    """Draws from the distribution whose distribution function `bounds` encloses."""

    __slots__ = ("_bounds", "_ends", "_first", "_starts")

    def __init__(self, bounds: DistributionBounds) -> None:
        self._bounds = bounds
        table = bounds(_WORD)
        self._first = table.first
        # A word w stands for all reals in [w, w + 1) / 2**64: atom j has them all if starts[j] <= w < ends[j].
        self._starts = np.array([min(start, (1 << _WORD) - 1) for start in table.starts], dtype=np.uint64)
        self._ends = np.array(table.ends, dtype=np.uint64)

    def draw(self, n: int, source: RandomSource) -> NDArray[np.int64]:
        """n independent integers, n >= 0."""
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, _CHUNK):
            part = out[start : start + _CHUNK]
            words = source.uint64(part.size)
            part[:] = np.searchsorted(self._starts, words, side="right") - 1
            unsure = np.flatnonzero((part < 0) | (words >= self._ends.take(part, mode="clip"))).tolist()
            part += self._first
            for i in unsure:
                part[i] = self._decide(int(words[i]), source)
        return out

    def _decide(self, word: int, source: RandomSource) -> int:
        """The atom of a real that begins with `word`, from further words."""
        bits = _WORD
        while True:
            word = (word << _WORD) + int(source.uint64(1)[0])
            bits += _WORD
            table = self._bounds(bits)
            place = bisect.bisect_right(table.starts, word) - 1
            if place >= 0 and word < table.ends[place]:
                return table.first + place


_GUARD = 64  # bits beyond the wanted ones: the recurrences lose two bits for each doubling of the window
_TWO_LOG_TWO = math.log(2.0) * 2.0

Interval = tuple[int, int]


def discrete_gaussian(scale: float, bits: int) -> Enclosure:
    """The distribution of probability proportional to exp(-z**2 / (2 scale**2)); scale > 0."""
    precision = bits + _GUARD
    reach = math.ceil(scale * math.sqrt(_TWO_LOG_TWO * (bits + 8))) + 1
    rate = 1 / (2 * Fraction(scale) ** 2)
    step, bend = _exp_down(rate, precision), _exp_down(2 * rate, precision)
    weight = (1 << precision, 1 << precision)
    weights: list[Interval] = []
    for _ in range(reach + 1):
        weights.append(weight)
        weight, step = _product(weight, step, precision), _product(step, bend, precision)
    return _symmetric(weights, (weight[0], _geometric(weight[1], step[1], precision)), bits)


def poisson(mean: float, bits: int) -> Enclosure:
    """The Poisson distribution; mean > 0. Its weights are relative to the most likely value's."""
    precision = bits + _GUARD
    exact = Fraction(mean)
    top, bottom = exact.numerator, exact.denominator
    mode = math.floor(exact)
    up, down = [(1 << precision, 1 << precision)], []
    least = 1 << (_GUARD - 8)
    k = mode
    while up[-1][1] > least:
        k += 1
        up.append((up[-1][0] * top // (bottom * k), up[-1][1] * top // (bottom * k) + 1))
    ratio = Fraction(top, bottom * (k + 1))
    above = math.ceil(up[-1][1] * ratio / (1 - ratio))
    low, high = up[0]
    k = mode
    while k > 0 and high > least:
        low, high = low * k * bottom // top, high * k * bottom // top + 1
        k -= 1
        down.append((low, high))
    ratio = Fraction(k * bottom, top)
    below = math.ceil(high * ratio / (1 - ratio)) if k > 0 else 0
    weights = down[::-1] + up
    total_low = sum(weight for weight, _ in weights)
    total_high = sum(weight for _, weight in weights) + below + above
    sums_low = itertools.accumulate((weight for weight, _ in weights), initial=0)
    sums_high = itertools.accumulate((weight for _, weight in weights), initial=below)
    starts = [_share_up(part, total_low, bits) for part in sums_high]
    ends = [(part << bits) // total_high for part in sums_low]
    return Enclosure(first=k, starts=starts[:-1], ends=ends[1:])


def _symmetric(weights: list[Interval], beyond: Interval, bits: int) -> Enclosure:
    """The distribution of even weights, given from 0 on; `beyond` encloses the sum of all further ones of a side."""
    tails = [beyond]  # sums of the weights from place j on, from the last place inward
    for low, high in reversed(weights[1:]):
        tails.append((tails[-1][0] + low, tails[-1][1] + high))
    total = (weights[0][0] + 2 * tails[-1][0], weights[0][1] + 2 * tails[-1][1])
    floors = [(tail << bits) // total[1] for tail, _ in tails]  # of F(-reach - 1), F(-reach), ..., F(-1)
    ceilings = [_share_up(tail, total[0], bits) for _, tail in tails]
    whole = 1 << bits
    starts = ceilings + [whole - tail for tail in reversed(floors)]
    ends = floors[1:] + [whole - tail for tail in reversed(ceilings)]
    return Enclosure(first=1 - len(weights), starts=starts[:-1], ends=ends)


def _exp_down(exponent: Fraction, precision: int) -> Interval:
    """2**precision exp(-exponent), enclosed; exponent > 0."""
    shift = precision + 16
    least = (exponent.numerator << shift) // exponent.denominator
    return exp_bounds(least + 1, shift, precision)[0], exp_bounds(least, shift, precision)[1]


def _product(a: Interval, b: Interval, precision: int) -> Interval:
    return a[0] * b[0] >> precision, (a[1] * b[1] >> precision) + 1


def _geometric(first: int, ratio: int, precision: int) -> int:
    """first + first r + first r**2 + ..., r at most ratio / 2**precision < 1; rounded up."""
    return -((-first << precision) // ((1 << precision) - ratio))


def _share_up(part: int, whole: int, bits: int) -> int:
    return -((-part << bits) // whole)


_RUNS_GUARD = 128  # bits beyond the wanted ones: after k steps a weight is known to k units, a sum to k**2


@final
class RunCounts:
    """P(K = k) proportional to (1 - gamma)^k Gamma(k + eta) / (Gamma(eta) k!), k >= 1.

    Args:
        shape: eta, in (-1, 100].
        stopping_rate: gamma, in [1e-9, 1).
    """

    __slots__ = ("_go_on", "_shape", "_stop")

    def __init__(self, shape: float, stopping_rate: float) -> None:
        self._shape = Fraction(shape)
        self._stop = Fraction(stopping_rate)
        self._go_on = 1 - self._stop

    def draw(self, source: RandomSource) -> int:
        """One number of runs."""
        word, bits = 0, 0
        while True:
            word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD
            count = self.decide(word, bits)
            if count is not None:
                return count

    def decide(self, word: int, bits: int) -> int | None:
        """The number that every real in [word, word + 1) / 2**bits stands for; None if more bits are needed."""
        precision = bits + _RUNS_GUARD
        total = self.total(precision)
        least, most = word * total[0], (word + 1) * total[1]  # of 2**(bits + precision) U times all weights
        top = self._go_on.numerator * self._shape.denominator
        shift = (self._go_on.denominator * self._shape.denominator).bit_length() - 1  # both are powers of two
        step = self._go_on.numerator * self._shape.numerator
        low = high = 1 << precision  # the first weight
        sum_low = sum_high = 0
        k = 1
        while True:
            sum_low, sum_high = sum_low + low, sum_high + high
            if most <= sum_low << bits:
                return k  # it is not below the weights before: that has been seen a step earlier
            if least < sum_high << bits:
                return None
            # w(k + 1) = w(k) (1 - gamma) (k + eta) / (k + 1)
            factor = top * k + step
            k += 1
            low, high = (low * factor >> shift) // k, (high * factor >> shift) // k + 1

    def total(self, precision: int) -> Interval:
        """The sum of all weights, the first taken as 2**precision; enclosed.

        It is (y / eta) phi(z) with phi(z) = (e^z - 1) / z, z = eta log(1 / gamma), over 1 - gamma: sums of terms that
        are not negative, so that nothing cancels; phi(-y) = phi(y) / (1 + y phi(y)).
        """
        low, high = _log_inverse(self._stop, precision)
        size = abs(self._shape)
        y = low * size.numerator // size.denominator, high * size.numerator // size.denominator + 1
        phi = _exp_quotient(y, precision)
        low, high = low * phi[0] >> precision, (high * phi[1] >> precision) + 1
        if self._shape < 0:
            one = 1 << precision
            low = (low << precision) // (one + (y[1] * phi[1] >> precision) + 1)
            high = (high << precision) // (one + (y[0] * phi[0] >> precision)) + 1
        top, bottom = self._go_on.denominator, self._go_on.numerator
        return low * top // bottom, high * top // bottom + 1


def _log_inverse(value: Fraction, precision: int) -> Interval:
    """2**precision log(1 / value) for a dyadic value in (0, 1), enclosed."""
    bits = value.numerator.bit_length()  # value = f 2**-halvings, f in [1/2, 1)
    halvings = value.denominator.bit_length() - 1 - bits
    two = _twice_atanh(1, 3, precision)
    rest = _twice_atanh((1 << bits) - value.numerator, (1 << bits) + value.numerator, precision)
    return halvings * two[0] + rest[0], halvings * two[1] + rest[1]


def _twice_atanh(top: int, bottom: int, precision: int) -> Interval:
    """2**precision 2 atanh(top / bottom) for a quotient in [0, 1/3], enclosed: 2 (x + x**3 / 3 + ...)."""
    low, high = (top << precision) // bottom, (top << precision) // bottom + 1
    sum_low, sum_high, n = low, high, 1
    while high > 1:
        low, high = low * top**2 // bottom**2, high * top**2 // bottom**2 + 1
        n += 2
        sum_low, sum_high = sum_low + low // n, sum_high + high // n + 1
    return 2 * sum_low, 2 * (sum_high + 1)  # the terms left out are at most 1/9, 1/81, ... of one unit


def _exp_quotient(y: Interval, precision: int) -> Interval:
    """2**precision (e^y - 1) / y for y / 2**precision >= 0, enclosed: 1 + y / 2 + y**2 / 6 + ..."""
    low = high = sum_low = sum_high = 1 << precision
    n = 1
    while high > 1 or (n + 1) << precision < 4 * y[1]:
        n += 1
        low, high = (low * y[0] >> precision) // n, (high * y[1] >> precision) // n + 1
        sum_low, sum_high = sum_low + low, sum_high + high
    return sum_low, sum_high + 1  # each term left out is at most a quarter of the one before
