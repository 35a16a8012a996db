"""A lower confidence bound on a mean of independent numbers in [0, 1]. docs/explanation/poisoning.md#confidence."""

import math

import numpy as np

from ledgerwood.accounting.events.base import FloatArray

_ULP = 2.0**-52
_HALVINGS = 100


def lower_mean(values: FloatArray, alpha: float) -> float:
    """A lower bound on the mean of the expectations; it fails with probability at most `alpha`, for any distributions.

    The larger of two bounds, each of which fails with probability at most alpha / 2: Hoeffding's in terms of the mean,
    and one in terms of the geometric mean, which is the better one where the numbers are alike. Rounded down.

    Args:
        values: independent, in [0, 1], shape (n,), n >= 1; n was chosen before they were seen.
        alpha: in (0, 1).

    Source: Hoeffding 1963, Theorem 1, first form; docs/explanation/poisoning.md#confidence.
    """
    return max(_entropy_bound(values, alpha / 2.0), _geometric_bound(values, alpha / 2.0))


def _entropy_bound(values: FloatArray, alpha: float) -> float:
    """The least m that n kl(mean, m) <= -log alpha leaves, for m below the mean."""
    n = len(values)
    mean = min(math.fsum(values) / n, 1.0)
    mean *= 1.0 - 2.0 * _ULP
    if mean <= 0.0:
        return 0.0
    target = -math.log(alpha) * (1.0 + 4.0 * _ULP)
    low, high = 0.0, mean  # low is refused, or 0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        one = mean * math.log(mean / middle)
        rest = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - middle))
        guard = 8.0 * _ULP * (1.0 + abs(one) + abs(rest))
        if n * (one + rest - guard) * (1.0 - 4.0 * _ULP) > target:
            low = middle
        else:
            high = middle
    return low


def _geometric_bound(values: FloatArray, alpha: float) -> float:
    """(alpha times the product of the values)^(1 / n): the product exceeds mean^n / alpha that rarely, by Markov."""
    if float(values.min()) == 0.0:
        return 0.0
    logs = [*np.log(values).tolist(), math.log(alpha)]
    log_mean = math.fsum(logs) / len(values)
    return math.exp(log_mean - 8.0 * _ULP * (1.0 + math.fsum(map(abs, logs)) / len(values)))
