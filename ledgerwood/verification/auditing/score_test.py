"""The restricted-likelihood test of two binomial counts, inverted in epsilon: nearly the best that counts can say.

`score` trusts the normal distribution of its statistic ("large counts"). docs/explanation/auditing.md#score.

The certified bound sums the probabilities of all outcomes instead. Outcomes are ordered by the bound that their
likelihood ratio gives; the bound of an outcome is the least epsilon at which it, with all that are ordered above it,
has probability alpha (Buehler). What is not known, how often the event happens without the row, lies in an interval
that costs a thousandth of alpha (Berger and Boos). docs/explanation/auditing.md#score-certified has the proof.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.auditing.counts import GUARD, binomial_lower, binomial_upper, check_counts, clopper_pearson
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


_SHARE = 1e-3
"""Of alpha: spent on the interval of the event's probability without the row."""
_TAIL = 1e-16
"""Probability that is cut off at either end of the counts without the row, and added again."""
_NEGLIGIBLE = 1e-6
"""Of the budget: blocks of less weight are counted whole."""
_BLOCKS_PER_STANDARD_DEVIATION = 20
_CELLS = 100
_FIRST_STEP = 0.005
_CERTIFIED_HALVINGS, _STEPS = 50, 5


def score_certified(
    with_row: int, runs_with: int, without: int, runs_without: int, *, delta: float, alpha: float
) -> float:
    """Epsilon from two independent binomial counts, in one direction; exact in its level, nearly as tight as `score`.

    Args:
        with_row, without: runs in which the event happened, with the row and without it.
        runs_with, runs_without: runs in all, fixed beforehand or drawn as labels by coins.
        delta: at which epsilon is bounded.
        alpha: one-sided error.

    Source: Buehler 1957; Berger and Boos 1994; docs/explanation/auditing.md#score-certified.
    """
    check_counts(with_row, runs_with)
    check_counts(without, runs_without)
    alpha, delta = level(alpha), small_probability("delta", delta)
    drop = float(stats.norm.isf(alpha)) ** 2
    order = _order(with_row, runs_with, without, runs_without, delta, drop)
    if order <= 0.0:
        return 0.0
    region = _region(with_row, runs_with, without, runs_without, order, delta, drop, alpha)
    return _last_refused(region, order)


def _last_refused(region: "_Region", start: float) -> float:
    """An epsilon near the largest at which the region is proven to have at most its budget; 0 if none is found.

    The returned epsilon was itself rejected, so the search may be as rough as it likes.
    """
    high, step, low = start, max(_FIRST_STEP * start, 1e-4), 0.0
    at_high, at_low = region.log_probability(high), -math.inf
    if at_high <= region.log_budget:
        low, at_low = high, at_high
        while at_high <= region.log_budget and low < _LARGEST:
            low, at_low, high, step = high, at_high, high + step, 2.0 * step
            at_high = region.log_probability(high)
    else:
        while low == 0.0:
            low = max(0.0, high - step)
            at_low, step = region.log_probability(low), 2.0 * step
            if at_low > region.log_budget:
                if low == 0.0:
                    return 0.0
                high, at_high, low = low, at_low, 0.0
            elif low == 0.0:
                break
    for turn in range(_STEPS):
        share = (region.log_budget - at_low) / (at_high - at_low) if turn % 2 == 0 else 0.5
        middle = low + (high - low) * (min(max(share, 0.02), 0.98) if math.isfinite(share) else 0.5)
        found = region.log_probability(middle)
        if found <= region.log_budget:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return low


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Region:
    """Outcomes with k1 >= least[j] for k2 in block j: with every outcome, it holds those with more k1 or less k2.

    Args:
        least: least k1 of each block of k2, shape (b,), rising.
        weights: the weights of each block at the low end of each cell of p2, shape (c, b).
        highs: high end of each cell, shape (c,).
        log_budget: log of the probability that the region may have.
    """

    least: FloatArray
    weights: FloatArray
    highs: FloatArray
    runs_with: int
    delta: float
    log_budget: float

    def log_probability(self, epsilon: float) -> float:
        """log of the largest probability of the region at p1 <= e^epsilon p2 + delta, p2 in any cell; from above."""
        # In a cell, the region is likeliest at the largest p1 and the least p2.
        rates = np.minimum(math.exp(epsilon) * (1.0 + GUARD) * self.highs + self.delta, 1.0)
        cells, blocks = np.nonzero(self.weights > _NEGLIGIBLE * math.exp(self.log_budget) / self.least.size)
        above = np.ones(self.weights.shape)
        above[cells, blocks] = _tails(self.least[blocks], self.runs_with, rates[cells])
        total = (self.weights * above).sum(axis=1).max() * (1.0 + GUARD) + 4.0 * _TAIL
        return math.log(float(total))


