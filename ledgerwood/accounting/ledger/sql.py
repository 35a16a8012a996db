"""Ledgers in a database: many data sets, each its own chain, and many processes that spend from them.

A grant is one transaction: lock the data set's head row, read what others appended since, ask the filter about the
true state, append, commit durably; only then does the caller hear of it (docs/explanation/ledger.md#databases).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger.entries import CHECKPOINT, Entry, encode, require_label
from ledgerwood.accounting.ledger.state import State
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError, LedgerWriteFailed

_FIRST_LOOK = 256  # lines, from the last one, in which a checkpoint is looked for; then twice as many


@final
class SqlStore:
    """The chain of one data set in one database.

    Raises:
        InvalidParameter: no ledger can be at this URL, or no data set is named.
    """

    __slots__ = ("_address", "_closed", "_connection", "_doubt", "_engine", "_owner", "dataset", "name")

    def __init__(self, url: str, dataset: str | None) -> None:
        self._address = database.parsed(url)
        if dataset is None:
            raise InvalidParameter(
                "dataset=None must be the public label of a data set: a database holds many (unit: text)"
            )
        self.dataset, self.name = (
            require_label("dataset", dataset),
            f"{database.shown_name(self._address)}, data set {dataset!r}",
        )
        self._engine = database.engine_for(self._address)
        self._connection: sa.Connection | None = None
        self._owner = os.getpid()
        self._doubt = self._closed = False

    def read(self, *, from_checkpoint: bool = False) -> list[str]:
        """All lines; none if there is no such data set, or no such database.

        Args:
            from_checkpoint: those from the last checkpoint on, if there is one.

        Raises:
            LedgerError: the database cannot be read, or is of a later version.
            LedgerCorrupted: entries are missing.
        """
        file = database.sqlite_file(self._address)
        if file is not None and not file.exists():
            return []
        with self._reading() as connection:
            row = self._head_row(connection) if database.has_tables(connection) else None
            if row is None:
                return []
            return (
                self._since_checkpoint(connection, row.entries)
                if from_checkpoint
                else self._lines(connection, 0, row.entries)
            )

    def create(self, first: Entry) -> list[str]:
        """Write the first entry unless another process was faster; returns the lines that exist then."""
        return self.write([encode(first)], head=first.hash)

    def write(self, lines: list[str], *, head: str) -> list[str]:
        """Store a chain that ends with the hash `head`, unless the data set has one; the lines that there are then.

        Raises:
            LedgerWriteFailed: nothing was written.
            LedgerError: the outcome is unknown.
        """
        try:
            connection = database.begin(self._engine, writes=True)
        except SQLAlchemyError as error:
            raise database.write_failure(error, self.name) from error
        try:
            try:
                database.lock_gate(connection)
                database.make_tables(connection)
                row = self._head_row(connection)
                if row is not None:
                    return self._lines(connection, 0, row.entries)
                values = {"dataset": self.dataset, "entries": len(lines), "head": head}
                connection.execute(sa.insert(database.heads).values(values))
                rows = [{"dataset": self.dataset, "position": i, "line": line} for i, line in enumerate(lines)]
                connection.execute(database.NEW_ENTRY, rows)
            except SQLAlchemyError as error:
                raise database.write_failure(error, self.name) from error
            try:
                database.commit(connection)
            except SQLAlchemyError as error:
                why = database.reason(error)[1]
                raise LedgerError(f"whether {self.name} was created is unknown: {why}; open it again") from error
        finally:
            database.drop(connection)
        return lines

    def catch_up(self, state: State, *, lenient: bool = False) -> None:
        """Read what others appended; after a commit of unknown outcome, only once that outcome is certain."""
        if self._closed:
            return
        if self._doubt:
            with self.locked(state):
                return
        try:
            with self._reading() as connection:
                self._follow(connection, state, self._head_row(connection))
        except LedgerError as error:
            if not (lenient and isinstance(error.__cause__, SQLAlchemyError)):
                raise

    @contextmanager
    def locked(self, state: State) -> Iterator[None]:
        """Hold the head row, the state caught up; what `append` did not commit is rolled back at the end.

        Raises:
            LedgerWriteFailed: locked by another process for too long, read-only, or not to be reached.
            LedgerCorrupted: what others appended does not fit.
        """
        if self._closed:
            raise LedgerError(f"the ledger database {self.name} was closed")
        try:
            connection = database.begin(self._engine, writes=True)
        except SQLAlchemyError as error:
            raise database.write_failure(error, self.name) from error
        self._connection = connection
        try:
            try:
                database.require_version(connection)  # the tables may have been carried over since this was opened
                row = self._head_row(connection, lock=True)
                self._follow(connection, state, row)
            except SQLAlchemyError as error:
                raise database.write_failure(error, self.name) from error
            self._doubt = False  # a transaction whose end was unknown held this row: by now it has ended
            yield
        finally:
            self._connection = None
            database.drop(connection)

    def append(self, entry: Entry, *, durable: bool) -> None:
        """Write an entry and commit it to the disk, whether it must be `durable` or not.

        Raises:
            LedgerWriteFailed: it was not recorded.
            LedgerError: it may have been recorded; it counts as spent until the database can say.
        """
        connection = self._connection
        if connection is None:
            raise LedgerError(f"the ledger database {self.name} is written to only while it is locked")
        line = {"dataset": self.dataset, "position": entry.index, "line": encode(entry)}
        before = {"of": self.dataset, "index": entry.index, "previous": entry.previous}
        try:
            connection.execute(database.NEW_ENTRY, line)
            moved = connection.execute(database.MOVED_HEAD, before | {"count": entry.index + 1, "hash": entry.hash})
        except SQLAlchemyError as error:
            raise database.write_failure(error, self.name) from error
        if moved.rowcount != 1:
            raise LedgerError(f"the ledger database {self.name} changed while it was locked; nothing was recorded")
        self._doubt = True  # also if an interrupt comes now
        try:
            database.commit(connection)
        except SQLAlchemyError as error:
            database.drop(connection, broken=True)
            self._settle(entry, error)
        self._doubt = False

    def close(self) -> None:
        """Let go of the database; a forked process leaves its parent's connection alone."""
        self._closed = True
        self._engine.dispose(close=self._owner == os.getpid())

    def _settle(self, entry: Entry, cause: SQLAlchemyError) -> None:
        """Find out what became of a commit that failed; return only if the entry is there for certain."""
        number, why = database.reason(cause)
        try:
            fresh = database.begin(self._engine, writes=True)
            try:
                # The lost transaction held this row until it ended: whoever has the row sees how it ended.
                self._head_row(fresh, lock=True)
                found = self._lines(fresh, entry.index, entry.index + 1, partly=True)
            finally:
                database.drop(fresh)
        except (SQLAlchemyError, LedgerError) as error:
            again = database.reason(error)[1] if isinstance(error, SQLAlchemyError) else str(error)
            raise LedgerError(
                f"entry {entry.index} of {self.name} may or may not be recorded, and counts as spent: "
                f"the commit failed ({why}), and the database did not answer again ({again})"
            ) from cause
        self._doubt = False
        if found != [encode(entry)]:
            raise LedgerWriteFailed(
                number, f"nothing was recorded in the ledger database {self.name}: {why}"
            ) from cause
        if database.sqlite_file(self._address) is not None:
            raise LedgerError(
                f"entry {entry.index} of {self.name} is recorded and spent, but may not be on the disk: {why}"
            ) from cause

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            connection = database.begin(self._engine, writes=False)
            try:
                yield connection
            finally:
                database.drop(connection)
        except SQLAlchemyError as error:
            raise database.failure(error, self.name) from error

    def _head_row(self, connection: sa.Connection, *, lock: bool = False) -> Any:
        """How many entries there are and the last entry's hash; None for an unknown data set. `lock` keeps it."""
        query = database.LOCKED_HEAD_ROW if lock else database.HEAD_ROW
        return connection.execute(query, {"of": self.dataset}).one_or_none()

    def _follow(self, connection: sa.Connection, state: State, row: Any) -> None:
        known = state.count
        if row is None or row.entries < known:
            raise LedgerError(
                f"the ledger database {self.name} holds {0 if row is None else row.entries} entries, where "
                f"{known} have been seen: entries were lost, or an older copy was restored; nothing more is "
                "granted"
            )
        state.follow(self._lines(connection, known, row.entries))
        if state.head != row.head:
            raise LedgerCorrupted(
                f"entry {row.entries - 1}: the database's head is {row.head}, the chain ends with {state.head}"
            )

    def _since_checkpoint(self, connection: sa.Connection, stop: int) -> list[str]:
        """The lines from the last checkpoint on, or all: read from the end, some and some more."""
        found: list[str] = []
        start, step = stop, _FIRST_LOOK
        while start:
            start, end = max(start - step, 0), start
            found[:0] = self._lines(connection, start, end)
            for place in range(end - start - 1, -1, -1):
                if CHECKPOINT.decode() in found[place]:
                    return found[place:]
            step *= 2
        return found

    def _lines(self, connection: sa.Connection, start: int, stop: int, *, partly: bool = False) -> list[str]:
        """The lines of entries `start` to `stop`, none of them missing unless `partly`."""
        if start == stop:
            return []
        found = connection.execute(database.LINES, {"of": self.dataset, "start": start, "stop": stop}).all()
        if not partly:
            for expected, row in zip(range(start, stop), found, strict=False):
                if row.position != expected:
                    raise LedgerCorrupted(f"entry {expected}: missing from the database")
            if len(found) < stop - start:
                raise LedgerCorrupted(f"entry {start + len(found)}: missing from the database")
        return [row.line for row in found]
