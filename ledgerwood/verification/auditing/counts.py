"""Lower bounds from counts of one event: how often it happened with the row, and how often without it.

The event, and every other choice (an epsilon, a prior, mostly a direction), was fixed before these outputs were drawn.
docs/explanation/auditing.md proves each bound.
"""

import math

from scipy import stats

from ledgerwood import _validate
from ledgerwood.verification.auditing.result import level, small_probability

GUARD = 1e-7
"""Relative. scipy's beta quantiles and tails were measured within 5.1e-9 of 50 digits, the worst at 10^9 runs (docs,
rounding-of-bounds); up to 10^4 runs within 1e-13."""
_SHARE = 0.05
"""Of alpha: spent on how often the event happens at all, where delta > 0."""


def binomial_lower(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson's lower confidence bound on a probability, one-sided, rounded down.

    Source: Clopper and Pearson 1934; docs/explanation/auditing.md#clopper-pearson.
    """
    if successes == 0:
        return 0.0
    return max(0.0, float(stats.beta.ppf(alpha, successes, trials - successes + 1)) * (1.0 - GUARD))


def binomial_upper(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson's upper confidence bound on a probability, one-sided, rounded up."""
    if successes == trials:
        return 1.0
    return min(1.0, float(stats.beta.isf(alpha, successes + 1, trials - successes)) * (1.0 + GUARD))


def log_odds_from_below(successes: int, trials: int, alpha: float) -> float:
    """The lower bound on log(p / (1 - p)), at least 0: of the rarer side, whose digits are kept; rounded down."""
    rest = binomial_upper(trials - successes, trials, alpha)
    return max(0.0, math.log1p(-rest) - math.log(rest) - GUARD) if rest < 0.5 else 0.0


def clopper_pearson(
    with_row: int, runs_with: int, without: int, runs_without: int, *, delta: float, alpha: float
) -> float:
    """Epsilon from two independent binomial counts, in one direction; half of alpha each.

    Args:
        with_row, without: runs in which the event happened, with the row and without it.
        runs_with, runs_without: runs in all.
        delta: at which epsilon is bounded.
        alpha: one-sided error.

    Source: docs/explanation/auditing.md#clopper-pearson.
    """
    check_counts(with_row, runs_with)
    check_counts(without, runs_without)
    alpha, delta = level(alpha), small_probability("delta", delta)
    low = binomial_lower(with_row, runs_with, alpha / 2.0) - delta
    if low <= 0.0:
        return 0.0
    return max(0.0, math.log(low / binomial_upper(without, runs_without, alpha / 2.0)))


def randomised_labels(with_row: int, without: int, runs: int, *, delta: float, alpha: float) -> float:
    """Epsilon from runs whose data set was drawn by a fair coin, each: the exact test; one level, no nuisance.

    Of the runs in which the event happened, each was one with the row with probability at most
    e^epsilon / (1 + e^epsilon) + delta / (2 s (1 + e^epsilon)), s the event's probability over both labels.

    Args:
        with_row, without: runs in which the event happened, by label.
        runs: runs in all, of both labels.
        delta: at which epsilon is bounded; where it is 0, s does not matter and all of alpha is spent on one binomial.
        alpha: one-sided error.

    Source: docs/explanation/auditing.md#randomised-labels; Steinke, Nasr and Jagielski 2023 for delta = 0.
    """
    check_labelled(with_row, without, runs)
    alpha, delta = level(alpha), small_probability("delta", delta)
    inside = with_row + without
    if inside == 0:
        return 0.0
    if delta == 0.0:
        return log_odds_from_below(with_row, inside, alpha)
    rest = binomial_upper(without, inside, alpha * (1.0 - _SHARE))
    least = binomial_lower(inside, runs, alpha * _SHARE)
    # 1 - rest = (e^epsilon + delta / (2 least)) / (1 + e^epsilon), solved for e^epsilon.
    if least == 0.0:
        return 0.0
    numerator = binomial_lower(with_row, inside, alpha * (1.0 - _SHARE)) - delta / (2.0 * least)
    return max(0.0, math.log(numerator / rest)) if numerator > 0.0 else 0.0


def hockey_stick(correct: int, runs: int, *, epsilon: float, alpha: float) -> float:
    """A lower bound on delta at `epsilon` from guesses; a run has the row with probability 1 / (1 + e^epsilon).

    A guess "with the row" inside the event and "without" outside of it is right with probability
    (e^epsilon + p - e^epsilon q) / (1 + e^epsilon), which is at most (e^epsilon + delta(epsilon)) / (1 + e^epsilon).

    Args:
        correct: right guesses.
        runs: all guesses.
        epsilon: in nats, which fixed the coin.
        alpha: one-sided error.

    Source: docs/explanation/auditing.md#hockey-stick.
    """
    check_counts(correct, runs)
    alpha, epsilon = level(alpha), _validate.non_negative("epsilon", epsilon, "nats")
    accuracy = binomial_lower(correct, runs, alpha)
    # accuracy - (1 - accuracy) e^epsilon, without a difference of two large numbers
    # (beyond 700 nats 0 follows anyway: accuracy was lowered by 1e-7)
    return max(0.0, accuracy - (1.0 - accuracy) * math.exp(min(epsilon, 700.0)) * (1.0 + 1e-15))


def check_labelled(with_row: int, without: int, runs: int) -> None:
    """Refuse numbers of runs with the event, by label, that cannot be."""
    check_counts(with_row, runs)
    check_counts(without, runs)
    check_counts(with_row + without, runs)


def check_counts(successes: int, trials: int) -> None:
    """Refuse numbers of runs that cannot be."""
    _validate.count("trials", trials, "runs", minimum=1)
    _validate.count("successes", successes, "runs", minimum=0)
    if successes > trials:
        raise _validate.fail("successes", successes, f"at most {trials}", "runs")
