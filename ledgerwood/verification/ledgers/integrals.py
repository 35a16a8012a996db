"""The verifier's two quadratures in mpmath: over a normal distribution, and over an interval."""

import math
from collections.abc import Callable

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf

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
