"""Anytime-valid bounds: e-processes, which hold at every moment at which one may stop.

An e-process starts at 1 (or below) and cannot grow on average while its epsilon is kept, so that it ever reaches
1 / alpha with probability at most alpha (Ville). A bound is what it has refused so far; it may be looked at after
every run. docs/explanation/auditing.md#anytime has the proofs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.counts import check_counts, check_labelled
from ledgerwood.verification.auditing.result import level, small_probability

_STAKES = np.geomspace(1.0, 1e-5, 97)
"""The staked part of the largest bet; the first is all of it, which a lost bet ends."""
_WIDTHS = np.geomspace(1e-4, 10.0, 31)
"""Of half-normal laws of the excess of mu."""
_GRID: FloatArray = np.linspace(0.0, 40.0, 40_001)
"""Epsilons, in nats, among which bounds at a positive delta are: fixed, so that one of them is refused by mistake."""
_ULPS = 1e-13
_HALVINGS = 60


def log_e_value(with_row: int, without: int, runs: int, *, epsilon: float, delta: float) -> float:
    """log of the e-process against (epsilon, delta) after `runs` runs, each on a data set drawn by a fair coin.

    A run pays 1 - delta/2 for the event with the row, -e^epsilon - delta/2 for the event without it, -delta/2 for no
    event: on average at most 0 while p1 <= e^epsilon p2 + delta. The process is a mixture over the part of the wealth
    that is staked, fixed once and for all.

    Args:
        with_row, without: runs so far in which the event happened, by label. The event was fixed before.
        runs: runs so far, of both labels.
        epsilon: in nats.
        delta: in [0, 1).

    Returns:
        Its logarithm, rounded down; -inf if all is lost. Values of independent audits may be multiplied, of any
        audits averaged.

    Source: Ville's inequality; proof in docs/explanation/auditing.md#anytime.
    """
    check_labelled(with_row, without, runs)
    epsilon, delta = _validate.non_negative("epsilon", epsilon, "nats"), small_probability("delta", delta)
    return float(_log_wealth(with_row, without, runs, np.array([epsilon]), delta)[0])


def anytime(with_row: int, without: int, runs: int, *, delta: float, alpha: float) -> float:
    """Epsilon from the counts so far of one fixed event under fair-coin labels; valid whenever one stops.

    Arguments as for `log_e_value`; alpha is the probability that the bound is *ever* above the truth. Where delta is
    positive, bounds lie on a grid of .001.

    Source: docs/explanation/auditing.md#anytime.
    """
    check_labelled(with_row, without, runs)
    alpha, delta = level(alpha), small_probability("delta", delta)
    target = -math.log(alpha)
    if delta == 0.0:
        return bisected(lambda e: _log_wealth(with_row, without, runs, np.array([e]), 0.0)[0] >= target)
    falling = _falls(with_row, without, runs, delta)
    return refused_from_zero(lambda part: _log_wealth(with_row, without, runs, part, delta), target, falling=falling)


def refused_from_zero(log_wealth: Callable[[FloatArray], FloatArray], target: float, *, falling: bool) -> float:
    """The last point of the fixed grid such that all points up to it are rejected; 0 if the first is not.

    Args:
        log_wealth: at epsilons of shape (k,).
        target: the object that refuses.
        falling: whether it is known to fall with epsilon, so that the point may be found by halving.
    """
    if log_wealth(_GRID[:1])[0] < target:
        return 0.0
    if falling:
        low, high = 0, len(_GRID)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if log_wealth(_GRID[middle : middle + 1])[0] >= target else (low, middle)
        return float(_GRID[low])
    for start in range(0, len(_GRID), 1000):
        refused = log_wealth(_GRID[start : start + 1000]) >= target
        if not refused.all():
            return float(_GRID[max(start + int(np.argmin(refused)) - 1, 0)])
    return float(_GRID[-1])


def _falls(with_row: int, without: int, runs: int, delta: float) -> bool:
    """Returns whether every bet's wealth falls with epsilon (docs, anytime): the event is not as rare as delta."""
    return with_row * (1.0 - delta / 2.0) >= (runs - with_row - without) * delta


def _log_wealth(with_row: int, without: int, runs: int, epsilons: FloatArray, delta: float) -> FloatArray:
    """log of the mixture at each epsilon, shape (k,), rounded down."""
    outside, half = runs - with_row - without, delta / 2.0
    losing = np.exp(np.minimum(epsilons, 700.0))[:, None] + half  # beyond it nothing is won, in doubles
    stakes = _STAKES[None, :]
    won = with_row * np.log1p(stakes * ((1.0 - half) / losing))
    lost = special.xlog1py(without, -stakes)
    waited = outside * np.log1p(-stakes * (half / losing)) if half > 0.0 else 0.0
    logs = won + lost + waited
    logs -= _ULPS * (np.abs(won) + np.where(np.isfinite(lost), np.abs(lost), 0.0) + np.abs(waited) + 1.0)
    total: FloatArray = special.logsumexp(logs, axis=1) - math.log(stakes.size)
    return total


def log_wealth_of(payoffs: FloatArray, times: FloatArray) -> FloatArray:
    """log of the mixture over stakes of bets on payoffs whose mean is at most 0, shape (k,), rounded down.

    Args:
        payoffs: in units of the largest loss, at least -1, shape (k, m).
        times: how often each occurred, shape (m,).
    """
    stakes = _STAKES[None, :]
    logs = np.zeros((payoffs.shape[0], stakes.size))
    slack = np.ones(logs.shape)
    for column, often in zip(payoffs.T, times, strict=True):
        # A loss may exceed 1 by an ulp: then all that was staked is lost, and no more.
        part = special.xlog1py(often, np.maximum(stakes * column[:, None], -1.0))
        logs += part
        slack += np.where(np.isfinite(part), np.abs(part), 0.0)
    total: FloatArray = special.logsumexp(logs - _ULPS * slack, axis=1) - math.log(stakes.size)
    return total


