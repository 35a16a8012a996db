"""The base class of events: a release under an adjacency, known by its privacy profile.

P is the distribution of the release with the unit, Q the distribution without it, for the dominating pair of the event
(docs/explanation/events.md#profile). All accounting uses two functionals of that pair:

* the hockey-stick profile H(eps) = sup_S P(S) - e^eps Q(S), in both directions, and
* the excess moments E_Q[r^p - 1 - p (r - 1)] with r = dP/dQ, p > 1 (remove) or p < 0 (add), from which the
  Renyi divergences of the event and of its Poisson sample follow without cancellation.

`walk`, `children` and `holds` go over the parts of an event, and nothing else does. They find the parts by the fields
of a class, so that a new class needs no entry in a list. A class that is not the library's, or that has a field which
could hide an event, is refused.
"""

import abc
import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

FloatArray = NDArray[np.float64]
R = TypeVar("R")


class Event(abc.ABC):
    """A description of a release from which its privacy cost follows. Frozen; equality is by value.

    Event classes are permanent: a class is never removed, and a field never changes its meaning.
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def adjacency(self) -> Adjacency:
        """The relation under which the event was stated."""

    @abc.abstractmethod
    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """Natural logarithm of the hockey-stick divergence H at each epsilon >= 0, shape of `epsilons`.

        -inf if H is 0. Rounded so that it is never below the truth beyond the stated ulp guard.

        Raises:
            UnsupportedEvent: no exact profile is known (a composition that is not all Gaussian).
            InvalidParameter: an epsilon below 0 or not a number.
        """

    @abc.abstractmethod
    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """Renyi divergence at real orders > 1, in nats, shape (k,); the larger direction where none is named.

        Never below the truth (relative guard 1e-12); inf if the divergence is infinite.

        Raises:
            InvalidParameter: an order <= 1 or not finite.
        """

    @abc.abstractmethod
    def pure_epsilon(self) -> float:
        """The least epsilon at which H is 0 in both directions, rounded up; inf if there is none."""

    def mu(self) -> float:
        """The mu of a Gaussian pair N(0, 1), N(mu, 1) that *is* this event's pair, rounded up.

        Raises:
            UnsupportedEvent: the event is not a Gaussian pair.
        """
        raise UnsupportedEvent(f"{self!r} has no exact Gaussian-DP parameter: its pair is not Gaussian")

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """log E_Q[s^p - 1 - p (s - 1)] with s = 1 - q + q dP/dQ, for powers p > 1 or p < 0; shape (k,).

        Raises:
            UnsupportedEvent: no such integral is known (a composition that is not all Gaussian).
        """
        raise UnsupportedEvent(f"{self!r} cannot be sampled: its joint profile is not known")

    def symmetric(self) -> bool:
        """Returns whether a reflection of the output exchanges P and Q; then both directions of the event are alike.

        docs/explanation/events.md#symmetric.
        """
        return False

    def removal_dominates(self) -> bool:
        """Returns whether the Renyi divergence of removal is known to be the larger one at every order."""
        return self.symmetric()

    def unsampled(self) -> "Event":
        """This event with all units in every sample; its pair dominates this one's (events.md#unsampled)."""
        return self

    def draws(self) -> Iterator[tuple["Event", int]]:
        """The events that can be drawn from a grant of this event, with counts; a sample is one event."""
        yield self, 1


class Derived(Event):
    """An event that only the accounting makes, as a bound on others. Users do not state it, and it has no record."""

    __slots__ = ()


class SizedSample(Event):
    """A sample of a fixed number of rows, which needs a public number of rows to be drawn from."""

    __slots__ = ()


class ReplacedRowSample(Event):
    """A Poisson sample under replace-one; `add_remove` is the event of a row's presence in the sample."""

    __slots__ = ()
    add_remove: Event
    sampling_rate: float


def unsampled_moments(event: Event, powers: ArrayLike, sampling_rate: float, reason: str) -> FloatArray:
    """Log excess moments from the event's own Renyi divergences, for an event whose sample has none; shape (k,).

    Raises:
        UnsupportedEvent: a sampling rate below 1; `reason` says why, and what to do instead.
    """
    if sampling_rate == 1.0:
        return renyi.to_log_excess(renyi.check_powers(powers), lambda a, d: event.renyi(a, direction=d))
    raise UnsupportedEvent(f"{event!r} cannot be sampled{reason}")


