"""Rounds of one draw, and disjoint groups of rows with a round each: how a curator carries out a `Parallel`.

A round has the rows of its draw and counts what the draw still holds: what is not held is not released.
docs/explanation/events.md#parallel-words.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    Composed,
    Event,
    FilteredEvent,
    Parallel,
    PoissonSampled,
    RandomAllocation,
    Repeated,
)
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.curator.queries.declared import DeclaredStatistic, caution_weights, caveats_in
from ledgerwood.curator.queries.registry import Query, SelectionQuery
from ledgerwood.curator.release import Gate, Release, Selected
from ledgerwood.errors import RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import MECHANISMS, Mechanism, RandomSource
from ledgerwood.recording.points import Recorded, passes, passes_with_owner
from ledgerwood.schema import Schema

S = TypeVar("S")
M = TypeVar("M")
R = TypeVar("R")


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


class Groups(Protocol):
    """One draw of a `Parallel`: disjoint groups of rows, each with its own round."""

    def __len__(self) -> int:
        """The number of groups."""

    def round(self, group: int) -> Round:
        """The round of a group, 0-based; each call returns the same round, with the rest of the group's event."""

    def __enter__(self) -> Self:
        """The groups themselves."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the rounds of all groups; what they did not release is lost."""


class Allocation(Protocol):
    """One draw of a `RandomAllocation`: steps one after another, each with its own round over the rows in it."""

    def __len__(self) -> int:
        """The number of steps, of which as many are carried out as the caller asks for."""

    def step(self) -> Round:
        """The round of the next step, which holds one step's event; the round before it is closed."""

    def __enter__(self) -> Self:
        """The allocation itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the last round; steps that were not carried out are lost."""


class Rows(Protocol):
    """The table of a curator: of trees, of columns, or of rows without a schema, each with separate queries."""

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""

    @property
    def owners_add_noise(self) -> bool:
        """Whether what `reader` reads has its noise already: the shares of the owners of the rows."""

    def begin(self, event: Event) -> None:
        """Take note that this event was drawn; its rows are sampled next."""

    def sample(self, sampling_rate: float, source: RandomSource) -> NDArray[np.bool_]:
        """One Poisson sample of the rows; empty, for all of them, at rate 1."""

    def assign(self, ends: Sequence[int], source: RandomSource) -> NDArray[Any]:
        """A group for each row, or none, as `RowCoins.categories` has them."""

    def members(self, assignment: NDArray[Any], group: int) -> NDArray[np.bool_]:
        """The sample that a group is, of what `assign` has returned."""

    def allocate(self, selected: int, steps: int, source: RandomSource) -> Any:
        """Steps for each row: exactly `selected` of `steps`, uniformly."""

    def allocated(self, allocation: Any, step: int) -> NDArray[np.bool_]:
        """The sample of a step, of what `allocate` has returned."""

    def reader(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """Returns the evaluator of the query over a sample; refuses an unregistered query, and reads no row yet.

        The mechanism is what the release is priced by: owners of rows compare it with the draw, and may add its noise.
        """

    def caveat(self, query: object) -> str:
        """The ledger's caveat for a query whose sensitivity is not proven; empty for all others."""

    def evidence(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], Any]:
        """Makes the reader of a sample for a selection; refuses an unknown selection, and reads no row yet."""


def held_by(event: Event) -> Counter[Event]:
    """Counts the releases in a round of this event.

    Raises:
        UnsupportedEvent: a sample, groups, an allocation or a filter inside; each of these needs a separate draw.
    """
    held: Counter[Event] = Counter()
    for part, count in event.draws():
        if isinstance(part, PoissonSampled | Parallel | RandomAllocation | FilteredEvent):
            if part is event and isinstance(part, Parallel):
                raise UnsupportedEvent(f"groups are opened by open_groups, and have a round each: {part!r}")
            if part is event and isinstance(part, RandomAllocation):
                raise UnsupportedEvent(
                    f"an allocation is opened by open_allocation, and has a round for each step: {part!r}"
                )
            raise UnsupportedEvent(
                f"the in-process curator supports one sample per draw, not {part!r} inside {event!r}"
            )
        held[part] += count
    return held


def left_after(held: Counter[Event], event: Event, purpose: str) -> Counter[Event]:
    """What a draw holds once a release of this event was taken out of it.

    Raises:
        RoundViolation: the draw does not hold the release.
    """
    wanted: Counter[Event] = Counter()
    for part, count in event.draws():
        wanted[part] += count
    if any(held[part] < count for part, count in wanted.items()):
        left = [f"{count} x {each!r}" for each, count in held.items() if count]
        raise RoundViolation(
            f"release {purpose!r} is {event!r}, which this draw does not hold; it holds {left or 'nothing more'}"
        )
    return held - wanted


def parts_of(event: Event) -> Iterator[Event]:
    """What a grant of the event holds. A foreign class is a part itself, which no ledger has: it could state any."""
    if type(event) is Composed:
        for member in event.events:
            yield from parts_of(member)
    elif type(event) is Repeated:
        for _ in range(event.count):
            yield from parts_of(event.event)
    else:
        yield event


