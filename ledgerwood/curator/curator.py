"""Curator and round: pay, sample, read, noise, release. The only way from rows to numbers."""

from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    Composed,
    Event,
    FilteredEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    RepeatedSelection,
)
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.accounting.row_costs import row_costs
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.curator.gate import Gate
from ledgerwood.curator.purses import Purse, RunPurse, require_within
from ledgerwood.curator.queries import Query
from ledgerwood.curator.release import Release, Selected
from ledgerwood.curator.schema import Schema
from ledgerwood.curator.selections import SelectionQuery
from ledgerwood.curator.table import Table
from ledgerwood.errors import RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import MECHANISMS, Mechanism, RandomSource, selection_of

S = TypeVar("S")
M = TypeVar("M")
R = TypeVar("R")
T = TypeVar("T")


class Round(Protocol):
    """One draw: everything released in it sees the same rows; of a `FilteredEvent` each release draws its own."""

    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """Evaluate the query with the mechanism's noise, out of what the draw holds."""

    def select(self, query: SelectionQuery[M, R], mechanism: M, *, purpose: str) -> Selected[R]:
        """Let the mechanism choose, out of what the draw holds."""

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

    def select(
        self,
        event: RepeatedSelection | PoissonSelection,
        plans: Sequence[Event],
        run: "Callable[[int, Aggregator, RandomSource], tuple[float, T]]",
        *,
        purpose: str,
    ) -> tuple[int, float, T] | None:
        """Draw one planned selection, carry out its runs, and release the best one."""


class Rows(Protocol):
    """What a curator holds: a table of trees, of columns, or of rows without a schema, each with queries of its own."""

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""

    def sample(self, sampling_rate: float, source: RandomSource) -> NDArray[np.bool_]:
        """One Poisson sample of the rows; empty, for all of them, at rate 1."""

    def reader(self, query: object) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """What evaluates the query over a sample; refuses a foreign query, and reads no row yet."""

    def evidence(self, query: object) -> Callable[[NDArray[np.bool_]], Any]:
        """What reads a sample for a selection; refuses a foreign one, and reads no row yet."""


@final
class Curator:
    """Holds a table and a grant, and is an `Aggregator` over them.

    Args:
        table: the rows; used by one curator at a time.
        grant: the purse that every round is paid from.
        source: randomness for samples and noise.
        gate: that all rounds end with; None where each ends for itself.
    """

    __slots__ = ("_gate", "_grant", "_source", "_table")

    def __init__(self, table: Rows, grant: Purse, source: RandomSource, *, gate: Gate | None = None) -> None:
        self._gate = gate
        self._table = table
        self._grant = grant
        self._source = source

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._table.schema

    def open(self, event: Event, *, purpose: str) -> "CuratorRound | FilteredRounds":
        """Draw one planned event, or the members of one composition, then sample the rows once, at the event's rate.

        Of a `FilteredEvent` every release is a round of its own, see `FilteredRounds`.

        Raises:
            DrawRefused: the grant does not hold the event; nothing was read.
            UnsupportedEvent: an event that this curator cannot carry out; nothing was drawn.
        """
        if isinstance(event, FilteredEvent):
            if not isinstance(self._table, Table):
                raise UnsupportedEvent(f"{event!r} filters sums of gradients, which a table of columns does not have")
            costs = row_costs(event)
            receipt = self._grant.draw(event, purpose=purpose, randomness=self._source.kind)
            return FilteredRounds(self._table, event, costs, receipt, self._source, gate=self._gate)
        inner, rate = (event.event, event.sampling_rate) if isinstance(event, PoissonSampled) else (event, 1.0)
        held: Counter[Event] = Counter()
        for part, count in inner.draws():
            if isinstance(part, PoissonSampled | Parallel | FilteredEvent):
                raise UnsupportedEvent(
                    f"the in-process curator carries out one sample a draw, not {part!r} inside {event!r}"
                )
            held[part] += count
        # A grant holds the parts of a composition: a round of several is paid for by as many draws.
        for part in event.events if isinstance(event, Composed) else (event,):
            receipt = self._grant.draw(part, purpose=purpose, randomness=self._source.kind)
        sampled = self._table.sample(rate, self._source)
        return CuratorRound(self._table, sampled, held, receipt, self._source, self._gate)

    def select(
        self,
        event: RepeatedSelection | PoissonSelection,
        plans: Sequence[Event],
        run: Callable[[int, Aggregator, RandomSource], tuple[float, T]],
        *,
        purpose: str,
    ) -> tuple[int, float, T] | None:
        """Draw one planned selection, carry out its runs, and release the best one as (plan's index, score, output).

        None where a `PoissonSelection` makes no run.

        Each run takes a plan at random, uniformly, and a purse that holds that plan once and ends with the run. The
        ledger has the one draw: it never learns how many runs there were, nor what they drew
        (docs/explanation/events.md#selection-runs).

        Args:
            event: a planned event of the grant.
            plans: what a run may do, one of them; each within `event.event`, see `require_within`.
            run: from a plan's index, an aggregator that holds it, and random words, to (score, output), as
                `RepeatedSelectionMechanism.select` says; it must not raise because of a row.
            purpose: printable text of one line.

        Raises:
            InvalidParameter, UnsupportedEvent, AdjacencyMismatch, LedgerError: no plan, or one that is not within the
                event; nothing was drawn.
            DrawRefused: the grant does not hold the event; nothing was read.
            RunFailed: a run raised. The budget is spent, nothing is released.
        """
        plans = tuple(plans)
        require_within(plans, event)
        receipt = self._grant.draw(event, purpose=purpose, randomness=self._source.kind)

        def one(source: RandomSource) -> tuple[float, tuple[int, T]]:
            index = int(source.integers(len(plans), 1)[0])
            with RunPurse(plans[index], receipt) as purse:
                score, output = run(index, Curator(self._table, purse, source, gate=purse.gate), source)
            return score, (index, output)

        best = selection_of(event).select(one, self._source)
        if best is None:
            return None
        score, (index, output) = best
        return index, score, output


