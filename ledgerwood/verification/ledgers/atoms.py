"""The discrete pairs behind events, enumerated in mpmath, and the verifier's two quadratures.

One quadrature is over a normal distribution, one over an interval. Nothing here is shared with `ledgerwood.accounting`.
docs/explanation/ledger.md#verification.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from mpmath import MPContext

from ledgerwood.verification.ledgers.effort import EXPONENTIAL, counting, spend

mp = MPContext()
"""A context of its own: nobody else's working precision reaches in here, and none is left behind."""
mpf = mp.mpf
for _name, _cost in (("exp", 1), ("log", 1), ("log1p", 4), ("expm1", 4), ("erfc", 6)):
    setattr(mp, _name, counting(getattr(mp, _name), _cost * EXPONENTIAL, lambda: int(mp.dps)))

Number = Any
"""An mpmath real; mpmath ships no types."""
Points = tuple[tuple[Number, Number], ...]

_MOST_INTEGERS = 1 << 18
_MOST_POOLS = 1 << 12


def worst_shift(epsilon: Number, value: Callable[[Number, Number, Number, Number], Number]) -> Number:
    """The largest value(e^t, e^{t - epsilon}, Q of the latter, Q of the former) over 0 < t < epsilon.

    A scan, finer towards both ends, then golden sections around its best point: any t gives a lower bound, and the
    scan is there so that nothing rests on the function having one maximum.
    """

    def at(t: Number) -> Number:
        up, down = mp.exp(t), mp.exp(t - epsilon)
        light = (1 - down) / (up - down)
        return value(up, down, 1 - light, light)

    ends = [mpf(2) ** -k / 16 for k in range(24, 0, -1)]
    scan = [*ends, *(mpf(i) / 16 for i in range(1, 16)), *(1 - x for x in reversed(ends))]
    values = [at(epsilon * x) for x in scan]
    best = max(range(len(scan)), key=values.__getitem__)
    low = epsilon * (scan[best - 1] if best else 0)
    high = epsilon * (scan[best + 1] if best + 1 < len(scan) else 1)
    # The maximum is flat: 1e-10 of the bracket is 1e-20 of the value.
    return max(values[best], -least_between(lambda t: -at(t), low, high, 48))


