"""Ledgers in databases, carried over to this release's tables, listed, read and imported whole (extra: sql).

docs/adr/0008-migrations.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger import _database as steps
from ledgerwood.accounting.ledger.record import LedgerRecord
from ledgerwood.accounting.ledger.sql import SqlStore
from ledgerwood.accounting.ledger.state import replay
from ledgerwood.errors import LedgerCorrupted, LedgerError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablesReport:
    """The steps that a migration of a database's tables took, or would take.

    Args:
        found: the version that they had.
        now: the version of this release.
        steps: the steps, in order; none if the two are the same.
        datasets: how many ledgers they hold, each checked as a chain afterwards.
    """

    found: int
    now: int
    steps: tuple[str, ...]
    datasets: int


def migrate_tables(url: str, *, dry_run: bool = False, told: Callable[[str], None] | None = None) -> TablesReport:
    """Carry a database's tables over to this release's version, in one transaction: all steps, or none.

    It waits for grants in progress, and locks the database until it ends. Afterwards earlier releases refuse
    the database. Every chain is replayed before the end.

    Args:
        url: the url of the database.
        dry_run: do all of it, and take it back.
        told: a function that is called with each step before it is taken.

    Raises:
        LedgerError: no such database, no ledgers in it, a later version, or an outcome that is unknown.
        LedgerWriteFailed: a step failed, or the database cannot be written; nothing was changed.
        LedgerCorrupted: a chain does not hold; nothing was changed.
    """
    address = database.parsed(url)
    file, name = database.sqlite_file(address), database.shown_name(address)
    if file is not None and not file.exists():
        raise LedgerError(f"there is no ledger database {name}")
    engine = database.engine_for(address)
    try:
        connection = database.begin(engine, writes=True)
        try:
            report = _carried_over(connection, name, told or _silent)
        except BaseException:
            database.drop(connection)
            raise
        _end(connection, name, keep=bool(report.steps) and not dry_run)
        return report
    except SQLAlchemyError as error:
        raise database.write_failure(error, name) from error
    finally:
        engine.dispose()


def _carried_over(connection: sa.Connection, name: str, told: Callable[[str], None]) -> TablesReport:
    """Everything but the commit."""
    database.lock_gate(connection)
    if database.found_version(connection) is None:
        raise LedgerError(f"there are no ledgers in the database {name}")
    database.lock_tables(connection)
    found = database.found_version(connection)  # once more: another migration may have been waited for
    if found is None or not steps.FIRST <= found <= steps.current():
        raise database.other_version(found)
    taken = steps.pending(found)
    for version, step in enumerate(taken, start=found + 1):
        told(f"tables, version {version}: {step.summary}")
        step.run(connection)
        connection.execute(sa.update(database.versions).values(version=version))
    done = tuple(step.summary for step in taken)
    return TablesReport(found=found, now=steps.current(), steps=done, datasets=_checked(connection, told))


def _checked(connection: sa.Connection, told: Callable[[str], None]) -> int:
    """Replay every chain, and hold it against its head row; how many there are."""
    rows = connection.execute(sa.select(database.heads).order_by(database.heads.c.dataset)).all()
    table = database.entries
    for row in rows:
        told(f"chain of data set {row.dataset!r}, entries: {row.entries}")
        query = sa.select(table.c.line).where(table.c.dataset == row.dataset).order_by(table.c.position)
        try:
            state = replay(connection.scalars(query))
            if (state.count, state.head) != (row.entries, row.head):
                raise LedgerCorrupted(
                    f"entry {state.count - 1}: the chain ends with hash {state.head} after {state.count} "
                    f"entries, the database says {row.head} after {row.entries}"
                )
        except LedgerCorrupted as error:
            raise LedgerCorrupted(f"data set {row.dataset!r}, {error}; nothing was changed") from error
    return len(rows)


def _end(connection: sa.Connection, name: str, *, keep: bool) -> None:
    try:
        if keep:
            database.commit(connection)
    except SQLAlchemyError as error:
        why = database.reason(error)[1]
        raise LedgerError(f"whether the tables of {name} were converted is unknown: {why}; try again") from error
    finally:
        database.drop(connection)


def _silent(_: str) -> None:
    """Tell nobody."""


def datasets(url: str) -> list[str]:
    """The labels of the data sets in a database.

    Raises:
        LedgerError: there is no such database, or it holds no ledgers of this version.
    """
    address = database.parsed(url)
    file, name = database.sqlite_file(address), database.shown_name(address)
    if file is not None and not file.exists():
        raise LedgerError(f"there is no ledger database {name}")
    engine = database.engine_for(address)
    try:
        connection = database.begin(engine, writes=False)
        try:
            if not database.has_tables(connection):
                return []
            return sorted(connection.scalars(sa.select(database.heads.c.dataset)))
        finally:
            database.drop(connection)
    except SQLAlchemyError as error:
        raise database.failure(error, name) from error
    finally:
        engine.dispose()


def import_ledger(record: LedgerRecord, url: str) -> None:
    """Store a ledger in a database, under its own data set label; to do so twice changes nothing.

    The original can still be spent from: stop using it first. Charges are taken as written (see `verify_ledger`).

    Raises:
        LedgerError: the database has another ledger for this data set, or only the beginning of this one.
        LedgerWriteFailed: nothing was written.
        InvalidParameter: the ledger has no data set label.
    """
    lines = list(record.lines)
    replay(lines)
    store = SqlStore(url, record.terms.dataset)
    try:
        found = store.write(lines, head=record.head)
    finally:
        store.close()
    if found[: len(lines)] != lines:
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, lines, strict=False)))
        raise LedgerError(
            f"the database {store.name} holds another ledger of {len(found)} entries, the first {common} of them the "
            "same; a data set has one ledger. Nothing was imported"
        )


def read_ledger(url: str, dataset: str) -> LedgerRecord:
    """The entries of one data set; save the record to export it.

    Raises:
        LedgerError: there is no such data set, or the database cannot be read.
        LedgerCorrupted: names the first entry that does not fit.
    """
    store = SqlStore(url, dataset)
    try:
        lines = store.read()
        if not lines:
            raise LedgerError(f"there is no ledger at {store.name}")
        state = replay(lines)
        store.catch_up(state)  # the head that the database keeps must be the chain's
    finally:
        store.close()
    return LedgerRecord(entries=tuple(state.entries))
