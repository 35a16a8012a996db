"""Bounds from the scores of canaries: what each rests on is part of it. docs/explanation/canaries.md#canary-bounds."""

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from ledgerwood.verification.auditing.gaussian import epsilon_of
from ledgerwood.verification.auditing.result import LowerBound, level

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_FAR = 200.0
"""Statistics above it have a simpler bound: the series of the noncentral t law does not converge far out."""
_SQUARED = 1e100
_FEWEST_RESIDUALS, _SHAPIRO, _UNLIKELY = 20, 5000, 1e-5
"""Residuals that a normality test needs, those that it takes, and the p-value below which noise is not Gaussian."""
_LEAST_SPREAD = 1e-9
"""Of the scores: residuals below it are rounding, not noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """What was guessed of canaries by their scores, and how much of it was right.

    Args:
        included, left_out: how many of each kind.
        correct: right ones.
        canaries: all of them.
    """

    included: int
    left_out: int
    correct: int
    canaries: int

    @property
    def made(self) -> int:
        """Bounds of both kinds."""
        return self.included + self.left_out


def guess(scores: Floats, coins: Mask, *, included: int, left_out: int, generator: np.random.Generator) -> Guesses:
    """The highest scores are guessed to be in and the lowest to be out; the numbers were fixed beforehand.

    Args:
        scores: (m,).
        coins: (m,), which canaries were in.
        included, left_out: at most m together.
        generator: breaks ties, which must not be broken by the canaries' order.
    """
    order = np.lexsort((generator.random(len(scores)), scores))
    highest, lowest = order[len(order) - included :], order[:left_out]
    correct = int(coins[highest].sum()) + int((~coins[lowest]).sum())
    return Guesses(included=included, left_out=left_out, correct=correct, canaries=len(scores))


def mu_from_scores(with_canary: Floats, without: Floats, *, alpha: float) -> float:
    """mu of scores that are N(mu s, s**2) with the canary and N(0, s**2) without, s unknown: their t statistic.

    Where the noise is smaller than was claimed, the scores are closer together, and mu is larger: a spread that is
    taken for 1 would not see it.

    Args:
        with_canary, without: independent scores, at least two of each.
        alpha: one-sided error.

    Source: docs/explanation/canaries.md#canary-means.
    """
    alpha = level(alpha)
    first, second = len(with_canary), len(without)
    if min(first, second) < 2:
        return 0.0
    freedom = first + second - 2
    # A statistic has no unit; squares of scores that are free of noise may have no float64.
    largest = float(max(np.abs(with_canary).max(), np.abs(without).max()))
    if largest > _SQUARED:
        with_canary, without = with_canary / largest, without / largest
    squares = float(np.sum((with_canary - with_canary.mean()) ** 2) + np.sum((without - without.mean()) ** 2))
    spread = math.sqrt(squares / freedom)
    unit = math.sqrt(1.0 / first + 1.0 / second)
    difference = float(with_canary.mean() - without.mean())
    if spread == 0.0:
        return math.inf if difference > 0.0 else 0.0
    statistic = difference / (spread * unit)
    if float(stats.t.sf(statistic, freedom)) >= alpha:
        return 0.0
    # Half of alpha each: statistic * root(V / f) - shift is N(0, 1), V chi-squared.
    spared = math.sqrt(float(stats.chi2.ppf(0.5 * alpha, freedom)) / freedom)
    found = max(0.0, statistic * spared - float(stats.norm.isf(0.5 * alpha)))
    if statistic <= _FAR:
        # P(T >= statistic) rises with the noncentrality: alpha at most there, and about a half at the statistic itself.
        excess = functools.partial(_tail, statistic, freedom, alpha)
        found = float(optimize.brentq(excess, found, statistic)) if excess(found) < 0.0 else found
    return max(0.0, found * unit * (1.0 - 1e-9))


def _tail(statistic: float, freedom: int, alpha: float, shift: float) -> float:
    return float(stats.nct.sf(statistic, freedom, shift)) - alpha


def looks_gaussian(with_canary: Floats, without: Floats) -> bool:
    """Returns whether both kinds of scores may have one Gaussian noise: they vary, and residuals pass a normality test.

    The test refuses one right noise in 10^5, far below every alpha in use; it fixes no bound, only which one is the
    headline. docs/explanation/canaries.md#canary-means.
    """
    residuals = np.concatenate([with_canary - with_canary.mean(), without - without.mean()])
    spread = float(np.abs(residuals).max(initial=0.0))
    if len(residuals) < _FEWEST_RESIDUALS:
        return spread > 0.0 or not len(residuals)
    if not spread > _LEAST_SPREAD * max(1.0, float(np.abs(with_canary).max(initial=0.0))):
        return False
    return float(stats.shapiro(residuals[:_SHAPIRO] / spread).pvalue) > _UNLIKELY


def gaussian_bound(with_canary: Floats, without: Floats, *, delta: float, alpha: float) -> LowerBound:
    """Epsilon from the means of Gaussian scores."""
    mu = mu_from_scores(with_canary, without, alpha=alpha)
    return LowerBound(
        value=epsilon_of(mu, delta) if math.isfinite(mu) else math.inf, delta=delta, alpha=alpha,
        assumption="Gaussian noise", event="the difference of the mean scores of canaries that are in and out",
        samples=len(with_canary) + len(without), statistic="means over their spread",
    )  # fmt: skip
