"""Lower bounds from counts of one event: how often it happened with the row, and how often without it.

The event, and whatever else is chosen (a direction, an epsilon, a prior), was fixed before these outputs were drawn.
docs/explanation/auditing.md proves each bound.
"""

import math

import numpy as np
from scipy import stats

from ledgerwood import _validate
from ledgerwood.verification.auditing.result import level, small_probability

_GUARD = 1e-9
"""Relative: quantiles of scipy are within far less of the true ones."""
_SHARE = 0.05
"""Of alpha: spent on how often the event happens at all, where delta > 0."""
_HALVINGS = 60


def binomial_lower(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson's lower confidence bound on a probability, one-sided, rounded down.

    Source: Clopper and Pearson 1934; docs/explanation/auditing.md#clopper-pearson.
    """
    if successes == 0:
        return 0.0
    return max(0.0, float(stats.beta.ppf(alpha, successes, trials - successes + 1)) * (1.0 - _GUARD))


def binomial_upper(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson's upper confidence bound on a probability, one-sided, rounded up."""
    if successes == trials:
        return 1.0
    return min(1.0, float(stats.beta.isf(alpha, successes + 1, trials - successes)) * (1.0 + _GUARD))


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
    _check_counts(with_row, runs_with)
    _check_counts(without, runs_without)
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
    _check_counts(with_row + without, runs)
    alpha, delta = level(alpha), small_probability("delta", delta)
    inside = with_row + without
    if inside == 0:
        return 0.0
    if delta == 0.0:
        odds = binomial_lower(with_row, inside, alpha)
        return max(0.0, math.log(odds / (1.0 - odds))) if odds > 0.0 else 0.0
    share = binomial_lower(with_row, inside, alpha * (1.0 - _SHARE))
    least = binomial_lower(inside, runs, alpha * _SHARE)
    # share = (e^epsilon + delta / (2 least)) / (1 + e^epsilon), solved for e^epsilon.
    if least == 0.0:
        return 0.0
    numerator = share - delta / (2.0 * least)
    if numerator <= 0.0:
        return 0.0
    return max(0.0, math.log(numerator / (1.0 - share)))


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
    _check_counts(correct, runs)
    alpha, epsilon = level(alpha), _validate.non_negative("epsilon", epsilon, "nats")
    accuracy = binomial_lower(correct, runs, alpha)
    # accuracy - (1 - accuracy) e^epsilon, without a difference of two large numbers
    return max(0.0, accuracy - (1.0 - accuracy) * math.exp(epsilon) * (1.0 + 1e-15))


def one_run_p_value(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """A bound on how likely so many right guesses are under (epsilon, delta), of canaries that fair coins include.

    Args:
        correct: right guesses.
        guesses: of both kinds, "included" and "left out", whose numbers were fixed beforehand.
        canaries: all of them, those that nothing was guessed of too.

    Source: Steinke, Nasr and Jagielski 2023, Theorem 5.2; docs/explanation/auditing.md#one-run.
    """
    _check_counts(correct, guesses)
    _check_counts(guesses, canaries)
    epsilon, delta = _validate.non_negative("epsilon", epsilon, "nats"), small_probability("delta", delta)
    law = stats.binom(guesses, 1.0 / (1.0 + math.exp(-epsilon)))
    beta = float(law.sf(correct - 1))
    if delta == 0.0 or correct == 0:
        return min(1.0, beta)
    steps = np.arange(1, correct + 1)
    slope = float(np.max((law.sf(correct - 1 - steps) - beta) / steps))
    return min(1.0, beta + 2.0 * canaries * delta * max(slope, 0.0))


def one_run(correct: int, guesses: int, canaries: int, *, delta: float, alpha: float) -> float:
    """Epsilon from one run with canaries: what `one_run_p_value` refuses at level alpha.

    Source: Steinke, Nasr and Jagielski 2023, Theorem 5.2; docs/explanation/auditing.md#one-run.
    """
    alpha = level(alpha)
    if one_run_p_value(correct, guesses, canaries, epsilon=0.0, delta=delta) >= alpha:
        return 0.0
    low, high = 0.0, 1.0
    while high < 700.0 and one_run_p_value(correct, guesses, canaries, epsilon=high, delta=delta) < alpha:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if one_run_p_value(correct, guesses, canaries, epsilon=middle, delta=delta) < alpha:
            low = middle
        else:
            high = middle
    return low


def _check_counts(successes: int, trials: int) -> None:
    _validate.count("trials", trials, "runs", minimum=1)
    _validate.count("successes", successes, "runs", minimum=0)
    if successes > trials:
        raise _validate.fail("successes", successes, f"at most {trials}", "runs")
