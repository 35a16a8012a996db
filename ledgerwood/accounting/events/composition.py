"""The three ways to combine events: repetition, sequential composition, parallel composition.

Each direction is computed separately, and the larger is taken at the end: docs/explanation/events.md#composition.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, common_adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event, FloatArray, SizedSample, require_event
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_excess, gaussian_log_profile
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_SUM_TOLERANCE = 1e-9
_MOST = 2**53
_SHOWN = 100  # events of a composition that a message spells out


@final
@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """`count` repetitions of one event, each with fresh randomness (and, if sampled, a fresh subsample).

    Args:
        event: the event that is repeated.
        count: a whole number from 1 to 2**53 (exact as a float).

    Raises:
        InvalidParameter: a count outside its bound.
    """

    event: Event
    _: KW_ONLY
    count: int

    def __post_init__(self) -> None:
        require_event(self.event)
        count = _validate.count("count", self.count, "releases")
        if count > _MOST:
            raise _validate.fail("count", count, "at most 2**53", "releases")
        object.__setattr__(self, "count", count)

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        if self.count == 1:
            return self.event.log_profile(epsilons, direction=direction)
        return gaussian_log_profile(_joint_mu(self, "profile"), epsilons)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        # count > 0 times the larger direction is the larger direction of count times each.
        return renyi.raise_by(self.count * self.event.renyi(orders, direction=direction), 1)

    def pure_epsilon(self) -> float:
        return _exact_sum_up([(self.event.pure_epsilon(), self.count)])

    def mu(self) -> float:
        if self.count == 1:
            return self.event.mu()
        return _up(math.sqrt(self.count) * self.event.mu())

    def symmetric(self) -> bool:
        return self.event.symmetric()

    def removal_dominates(self) -> bool:
        return self.event.removal_dominates()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        if self.count == 1:
            return self.event.log_excess_moments(powers, sampling_rate=sampling_rate)
        return _joint_log_excess(self, powers, sampling_rate)

    def unsampled(self) -> Event:
        return Repeated(self.event.unsampled(), count=self.count)

    def draws(self) -> Iterator[tuple[Event, int]]:
        for event, count in self.event.draws():
            yield event, count * self.count


@final
@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Several events in sequence, each with fresh randomness; later ones may depend on earlier outputs.

    Args:
        events: at least one, all of one adjacency.

    Raises:
        InvalidParameter: no event, or a member that is not one.
        AdjacencyMismatch: members of different adjacencies.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _members(self.events, "Composed"))

    def __repr__(self) -> str:
        if len(self.events) <= _SHOWN:
            return f"Composed(events={self.events!r})"
        return f"Composed(events=({self.events[0]!r}, ... {len(self.events) - 1} more))"

    @property
    def adjacency(self) -> Adjacency:
        return self.events[0].adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        if len(self.events) == 1:
            return self.events[0].log_profile(epsilons, direction=direction)
        return gaussian_log_profile(_joint_mu(self, "profile"), epsilons)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        if direction is not None:
            return self._renyi([event.renyi(orders, direction=direction) for event, _ in self._counted()])
        ahead = [event.renyi(orders, direction=Direction.REMOVE) for event, _ in self._counted()]
        if self.removal_dominates():
            return self._renyi(ahead)
        back = [
            own if event.symmetric() else event.renyi(orders, direction=Direction.ADD)
            for own, (event, _) in zip(ahead, self._counted(), strict=True)
        ]
        return np.maximum(self._renyi(ahead), self._renyi(back))

    def _renyi(self, parts: list[FloatArray]) -> FloatArray:
        """The sum of the parts' divergences, each with its count."""
        total = sum((own * n for own, (_, n) in zip(parts, self._counted(), strict=True)), start=np.zeros(()))
        return renyi.raise_by(total, len(self.events))

    def pure_epsilon(self) -> float:
        return _exact_sum_up((event.pure_epsilon(), count) for event, count in self._counted())

    def mu(self) -> float:
        if len(self.events) == 1:
            return self.events[0].mu()
        return _up(math.sqrt(math.fsum(event.mu() ** 2 for event in self.events)))

    def symmetric(self) -> bool:
        return all(event.symmetric() for event in self.events)

    def removal_dominates(self) -> bool:
        return all(event.removal_dominates() for event in self.events)

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        if len(self.events) == 1:
            return self.events[0].log_excess_moments(powers, sampling_rate=sampling_rate)
        return _joint_log_excess(self, powers, sampling_rate)

    def unsampled(self) -> Event:
        return Composed(tuple(event.unsampled() for event in self.events))

    def draws(self) -> Iterator[tuple[Event, int]]:
        for event in self.events:
            yield from event.draws()

    def _counted(self) -> Iterable[tuple[Event, int]]:
        counts: dict[Event, int] = {}
        for event in self.events:
            counts[event] = counts.get(event, 0) + 1
        return counts.items()


