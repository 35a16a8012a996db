"""Lower bounds from one run with canaries, each of them included by its own fair coin.

A guess says of a canary "included" or "left out"; it may depend on all that the run released, and on no coin. How many
guesses of each kind are made is fixed before, or chosen among pre-declared numbers by `one_run_scores`, which pays for
the choice. docs/explanation/auditing.md#one-run has the proof.

A claim of any kind is tested as a whole trade-off curve (Mahloujifar, Melis and Chaudhuri 2025);
docs/explanation/auditing.md#one-run-curves proves the recursion for guesses of two kinds.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting import risk
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.pricing import Price
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.counts import GUARD, check_counts, log_odds_from_below
from ledgerwood.verification.auditing.result import LowerBound, level, small_probability

_TINY = 1e-290
"""Tails below it are not divided; the ratio of a tail to its first term is bounded by a geometric series there."""
_HALVINGS = 60
_LARGEST = 700.0
_FEWEST = 4
"""Guesses of each kind in the smallest pair of a grid: fewer cannot refuse anything at a usual level."""
_TIES = 20_305
"""Seed of the order of canaries with equal scores."""

Pair = tuple[int, int]
"""How many canaries are guessed to be included, and how many to be left out."""


def one_run_p_value(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """A bound on the probability of at least `correct` correct guesses under (epsilon, delta), rounded up.

    With W binomial (`guesses`, e^epsilon / (1 + e^epsilon)), beta = P(W >= correct) and
    t = beta / (correct P(W = correct)), it is beta + (1 - beta) min(1, canaries delta t). No bound can be
    less: some private channel attains it. That of Steinke, Nasr and Jagielski 2023, Appendix D, which is
    beta + 2 canaries delta max_i P(correct > W >= correct - i) / i, is larger wherever it is at most 1/2.

    Args:
        correct: right guesses.
        guesses: the guesses of both kinds, "included" and "left out", whose numbers were fixed beforehand.
        canaries: all of them, those that nothing was guessed of too.
        epsilon: in nats.
        delta: in [0, 1).

    Source: docs/explanation/auditing.md#one-run.
    """
    check_counts(correct, guesses)
    check_counts(guesses, canaries)
    epsilon, delta = _validate.non_negative("epsilon", epsilon, "nats"), small_probability("delta", delta)
    if correct == 0:
        return 1.0
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(special.betainc(correct, guesses - correct + 1, rate))
    beta = min(1.0, tail * (1.0 + GUARD))
    if delta == 0.0 or beta == 1.0:
        return beta
    beyond = float(special.betainc(correct + 1, guesses - correct, rate)) if correct < guesses else 0.0
    first = (tail - beyond) / tail if tail > _TINY else 1.0 - (guesses - correct) / (correct + 1) * math.exp(epsilon)
    slope = (1.0 + GUARD) / (correct * first) if first > 0.0 else math.inf
    return min(1.0, beta + (1.0 - beta) * min(1.0, canaries * delta * slope))


def one_run(correct: int, guesses: int, canaries: int, *, delta: float, alpha: float) -> float:
    """A lower bound on epsilon from one run with canaries, by `one_run_p_value` at level alpha; rounded down.

    Source: docs/explanation/auditing.md#one-run; Steinke, Nasr and Jagielski 2023 for the game.
    """
    check_counts(correct, guesses)
    check_counts(guesses, canaries)
    alpha, delta = level(alpha), small_probability("delta", delta)
    if delta == 0.0:
        return log_odds_from_below(correct, guesses, alpha)

    def refused(epsilon: float) -> bool:
        return one_run_p_value(correct, guesses, canaries, epsilon=epsilon, delta=delta) < alpha

    if not refused(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST and refused(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low


def guess_grid(canaries: int) -> tuple[Pair, ...]:
    """Returns candidate pairs (guesses "included", guesses "left out"), fixed by the number of canaries alone.

    Half of the canaries of each kind, a quarter, an eighth, down to a few: a strong canary is seen in the largest
    pair, a rare one in the smallest.

    Raises:
        InvalidParameter: fewer than 2 canaries.
    """
    _validate.count("canaries", canaries, "canaries", minimum=2)
    half = canaries // 2
    sizes: list[int] = []
    while half >= _FEWEST or not sizes:
        sizes.append(half)
        half //= 2
    return tuple((size, size) for size in sizes)


def right_guesses(scores: FloatArray, included: NDArray[np.bool_], pair: Pair) -> int:
    """The number of correct guesses of a pair, by the scores. Ties are broken by a fixed shuffle.

    Not by position: scores that come sorted by their coins would tell the coins.
    """
    places = np.random.default_rng(_TIES).permutation(len(scores))
    order = places[np.argsort(scores[places], kind="stable")]
    least, most = order[: pair[1]], order[len(order) - pair[0] :]
    return int(np.count_nonzero(included[most])) + int(np.count_nonzero(~included[least]))


def one_run_scores(
    scores: ArrayLike, included: ArrayLike, *, delta: float, alpha: float, grid: Sequence[Pair] | None = None
) -> LowerBound:
    """Epsilon from the scores of canaries in one run, the best of a grid of numbers of guesses, at level alpha in all.

    Args:
        scores: the scores of each canary, shape (m,); a higher one speaks for "included". They may depend on all that
            the run released, not on the coins. Infinite scores are let in.
        included: the coins, shape (m,): independent, fair, one for each canary. A fixed number of included canaries is
            not that, and the bound does not hold for it.
        delta: at which epsilon is bounded.
        alpha: one-sided error, shared in equal parts by the pairs of the grid.
        grid: pairs (included, left out), declared before the run; `guess_grid` if not given.

    Raises:
        InvalidParameter: shapes that differ, scores that are NaN, coins that are not truth values, a pair that needs
            more canaries than there are, or fewer canaries than any bound needs (the message says how many).

    Source: docs/explanation/auditing.md#one-run-grid.
    """
    started = perf_counter()
    alpha, delta = level(alpha), small_probability("delta", delta)
    values, coins = _scores(scores), _coins(included)
    if len(values) != len(coins):
        raise InvalidParameter(f"{len(values)} scores for {len(coins)} coins: one of each a canary (unit: canaries)")
    pairs = guess_grid(len(values)) if grid is None else _pairs(grid, len(values))
    share = alpha / len(pairs)
    needed = math.ceil(math.log(1.0 / share) / math.log(2.0))
    if max(sum(pair) for pair in pairs) < needed:
        raise InvalidParameter(
            f"{len(values)} canaries are too few for any bound at alpha={alpha!r}: at least {needed} guesses in one of "
            f"the {len(pairs)} pairs are needed (unit: canaries)"
        )
    best, found = pairs[0], -1.0
    for pair in pairs:
        right = right_guesses(values, coins, pair)
        epsilon = one_run(right, sum(pair), len(values), delta=delta, alpha=share)
        if epsilon > found:
            best, found = pair, epsilon
    return LowerBound(
        value=found,
        delta=delta,
        alpha=alpha,
        assumption="none",
        event=f"the {best[0]} highest scores were included, the {best[1]} lowest left out",
        samples=len(values),
        statistic="one run",
        seconds=perf_counter() - started,
    )


def _scores(scores: ArrayLike) -> FloatArray:
    values = np.asarray(scores)
    if values.ndim != 1 or values.dtype.kind not in "iuf" or not len(values) or bool(np.isnan(values).any()):
        raise InvalidParameter(f"scores of shape {values.shape} must be a row of numbers, none of them NaN (unit: 1)")
    return values.astype(np.float64)


def _coins(included: ArrayLike) -> NDArray[np.bool_]:
    coins = np.asarray(included)
    if coins.ndim != 1 or coins.dtype.kind not in "biu" or not bool(np.isin(coins, (0, 1)).all()):
        raise InvalidParameter("included must be a row of truth values, one a canary (unit: canaries)")
    return coins.astype(np.bool_)


def _pairs(grid: Sequence[Pair], canaries: int) -> tuple[Pair, ...]:
    pairs = tuple(
        (
            _validate.count("grid (included)", pair[0], "guesses", minimum=0),
            _validate.count("grid (left out)", pair[1], "guesses", minimum=0),
        )
        for pair in _validate.several("grid", grid, "guesses")
    )
    for pair in pairs:
        if not 1 <= sum(pair) <= canaries:
            raise _validate.fail("grid", pair, f"pairs of 1 to {canaries} guesses in all", "guesses")
    return pairs


TradeOff = Callable[[FloatArray], FloatArray]
"""Least type II errors at type I errors of shape (k,), of both orders of every pair of neighbours; convex."""

_POINTS, _POINTS_OF_A_PRICE = 1501, 401
"""The points at which a curve is evaluated; a privacy cost takes longer."""
_GUARD = 1e-9
_CURVE_HALVINGS = 50
_LARGEST_MU = 64.0


def one_run_curve(correct: int, guesses: int, canaries: int, *, trade_off: TradeOff | Price, alpha: float) -> bool:
    """Returns whether the number of correct guesses in one run refutes the claimed trade-off curve at level alpha.

    Args:
        correct: right guesses.
        guesses: the guesses of both kinds, whose numbers were fixed beforehand.
        canaries: all of them, each included by its own fair coin.
        trade_off: the claim: a privacy cost, or a function from type I errors (shape (k,)) to the least type II errors,
            convex, that holds with either data set as the null hypothesis.
        alpha: probability of refusing a claim that is true.

    Raises:
        InvalidParameter: impossible counts, or a function that is not a trade-off curve.

    Source: Mahloujifar et al. 2025, Theorem 3.2 and Algorithm 3; docs/explanation/auditing.md#one-run-curves.
    """
    check_counts(correct, guesses)
    check_counts(guesses, canaries)
    alpha = level(alpha)
    if correct == 0:
        return False
    curve: TradeOff = (lambda rates: risk.trade_off(trade_off, rates)) if isinstance(trade_off, Price) else trade_off
    points = _POINTS_OF_A_PRICE if isinstance(trade_off, Price) else _POINTS
    rates = _rates(alpha * correct / canaries, points)
    least = np.asarray(curve(1.0 - rates), dtype=np.float64)
    if least.shape != rates.shape or not bool(np.all((least >= 0.0) & (least <= rates + 1e-9))):
        raise InvalidParameter("the claimed trade-off curve must lie in [0, 1 - type I error] (unit: probability)")
    if bool(np.any(np.diff(least) < -1e-9)):
        raise InvalidParameter("the claimed trade-off curve must not rise with the type I error (unit: probability)")
    gaps = np.diff(rates)
    slopes, noise = np.diff(least) / gaps, 2e-9 / gaps
    if bool(np.any(np.diff(slopes) < -(noise[:-1] + noise[1:]))):
        raise InvalidParameter("the claimed trade-off curve must be convex (unit: probability)")
    return _refuted(correct, guesses, canaries, _Below(rates, least), alpha)


def one_run_mu(correct: int, guesses: int, canaries: int, *, alpha: float) -> float:
    """The smallest mu of a Gaussian mechanism that the correct guesses do not refute; assumption "Gaussian noise".

    Arguments as for `one_run_curve`. Curves grow with mu, so that what refuses one refuses all smaller ones.

    Source: Mahloujifar et al. 2025, Theorem 3.2; docs/explanation/auditing.md#one-run-curves.
    """
    check_counts(correct, guesses)
    check_counts(guesses, canaries)
    alpha = level(alpha)
    if correct == 0:
        return 0.0
    rates = _rates(alpha * correct / canaries, _POINTS)
    quantiles = special.ndtri(rates)

    def refused(mu: float) -> bool:
        return _refuted(correct, guesses, canaries, _Below(rates, special.ndtr(quantiles - mu)), alpha)

    if not refused(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST_MU and refused(high):
        low, high = high, 2.0 * high
    for _ in range(_CURVE_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low


def _rates(least: float, points: int) -> FloatArray:
    """Probabilities of the recursion, dense near its start and near 1."""
    upper = 1.0 - np.geomspace(0.5, 1e-12, points // 2)
    return np.unique(np.concatenate([np.geomspace(min(least, 0.4), 0.5, points // 2), upper, [1.0]]))


@final
class _Below:
    """A convex curve from below, from its values: the two chords beside an interval, drawn out into it."""

    __slots__ = ("_rates", "_slopes", "_values")

    def __init__(self, rates: FloatArray, values: FloatArray) -> None:
        lowered = values * (1.0 - _GUARD)
        self._rates: list[float] = rates.tolist()
        self._values: list[float] = lowered.tolist()
        self._slopes: list[float] = (np.diff(lowered) / np.diff(rates)).tolist()

    def __call__(self, rate: float) -> float:
        last = len(self._rates) - 2
        at = min(max(bisect_right(self._rates, rate) - 1, 0), last)
        low = self._values[at]
        if at > 0:
            low = max(low, low + self._slopes[at - 1] * (rate - self._rates[at]))
        if at < last:
            low = max(low, self._values[at + 1] - self._slopes[at + 1] * (self._rates[at + 1] - rate))
        return low


def _refuted(correct: int, guesses: int, canaries: int, least: Callable[[float], float], alpha: float) -> bool:
    """Returns whether the least mass of distributions of right guesses with P(W >= correct) = alpha exceeds 1."""
    hidden = alpha * (guesses - correct) / canaries
    right = alpha * correct / canaries
    whole = guesses / canaries * (1.0 + _GUARD)
    # Each step needs the one before it: a loop over numbers of right guesses, not over rows.
    for remaining in range(correct - 1, -1, -1):
        needed = least(min(right, 1.0))
        if needed <= hidden:
            break
        right += remaining / (guesses - remaining) * (needed - hidden)
        hidden = needed
        if right + hidden > whole:
            return True
    return right + hidden > whole
