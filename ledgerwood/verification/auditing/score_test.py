"""The restricted-likelihood test of two binomial counts, inverted in epsilon: nearly the best that counts can say.

`score` trusts the normal distribution of its statistic ("large counts"). docs/explanation/auditing.md#score.
"""

import math

from scipy import stats

from ledgerwood.verification.auditing.counts import check_counts, clopper_pearson
from ledgerwood.verification.auditing.result import level, small_probability

_HALVINGS = 60
_LARGEST = 700.0
_FEW = 30
"""Runs with the event and without the row, below which the normal law is not trusted: the error at 5% grows past 6%."""


def score(with_row: int, runs_with: int, without: int, runs_without: int, *, delta: float, alpha: float) -> float:
    """Epsilon from two independent binomial counts, in one direction, by the score test; assumption "large counts".

    The least epsilon at which (p1^ - e^epsilon p2^ - delta) / s is at most the normal quantile, s its standard
    deviation under the likeliest p1 = e^epsilon p2 + delta. With fewer than 30 events without the row
    it is Clopper and Pearson's bound, which needs no normal distribution.

    Args:
        with_row, without: runs in which the event happened, with the row and without it.
        runs_with, runs_without: runs in all.
        delta: at which epsilon is bounded.
        alpha: one-sided error.

    Source: Farrington and Manning 1990; Miettinen and Nurminen 1985; docs/explanation/auditing.md#score.
    """
    check_counts(with_row, runs_with)
    check_counts(without, runs_without)
    alpha, delta = level(alpha), small_probability("delta", delta)
    if without < _FEW or runs_with - with_row < _FEW:
        return clopper_pearson(with_row, runs_with, without, runs_without, delta=delta, alpha=alpha)
    quantile = float(stats.norm.isf(alpha)) * (1.0 + 1e-12)

    def refused(epsilon: float) -> bool:
        return _statistic(with_row, runs_with, without, runs_without, math.exp(epsilon), delta) > quantile

    if not refused(0.0):
        return 0.0
    low, high = 0.0, math.log(max(1.0, runs_without / without)) + 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low


def _statistic(k1: int, n1: int, k2: int, n2: int, factor: float, delta: float) -> float:
    excess = k1 / n1 - factor * (k2 / n2) - delta
    p2 = _restricted(k1, n1, k2, n2, factor, delta)
    p1 = min(1.0, factor * p2 + delta)
    variance = p1 * (1.0 - p1) / n1 + factor * factor * p2 * (1.0 - p2) / n2
    return excess / math.sqrt(variance) if variance > 0.0 else math.copysign(math.inf, excess)


def _restricted(k1: int, n1: int, k2: int, n2: int, factor: float, delta: float) -> float:
    """The p2 that makes the counts likeliest with p1 = factor p2 + delta: where a falling slope is 0."""
    low, high = 0.0, min(1.0, (1.0 - delta) / factor)
    for _ in range(_HALVINGS):
        p2 = 0.5 * (low + high)
        p1 = factor * p2 + delta
        if not 0.0 < p2 < 1.0 or p1 >= 1.0:
            break
        rising = factor * (k1 / p1 - (n1 - k1) / (1.0 - p1)) + (k2 / p2 - (n2 - k2) / (1.0 - p2)) > 0.0
        low, high = (p2, high) if rising else (low, p2)
    return 0.5 * (low + high)
