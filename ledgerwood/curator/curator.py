"""Curator: pay, sample, and hand out rounds. The only way from rows to numbers."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, final

from ledgerwood.accounting.events import (
    Event,
    FilteredEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    RandomAllocation,
    RepeatedSelection,
)
from ledgerwood.accounting.individuals import row_costs
from ledgerwood.curator.allocated import AllocatedRounds
from ledgerwood.curator.filtered import FilteredRounds, Purse, RunPurse, require_within
from ledgerwood.curator.release import Gate
from ledgerwood.curator.rounds import (
    Allocation,
    CuratorGroups,
    CuratorRound,
    Groups,
    Round,
    Rows,
    group_ends,
    held_by,
    parts_of,
)
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.errors import UnsupportedEvent
from ledgerwood.mechanisms import RandomSource, selection_of
from ledgerwood.recording.points import Recorded, passes_with_owner
from ledgerwood.schema import Schema

T = TypeVar("T")


class Aggregator(Protocol):
    """All that a trainer may ever see of the data."""

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""

    def open(self, event: Event, *, purpose: str) -> Round:
        """Draw one planned event, then sample the rows once, at the event's rate."""

    def open_groups(self, event: Parallel, *, purpose: str) -> Groups:
        """Draw one planned event of groups, then assign each row to a group, or to none, at its probabilities."""

    def open_allocation(self, event: RandomAllocation, *, purpose: str) -> Allocation:
        """Draw one planned allocation, then choose each row's steps."""

    def select(
        self,
        event: RepeatedSelection | PoissonSelection,
        plans: Sequence[Event],
        run: "Callable[[int, Aggregator, RandomSource], tuple[float, T]]",
        *,
        purpose: str,
    ) -> tuple[int, float, T] | None:
        """Draw one planned selection, carry out its runs, and release the best one."""


@final
class Curator(Recorded):
    """Holds a table and a grant, and is an `Aggregator` over them.

    Args:
        table: the rows; used by one curator at a time.
        grant: the budget from which every round is drawn.
        source: randomness for samples and noise.
        gate: that all rounds end with; None if each ends for itself.
    """

    __slots__ = ("_gate", "_grant", "_source", "_table")

    def __init__(self, table: Rows, grant: Purse, source: RandomSource, *, gate: Gate | None = None) -> None:
        super().__init__()
        self._gate = gate
        self._table = table
        self._grant = grant
        self._source = source

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._table.schema

    @passes_with_owner("open")
    def open(self, event: Event, *, purpose: str) -> "CuratorRound | FilteredRounds":
        """Draw one planned event, or all parts of one composition, then sample the rows once, at the event's rate.

        Of a `FilteredEvent` every release is its own round, see `FilteredRounds`.

        Raises:
            DrawRefused: the grant does not hold the event; nothing was read.
            UnsupportedEvent: an event that this curator cannot carry out; nothing was drawn.
        """
        if isinstance(event, FilteredEvent):
            if not isinstance(self._table, TreeTable):
                raise UnsupportedEvent(f"{event!r} filters sums of gradients, which a table of columns does not have")
            costs = row_costs(event)
            receipt = self._grant.draw(event, purpose=purpose, randomness=self._source.kind)
            self._table.begin(event)
            return FilteredRounds(self._table, event, costs, receipt, self._source, gate=self._gate)
        inner, rate = (event.event, event.sampling_rate) if isinstance(event, PoissonSampled) else (event, 1.0)
        held = held_by(inner)
        # A grant holds the parts of a composition: a round of several is paid for by as many draws.
        for part in parts_of(event):
            receipt = self._grant.draw(part, purpose=purpose, randomness=self._source.kind)
        self._table.begin(event)
        sampled = self._table.sample(rate, self._source)
        return CuratorRound(self._table, sampled, held, receipt, self._source, self._gate)

    @passes_with_owner("open_groups")
    def open_groups(self, event: Parallel, *, purpose: str) -> CuratorGroups:
        """Draw one planned event of groups, then assign each row to a group, or to none: freshly, secretly, exactly.

        Each row alone draws one 64-bit word; p 2**64 words, rounded down, lead to a group of probability p, so that
        the event that is carried out never costs more than the planned one (docs/explanation/events.md#parallel-words).

        Raises:
            DrawRefused: the grant does not hold the event; nothing was read.
            UnsupportedEvent: groups without probabilities, or a group with a sample, groups or a filter inside; nothing
                was drawn.
        """
        ends = group_ends(event)
        held = [held_by(member) for member in event.events]
        receipt = self._grant.draw(event, purpose=purpose, randomness=self._source.kind)
        self._table.begin(event)
        assignment = self._table.assign(ends, self._source)
        return CuratorGroups(self._table, assignment, held, receipt, self._source, self._gate)

    @passes_with_owner("open_allocation")
    def open_allocation(self, event: RandomAllocation, *, purpose: str) -> AllocatedRounds:
        """Draw one planned allocation, then choose each row's steps: exactly k of t, secretly, uniformly.

        The one draw covers all steps, however many are carried out (docs/explanation/allocation.md#allocation-rounds).

        Raises:
            DrawRefused: the grant does not hold the event; nothing was read.
            UnsupportedEvent: another event, or a step with a sample, groups, an allocation or a filter inside; nothing
                was drawn.
        """
        if type(event) is not RandomAllocation:
            raise UnsupportedEvent(f"an allocation is a RandomAllocation, not {event!r}; a curator's open has rounds")
        held = held_by(event.event)
        receipt = self._grant.draw(event, purpose=purpose, randomness=self._source.kind)
        self._table.begin(event)
        allocation = self._table.allocate(event.selected, event.steps, self._source)
        return AllocatedRounds(self._table, allocation, event, held, receipt, self._source, self._gate)

    @passes_with_owner("search")
    def select(
        self,
        event: RepeatedSelection | PoissonSelection,
        plans: Sequence[Event],
        run: Callable[[int, Aggregator, RandomSource], tuple[float, T]],
        *,
        purpose: str,
    ) -> tuple[int, float, T] | None:
        """Draw one planned selection, carry out its runs, and release the best one as (plan's index, score, output).

        None if a `PoissonSelection` makes no run.

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
