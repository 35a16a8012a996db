"""Guarantees that are stated, and were proven elsewhere: Gaussian DP, zCDP, a Renyi curve, (epsilon, delta), a profile.

Each has the privacy cost of the worst mechanism with that guarantee. docs/explanation/events.md#stated says
which of them has a profile (so that it may be sampled) and which has Renyi divergences (so that it may be composed).

A profile is given at points. Between them it is bounded by chords in x = e^eps: the greatest function that keeps the
contract of a profile and the points. It is the profile of a discrete pair, so everything else follows exactly from that
pair. docs/explanation/events.md#tabulated.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import epsilon_in_range
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_excess, gaussian_log_profile, gaussian_renyi
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST_POINTS = 10_000


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDPEvent(Event):
    """Any mechanism that satisfies mu-Gaussian differential privacy; its worst case is the Gaussian pair.

    A notion of Dong, Roth and Su 2022. docs/explanation/events.md#stated.

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
    (the pair of Kairouz, Oh and Viswanath 2015). The bound is exact alone, sampled and in groups; every Renyi
    divergence is inf. docs/explanation/events.md#stated.

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


_LARGEST_EPSILON = 700.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEvent(Event):
    """Any mechanism that is (epsilons[i], deltas[i])-private for every i, in both directions.

    The profile bounds the mechanism alone, sampled and in groups. Renyi divergences (and so composition by them) are
    finite only if the last delta is 0.

    Args:
        epsilons: increasing, in [0, 700], in nats; at most 10 000.
        deltas: one per epsilon, in [0, 1], the last below 1; a delta above an earlier one is lowered to it.
        adjacency: the relation under which they hold.

    Raises:
        InvalidParameter: a value outside its bound, lengths that differ, or delta 0 at epsilon 0.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        epsilons, deltas = numbers("epsilons", self.epsilons), numbers("deltas", self.deltas)
        if len(epsilons) != len(deltas):
            raise InvalidParameter(f"epsilons has {len(epsilons)} values and deltas {len(deltas)}; give pairs")
        require_increasing("epsilons", epsilons, "nats")
        if epsilons[0] < 0.0 or epsilons[-1] > _LARGEST_EPSILON:
            raise _validate.fail("epsilons", epsilons, f"in [0, {_LARGEST_EPSILON:g}]", "nats")
        for value in deltas:
            if not (value == 0.0 or 1e-300 <= value <= 1.0):
                raise _validate.fail("deltas", value, "0 or in [1e-300, 1]", "probability")
        if min(deltas) == 1.0:
            raise _validate.fail("deltas", min(deltas), "below 1 somewhere", "probability")
        if epsilons[0] == 0.0 and deltas[0] == 0.0:
            raise _validate.fail("deltas", deltas[0], "> 0 at epsilon 0, otherwise nothing is released", "probability")
        object.__setattr__(self, "epsilons", epsilons)
        object.__setattr__(self, "deltas", deltas)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """The chords in e^eps; from the last point on its delta."""
        t = renyi.check_epsilons(epsilons)
        ends, deltas = _corners(self.epsilons, self.deltas)
        right = np.minimum(np.searchsorted(ends, t, side="right"), ends.size - 1)
        inside = t < ends[-1]
        s = np.where(inside, t, 0.0)
        # the share of the corner on the left: (x1 - x) / (x1 - x0), with x0 = -1 for the first chord
        below = renyi.log1mexp(np.minimum(s - ends[right], 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.where(right > 0, ends[right - 1], 0.0)
            whole = renyi.log1mexp(np.minimum(left - ends[right], 0.0))
            grown = np.log(-np.expm1(np.minimum(left - s, 0.0)))
            first = np.log1p(np.exp(-ends[right]))
            share_left = np.where(right > 0, below - whole, below - first)
            share_right = np.where(
                right > 0, s - ends[right] + grown - whole, s - ends[right] + np.log1p(np.exp(-s)) - first
            )
            logs = np.log(deltas)
            chord = np.logaddexp(share_left + np.where(right > 0, logs[right - 1], 0.0), share_right + logs[right])
            last = float(logs[-1])
        return np.where(inside, np.minimum(renyi.raise_log(chord, 32), 0.0), last)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        ends, deltas = _corners(self.epsilons, self.deltas)
        return float(ends[-1]) if deltas[-1] == 0.0 else math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        ends, deltas = _corners(self.epsilons, self.deltas)
        if deltas[-1] > 0.0:
            return np.full(p.shape, np.inf)
        moved = ends > 0.0  # at ratio 1 nothing is in excess
        log_weight, ends = _log_masses(ends, deltas)[moved], ends[moved]
        return quadrature.discrete_log_excess(
            p,
            log_weight=np.concatenate((log_weight + ends, log_weight)),
            log_ratio=np.concatenate((-ends, ends)),
            sampling_rate=sampling_rate,
        )


@functools.lru_cache(maxsize=64)
def _corners(epsilons: tuple[float, ...], deltas: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Corners of the greatest convex minorant at e^eps >= 1 that its mirror image continues: epsilons and deltas.

    A function that is its own mirror image is convex if it is on x >= 1 together with the point (-1, 1), through which
    all lines pass that are their own mirror images. That point comes before the corners that are returned.
    """
    points: list[tuple[float, float]] = []
    steepness: list[float] = []  # log of minus the slope of the chord that ends in each point
    least = 1.0
    for end, delta in zip(epsilons, deltas, strict=True):
        if delta >= least:
            continue  # the profile does not rise, so the earlier point says as much
        least = delta
        while points and _steepness(points[-1], (end, delta)) >= steepness[-1]:
            points.pop()
            steepness.pop()
        steepness.append(_steepness(points[-1] if points else None, (end, delta)))
        points.append((end, delta))
        if delta == 0.0:
            break
    table = np.array(points)
    return table[:, 0], table[:, 1]


def _steepness(left: tuple[float, float] | None, right: tuple[float, float]) -> float:
    """log of minus the slope, in x = e^eps, from `left` (None: the point (-1, 1)) to `right`."""
    end, delta = right
    if left is None:
        return math.log1p(-delta) - end - math.log1p(math.exp(-end))
    return math.log(left[1] - delta) - end - math.log(-math.expm1(left[0] - end))


def _log_masses(ends: FloatArray, deltas: FloatArray) -> FloatArray:
    """log Q(log r = end) at each corner: the rise of the slope there, rounded up, shape (n,)."""
    points = list(zip(ends.tolist(), deltas.tolist(), strict=True))
    steep = [_steepness(points[i - 1] if i else None, point) for i, point in enumerate(points)]
    before = np.array(steep)
    after = np.array([*steep[1:], -math.inf])
    guard = 16.0 * renyi.ULP * (2.0 + np.abs(before))
    with np.errstate(divide="ignore"):
        rise = -np.expm1(np.minimum(after - before, 0.0)) + 2.0 * guard
    masses = before + np.log(rise)
    return np.asarray(masses)
