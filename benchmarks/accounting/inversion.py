"""A judge of its own: epsilon by inverting the transform of the privacy loss at the saddle point.

delta(epsilon) = 1 / (2 pi i) * integral of exp(K(s) - s epsilon) / (s (s + 1)) ds over a line of real part c > 0, with
K(s) = log E_P exp(s L), added up over the draws. Plain quadrature in floats that shares no code with the library and
proves nothing: it says None where its integrand does not die out (few hits, atoms), and is near 1e-7 elsewhere.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from benchmarks.accounting.cases import Draw

Complex = NDArray[np.complex128]
_DEVIATIONS, _POINTS = 14.0, 141  # of the line: its length, in deviations of the integrand, and its points
_FAR = np.linspace(_DEVIATIONS, 200.0, 373)  # where an integrand that died out may come back: laws with atoms
_DEAD = 1e-10


def _nodes(draw: Draw, reach: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of quadrature weights under the law at 0, and the losses there, both without sampling."""
    family, multiplier, _, _ = draw
    if family == "gaussian":  # the trapezoid is geometric for what is analytic
        step = min(multiplier / 24.0, 0.1 * multiplier**2)
        x = np.arange(-14.0 * multiplier, 14.0 * multiplier + reach + 1.0, step)
        log_weight = math.log(step / (multiplier * math.sqrt(2.0 * math.pi))) - 0.5 * (x / multiplier) ** 2
        return log_weight, (x - 0.5) / multiplier**2
    ends = [(-50.0 * multiplier, 0.0, 40), (0.0, 1.0, 8), (1.0, 1.0 + 50.0 * multiplier, 40)]
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = [np.linspace(low, high, pieces + 1) for low, high, pieces in ends]
    x = np.concatenate([(0.5 * (e[1:] + e[:-1])[:, None] + 0.5 * np.diff(e)[:, None] * nodes).ravel() for e in edges])
    w = np.concatenate([(0.5 * np.diff(e)[:, None] * weights).ravel() for e in edges])
    log_weight = np.log(w / (2.0 * multiplier)) - np.abs(x) / multiplier
    return log_weight, (np.abs(x) - np.abs(x - 1.0)) / multiplier


def transform(draw: Draw, s: Complex, *, remove: bool) -> Complex:
    """K(s) of all draws of one kind, in one direction, at points of positive real part, shape (k,)."""
    family, multiplier, rate, count = draw
    if family == "gaussian" and rate == 1.0:
        return np.asarray(count * s * (s + 1.0) / (2.0 * multiplier**2))
    log_weight, loss = _nodes(draw, float(s.real.max()))
    if rate < 1.0:
        loss = np.logaddexp(math.log1p(-rate), math.log(rate) + loss)
    exponents = np.multiply.outer(1.0 + s if remove else -s, loss) + log_weight
    top = exponents.real.max(axis=1)
    return np.asarray(count * (top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))))


def log_delta(draws: tuple[Draw, ...], epsilon: float, *, remove: bool) -> float | None:
    """log delta at `epsilon` > 0 in one direction; None where the integrand does not die out."""

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        total = sum(transform(draw, np.array([c + 0j]), remove=remove)[0].real for draw in draws)
        return float(total - c * epsilon - math.log(c * (c + 1.0)))

    def line(t: NDArray[np.float64]) -> Complex:
        s = c + 1j * t
        return sum((transform(draw, s, remove=remove) for draw in draws), -s * epsilon - np.log(s * (s + 1.0)))

    c = math.exp(minimize_scalar(height, bounds=(-12.0, 6.0), method="bounded", options={"xatol": 1e-4}).x)
    step, middle = 1e-3, math.log(c)
    curvature = (height(middle + step) - 2.0 * height(middle) + height(middle - step)) / (step * c) ** 2
    if not curvature > 0.0:
        return None
    deviation = 1.0 / math.sqrt(curvature)
    t = np.linspace(0.0, _DEVIATIONS * deviation, _POINTS)
    exponents = line(t)
    top = float(exponents[0].real)
    if max(exponents[-8:].real.max(), line(_FAR * deviation).real.max()) > top + math.log(_DEAD):
        return None
    total = float(np.trapezoid(np.exp(exponents - top).real, t))
    return top + math.log(total / math.pi) if total > 0.0 else None


class _Unknown(Exception):
    """The integral has no answer."""


def epsilon(draws: tuple[Draw, ...], delta: float, near: float) -> float | None:
    """Epsilon at `delta`, the larger direction, looked for around `near` > 0; None where it cannot be told."""

    def excess(value: float) -> float:
        found = [log_delta(draws, value, remove=remove) for remove in (True, False)]
        if None in found:
            raise _Unknown
        return max(one for one in found if one is not None) - math.log(delta)

    low, high = 0.98 * near, 1.02 * near
    try:
        for _ in range(8):
            if excess(low) > 0.0 > excess(high):
                return float(brentq(excess, low, high, xtol=1e-10 * near, rtol=1e-12))
            low, high = 0.5 * low, 1.5 * high
    except _Unknown:
        pass
    return None
