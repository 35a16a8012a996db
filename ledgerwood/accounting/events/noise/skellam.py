"""Skellam noise, the difference of two Poisson variables of one mean: on one integer, and on a vector of them.

Sums of Skellam variables are Skellam variables, so that shares of the noise may be added by several parties. The
distribution is computed to the last place, with a bound on what lies beyond a window.
Source: Agarwal, Kairouz and Liu 2021; all that is used is derived in docs/explanation/events.md#skellam.
"""

import functools
import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import Corners, corners_of, interpolated
from ledgerwood.accounting.events.noise.discrete import MOST_ATOMS, whole_sensitivity
from ledgerwood.accounting.events.stated import no_profile, unsampled_moments
from ledgerwood.errors import UnsupportedEvent

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
        """log of a bound on E_Q[s^p - 1 - p (s - 1)] over z > last >= shift; inf if the terms may not decrease.

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
        """Bounds the sum over z < -last: there 1 - q <= s <= 1, and the terms are <= p - 1 (p > 1) or r^p (p < 0)."""
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
    """Estimates the peak of the terms of E_Q[r^a], sqrt(v^2 + x^2) asinh(x / v) = a d; only a window depends on it."""
    low, high = 0.0, moved
    while high - low > 0.01 * high:
        middle = 0.5 * (low + high)
        below = math.hypot(variance, middle) * math.asinh(middle / variance) < moved
        low, high = (middle, high) if below else (low, middle)
    return high


def rate(y: FloatArray) -> FloatArray:
    """y asinh y - sqrt(1 + y^2) + 1, the exponent of Chernoff's bound on the mass of v y and more, over v."""
    return np.asarray(y * np.arcsinh(y) - y * (y / (1.0 + np.hypot(1.0, y))))


