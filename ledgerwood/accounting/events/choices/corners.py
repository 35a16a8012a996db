"""Profiles of discrete pairs: linear in e^t between the log ratios. docs/explanation/events.md#discrete."""

import math
from typing import NamedTuple

import numpy as np

from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import FloatArray

# By how much, relative, a log ratio may be off: the profile of log ratios (1 + d) l, at (1 + d) t, is at most
# sum Q (e^l - e^t) (1 + d) e^{d l}, so that the rest of it is within the guard.
_RATIO_SLACK = 4.0 * renyi.ULP


class Corners(NamedTuple):
    """A profile that is linear in e^t between the log ratios; arrays of one shape, rising in `log_ratio`."""

    log_ratio: FloatArray
    log_profile: FloatArray  # at the log ratios
    log_mass: FloatArray  # of Q, from each log ratio on
    log_error: FloatArray  # of the profile's terms, each times the size of the exponents that it was made of
    log_outside: float  # of a bound on what the profile owes to what is beyond the last atom, anywhere


def corners_of(log_weight: FloatArray, log_ratio: FloatArray, log_mass_beyond: float, log_beyond: float) -> Corners:
    """The corners of a discrete pair; only sums of positive terms, in long doubles.

    Args:
        log_weight: log Q at each atom, shape (n,).
        log_ratio: rising, shape (n,).
        log_mass_beyond: log of Q beyond the last atom.
        log_beyond: log of the profile at the last log ratio.
    """
    weight = np.append(log_weight, log_mass_beyond).astype(np.longdouble)
    mass = np.logaddexp.accumulate(weight[::-1])[::-1][:-1]
    rise = log_ratio[1:] + renyi.log1mexp(-np.diff(log_ratio)) + mass[1:]
    profile = np.logaddexp.accumulate(np.append(rise, np.longdouble(log_beyond))[::-1])[::-1]
    sizes = np.log(_size(log_ratio[1:], mass[1:]))
    last = np.longdouble(log_beyond + math.log(2.0 + abs(log_beyond)) if math.isfinite(log_beyond) else log_beyond)
    error = np.logaddexp.accumulate(np.append(rise + sizes, last)[::-1])[::-1]
    outside = float(np.logaddexp(log_mass_beyond + log_ratio[-1], log_beyond)) + 1e-9
    parts = [part.astype(np.float64) for part in (profile, mass, error)]
    return Corners(log_ratio, parts[0], parts[1], parts[2], outside)


def _size(log_ratio: FloatArray, log_mass: FloatArray) -> FloatArray:
    """How many units of 2^-53 a product of the two is uncertain by, relative."""
    return np.asarray(2.0 + np.abs(log_ratio) + np.abs(log_mass))


def interpolated(corners: Corners, t: FloatArray) -> FloatArray:
    """H(t) = H(l) + (e^l - e^t) Q(from l on), l the next log ratio, rounded up; the last corner's value beyond it."""
    profile, guard = _between(corners, t * (1.0 - _RATIO_SLACK))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(profile), -np.inf, np.minimum(profile + guard, 0.0))


def interpolated_below(corners: Corners, t: FloatArray) -> FloatArray:
    """The same rounded down, without what is beyond the last atom; -inf from the last corner on."""
    moved = t * (1.0 + _RATIO_SLACK)
    profile, guard = _between(corners, moved)
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.log(-np.expm1(np.minimum(corners.log_outside - profile, 0.0)))
        below = profile + 2.0 * inside - 2.0 * guard  # twice, for the rounding of the logarithm
    known = (moved < corners.log_ratio[-1]) & np.isfinite(profile) & (guard < 1e-3)
    return np.where(known, below, -np.inf)


def _between(corners: Corners, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log of the profile of these log ratios at t as computed, and a bound on its rounding."""
    index = np.minimum(np.searchsorted(corners.log_ratio, t, side="right"), corners.log_ratio.size - 1)
    level = corners.log_ratio[index]
    mass = corners.log_mass[index]
    fall = level + renyi.log1mexp(np.minimum(t - level, 0.0)) + mass
    profile = np.logaddexp(corners.log_profile[index], fall)
    error = np.logaddexp(corners.log_error[index], fall + np.log(_size(level, mass)))
    count = corners.log_ratio.size * float(np.finfo(np.longdouble).eps) / renyi.ULP
    with np.errstate(invalid="ignore"):
        condition = np.where(np.isneginf(profile), 0.0, np.exp(error - profile))
        return profile, renyi.ULP * ((32.0 + count) * (1.0 + np.abs(profile)) + 8.0 * condition)
