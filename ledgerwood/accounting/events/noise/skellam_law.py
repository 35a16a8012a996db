"""The Skellam distribution to the last place, and what lies beyond a window. docs/explanation/events.md#skellam."""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import FloatArray

_WHOLE_LAW = 800.0  # -log of the mass beyond a table
_BITS = 160  # of the fixed point in which the Bessel ratios are computed
_SUM_BITS = 120  # of the sums of their logarithms: all of these are multiples of 2^-120


class SkellamLaw(NamedTuple):
    """The Skellam law: log pi(0) - log pi(k) for k = 0 .., as an unevaluated sum high + low; shapes (n,)."""

    variance: float
    log_centre: float
    high: FloatArray
    low: FloatArray

    def atoms(self, z: NDArray[np.int64], shift: int) -> tuple[FloatArray, FloatArray]:
        """log Q and log dP/dQ at the integers z."""
        own, other = np.abs(z), np.abs(z - shift)
        log_ratio = (self.high[own] - self.high[other]) + (self.low[own] - self.low[other])
        return self.log_centre - self.high[own], log_ratio

    def log_beyond(self, start: int) -> float:
        """log of a bound on the mass of k > start >= 0: a geometric series."""
        first = self.log_centre - float(self.high[start + 1])
        return first - float(renyi.log1mexp(np.array(float(self.high[start + 1] - self.high[start + 2]))))

    def log_above(self, powers: FloatArray, last: int, shift: int, q: float) -> FloatArray:
        """log of a bound on E_Q[s^p - 1 - p (s - 1)] over z > last >= shift; inf where the terms may not fall.

        Each kind of bound on the terms falls faster than a geometric series: events.md#skellam-window.
        """
        log_r, log_q = float(self.high[last] - self.high[last - shift]), math.log(q)
        log_s = np.logaddexp(math.log1p(-q), log_q + log_r) if q < 1.0 else log_r
        near, far = math.asinh((last + 0.5 - shift) / self.variance), math.asinh((last + 1.0) / self.variance)
        bend = largest_bend_beside_centre(self.variance)

        def series(first: FloatArray, order: FloatArray, slower: float) -> FloatArray:
            fall = order * near - (order - 1.0) * far - slower - 16 * renyi.ULP * order * far
            rest = first - fall - renyi.log1mexp(-np.maximum(fall, 1e-300))
            rounding = 64 * renyi.ULP * (order * self.high[last] + abs(log_q) + 1.0)
            return np.where(fall > 0.0, self.log_centre - self.high[last] + rest + rounding, np.inf)

        scale = np.log(np.abs(powers)) + np.log(np.abs(powers - 1.0))
        m = np.maximum(powers, 2.0)
        squares = series(scale - math.log(2.0) + 2.0 * (log_q + log_r) + (m - 2.0) * log_s, m, 0.0)
        low = series(scale + powers * log_s + math.log(log_r), powers, math.log1p(bend / near))
        linear = np.log(np.abs(powers)) + log_q + self.log_beyond(last - shift) + 1e-9
        return np.where(powers > 2.0, squares, np.minimum(squares, np.where(powers > 1.0, low, linear)))

    def log_below(self, powers: FloatArray, last: int, shift: int, q: float) -> FloatArray:
        """The same over z < -last: there 1 - q <= s <= 1, and the terms are at most p - 1 (p > 1) or r^p (p < 0)."""
        mass, log_q = self.log_beyond(last) + 1e-9, math.log(q)
        with np.errstate(invalid="ignore"):
            left_out = math.log1p(-q) if q < 1.0 else -math.inf
            curved = np.where(powers < 2.0, (powers - 2.0) * left_out, 0.0) + 2.0 * log_q
            curved += np.log(np.abs(powers)) + np.log(np.abs(powers - 1.0)) - math.log(2.0)
        above = np.log(np.maximum(powers - 1.0, 1e-300)) + mass
        reflected = self.log_above(np.where(powers < 0.0, 1.0 - powers, 2.0), last + shift, shift, 1.0)
        return np.minimum(curved + mass, np.where(powers > 1.0, above, reflected))


def largest_bend_beside_centre(variance: float) -> float:
    """A bound on log(pi(k)^2 / (pi(k - 1) pi(k + 1))) over all k other than 0: events.md#skellam."""
    return -math.log1p(-min(0.5, 1.0 / math.hypot(variance, math.sqrt(0.75)))) * (1.0 + 8 * renyi.ULP)


def law_of(variance: float, size: int) -> SkellamLaw:
    """The distribution at 0 .. size, and at least as far as its mass is above e^-800."""
    needed = max(size, reach(variance, _WHOLE_LAW) + 2)
    return _tabulated(variance, 1 << needed.bit_length())


@functools.lru_cache(maxsize=16)
def _tabulated(variance: float, size: int) -> SkellamLaw:
    sums = [0, *itertools.accumulate(int(math.ldexp(step, _SUM_BITS)) for step in log_steps(variance, size))]
    rounded = [float(total) for total in sums]
    rest = [float(total - int(value)) for total, value in zip(sums, rounded, strict=True)]
    high, low = (np.ldexp(np.array(part), -_SUM_BITS) for part in (rounded, rest))
    others = math.fsum(np.exp(-high[1:][high[1:] < 745.0]))
    return SkellamLaw(variance, -math.log1p(2.0 * others), high, low)


@functools.lru_cache(maxsize=4)
def log_steps(variance: float, size: int) -> list[float]:
    """log(I_{m-1}(v) / I_m(v)) for m = 1 .. size, each to its last place.

    R_m = 2 m / v + 1 / R_{m+1}, backwards, in integers; the error of the start is below 2^-200 when m = size.
    """
    first = reach(variance, variance * float(rate(np.array(size / variance))) + 80.0) + 1
    numerator, denominator = variance.as_integer_ratio()
    one, twice = 1 << _BITS, (2 * denominator) << _BITS
    squared = one * one
    ratio = int(math.exp(math.asinh((first + 1.0) / variance)) * 2.0**60) << (_BITS - 60)
    steps = [0.0] * size
    for m in range(first, 0, -1):
        ratio = twice * m // numerator + squared // ratio
        if m <= size:
            steps[m - 1] = math.log1p((ratio - one) / one)
    return steps


@functools.lru_cache(maxsize=256)
def reach(variance: float, level: float) -> int:
    """The least whole number that Skellam noise passes with probability at most e^-level, by Chernoff's bound."""

    def beyond(k: int) -> bool:
        return variance * float(rate(np.array(k / variance))) >= level

    high = 1
    while not beyond(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


@functools.lru_cache(maxsize=256)
def peak_of(variance: float, moved: float) -> float:
    """Where the terms of E_Q[r^a] peak or thereabouts, sqrt(v^2 + x^2) asinh(x / v) = a d: only a window's width."""
    low, high = 0.0, moved
    while high - low > 0.01 * high:
        middle = 0.5 * (low + high)
        below = math.hypot(variance, middle) * math.asinh(middle / variance) < moved
        low, high = (middle, high) if below else (low, middle)
    return high


def rate(y: FloatArray) -> FloatArray:
    """y asinh y - sqrt(1 + y^2) + 1, the exponent of Chernoff's bound on the mass of v y and more, over v."""
    return np.asarray(y * np.arcsinh(y) - y * (y / (1.0 + np.hypot(1.0, y))))