def least_between(function: Callable[[Number], Number], low: Number, high: Number, sections: int) -> Number:
    """The least value of a function with one minimum on low .. high, by golden sections."""
    ratio = (mp.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(sections):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def table_atoms(given: Points) -> list[tuple[Number, Number]]:
    """(epsilon, Q of that log ratio) of the pair with the greatest convex profile through no more than the points.

    The profile lies on the lines x -> delta_i + slope (x - e^eps_i); at each x the greatest convex function below the
    points is the least chord over pairs of points, (-1, 1) being one of them (a line through it mirrors itself).
    """
    least, points = mpf(1), [(mpf(-1), mpf(1))]
    for epsilon, delta in given:
        if delta < least:
            least = delta
            points.append((mp.exp(epsilon), delta))
    corners: list[tuple[Number, Number]] = []  # of the lower hull, whose slopes rise
    for x, y in points:
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            corners.pop()
        corners.append((x, y))
    slopes = [(w - y) / (v - x) for (x, y), (v, w) in itertools.pairwise(corners)] + [mpf(0)]
    return [
        (mp.log(x), after - before) for (x, _), before, after in zip(corners[1:], slopes[:-1], slopes[1:], strict=True)
    ]


def curve_divergence(rho: Number | None, given: Points, order: Number) -> Number:
    """The least Renyi divergence at `order` that a statement allows: rho times the order, or the chords of its points.

    (a - 1) D_a is convex, and 0 at 1.
    """
    if rho is not None:
        return rho * order
    points = [(mpf(1), mpf(0)), *((a, (a - 1) * divergence) for a, divergence in given)]
    chords = [
        y if a == order else y + (v - y) * (order - a) / (b - a)
        for i, (a, y) in enumerate(points)
        for b, v in points[i:]
        if a <= order <= b and (a < b or a == order)
    ]
    return min(chords, default=mp.inf) / (order - 1)


def laplace_integers(scale: Number, shift: int) -> list[tuple[Number, Number]]:
    """(log likelihood ratio, Q) of the discrete Laplace: what lies beyond 0 and beyond the shift is one atom each.

    Of a wide shift, integers are pooled, which is post-processing: what is computed from the pools is a lower bound.
    """
    decay = mp.exp(-1 / scale)
    ends = (-shift / scale, 1 / (1 + decay)), (shift / scale, decay**shift / (1 + decay))
    if shift <= _MOST_POOLS:
        inner = [((2 * z - shift) / scale, (1 - decay) / (1 + decay) * decay**z) for z in range(1, shift)]
        return [ends[0], *inner, ends[1]]
    edges = [1 + (shift - 1) * i // _MOST_POOLS for i in range(_MOST_POOLS + 1)]
    without = [(decay**a - decay**b) / (1 + decay) for a, b in itertools.pairwise(edges)]
    with_unit = [
        (decay ** (shift - b + 1) - decay ** (shift - a + 1)) / (1 + decay) for a, b in itertools.pairwise(edges)
    ]
    return [ends[0], *((mp.log(p / q), q) for p, q in zip(with_unit, without, strict=True)), ends[1]]


def normal_integers(scale: Number, shift: int, power: Number) -> list[tuple[Number, Number]]:
    """(log likelihood ratio, Q) of each integer that matters to a moment of `power` of the discrete Gaussian.

    Mass beyond e^{-800} is left out.
    """
    reach = int(mp.ceil(40 * scale)) + 1
    left, right = -reach - int(power) * shift, reach + (int(power) + 1) * shift
    if right - left > _MOST_INTEGERS:
        raise ValueError(f"a discrete Gaussian over {right - left} integers is too wide to be enumerated")
    spend((right - left) * EXPONENTIAL)
    total = mp.jtheta(3, 0, mp.exp(-1 / (2 * scale**2)))
    return [
        (shift * (z - mpf(shift) / 2) / scale**2, mp.exp(-(mpf(z) ** 2) / (2 * scale**2)) / total)
        for z in range(left, right + 1)
    ]


def skellam_integers(variance: Number, shift: int, power: Number, level: int) -> list[tuple[Number, Number]] | None:
    """(P, Q) of the integers that matter to a moment of `power`; None if they are too many.

    What is left out of the distribution at each end is below e^{-level}.
    """
    peak = _skellam_peak(variance, max(abs(power), abs(1 - power), 2) * shift)
    near = _skellam_reach(variance, level) + shift
    far = int(peak) + _skellam_reach(mp.sqrt(variance**2 + peak**2), level) + shift
    if near + far > 8 * _MOST_INTEGERS:  # far more than anybody sums without being asked to verify it
        return None
    left, right = (near, far) if power > 1 else (far, near + shift)
    law = _skellam_law(variance, max(left, right) + shift, mp.prec)
    return [(law[abs(z - shift)], law[abs(z)]) for z in range(-left, right + 1)]


def _skellam_peak(variance: Number, moved: Number) -> Number:
    """Where sqrt(v^2 + x^2) asinh(x / v) is at least order times shift: the terms of a moment fall from there on."""
    x = mpf(moved)
    while mp.sqrt(variance**2 + (x / 2) ** 2) * mp.asinh(x / 2 / variance) > moved:
        x /= 2
    return x


def _skellam_reach(variance: Number, level: int) -> int:
    """A whole number that the noise passes with probability below e^{-level}, by Bernstein: k^2 / (2 v + 2 k / 3)."""
    return int(mp.ceil(level / mpf(3) + mp.sqrt((level / mpf(3)) ** 2 + 2 * level * variance)))


@functools.lru_cache(maxsize=4)
def _skellam_law(variance: Number, last: int, precision: int) -> list[Number]:
    """The probabilities of 0 .. last, by Miller's backward recurrence of the Bessel functions I_k(variance)."""
    start = last + 2 * _skellam_reach(variance, precision)
    spend(start * 5_000)
    above, value, kept = mpf(0), mpf(1), [mpf(0)] * (last + 1)
    total = mpf(0)
    for k in range(start, -1, -1):
        if k <= last:
            kept[k] = value
        total += value if k == 0 else 2 * value
        above, value = value, 2 * k / variance * value + above
    return [one / total for one in kept]


def skellam_bend(variance: Number) -> Number:
    """A bound on log(pi(k)^2 / (pi(k-1) pi(k+1))) over all k: exact at k = 0, and one formula for all others."""
    others = min(mpf(1) / 2, 1 / mp.sqrt(variance**2 + mpf(3) / 4))
    return max(2 * mp.log(mp.besseli(0, variance) / mp.besseli(1, variance)), -mp.log(1 - others))


def integer_gaussian_excess(scale: Number, shift: int, power: Number) -> Number:
    """E_Q[r^p] - 1 of a discrete Gaussian: that of the normal distribution, times theta(p shift) / theta(0)."""
    growth = mp.exp(power * (power - 1) * shift**2 / (2 * scale**2))
    if scale > 50:  # theta(x) / theta(0) is 1 to within 4 e^{-2 pi^2 scale^2}, less than 1e-20000
        return growth - 1
    centre = power * shift - mp.nint(power * shift)
    reach = int(mp.ceil(20 * scale)) + 2

    def theta(offset: Number) -> Number:
        return mp.fsum(mp.exp(-((z - offset) ** 2) / (2 * scale**2)) for z in range(-reach, reach + 1))

    return growth * theta(centre) / theta(mpf(0)) - 1


_WIDEST_SHIFT = 128.0
_MOST_POINTS = 500_000
_AGREEMENT = 1e-12  # relative, between a quadrature and its refinement


def over_normal(term: Callable[[Number], Number], mu: Number, slope: float, p: float) -> Number:
    """E[term(mu z - mu^2 / 2)] over a standard normal z, by the trapezoidal rule, halved until it settles.

    The integrand is analytic in a strip of half-width pi / mu, so the rule converges geometrically. Where it would
    take too many points (a tiny multiplier, an enormous order), a lower bound in closed form, which for tiny
    multipliers is the value to all digits that matter.
    """
    if not settles(mu, p):
        return _over_normal_from_below(mu, mpf(slope), mpf(p))
    width, half = float(mu), float(mu) ** 2 / 2.0

    def log_size(z: float) -> float:  # the log of the integrand to within a factor that does not matter
        x = width * z - half
        rise = slope * math.expm1(min(x, 600.0))
        log_s = math.log1p(rise) if x <= 600.0 else math.log(slope) + x
        if abs(log_s) < 1.0:
            bend = 2.0 * math.log(abs(rise)) if rise != 0.0 else -1e300
            size = bend + max(0.0, (p - 2.0) * log_s)
        elif p > 1.0:
            size = max(p * log_s, 0.0)
        else:
            size = max(p * log_s, log_s)
        return size - 0.5 * z * z

    first, last, h = _trapezoids(width, p)
    peak = max(log_size(first + (last - first) * i / 4000.0) for i in range(4001))

    def total(offset: float, step: float) -> Number:
        result = mpf(0)
        for i in range(math.floor(first / step), math.ceil(last / step) + 1):
            z = (i + offset) * step
            if log_size(z) > peak - 110.0:
                exact = mpf(z)
                result += mp.exp(-exact * exact / 2) * term(mu * exact - mu * mu / 2)
        return result * step / mp.sqrt(2 * mp.pi)

    coarse = total(0.0, h)
    for _ in range(8):
        fine = (coarse + total(0.5, h)) / 2
        if abs(fine - coarse) <= _AGREEMENT * abs(fine):
            return fine
        coarse, h = fine, h / 2.0
    raise ValueError("the verifier's integral over a sampled Gaussian does not settle")


def settles(mu: Number, p: float) -> bool:
    """Returns whether `over_normal` integrates to all its digits, or bounds the moment from below."""
    if mu > _WIDEST_SHIFT:
        return False
    first, last, h = _trapezoids(float(mu), p)
    return (last - first) / h < _MOST_POINTS


def _trapezoids(width: float, p: float) -> tuple[float, float, float]:
    """Both ends of the range that counts, and the first step."""
    first, last = -24.0 + min(p, 0.0) * width, 24.0 + max(p, 1.0) * width
    return first, last, 2.0 * math.pi * min(math.pi / width, 6.0) / 70.0


def _over_normal_from_below(mu: Number, slope: Number, p: Number) -> Number:
    """At most E[s^p] - 1, s = 1 - slope + slope r with r = e^{mu z - mu^2 / 2}.

    For p > 1, (x + y)^p >= x^p + y^p. For p < 0, s^p falls in r: what lies below any threshold of r has at least
    its mass times s^p there.
    """
    if p > 1:
        return max((1 - slope) ** p + slope**p * mp.exp(p * (p - 1) * mu * mu / 2) - 1, mpf(0))
    found = mpf(0)
    for threshold in (3 * mu / 8, mu / 4, mpf(0), mu / 2 - 1, mu / 2 - 40 / mu):
        below = mp.erfc(-threshold / mp.sqrt(2)) / 2
        found = max(found, below * (1 - slope + slope * mp.exp(mu * threshold - mu * mu / 2)) ** p - 1)
    return found


def over_unit(function: Callable[[Number], Number]) -> Number:
    """The integral over [0, 1] by tanh-sinh quadrature, split towards both ends until the estimated error is small."""
    digits = mp.dps
    # mpmath judges errors by their size alone, so the integrand is brought to about 1.
    scale = max(abs(function(mpf(i) / 8)) for i in range(9)) or mpf(1)

    def precise(x: Number) -> Number:  # the integrand cancels where s is near 1, so it keeps all digits
        with mp.workdps(digits):
            return function(x) / scale

    for levels in (1, 4, 12, 30):
        left = [mpf(2) ** -k for k in range(levels, 0, -1)]
        points = [mpf(0), *left, *(1 - x for x in reversed(left[:-1])), mpf(1)]
        with mp.workdps(20):
            value, error = mp.quad(precise, points, error=True)
        if error <= _AGREEMENT * abs(value):
            return value * scale
    raise ValueError("the verifier's integral over a Laplace pair does not settle")
