"""Profiles of discrete pairs: linear in e^t between the log ratios. docs/explanation/events.md#discrete."""

import math
from typing import NamedTuple

import numpy as np

from ledgerwood.accounting import renyi
from ledgerwood.accounting.events.base import FloatArray


class Corners(NamedTuple):
    """A profile that is linear in e^t between the log ratios; arrays of one shape, rising in `log_ratio`."""

    log_ratio: FloatArray
    log_profile: FloatArray  # at the log ratios
    log_mass: FloatArray  # of Q, from each log ratio on
    log_error: FloatArray  # of the profile's terms, each times the size of the exponents that it was made of


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
    return Corners(log_ratio, *(part.astype(np.float64) for part in (profile, mass, error)))


def _size(log_ratio: FloatArray, log_mass: FloatArray) -> FloatArray:
    """How many units of 2^-53 a product of the two is uncertain by, relative."""
    return np.asarray(2.0 + np.abs(log_ratio) + np.abs(log_mass))


def interpolated(corners: Corners, t: FloatArray) -> FloatArray:
    """H(t) = H(l) + (e^l - e^t) Q(from l on), l the next log ratio; the last corner's value beyond it."""
    index = np.minimum(np.searchsorted(corners.log_ratio, t, side="right"), corners.log_ratio.size - 1)
    level = corners.log_ratio[index]
    mass = corners.log_mass[index]
    fall = level + renyi.log1mexp(np.minimum(t - level, 0.0)) + mass
    profile = np.logaddexp(corners.log_profile[index], fall)
    error = np.logaddexp(corners.log_error[index], fall + np.log(_size(level, mass)))
    count = corners.log_ratio.size * float(np.finfo(np.longdouble).eps) / renyi.ULP
    with np.errstate(invalid="ignore"):
        condition = np.where(np.isneginf(profile), 0.0, np.exp(error - profile))
        raised = profile + renyi.ULP * ((32.0 + count) * (1.0 + np.abs(profile)) + 4.0 * condition)
    return np.where(np.isneginf(profile), -np.inf, np.minimum(raised, 0.0))
