"""The rounds of a stream whose rows their owners hold: one draw for all calls, and each unit's account at its owner.

docs/explanation/federation.md#federation-streams.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar, final
from weakref import WeakKeyDictionary

from ledgerwood.accounting.events import (
    Event,
    FilteredEvent,
    Parallel,
    PoissonSelection,
    RandomAllocation,
    RepeatedSelection,
)
from ledgerwood.accounting.individuals import row_costs
from ledgerwood.accounting.ledger import Grant, Receipt
from ledgerwood.curator.curator import Aggregator, Curator
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.curator.places.federated_rows import FederatedTable
from ledgerwood.curator.rounds import Allocation, CuratorRound, Groups
from ledgerwood.errors import DrawRefused, UnsupportedEvent
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import Recorded, passes_with_owner
from ledgerwood.schema import Schema

T = TypeVar("T")
_KEPT: WeakKeyDictionary[object, FederatedTable] = WeakKeyDictionary()


def keep_owners(learner: object, table: FederatedTable) -> None:
    """Keep the owners of a stream's rows beside the object that learns on it; never inside of it."""
    _KEPT[learner] = table


def kept_owners(learner: object) -> FederatedTable | None:
    """The owners' table that was kept beside this very object."""
    return _KEPT.get(learner)


def forget_owners(learner: object) -> None:
    """Keep none beside it any more."""
    _KEPT.pop(learner, None)


@final
class OwnersStream(Recorded):
    """An `Aggregator` of one call. The first call pays by a grant; later ones show what it drew.

    Args:
        table: of the owners, the same in all calls.
        payment: the grant of the whole stream, or the receipt of its filtered event.
        source: randomness for noise, and for the coins of a run with a seed.
    """

    __slots__ = ("_payment", "_source", "_table")

    def __init__(self, table: FederatedTable, payment: Grant | Receipt, source: RandomSource) -> None:
        super().__init__()
        self._table, self._payment, self._source = table, payment, source

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._table.schema

    @property
    def receipt(self) -> Receipt:
        """The receipt of the draw that covers all rounds of the stream.

        Raises:
            DrawRefused: it was not drawn yet.
        """
        if isinstance(self._payment, Grant):
            raise DrawRefused("the stream's filtered event was not drawn yet")
        return self._payment

    @passes_with_owner("open")
    def open(self, event: Event, *, purpose: str) -> "CuratorRound | FilteredRounds":
        """The stream's rounds over this call's rows; or, in the first call, another event of the grant.

        Raises:
            DrawRefused: the grant does not hold the event, or a later call asks for another event than the stream's.
        """
        if isinstance(self._payment, Grant) and not isinstance(event, FilteredEvent):
            return Curator(self._table, self._payment, self._source).open(event, purpose=purpose)
        if not isinstance(event, FilteredEvent) or (isinstance(self._payment, Receipt) and event != self.receipt.event):
            raise DrawRefused(
                f"the stream was paid for {self.receipt.event!r}; a later call draws nothing, so not {event!r}"
            )
        costs = row_costs(event)
        if isinstance(self._payment, Grant):
            self._payment = self._payment.draw(event, purpose=purpose, randomness=self._source.kind)
            self._table.begin(event)
        return FilteredRounds(self._table, event, costs, self._payment, self._source)

    def open_groups(self, event: Parallel, *, purpose: str) -> Groups:
        """Refused, as by `StreamCurator`.

        Raises:
            UnsupportedEvent: always.
        """
        raise UnsupportedEvent(f"{purpose!r}: a stream draws no groups: a unit may return, in another group")

    def open_allocation(self, event: RandomAllocation, *, purpose: str) -> Allocation:
        """Refused: a unit of a stream comes again in later calls, where it would be in other steps.

        Raises:
            UnsupportedEvent: always.
        """
        raise UnsupportedEvent(
            f"{purpose!r}: a stream allocates no rows to steps: a unit's rows may return in later calls and would be "
            "in other steps, which no event covers; learn from all rows in one call, or set sampling='poisson'"
        )

    def select(
        self,
        event: RepeatedSelection | PoissonSelection,
        plans: Sequence[Event],
        run: Callable[[int, Aggregator, RandomSource], tuple[float, T]],
        *,
        purpose: str,
    ) -> tuple[int, float, T] | None:
        """Refused: a stream is one plan, chosen before its first call.

        Raises:
            UnsupportedEvent: always.
        """
        raise UnsupportedEvent(f"{purpose!r}: a stream makes no private search; choose its parameters before")