def require_event(value: object) -> None:
    """Refuse what is not an event."""
    if not isinstance(value, Event):
        raise InvalidParameter(f"{value!r} is not an event")


@final
class Remembered(Generic[R]):
    """A pure function, called by place, that keeps its last answers for events of the very same classes.

    Equality is not enough: an event of a foreign class may be equal to another and have another privacy cost.
    """

    def __init__(self, function: Callable[..., R], maxsize: int) -> None:
        functools.update_wrapper(self, function)
        self.kept = functools.lru_cache(maxsize)(lambda _, arguments: function(*arguments))

    def __call__(self, *arguments: object) -> R:
        return self.kept(_classes(arguments), arguments)


def remembered(maxsize: int) -> Callable[[Callable[..., R]], Remembered[R]]:
    """Keep the last answers of a function, see `Remembered`."""
    return lambda function: Remembered(function, maxsize)


def _classes(value: object) -> object:
    """The classes of the events in a value, and of those within them."""
    if isinstance(value, tuple):
        return tuple(_classes(item) for item in value)
    if not isinstance(value, Event):
        return None
    event: Any = value
    fields = dataclasses.fields(event) if dataclasses.is_dataclass(event) else ()
    return type(value), *(_classes(getattr(value, field.name)) for field in fields)


_PLAIN = (int, float, str, bool, type(None))
_PACKAGE = "ledgerwood.accounting."


def children(event: Event) -> tuple[Event, ...]:
    """The events that an event is made of, one level down, in the order of its fields.

    Raises:
        UnsupportedEvent: an event of a class that is not the library's, or that cannot be looked into.
    """
    found: list[Event] = []
    for name in _event_fields(type(event)):
        value = getattr(event, name)
        found.extend(item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Event))
    return tuple(found)


def walk(event: Event, *, until: type[Event] | None = None) -> Iterator[Event]:
    """The event and all its parts, at any depth; an event that occurs at several places comes once.

    Args:
        event: the root, which comes first.
        until: parts inside an event of this class, other than the root, are omitted.

    Raises:
        UnsupportedEvent: as of `children`, once the walk is there.
    """
    seen: set[int] = set()
    waiting = [event]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        below = children(here)
        yield here
        if until is None or here is event or not isinstance(here, until):
            waiting.extend(reversed(below))


def holds(event: Event, kind: type[object]) -> bool:
    """Returns whether the event, or any part of it at any depth, is of this class; raises as `walk`."""
    parts = tuple(walk(event))  # all of them: an unknown class anywhere is refused
    return any(isinstance(part, kind) for part in parts)


@functools.cache
def _event_fields(cls: type[Event]) -> tuple[str, ...]:
    """The names of the fields that may hold events, of a class whose other fields cannot."""
    module = sys.modules.get(cls.__module__)
    if not cls.__module__.startswith(_PACKAGE) or getattr(module, cls.__name__, None) is not cls:
        raise UnsupportedEvent(f"{cls.__name__} is not one of the library's events, so its parts cannot be inspected")
    name = cls.__name__
    if not dataclasses.is_dataclass(cls):
        raise UnsupportedEvent(f"{name} has no fields that describe its parts")
    hints = typing.get_type_hints(cls)
    return tuple(field.name for field in dataclasses.fields(cls) if _may_hold_events(hints[field.name], name))


def _may_hold_events(hint: Any, where: str) -> bool:
    """Returns whether a field of this type may hold events.

    Raises:
        UnsupportedEvent: a type that says neither.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, typing.Union, types.UnionType):
        found = [_may_hold_events(argument, where) for argument in arguments if argument is not Ellipsis]
        return any(found)
    if origin is Callable or typing.get_origin(origin) is Callable:
        return False
    if isinstance(hint, type):
        if issubclass(hint, Event):
            return True
        if issubclass(hint, (*_PLAIN, enum.Enum)):
            return False
    if origin is typing.Literal:
        return False
    raise UnsupportedEvent(f"{where} has a field of type {cast('object', hint)!r}, which may hide an event")
