"""The numbers of an audit's figures: trade-off curves, a ROC with its band, histograms of scores.

Each is a function of an audit's result alone. docs/explanation/audit-figures.md says what they mean.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting import risk
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.bands import roc_band
from ledgerwood.verification.auditing.claims import ClaimedCurve
from ledgerwood.verification.auditing.result import Scores

FloatArray = NDArray[np.float64]
Numbers = tuple[float, ...]

_POINTS = 160
"""The number of thresholds kept for a ROC; the band holds for all thresholds, so also for these."""
_FEWEST, _MOST = 8, 36
"""Bins: by the cube root of the smaller number of scores, so that each holds some."""
_TAIL = 0.001
"""Of the scores, on each side: their bins are the outermost ones."""
_ENDS = np.geomspace(1e-4, 1e-2, 12)
_RATES = np.unique(np.concatenate([np.linspace(0.0, 1.0, 101), _ENDS, 1.0 - _ENDS]))
_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 40.0, 160)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTradeOff:
    """The least false negative rate beside each rate of false positives, shape (k,) each."""

    false_positive_rate: Numbers
    false_negative_rate: Numbers


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roc:
    """True and false positive rates by threshold, from the highest, with a band that holds for all simultaneously.

    Args:
        false_positive_rate, true_positive_rate: as counted, shape (k,) each.
        false_positive_lower, false_positive_upper, true_positive_lower, true_positive_upper: bounds on the true rates,
            shape (k,) each.
        confidence: probability that they lie within, at all thresholds.
        area: under the curve: how likely a run with the row scores higher than one without; ties count half.
    """

    false_positive_rate: Numbers
    true_positive_rate: Numbers
    false_positive_lower: Numbers
    false_positive_upper: Numbers
    true_positive_lower: Numbers
    true_positive_upper: Numbers
    confidence: float
    area: float

    @property
    def lower(self) -> tuple[Numbers, Numbers]:
        """False and true positive rates along the band's lower edge: at every threshold an attacker does no worse.

        Steps, from (0, 0) to (1, 1): between two thresholds the true rates are not below those of the higher one, nor
        are false positives above those of the lower one.
        """
        false, true = np.array(self.false_positive_upper), np.array(self.true_positive_lower)
        return _ends(np.append(np.repeat(false, 2)[1:], 1.0)), _ends(np.repeat(true, 2))

    @property
    def upper(self) -> tuple[Numbers, Numbers]:
        """The upper edge: the attacker is not better."""
        false, true = np.array(self.false_positive_lower), np.array(self.true_positive_upper)
        return _ends(np.repeat(false, 2)), _ends(np.append(np.repeat(true, 2)[1:], 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms:
    """Counts of scores in common bins, the outermost of which hold what lies beyond; `edges` has one entry more."""

    edges: Numbers
    with_row: tuple[int, ...]
    without: tuple[int, ...]


def roc(scores: Scores, *, alpha: float) -> Roc:
    """The ROC of fresh scores, with a band that holds at every threshold.

    Args:
        scores: the scores of runs with the row and without it, at least one each.
        alpha: probability that the true curve leaves the band anywhere.

    Raises:
        InvalidParameter: no scores, or scores that are not numbers.

    Source: Moscovich, Nadler and Spiegelman 2016; docs/explanation/auditing.md#berk-jones and
    docs/explanation/audit-figures.md#roc-band.
    """
    found = roc_band(scores, alpha=alpha)
    kept = _kept(len(found.thresholds))

    def falling(rates: FloatArray) -> Numbers:
        """At the thresholds that are kept, from the highest; below all of them every run is an alarm."""
        return (*_numbers(rates[kept]), 1.0)

    return Roc(
        false_positive_rate=falling(found.false_alarms),
        true_positive_rate=falling(found.right_alarms),
        false_positive_lower=falling(found.false_lower),
        false_positive_upper=falling(found.false_upper),
        true_positive_lower=falling(found.right_lower),
        true_positive_upper=falling(found.right_upper),
        confidence=1.0 - alpha,
        area=_area(_sorted(scores.with_row, "with_row"), _sorted(scores.without, "without")),
    )


def histograms(scores: Scores) -> Histograms:
    """Both kinds of scores in common bins.

    Raises:
        InvalidParameter: no scores, or scores that are not numbers.
    """
    hits, alarms = _sorted(scores.with_row, "with_row"), _sorted(scores.without, "without")
    pooled = np.concatenate([hits, alarms])
    finite = pooled[np.isfinite(pooled)]
    low, high = np.quantile(finite, [_TAIL, 1.0 - _TAIL]).tolist() if len(finite) else (0.0, 0.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    bins = min(_MOST, max(_FEWEST, round(2.0 * min(len(hits), len(alarms)) ** (1.0 / 3.0))))
    edges = np.linspace(low, high, bins + 1)
    with_row, without = (np.histogram(np.clip(values, low, high), edges)[0].tolist() for values in (hits, alarms))
    return Histograms(edges=_numbers(edges), with_row=tuple(with_row), without=tuple(without))


def claimed_trade_off(curve: ClaimedCurve) -> DrawnTradeOff:
    """The least false negative rate that the claim leaves to an attacker, at rates of false positives from 0 to 1.

    Source: Wasserman and Zhou 2010; docs/explanation/risk.md#trade-off.
    """
    if isinstance(curve.claim, Event):
        return _trade_off(risk.trade_off(price(curve.claim), _RATES))
    end = curve.epsilon(curve.default_delta())
    epsilons = np.unique(np.concatenate([_EPSILONS, [end] if math.isfinite(end) else []]))
    deltas = np.array([curve.delta(float(epsilon)) for epsilon in epsilons])
    return _trade_off(risk.type_two(epsilons, deltas, _RATES))


def bound_trade_off(epsilon: float, delta: float) -> DrawnTradeOff:
    """The curve of (epsilon, delta)-privacy: the true curve touches it or dips below it, if epsilon is a lower bound.

    Source: Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015; docs/explanation/risk.md#trade-off.
    """
    return _trade_off(risk.type_two(np.array([min(epsilon, 700.0)]), np.array([delta]), _RATES))


def _trade_off(misses: FloatArray) -> DrawnTradeOff:
    return DrawnTradeOff(false_positive_rate=_numbers(_RATES), false_negative_rate=_numbers(misses))


def _numbers(values: FloatArray) -> Numbers:
    return tuple(values.tolist())


def _ends(rates: FloatArray) -> Numbers:
    """An edge begins at (0, 0) and ends at (1, 1): there every attacker is."""
    return (0.0, *_numbers(rates), 1.0)


def _sorted(scores: FloatArray, name: str) -> FloatArray:
    values = np.sort(np.asarray(scores, dtype=np.float64).ravel())
    if not len(values) or np.isnan(values).any():
        raise InvalidParameter(f"scores.{name} must be at least one number, none of them NaN (unit: scores)")
    return values


def _kept(n: int) -> NDArray[np.int64]:
    """Places of at most some 160 of n rising thresholds, the highest first: evenly, and denser at both ends."""
    steps = np.geomspace(1.0, n, _POINTS // 4)
    places = np.concatenate([np.linspace(0, n - 1, _POINTS // 2), steps - 1.0, n - steps]).round().astype(np.int64)
    return np.unique(places)[::-1]


def _area(hits: FloatArray, alarms: FloatArray) -> float:
    """The probability that a run with the row scores higher than one without; ties count half."""
    below = np.searchsorted(alarms, hits, side="left")
    upto = np.searchsorted(alarms, hits, side="right")
    return float(np.mean(below + upto) / (2.0 * len(alarms)))
