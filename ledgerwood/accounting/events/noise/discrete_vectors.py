"""Vectors of discrete Gaussians, priced as a Gaussian release. docs/explanation/events.md#discrete-vectors."""

import math
from fractions import Fraction

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Composed
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.errors import InvalidParameter

_NO_EPSILON = 1e-100  # the least that an ApproximateEvent states
_MOST_COORDINATES = 10**12
_LEAST_SLACK, _LARGEST_SLACK = 1e-200, 1e-3


def discrete_gaussian_vector(
    *, scale: float, l2_sensitivity: float, coordinates: int, adjacency: Adjacency, slack: float = 1e-30
) -> Event:
    """Returns the event of a vector of integers with independent discrete Gaussian noise on each.

    Such noise is a Gaussian of a slightly smaller variance that is rounded at random, except with a total probability
    below `slack`. So the release costs what that Gaussian costs, and `slack` of delta. The worst integer shift need not
    be known. docs/explanation/events.md#discrete-vectors. `ZeroConcentratedEvent` with
    rho = l2_sensitivity^2 / (2 scale^2) is another bound (Canonne, Kamath and Steinke 2020, Theorem 14), which suits
    filters of Rényi divergences and costs more at a given delta. One integer: `DiscreteGaussianEvent`, which is exact.

    Args:
        scale: of each coordinate's noise, whose probabilities are proportional to e^{-z^2 / (2 scale^2)}; units of the
            statistic.
        l2_sensitivity: norm of the largest change, units of the statistic; changes are vectors of integers.
        coordinates: number of integers, 1 to 10^12.
        adjacency: the relation that the sensitivity is for.
        slack: delta that is set aside, in [1e-200, 1e-3]; far below the delta at which the event is priced.

    Raises:
        InvalidParameter: a value outside its bound, or a scale too small for this slack.
    """
    size = _validate.positive("scale", scale, "units of the statistic")
    norm = _validate.positive("l2_sensitivity", l2_sensitivity, "units of the statistic")
    count = _validate.count("coordinates", coordinates, "integers")
    if count > _MOST_COORDINATES:
        raise _validate.fail("coordinates", count, "at most 10^12", "integers")
    left = _validate.positive("slack", slack, "probability")
    if not _LEAST_SLACK <= left <= _LARGEST_SLACK:
        raise _validate.fail("slack", left, "in [1e-200, 1e-3]", "probability")
    # 2 count theta <= slack, with theta <= 2.01 e^{-2 pi^2 s^2}; raised, so that no rounding matters.
    rounding = Fraction((math.log(4.1 * count / left) + 1e-9) / (2.0 * math.pi**2) * (1.0 + 1e-12))
    variance = Fraction(size) ** 2 - rounding
    if variance <= 0:
        least = math.sqrt(rounding)
        raise InvalidParameter(
            f"scale={size!r} must be above {least:.4g} for slack={left!r} and {count} coordinates; state "
            "ZeroConcentratedEvent(rho=l2_sensitivity^2 / (2 scale^2)), or more slack (unit: units of the statistic)",
            parameter="scale",
        )
    multiplier = _directed.float_down(Fraction(_directed.root_down(variance)) / Fraction(norm))
    smooth = GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)
    return Composed((smooth, ApproximateEvent(epsilon=_NO_EPSILON, delta=left, adjacency=adjacency)))
