"""The choice of the event, the test and the coin, on separate draws, by the expected bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from scipy import special, stats

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box.encoding import IntArray
from ledgerwood.verification.black_box.scores import ScoreCandidate

Way = Literal["labels", "guesses"]
_TAILS = 240
LUCK = 0.1
"""How lucky a tail may have been in the learning draws, at either data set.

Source: docs/explanation/black-box.md#black-box-luck.
"""
_RARE = 3.0
"""Outputs that may have been missed: an event of few outputs is not as certain as its own frequency says."""


@final
@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of the claimed curve, and whether all noise of the claim is Gaussian."""

    epsilon: float
    delta: float
    family: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """The largest delta that any candidate showed at a point, as counted, and its standard error.

    The largest of many figures: a little too high, if anything.
    """

    point: CurvePoint
    delta: float
    error: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question for the test.

    Args:
        delta: the delta at which epsilon is bounded.
        claimed: the claimed epsilon at this delta; inf if there is none.
        points: other points at which the claim may be refuted.
        runs: outputs of the test, of both data sets.
        alpha: its level.
        fair: True if the coin must be fair.
    """

    delta: float
    claimed: float
    points: tuple[CurvePoint, ...]
    runs: int
    alpha: float
    fair: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """An event, what is to be said of it, and what may be expected.

    Args:
        candidate: whose score is compared with the threshold.
        threshold: the event is a score of at least this.
        coin: probability of the data set for which the event speaks.
        point: the point of the claim's curve that is tested; None: epsilon at the question's delta is bounded.
        way: the test of the point.
        merit: what was maximised: the bound on epsilon; of a point the power, or how much less log noise than claimed.
        power: standard deviations between claim and expectation.
    """

    candidate: ScoreCandidate
    threshold: float
    coin: float
    point: CurvePoint | None
    way: Way
    merit: float
    power: float

    @property
    def words(self) -> str:
        """The event."""
        return f"{self.candidate.words} (score at least {self.threshold:.6g})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """The tails of one candidate on learning draws: thresholds, and how many scores of each data set reach them."""

    candidate: ScoreCandidate
    thresholds: FloatArray
    for_it: IntArray
    against: IntArray
    runs: tuple[int, int]


def tails(candidate: ScoreCandidate, first: FloatArray, second: FloatArray) -> Tails:
    """Sizes of tails from one output to all, geometrically, at the scores of both data sets."""
    for_it, against = (first, second) if candidate.side == "first" else (second, first)
    for_it, against = np.sort(for_it), np.sort(against)
    picked = []
    for scores in (for_it, against):
        ranks = np.unique(np.geomspace(1.0, scores.size, _TAILS).astype(np.int64))
        picked.append(scores[scores.size - ranks])
        even = np.unique(np.linspace(1, scores.size, _TAILS // 2).astype(np.int64))
        picked.append(scores[scores.size - even])
    thresholds = np.unique(np.concatenate(picked))
    inside = for_it.size - np.searchsorted(for_it, thresholds)
    other = against.size - np.searchsorted(against, thresholds)
    return Tails(candidate, thresholds, inside, other, (for_it.size, against.size))


def best_bound(tail: Tails, question: Question, luck: float = LUCK) -> Choice:
    """The threshold whose bound on epsilon is expected to be the largest, and its coin."""
    # What the test would say at the counts to be expected, had the learning draws been lucky.
    low = special.betaincinv(np.maximum(tail.for_it, 0.5), tail.runs[0] - tail.for_it + 1.0, luck)
    high = special.betaincinv(tail.against + 1.0, np.maximum(tail.runs[1] - tail.against, 0.5), 1.0 - luck)
    # The coin at which the log ratio of two counts varies least: an event that is rare without the row needs more runs
    # there.
    coins = np.full(low.shape, 0.5) if question.fair else np.clip(1.0 / (1.0 + np.sqrt(low / high)), 1 / 16, 15 / 16)
    inside, other = question.runs * coins * low, question.runs * (1.0 - coins) * high
    share = special.betaincinv(inside, other + 1.0, question.alpha)
    odds, delta = share, question.delta
    if delta > 0.0:
        odds = share - coins * delta / (coins * low + (1.0 - coins) * high)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(odds / (1.0 - share)) + np.log((1.0 - coins) / coins)
        bound = np.where((odds > 0.0) & (tail.for_it > 0), found, -np.inf)
    best = int(np.argmax(bound))
    p, q = (tail.for_it[best] + 0.5) / (tail.runs[0] + 1.0), (tail.against[best] + 0.5) / (tail.runs[1] + 1.0)
    coin = 0.5 if question.fair else _coin(p, q, question)
    power = -math.inf
    if math.isfinite(question.claimed):
        gap = math.log(max(p - delta, 1e-300) / q) - question.claimed
        power = gap / math.sqrt((1.0 / (coin * p) + 1.0 / ((1.0 - coin) * q)) / question.runs)
    return Choice(
        candidate=tail.candidate,
        threshold=float(tail.thresholds[best]),
        coin=coin,
        point=None,
        way="labels",
        merit=float(bound[best]),
        power=power,
    )


def _coin(p: float, q: float, question: Question) -> float:
    """The coin with the largest expected bound; sixteenths will do."""
    coins = np.arange(1, 16) / 16.0
    inside, other = question.runs * coins * p, question.runs * (1.0 - coins) * q
    share = special.betaincinv(np.maximum(inside, 0.5), other + 1.0, question.alpha)
    return float(coins[np.argmax(special.logit(share) - special.logit(coins))])


def best_point(tail: Tails, question: Question) -> Choice | None:
    """The point of the claimed curve, the threshold and the way to test it that promise most; None without points."""
    p = (tail.for_it + 0.5) / (tail.runs[0] + 1.0)
    q = (tail.against + 0.5) / (tail.runs[1] + 1.0)
    quantile, rare = float(stats.norm.isf(question.alpha)), _RARE / min(tail.runs)
    best: Choice | None = None
    for point in question.points:
        factor = math.exp(point.epsilon)
        found = p - factor * q
        right = np.clip((factor + found) / (1.0 + factor), 0.0, 1.0)
        by_guesses = (1.0 + factor) * np.sqrt(np.maximum(right * (1.0 - right), 1e-12) / question.runs)
        coins = np.full(p.shape, 0.5) if question.fair else np.clip(1 / (1 + factor * np.sqrt(q / p)), 0.05, 0.95)
        by_labels = np.sqrt(((p + rare) / coins + factor**2 * (q + rare) / (1.0 - coins)) / question.runs)
        if question.fair:
            by_guesses = np.full(p.shape, np.inf)
        error = np.minimum(by_guesses, by_labels)
        # What the learning draws themselves may be off by, twice: the largest of many is never as large again.
        sure = found - 2.0 * np.sqrt((p * (1 - p) + factor**2 * q * (1 - q) + (1 + factor**2) * rare) / min(tail.runs))
        power = (sure - point.delta) / error
        merit = _less_noise(point, sure - quantile * error) if point.family else power
        at = int(np.argmax(merit))
        if best is not None and merit[at] <= best.merit:
            continue
        guesses = bool(by_guesses[at] < by_labels[at])
        best = Choice(
            candidate=tail.candidate,
            threshold=float(tail.thresholds[at]),
            coin=1.0 / (1.0 + factor) if guesses else float(coins[at]),
            point=point,
            way="guesses" if guesses else "labels",
            merit=float(merit[at]),
            power=float(power[at]),
        )
    return best


def attacks(seen: Sequence[Tails], question: Question) -> tuple[Attack, ...]:
    """The best attack at each point."""
    found = []
    for point in question.points:
        factor, best = math.exp(point.epsilon), Attack(point=point, delta=0.0, error=0.0)
        for tail in seen:
            p, q = tail.for_it / tail.runs[0], tail.against / tail.runs[1]
            at = int(np.argmax(p - factor * q))
            delta = float(p[at] - factor * q[at])
            if delta > best.delta:
                variance = (p[at] * (1.0 - p[at]) + 1.0 / tail.runs[0]) / tail.runs[0]
                variance += factor**2 * (q[at] * (1.0 - q[at]) + 1.0 / tail.runs[1]) / tail.runs[1]
                best = Attack(point=point, delta=delta, error=math.sqrt(variance))
        found.append(best)
    return tuple(found)


def _less_noise(point: CurvePoint, deltas: FloatArray) -> FloatArray:
    """How much less log noise than claimed brings these deltas at the point, were the claim one Gaussian; shape (k,).

    It compares points with each other, and is right for one Gaussian only; nothing that is stated rests on it.
    """
    mus = np.geomspace(1e-3, 40.0, 500)
    profile = special.ndtr(-point.epsilon / mus + mus / 2.0) - math.exp(point.epsilon) * special.ndtr(
        -point.epsilon / mus - mus / 2.0
    )
    rising = np.maximum.accumulate(profile)
    found, claimed = np.interp(deltas, rising, np.log(mus)), np.interp(point.delta, rising, np.log(mus))
    return np.asarray(found - claimed)


def top(choices: Sequence[Choice], most: int) -> list[Choice]:
    """The best few, by merit; of several that promise the same to the last digit, which are one event, the first."""
    found: dict[tuple[float, str], Choice] = {}
    for choice in sorted(choices, key=lambda choice: -choice.merit):
        found.setdefault((choice.merit, choice.candidate.side), choice)
    return list(found.values())[:most]
