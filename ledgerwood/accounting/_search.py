"""Searches on monotone functions that end on the private side: the point returned was itself tried and fits."""

import bisect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import PrivacyError

Fits = Callable[[FloatArray], NDArray[np.bool_]]
"""Points (k,) to whether each fits."""

_SMALLEST, _LARGEST, _SECTIONS = 1e-12, 1e12, 32
_ALIKE = 1e-9  # values of an excess no further apart say nothing about its direction
_CUT = 20.0  # an excess beyond this is cut off or noisy
_EDGE = 1e-12  # relative width to which the end of a domain is found


def least_fitting(fits: Fits, cap: float) -> tuple[float, float] | None:
    """The bracket (misfit, fit) of the least x in [0, cap] that fits, to the last ulp or two.

    `fits` maps points (k,) to booleans (k,) and is monotone: false below a threshold, true above it. A finite
    `cap` is known to fit and is not tried. Both ends are 0 if 0 fits; None if nothing up to `cap`
    (or 1e12, whichever is less) fits.
    """
    limit = min(cap, _LARGEST)
    points = np.concatenate(([0.0], np.geomspace(_SMALLEST, _LARGEST, 81)))
    points = np.append(points[points < limit], limit)
    known = math.isfinite(cap) and cap <= _LARGEST
    lower, upper = _cell(fits, points, last_fits=known)
    if upper is None:
        return None
    if lower is None:
        return 0.0, 0.0
    while upper - lower > 2.0 * math.ulp(upper):
        inner = np.linspace(lower, upper, _SECTIONS + 1)
        inner = inner[(inner > lower) & (inner <= upper)]
        new_lower, new_upper = _cell(fits, np.concatenate(([lower], inner)), first_misfits=True, last_fits=True)
        if new_lower is None or new_upper is None or (new_lower, new_upper) == (lower, upper):
            break
        lower, upper = new_lower, new_upper
    return lower, upper


def _cell(
    fits: Fits,
    points: FloatArray,
    *,
    first_misfits: bool = False,
    last_fits: bool = False,
) -> tuple[float | None, float | None]:
    """The neighbours (last misfit, next point) among ascending points; None for an end that does not exist."""
    start, stop = int(first_misfits), len(points) - int(last_fits)
    answers = np.concatenate(
        (np.zeros(start, bool), np.asarray(fits(points[start:stop]), bool), np.ones(int(last_fits), bool))
    )
    misfits = np.flatnonzero(~answers)
    if misfits.size == 0:
        return None, float(points[0])
    last = int(misfits[-1])
    return float(points[last]), float(points[last + 1]) if last + 1 < len(points) else None


def root_from_above(
    excess: Callable[[float], float], misfit: float, fit: float, *, tolerance: float
) -> tuple[float, float]:
    """The bracket (misfit, fit) around the root of a decreasing function of x > 0, in log x, by Chandrupatla's method.

    Args:
        excess: positive where x does not fit; finite.
        misfit: an x with excess(x) > 0.
        fit: an x > misfit with excess(x) <= 0.
        tolerance: relative width at which to stop.

    The method of Chandrupatla 1997, "A new hybrid quadratic/bisection algorithm".
    """
    last, previous = misfit, fit  # the newest end, and the other one
    f_last, f_previous = excess(last), excess(previous)
    third, f_third = last, f_last
    step = 0.5
    for _ in range(200):
        trial = math.exp(math.log(last) + step * (math.log(previous) - math.log(last)))
        trial = min(max(trial, min(last, previous)), max(last, previous))
        value = excess(trial)
        if math.isnan(value):
            raise PrivacyError(f"the search met a value that is not a number at {trial!r}")
        if (value > 0.0) == (f_last > 0.0):
            third, f_third = last, f_last
        else:
            third, previous, f_third, f_previous = previous, last, f_previous, f_last
        last, f_last = trial, value
        width = abs(math.log(previous / last))
        if width <= tolerance or f_last == 0.0:
            break
        step = 0.5
        if third != previous and f_third != f_previous:
            xi = math.log(last / previous) / math.log(third / previous)
            phi = (f_last - f_previous) / (f_third - f_previous)
            if phi * phi < xi and (1.0 - phi) ** 2 < 1.0 - xi:
                step = f_last / (f_previous - f_last) * f_third / (f_previous - f_third)
                step += (
                    math.log(third / last) / math.log(previous / last)
                    * f_last / (f_third - f_last) * f_previous / (f_third - f_previous)
                )  # fmt: skip
        floor = 0.5 * tolerance / width
        step = min(max(step, floor), 1.0 - floor)
    return (last, previous) if f_last > 0.0 else (previous, last)