@final
@dataclass(frozen=True, slots=True)
class Parallel(Event):
    """Events on disjoint groups of units, one for each group; later ones may depend on earlier groups' outputs.

    With `probabilities`, each unit is assigned to group k with public probability p_k, freshly, secretly, independently
    of its content and of all outputs (the rest is in no group). Without (`Parallel.worst`), the assignment may be known
    or depend on content. docs/explanation/events.md#parallel and #parallel-worst.

    Args:
        events: at least one, all of one adjacency.
        probabilities: one per event, >= 0, summing to at most 1; None for the worst case.

    Raises:
        InvalidParameter: a value outside its bound.
        AdjacencyMismatch: members of different adjacencies.
        UnsupportedEvent: the worst case under replace-one, where a row may leave one group and enter another.
    """

    events: tuple[Event, ...]
    _: KW_ONLY
    probabilities: tuple[float, ...] | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _members(self.events, "Parallel"))
        if self.probabilities is None:
            if self.adjacency is Adjacency.REPLACE_ONE:
                raise UnsupportedEvent(
                    "Parallel.worst under replace-one has no privacy bound here: the replaced row may leave one group "
                    "and enter another, which is two changes; use add-remove, or state the two "
                    "changes in the query's sensitivity"
                )
            return
        given: object = self.probabilities
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise _validate.fail("probabilities", given, "one number per event", "probability")
        weights = tuple(_validate.non_negative("probabilities", p, "probability") for p in given)
        if len(weights) != len(self.events):
            raise InvalidParameter(f"probabilities has {len(weights)} values for {len(self.events)} events")
        if self.adjacency is Adjacency.REPLACE_ONE and base.holds(Composed(self.events), SizedSample):
            raise UnsupportedEvent(
                "a group that units join at random has no public number of rows, which FixedSizeSampled needs"
            )
        total = math.fsum(weights)
        if not 0.0 < total <= 1.0 + _SUM_TOLERANCE:
            raise _validate.fail("sum of probabilities", total, "in (0, 1]", "probability")
        object.__setattr__(self, "probabilities", weights)

    @classmethod
    def worst(cls, events: Iterable[Event]) -> "Parallel":
        """Groups whose assignment is known or depends on content: the costliest group at each point of the profile."""
        return cls(tuple(events), probabilities=None)

    @property
    def adjacency(self) -> Adjacency:
        return self.events[0].adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        members, weights = self._distinct()
        mixed = _mixed([e.log_profile(epsilons, direction=direction) for e in members], weights)
        return np.asarray(np.minimum(mixed, 0.0))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        if self.probabilities is None:
            return np.asarray(np.max([event.renyi(a, direction=direction) for event in self._distinct()[0]], axis=0))
        if direction is None:
            remove = self.renyi(a, direction=Direction.REMOVE)
            return remove if self.symmetric() else np.maximum(remove, self.renyi(a, direction=Direction.ADD))
        excess = self.log_excess_moments(renyi.powers_of(a, direction), sampling_rate=1.0)
        return renyi.guarded(excess, a)

    def pure_epsilon(self) -> float:
        weights = self.probabilities or (1.0,) * len(self.events)
        return max(event.pure_epsilon() for event, p in zip(self.events, weights, strict=True) if p > 0.0)

    def mu(self) -> float:
        if self.probabilities is None:
            return max(event.mu() for event in self.events)
        raise UnsupportedEvent(f"{self!r} has no exact Gaussian-DP parameter: a mixture of groups is not Gaussian")

    def symmetric(self) -> bool:
        return all(event.symmetric() for event in self.events)

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        members, weights = self._distinct()
        return _mixed([e.log_excess_moments(powers, sampling_rate=sampling_rate) for e in members], weights)

    def unsampled(self) -> Event:
        return Parallel(tuple(event.unsampled() for event in self.events), probabilities=self.probabilities)

    def _distinct(self) -> tuple[list[Event], list[float] | None]:
        """The different members that somebody may enter, equal ones as one group of all their units."""
        if self.probabilities is None:
            return list(dict.fromkeys(self.events)), None
        weights: dict[Event, list[float]] = {}
        for event, p in zip(self.events, self.probabilities, strict=True):
            if p > 0.0:  # a group that nobody enters may have an infinite moment
                weights.setdefault(event, []).append(p)
        return list(weights), [math.fsum(together) for together in weights.values()]


