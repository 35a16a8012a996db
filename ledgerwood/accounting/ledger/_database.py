"""Databases that hold ledgers: URLs, tables and their layouts, how a transaction begins, what a failure means.

Tables of an older layout are carried over step by step; the layout of a release is the last one, and a step is never
changed once it is released: databases have taken it (docs/adr/0008). Needs the extra `sql`;
docs/explanation/ledger.md#databases says what is promised, and why it holds.
"""

import contextlib
import errno
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ledgerwood.errors import InvalidParameter, LedgerError, LedgerWriteFailed

FIRST = 1
"""The oldest layout that can be carried over; the entries in the tables have a version of their own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStep:
    """A step from one layout to the next, on SQLite and PostgreSQL, inside a transaction that the caller ends.

    Args:
        summary: its purpose, in one line.
        run: does it; it commits nothing, and leaves every line as it is.
    """

    summary: str
    run: Callable[[sa.Connection], None]


STEPS: tuple[StoreStep, ...] = ()
"""The step at place i leads from layout FIRST + i to the next one."""


def current() -> int:
    """The layout of this release."""
    return FIRST + len(STEPS)


def pending(found: int) -> tuple[StoreStep, ...]:
    """The steps from an older layout, at least FIRST, to the one of this release."""
    return STEPS[found - FIRST :]


PATIENCE = 30.0
"""Seconds that anything waits for a lock or for the server, at most."""

_KINDS = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
_SECRETS = ("password", "sslpassword", "oauth_client_secret")  # options of PostgreSQL's client
_GATE = 0x6C656467  # the advisory lock under which PostgreSQL's tables and new ledgers are made

_tables = sa.MetaData()
versions = sa.Table("ledgerwood_schema", _tables, sa.Column("version", sa.Integer, primary_key=True))
heads = sa.Table(
    "ledgerwood_heads",
    _tables,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("entries", sa.BigInteger, nullable=False),  # how many
    sa.Column("head", sa.Text, nullable=False),  # the last entry's hash
)
entries = sa.Table(
    "ledgerwood_entries",
    _tables,
    sa.Column("dataset", sa.Text, sa.ForeignKey(heads.c.dataset), primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("line", sa.Text, nullable=False),
)

# What a spend asks for, built once: building it anew was most of the time that a spend took.
_VERSION = sa.select(versions.c.version)
HEAD_ROW = sa.select(heads.c.entries, heads.c.head).where(heads.c.dataset == sa.bindparam("of"))
LOCKED_HEAD_ROW = HEAD_ROW.with_for_update()
NEW_ENTRY = sa.insert(entries)
MOVED_HEAD = (
    sa.update(heads)
    .where(
        heads.c.dataset == sa.bindparam("of"), heads.c.entries == sa.bindparam("index"),
        heads.c.head == sa.bindparam("previous"),
    )
    .values(entries=sa.bindparam("count"), head=sa.bindparam("hash"))
)  # fmt: skip
LINES = (
    sa.select(entries.c.position, entries.c.line)
    .where(
        entries.c.dataset == sa.bindparam("of"), entries.c.position >= sa.bindparam("start"),
        entries.c.position < sa.bindparam("stop"),
    )
    .order_by(entries.c.position)
)  # fmt: skip


def parsed(url: str) -> sa.URL:
    """The URL, of a kind that can hold a ledger.

    Raises:
        InvalidParameter: another database, a database in memory, or options for SQLite.
    """
    wanted = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE (unit: URL)"
    try:
        address = sa.make_url(url)
    except ArgumentError as error:
        raise InvalidParameter(f"the URL of a ledger's database must be {wanted}") from error
    name = shown_name(address)
    if address.drivername not in _KINDS:
        raise InvalidParameter(f"path_or_url={name!r} must be the path of a JSON lines file, or {wanted}")
    if address.drivername.startswith("sqlite"):
        # A database in memory is no database; immutable=1 or nolock=1 would switch off what keeps writers apart.
        if address.database in (None, "", ":memory:") or address.query or str(address.database).startswith("file:"):
            raise InvalidParameter(f"path_or_url={name!r} must name a file, and no options: {wanted}")
        return address.set(drivername="sqlite+pysqlite")
    return address.set(drivername="postgresql+psycopg")


def shown_name(address: sa.URL) -> str:
    """The URL as errors and pages show it: without its password, and without its options, which may hold one."""
    return address.set(query={}).render_as_string()


def identity(address: sa.URL) -> str:
    """The URL with its options, but without a password: what tells one database from another; it is not shown."""
    return address.difference_update_query(_SECRETS).render_as_string()


def sqlite_file(address: sa.URL) -> Path | None:
    """The file of a SQLite database, None for a server."""
    return Path(str(address.database)) if address.drivername.startswith("sqlite") else None


def engine_for(address: sa.URL) -> sa.Engine:
    """One connection at a time; a statement that fails never shows its parameters.

    A server's is tested before each use. SQLite's is opened anew for each transaction: a file that was replaced or
    removed meanwhile would else be spent from where nobody finds it.
    """
    if sqlite_file(address) is None:
        return sa.create_engine(
            address, pool_size=1, max_overflow=0, pool_pre_ping=True, hide_parameters=True,
            isolation_level="READ COMMITTED",  # a row that was waited for is read as its last writer left it
            connect_args={"connect_timeout": int(PATIENCE) + 1, "tcp_user_timeout": int(PATIENCE * 1000)},
        )  # fmt: skip
    path = Path(str(address.database))
    engine = sa.create_engine(address, poolclass=sa.NullPool, hide_parameters=True, connect_args={"timeout": PATIENCE})

    @sa.event.listens_for(engine, "connect")
    def opened(connection: sqlite3.Connection, _: object) -> None:
        try:
            _require_one_name(path)
        except LedgerError:
            connection.close()
            raise
        connection.isolation_level = None  # transactions begin where we say so
        connection.execute("PRAGMA synchronous=EXTRA")  # FULL, and the folder too once the rollback journal is gone

    @sa.event.listens_for(engine, "begin")
    def begins(connection: sa.Connection) -> None:
        connection.exec_driver_sql(
            "BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN DEFERRED"
        )

    return engine


_READING = 10.0
"""Seconds that one who only reads waits, at most."""


def reading_engine_for(address: sa.URL) -> sa.Engine:
    """An engine that cannot write: SQLite opens the file read-only, a server refuses to change anything."""
    if sqlite_file(address) is None:
        engine = sa.create_engine(
            address, pool_size=2, max_overflow=0, pool_pre_ping=True, hide_parameters=True,
            isolation_level="READ COMMITTED", execution_options={"postgresql_readonly": True},
            connect_args={"connect_timeout": int(_READING), "tcp_user_timeout": int(_READING * 1000)},
        )  # fmt: skip

        @sa.event.listens_for(engine, "begin")
        def begins(connection: sa.Connection) -> None:
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(_READING * 1000)}")

        return engine
    where = f"{Path(str(address.database)).resolve().as_uri()}?mode=ro"
    return sa.create_engine(
        address.set(database=None), poolclass=sa.NullPool, hide_parameters=True,
        creator=lambda: sqlite3.connect(where, uri=True, timeout=_READING, check_same_thread=False),
    )  # fmt: skip


def _require_one_name(path: Path) -> None:
    """Refuse a file with hard links: SQLite's logs stand beside one name, and who comes by the other misses them."""
    try:
        names = path.stat().st_nlink
    except FileNotFoundError:  # it will be made
        return
    if names > 1:
        raise LedgerError(
            f"the ledger database {path} has {names} names (hard links): a grant under one name may not be "
            "visible under the others, so the same budget could be spent twice; remove the other names"
        )


