"""Curator and round: pay, sample, read, noise, release. The only way from rows to numbers."""

import os
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Composed, Event, Parallel, PoissonSampled
from ledgerwood.accounting.ledger import Grant, Receipt
from ledgerwood.curator.undeclared_queries import KeyCounts
from ledgerwood.curator.undeclared import UndeclaredTable
from ledgerwood.curator.queries import Query, known_query
from ledgerwood.curator.schema import Category, Schema
from ledgerwood.curator.table import Table
from ledgerwood.errors import RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import MECHANISMS, GaussianStabilityMechanism, Grid, Mechanism, RandomSource

S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release(Generic[R_co]):
    """A noisy value and the receipt that it was paid with. What is computed from it is post-processing.

    Args:
        value: integers on `grid`, noise included.
        grid: the steps of the last axis.
        receipt: the draw that paid for it.
        randomness: "test" where the noise can be repeated, and protects nobody.
    """

    value: R_co
    grid: Grid
    receipt: Receipt
    randomness: Literal["secure", "test"]


def real(release: Release[NDArray[np.int64]]) -> NDArray[np.float64]:
    """A release of integers in real units, float64, its shape."""
    return release.grid.to_real(release.value)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRelease:
    """The categories that a stability histogram shows, with noisy counts, and the receipt that they were paid with.

    Args:
        counts: (category, noisy number of rows), in the order of the categories' names.
        receipt: the last of the draws that paid for it.
        randomness: "test" where the noise can be repeated, and protects nobody.
    """

    counts: tuple[tuple[Category, int], ...]
    receipt: Receipt
    randomness: Literal["secure", "test"]


class Round(Protocol):
    """One draw: everything released in it sees the same rows."""

    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """Evaluate the query with the mechanism's noise, out of what the draw holds."""

    def release_keys(self, query: KeyCounts, mechanism: GaussianStabilityMechanism, *, purpose: str) -> KeyRelease:
        """The categories of a column, out of what the draw holds."""

    def __enter__(self) -> Self:
        """The round itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the round; what it did not release is lost."""


class Aggregator(Protocol):
    """All that a trainer may ever see of the data."""

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""

    def open(self, event: Event, *, purpose: str) -> Round:
        """Draw one planned event, then sample the rows once, at the event's rate."""


@final
class Curator:
    """Holds a table and a grant, and is an `Aggregator` over them.

    Args:
        table: the rows; used by one curator at a time.
        grant: the purse that every round is paid from.
        source: randomness for samples and noise.
    """

    __slots__ = ("_grant", "_source", "_table")

    def __init__(self, table: Table | UndeclaredTable, grant: Grant, source: RandomSource) -> None:
        self._table = table
        self._grant = grant
        self._source = source

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._table.schema

    def open(self, event: Event, *, purpose: str) -> "CuratorRound":
        """Draw one planned event, or the members of one composition, then sample the rows once, at the event's rate.

        Raises:
            DrawRefused: the grant does not hold the event; nothing was read.
            UnsupportedEvent: an event that this curator cannot carry out; nothing was drawn.
        """
        inner, rate = (event.event, event.sampling_rate) if isinstance(event, PoissonSampled) else (event, 1.0)
        held: Counter[Event] = Counter()
        for part, count in inner.draws():
            if isinstance(part, PoissonSampled | Parallel):
                raise UnsupportedEvent(
                    f"the in-process curator carries out one sample a draw, not {part!r} inside {event!r}"
                )
            held[part] += count
        # A grant holds the parts of a composition: a round of several is paid for by as many draws.
        for part in event.events if isinstance(event, Composed) else (event,):
            receipt = self._grant.draw(part, purpose=purpose, randomness=self._source.kind)
        sampled = self._table.sample(rate, self._source)
        return CuratorRound(self._table, sampled, held, receipt, self._source)


@final
class CuratorRound:
    """A `Round` of the in-process curator. Made by `Curator.open`."""

    __slots__ = ("_held", "_lock", "_open", "_owner", "_receipt", "_sampled", "_source", "_table")

    def __init__(
        self,
        table: Table | UndeclaredTable,
        sampled: NDArray[np.bool_],
        held: Counter[Event],
        receipt: Receipt,
        source: RandomSource,
    ) -> None:
        self._table = table
        self._sampled = sampled
        self._held = held
        self._receipt = receipt
        self._source = source
        self._open = True
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def __enter__(self) -> "CuratorRound":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._open = False

    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """Evaluate the query over the round's rows, with noise.

        The event of this release is derived from the query's sensitivity and the mechanism's own fields, and must be
        one that the draw still holds: the noise that is added and the noise that was priced cannot differ.

        Raises:
            RoundViolation: the round is closed or another process's, its draw does not hold this release, or query or
                mechanism are foreign.
        """
        known = known_query(query)
        if type(mechanism) not in MECHANISMS:
            raise RoundViolation(
                f"{type(mechanism).__name__} is not a mechanism of this library: its noise is not known"
            )
        # One release at a time: a second thread finds the round as this one left it.
        with self._lock:
            self._take(mechanism.event(query.sensitivity(self._adjacency), self._adjacency), purpose)
            # Taken out before the rows are read: an error below loses it.
            statistic = self._table.statistic(known, self._sampled)
            noisy = mechanism.randomise(statistic, query.grid, self._source)
        return Release(value=noisy, grid=query.grid, receipt=self._receipt, randomness=self._source.kind)

    def release_keys(self, query: KeyCounts, mechanism: GaussianStabilityMechanism, *, purpose: str) -> KeyRelease:
        """The categories of a column that enough rows have.

        Raises:
            RoundViolation: as `release`, or the rows have no such column.
        """
        if (type(query), type(mechanism)) != (KeyCounts, GaussianStabilityMechanism):
            raise RoundViolation(f"{type(query).__name__} by {type(mechanism).__name__} is not a stability histogram")
        with self._lock:
            if not isinstance(self._table, UndeclaredTable):
                raise RoundViolation("the rows are in the cells of a schema: categories are bought before that")
            for event, _ in mechanism.event(self._adjacency).draws():
                self._take(event, purpose)
            counts = self._table.key_counts(query, self._sampled)
            # By name, with the type in front: the order of the keys is public, whatever the order of the rows.
            named = {f"{type(key).__name__} {key!r}": key for key in counts}
            shown = mechanism.select({name: counts[key] for name, key in named.items()}, self._source)
        return KeyRelease(
            counts=tuple((named[name], count) for name, count in shown.items()),
            receipt=self._receipt,
            randomness=self._source.kind,
        )

    def _take(self, event: Event, purpose: str) -> None:
        if not self._open:
            raise RoundViolation(f"release {purpose!r}: the round is closed; open another, with a draw of its own")
        if self._owner != os.getpid():
            raise RoundViolation(
                f"release {purpose!r}: the round belongs to another process; parent and child would each release "
                "what was drawn once"
            )
        if self._held[event] < 1:
            left = [f"{count} x {held!r}" for held, count in self._held.items() if count]
            raise RoundViolation(
                f"release {purpose!r} is {event!r}, which this draw does not hold; it holds {left or 'nothing more'}"
            )
        self._held[event] -= 1

    @property
    def _adjacency(self) -> Adjacency:
        return self._receipt.adjacency
