"""The public classes `Ledger` and `Grant`."""

import datetime as dt
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.filters import BasicFilter, Filter, Remaining, Spent
from ledgerwood.accounting.ledger.entries import (
    RESUMABLE,
    CheckpointEntry,
    DrawEntry,
    Entry,
    LedgerAbout,
    Randomness,
    about,
)
from ledgerwood.accounting.ledger.grants import Grant, no_copy
from ledgerwood.accounting.ledger.record import LedgerRecord, Receipt
from ledgerwood.accounting.ledger.state import State, replay
from ledgerwood.accounting.ledger.state import opened as opening
from ledgerwood.accounting.ledger.store import Memory, Store, require_terms, store_at
from ledgerwood.errors import BudgetExceeded, InvalidParameter, LedgerError
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.recording.points import passes

_BASIC = BasicFilter()


@final
class Ledger(ShowsItself):
    """A budget with a record of every grant and every draw; in memory, or in a file or database by `Ledger.open`.

    It may be used from several threads. It cannot be copied or pickled, nor used in a forked process: a copy would
    spend the same budget twice.

    Args:
        budget: the limit.
        unit: the protected unit: a row, a user, ...
        filter: the composition rule, and the currency in which it sums.
        owner: who answers for it; public, of one line.
        description: what it is for; public, of one line.
        opened: the day of its opening, a date or its ISO 8601 text; public. No clock is read.
    """

    __slots__ = ("__weakref__", "_analyst", "_lock", "_owner", "_state", "_store")

    def __init__(
        self,
        budget: Budget,
        *,
        unit: PrivacyUnit,
        filter: Filter = _BASIC,  # noqa: A002
        owner: str | None = None,
        description: str | None = None,
        opened: dt.date | str | None = None,
    ) -> None:
        said = about(owner, description, opened)
        self._hold(State(opening(budget, unit, filter, None, about=said), compact=True), Memory())

    @classmethod
    def open(
        cls,
        path_or_url: str | Path,
        dataset: str | None = None,
        budget: Budget | None = None,
        unit: PrivacyUnit | None = None,
        filter: Filter | None = None,  # noqa: A002
        *,
        analysts: Mapping[str, float] | None = None,
        analyst: str | None = None,
        owner: str | None = None,
        description: str | None = None,
        opened: dt.date | str | None = None,
        shared: bool = False,
        from_checkpoint: bool = False,
    ) -> "Ledger":
        """Create or reopen a ledger; every entry is on its way to the disk before the call returns.

        If the ledger exists, the arguments that are given must agree with its terms. Earlier grants stay spent, and
        cannot be drawn from, unless they were made to be `resumed`.

        Args:
            path_or_url: a path of a JSON lines file, which has one holder at a time unless it is `shared`; or
                sqlite:///FILE or postgresql+psycopg://..., a database of many data sets that many processes may spend
                from (extra: sql).
            dataset: a public label; None accepts any, of a file only.
            budget: needed for a new ledger.
            unit: needed for a new ledger.
            filter: `BasicFilter()` for a new ledger, if not given.
            analysts: for a new ledger, who may spend and which share of the budget each, in (0, 1]; together at most 1.
            analyst: the analyst who spends through this object, if analysts share the budget. The name is not
                authenticated.
            owner: of a new ledger, who answers for it; public, of one line.
            description: of a new ledger, what it is for; public, of one line.
            opened: of a new ledger, the day, a date or its ISO 8601 text; public. No clock is read.
            shared: lock the file for each entry, and not for as long as it is open, so that several processes of this
                machine may open it so; each waits for the others, up to 30 s. A database is always shared.
            from_checkpoint: begin at the last checkpoint, if there is one, and take its word for the entries before
                it, which are not read: they need not even be there. By default all entries are read and added up.

        Raises:
            LedgerError: other terms, or the file is in use, or the database cannot be used.
            LedgerCorrupted: names the first entry that does not fit.
            LedgerWriteFailed: the new ledger could not be written.
            InvalidParameter: another kind of URL, no dataset in a database, or a new ledger without budget or unit.
            ImportError: a database, without the extra.
        """
        said = about(owner, description, opened)
        new = None
        if budget is not None and unit is not None:
            new = opening(budget, unit, filter or _BASIC, dataset, analysts, said)
        store = store_at(path_or_url, dataset, new=new is not None, shared=shared)
        try:
            lines = store.read(from_checkpoint=_validate.flag("from_checkpoint", from_checkpoint))
            if not lines:
                if new is None:
                    raise InvalidParameter(
                        f"the ledger {store.name} is empty: it needs budget= and unit= "
                        "(on the command line: `ledgerwood ledger open`) (unit: terms)"
                    )
                State(new).purse(analyst)  # refused before anything is made
                lines = store.create(new)
            state = replay(lines, compact=True, from_checkpoint=from_checkpoint)
            store.catch_up(state)
            require_terms(
                state, dataset=dataset, budget=budget, unit=unit, filter_=filter, analysts=analysts, about=said
            )
            state.purse(analyst)
        except BaseException:
            store.close()
            raise
        ledger = cls.__new__(cls)
        ledger._hold(state, store, analyst)
        weakref.finalize(ledger, store.close)
        return ledger

    @property
    def budget(self) -> Budget:
        """The ledger's budget: the limit on the sum of its grants."""
        return self._state.terms.budget

    @property
    def unit(self) -> PrivacyUnit:
        """The kind of record that is protected."""
        return self._state.terms.unit

    @property
    def filter(self) -> Filter:
        """The composition rule."""
        return self._state.terms.filter

    @property
    def about(self) -> LedgerAbout | None:
        """Who answers for the ledger, what it is for, and its day of opening; None where nobody said."""
        return self._state.terms.about

    @property
    def analyst(self) -> str | None:
        """The analyst who spends through this object, if analysts share the budget."""
        return self._analyst

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, those of others included; as last seen, if their database cannot be reached now."""
        with self._current(lenient=True) as state:
            return tuple(state.entries)

    def entries_since(self, index: int) -> tuple[Entry, ...]:
        """The entries with this index and later ones, as in `entries`.

        Args:
            index: at least 0.

        Raises:
            InvalidParameter: an index outside its bound.
        """
        index = _validate.count("index", index, "entries", minimum=0)
        with self._current(lenient=True) as state:
            return tuple(state.entries.since(index))

    @property
    def plans(self) -> tuple[Event, ...]:
        """The granted plans in order, drawn or not, as in `entries`; what an odometer reads.

        Raises:
            LedgerError: the ledger was opened at a checkpoint: plans before it are not here.
        """
        return self.plans_since(0)

    def plans_since(self, known: int) -> tuple[Event, ...]:
        """The granted plans but the first `known` of them; what an odometer that has read those still has to read.

        Args:
            known: number of plans, at least 0.

        Raises:
            InvalidParameter: a number outside its bound.
            LedgerError: the ledger was opened at a checkpoint, and more than `known` plans were granted before it.
        """
        known = _validate.count("known", known, "plans", minimum=0)
        with self._current(lenient=True) as state:
            first = state.entries.first
            before = first.spent.grants if isinstance(first, CheckpointEntry) else 0
            if known < before:
                raise LedgerError(
                    f"the ledger was opened at a checkpoint, and {before} plans were granted before it, of which "
                    f"{known} are known: open the whole ledger, without from_checkpoint=True"
                )
            return tuple(entry.event for entry in state.entries.grants(known - before))

    @property
    def head(self) -> str:
        """The last entry's hash, hexadecimal; as in `entries`."""
        with self._current(lenient=True) as state:
            return state.head

    @passes("grant")
    def grant(self, event: Event, *, purpose: str, delta: float | None = None, resumable: bool = False) -> "Grant":
        """Charge a whole plan once, and return a grant from which its events can be drawn.

        Args:
            event: the plan; its multiset of events is fixed from here on.
            purpose: printable text of one line.
            delta: for `BasicFilter` and `AdvancedCompositionFilter`, the delta of this charge. None means 0 for a pure
                event, and all the delta that remains for any other. The other filters take None only.
            resumable: every draw is on the disk before it is acknowledged, which takes a few milliseconds, and a later
                process may draw the rest by `resumed`. The entry's purpose says so: it begins with "resumable: ".

        Raises:
            BudgetExceeded: it does not fit; nothing was spent.
            UnsupportedEvent: no proven privacy cost is known in the filter's currency.
            AdjacencyMismatch: event and ledger are stated under different relations.
            LedgerWriteFailed: the entry could not be made durable; nothing was spent.
            LedgerError: the database was lost in the commit; what may have been recorded counts as spent.
        """
        if resumable and isinstance(purpose, str):
            purpose = RESUMABLE + purpose
        with self._lock:
            self._require_owner()
            while True:
                seen = len(self._state.charges)
                charge = self._state.price(
                    event, purpose, delta, self._analyst
                )  # it may take long: no other process waits for it
                try:
                    with self._store.locked(self._state):
                        entry = self._state.propose_grant(event, charge, purpose, self._analyst)
                        self._store.append(entry, durable=True)
                except BudgetExceeded:
                    if delta is None and len(self._state.charges) > seen:
                        continue  # others spent meanwhile, so that another delta remains: price the plan at that
                    raise
                self._state.commit(entry)
                return Grant(self, entry)

    def resumed(self, index: int) -> "Grant":
        """The grant of an earlier process, to draw the rest of it (docs/explanation/ledger.md#resumable).

        Args:
            index: of the grant's entry.

        Raises:
            LedgerError: no grant has this index, or it was not made with `resumable=True`: its last draws may be
                missing from the disk, and would be drawn twice.
        """
        with self._current() as state:
            self._require_owner()
            entry = state.grant_at(index)
        if entry is None:
            raise LedgerError(f"entry {index} is not a grant of this ledger")
        if not entry.resumable:
            raise LedgerError(
                f"grant {index} ({entry.purpose!r}) was not made to be resumed: its last draws may be missing from the "
                "disk, and would be drawn twice; make a new grant, with resumable=True if it has to outlive its process"
            )
        return Grant(self, entry)

    def require_room(self, events: Sequence[Event], *, delta: float | None = None) -> None:
        """Refuse several plans that do not fit together, one grant after the other; nothing is granted or reserved.

        Args:
            events: the plans.
            delta: the delta of each grant, as in `grant`.

        Raises:
            BudgetExceeded, UnsupportedEvent, AdjacencyMismatch: as in `grant`.
        """
        with self._current() as state:
            state.require_room(events, delta, self._analyst)

    def spend(
        self, event: Event, *, purpose: str, delta: float | None = None, randomness: Randomness = "secure"
    ) -> Receipt:
        """Grant a plan of one draw and draw it; errors as in `grant`.

        Raises:
            InvalidParameter: the event holds several draws; grant it, and draw them one by one.
        """
        require_event(event)
        parts = list(event.draws())
        if len(parts) != 1 or parts[0][1] != 1:
            raise InvalidParameter(f"event={event!r} must hold one draw to be spent at once; use grant (unit: event)")
        with self._lock:
            grant = self.grant(event, purpose=purpose, delta=delta)
            return grant.draw(parts[0][0], purpose=purpose, randomness=randomness)

    def migrate(self, *, analysts: Mapping[str, float], analyst: str | None = None) -> None:
        """Share the budget among analysts, which raises format version 1 to 2; this cannot be undone.

        This appends one entry to the chain. Earlier grants stay as they are, belong to no analyst, and can still be
        drawn from. Each share is a fraction of the whole budget, and an upper limit: the remaining budget limits it as
        well (docs/adr/0008-migrations.md).

        Args:
            analysts: as in `open`.
            analyst: who spends by this handle afterwards; all others open the ledger again.

        Raises:
            LedgerError: analysts share it already, or no such analyst; or the outcome is unknown, as in `grant`.
            InvalidParameter: shares outside (0, 1] or above 1 together; nothing changed.
            LedgerWriteFailed: the entry could not be made durable; nothing changed.
        """
        with self._lock:
            self._require_owner()
            with self._store.locked(self._state):
                entry = self._state.propose_migration(analysts)
                if analyst is not None and analyst not in analysts:
                    raise LedgerError(f"analyst={analyst!r} is not one of {sorted(analysts)} (unit: label)")
                self._store.append(entry, durable=True)
            self._state.commit(entry)
            self._analyst = analyst

    def checkpoint(self) -> CheckpointEntry:
        """Append an entry that states what all entries so far amount to, exactly; it spends nothing.

        From there the ledger can be opened and verified in a time that does not depend on what came before:
        `Ledger.open(..., from_checkpoint=True)`. The first one raises the format version to 4, which cannot be undone
        (docs/explanation/ledger.md#checkpoints).

        Raises:
            LedgerError: the outcome is unknown, as in `grant`.
            LedgerWriteFailed: the entry could not be made durable; nothing changed.
        """
        with self._lock:
            self._require_owner()
            with self._store.locked(self._state):
                entry = self._state.propose_checkpoint()
                self._store.append(entry, durable=True)
            self._state.commit(entry)
            return entry

    def spent(self, analyst: str | None = None) -> Spent:
        """The total of the grants by the filter, rounded up; of one analyst's grants, if named."""
        with self._current() as state:
            return self.filter.spent(*state.purse(analyst))

    def remaining(self, analyst: str | None = None) -> Remaining:
        """The remaining budget by the filter, rounded down; at most the rest of one analyst's share, if named."""
        with self._current() as state:
            return state.remaining(analyst)

    def record(self) -> LedgerRecord:
        """The entries so far, frozen; as in `entries`."""
        return LedgerRecord(entries=self.entries)

    def save(self, path: str | Path) -> None:
        """Write the entries so far to `path` in one step: whole or not at all.

        Raises:
            LedgerWriteFailed: nothing was written.
            LedgerError: `path` is the file of an open ledger (its own is always up to date), or holds another one.
        """
        self.record().save(path)

    def close(self) -> None:
        """Release the ledger's file or database; grants of a closed one cannot be drawn from."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> NoReturn:
        raise no_copy("a ledger")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise no_copy("a ledger")

    def __reduce__(self) -> NoReturn:
        raise no_copy("a ledger")

    def __repr__(self) -> str:
        return (
            f"Ledger(budget={self.budget!r}, unit={self.unit!r}, filter={self.filter!r}, "
            f"spent={self.filter.spent(self._state.charges, self.budget)!r})"
        )

    def _card(self) -> Card:
        return self.record()._card()

    def _hold(self, state: State, store: Store, analyst: str | None = None) -> None:
        self._lock, self._owner = threading.RLock(), os.getpid()
        self._state, self._store, self._analyst = state, store, analyst

    def _draw(self, grant: int, event: Event, purpose: str, randomness: Randomness) -> DrawEntry:
        with self._lock:
            self._require_owner()
            with self._store.locked(self._state):
                entry = self._state.propose_draw(grant, event, purpose, randomness)
                granted = self._state.grant_at(grant)
                self._store.append(entry, durable=granted is not None and granted.resumable)
            self._state.commit(entry)
            return entry

    def _left(self, grant: int) -> dict[Event, int]:
        with self._current() as state:
            return {event: count for event, count in state.left(grant).items() if count > 0}

    @contextmanager
    def _current(self, *, lenient: bool = False) -> Iterator[State]:
        """The state, caught up with what others wrote; in a forked process, what was known when it was forked."""
        with self._lock:
            if self._owner == os.getpid():
                self._store.catch_up(self._state, lenient=lenient)
            yield self._state

    def _require_owner(self) -> None:
        if self._owner != os.getpid():
            raise LedgerError("this ledger belongs to another process: a fork would spend the same budget twice")