def _mixed(members: list[FloatArray], weights: list[float] | None) -> FloatArray:
    """log sum p_k e^{logs_k}, raised, or the pointwise maximum: both functionals are linear in the mixture."""
    logs = np.stack(members)
    if weights is None:
        return np.asarray(np.max(logs, axis=0))
    shares = np.log(weights).reshape((-1,) + (1,) * (logs.ndim - 1))
    shares += renyi.ULP * (1.0 + 2.0 * np.abs(shares))
    total: FloatArray = np.logaddexp.reduce(logs + shares, axis=0)
    with np.errstate(invalid="ignore"):
        raised = total + renyi.ULP * (1.0 + len(weights)) * (1.0 + np.abs(total))
    return np.where(np.isfinite(total), raised, total)


def _members(events: object, where: str) -> tuple[Event, ...]:
    if isinstance(events, (str, Event)) or not isinstance(events, Iterable):
        raise _validate.fail("events", events, "a sequence of events", "events")
    members = tuple(events)
    if not members:
        raise _validate.fail("events", members, "at least one event", "events")
    for event in members:
        require_event(event)
    common_adjacency([event.adjacency for event in members], where)
    return members


def _joint_mu(event: Event, what: str) -> float:
    try:
        return event.mu()
    except UnsupportedEvent as error:
        raise UnsupportedEvent(f"no exact {what} is known for {event!r}: it is not all Gaussian ({error})") from error


def _joint_log_excess(event: Event, powers: ArrayLike, sampling_rate: float) -> FloatArray:
    """Unsampled, the moments of independent releases multiply; sampled together they are known for a Gaussian pair."""
    if sampling_rate == 1.0:
        return renyi.to_log_excess(renyi.check_powers(powers), lambda a, d: event.renyi(a, direction=d))
    return gaussian_log_excess(_joint_mu(event, "sampled price"), powers, sampling_rate)


def _exact_sum_up(terms: Iterable[tuple[float, int]]) -> float:
    """The sum of value * count, exact where it is a float and rounded up where it is not."""
    listed = list(terms)
    if any(math.isinf(value) for value, _ in listed):
        return math.inf
    exact = sum((Fraction(value) * count for value, count in listed), Fraction())
    if exact > Fraction(math.nextafter(math.inf, 0.0)):
        return math.inf
    return _directed.float_up(exact)


def _up(value: float) -> float:
    return math.nextafter(value * (1.0 + 2 * renyi.ULP), math.inf) if math.isfinite(value) else value
