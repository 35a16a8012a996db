"""Gaussian differential privacy: the pair N(0, 1), N(mu, 1) and its (epsilon, delta) curve, in closed form.

The profile itself belongs to the Gaussian event; here are its inverses (docs/explanation/pricing.md#gdp).
"""

import math

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting import _search
from ledgerwood.accounting.costs.conversion import exp_up
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_profile
from ledgerwood.errors import InvalidParameter


def log_delta(mu: float, epsilons: FloatArray) -> FloatArray:
    """log of the Gaussian profile at each epsilon >= 0, shape (k,); rounded up; -inf for mu = 0.

    Source: Balle and Wang 2018, Theorem 8; Dong, Roth, Su 2019, Corollary 2.13.
    """
    if mu == 0.0:
        return np.full(np.shape(epsilons), -np.inf)
    return gaussian_log_profile(mu, epsilons)


def delta(mu: float, epsilon: float) -> float:
    """The delta of mu-GDP at `epsilon` (nats, >= 0), rounded up."""
    mu, epsilon = _validate.non_negative("mu", mu, "1"), _validate.non_negative("epsilon", epsilon, "nats")
    return exp_up(float(log_delta(mu, np.array([epsilon]))[0]))


def epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-GDP at `delta` in (0, 1), in nats, rounded up."""
    mu, target = _validate.non_negative("mu", mu, "1"), math.log(_open_probability(delta))
    bracket = _search.least_fitting(lambda epsilons: log_delta(mu, epsilons) <= target, math.inf)
    if bracket is None:
        raise InvalidParameter(f"mu={mu!r} is too large: its epsilon at delta={delta!r} is above 1e12 nats")
    return bracket[1]


def mu(epsilon: float, delta: float) -> float:
    """The largest mu whose profile is at most `delta` at `epsilon` (nats), rounded down.

    Raises:
        InvalidParameter: epsilon negative, delta outside (0, 1), or a mu outside 1e-12..1e12.
    """
    epsilon, target = _validate.non_negative("epsilon", epsilon, "nats"), math.log(_open_probability(delta))
    point = np.array([epsilon])

    def found(multiplier: float) -> float:
        return min(float(log_delta(1.0 / multiplier, point)[0]), 0.0)

    def excess(multiplier: float) -> float:
        return _search.log_ratio(target, found(multiplier))

    misfit, fit = _search.bracket_outward(excess, 1e-12, 1e12)
    if misfit is None or fit is None:
        raise InvalidParameter(
            f"epsilon={epsilon!r} nats at delta={delta!r} cannot be reached by Gaussian noise: no mu in "
            "1e-12..1e12 has it; take a larger epsilon or delta"
        )
    multiplier = _search.root_from_above(excess, misfit, fit, tolerance=4e-16)[1]
    while found(multiplier) > target:
        multiplier *= 1.0 + 2.0**-52
    return math.nextafter(1.0 / multiplier, 0.0)


def _open_probability(delta: float) -> float:
    value = _validate.rate("delta", delta, "probability")
    if value >= 1.0:
        raise _validate.fail("delta", delta, "in (0, 1)", "probability")
    return value