def anytime_guesses(correct: int, guesses: int, canaries: int, *, delta: float, alpha: float) -> float:
    """Epsilon from guesses about canaries of one run, made one after the other; valid whenever one stops guessing.

    The order of the guesses is fixed by what the run released (the surest first), and how many are made may depend on
    how many were right so far. With delta > 0 the event that any guess owes its success to delta, of probability at
    most `canaries` delta, is paid for out of alpha.

    Args:
        correct: right guesses so far.
        guesses: guesses so far, of both kinds.
        canaries: all of them, each included by its own fair coin.
        delta: at which epsilon is bounded.
        alpha: probability that the bound is ever above the truth.

    Source: docs/explanation/auditing.md#anytime-guesses.
    """
    check_counts(correct, guesses)
    check_counts(guesses, canaries)
    alpha, delta = level(alpha), small_probability("delta", delta)
    left = alpha - canaries * delta * (1.0 + _ULPS)
    if left <= 0.0:
        return 0.0
    target = -math.log(left)
    wrong = guesses - correct
    # A right guess has probability at most e^epsilon / (1 + e^epsilon): the law of a label inside a fixed event.
    return bisected(lambda e: _log_wealth(correct, wrong, guesses, np.array([e]), 0.0)[0] >= target)


def anytime_mu(mean_with: float, runs_with: int, mean_without: float, runs_without: int, *, alpha: float) -> float:
    """mu of scores that are N(mu, 1) with the canary and N(0, 1) without, at any stopping time.

    A mixture of likelihood ratios of the difference of means; labels may be coins or alternate, but must not depend on
    scores. It holds if the noise is Gaussian, and is to be marked so. A common shift of all scores does not matter.

    Args:
        mean_with, mean_without: means of the scores so far, by label.
        runs_with, runs_without: their numbers.
        alpha: probability that the bound is ever above the truth.

    Source: Robbins 1970; docs/explanation/auditing.md#anytime-mu.
    """
    alpha = level(alpha)
    first = _validate.count("runs_with", runs_with, "scores", minimum=1)
    second = _validate.count("runs_without", runs_without, "scores", minimum=1)
    difference = _validate.real("mean_with", mean_with, "score") - _validate.real("mean_without", mean_without, "score")
    information = 1.0 / (1.0 / first + 1.0 / second)
    target = -math.log(alpha)

    def refused(mu: float) -> bool:
        # exp(theta Y - theta^2 I / 2), theta half-normal of several widths
        y, widths = information * (difference - mu), _WIDTHS
        spread = 1.0 + widths * widths * information
        logs = (
            math.log(2.0)
            - 0.5 * np.log(spread)
            + (widths * y) ** 2 / (2.0 * spread)
            + special.log_ndtr(widths * y / np.sqrt(spread))
        )
        return float(special.logsumexp(logs)) - math.log(len(widths)) - _ULPS * (1.0 + y * y) >= target

    return bisected(refused)


def combine_independent(log_values: Sequence[float]) -> float:
    """The product of e-values of independent audits (or of audits one after the other), as logarithms."""
    return math.fsum(_logs(log_values))


def combine_dependent(log_values: Sequence[float]) -> float:
    """The mean of e-values of any audits, under any dependence, as logarithms."""
    logs = _logs(log_values)
    return float(special.logsumexp(np.array(logs))) - math.log(len(logs))


How = Literal["independent", "dependent"]
Counts = tuple[int, int, int]
"""Of one fixed event: runs with it and the row, runs with it without the row, all runs."""


def anytime_combined(audits: Sequence[Counts], *, delta: float, alpha: float, how: How) -> float:
    """Epsilon from several audits of one mechanism, of one event each; valid whenever one stops.

    Args:
        audits: (with_row, without, runs) of each, as for `anytime`.
        delta: at which epsilon is bounded.
        alpha: probability that the bound is ever above the truth.
        how: "independent" multiplies e-values; "dependent" averages them, which is right however events and runs are
            shared.

    Source: Vovk and Wang 2021; docs/explanation/auditing.md#anytime.
    """
    alpha, delta = level(alpha), small_probability("delta", delta)
    several = _validate.several("audits", audits, "runs")
    for with_row, without, runs in several:
        check_labelled(with_row, without, runs)
    if how not in get_args(How):
        raise _validate.fail("how", how, f"one of {get_args(How)}", "rule")

    def log_wealth(part: FloatArray) -> FloatArray:
        logs = np.array([_log_wealth(inside, without, runs, part, delta) for inside, without, runs in several])
        mean = special.logsumexp(logs, axis=0) - math.log(len(several))
        together: FloatArray = logs.sum(axis=0) if how == "independent" else mean
        return together

    falling = all(_falls(with_row, without, runs, delta) for with_row, without, runs in several)
    return refused_from_zero(log_wealth, -math.log(alpha), falling=falling)


def _logs(values: Sequence[float]) -> list[float]:
    logs = [float(value) for value in _validate.several("log_values", values, "nats")]
    if any(math.isnan(value) or value == math.inf for value in logs):
        raise InvalidParameter(f"log_values={logs!r} must be logarithms of finite e-values (unit: nats)")
    return logs


def bisected(refused: Callable[[float], bool]) -> float:
    """The largest value found below which all is refused, of a rule that refuses less and less."""
    if not refused(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e6 and refused(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low
