"""The rows of one call of a stream: its privacy units take part with what they have left, by the owner's vault.

docs/explanation/sgbdt.md#sgbdt-streams says why rows that come later, or again, are covered by one draw.
"""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ledgerwood._uncopied import Uncopied
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
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.values import UnitKeys, read_keys
from ledgerwood.curator.queries.registry import Query, SelectionQuery
from ledgerwood.curator.release import Release, Selected
from ledgerwood.curator.rounds import Allocation, CuratorRound, Groups
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.tables.vault import RowVault
from ledgerwood.errors import DrawRefused, SchemaError, UnsupportedEvent
from ledgerwood.mechanisms import Mechanism, RandomSource
from ledgerwood.recording.points import Recorded, passes_with_owner
from ledgerwood.schema import Schema

S = TypeVar("S")
T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")
_KEPT: WeakKeyDictionary[object, RowVault] = WeakKeyDictionary()


def keep_vault(owner: object, vault: RowVault) -> None:
    """Keep a vault beside the object that learns on its stream, for as long as that lives; never inside of it.

    A pickle, a copy or a clone of the object has none.
    """
    _KEPT[owner] = vault


def kept_vault(owner: object) -> RowVault | None:
    """The vault that was kept beside this very object."""
    return _KEPT.get(owner)


def forget_vault(owner: object) -> None:
    """Keep none beside it any more."""
    _KEPT.pop(owner, None)


@final
class StreamRows:
    """Checked rows of one call, with their units' keys and the vault that knows them. Build it with `from_data`."""

    __slots__ = ("keys", "table", "vault")

    def __init__(self, table: Table, keys: UnitKeys, vault: RowVault) -> None:
        if keys.n_rows != table.n_rows:  # one key would be spread over all rows, with a whole budget each
            raise SchemaError("keys were read for another number of rows than the table's; one key a row")
        # Of no unit, or the second row of one: what is paid for is one row a unit.
        without = np.ones(table.n_rows, dtype=np.bool_)
        without[keys.rows] = False
        table.leave_out(without)
        self.table, self.keys, self.vault = table, keys, vault

    @classmethod
    def from_data(
        cls, X: Any, y: Any, keys: Any, schema: Schema, *, loss: Loss, bins: int, vault: RowVault
    ) -> "StreamRows":
        """Encode X, y and keys. What it refuses, by names, types and shapes, costs nothing; no value is refused.

        Args:
            X, y, schema, loss, bins: as in `Table.from_data`.
            keys: array-like (n_rows,), each row's privacy unit; see `read_keys`.
            vault: the vault of the stream.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's, or keys of another type.
        """
        table = Table.from_data(X, y, schema, loss=loss, bins=bins)
        return cls(table, read_keys(keys, table.n_rows), vault)


@final
class StreamCurator(Recorded):
    """An `Aggregator` over the rows of one call. The first call pays by a grant; later ones show what it drew.

    Args:
        rows: the rows of this call, used by one curator.
        payment: the grant of the whole stream, or the receipt of its filtered event.
        source: randomness for samples and noise.
    """

    __slots__ = ("_payment", "_rows", "_source")

    def __init__(self, rows: StreamRows, payment: Grant | Receipt, source: RandomSource) -> None:
        super().__init__()
        self._rows, self._payment, self._source = rows, payment, source

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._rows.table.schema

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
    def open(self, event: Event, *, purpose: str) -> "StreamRounds | CuratorRound | FilteredRounds":
        """The stream's rounds over this call's rows, each with what its unit has left; or another event of the grant.

        The first call draws the filtered event and gives the vault to it. Units are claimed before any of their rows is
        read.

        Raises:
            DrawRefused: the grant does not hold the event, or a later call asks for another event than the stream's.
            LedgerError: another stream's vault, or one that is in use; nothing was read.
            LedgerWriteFailed: the claim could not be made durable; nothing was read.
        """
        table, vault = self._rows.table, self._rows.vault
        if isinstance(self._payment, Grant) and not isinstance(event, FilteredEvent):
            return Curator(table, self._payment, self._source).open(event, purpose=purpose)
        if not isinstance(event, FilteredEvent) or (isinstance(self._payment, Receipt) and event != self.receipt.event):
            raise DrawRefused(
                f"the stream was paid for {self.receipt.event!r}; a later call draws nothing, so not {event!r}"
            )
        costs = row_costs(event)
        if isinstance(self._payment, Grant):
            vault.prepare()
            self._payment = self._payment.draw(event, purpose=purpose, randomness=self._source.kind)
            vault.begin(self._payment)
        receipt = self._payment
        left, keys = np.zeros(table.n_rows, dtype=np.int64), self._rows.keys
        rounds = StreamRounds(
            FilteredRounds(table, event, costs, receipt, self._source, left), vault, left, keys.rows
        )  # fmt: skip
        left[keys.rows] = vault.claim(keys, receipt)  # last: what fails before it costs no unit anything
        return rounds

    def open_groups(self, event: Parallel, *, purpose: str) -> Groups:
        """Refused: a unit of a stream comes again in later calls, where it would be in another group.

        Raises:
            UnsupportedEvent: always.
        """
        raise UnsupportedEvent(
            f"{purpose!r}: a stream draws no groups: a unit's rows may return in later calls and would be "
            "in other groups, which no event covers; learn from all rows in one call, with a Curator"
        )

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


@final
class StreamRounds(Uncopied):
    """`FilteredRounds` of rows that are claimed from a vault, and settled at the end. Made by `StreamCurator`."""

    __slots__ = ("_left", "_rounds", "_settled", "_units", "_vault")

    def __init__(
        self, rounds: FilteredRounds, vault: RowVault, left: NDArray[np.int64], units: NDArray[np.int64]
    ) -> None:
        self._rounds, self._vault, self._left, self._units = rounds, vault, left, units
        self._settled = False

    def __enter__(self) -> "StreamRounds":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closed first: nothing is charged any more. An error in between has charged whom it was to read, and no less.
        self._rounds.__exit__(kind, error, trace)
        if not self._settled:  # the vault's next claim is another call's, which settles it itself
            self._vault.settle(self._left[self._units])
            self._settled = True

    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """One round, as in `FilteredRounds.release`."""
        return self._rounds.release(query, mechanism, purpose=purpose)

    def select(self, query: SelectionQuery[M, R], mechanism: M, *, purpose: str) -> Selected[R]:
        """Refused, as in `FilteredRounds.select`."""
        return self._rounds.select(query, mechanism, purpose=purpose)

    def _uncopied(self) -> str:
        return "a StreamRounds cannot be copied or pickled, or one claim would be settled twice; use the object itself"
