"""Ledgers as they are followed: read once, then only what was appended, with what failed where they cannot be read.

A book takes an entry in only after the ledger's own rules accepted it (`State.follow`): form, hash, order, budget and
draws. Whether charges cover their plans is the verifier's question: see `verifying`.
"""

import hashlib
import threading
from dataclasses import dataclass, replace
from typing import final

from ledgerwood.accounting.ledger.entries import GrantEntry
from ledgerwood.accounting.ledger.state import State, replay
from ledgerwood.dashboard.sources import Content, Source
from ledgerwood.errors import LedgerCorrupted, LedgerError, PrivacyError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BookReading:
    """What is known of a ledger after it was read.

    Args:
        stamp: the source's, of what was read; "" before the first time.
        state: the entries that hold, up to the first that does not; None where not even the first one does.
        failure: what is wrong, in words; None where everything that was read holds.
        entry: the first entry that fails, where one does.
        shrunk: how many entries it had before it was seen with fewer, None otherwise: entries were lost, or an older
            copy was restored.
        replaced: how many entries the history had in whose place another one was seen, None otherwise.
        unfinished: whether the file ends in a line that is being written, or whose writing was interrupted.
    """

    stamp: str = ""
    state: State | None = None
    failure: str | None = None
    entry: int | None = None
    shrunk: int | None = None
    replaced: int | None = None
    unfinished: bool = False

    @property
    def entries(self) -> int:
        """Number of entries that hold, those included that a checkpoint at the start speaks for."""
        return 0 if self.state is None else self.state.count

    @property
    def trusted(self) -> int:
        """Number of entries that are not there, because the ledger begins with a checkpoint after them."""
        return 0 if self.state is None else self.state.entries.first.index

    @property
    def partial(self) -> bool:
        """Whether more may have been spent than these entries say."""
        return self.failure is not None or self.shrunk is not None or self.replaced is not None


@final
class SeenHistory:
    """The longest history seen of a ledger, and what became of it: kept until the server ends, whatever is deleted."""

    __slots__ = ("_entries", "_head", "_opening", "replaced", "shrunk", "turn")

    def __init__(self) -> None:
        self.turn = threading.Lock()
        """Held by who reads; a whole ledger is read without the lock of its book."""
        self._entries, self._head, self._opening = 0, "", ""
        self.shrunk: int | None = None
        self.replaced: int | None = None

    def compare(self, state: State, *, whole: bool) -> None:
        """Look whether the longest history is in these entries; `whole` if the ledger has no more than them."""
        if self._entries and state.terms.hash != self._opening:
            self.replaced = self._entries
        elif state.count < self._entries:
            self.shrunk = self._entries if whole else self.shrunk
        elif self._entries and hash_at(state, self._entries - 1) != self._head:
            self.replaced = self._entries
        else:
            self._entries, self._head, self._opening = state.count, state.head, state.terms.hash


@final
class Book:
    """One ledger, followed. Several threads may ask; one of them reads at a time.

    Args:
        source: where it is.
        key: which ledger of the source.
        memory: what is remembered of it, where it was there before.
    """

    __slots__ = ("_digest", "_memory", "_reading", "_size", "id", "key", "lock", "source")

    def __init__(self, source: Source, key: str, memory: SeenHistory | None = None) -> None:
        self.source, self.key, self.id = source, key, source.id_of(key)
        self.lock = threading.RLock()
        """Held while the state is looked at: another thread may be appending to it."""
        self._memory = SeenHistory() if memory is None else memory
        self._reading = BookReading()
        self._digest, self._size = b"", 0

    @property
    def reading(self) -> BookReading:
        """What was read last."""
        return self._reading

    def follow(self, stamp: str) -> None:
        """Read what was appended, if the source's stamp is not that of the last reading."""
        with self._memory.turn:
            if stamp != self._reading.stamp:
                self._read(stamp, afresh=False)

    def again(self) -> None:
        """Read all of it once more: what was altered in place shows, too."""
        with self._memory.turn:
            self._read("", afresh=True)

    def fail(self, why: str) -> None:
        """The source itself cannot be read now; what was read before stays."""
        with self.lock:
            self._reading = replace(self._reading, stamp="", failure=why, entry=None)

    def _read(self, stamp: str, *, afresh: bool) -> None:
        before = self._reading
        known = None if afresh or before.failure is not None else before.state
        try:
            content = self.source.read(self.key, 0 if known is None else known.count)
            if known is not None and not self._continues(content, known):
                content, known = self.source.read(self.key, 0), None
            found = self._take(known, content)
            if found.failure is not None and known is not None and not self.source.whole:
                content = self.source.read(self.key, 0)  # what is before may be another history by now
                found = self._take(None, content)
        except PrivacyError as error:
            kept = stamp if isinstance(error, LedgerCorrupted) else ""  # what may pass is tried again
            self._reading = replace(before, stamp=kept, failure=str(error), entry=None)
            return
        if self.source.whole:
            self._digest, self._size = _digest(content.lines), len(content.lines)
        if found.state is not None:
            self._memory.compare(found.state, whole=found.failure is None)
        self._reading = replace(found, shrunk=self._memory.shrunk, replaced=self._memory.replaced)

    def _take(self, known: State | None, content: Content) -> BookReading:
        if known is None:
            return _taken(None, content.lines, content)
        fresh = content.lines[len(known.entries) :] if self.source.whole else content.lines
        with self.lock:
            return _taken(known, fresh, content)

    def _continues(self, content: Content, state: State) -> bool:
        """Whether what was read begins where the last reading ended."""
        if self.source.whole:
            return len(content.lines) >= self._size and _digest(content.lines[: self._size]) == self._digest
        if content.end is None or content.end[0] < state.count:
            return False
        return bool(content.lines) or content.end[1] == state.head


def _taken(state: State | None, fresh: list[str], content: Content) -> BookReading:
    """The state after the fresh lines, or after those of them that hold."""
    failure: LedgerError | None = None
    try:
        if state is None:
            state = replay(fresh[:1], from_checkpoint=True)
            fresh = fresh[1:]
        state.follow(fresh)
        if content.end is not None and content.end != (state.count, state.head):
            raise LedgerCorrupted(
                f"entry {state.count - 1}: the database's head is {content.end[1]} after {content.end[0]} "
                f"entries, the chain ends with {state.head} after {state.count}"
            )
    except LedgerError as error:
        failure = error
    return BookReading(
        stamp=content.stamp,
        state=state,
        failure=None if failure is None else str(failure),
        entry=None if failure is None else (0 if state is None else state.count),
        unfinished=content.unfinished,
    )


def drawn(state: State, grant: GrantEntry) -> tuple[int, int]:
    """How many events of a grant were drawn, and how many were planned."""
    planned = sum(count for _, count in grant.event.draws())
    return planned - sum(state.left(grant.index).values()), planned


def is_reproducible(state: State) -> bool:
    """Whether any draw used reproducible randomness, which protects nobody."""
    return state.randomness == "test"


def hash_at(state: State, index: int) -> str | None:
    """The hash of the entry with this index; None where it is not there, and the next one does not name it either."""
    first, entry = state.entries.first, state.entries.at(index)
    if entry is not None:
        return entry.hash
    return first.previous if index == first.index - 1 else None


def _digest(lines: list[str]) -> bytes:
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line.encode("utf-8") + b"\n")
    return whole.digest()
