"""Bounds that allow for both directions and for an event and its complement, without a share of alpha for each.

An audit whose direction was not fixed beforehand: of what an event and its complement show, with the row against
without and the other way, the larger counts. Conditional arguments pay for the choice.
docs/explanation/auditing.md#two-sided has the proofs.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.auditing.counts import GUARD, binomial_lower
from ledgerwood.verification.auditing.result import level, small_probability

_SHARE = 0.05
"""Of alpha: spent on how often the event and its complement happen at all, where delta > 0."""
_LARGEST, _HALVINGS = 60.0, 60


def two_sided_labels(
    with_row: int, runs_with: int, without: int, runs_without: int, *, delta: float, alpha: float
) -> float:
    """Epsilon from runs with labels by fair coins, in either direction, for the event or its complement; exact.

    The rarer of the two is looked at, as counted over both labels; then both directions, by one binomial.

    Args:
        with_row, without: runs in which the event happened, by label.
        runs_with, runs_without: runs in all, by label; the labels were drawn by fair coins.
        delta: at which epsilon is bounded.
        alpha: error of the bound, all four statements together.

    Returns:
        Epsilon, in nats; 0 where coins gave all runs one label.

    Source: docs/explanation/auditing.md#two-sided.
    """
    alpha, delta = level(alpha), small_probability("delta", delta)
    if _of_one_label(with_row, runs_with, without, runs_without):
        return 0.0
    runs, inside = runs_with + runs_without, with_row + without
    first, second = (with_row, without) if 2 * inside <= runs else (runs_with - with_row, runs_without - without)
    share = _SHARE if delta > 0.0 else 0.0
    found = _log_odds(max(first, second), first + second, alpha * (1.0 - share))
    if delta == 0.0 or found == 0.0:
        return found
    # q = (e^epsilon + delta / (2 s)) / (1 + e^epsilon) at the least s, solved for e^epsilon.
    least = binomial_lower(first + second, runs, 0.5 * alpha * share)
    if least == 0.0:
        return 0.0
    factor = math.exp(found) - delta / (2.0 * least) * (1.0 + math.exp(found)) * (1.0 + GUARD)
    return max(0.0, math.log(factor)) if factor > 0.0 else 0.0


def _of_one_label(with_row: int, runs_with: int, without: int, runs_without: int) -> bool:
    """Checks the counts; coins may give all runs one label, but there is a run."""
    for name, happened, runs_name, runs in (
        ("with_row", with_row, "runs_with", runs_with),
        ("without", without, "runs_without", runs_without),
    ):
        _validate.count(runs_name, runs, "runs", minimum=0)
        if _validate.count(name, happened, "runs", minimum=0) > runs:
            raise _validate.fail(name, happened, f"at most {runs_name}={runs}", "runs")
    if runs_with + runs_without == 0:
        raise _validate.fail("runs_with + runs_without", 0, "at least 1", "runs")
    return runs_with == 0 or runs_without == 0


def _log_odds(most: int, total: int, alpha: float) -> float:
    """The largest log odds t >= 0 found at which P(max(K, total - K) >= most) <= alpha, rounded down; 0 if none."""
    if 2 * most <= total:
        return 0.0

    def refused(odds: float) -> bool:
        rates = special.expit(np.array([odds, -odds]))
        return float(special.betainc(most, total - most + 1.0, rates).sum()) * (1.0 + GUARD) <= alpha

    return max(0.0, _last(refused) - GUARD)


def two_sided_odds(with_row: int, runs_with: int, without: int, runs_without: int, *, alpha: float) -> float:
    """Epsilon at delta 0 from the odds ratio of a table, given all its margins (Fisher); both directions; exact.

    It is half the log odds ratio at most: the better bound for events that are as likely with the row as their
    complements are without it, such as a randomised response, and a weak one for rare events.

    Args:
        with_row, without: runs in which the event happened, by label.
        runs_with, runs_without: runs in all, fixed beforehand or drawn by coins of any bias.
        alpha: error of the bound, all four statements together.

    Returns:
        Epsilon, in nats; 0 where coins gave all runs one label.

    Source: Fisher 1935; docs/explanation/auditing.md#two-sided.
    """
    alpha, inside = level(alpha), with_row + without
    if _of_one_label(with_row, runs_with, without, runs_without):
        return 0.0
    lowest, highest = max(0, inside - runs_without), min(inside, runs_with)
    if lowest == highest:
        return 0.0
    counts = np.arange(lowest, highest + 1.0)
    weights = _log_choose(runs_with, counts) + _log_choose(runs_without, inside - counts)
    tails = np.minimum(np.logaddexp.accumulate(weights), np.logaddexp.accumulate(weights[::-1])[::-1])
    # Outcomes as far out as this one, in either tail; equal up to rounding counts as equal.
    region = tails <= tails[with_row - lowest] + GUARD

    def refused(epsilon: float) -> bool:
        for slope in (2.0 * epsilon, -2.0 * epsilon):
            tilted = weights + slope * (counts - counts[0])
            outside = special.logsumexp(tilted[region]) - special.logsumexp(tilted)
            if math.exp(float(outside)) * (1.0 + GUARD) > alpha:
                return False
        return True

    return max(0.0, _last(refused) - GUARD)


def _log_choose(total: int, counts: FloatArray) -> FloatArray:
    _validate.count("runs", total, "runs", minimum=1)
    found: FloatArray = (
        special.gammaln(total + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(total - counts + 1.0)
    )
    return found


def _last(refused: Callable[[float], bool]) -> float:
    """The largest value found up to which all is refused, of a rule that refuses less and less."""
    if not refused(0.0):
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low
