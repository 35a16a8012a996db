"""Bands of distribution functions and of ROC curves that hold at all points simultaneously.

A threshold may be chosen afterwards. Three families:

* "berk_jones" has the same probability of error at every rank, and an exact level: nothing is lost by a union bound.
* "relative": Clopper and Pearson's bounds at a geometric set of ranks, with alpha shared among them.
* "dkw" has the same absolute error everywhere: the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's
  constant. Better in the middle, where rates are near one half, and useless in the tails.

Between two ranks a distribution function lies between their bounds. docs/explanation/auditing.md#bands.
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
from ledgerwood.verification.auditing.crossing import IntArray, berk_jones_limits
from ledgerwood.verification.auditing.result import Scores, level, small_probability

Band = Literal["berk_jones", "relative", "dkw"]

_RATIO = 1.25


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionBand:
    """Bounds on a distribution function, simultaneously valid with probability 1 - alpha.

    Args:
        points: every value that was seen, rising, shape (k,).
        share: the share of values at most each point, shape (k,).
        lower, upper: bounds on P(X <= x) for points[i] <= x < points[i + 1], shape (k,) each. Below the first point
            the bounds are 0 and `below`.
        below: the bound on P(X < points[0]).
        alpha: probability that the function leaves the band anywhere.
    """

    points: FloatArray
    share: FloatArray
    lower: FloatArray
    upper: FloatArray
    below: float
    alpha: float


def distribution_band(values: FloatArray, *, alpha: float, band: Band = "berk_jones") -> DistributionBand:
    """A band around the distribution function of independent values, whatever their distribution is.

    Args:
        values: shape (n,), n >= 1.
        alpha: probability that the function leaves the band anywhere.
        band: as for `roc_band`.

    Raises:
        InvalidParameter: no values, or NaN among them.

    Source: docs/explanation/auditing.md#bands, docs/explanation/auditing.md#berk-jones.
    """
    alpha, ordered = level(alpha), _sorted(values)
    points = np.unique(ordered)
    upto = np.searchsorted(ordered, points, side="right")
    # The bounds of P(X > t) are symmetric: with every value turned, they are those of P(X <= t).
    lower, upper = _bounds(np.append(upto, 0), ordered.size, alpha, _known(band))
    return DistributionBand(
        points=points, share=upto / ordered.size, lower=lower[:-1], upper=upper[:-1], below=float(upper[-1]),
        alpha=alpha,
    )  # fmt: skip


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

    @property
    def _pairs(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Of the events of both tails: the least probability on one data set, the largest on the other, both ways."""
        return (
            (self.right_lower, self.false_upper),
            (1.0 - self.false_upper, 1.0 - self.right_lower),
            (self.false_lower, self.right_upper),
            (1.0 - self.right_upper, 1.0 - self.false_lower),
        )

    def epsilon(self, delta: float) -> float:
        """The largest epsilon of any threshold, with the row against without and the other way, for both tails.

        It is a lower bound at the band's alpha: no further correction for the choice of threshold is needed.
        """
        delta, best = small_probability("delta", delta), 0.0
        for likely, rare in self._pairs:
            above = (likely - delta > rare) & (rare > 0.0)
            if above.any():
                ratio = (likely[above] - delta) / rare[above]
                best = max(best, math.log(float(ratio.max())) - GUARD)
        return max(best, 0.0)

    def delta(self, epsilon: float) -> float:
        """The largest delta at `epsilon` (nats) of any threshold: a lower bound on the privacy profile.

        The bounds at all epsilons hold simultaneously, so that a claimed curve is refuted if it is below any of them.
        """
        factor = math.exp(min(_validate.non_negative("epsilon", epsilon, "nats"), 700.0))
        found = max(float((likely - factor * rare).max()) for likely, rare in self._pairs)
        return max(found - GUARD * (1.0 + factor * 1e-9), 0.0)


def roc_band(scores: Scores, *, alpha: float, band: Band = "berk_jones") -> RocBand:
    """Bands around the ROC of scores, half of alpha for each of the two samples.

    Args:
        scores: with the row and without it, independent runs; they fixed no part of the score function.
        alpha: probability that any bound is wrong at any threshold.
        band: "berk_jones" for the tails and nearly as good in the middle; "dkw" for the middle; "relative" for a bound
            without a search for its level.

    Raises:
        InvalidParameter: no scores, or NaN among them.

    Source: Massart 1990, Theorem 1, for "dkw"; Clopper and Pearson 1934 for "relative"; Moscovich, Nadler and
    Spiegelman 2016 for "berk_jones"; docs/explanation/auditing.md#bands.
    """
    alpha, band = level(alpha), _known(band)
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


def _known(band: Band) -> Band:
    if band not in get_args(Band):
        raise _validate.fail("band", band, f"one of {get_args(Band)}", "rule")
    return band


def _bounds(above: IntArray, runs: int, alpha: float, band: Band) -> tuple[FloatArray, FloatArray]:
    """Of P(score > t) where `above` of the scores are, for all t at once, shape of `above`."""
    if band == "dkw":
        # Two-sided: alpha = 2 exp(-2 n margin^2), valid for every alpha below 1 (Massart).
        margin = math.sqrt(math.log(2.0 / alpha) / (2.0 * runs)) * (1.0 + GUARD)
        return np.maximum(above / runs - margin, 0.0), np.minimum(above / runs + margin, 1.0)
    # With U the probability above the r-th highest score: Beta(r, n - r + 1), for each r, of whatever law.
    if band == "berk_jones":
        limits = berk_jones_limits(runs, alpha)
        ranks, low, high = limits.ranks, limits.lower, limits.upper
    else:
        ranks = _ranks(runs)
        share = alpha / (2.0 * len(ranks))
        low = np.asarray(stats.beta.ppf(share, ranks, runs - ranks + 1)) * (1.0 - GUARD)
        high = np.asarray(stats.beta.isf(share, ranks, runs - ranks + 1)) * (1.0 + GUARD)
    # `above` scores are above t: t is below the r-th highest for r <= above, and at or above it for r > above.
    at_least = np.searchsorted(ranks, above, side="right") - 1
    lower = np.where(at_least >= 0, low[np.maximum(at_least, 0)], 0.0)
    next_rank = np.searchsorted(ranks, above, side="right")
    upper = np.where(next_rank < len(ranks), high[np.minimum(next_rank, len(ranks) - 1)], 1.0)
    return np.maximum(lower, 0.0), np.minimum(upper, 1.0)


def _ranks(runs: int) -> IntArray:
    """1, 2, 3, ... by ever larger steps from both ends, fixed by `runs` alone."""
    steps = np.unique(np.floor(_RATIO ** np.arange(0.0, math.log(max(runs, 2)) / math.log(_RATIO) + 1.0)))
    ranks = np.concatenate([steps, runs + 1 - steps])
    return np.unique(ranks[(ranks >= 1) & (ranks <= runs)]).astype(np.int64)


def _sorted(scores: FloatArray) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not values.size or bool(np.isnan(values).any()):
        raise InvalidParameter(f"scores of shape {values.shape} must be at least one number, no NaN (unit: scores)")
    return np.sort(values)
