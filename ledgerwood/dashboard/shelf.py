"""All ledgers of the dashboard: which there are now, what was read of each, and what the verifier found."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import final

from ledgerwood import _validate
from ledgerwood.dashboard.books import Book, BookReading, SeenHistory, hash_at
from ledgerwood.dashboard.sources import Source
from ledgerwood.dashboard.verifying import Verification, Verifier
from ledgerwood.errors import LedgerError, PrivacyError

_LISTED_FOR = 0.3
"""Seconds for which a source is not asked again which ledgers it has."""
_PATIENCE = 0.4
"""Seconds that a page waits for a ledger to be read; a long one is shown as soon as it was."""
_READERS = 2
_PAUSE = 3.0
"""Seconds between two verifications of one ledger that is spent from, at least; and three times what one took."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One ledger at one moment.

    Args:
        book: which one; its lock is held while its state is looked at.
        reading: what was read.
        verification: the last result of the verifier on this history, None before the first one.
        running: whether a verification is waiting or running.
        reading_on: whether it is being read now.
    """

    book: Book
    reading: BookReading
    verification: Verification | None
    running: bool
    reading_on: bool

    @property
    def stamp(self) -> str:
        """Changes whenever a page about this ledger would."""
        found = self.verification
        verified = "" if found is None else f"{found.entries} {found.head} {found.seconds}"
        reading = self.reading
        known = f"{self.book.id} {reading.stamp} {reading.failure} {reading.shrunk} {reading.replaced}"
        return f"{known} {verified} {self.running} {self.reading_on}"


@final
@dataclass(slots=True)
class _Standing:
    """What is known of the verification of one ledger."""

    verification: Verification | None = None
    stamp: str = ""
    running: bool = False
    again: float = 0.0


@final
@dataclass(slots=True)
class _Listed:
    """What a source listed last."""

    at: float = float("-inf")
    stamps: dict[str, str] = field(default_factory=dict)
    books: dict[str, Book] = field(default_factory=dict)
    memories: dict[str, SeenHistory] = field(default_factory=dict)
    failure: str | None = None
    gone: set[str] = field(default_factory=set)


@final
class Shelf:
    """The ledgers of some sources.

    Args:
        sources: where ledgers are.
        verifier: who verifies them.
    """

    __slots__ = ("_listed", "_lock", "_readers", "_standing", "_tasks", "_verifier", "sources")

    def __init__(self, sources: Sequence[Source], verifier: Verifier) -> None:
        self.sources = _validate.items("sources", sources, "places of ledgers")
        self._verifier = verifier
        self._lock = threading.RLock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._tasks: dict[str, Future[None]] = {}
        self._listed = {source.identity: _Listed() for source in sources}
        self._standing: dict[str, _Standing] = {}

    def books(self) -> list[Book]:
        """All ledgers, source by source, each in the order of its keys."""
        return [book for source in self.sources for book in self._list(source).books.values()]

    def find(self, book_id: str) -> Book | None:
        """The ledger of this id, if a source lists it now."""
        return next((book for book in self.books() if book.id == book_id), None)

    def failures(self) -> list[tuple[str, str]]:
        """The sources that could not be read, and ledgers that were there before and are not any more."""
        found = []
        for source in self.sources:
            listed = self._list(source)
            if listed.failure is not None:
                found.append((source.name, listed.failure))
            found += [
                (source.name, f"the ledger {key} was here when the dashboard looked before, and is gone")
                for key in sorted(listed.gone)
            ]
        return found

    def look(self, book: Book, *, patience: float = _PATIENCE) -> Look:
        """What is known of a ledger, after what was appended was read if that takes no longer than `patience`.

        A ledger that changed is verified.
        """
        task = self._follow(book, self._list(book.source).stamps.get(book.key, ""))
        if task is not None:
            wait([task], patience)
        reading, standing = book.reading, self._standing_of(book)
        with self._lock:
            verified, verified_stamp = standing.verification, standing.stamp
        found = _of_this_history(verified, book, reading)
        if verified is not found and verified_stamp == reading.stamp and reading.failure is None:
            book.again()  # the verifier saw other entries at the same stamp: they were altered in place
            reading, standing.stamp = book.reading, ""
            found = _of_this_history(verified, book, reading)
        if reading.state is not None and reading.failure is None and standing.stamp != reading.stamp:
            self._verify(book, standing, anew=False)
            found = _of_this_history(standing.verification, book, reading)
        return Look(
            book=book,
            reading=reading,
            verification=found,
            running=standing.running,
            reading_on=task is not None and not task.done(),
        )

    def verify_again(self, book: Book) -> None:
        """Read the whole ledger once more, and have it verified whatever is known of it."""
        standing = self._standing_of(book)
        if not standing.running:
            book.again()
            self._verify(book, standing, anew=True)

    def read_all(self) -> None:
        """Begin to read every ledger, so that the first page need not wait."""
        for book in self.books():
            self._follow(book, self._list(book.source).stamps.get(book.key, ""))

    def relist(self) -> None:
        """Ask all sources again which ledgers they have."""
        with self._lock:
            for listed in self._listed.values():
                listed.at = float("-inf")

    def close(self) -> None:
        """Stop the verifier, and let go of the sources."""
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._verifier.close()
        for source in self.sources:
            source.close()

    def _list(self, source: Source) -> _Listed:
        with self._lock:
            listed = self._listed[source.identity]
            if time.monotonic() - listed.at < _LISTED_FOR:
                return listed
            try:
                listed.stamps, listed.failure = source.ledgers(), None
            except LedgerError as error:
                listed.failure = str(error)
                for book in listed.books.values():
                    book.fail(str(error))
            else:
                listed.gone = (listed.gone | set(listed.books)) - set(listed.stamps)
                listed.books = {
                    key: listed.books.get(key) or Book(source, key, listed.memories.setdefault(key, SeenHistory()))
                    for key in listed.stamps
                }
                self._forget_others()
            listed.at = time.monotonic()
            return listed

    def _follow(self, book: Book, stamp: str) -> Future[None] | None:
        """The reading of what was appended; None where nothing was."""
        with self._lock:
            task = self._tasks.get(book.id)
            if task is not None and not task.done():
                return task
            self._tasks.pop(book.id, None)
            if stamp == book.reading.stamp:
                return None
            self._tasks[book.id] = task = self._readers.submit(book.follow, stamp)
            return task

    def _forget_others(self) -> None:
        present = {book.id for listed in self._listed.values() for book in listed.books.values()}
        self._standing = {key: standing for key, standing in self._standing.items() if key in present}

    def _standing_of(self, book: Book) -> _Standing:
        with self._lock:
            return self._standing.setdefault(book.id, _Standing())

    def _verify(self, book: Book, standing: _Standing, *, anew: bool) -> None:
        """Have all of a ledger verified, as its source has it now; not too often while it is spent from."""
        with self._lock:
            if standing.running or (not anew and time.monotonic() < standing.again):
                return
            standing.running = True
        try:
            content = book.source.read(book.key, 0)
        except PrivacyError as error:
            with self._lock:
                standing.running = False
            book.fail(str(error))
            return

        def then(found: Verification) -> None:
            with self._lock:
                standing.verification, standing.stamp, standing.running = found, content.stamp, False
                standing.again = time.monotonic() + max(_PAUSE, 3.0 * found.seconds)

        self._verifier.verify(content.lines, then, anew=anew)


def _of_this_history(found: Verification | None, book: Book, reading: BookReading) -> Verification | None:
    """The result, if the last entry that was verified is in the ledger at its place, and with it all before it.

    What was found of the whole is not said of a part that begins with a checkpoint, nor the other way round.
    """
    if found is None or reading.state is None or found.trusted != reading.trusted:
        return None
    with book.lock:
        there = 0 < found.end <= reading.state.count and hash_at(reading.state, found.end - 1) == found.head
    return found if there else None
