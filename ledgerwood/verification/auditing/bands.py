"""A ROC curve with bands that hold at all thresholds at once, so that a threshold may be chosen afterwards.

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
from ledgerwood.verification.auditing.counts import GUARD
from ledgerwood.verification.auditing.result import Scores, level

Band = Literal["relative", "dkw"]

_RATIO = 1.25


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RocBand:
    """Bounds on both positive rates of "score above the threshold", all of them at once with probability 1 - alpha.

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
