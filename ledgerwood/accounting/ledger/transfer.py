"""Whole ledgers in and out of databases: list, read, import (extra: sql)."""

from itertools import takewhile

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger.record import LedgerRecord
from ledgerwood.accounting.ledger.sql import SqlStore
from ledgerwood.accounting.ledger.state import replay
from ledgerwood.errors import LedgerError


def datasets(url: str) -> list[str]:
    """The labels of the data sets in a database.

    Raises:
        LedgerError: there is no such database, or it holds no ledgers of this version.
    """
    address = database.parsed(url)
    file, name = database.sqlite_file(address), address.render_as_string()
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