def bracket_outward(
    excess: Callable[[float], float], lowest: float, highest: float
) -> tuple[float, float] | tuple[float, None] | tuple[None, float]:
    """(misfit, fit) within a factor of two, found from 1 outward in growing strides, then halved in logarithms.

    `excess` is positive below a threshold and not above it. (highest, None) says that
    nothing up to `highest` fits, (None, lowest) that everything down to `lowest` does.
    """
    upward = excess(1.0) > 0.0
    near, stride = 1.0, 2.0
    while True:
        far = min(near * stride, highest) if upward else max(near / stride, lowest)
        if (excess(far) > 0.0) is not upward:
            break
        if far in (lowest, highest):
            return (far, None) if upward else (None, far)
        near, stride = far, min(stride * stride, 256.0)
    misfit, fit = (near, far) if upward else (far, near)
    while fit > 2.0 * misfit:
        middle = math.sqrt(misfit * fit)
        misfit, fit = (middle, fit) if excess(middle) > 0.0 else (misfit, middle)
    return misfit, fit


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two neighbours among the points tried, one on each side of the threshold.

    Args:
        misfit: where the excess is positive; None if no such point was found.
        fit: where it is not; None if no such point was found.
        falling: whether the excess falls as x grows; None if every point tried has the same excess.
        last: the last point tried in the direction of the threshold.
    """

    misfit: float | None
    fit: float | None
    falling: bool | None
    last: float


def bracket(
    excess: Callable[[float], float],
    inside: Callable[[float], bool],
    start: float,
    limits: tuple[float, float],
    *,
    whole: bool = False,
) -> Bracket:
    """Two neighbours around the threshold of a monotone function of x > 0, in whichever direction it lies.

    Two values that differ say whether the excess falls or rises; the walk then leads towards the threshold alone, in
    growing strides from `start`, so that no far end is tried without need.

    Args:
        excess: positive where x does not fit; monotone, finite.
        inside: whether x is in the domain, an interval that holds `start`.
        start: the first value.
        limits: the least and the largest x to try, in the domain or not.
        whole: whether x is a whole number; then so are `start` and `limits`.
    """
    first = excess(start)
    trails = {upward: [(start, first)] for upward in (True, False)}
    walks = {upward: _outward(excess, inside, start, limits[upward], whole=whole) for upward in (True, False)}
    falling: bool | None = None
    while falling is None and walks:
        for upward in tuple(walks):
            if (step := next(walks[upward], None)) is None:
                del walks[upward]
                continue
            trails[upward].append(step)
            if abs(difference := _cut(step[1]) - _cut(first)) > _ALIKE:
                falling = (difference < 0.0) is upward
                break
    if falling is None:
        return Bracket(start, None, None, start) if first > 0.0 else Bracket(None, start, None, start)
    upward = (first > 0.0) is falling
    trail = trails[upward]
    while (trail[-1][1] > 0.0) is (first > 0.0):
        if (step := next(walks[upward], None) if upward in walks else None) is None:
            last = trail[-1][0]
            return Bracket(last, None, falling, last) if first > 0.0 else Bracket(None, last, falling, last)
        trail.append(step)
    near, far = trail[-2][0], trail[-1][0]
    return Bracket(near, far, falling, far) if first > 0.0 else Bracket(far, near, falling, far)


def _outward(
    excess: Callable[[float], float], inside: Callable[[float], bool], start: float, limit: float, *, whole: bool
) -> Iterator[tuple[float, float]]:
    """Points from `start` (which is left out) to `limit` or the domain's end, with their excess."""
    near, stride, upward = start, 2.0, limit > start
    while near != limit:
        far = min(near * stride, limit) if upward else max(near / stride, limit)
        far = float(math.floor(far)) if whole else far
        if not inside(far):
            limit = last_inside(inside, near, far, whole=whole)
            continue
        yield far, excess(far)
        near, stride = far, min(stride * stride, 256.0)


