"""Poisson sampling of any add-remove event, exactly. docs/explanation/events.md#sampled-profile and #excess-moments.

With r = dP/dQ the sampled pair has the likelihood ratio s = 1 - q + q r, so its profile is that of the event at another
epsilon, and its excess moments are the event's own integral with s in place of r.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.errors import UnsupportedEvent

LEAST_RATE = 1e-100


@final
@dataclass(frozen=True, slots=True)
class PoissonSampled(Event):
    """An event on one secret subsample that holds each unit independently with probability `sampling_rate`.

    Everything computed from one subsample is one draw: sample the composition, never compose the samples.

    Args:
        event: the release from the subsample.
        sampling_rate: in [1e-100, 1].

    Raises:
        InvalidParameter: a rate outside its bound, or something that is not an event.
        UnsupportedEvent: a replace-one event.
    """

    event: Event
    _: KW_ONLY
    sampling_rate: float

    def __post_init__(self) -> None:
        require_event(self.event)
        q = _validate.rate("sampling_rate", self.sampling_rate, "probability per unit")
        if q < LEAST_RATE:
            raise _validate.fail("sampling_rate", self.sampling_rate, "in [1e-100, 1]", "probability per unit")
        object.__setattr__(self, "sampling_rate", q)
        if self.event.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"PoissonSampled of a replace-one event ({self.event!r}) has no proven privacy bound: under "
                "replace-one there is a third output distribution, without the row; state the event of the row's "
                "presence too, in a ReplaceOneSampled, or state the event under add-remove or zero-out"
            )

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        q = self.sampling_rate
        if q == 1.0:
            return self.event.log_profile(epsilons, direction=direction)
        t = renyi.check_epsilons(epsilons)
        if direction is Direction.REMOVE:
            inner = self.event.log_profile(remove_epsilon(t, q), direction=direction)
            return renyi.raise_log(math.log(q) + inner, 4)
        log_mass, inner_epsilon = _add_epsilon(t, q)
        reached = np.isfinite(log_mass)
        inner = self.event.log_profile(np.where(reached, inner_epsilon, 0.0), direction=direction)
        return np.where(reached, renyi.raise_log(np.where(reached, log_mass, 0.0) + inner, 4), -np.inf)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        q = self.sampling_rate
        if q == 1.0:
            return self.event.renyi(orders, direction=direction)
        a = renyi.check_orders(orders)
        if direction is None:
            remove = self.renyi(a, direction=Direction.REMOVE)
            return remove if self.removal_dominates() else np.maximum(remove, self.renyi(a, direction=Direction.ADD))
        excess = self.event.log_excess_moments(renyi.powers_of(a, direction), sampling_rate=q)
        return renyi.guarded(excess, a)

    def pure_epsilon(self) -> float:
        return sampled_epsilon(self.event.pure_epsilon(), self.sampling_rate)

    def mu(self) -> float:
        if self.sampling_rate == 1.0:
            return self.event.mu()
        raise UnsupportedEvent(
            f"{self!r} has no exact Gaussian-DP parameter: a mixture of two Gaussians is not Gaussian"
        )

    def symmetric(self) -> bool:
        return self.sampling_rate == 1.0 and self.event.symmetric()

    def removal_dominates(self) -> bool:
        # A reflection that exchanges P and Q makes "remove" the larger direction at every order and rate.
        return self.event.symmetric()

    def unsampled(self) -> Event:
        return self.event.unsampled()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        # A moment grows with the rate, so the least rate that the integrals are made for bounds a lesser one.
        rate = max(self.sampling_rate * sampling_rate, LEAST_RATE)
        return self.event.log_excess_moments(powers, sampling_rate=rate)


def sampled_epsilon(epsilon: float, sampling_rate: float) -> float:
    """log(1 + q (e^eps - 1)), rounded up, in nats (Balle, Barthe and Gaboardi 2018, Theorem 8)."""
    if sampling_rate == 1.0 or math.isinf(epsilon):
        return epsilon
    if epsilon < 700.0:
        amplified = math.log1p(sampling_rate * math.expm1(epsilon))
    else:  # e^eps would overflow; the logarithm is at least -231, so the two terms do not cancel
        amplified = epsilon + math.log(sampling_rate + (1.0 - sampling_rate) * math.exp(-epsilon))
    return min(math.nextafter(amplified * (1.0 + 8 * renyi.ULP), math.inf), epsilon)


def remove_epsilon(t: FloatArray, q: float) -> FloatArray:
    """log(1 + (e^t - 1) / q), lowered by its rounding error; never overflows."""
    small = np.log1p(np.expm1(np.minimum(t, 1.0)) / q)
    large = (t - math.log(q)) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(t, 1.0)))
    inner = np.where(t <= 1.0, small, large)
    with np.errstate(invalid="ignore"):
        return np.maximum(inner * (1.0 - 8 * renyi.ULP), t)


def _add_epsilon(t: FloatArray, q: float) -> tuple[FloatArray, FloatArray]:
    """log(1 - e^t (1 - q)) and log(e^t q / (1 - e^t (1 - q))); (-inf, inf) where e^t (1 - q) >= 1.

    t is lowered by a few units in its last place first: the profile decreases, so the result is an upper bound.
    """
    t = t * (1.0 - 4 * renyi.ULP)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        grown = (1.0 - q) / q * np.expm1(np.minimum(t, 700.0))
        log_left = np.where(grown < 1.0, np.log1p(-np.minimum(grown, 1.0)), -np.inf)
        return math.log(q) + log_left, (t - log_left) * (1.0 - 4 * renyi.ULP)
