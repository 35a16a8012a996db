"""The walk over events made of events. Every question about the parts of a composed event uses it.

The parts of a class are found by its fields, so that a new class needs no entry in a list. A class that is not the
library's, or that has a field which could hide an event, cannot be looked into and is refused.
"""

import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, cast

from ledgerwood.accounting.events.base import Event
from ledgerwood.errors import UnsupportedEvent

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
        until: what is inside of an event of this class, other than the root, is left out.

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
        raise UnsupportedEvent(
            f"{cls.__name__} is not one of the library's events, and what it is made of cannot be looked into"
        )
    name = cls.__name__
    if not dataclasses.is_dataclass(cls):
        raise UnsupportedEvent(f"{name} has no fields that say what it is made of")
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
