"""Stated guarantees, proven elsewhere: Gaussian DP, zCDP, a Renyi curve, (epsilon, delta).

Each has the privacy cost of the worst mechanism with that guarantee. docs/explanation/events.md#stated says
which of them has a profile (so that it may be sampled) and which has Renyi divergences (so that it may be composed).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import epsilon_in_range
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_excess, gaussian_log_profile, gaussian_renyi
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST_POINTS = 10_000


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDPEvent(Event):
    """Any mechanism that satisfies mu-Gaussian differential privacy; its worst case is the Gaussian pair.

    Source: Dong, Roth and Su 2022, Definition 2.6. docs/explanation/events.md#stated.

    Args:
        mu: in [1e-100, 1e100].
        adjacency: the relation under which mu holds.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    limit: float = field(metadata={"record": "mu"})  # `mu` is what every event is asked for
    adjacency: Adjacency = field()

    def __init__(self, *, mu: float, adjacency: Adjacency) -> None:
        object.__setattr__(self, "limit", in_range("mu", mu, "1"))
        require_adjacency(adjacency)
        object.__setattr__(self, "adjacency", adjacency)

    def __repr__(self) -> str:
        return f"GDPEvent(mu={self.limit!r}, adjacency={self.adjacency!r})"

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return gaussian_log_profile(self.limit, epsilons)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return gaussian_renyi(self.limit, orders)

    def pure_epsilon(self) -> float:
        return math.inf

    def mu(self) -> float:
        return self.limit

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return gaussian_log_excess(self.limit, powers, sampling_rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentratedEvent(Event):
    """Any mechanism that satisfies rho-zCDP: its Renyi divergence of each order a > 1 is at most rho a.

    Source: Bun and Steinke 2016, Definition 1.1. It has no privacy profile and cannot be sampled, since many pairs
    have these divergences. docs/explanation/events.md#stated.

    Args:
        rho: in [1e-100, 1e100], in nats.
        adjacency: the relation under which rho holds.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    rho: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", in_range("rho", self.rho, "nats"))
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return renyi.raise_by(renyi.check_orders(orders) * self.rho, 1)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiEvent(Event):
    """Any mechanism with these Renyi divergences at these orders, in both directions.

    Valid at every order up to the last: (a - 1) D_a is convex in a and 0 at 1, so it lies below the chords of the given
    points and (1, 0). Beyond the last order nothing is known, and the divergence is inf. It has no privacy
    profile and cannot be sampled. docs/explanation/events.md#stated.

    Args:
        orders: real, > 1, increasing; at most 10 000.
        divergences: one per order, > 0 and finite, in nats.
        adjacency: the relation under which they hold.

    Raises:
        InvalidParameter: a value outside its bound, or lengths that differ.
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        orders, divergences = numbers("orders", self.orders), numbers("divergences", self.divergences)
        if len(orders) != len(divergences):
            raise InvalidParameter(f"orders has {len(orders)} values and divergences {len(divergences)}; give pairs")
        renyi.check_orders(orders)
        require_increasing("orders", orders, "Renyi order")
        for value in divergences:
            _validate.positive("divergences", value, "nats")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "divergences", divergences)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        x, y = _lower_chords(self.orders, self.divergences)
        right = np.minimum(np.searchsorted(x, a), x.size - 1)
        left = right - 1
        share = (a - x[left]) / (x[right] - x[left])
        # the weights of D itself: those of (a - 1) D_a, over a - 1
        before = np.where(left == 0, 0.0, (1.0 - share) * y[left])
        after = np.where(left == 0, y[right] / (x[right] - 1.0), share * y[right] / (a - 1.0))
        chord = np.where(left == 0, after, before / (a - 1.0) + after)
        return np.where(a <= self.orders[-1], renyi.raise_by(chord, 16), np.inf)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateEvent(Event):
    """Any (epsilon, delta)-private mechanism, accounted by its worst case.

    The worst case reveals everything with probability delta, and else is a randomised response of epsilon
    (Kairouz, Oh and Viswanath 2015, Theorem 3). The bound is exact alone, sampled and in groups; every Renyi divergence
    is inf. docs/explanation/events.md#stated.

    Args:
        epsilon: in [1e-100, 1e100], in nats.
        delta: in (0, 1); a pure mechanism is a `PureEvent`.
        adjacency: the relation under which both hold.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_in_range(self.epsilon))
        delta = _validate.positive("delta", self.delta, "probability")
        if delta >= 1.0:
            raise _validate.fail("delta", self.delta, "in (0, 1)", "probability")
        object.__setattr__(self, "delta", delta)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """H(t) = delta + (1 - delta) (e^eps - e^t)+ / (1 + e^eps), both directions; delta itself from eps on."""
        t = renyi.check_epsilons(epsilons)
        gap = np.minimum(t - self.epsilon, 0.0)
        response = renyi.log1mexp(gap) - math.log1p(math.exp(-self.epsilon))
        log_delta = math.log(self.delta)
        mixed = renyi.raise_log(np.logaddexp(log_delta, math.log1p(-self.delta) + response), 16)
        return np.where(t >= self.epsilon, log_delta, mixed)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return np.full(renyi.check_orders(orders).shape, np.inf)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """Inf at every power: P has mass delta where Q has none."""
        return np.full(renyi.check_powers(powers).shape, np.inf)


def in_range(name: str, value: object, unit: str) -> float:
    """A number in [1e-100, 1e100]."""
    number = _validate.positive(name, value, unit)
    if not 1e-100 <= number <= 1e100:
        raise _validate.fail(name, value, "in [1e-100, 1e100]", unit)
    return number


def numbers(name: str, values: object) -> tuple[float, ...]:
    """1 to 10 000 finite real numbers."""
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or len(values) == 0:
        raise _validate.fail(name, values, "a sequence of at least one number", "one per point")
    if len(values) > _MOST_POINTS:
        raise InvalidParameter(f"{name} has {len(values)} values; at most {_MOST_POINTS} (unit: points)")
    return tuple(_validate.real(name, value, "one per point") for value in values)


def require_increasing(name: str, values: tuple[float, ...], unit: str) -> None:
    """Refuse a grid that does not increase."""
    for one, other in itertools.pairwise(values):
        if not one < other:
            raise InvalidParameter(f"{name} must increase, and {other!r} follows {one!r} (unit: {unit})")


def _lower_chords(orders: tuple[float, ...], divergences: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """The corners of the greatest convex minorant of (1, 0) and the points (a, (a - 1) D_a), shapes (n,)."""
    corners = [(1.0, 0.0)]
    for x, divergence in zip(orders, divergences, strict=True):
        y = (x - 1.0) * divergence
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            corners.pop()
        corners.append((x, y))
    table = np.array(corners)
    return table[:, 0], table[:, 1]


def no_profile(event: Event) -> UnsupportedEvent:
    """The refusal of an event that is known by its Renyi divergences alone."""
    return UnsupportedEvent(
        f"{event!r} has no privacy profile: Renyi divergences do not determine one; use method='renyi'"
    )


def unsampled_moments(event: Event, powers: ArrayLike, sampling_rate: float) -> FloatArray:
    """The moments of such an event: of itself, never of its sample."""
    if sampling_rate == 1.0:
        return renyi.to_log_excess(renyi.check_powers(powers), lambda a, d: event.renyi(a, direction=d))
    raise UnsupportedEvent(
        f"{event!r} cannot be sampled: its Renyi divergences do not determine the sampled distribution; state the "
        "mechanism's own event, or a GDPEvent, ApproximateEvent or ProfileEvent that it keeps"
    )
