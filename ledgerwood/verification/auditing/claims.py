"""A mechanism's claimed guarantee as one curve: a budget, an event, or a function from epsilon to delta.

Here too are bounds that assume Gaussian noise, mu and its epsilon at a delta: always name that assumption with them
(docs/explanation/auditing.md#gaussian-scores).
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import stats

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import (
    Composed,
    EllipticalGaussianEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PoissonSampled,
    Repeated,
)
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.counts import binomial_lower
from ledgerwood.verification.auditing.result import level, small_probability

Claim = Event | Budget | Callable[[float], float]
"""An event, a budget, or a function from epsilon (nats, >= 0) to delta, the larger direction."""

_CHECKED = np.concatenate([[0.0], np.geomspace(1e-3, 50.0, 48)])
"""Epsilons at which a function must look like a profile."""
_NOISE = 1e-9
"""The tolerance for a claimed function: numerical error of the claimant."""
_LEAST_NOISE, _CLOSE, _EVALUATIONS = 1e-4, 2e-4, 30


@final
@dataclass(frozen=True, slots=True)
class ClaimedCurve:
    """A claim, read as delta(epsilon).

    Args:
        claim: the given claim.

    Raises:
        InvalidParameter: not a claim, or a function that is not a privacy profile: a value outside [0, 1], one that
            rises, or one that is not convex in e^epsilon.
    """

    claim: Claim

    def __post_init__(self) -> None:
        if isinstance(self.claim, Event | Budget):
            return
        if not callable(self.claim):
            raise InvalidParameter(
                f"claim={self.claim!r} must be a Budget, an event or a function from epsilon to delta (unit: delta)"
            )
        deltas = np.array([self.delta(float(epsilon)) for epsilon in _CHECKED])
        _require_profile(np.exp(_CHECKED), deltas)

    def delta(self, epsilon: float) -> float:
        """The claim's delta at epsilon (nats, >= 0), rounded up.

        At smaller epsilons a budget implies what follows from its single point (docs/explanation/auditing.md#claims).

        Raises:
            InvalidParameter: a function's value that is not a probability.
        """
        epsilon = _validate.non_negative("epsilon", epsilon, "nats")
        claim = self.claim
        if isinstance(claim, Budget):
            if epsilon >= claim.epsilon:
                return claim.delta
            # 1 - (1 - delta) f with f = (1 + e^epsilon) / (1 + e^claimed), as delta f + (1 - f): no digits are lost
            missing = -math.expm1(epsilon - claim.epsilon) / (1.0 + math.exp(-claim.epsilon))
            return min(1.0, (claim.delta * (1.0 - missing) + missing) * (1.0 + 1e-14))
        if isinstance(claim, Event):
            return price(claim).delta(epsilon)
        try:
            value = claim(epsilon)
        except Exception as error:
            raise InvalidParameter(
                f"the claimed function fails at epsilon={epsilon!r} (unit: nats): {type(error).__name__}: {error}"
            ) from error
        number = _validate.real("claim(epsilon)", value, "probability")
        if not 0.0 <= number <= 1.0:
            raise _validate.fail(f"claim({epsilon!r})", value, "in [0, 1]", "probability")
        return number

    def default_delta(self) -> float:
        """The delta at which an audit states epsilon by default: the budget's, 0 for a pure claim, otherwise 1e-5."""
        if isinstance(self.claim, Budget):
            return self.claim.delta
        if isinstance(self.claim, Event):
            return 0.0 if math.isfinite(self.claim.pure_epsilon()) else 1e-5
        return 0.0 if self.delta(700.0) == 0.0 else 1e-5

    def epsilon(self, delta: float) -> float:
        """The least epsilon that the claim promises at `delta`; inf if it promises none."""
        if isinstance(self.claim, Budget):
            return self._found(delta)
        if isinstance(self.claim, Event):
            if delta == 0.0 and not math.isfinite(self.claim.pure_epsilon()):
                return math.inf
            return price(self.claim).epsilon(delta)
        return self._found(delta)

    def _found(self, delta: float) -> float:
        if self.delta(700.0) > delta:
            return math.inf
        low, high = 0.0, 700.0
        if self.delta(0.0) <= delta:
            return 0.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def less_noise(self, epsilon: float, delta: float) -> Event | None:
        """The claim with so little noise that it has `delta` at epsilon: the least of the family that the data refuse.

        None if the claim is no event whose noise is one Gaussian multiplier, where it needs no less, or where no
        member has as much: then what was measured is of another mechanism, and only bounds without an assumption hold.
        """
        if not isinstance(self.claim, Event) or with_noise(self.claim, 1.0) is None or delta <= self.delta(epsilon):
            return None
        target, step = math.log(delta), -0.1
        high, low, at_high, at_low = 0.0, 0.0, _log(self.delta(epsilon)) - target, math.nan
        # Less and less noise until delta is passed, then the chord of log delta, which is nearly straight.
        for _ in range(_EVALUATIONS):
            if low == 0.0:
                middle = max(high + step, math.log(_LEAST_NOISE))
                step *= 2.0
            else:
                share = at_high / (at_high - at_low) if math.isfinite(at_high) else 0.5
                middle = high + (low - high) * min(max(share, 0.05), 0.95)
            excess = self._log_delta_with(middle, epsilon) - target
            if excess > 0.0:
                low, at_low = middle, excess
            else:
                high, at_high = middle, excess
            if (low < 0.0 and high - low < _CLOSE) or at_high > -1e-3 or high <= math.log(_LEAST_NOISE):
                break
        if low == 0.0 and high <= math.log(_LEAST_NOISE):
            return None
        return with_noise(self.claim, math.exp(high))

    def _log_delta_with(self, log_factor: float, epsilon: float) -> float:
        scaled = with_noise(self.claim, math.exp(log_factor)) if isinstance(self.claim, Event) else None
        return math.inf if scaled is None else _log(price(scaled).delta(epsilon))


def _log(delta: float) -> float:
    return math.log(delta) if delta > 0.0 else -math.inf


def with_noise(event: Event, factor: float) -> Event | None:
    """The event with `factor` times its Gaussian noise in every part; None if a part is not Gaussian."""
    match event:
        case GaussianEvent():
            return dataclasses.replace(event, noise_multiplier=event.noise_multiplier * factor)
        case EllipticalGaussianEvent():
            return dataclasses.replace(event, stddevs=tuple(s * factor for s in event.stddevs))
        case GDPEvent():
            return GDPEvent(mu=event.limit / factor, adjacency=event.adjacency)
        case Repeated():
            inner = with_noise(event.event, factor)
            return None if inner is None else Repeated(inner, count=event.count)
        case PoissonSampled():
            inner = with_noise(event.event, factor)
            return None if inner is None else PoissonSampled(inner, sampling_rate=event.sampling_rate)
        case Composed():
            parts = [with_noise(part, factor) for part in event.events]
            known = tuple(part for part in parts if part is not None)
            return Composed(known) if len(known) == len(parts) else None
    return None


def _require_profile(factors: np.ndarray, deltas: np.ndarray) -> None:
    if np.any(np.diff(deltas) > _NOISE):
        raise InvalidParameter("the claimed function rises with epsilon: it is not a privacy profile (unit: delta)")
    gaps = np.diff(factors)
    slopes, noise = np.diff(deltas) / gaps, 2.0 * _NOISE / gaps
    if np.any(np.diff(slopes) < -(noise[:-1] + noise[1:])):
        raise InvalidParameter("the claimed function is not convex in e^epsilon, so no privacy profile (unit: delta)")


_LARGEST_MU = 1e6
"""Of which epsilon is stated: 5e11 nats are a lower bound for all that is above."""


def mu_from_counts(right_alarms: int, runs_with: int, false_alarms: int, runs_without: int, *, alpha: float) -> float:
    """Bound mu by one threshold, fixed beforehand: Phi^-1(true positive rate) - Phi^-1(false positive rate).

    Source: the idea of Nasr et al. 2023; proof in docs/explanation/auditing.md#gaussian-scores.
    """
    alpha = level(alpha)
    hit = binomial_lower(right_alarms, runs_with, alpha / 2.0)
    rest = binomial_lower(runs_without - false_alarms, runs_without, alpha / 2.0)
    return max(0.0, float(stats.norm.ppf(hit) + stats.norm.ppf(rest)))


def mu_from_means(mean_with: float, runs_with: int, mean_without: float, runs_without: int, *, alpha: float) -> float:
    """Bound mu by independent scores, N(mu, 1) with the canary and N(0, 1) without: the difference of their means.

    Source: docs/explanation/auditing.md#gaussian-scores.
    """
    alpha = level(alpha)
    _validate.count("runs_with", runs_with, "scores", minimum=1)
    _validate.count("runs_without", runs_without, "scores", minimum=1)
    spread = math.sqrt(1.0 / runs_with + 1.0 / runs_without)
    return max(0.0, mean_with - mean_without - float(stats.norm.isf(alpha)) * spread * (1.0 + 1e-12))


def epsilon_of(mu: float, delta: float) -> float:
    """Epsilon at `delta` of a Gaussian mechanism with this mu, nats, rounded down; 0 if mu is, inf at delta 0."""
    small_probability("delta", delta)
    if mu <= 0.0:
        return 0.0
    return gdp.epsilon(min(mu, _LARGEST_MU), delta) * (1.0 - 1e-9) if delta > 0.0 else math.inf