@final
class CuratorRound(Recorded):
    """A `Round` of the in-process curator. Made by `Curator.open` and `CuratorGroups.round`.

    Args:
        table: the rows.
        drawn: what the table's `sample` returned, or its `assign` where the round is a group's.
        held: what the draw holds.
        receipt: of the draw.
        source: randomness for noise.
        gate: that the round ends with, if any.
        group: of `drawn`; None where that is a sample. A mask for each group would be a byte a row and group.
    """

    __slots__ = ("_drawn", "_gate", "_group", "_held", "_receipt", "_source", "_table")

    def __init__(
        self,
        table: Rows,
        drawn: NDArray[Any],
        held: Counter[Event],
        receipt: Receipt,
        source: RandomSource,
        gate: Gate | None,
        group: int | None = None,
    ) -> None:
        super().__init__()
        self._table = table
        self._drawn = drawn
        self._group = group
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

    @passes_with_owner("release")
    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """Evaluate the query over the round's rows, with noise.

        The event of this release is derived from the query's sensitivity and the mechanism's own fields, and must be
        one that the draw still holds: the noise that is added and the noise that was priced cannot differ.

        Raises:
            RoundViolation: the round is closed or another process's, its draw does not hold this release, query or
                mechanism are foreign, or the ledger does not say that the query's sensitivity is not proven.
            InvalidParameter: noise that does not fit the query's grid; nothing was taken.
        """
        read = self._table.reader(query, mechanism)
        caveat = self._table.caveat(query)
        if caveat and caveat not in caveats_in(self._receipt.purpose):
            raise RoundViolation(
                f"release {purpose!r} is {caveat}, and the ledger does not say so: open the round with "
                "purpose=statistic.purpose(...)"
            )
        asked: object = query
        if isinstance(asked, DeclaredStatistic) and self._table.schema.weighted:
            caution_weights(asked)
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
            noisy = read(self._sampled)
            if not self._table.owners_add_noise:
                noisy = mechanism.randomise(noisy, query.grid, self._source)
        return Release(value=noisy, grid=query.grid, receipt=self._receipt, randomness=self._source.kind, caveat=caveat)

    @passes_with_owner("select")
    def select(self, query: SelectionQuery[M, R], mechanism: M, *, purpose: str) -> Selected[R]:
        """Let the mechanism choose by the round's rows; the event is found, held and taken out as in `release`.

        Raises:
            RoundViolation: as in `release`.
        """
        read = self._table.evidence(query, mechanism)
        event = query.event(mechanism, self._adjacency)
        with self._gate.lock:
            self._gate.require(purpose)
            self._take(event, purpose)
            value = _chosen(query, mechanism, read(self._sampled), self._source)
        return Selected(value=value, receipt=self._receipt, randomness=self._source.kind)

    @property
    def _sampled(self) -> NDArray[np.bool_]:
        """Which rows take part; empty for all of them."""
        return self._drawn if self._group is None else self._table.members(self._drawn, self._group)

    def _take(self, event: Event, purpose: str) -> None:
        self._held = left_after(self._held, event, purpose)

    @property
    def _adjacency(self) -> Adjacency:
        return self._receipt.adjacency


@passes("evidence")
def _chosen(query: SelectionQuery[M, R], mechanism: M, evidence: Any, source: RandomSource) -> R:
    """What a selection's mechanism chooses by the evidence of the rows."""
    return query.select(mechanism, evidence, source)


_WORDS = 1 << 64


def group_ends(event: Parallel) -> tuple[int, ...]:
    """The end of each group's 64-bit words: floor(p 2**64) words for a group, and none beyond 2**64.

    Raises:
        UnsupportedEvent: not a `Parallel`, or one without probabilities.
    """
    if type(event) is not Parallel:
        raise UnsupportedEvent(f"groups are those of a Parallel, not of {event!r}; a curator's open carries that out")
    if event.probabilities is None:
        raise UnsupportedEvent(
            "Parallel.worst has no probabilities for drawing groups: its groups depend on content, or are "
            "known; a query on all of them is one release of a round"
        )
    ends, end = [], 0
    for probability in event.probabilities:
        # Probabilities may add up to a rounding error more than 1: the last ones give way.
        end = min(end + math.floor(Fraction(probability) * _WORDS), _WORDS)
        ends.append(end)
    return tuple(ends)


@final
class CuratorGroups(Recorded):
    """The `Groups` of the in-process curator. Made by `Curator.open_groups`.

    Rounds may be asked for and used in any order, interleaved, and by several threads. A round that is closed stays
    closed; the other groups' stay open. Closing the groups closes all rounds.

    Args:
        table: the rows.
        assignment: what the table's `assign` returned: each row's group, or the number of groups for a row in none.
        held: for each group, the releases in its event.
        receipt: the draw that covers all groups.
        source: randomness for noise.
        gate: that the groups end with, if any.
    """

    __slots__ = ("_assignment", "_gate", "_held", "_receipt", "_rounds", "_source", "_table")

    def __init__(
        self,
        table: Rows,
        assignment: NDArray[Any],
        held: Sequence[Counter[Event]],
        receipt: Receipt,
        source: RandomSource,
        gate: Gate | None,
    ) -> None:
        super().__init__()
        self._table = table
        self._assignment = assignment
        self._held = held
        self._receipt = receipt
        self._source = source
        self._gate = Gate(gate)
        self._rounds: dict[int, CuratorRound] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __enter__(self) -> "CuratorGroups":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.close()
        for opened in self._rounds.values():  # waits for a release that another thread is in
            opened.__exit__(kind, error, trace)

    @passes_with_owner("group")
    def round(self, group: int) -> CuratorRound:
        """The round over the rows of a group, which holds what is left of the group's event: always the same one.

        Args:
            group: from 0 on, in the order of the event's members.

        Raises:
            InvalidParameter: there is no such group.
            RoundViolation: the groups are closed, or another process's.
        """
        index = _validate.count("group", group, "group's place", minimum=0)
        if index >= len(self._held):
            raise _validate.fail("group", group, f"in 0..{len(self._held) - 1}", "group's place")
        with self._gate.lock:
            self._gate.require_of("groups", f"group {index}")
            if index not in self._rounds:
                self._rounds[index] = CuratorRound(
                    self._table, self._assignment, Counter(self._held[index]), self._receipt, self._source, self._gate,
                    index,
                )  # fmt: skip
            return self._rounds[index]