_LEFT_OUT = 800.0  # -log of the mass beyond the profile's window
_LEFT_OUT_OF_MOMENTS = 100.0
_LARGE_VARIANCE = 1e8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamEvent(Event):
    """One whole number plus Skellam noise: Poisson(variance / 2) - Poisson(variance / 2), independent.

    docs/explanation/events.md#skellam. A vector is a `SkellamVectorEvent`.

    Args:
        variance: the variance of the noise, 2 mu of Skellam(mu, mu); in [1e-12, 1e12], in squared units of the
            statistic. With the sensitivity it must leave a window of at most 2^18 integers, which a variance of 4e7
            does.
        sensitivity: largest change of the statistic under `adjacency`, a whole number in [1, 2^18].
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: a window of more than 2^18 integers.
    """

    variance: float
    sensitivity: int
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        variance = _variance(self.variance, 1e12)
        object.__setattr__(self, "variance", variance)
        object.__setattr__(self, "sensitivity", whole_sensitivity(self.sensitivity))
        require_adjacency(self.adjacency)
        if reach(variance, _LEFT_OUT) + self.sensitivity > MOST_ATOMS:
            raise UnsupportedEvent(
                f"Skellam noise of variance {variance!r} at sensitivity {self.sensitivity} spreads over more than "
                f"{MOST_ATOMS} integers; state SkellamVectorEvent(variance={variance!r}, "
                f"l2_sensitivity={float(self.sensitivity)!r}), whose Renyi divergences it keeps"
            )

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        corners = skellam_corners(self.variance, self.sensitivity)
        far = t >= corners.log_ratio[-1]
        tail = np.minimum(self._log_tail(np.where(far, t, np.inf)), corners.log_profile[-1])
        return np.where(far, tail, interpolated(corners, np.where(far, 0.0, t)))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        return renyi.guarded(self.log_excess_moments(a, sampling_rate=1.0), a)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        if sampling_rate == 1.0:
            p = np.where(p > 1.0, p, 1.0 - p)  # the pair is symmetric
        octave = np.where(p > 1.0, 1.0, -1.0) * (1.0 + np.ceil(np.log2(np.maximum(np.abs(p), 2.0))))
        out = np.empty_like(p)
        for value in np.unique(octave):
            rows = octave == value
            out[rows] = np.minimum(self._summed(p[rows], sampling_rate), self._bounded(p[rows], sampling_rate))
        return out

    def _summed(self, powers: FloatArray, q: float) -> FloatArray:
        """Moments of powers of one sign, summed over one window, with bounds on the rest; inf if it is too wide."""
        d, v = self.sensitivity, self.variance
        largest = max(float(powers.max()), float(1.0 - powers.min()), 2.0)
        near, peak = reach(v, _LEFT_OUT_OF_MOMENTS) + 2 * d, peak_of(v, largest * d)
        if not peak + near < MOST_ATOMS:
            return np.full_like(powers, np.inf)
        far = math.ceil(peak) + reach(math.hypot(v, peak), _LEFT_OUT_OF_MOMENTS) + d
        if near + far > MOST_ATOMS:
            return np.full_like(powers, np.inf)
        left, right = (near, far) if powers[0] > 1.0 else (far, near)
        law = law_of(v, max(left, right) + d + 2)
        log_weight, log_ratio = law.atoms(np.arange(-left, right + 1), d)
        moments = quadrature.discrete_log_excess(powers, log_weight=log_weight, log_ratio=log_ratio, sampling_rate=q)
        rest = np.logaddexp(law.log_above(powers, right, d, q), law.log_below(powers, left, d, q))
        return np.logaddexp(moments, rest) + 4 * renyi.ULP

    def _bounded(self, powers: FloatArray, q: float) -> FloatArray:
        """q times the bound of a vector with one entry (a moment is convex in q); for p < 0 also that of s >= 1 - q."""
        orders = np.where(powers > 1.0, powers, 1.0 - powers)
        whole = renyi.log_expm1((orders - 1.0) * vector_renyi(orders, self.variance, float(self.sensitivity)))
        if q == 1.0:
            return whole
        least = renyi.log_expm1(np.maximum(powers * math.log1p(-q), 0.0)) + 8 * renyi.ULP
        whole += math.log(q) * (1.0 - 8 * renyi.ULP)
        return np.where(powers < 0.0, np.minimum(least, whole), whole)

    def _log_tail(self, t: FloatArray) -> FloatArray:
        """log of a bound on P where the log ratio is above t: Chernoff's, from v sinh(t / d) + (d - 1) / 2 on."""
        d, v = self.sensitivity, self.variance
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.maximum(np.sinh(t / d * (1.0 - 8 * renyi.ULP)) - 0.5 * (d + 1) / v, 0.0) * (1.0 - 8 * renyi.ULP)
            log_mass = np.where(np.isfinite(y), -v * rate(np.where(np.isfinite(y), y, 0.0)), -np.inf)
        least = -float(np.finfo(np.float64).max)  # a finite epsilon has a mass above 0
        return np.where(np.isposinf(t), -np.inf, np.maximum(renyi.raise_log(np.asarray(log_mass), 64), least))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamVectorEvent(Event):
    """A vector of whole numbers, each with its own Skellam noise, known by a proven bound on its Renyi divergences.

    It has no profile and cannot be sampled. docs/explanation/events.md#skellam-vector.

    Args:
        variance: the variance of the noise on each number, in [1e-12, 1e100], in squared units of the statistic.
        l2_sensitivity: largest L2 norm of the vector's change under `adjacency`, at least 1 (a vector of whole
            numbers does not move by less), at most 1e100, in units of the statistic.
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    variance: float
    l2_sensitivity: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _variance(self.variance, 1e100))
        sensitivity = _validate.positive("l2_sensitivity", self.l2_sensitivity, "units of the statistic")
        if not 1.0 <= sensitivity <= 1e100:
            raise _validate.fail("l2_sensitivity", self.l2_sensitivity, "in [1, 1e100]", "units of the statistic")
        object.__setattr__(self, "l2_sensitivity", sensitivity)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return vector_renyi(renyi.check_orders(orders), self.variance, self.l2_sensitivity)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate)


def vector_renyi(orders: FloatArray, variance: float, l2_sensitivity: float) -> FloatArray:
    """a d^2 L / 2 at whole orders a, the chords of (a - 1) times it between: events.md#skellam-vector."""
    power = orders - 1.0
    whole = np.floor(power)
    share = power - whole
    steps = (whole + 1.0) * (share + 0.5 * whole) / power
    return renyi.raise_by(steps * (l2_sensitivity * l2_sensitivity * _largest_bend(variance)), 16)


@functools.lru_cache(maxsize=64)
def _largest_bend(variance: float) -> float:
    """A bound on log(pi(k)^2 / (pi(k - 1) pi(k + 1))) over all integers k; pi is the mass; about 1 / variance."""
    v = variance
    simple = math.log1p((0.5 + 2.25 / (math.hypot(v, 1.5) + v)) / v)
    at_centre = log_steps(v, 1)[0] if v <= _LARGE_VARIANCE else simple
    return max(2.0 * at_centre * (1.0 + 8 * renyi.ULP), largest_bend_beside_centre(v))


@functools.lru_cache(maxsize=16)
def skellam_corners(variance: float, sensitivity: int) -> Corners:
    """The profile of a `SkellamEvent`, with a bound on what is beyond its window."""
    last = sensitivity + reach(variance, _LEFT_OUT) + 1
    law = law_of(variance, last + 2)
    log_weight, log_ratio = law.atoms(np.arange(max(sensitivity // 2 - 1, 0), last + 1), sensitivity)
    return corners_of(log_weight, log_ratio, law.log_beyond(last), law.log_beyond(last - sensitivity))


def _variance(value: object, largest: float) -> float:
    variance = _validate.positive("variance", value, "squared units of the statistic")
    if not 1e-12 <= variance <= largest:
        raise _validate.fail("variance", value, f"in [1e-12, {largest:g}]", "squared units of the statistic")
    return variance
