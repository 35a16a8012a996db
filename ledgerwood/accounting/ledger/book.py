"""The ledger that people hold, and its grants: one-way purses."""

import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, final

from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.filters import BasicFilter, Charge, Filter, Remaining, Spent
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger.record import LedgerRecord, Receipt
from ledgerwood.accounting.ledger.state import (
    DrawEntry,
    Entry,
    GrantEntry,
    OpenEntry,
    Randomness,
    State,
    encode,
    opened,
    replay,
)
from ledgerwood.errors import InvalidParameter, LedgerError

_BASIC = BasicFilter()


@final
class Ledger:
    """A budget, what was granted from it, and what was drawn; in memory, or in a file by `Ledger.open`.

    It may be used from several threads. It cannot be copied or pickled, nor used in a forked process: a copy would
    spend the same budget twice.

    Args:
        budget: the limit.
        unit: what one protected record is.
        filter: what adds up, and in which currency.
    """

    __slots__ = ("__weakref__", "_file", "_lock", "_owner", "_state")

    def __init__(self, budget: Budget, *, unit: PrivacyUnit, filter: Filter = _BASIC) -> None:  # noqa: A002
        self._hold(State(opened(budget, unit, filter, None)), None)

    @classmethod
    def open(
        cls,
        path_or_url: str | Path,
        dataset: str | None = None,
        budget: Budget | None = None,
        unit: PrivacyUnit | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> "Ledger":
        """Create or reopen a ledger file; every entry is on its way to the disk before the call returns.

        An existing file states its own terms; whatever is given here must agree with them. What was granted before
        stays spent: an old grant cannot be drawn from.

        Args:
            path_or_url: a path of a JSON lines file.
            dataset: a public label; None accepts any.
            budget: needed for a new file.
            unit: needed for a new file.
            filter: `BasicFilter()` for a new file, if not given.

        Raises:
            LedgerError: other terms, or the file is in use.
            LedgerCorrupted: names the first entry that does not fit.
            LedgerWriteFailed: the new file could not be written.
            InvalidParameter: a URL, or a new file without budget or unit.
        """
        if "://" in str(path_or_url):
            raise InvalidParameter(f"path_or_url={path_or_url!r} must be the path of a JSON lines file (unit: path)")
        path = Path(path_or_url)
        new = None if budget is None or unit is None else opened(budget, unit, filter or _BASIC, dataset)
        if new is None and not path.exists():
            raise InvalidParameter(f"there is no ledger at {path}: a new one needs budget= and unit= (unit: terms)")
        file = jsonl.JsonLinesFile(path)
        try:
            lines = file.read()
            if lines:
                state = replay(lines)
                _require_terms(state.terms, dataset=dataset, budget=budget, unit=unit, filter_=filter)
            elif new is None:
                raise InvalidParameter(f"the ledger {path} is empty: it needs budget= and unit= (unit: terms)")
            else:
                file.append(encode(new), index=0, durable=True)
                state = State(new)
        except BaseException:
            file.close()
            raise
        ledger = cls.__new__(cls)
        ledger._hold(state, file)
        weakref.finalize(ledger, file.close)
        return ledger

    @property
    def budget(self) -> Budget:
        """The limit."""
        return self._state.terms.budget

    @property
    def unit(self) -> PrivacyUnit:
        """What one protected record is."""
        return self._state.terms.unit

    @property
    def filter(self) -> Filter:
        """What adds up, and in which currency."""
        return self._state.terms.filter

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far."""
        with self._lock:
            return tuple(self._state.entries)

    @property
    def head(self) -> str:
        """The last entry's hash, hexadecimal."""
        return self._state.head

    def grant(self, event: Event, *, purpose: str, delta: float | None = None) -> "Grant":
        """Price a whole plan once, charge it, and hand out its purse.

        Args:
            event: the plan; its multiset of events is fixed from here on.
            purpose: printable text of one line.
            delta: for `BasicFilter`, the delta at which the plan is priced: None takes all that remains for an
                event that is not pure, and 0 for a pure one.

        Raises:
            BudgetExceeded: it does not fit; nothing was spent.
            UnsupportedEvent: the filter has no certified price for it.
            AdjacencyMismatch: event and ledger are stated under different relations.
            LedgerWriteFailed: the entry could not be made durable; nothing was spent.
        """
        with self._lock:
            entry = self._state.propose_grant(event, purpose, delta)
            self._append(entry, durable=True)
            return Grant(self, entry)

    def spend(
        self, event: Event, *, purpose: str, delta: float | None = None, randomness: Randomness = "secure"
    ) -> Receipt:
        """A grant of one draw, drawn at once; errors as in `grant`.

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

    def spent(self) -> Spent:
        """What the grants add up to by the filter, rounded up."""
        with self._lock:
            return self.filter.spent(self._state.charges, self.budget)

    def remaining(self) -> Remaining:
        """What is left by the filter, rounded down."""
        with self._lock:
            return self.filter.remaining(self._state.charges, self.budget)

    def record(self) -> LedgerRecord:
        """The entries so far, frozen."""
        return LedgerRecord(entries=self.entries)

    def save(self, path: str | Path) -> None:
        """Write the entries so far to `path` in one step: whole or not at all.

        Raises:
            LedgerWriteFailed: nothing was written.
            LedgerError: `path` is the file of an open ledger (its own is always up to date), or holds another one.
        """
        self.record().save(path)

    def close(self) -> None:
        """Release the ledger's file; grants of a closed file ledger cannot be drawn from."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> NoReturn:
        raise _no_copy("a ledger")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise _no_copy("a ledger")

    def __reduce__(self) -> NoReturn:
        raise _no_copy("a ledger")

    def __repr__(self) -> str:
        return f"Ledger(budget={self.budget!r}, unit={self.unit!r}, filter={self.filter!r}, spent={self.spent()!r})"

    def _hold(self, state: State, file: jsonl.JsonLinesFile | None) -> None:
        self._lock, self._owner = threading.RLock(), os.getpid()
        self._state, self._file = state, file

    def _draw(self, grant: int, event: Event, purpose: str, randomness: Randomness) -> DrawEntry:
        with self._lock:
            entry = self._state.propose_draw(grant, event, purpose, randomness)
            self._append(entry, durable=False)
            return entry

    def _left(self, grant: int) -> dict[Event, int]:
        with self._lock:
            return {event: count for event, count in self._state.left(grant).items() if count > 0}

    def _append(self, entry: GrantEntry | DrawEntry, *, durable: bool) -> None:
        if self._owner != os.getpid():
            raise LedgerError("this ledger belongs to another process: a fork would spend the same budget twice")
        if self._file is not None:
            self._file.append(encode(entry), index=entry.index, durable=durable)
        self._state.commit(entry)


@final
class Grant:
    """A one-way purse: the events of one granted plan, each of which can be drawn once. Made by `Ledger.grant`."""

    __slots__ = ("_entry", "_ledger")

    def __init__(self, ledger: Ledger, entry: GrantEntry) -> None:
        self._ledger, self._entry = ledger, entry

    @property
    def event(self) -> Event:
        """The plan that was granted."""
        return self._entry.event

    @property
    def charge(self) -> Charge:
        """What the plan cost."""
        return self._entry.charge

    @property
    def index(self) -> int:
        """Index of the grant's entry."""
        return self._entry.index

    @property
    def purpose(self) -> str:
        """What for."""
        return self._entry.purpose

    @property
    def remaining(self) -> Mapping[Event, int]:
        """The events that may still be drawn, each with its count; a snapshot."""
        return MappingProxyType(self._ledger._left(self._entry.index))

    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Take one planned event out; written down before any row is read.

        Args:
            event: equal to one of the plan's events.
            purpose: printable text of one line.
            randomness: "test" marks noise that is reproducible and protects nobody.

        Raises:
            DrawRefused: the plan has no such event, or none left; nothing changed.
            LedgerWriteFailed: the entry could not be written; nothing was drawn.
        """
        entry = self._ledger._draw(self._entry.index, event, purpose, randomness)
        return Receipt(
            event=entry.event, purpose=entry.purpose, grant=entry.grant, index=entry.index, hash=entry.hash,
            randomness=entry.randomness,
        )  # fmt: skip

    def __copy__(self) -> NoReturn:
        raise _no_copy("a grant")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise _no_copy("a grant")

    def __reduce__(self) -> NoReturn:
        raise _no_copy("a grant")

    def __repr__(self) -> str:
        return f"Grant(index={self.index}, purpose={self.purpose!r}, charge={self.charge!r})"


def _no_copy(what: str) -> LedgerError:
    return LedgerError(f"{what} cannot be copied or pickled, or one budget would be spent twice; keep ledger.record()")


def _require_terms(
    terms: OpenEntry, *, dataset: str | None, budget: Budget | None, unit: PrivacyUnit | None, filter_: Filter | None
) -> None:
    """What the caller names must be what the file says."""
    for name, wanted, found in (
        ("dataset", dataset, terms.dataset),
        ("budget", budget, terms.budget),
        ("unit", unit, terms.unit),
        ("filter", filter_, terms.filter),
    ):
        if wanted is not None and wanted != found:
            raise LedgerError(
                f"the ledger was opened with {name}={found!r}; it cannot be reopened with {name}={wanted!r}"
            )
