"""One run with canaries against a whole trade-off curve: Mahloujifar, Melis and Chaudhuri 2024, for any claim.

docs/explanation/auditing.md#one-run-curves proves the recursion for guesses of two kinds.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import final

import numpy as np
from scipy import special

from ledgerwood.accounting import risk
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.pricing import Price
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.counts import check_counts
from ledgerwood.verification.auditing.result import level

TradeOff = Callable[[FloatArray], FloatArray]
"""Least type II errors at type I errors of shape (k,), of both orders of every pair of neighbours; convex."""

_POINTS, _POINTS_OF_A_PRICE = 1501, 401
"""At which a curve is read; a price takes longer."""
_GUARD = 1e-9
_HALVINGS = 50
_LARGEST_MU = 64.0


def one_run_curve(correct: int, guesses: int, canaries: int, *, trade_off: TradeOff | Price, alpha: float) -> bool:
    """Returns whether the number of correct guesses in one run refutes the claimed trade-off curve at level alpha.

    Args:
        correct: right guesses.
        guesses: of both kinds, whose numbers were fixed beforehand.
        canaries: all of them, each included by its own fair coin.
        trade_off: the claim: a privacy cost, or a function from type I errors (shape (k,)) to the least type II errors,
            convex, that holds with either data set as the null hypothesis.
        alpha: probability of refusing a claim that is true.

    Raises:
        InvalidParameter: counts that cannot be, or a function that is no trade-off curve.

    Source: Mahloujifar et al. 2024, Theorem 3.2 and Algorithm 1; docs/explanation/auditing.md#one-run-curves.
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

    Source: Mahloujifar et al. 2024; docs/explanation/auditing.md#one-run-curves.
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
    for _ in range(_HALVINGS):
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