def _tails(least: FloatArray, runs: int, rates: FloatArray) -> FloatArray:
    """P(binomial >= least), elementwise."""
    inside = (least > 0.0) & (least <= runs)
    found = special.betainc(np.where(inside, least, 1.0), np.where(inside, runs - least + 1.0, 1.0), rates)
    tails: FloatArray = np.where(least <= 0.0, 1.0, np.where(inside, found, 0.0))
    return tails


def _region(k1: int, n1: int, k2: int, n2: int, order: float, delta: float, drop: float, alpha: float) -> _Region:
    share, factor = _SHARE * alpha, math.exp(order)
    low, high = binomial_lower(k2, n2, share / 2.0), binomial_upper(k2, n2, share / 2.0)
    first, last = int(stats.binom.ppf(_TAIL, n2, low)), int(stats.binom.isf(_TAIL, n2, high)) + 1
    first, last = max(0, min(first, k2)), min(n2, max(last, k2))
    spread = math.sqrt(n2 * max(high * (1.0 - high), 1.0 / n2))
    starts = np.arange(first, last + 1, max(1, int(spread / _BLOCKS_PER_STANDARD_DEVIATION))).astype(np.float64)
    least = _least(starts, n1, n2, factor, delta, drop)
    # The outcome itself is in its region whatever rounding says, and the region has no holes.
    least = np.where(starts <= k2, np.minimum(least, k1), least)
    least = np.minimum.accumulate(least[::-1])[::-1]
    edges = _edges(low, high, factor, delta)
    from_here = _tails(np.append(starts, last + 1.0)[None, :], n2, edges[:-1, None])
    return _Region(
        least=least,
        weights=np.maximum(from_here[:, :-1] - from_here[:, 1:], 0.0) + 4.0 * _TAIL,
        highs=edges[1:],
        runs_with=n1,
        delta=delta,
        log_budget=math.log(alpha - share),
    )


def _edges(low: float, high: float, factor: float, delta: float) -> FloatArray:
    """Of cells in which both p2 and p1 = factor p2 + delta move by little of their standard deviations."""
    angles = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), _CELLS + 1)
    first, last = min(1.0, factor * low + delta), min(1.0, factor * high + delta)
    others = np.linspace(math.asin(math.sqrt(first)), math.asin(math.sqrt(last)), _CELLS + 1)
    inner = np.concatenate([np.sin(angles) ** 2, (np.sin(others) ** 2 - delta) / factor])
    return np.unique(np.concatenate([[low, high], inner[(inner > low) & (inner < high)]]))


def _order(k1: int, n1: int, k2: int, n2: int, delta: float, drop: float) -> float:
    """Where twice the log likelihood ratio against p1 <= e^epsilon p2 + delta falls to `drop`; 0 if it starts below."""
    first, second = np.array([float(k1)]), np.array([float(k2)])

    def above(epsilon: float) -> bool:
        return bool(_far(first, n1, second, n2, math.exp(epsilon), delta, drop)[0])

    if not above(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST and above(high):
        low, high = high, min(2.0 * high, _LARGEST)
    if high == _LARGEST and above(high):
        return high
    for _ in range(_CERTIFIED_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def _least(k2: FloatArray, n1: int, n2: int, factor: float, delta: float, drop: float) -> FloatArray:
    """The least k1 of an outcome of the region at each k2, shape (b,); n1 + 1 where there is none."""
    low, high = np.full(k2.shape, -1.0), np.full(k2.shape, n1 + 1.0)
    while bool(np.any(high - low > 1.0)):
        middle = np.floor(0.5 * (low + high))
        held = _far(np.maximum(middle, 0.0), n1, k2, n2, factor, delta, drop) & (middle >= 0.0)
        low, high = np.where(held, low, middle), np.where(held, middle, high)
    return high


def _far(
    k1: FloatArray, n1: int, k2: FloatArray, n2: int, factor: float, delta: float, drop: float
) -> NDArray[np.bool_]:
    """Returns whether counts are beyond p1 = factor p2 + delta, with 2 log(likelihood ratio) at least `drop`."""
    rate1, rate2 = k1 / n1, k2 / n2
    low, high = np.zeros(k1.shape), np.full(k1.shape, min(1.0, (1.0 - delta) / factor))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_CERTIFIED_HALVINGS):
            p2 = 0.5 * (low + high)
            p1 = factor * p2 + delta
            rising = factor * (k1 / p1 - (n1 - k1) / (1.0 - p1)) + (k2 / p2 - (n2 - k2) / (1.0 - p2)) > 0.0
            low, high = np.where(rising, p2, low), np.where(rising, high, p2)
        p1 = np.minimum(factor * high + delta, 1.0)
        distance = n1 * (special.rel_entr(rate1, p1) + special.rel_entr(1.0 - rate1, 1.0 - p1)) + n2 * (
            special.rel_entr(rate2, high) + special.rel_entr(1.0 - rate2, 1.0 - high)
        )
    held: NDArray[np.bool_] = (rate1 > factor * rate2 + delta) & (2.0 * distance >= drop * (1.0 - 1e-9))
    return held