def last_inside(inside: Callable[[float], bool], near: float, far: float, *, whole: bool) -> float:
    """The last point of the domain on the way from `near`, in it, to `far`, outside; by halving the logarithm."""
    for _ in range(80):
        middle = math.sqrt(near) * math.sqrt(far)
        middle = float(math.floor(middle)) if whole else middle
        if middle in (near, far):
            if not whole or abs(far - near) <= 1.0:
                break
            middle = near + 1.0 if far > near else near - 1.0
        near, far = (middle, far) if inside(middle) else (near, middle)
        if not whole and abs(math.log(far / near)) < _EDGE:
            break
    return near


def close_fit(
    excess: Callable[[float], float],
    inside: Callable[[float], bool],
    near: float,
    *,
    falling: bool,
    slope: float,
    close: float,
) -> float | None:
    """A fit that is `close` (relative) to the root of an excess that is costly and rough in its last digits.

    Each trial aims half of `close` beyond the root, so that a good slope ends the search after two or three.

    Args:
        excess: positive where x does not fit; monotone in x > 0, and nearly linear in its logarithm.
        inside: whether x is in the domain.
        near: a guess of the root, in the domain.
        falling: whether the excess falls as x grows.
        slope: a guess of its slope's size, per unit of log x.
        close: relative; also the roughness that the slope cannot be read off.
    """
    sign = 1.0 if falling else -1.0
    z = last = sign * math.log(near)  # the excess falls as z grows
    misfits: list[tuple[float, float]] = []
    fits: list[tuple[float, float]] = []
    for turn in range(100):
        while not inside(math.exp(sign * z)):
            z = 0.5 * (z + last)
        if turn and z == last:
            break  # at the end of the domain
        last, over = z, excess(math.exp(sign * z))
        bisect.insort(misfits if over > 0.0 else fits, (z, over))
        if fits and -fits[0][1] <= close * slope:
            break
        if fits and misfits and fits[0][0] - misfits[-1][0] <= close:
            break
        pair = [*misfits[-1:], *fits[:1]] if misfits and fits else [*misfits[-2:], *fits[:2]]
        far = max(abs(value) for _, value in pair) >= _CUT
        if len(pair) == 2 and not far:
            (z_low, y_low), (z_high, y_high) = pair
            slope = min(max((y_low - y_high) / (z_high - z_low), 0.3 * slope), 3.0 * slope)
        if misfits and fits:
            (z_low, y_low), (z_high, _) = pair
            z = 0.5 * (z_low + z_high)
            if turn % 3 and not far:
                z = min(z_low + y_low / slope + 0.5 * close, z_high - 0.25 * close)
        else:
            step = over / slope + 0.5 * close
            z += math.copysign(min(max(abs(step), 0.25 * close * 2.0**turn), 2.0), step)
    return math.exp(sign * fits[0][0]) if fits else None


def whole_root(excess: Callable[[float], float], misfit: float, fit: float) -> tuple[float, float]:
    """The neighbouring whole numbers (misfit, fit) around the root of a monotone function, by secants in log x.

    `misfit` and `fit` are whole, in either order, with excess(misfit) > 0 >= excess(fit).
    """
    for turn in itertools.count():
        apart = abs(fit - misfit)
        if apart <= 1.0:
            return misfit, fit
        over, under = excess(misfit), excess(fit)
        trial = math.floor(math.sqrt(misfit) * math.sqrt(fit))
        if turn % 3 and max(over, -under) < _CUT:  # twice in three turns: a little beyond the secant, so as to enclose
            share = over / (over - under)
            share += math.copysign(0.05, 0.5 - share) * min(share, 1.0 - share)
            trial = round(math.exp(math.log(misfit) + share * math.log(fit / misfit)))
        trial = min(max(trial, int(min(misfit, fit)) + 1), int(max(misfit, fit)) - 1)
        misfit, fit = (trial, fit) if excess(float(trial)) > 0.0 else (misfit, trial)
    raise AssertionError


def _cut(value: float) -> float:
    """An excess without the rounding noise of its far ends."""
    return max(min(value, _CUT), -_CUT)


def log_ratio(log_target: float, log_found: float) -> float:
    """An excess that is smooth and nearly linear in the logarithm of a noise multiplier: positive where the found
    log probability is above its target; both at most 0; cut off at 60.
    """
    if log_found == -math.inf:
        return -60.0
    return max(min(math.log(-log_target) - math.log(max(-log_found, 1e-26)), 60.0), -60.0)
