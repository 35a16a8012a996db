"""What is promised of a mechanism, as one curve: a budget, an event, or a function from epsilon to delta."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
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

Claim = Event | Budget | Callable[[float], float]
"""An event, a budget, or a function from epsilon (nats, >= 0) to delta, the larger direction."""

_CHECKED = np.concatenate([[0.0], np.geomspace(1e-3, 50.0, 48)])
"""Epsilons at which a function must look like a profile."""
_LEAST_NOISE, _HALVINGS = 1e-4, 40


@final
@dataclass(frozen=True, slots=True)
class ClaimedCurve:
    """A claim, read as delta(epsilon).

    Args:
        claim: as it was given.

    Raises:
        InvalidParameter: not a claim, or a function that is no privacy profile: a value outside [0, 1], one that rises,
            or one that is not convex in e^epsilon.
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
        """What the claim allows at epsilon (nats, >= 0), rounded up.

        A budget promises at smaller epsilons what follows from its one point.

        Raises:
            InvalidParameter: a function's value that is no probability.
        """
        epsilon = _validate.non_negative("epsilon", epsilon, "nats")
        claim = self.claim
        if isinstance(claim, Budget):
            if epsilon >= claim.epsilon:
                return claim.delta
            # 1 - (1 - delta)(1 + e^epsilon) / (1 + e^claimed): the curve through the point, docs claims-of-budgets
            factor = math.exp(epsilon - claim.epsilon) * (1.0 + math.exp(-epsilon)) / (1.0 + math.exp(-claim.epsilon))
            return min(1.0, (1.0 - (1.0 - claim.delta) * factor) * (1.0 + 1e-14))
        if isinstance(claim, Event):
            return price(claim).delta(epsilon)
        value = claim(epsilon)
        number = _validate.real("claim(epsilon)", value, "probability")
        if not 0.0 <= number <= 1.0:
            raise _validate.fail(f"claim({epsilon!r})", value, "in [0, 1]", "probability")
        return number

    def default_delta(self) -> float:
        """Where an audit states epsilon if no delta is asked for: a budget's own, 0 for a pure claim, else 1e-5."""
        if isinstance(self.claim, Budget):
            return self.claim.delta
        if isinstance(self.claim, Event):
            return 0.0 if math.isfinite(self.claim.pure_epsilon()) else 1e-5
        return 0.0 if self.delta(700.0) == 0.0 else 1e-5

    def epsilon(self, delta: float) -> float:
        """The least epsilon that the claim promises at `delta`; inf where it promises none."""
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

        None where the claim is no event whose noise is one Gaussian multiplier, or where it needs no less.
        """
        if not isinstance(self.claim, Event) or with_noise(self.claim, 1.0) is None or delta <= self.delta(epsilon):
            return None
        low, high = math.log(_LEAST_NOISE), 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            scaled = with_noise(self.claim, math.exp(middle))
            if scaled is None or price(scaled).delta(epsilon) > delta:
                low = middle
            else:
                high = middle
        return with_noise(self.claim, math.exp(high))


def with_noise(event: Event, factor: float) -> Event | None:
    """The event with `factor` times its Gaussian noise in every part; None where a part is not Gaussian."""
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
    slack = 1e-12
    if np.any(np.diff(deltas) > slack):
        raise InvalidParameter("the claimed function rises with epsilon: it is no privacy profile (unit: delta)")
    slopes = np.diff(deltas) / np.diff(factors)
    if np.any(np.diff(slopes) < -1e-9 * (1.0 + np.abs(slopes[1:]))):
        raise InvalidParameter("the claimed function is not convex in e^epsilon, so no privacy profile (unit: delta)")
