"""Bounds that assume Gaussian noise: mu, and its epsilon at a delta. Always name that assumption with them.

docs/explanation/auditing.md#gaussian-scores.
"""

import math

from scipy import stats

from ledgerwood import _validate
from ledgerwood.accounting.costs import gdp
from ledgerwood.verification.auditing.counts import binomial_lower
from ledgerwood.verification.auditing.result import level, small_probability

_LARGEST_MU = 1e6
"""Of which epsilon is stated: 5e11 nats are a lower bound for all that is above."""


def mu_from_counts(right_alarms: int, runs_with: int, false_alarms: int, runs_without: int, *, alpha: float) -> float:
    """Bound mu by one threshold, fixed beforehand: Phi^-1(true positive rate) - Phi^-1(false positive rate).

    Source: Nasr et al. 2023, section 4; docs/explanation/auditing.md#gaussian-scores.
    """
    alpha = level(alpha)
    hit = binomial_lower(right_alarms, runs_with, alpha / 2.0)
    rest = binomial_lower(runs_without - false_alarms, runs_without, alpha / 2.0)
    return max(0.0, float(stats.norm.ppf(hit) + stats.norm.ppf(rest)))


def mu_from_means(mean_with: float, runs_with: int, mean_without: float, runs_without: int, *, alpha: float) -> float:
    """Bound mu by independent scores, N(mu, 1) with the canary and N(0, 1) without: the difference of their means.

    Source: docs/explanation/auditing.md#gaussian-scores.
    """
    alpha = level(alpha)
    _validate.count("runs_with", runs_with, "scores", minimum=1)
    _validate.count("runs_without", runs_without, "scores", minimum=1)
    spread = math.sqrt(1.0 / runs_with + 1.0 / runs_without)
    return max(0.0, mean_with - mean_without - float(stats.norm.isf(alpha)) * spread * (1.0 + 1e-12))


def epsilon_of(mu: float, delta: float) -> float:
    """Epsilon at `delta` of a Gaussian mechanism with this mu, nats, rounded down; 0 where mu is, inf at delta 0."""
    small_probability("delta", delta)
    if mu <= 0.0:
        return 0.0
    return gdp.epsilon(min(mu, _LARGEST_MU), delta) * (1.0 - 1e-9) if delta > 0.0 else math.inf
