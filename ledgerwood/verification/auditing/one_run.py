"""Lower bounds from one run with canaries, each of them included by its own fair coin.

A guess says of a canary "included" or "left out"; it may depend on all that the run released, and on no coin. How many
guesses of each kind are made is fixed before, or chosen among pre-declared numbers by `one_run_scores`, which pays for
the choice. docs/explanation/auditing.md#one-run has the proof.
"""

import math
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
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
    less: some private channel attains it. That of Steinke, Nasr and Jagielski 2023, Theorem 5.2, which is
    beta + 2 canaries delta max_i P(correct > W >= correct - i) / i, is larger wherever it is at most 1/2.

    Args:
        correct: right guesses.
        guesses: of both kinds, "included" and "left out", whose numbers were fixed beforehand.
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
        scores: of each canary, shape (m,); a higher one speaks for "included". They may depend on all that the run
            released, not on the coins. Infinite scores are let in.
        included: the coins, shape (m,): independent, fair, one for each canary. A fixed number of included canaries is
            not that, and the bound does not hold for it.
        delta: at which epsilon is bounded.
        alpha: one-sided error, shared in equal parts by the pairs of the grid.
        grid: pairs (included, left out), declared before the run; `guess_grid` where none is given.

    Raises:
        InvalidParameter: shapes that differ, scores that are NaN, coins that are no truth values, a pair that needs
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
