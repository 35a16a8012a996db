"""Zero-concentrated differential privacy: which rho an event keeps, and what a rho is worth.

A rho bounds the Renyi divergence of every order a > 1, in both directions, by rho a (Bun and Steinke 2016,
Definition 1.1). docs/explanation/ledger.md#zcdp-filter proves each bound.
"""

import functools
import math
from fractions import Fraction

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.costs import conversion
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent, PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent
from ledgerwood.accounting.events.stated import ZeroConcentratedEvent
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_SWEEP = 512  # orders
_LEAST_RATIO = 1e-6  # of a divergence to the pure epsilon


def rho(event: Event) -> float:
    """A rho that the event is proven to keep, in nats, rounded up.

    It is exact for single Gaussian and pure events; for a plan it is the sum, for parallel groups the largest.

    Source: docs/explanation/ledger.md#zcdp-filter.

    Raises:
        UnsupportedEvent: no rho is proven; that of a sample is no less than that of the event without sampling.
    """
    match event:
        case Repeated():
            return float_up(event.count * Fraction(rho(event.event)))
        case Composed():
            return float_up(sum((Fraction(rho(part)) for part in event.events), Fraction()))
        case Parallel():
            weights = event.probabilities or (1.0,) * len(event.events)
            return max(rho(part) for part, weight in zip(event.events, weights, strict=True) if weight > 0.0)
        case ZeroConcentratedEvent():
            return event.rho
        case DiscreteGaussianEvent():
            return float_up((Fraction(event.sensitivity) / Fraction(event.scale)) ** 2 / 2)
        case BoundedRangeEvent():
            return min(float_up(Fraction(event.epsilon) ** 2 / 8), pure_rho(event.epsilon))
        case PureEvent() | RandomizedResponseEvent():
            return pure_rho(event.pure_epsilon())
    try:
        return float_up(Fraction(event.mu()) ** 2 / 2)
    except UnsupportedEvent as error:
        if math.isfinite(event.pure_epsilon()):
            return _swept_rho(event)
        raise UnsupportedEvent(
            f"no rho is proven for {event!r}: sampling does not lower the rho of a Gaussian. Grant it unsampled, or "
            "use RenyiFilter"
        ) from error


def pure_rho(epsilon: float) -> float:
    """The least rho of every epsilon-differentially private mechanism: epsilon tanh(epsilon / 2), rounded up.

    Source: docs/explanation/ledger.md#zcdp-filter; below Bun and Steinke 2016, Proposition 3.3, epsilon**2 / 2.
    """
    square = float_up(Fraction(epsilon) ** 2 / 2)
    if square < 1e-290:  # where a product of floats would lose its digits
        return square
    return min(square, epsilon * math.tanh(0.5 * epsilon) * (1.0 + 2.0**-49))


def _swept_rho(event: Event) -> float:
    """A rho of a pure event from its own divergences, rounded up; a little above the least one.

    A divergence grows with its order and never exceeds the pure epsilon, so between two orders of a grid it is at most
    the upper one's over the lower order, and beyond the last one epsilon over that order.
    """
    epsilon = event.pure_epsilon()
    try:
        second = float(event.renyi(np.array([2.0]))[0])
        if not second > _LEAST_RATIO * epsilon:  # the grid would have to go too far
            return pure_rho(epsilon)
        grid = np.geomspace(1.0, max(2.1 * epsilon / second, 2.0), _SWEEP)
        divergences = event.renyi(grid[1:])
    except UnsupportedEvent:
        return pure_rho(epsilon)
    found = max(float(np.max(divergences / grid[:-1])), epsilon / float(grid[-1]))
    return min(math.nextafter(found, math.inf), pure_rho(epsilon))


@functools.lru_cache(maxsize=64)
def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho that converts at `delta`, at its best order, to at most `epsilon` (nats); rounded down.

    Source: the conversion of Canonne, Kamath, Steinke 2020, Proposition 12, solved for the divergence.

    Raises:
        InvalidParameter: delta 0, or no rho fits.
    """
    if delta <= 0.0:
        raise _validate.fail("delta", delta, "> 0: no rho > 0 has a finite epsilon at delta 0", "probability")
    log_delta = math.log(delta)
    best = conversion.least_over_orders(
        np.zeros_like, lambda orders, _: -conversion.renyi_divergences(orders, epsilon, log_delta) / orders
    )
    if best.value >= 0.0:
        raise InvalidParameter(f"no rho > 0 has epsilon={epsilon!r} nats at delta={delta!r} (unit: rho)")
    return math.nextafter(-best.value, 0.0)


def epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho at `delta` in (0, 1), in nats, rounded up."""
    if rho == 0.0:
        return 0.0
    log_delta = math.log(delta)
    best = conversion.least_over_orders(
        lambda orders: np.nextafter(rho * orders, np.inf),
        lambda orders, divergences: conversion.renyi_epsilons(orders, divergences, log_delta),
    )
    return max(best.value, 0.0)
