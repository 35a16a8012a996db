"""What can happen to a database: full, locked, read-only, gone in the middle of a commit, tampered with, copied."""

import errno
import resource
import shutil
import sqlite3
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from ledgerwood.accounting import Adjacency, Budget, Composed, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger import migrations
from ledgerwood.errors import BudgetExceeded, LedgerCorrupted, LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
REAL_COMMIT, REAL_BEGIN, REAL_DROP = database.commit, database.begin, database.drop


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def create(url, dataset="adult"):
    return Ledger.open(url, dataset=dataset, budget=BUDGET, unit=PrivacyUnit.ROW)


@contextmanager
def raw(url):
    """A connection past the library."""
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def edit(url, statement, **values):
    with raw(url) as connection:
        assert connection.execute(sa.text(statement), values).rowcount == 1


def lost(*_, **__):
    raise OperationalError("COMMIT", {}, ConnectionError("the connection was lost"))


def lost_after(connection):
    REAL_COMMIT(connection)
    lost()


def full(connection):
    raise OperationalError("COMMIT", {}, OSError(errno.ENOSPC, "No space left on device"))


def interrupted_before(connection):
    raise KeyboardInterrupt


def interrupted_after(connection):
    REAL_COMMIT(connection)
    raise KeyboardInterrupt


@pytest.mark.parametrize("fault", [lost, full], ids=["lost", "full"])
def test_a_commit_that_did_not_land_records_nothing(url, monkeypatch, fault):
    with create(url) as ledger:
        grant = ledger.grant(pure(0.25), purpose="before")
        before = (ledger.entries, ledger.spent(), ledger.head)
        monkeypatch.setattr(database, "commit", fault)
        for write in (
            lambda: ledger.grant(pure(0.25), purpose="during"),
            lambda: grant.draw(pure(0.25), purpose="during"),
        ):
            with pytest.raises(LedgerWriteFailed, match="nothing was recorded"):
                write()
            assert before == (ledger.entries, ledger.spent(), ledger.head)
        monkeypatch.undo()
        grant.draw(pure(0.25), purpose="after")
        ledger.grant(pure(0.25), purpose="after")
        assert verify_ledger(url, dataset="adult", head=ledger.head).epsilon_readded == 0.5


def test_what_may_not_be_on_the_disk_is_spent_and_not_handed_out(sqlite_url, monkeypatch):
    with create(sqlite_url) as ledger:
        monkeypatch.setattr(database, "commit", lost_after)
        with pytest.raises(LedgerError, match="entry 1 .* recorded and spent, but may not be on the disk"):
            ledger.grant(pure(0.25), purpose="p")
        monkeypatch.undo()
        assert ledger.spent().epsilon == 0.25
        ledger.grant(pure(0.75), purpose="q")
        assert verify_ledger(sqlite_url, dataset="adult", head=ledger.head).grants == 2


@pytest.mark.parametrize("landed", [False, True])
def test_an_unknown_outcome_counts_as_spent_until_the_database_says(url, monkeypatch, landed):
    with create(url) as ledger:
        monkeypatch.setattr(database, "commit", lost_after if landed else lost)
        monkeypatch.setattr(
            database, "begin", lambda *a, seen=[], **k: lost() if seen else (seen.append(1), REAL_BEGIN(*a, **k))[1]
        )
        with pytest.raises(LedgerError, match="entry 1 .* may or may not be recorded, and counts as spent") as unknown:
            ledger.grant(pure(0.75), purpose="p")
        assert not isinstance(unknown.value, LedgerWriteFailed)
        for ask in (ledger.spent, ledger.remaining, ledger.record, lambda: ledger.grant(pure(0.1), purpose="q")):
            with pytest.raises(LedgerError):  # never a figure that leaves the doubtful grant out
                ask()
        monkeypatch.undo()
        assert ledger.spent().epsilon == (0.75 if landed else 0.0)
        if landed:
            with pytest.raises(BudgetExceeded):
                ledger.grant(pure(0.75), purpose="again")
        else:
            ledger.grant(pure(0.75), purpose="again")
        assert verify_ledger(url, dataset="adult", head=ledger.head).epsilon_readded == 0.75


