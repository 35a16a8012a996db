"""Lower bounds from counts of one event, and ROC curves with simultaneous bands.

Lower bounds from counts of one event: how often it happened with the row, and how often without it.

The event, and every other choice (a direction, an epsilon, a prior), was fixed before these outputs were drawn.
docs/explanation/auditing.md proves each bound.

A ROC curve with bands that hold at all thresholds simultaneously, so that a threshold may be chosen afterwards.

Two families. "relative" keeps its relative error in the tails: Clopper and Pearson's bounds at a geometric set of order
statistics, which is fixed by the number of scores, with alpha shared among them; between two of them a distribution
function lies between their bounds. "dkw" has the same absolute error everywhere: the inequality of Dvoretzky, Kiefer
and Wolfowitz with Massart's constant. docs/explanation/auditing.md#bands.
"""

import math
from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
from scipy import stats

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.result import Scores, level, small_probability

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


Band = Literal["relative", "dkw"]

_RATIO = 1.25


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RocBand:
    """Bounds on both positive rates of "score above the threshold", simultaneously valid with probability 1 - alpha.

    Args:
        thresholds: rising, shape (k,): every score that was seen.
        false_alarms, right_alarms: as counted, shape (k,).
        false_lower, false_upper: bounds on the probability of a false positive, shape (k,).
        right_lower, right_upper: bounds on the probability of a true positive, shape (k,).
        alpha: probability that any of them is wrong anywhere.
    """

    thresholds: FloatArray
    false_alarms: FloatArray
    right_alarms: FloatArray
    false_lower: FloatArray
    false_upper: FloatArray
    right_lower: FloatArray
    right_upper: FloatArray
    alpha: float

    def epsilon(self, delta: float) -> float:
        """The largest epsilon of any threshold, with the row against without and the other way, for both tails.

        It is a lower bound at the band's alpha: no further correction for the choice of threshold is needed.
        """
        pairs = (
            (self.right_lower, self.false_upper),
            (1.0 - self.false_upper, 1.0 - self.right_lower),
            (self.false_lower, self.right_upper),
            (1.0 - self.right_upper, 1.0 - self.false_lower),
        )
        best = 0.0
        for likely, rare in pairs:
            above = (likely - delta > rare) & (rare > 0.0)
            if above.any():
                ratio = (likely[above] - delta) / rare[above]
                best = max(best, math.log(float(ratio.max())) - GUARD)
        return max(best, 0.0)


def roc_band(scores: Scores, *, alpha: float, band: Band = "relative") -> RocBand:
    """Bands around the ROC of scores, half of alpha for each of the two samples.

    Args:
        scores: with the row and without it, independent runs; they fixed no part of the score function.
        alpha: probability that any bound is wrong at any threshold.
        band: "relative" for small rates, "dkw" for the middle.

    Raises:
        InvalidParameter: no scores, or NaN among them.

    Source: Massart 1990 for "dkw"; Clopper and Pearson 1934 for "relative"; docs/explanation/auditing.md#bands.
    """
    alpha = level(alpha)
    if band not in get_args(Band):
        raise _validate.fail("band", band, f"one of {get_args(Band)}", "rule")
    first, second = _sorted(scores.with_row), _sorted(scores.without)
    thresholds = np.unique(np.concatenate([first, second]))
    right = len(first) - np.searchsorted(first, thresholds, side="right")
    false = len(second) - np.searchsorted(second, thresholds, side="right")
    right_lower, right_upper = _bounds(right, len(first), alpha / 2.0, band)
    false_lower, false_upper = _bounds(false, len(second), alpha / 2.0, band)
    return RocBand(
        thresholds=thresholds,
        false_alarms=false / len(second),
        right_alarms=right / len(first),
        false_lower=false_lower,
        false_upper=false_upper,
        right_lower=right_lower,
        right_upper=right_upper,
        alpha=alpha,
    )


def _bounds(above: np.ndarray, runs: int, alpha: float, band: Band) -> tuple[FloatArray, FloatArray]:
    """Of P(score > t) where `above` of the scores are, for all t at once, shape of `above`."""
    if band == "dkw":
        # Two-sided: alpha = 2 exp(-2 n margin^2), valid for every alpha below 1 (Massart).
        margin = math.sqrt(math.log(2.0 / alpha) / (2.0 * runs)) * (1.0 + GUARD)
        return np.maximum(above / runs - margin, 0.0), np.minimum(above / runs + margin, 1.0)
    ranks = _ranks(runs)
    share = alpha / (2.0 * len(ranks))
    # With U the probability above the r-th highest score: Beta(r, n - r + 1), for each r, of whatever law.
    low = np.asarray(stats.beta.ppf(share, ranks, runs - ranks + 1)) * (1.0 - GUARD)
    high = np.asarray(stats.beta.isf(share, ranks, runs - ranks + 1)) * (1.0 + GUARD)
    # `above` scores are above t: t is below the r-th highest for r <= above, and at or above it for r > above.
    at_least = np.searchsorted(ranks, above, side="right") - 1
    lower = np.where(at_least >= 0, low[np.maximum(at_least, 0)], 0.0)
    next_rank = np.searchsorted(ranks, above, side="right")
    upper = np.where(next_rank < len(ranks), high[np.minimum(next_rank, len(ranks) - 1)], 1.0)
    return np.maximum(lower, 0.0), np.minimum(upper, 1.0)


def _ranks(runs: int) -> np.ndarray:
    """1, 2, 3, ... by ever larger steps from both ends, fixed by `runs` alone."""
    steps = np.unique(np.floor(_RATIO ** np.arange(0.0, math.log(max(runs, 2)) / math.log(_RATIO) + 1.0)))
    ranks = np.concatenate([steps, runs + 1 - steps])
    return np.unique(ranks[(ranks >= 1) & (ranks <= runs)])


def _sorted(scores: FloatArray) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not values.size or bool(np.isnan(values).any()):
        raise InvalidParameter(f"scores of shape {values.shape} must be at least one number, no NaN (unit: scores)")
    return np.sort(values)
