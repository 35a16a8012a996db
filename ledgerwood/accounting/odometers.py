"""Privacy odometers: the privacy cost so far, at a moment that may depend on the outputs (odometers.md).

A filter enforces a budget that was fixed beforehand. An odometer reports the privacy cost at the moment when one stops.
It is a frozen rule, chosen before the first output, for any sequence of events: `odometer.epsilon(ledger.plans)`.
Proofs: docs/explanation/odometers.md.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up
from ledgerwood.accounting.adjacency import Adjacency, common_adjacency
from ledgerwood.accounting.costs.conversion import LARGEST_ORDER, LEAST_ORDER
from ledgerwood.accounting.events import ApproximateEvent, Event, PureEvent
from ledgerwood.accounting.events.base import FloatArray, require_event
from ledgerwood.errors import BudgetExceeded, UnsupportedEvent

ALL_SCALES = tuple(1.0 + 2.0 ** (0.5 * k) for k in range(-12, 35))
"""47 Renyi orders from 1 + 2^-6 to 1 + 2^17: no epsilon from 1e-3 to 1e2 is far from one of them."""

_GUARD = 2.0**-46  # of the magnitudes that are added, 64 roundings' worth
_TURNS = 60
_LARGEST = Fraction(2) ** 1000
_UNITS = 2**1074  # to one: every float is a whole number of them, so that sums are exact, and fast


@final
@dataclass(frozen=True, slots=True)
class PureOdometer:
    """The sum of pure epsilons, exact; delta is 0.

    Source: Rogers, Roth, Ullman, Vadhan 2016; docs/explanation/odometers.md#pure-odometer.
    """

    @property
    def delta(self) -> float:
        """The delta of its readings: always 0."""
        return 0.0

    def start(self) -> "OdometerState":
        """The state before the first event; `after` takes events in one by one, in the same time after any number."""
        return OdometerState(odometer=self)

    def epsilon(self, events: Iterable[Event]) -> float:
        """The sum, in nats, rounded up; neither it nor the loss itself is ever exceeded.

        Raises:
            UnsupportedEvent: an event that is not pure.
            AdjacencyMismatch: events under different relations.
        """
        return self.start().after(events).epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiOdometer:
    """Sum Renyi divergences at one or several orders; the reading uses the best order.

    It reads every event that has Renyi divergences: Gaussian, Laplace and sampled noise, selections, stated rho and
    mu. With one order it reads the amount that `RenyiFilter` of that order would charge. The default orders suit every
    epsilon from 1e-3 to 1e2 (at delta 1e-6 and epsilon 1 the reading is 16 % above that filter's).

    Source: our derivation, docs/explanation/odometers.md#renyi-odometer; odometers by martingales are due to
    Whitehouse, Ramdas, Rogers, Wu 2023, by Renyi divergences to Lecuyer 2021.

    Args:
        delta: probability in (0, 1).
        orders: in [1 + 1e-6, 1 + 1e6], each once, with equal weights; a public choice, before any output is seen.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    delta: float
    orders: tuple[float, ...] = field(default=ALL_SCALES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", _open_probability("delta", self.delta))
        object.__setattr__(self, "orders", _orders(self.orders))

    def start(self) -> "OdometerState":
        """The state before the first event; `after` takes events in one by one, in the same time after any number."""
        return OdometerState(odometer=self)

    def epsilon(self, events: Iterable[Event]) -> float:
        """Epsilon, in nats, rounded up: what is released until one stops is (epsilon, delta)-private.

        Raises:
            UnsupportedEvent: no order has a finite divergence.
            AdjacencyMismatch: events under different relations.
        """
        return self.start().after(events).epsilon

    def loss(self, events: Iterable[Event]) -> float:
        """A bound on the privacy loss itself, in nats, rounded up; larger than `epsilon`.

        With probability 1 - delta the loss is at most this at *all* times at once. Errors as in `epsilon`.
        """
        return self.start().after(events).loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WhitehouseOdometer:
    """(epsilon_i, delta_i) as they are, chosen one after the other, beside whatever `RenyiOdometer` reads.

    The deltas may sum to delta - delta_prime at most; each epsilon is accounted as a randomised response.

    Source: Whitehouse, Ramdas, Rogers, Wu 2023; our derivation, with smaller constants, in
    docs/explanation/odometers.md#whitehouse-odometer.

    Args:
        delta: probability in (0, 1): at which it reads.
        delta_prime: in (0, delta]: the part of delta that advanced composition uses.
        orders: as of `RenyiOdometer`.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    delta: float
    delta_prime: float
    orders: tuple[float, ...] = field(default=ALL_SCALES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", _open_probability("delta", self.delta))
        object.__setattr__(self, "delta_prime", _open_probability("delta_prime", self.delta_prime))
        if self.delta_prime > self.delta:
            raise _validate.fail("delta_prime", self.delta_prime, f"at most delta={self.delta!r}", "probability")
        object.__setattr__(self, "orders", _orders(self.orders))

    def start(self) -> "OdometerState":
        """The state before the first event; `after` takes events in one by one, in the same time after any number."""
        return OdometerState(odometer=self)

    def epsilon(self, events: Iterable[Event]) -> float:
        """Epsilon, in nats, rounded up: what is released until one stops is (epsilon, delta)-private.

        Args:
            events: `ApproximateEvent` for a point (epsilon_i, delta_i), alone or composed; others by their divergences.

        Raises:
            BudgetExceeded: the deltas sum to more than delta - delta_prime: no epsilon is proven any more.
            UnsupportedEvent, AdjacencyMismatch: as of `RenyiOdometer`.
        """
        return self.start().after(events).epsilon


Odometer = PureOdometer | RenyiOdometer | WhitehouseOdometer
"""The closed set of odometers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OdometerState:
    """What an odometer has read so far: exact sums, whose size does not grow with the number of events.

    The reading is the same, bit for bit, whichever way the events are taken in: one by one, in parts, or all at once.
    It is got by `start` of an odometer, and goes on with `after`; the odometer, a rule chosen before the first output,
    stays as it is. Source: docs/explanation/odometers.md#running-odometers.

    Args:
        odometer: the rule.
        events: number of events that were taken in.
        adjacency: the relation of all of them; None before the first.
    """

    odometer: Odometer
    events: int = 0
    adjacency: Adjacency | None = None
    _divergences: tuple[int | None, ...] | None = None  # by the odometer's orders, in `_UNITS`; None for infinity
    _pure: Fraction | None = Fraction()  # None for infinity
    _deltas: Fraction = Fraction()

    def after(self, events: Iterable[Event]) -> "OdometerState":
        """The state after these events, in the order of time; a single one is written `[event]`.

        Raises:
            UnsupportedEvent: an event that is not pure, of `PureOdometer`.
            AdjacencyMismatch: events under different relations.
        """
        counts = _counted(events)
        if not counts:
            return self
        found = [event.adjacency for event in counts]
        adjacency = common_adjacency(found if self.adjacency is None else [self.adjacency, *found], "an odometer")
        deltas = self._deltas
        read: Counter[Event] = Counter()
        match self.odometer:
            case PureOdometer():
                read = counts
                for event in counts:
                    if not math.isfinite(event.pure_epsilon()):
                        raise UnsupportedEvent(f"PureOdometer accepts pure events only, and {event!r} is not")
            case RenyiOdometer():
                read = counts
            case WhitehouseOdometer():
                for event, count in counts.items():
                    for draw, times in event.draws():
                        if isinstance(draw, ApproximateEvent):
                            deltas += count * times * Fraction(draw.delta)
                            read[PureEvent(epsilon=draw.epsilon, adjacency=draw.adjacency)] += count * times
                        else:
                            read[draw] += count * times
        orders = () if isinstance(self.odometer, PureOdometer) else self.odometer.orders
        sums: list[int | None] = [0] * len(orders) if self._divergences is None else list(self._divergences)
        for event, count in read.items():
            for place, one in enumerate(_divergences(event, orders)):
                before = sums[place]
                sums[place] = None if before is None or one is None else before + count * one
        return OdometerState(
            odometer=self.odometer, events=self.events + counts.total(), adjacency=adjacency,
            _divergences=tuple(sums), _pure=_more(self._pure, read), _deltas=deltas,
        )  # fmt: skip

    @property
    def epsilon(self) -> float:
        """The odometer's reading: `epsilon` of all events so far.

        Raises:
            UnsupportedEvent: no order has a finite divergence.
            BudgetExceeded: of `WhitehouseOdometer`, the deltas sum to more than delta - delta_prime.
        """
        match self.odometer:
            case PureOdometer():
                return float_up(self._pure or Fraction())
            case RenyiOdometer():
                return self._reading(self.odometer.delta, self.odometer.orders, at_all_times=False)
            case WhitehouseOdometer():
                left = Fraction(self.odometer.delta) - Fraction(self.odometer.delta_prime)
                if self._deltas > left:
                    raise BudgetExceeded(
                        f"the deltas sum to {float_up(self._deltas)!r}; the odometer has "
                        f"delta - delta_prime={float_down(left)!r} for them (unit: probability)",
                        requested={"delta": float_up(self._deltas)},
                        remaining={"delta": float_down(left)},
                    )
                return self._reading(self.odometer.delta_prime, self.odometer.orders, at_all_times=False)

    @property
    def loss(self) -> float:
        """The bound on the privacy loss at all times: `loss` of all events so far.

        Raises:
            UnsupportedEvent: no order has a finite divergence, or the odometer bounds no loss (`WhitehouseOdometer`).
        """
        match self.odometer:
            case PureOdometer():
                return self.epsilon
            case RenyiOdometer():
                return self._reading(self.odometer.delta, self.odometer.orders, at_all_times=True)
            case WhitehouseOdometer():
                raise UnsupportedEvent(
                    "WhitehouseOdometer bounds no loss: a point (epsilon, delta) says nothing of the loss itself; "
                    "read its epsilon, or state the events' divergences to a RenyiOdometer"
                )

    def _reading(self, delta: float, orders: tuple[float, ...], *, at_all_times: bool) -> float:
        """What events with Renyi divergences amount to, in nats; never above their pure sum. Rounded up."""
        if self._divergences is None:
            return 0.0
        gaps = np.array(orders) - 1.0
        divergences = np.array([_upward(None if one is None else Fraction(one, _UNITS)) for one in self._divergences])
        with np.errstate(over="ignore"):
            known = np.isfinite(gaps * divergences)
        if not known.any():
            raise UnsupportedEvent(
                "every order of the odometer has an infinite divergence; use a WhitehouseOdometer: state a "
                "point, at a delta fixed in advance, as an ApproximateEvent"
            )
        found = _least(gaps[known], divergences[known], -math.log(len(orders)), math.log(delta), at_all_times)
        return min(max(found, 0.0), _upward(self._pure))


def _upward(sum_: Fraction | None) -> float:
    return math.inf if sum_ is None or sum_ > _LARGEST else float_up(sum_)


def _more(pure: Fraction | None, read: Counter[Event]) -> Fraction | None:
    """The sum of pure epsilons with these events; None for infinity."""
    for event, count in read.items():
        epsilon = event.pure_epsilon()
        pure = None if pure is None or not math.isfinite(epsilon) else pure + Fraction(epsilon) * count
    return pure


@functools.lru_cache(maxsize=64)
def _divergences(event: Event, orders: tuple[float, ...]) -> tuple[int | None, ...]:
    """The event's divergence at each order, rounded up, in `_UNITS`; None for infinity."""
    if not orders:
        return ()
    with np.errstate(over="ignore"):
        found = event.renyi(np.array(orders))
    return tuple(_in_units(one) if math.isfinite(one) else None for one in found.tolist())


def _in_units(value: float) -> int:
    """A float as a whole number of `_UNITS`: exact."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNITS // denominator)


def _least(gaps: FloatArray, divergences: FloatArray, log_weight: float, log_delta: float, at_all_times: bool) -> float:
    """The least reading u for which delta times the mixture sum_k w e^{gap_k (loss - D_k)} pays for every loss.

    That is (1 - e^{u - loss})+ <= delta mixture, or, at all times, 1 <= delta mixture at loss u. Any probabilities p
    over the orders bound the mixture from below by one exponential (Gibbs), so every turn of the search gives a valid
    reading: docs/explanation/odometers.md#readings.
    """
    best = math.inf
    p = np.zeros(len(gaps))
    p[int(np.argmin(divergences - log_weight / gaps - log_delta / gaps))] = 1.0
    for _ in range(_TURNS):
        gap = float(p @ gaps)
        divergence = float(p @ (gaps * divergences)) / gap
        log_p = np.log(p, out=np.zeros(len(p)), where=p > 0.0)
        share = log_weight - float(p @ log_p)
        shrink, rest = (0.0, 0.0) if at_all_times else (-math.log1p(1.0 / gap), math.log1p(gap))
        found = divergence + shrink - (log_delta + share + rest) / gap
        sizes = share - log_delta - 2.0 * log_weight + rest
        found += _GUARD * (divergence - shrink + sizes / gap)
        if found >= best:
            break
        best = found
        logs = gaps * (found - shrink - divergences)
        p = np.exp(logs - logs.max())
        p /= p.sum()
    return best


def _counted(events: Iterable[Event]) -> Counter[Event]:
    counts: Counter[Event] = Counter()
    for event in events:
        require_event(event)
        counts[event] += 1
    return counts


def _open_probability(name: str, value: object) -> float:
    number = _validate.positive(name, value, "probability")
    if number >= 1.0:
        raise _validate.fail(name, value, "in (0, 1)", "probability")
    return number


def _orders(values: object) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise _validate.fail("orders", values, "a sequence of at least one", "Renyi order")
    orders = tuple(_validate.real("orders", value, "Renyi order") for value in values)
    for order in orders:
        if not LEAST_ORDER <= order <= LARGEST_ORDER:
            raise _validate.fail("orders", order, f"in [{LEAST_ORDER!r}, {LARGEST_ORDER!r}]", "Renyi order")
    if len(set(orders)) < len(orders):
        raise _validate.fail("orders", orders, "different from each other", "Renyi order")
    return orders