def begin(engine: sa.Engine, *, writes: bool) -> sa.Connection:
    """A connection in a new transaction; one that writes has SQLite's lock, or bounds on PostgreSQL's waiting."""
    connection = engine.connect().execution_options(writes=writes)
    try:
        connection.begin()
        if engine.dialect.name == "postgresql":
            settings = {  # of this transaction, whatever the server's defaults
                "lock_timeout": f"{int(PATIENCE * 1000)}ms",
                "statement_timeout": f"{int(2 * PATIENCE * 1000)}ms",
                "idle_in_transaction_session_timeout": f"{int(2 * PATIENCE * 1000)}ms",  # a lost client's lock ends
                "synchronous_commit": "on",  # a commit that returns is on the server's disk
            }
            connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in settings.items())))
    except BaseException:
        drop(connection)
        raise
    return connection


def lock_gate(connection: sa.Connection) -> None:
    """Lock out other creators of tables or ledgers until the transaction ends; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_GATE)))


def make_tables(connection: sa.Connection) -> None:
    """Create what is missing."""
    if not has_tables(connection):
        _tables.create_all(connection)
        connection.execute(sa.insert(versions).values(version=current()))


def has_tables(connection: sa.Connection) -> bool:
    """Returns whether the database holds ledgers, in tables of this release's version.

    Raises:
        LedgerError: of another version.
    """
    if not sa.inspect(connection).has_table(versions.name):
        return False
    require_version(connection)
    return True


def require_version(connection: sa.Connection) -> None:
    """Refuse tables of another version; a transaction that writes keeps the version fixed until it ends.

    Raises:
        LedgerError: of another version.
    """
    found = _version_row(connection)
    if found != current():
        raise other_version(found)


def found_version(connection: sa.Connection) -> int | None:
    """The version of the tables, None without any.

    Raises:
        LedgerError: they state none.
    """
    if not sa.inspect(connection).has_table(versions.name):
        return None
    found = _version_row(connection)
    if found is None:
        raise other_version(None)
    return found


def lock_tables(connection: sa.Connection) -> None:
    """Wait for every transaction that has asked for the version, and let none ask until this one ends."""
    if connection.dialect.name == "postgresql":
        for table in (versions, heads, entries):  # in the order in which others ask for them
            if sa.inspect(connection).has_table(table.name):
                connection.exec_driver_sql(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")


def other_version(found: int | None) -> LedgerError:
    """The error for tables of another release's version."""
    way = "use the release that wrote it, or a later one"
    if found is not None and FIRST <= found < current():
        way = "`ledgerwood ledger migrate URL` converts them"
    return LedgerError(
        f"the database's tables are of version {'none' if found is None else found}; this release reads version "
        f"{current()}. Nothing was changed; {way}"
    )