@final
class CuratorRound:
    """A `Round` of the in-process curator. Made by `Curator.open`."""

    __slots__ = ("_gate", "_held", "_receipt", "_sampled", "_source", "_table")

    def __init__(
        self,
        table: Rows,
        sampled: NDArray[np.bool_],
        held: Counter[Event],
        receipt: Receipt,
        source: RandomSource,
        gate: Gate | None,
    ) -> None:
        self._table = table
        self._sampled = sampled
        self._held = held
        self._receipt = receipt
        self._source = source
        self._gate = Gate(gate)

    def __enter__(self) -> "CuratorRound":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.close()

    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """Evaluate the query over the round's rows, with noise.

        The event of this release is derived from the query's sensitivity and the mechanism's own fields, and must be
        one that the draw still holds: the noise that is added and the noise that was priced cannot differ.

        Raises:
            RoundViolation: the round is closed or another process's, its draw does not hold this release, or query or
                mechanism are foreign.
            InvalidParameter: noise that does not fit the query's grid; nothing was taken.
        """
        read = self._table.reader(query)
        if type(mechanism) not in MECHANISMS:
            raise RoundViolation(
                f"{type(mechanism).__name__} is not a mechanism of this library: its noise is not known"
            )
        mechanism.require_fit(query.grid)  # public, and refused before anything is taken
        # One release at a time: a second thread finds the round as this one left it.
        with self._gate.lock:
            self._gate.require(purpose)
            self._take(mechanism.event(query.sensitivity(self._adjacency), self._adjacency), purpose)
            # Taken out before the rows are read: an error below loses it.
            noisy = mechanism.randomise(read(self._sampled), query.grid, self._source)
        return Release(value=noisy, grid=query.grid, receipt=self._receipt, randomness=self._source.kind)

    def select(self, query: SelectionQuery[M, R], mechanism: M, *, purpose: str) -> Selected[R]:
        """Let the mechanism choose by the round's rows; the event is found, held and taken out as in `release`.

        Raises:
            RoundViolation: as in `release`.
        """
        read = self._table.evidence(query)
        event = query.event(mechanism, self._adjacency)
        with self._gate.lock:
            self._gate.require(purpose)
            self._take(event, purpose)
            value = query.select(mechanism, read(self._sampled), self._source)
        return Selected(value=value, receipt=self._receipt, randomness=self._source.kind)

    def _take(self, event: Event, purpose: str) -> None:
        wanted: Counter[Event] = Counter()
        for part, count in event.draws():
            wanted[part] += count
        if any(self._held[part] < count for part, count in wanted.items()):
            left = [f"{count} x {held!r}" for held, count in self._held.items() if count]
            raise RoundViolation(
                f"release {purpose!r} is {event!r}, which this draw does not hold; it holds {left or 'nothing more'}"
            )
        self._held -= wanted

    @property
    def _adjacency(self) -> Adjacency:
        return self._receipt.adjacency
