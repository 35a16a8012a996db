"""Ledgers in a database, read only: which there are, how long each is, what was appended (extra: sql).

For those who show ledgers while others spend from them. Charges and chains are not checked here: see `replay`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ledgerwood.accounting.ledger import _database as database
from ledgerwood.errors import LedgerError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a chain ends, as the database keeps it.

    Args:
        entries: how many entries there are.
        hash: the last entry's hash, hexadecimal.
    """

    entries: int
    hash: str


@final
class DatabaseReader:
    """The ledgers of one database, which is opened read-only for each question.

    Args:
        url: the URL of the database.

    Raises:
        InvalidParameter: no ledger can be at this URL.
    """

    __slots__ = ("_address", "_engine", "identity", "name")

    def __init__(self, url: str) -> None:
        self._address = database.parsed(url)
        self.name, self.identity = database.shown_name(self._address), database.identity(self._address)
        self._engine = database.reading_engine_for(self._address)

    def heads(self) -> dict[str, Head]:
        """The head of each data set's ledger by its label, sorted; empty where the database holds no ledgers.

        Raises:
            LedgerError: there is no such database, or it cannot be read.
        """
        table = database.heads
        with self._reading() as connection:
            if not database.has_tables(connection):
                return {}
            rows = connection.execute(sa.select(table).order_by(table.c.dataset)).all()
        return {row.dataset: Head(entries=row.entries, hash=row.head) for row in rows}

    def lines(self, dataset: str, start: int = 0) -> tuple[list[str], Head]:
        """The lines from entry `start` on, and the head that they must lead to.

        Raises:
            LedgerError: there is no such ledger, or it cannot be read.
        """
        head, table = database.heads, database.entries
        with self._reading() as connection:
            found = connection.execute(
                sa.select(head.c.entries, head.c.head).where(head.c.dataset == dataset)
            ).one_or_none()
            if found is None:
                raise LedgerError(f"there is no ledger of data set {dataset!r} in {self.name}")
            rows = connection.execute(
                sa.select(table.c.line)
                .where(table.c.dataset == dataset, table.c.position >= start, table.c.position < found.entries)
                .order_by(table.c.position)
            )
            lines = [row.line for row in rows]
        return lines, Head(entries=found.entries, hash=found.head)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        file = database.sqlite_file(self._address)
        if file is not None and not file.exists():
            raise LedgerError(f"there is no ledger database {self.name}")
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise database.failure(error, self.name) from error