def _version_row(connection: sa.Connection) -> int | None:
    found = list(connection.scalars(_VERSION))
    return found[0] if len(found) == 1 else None


def commit(connection: sa.Connection) -> None:
    """Make the transaction durable."""
    connection.commit()


def drop(connection: sa.Connection, *, broken: bool = False) -> None:
    """Roll back everything that was not committed, and return the connection; throw it away if it is `broken`."""
    with contextlib.suppress(SQLAlchemyError):  # it may be beyond use already
        if broken:
            connection.invalidate()
    with contextlib.suppress(SQLAlchemyError):  # the transaction ends with its connection
        connection.close()


def failure(error: SQLAlchemyError, name: str) -> LedgerError:
    """The error for a failed read."""
    return LedgerError(f"the ledger database {name} cannot be read: {reason(error)[1]}")


def write_failure(error: SQLAlchemyError, name: str) -> LedgerWriteFailed:
    """The error for a write that was certainly not recorded."""
    number, why = reason(error)
    return LedgerWriteFailed(number, f"nothing was recorded in the ledger database {name}: {why}")


def reason(error: SQLAlchemyError) -> tuple[int, str]:
    """An error number, and the reason in words."""
    cause = getattr(error, "orig", None)
    code = getattr(cause, "sqlite_errorcode", None)
    state = getattr(cause, "sqlstate", None)
    text = str(cause or error).strip()
    if state in {"55P03", "57014"} or (
        code is not None and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    ):
        return errno.EBUSY, f"another process kept it locked for more than {PATIENCE:g} s ({text}); try again"
    if state == "25006" or (code is not None and code & 0xFF == sqlite3.SQLITE_READONLY):
        return errno.EROFS, f"it is read-only ({text})"
    if state == "53100" or (code is not None and code & 0xFF == sqlite3.SQLITE_FULL):
        return errno.ENOSPC, f"its disk is full ({text})"
    return errno.EIO, text