def test_a_database_out_of_reach_leaves_what_was_seen(url, monkeypatch):
    """A model is not lost because the database is; but no total is named that others may have moved."""
    with create(url) as ledger:
        ledger.spend(pure(0.25), purpose="p")
        seen = (ledger.entries, ledger.head, ledger.record())
        monkeypatch.setattr(database, "begin", lost)
        assert (ledger.entries, ledger.head, ledger.record()) == seen
        for ask in (ledger.spent, ledger.remaining):
            with pytest.raises(LedgerError, match="cannot be read: .*the connection was lost"):
                ask()
        with pytest.raises(LedgerWriteFailed, match="nothing was recorded"):
            ledger.grant(pure(0.1), purpose="q")


@pytest.mark.parametrize("interrupt", [interrupted_before, interrupted_after])
def test_an_interrupt_loses_budget_at_most(url, monkeypatch, interrupt):
    with create(url) as ledger:
        monkeypatch.setattr(database, "commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.grant(pure(0.25), purpose="during")
        monkeypatch.undo()
        landed = interrupt is interrupted_after
        assert ledger.spent().epsilon == (0.25 if landed else 0.0)
        ledger.grant(pure(0.25), purpose="after")
        assert verify_ledger(url, dataset="adult").grants == 1 + landed


def at_every_connection(ledger, pragma):
    def connected(connection, _):
        connection.execute(pragma)

    sa.event.listen(ledger._store._engine, "connect", connected)
    return connected


def test_a_full_disk_records_nothing(sqlite_url):
    with create(sqlite_url) as ledger:
        with ledger._store._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        limit = at_every_connection(ledger, f"PRAGMA max_page_count = {pages}")
        granted = 0
        with pytest.raises(LedgerWriteFailed, match="disk is full") as failure:
            for _ in range(100):
                ledger.grant(pure(2**-10), purpose="p" * 200)
                granted += 1
        assert failure.value.errno == errno.ENOSPC
        assert len(ledger.entries) == 1 + granted
        sa.event.remove(ledger._store._engine, "connect", limit)
        ledger.grant(pure(0.5), purpose="after")
        assert verify_ledger(sqlite_url, dataset="adult").grants == granted + 1


@contextmanager
def files_of_at_most(size):
    """The system refuses to write beyond `size` bytes of any file, as a full disk would, wherever a write then is."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow  # a fault at each step of each write
def test_a_write_that_fails_anywhere_leaves_the_entry_whole_or_not_at_all(sqlite_url):
    """First in the rollback journal, then in the file itself: an entry of several pages, cut off at each of them."""
    many = Composed(tuple(pure(2.0**-60 * (1 + i)) for i in range(150)))
    acknowledged, refused, unknown = set(), 0, 0
    with create(sqlite_url) as ledger:
        for step in range(40):
            try:
                with files_of_at_most(300 + step * 2048):
                    acknowledged.add(ledger.grant(many, purpose=f"p{step}").index)
            except LedgerWriteFailed:
                refused += 1
            except LedgerError as error:
                assert "may or may not be recorded, and counts as spent" in str(error)
                unknown += 1
            stored = migrations.read_ledger(sqlite_url, "adult")  # rolls back, now that there is room
            assert stored == ledger.record()
            assert acknowledged <= {entry.index for entry in stored.entries}
            assert len(acknowledged) <= len(stored.entries) - 1 <= len(acknowledged) + unknown
        assert min(len(acknowledged), refused + unknown) >= 2
        ledger.grant(pure(0.5), purpose="after")
        assert verify_ledger(sqlite_url, dataset="adult", head=ledger.head).grants == len(ledger.entries) - 1


def test_a_full_disk_while_a_ledger_is_made(url, monkeypatch):
    monkeypatch.setattr(database, "commit", full)
    with pytest.raises(LedgerError, match="whether .* was created is unknown"):
        create(url)
    monkeypatch.undo()
    with create(url) as ledger:
        assert len(ledger.entries) == 1


def test_a_locked_database_is_waited_for_and_no_longer(url, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    with create(url) as ledger, create(url) as holder:
        with holder._store.locked(holder._state):
            with pytest.raises(LedgerWriteFailed, match=r"locked for more than 0\.3 s") as failure:
                ledger.grant(pure(0.25), purpose="during")
            assert failure.value.errno == errno.EBUSY
            assert ledger.spent().epsilon == 0.0  # reading goes on
        ledger.grant(pure(0.25), purpose="after")
        assert holder.spent().epsilon == 0.25


def test_a_read_only_database_is_read(url):
    create(url).close()
    if url.startswith("postgresql"):
        ledger = Ledger.open(f"{url}%20-cdefault_transaction_read_only%3Don", dataset="adult")
    else:
        ledger = Ledger.open(url, dataset="adult")
        at_every_connection(ledger, "PRAGMA query_only = ON")
    with ledger:
        assert ledger.spent().epsilon == 0.0
        with pytest.raises(LedgerWriteFailed, match="read-only") as failure:
            ledger.grant(pure(0.25), purpose="p")
        assert failure.value.errno == errno.EROFS
        assert len(ledger.entries) == 1


@pytest.mark.parametrize("statement", ["UPDATE ledgerwood_schema SET version = 2", "DELETE FROM ledgerwood_schema"])
def test_tables_of_another_version_are_left_alone(url, statement):
    create(url).close()
    edit(url, statement)
    for use in (
        lambda: Ledger.open(url, dataset="adult"),
        lambda: create(url),
        lambda: create(url, "another"),
    ):
        with pytest.raises(LedgerError, match="this release reads version 1. Nothing was changed"):
            use()


@pytest.mark.slow_after(2)  # a fault at each step of each write
@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("UPDATE ledgerwood_entries SET line = replace(line, '0.25', '0.125') WHERE position = 1", 1),
        ("UPDATE ledgerwood_entries SET line = replace(line, 'adult', 'older') WHERE position = 0", 0),
        ("DELETE FROM ledgerwood_entries WHERE position = 1", 1),
        ("DELETE FROM ledgerwood_entries WHERE position = 2", 2),
        ("UPDATE ledgerwood_entries SET position = 9 WHERE position = 2", 2),
        ("UPDATE ledgerwood_heads SET head = 'f'", 2),
        ("UPDATE ledgerwood_heads SET entries = 2", 1),
        ("UPDATE ledgerwood_heads SET entries = 4", 3),
    ],
)
def test_tampering_is_found_when_it_is_opened(url, statement, place):
    with create(url) as ledger:
        for _ in range(2):
            ledger.grant(pure(0.25), purpose="p")
    edit(url, statement)
    with pytest.raises(LedgerCorrupted, match=f"entry {place}:"):
        Ledger.open(url, dataset="adult")
    if " = 9" not in statement and "entries =" not in statement:  # numbers of rows are the store's own
        with pytest.raises(LedgerCorrupted, match=r"entry \d:"):
            verify_ledger(url, dataset="adult")


def test_an_older_state_put_back_under_an_open_ledger_grants_nothing(url):
    with create(url) as ledger:
        head = ledger.grant(pure(0.25), purpose="p")._entry.hash
        ledger.grant(pure(0.5), purpose="q")
        edit(url, "DELETE FROM ledgerwood_entries WHERE position = 2")
        edit(url, "UPDATE ledgerwood_heads SET entries = 2, head = :head", head=head)
        with pytest.raises(LedgerError, match="2 entries, where 3 have been seen"):
            ledger.grant(pure(0.125), purpose="r")
        with pytest.raises(LedgerError, match="older copy"):
            ledger.spent()


def test_a_chain_that_went_another_way_is_noticed(url):
    with create(url) as ledger, create(url, "twin") as twin:
        ledger.grant(pure(0.25), purpose="here")
        other = twin.grant(pure(0.5), purpose="there")._entry
        edit(url, "UPDATE ledgerwood_entries SET line = :line WHERE dataset = 'adult' AND position = 1",
             line=twin.record().lines[1])  # fmt: skip
        edit(url, "UPDATE ledgerwood_heads SET head = :head WHERE dataset = 'adult'", head=other.hash)
        with pytest.raises(LedgerCorrupted, match="entry 1: the database's head"):
            ledger.grant(pure(0.125), purpose="r")


def test_a_copied_file_cannot_know_that_it_is_one(sqlite_url, tmp_path):
    """What the documentation admits: two copies of one budget, until the head that a model keeps tells them apart."""
    create(sqlite_url).close()
    shutil.copy(tmp_path / "team.db", tmp_path / "copy.db")
    heads = []
    for url in (sqlite_url, f"sqlite:///{tmp_path}/copy.db"):
        with Ledger.open(url, dataset="adult") as ledger:
            ledger.grant(pure(0.75), purpose=url[-7:])
            heads.append(ledger.head)
    verify_ledger(sqlite_url, dataset="adult", head=heads[0])
    with pytest.raises(LedgerCorrupted, match="expected"):
        verify_ledger(sqlite_url, dataset="adult", head=heads[1])


def test_a_file_with_two_names_is_not_spent_from(sqlite_url, tmp_path):
    """SQLite keeps its log beside the name by which a file was opened: what one name wrote the other does not see."""
    create(sqlite_url).close()
    journal = sqlite3.connect(tmp_path / "team.db")
    assert journal.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    journal.close()
    (tmp_path / "other.db").hardlink_to(tmp_path / "team.db")
    reader = sqlite3.connect(tmp_path / "team.db", isolation_level=None)  # what is new stays in the log
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM ledgerwood_heads").fetchall()
    for name in ("team.db", "other.db"):  # once each of them granted .75 of the 1.0
        with pytest.raises(LedgerError, match=f"{name}.* 2 names"):
            Ledger.open(f"sqlite:///{tmp_path}/{name}", dataset="adult").grant(pure(0.75), purpose="p")
    reader.close()
    (tmp_path / "other.db").unlink()
    with Ledger.open(sqlite_url, dataset="adult") as ledger:
        ledger.grant(pure(0.75), purpose="p")
        (tmp_path / "other.db").hardlink_to(tmp_path / "team.db")
        with pytest.raises(LedgerError, match="2 names"):  # under an open ledger too
            ledger.grant(pure(0.125), purpose="p")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "a.db").write_text("no database, but long enough to be taken for one by its length" * 20)
    for use in (Ledger.open, verify_ledger):
        with pytest.raises(LedgerError, match="not a database"):
            use(f"sqlite:///{tmp_path}/a.db", dataset="adult")
    with pytest.raises(LedgerError, match="unable to open"):
        create(f"sqlite:///{tmp_path}/nowhere/a.db")


def test_commits_are_synced_as_strongly_as_sqlite_can(sqlite_url):
    with create(sqlite_url) as ledger, ledger._store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3  # EXTRA
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_a_transaction_that_was_killed_in_the_middle_leaves_nothing(sqlite_url, tmp_path):
    """A hot journal beside the file: what a killed process leaves, rolled back by the next one."""
    with create(sqlite_url) as ledger:
        ledger.grant(pure(0.25), purpose="p")
        whole = (tmp_path / "team.db").read_bytes()
        writer = sqlite3.connect(tmp_path / "team.db", isolation_level=None)
        writer.execute("PRAGMA cache_spill = 1")
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM ledgerwood_entries")
        for i in range(200):
            writer.execute("INSERT INTO ledgerwood_entries VALUES ('adult', ?, ?)", (i, "x" * 1000))
        for name in ("team.db", "team.db-journal"):
            shutil.copy(tmp_path / name, tmp_path / f"killed-{name}")
        assert (tmp_path / "killed-team.db").read_bytes()[: len(whole)] != whole
        writer.execute("ROLLBACK")
        writer.close()
    for name in ("team.db", "team.db-journal"):
        (tmp_path / f"killed-{name}").rename(tmp_path / f"dead{name.removeprefix('team')}")
    with Ledger.open(f"sqlite:///{tmp_path}/dead.db", dataset="adult") as again:
        assert again.spent().epsilon == 0.25
