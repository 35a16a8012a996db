"""Events as JSON records, written and read. Records are permanent: a field never changes its meaning.

A record is {"type": class name, field: value, ...}; an adjacency is its value ("add-remove"), an event a record, a
tuple a list. Reading is strict: an unknown class, an unknown or missing field, or a number that is not finite is
refused.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent, PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.choices.selection import PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.group import FilteredEvent
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent, DiscreteLaplaceEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent, StaircaseEvent, TruncatedLaplaceEvent
from ledgerwood.accounting.events.noise.mixture import GaussianMixtureEvent
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, SkellamVectorEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled, ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import (
    ApproximateEvent,
    GDPEvent,
    ProfileEvent,
    RenyiEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.errors import LedgerError

_LEVELS = 32
_CLASSES: dict[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        GaussianEvent,
        GaussianMixtureEvent,
        EllipticalGaussianEvent,
        LaplaceEvent,
        PureEvent,
        DiscreteGaussianEvent,
        DiscreteLaplaceEvent,
        SkellamEvent,
        SkellamVectorEvent,
        StaircaseEvent,
        TruncatedLaplaceEvent,
        ProfileEvent,
        ApproximateEvent,
        RenyiEvent,
        ZeroConcentratedEvent,
        GDPEvent,
        RandomizedResponseEvent,
        BoundedRangeEvent,
        PoissonSampled,
        RandomAllocation,
        FixedSizeSampled,
        FilteredEvent,
        ReplaceOneSampled,
        RepeatedSelection,
        PoissonSelection,
        Repeated,
        Composed,
        Parallel,
    )
}

RECORDED = frozenset(_CLASSES.values())
"""Every class of event that has a record: those that a user can state, and a ledger can hold."""


def to_json(event: Event) -> dict[str, Any]:
    """The record of an event: plain dicts, lists, strings and numbers; floats are written by their shortest repr.

    Raises:
        LedgerError: an event of a class that has no record, nesting deeper than 32.
    """
    return _record(event, _LEVELS)


def _record(event: Event, levels: int) -> dict[str, Any]:
    _check_depth(levels)
    name = type(event).__name__
    if _CLASSES.get(name) is not type(event):
        raise LedgerError(f"{name} has no record; known are {', '.join(_CLASSES)}")
    fields = _fields(type(event)).items()
    return {"type": name, **{key: _plain(getattr(event, attribute), levels - 1) for key, attribute in fields}}


def from_json(record: object) -> Event:
    """The event of a record.

    Raises:
        LedgerError: not a record, an unknown class, an unknown or missing field, nesting deeper than 32.
        InvalidParameter: a value outside its bound (each event checks its own).
    """
    return _event(record, _LEVELS)


def _event(record: object, levels: int) -> Event:
    _check_depth(levels)
    if not isinstance(record, Mapping) or not isinstance(record.get("type"), str):
        raise LedgerError(f"not the record of an event: {record!r}")
    cls = _CLASSES.get(record["type"])
    if cls is None:
        raise LedgerError(f"unknown event {record['type']!r}; known are {', '.join(_CLASSES)}")
    fields = _fields(cls)
    given = set(record) - {"type"}
    if given != set(fields):
        raise LedgerError(
            f"{cls.__name__}: unknown fields {sorted(map(str, given - set(fields)))}, "
            f"missing fields {sorted(set(fields) - given)}"
        )
    return cls(**{key: _value(key, record[key], levels - 1) for key in fields})


def _check_depth(levels: int) -> None:
    if levels == 0:
        raise LedgerError(f"an event nested deeper than {_LEVELS} levels has no record")


def _fields(cls: type[Event]) -> dict[str, str]:
    """The keys of a class's record, which are its constructor's arguments, each with its attribute."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    return {field.metadata.get("record", field.name): field.name for field in fields}


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, Event):
        return _record(value, levels)
    if isinstance(value, Adjacency):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item, levels) for item in value]
    return value


def _value(key: str, value: Any, levels: int) -> Any:
    if key == "adjacency":
        try:
            return Adjacency(value)
        except ValueError as error:
            raise LedgerError(f"unknown adjacency {value!r}") from error
    if key in ("event", "add_remove", "limit"):
        return _event(value, levels)
    if key == "events":
        if not isinstance(value, list):
            raise LedgerError(f"events must be a list of records, not {value!r}")
        return tuple(_event(item, levels) for item in value)
    if isinstance(value, list):
        return tuple(value)
    return value
