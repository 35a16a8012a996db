"""Tables of an older release, carried over in one transaction: all steps or none, every chain held."""

import json
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import LedgerRecord, migrations
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger import _database as steps
from ledgerwood.accounting.ledger import migrations as transfer
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.errors import LedgerCorrupted, LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
GOLDEN = Path(__file__).resolve().parents[2] / "golden"


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


def heads_from_lines(connection):
    """The artificial older layout has one table of lines; heads are made from the last ones."""
    database.heads.create(connection)
    database.entries.create(connection)
    last = {}
    for dataset, place, line in connection.exec_driver_sql(
        "SELECT dataset, place, line FROM ledgerwood_lines ORDER BY place"
    ):
        last[dataset] = {"dataset": dataset, "entries": place + 1, "head": json.loads(line)["hash"]}
    if last:
        connection.execute(sa.insert(database.heads), list(last.values()))
    connection.exec_driver_sql("INSERT INTO ledgerwood_entries SELECT dataset, place, line FROM ledgerwood_lines")
    connection.exec_driver_sql("DROP TABLE ledgerwood_lines")


MAKE_HEADS = steps.StoreStep(summary="heads of their own", run=heads_from_lines)
NO_CHANGE = steps.StoreStep(summary="nothing else", run=lambda connection: None)


def failing(connection):
    connection.exec_driver_sql("DELETE FROM ledgerwood_entries")
    connection.exec_driver_sql("ALTER TABLE ledgerwood_heads ADD COLUMN more TEXT")
    connection.exec_driver_sql("SELECT * FROM no_such_table")


FAILS = steps.StoreStep(summary="fails half way", run=failing)


@pytest.fixture
def later(monkeypatch):
    """A release that has taken further steps than those of `first`, the oldest."""

    def since(*taken, first=1):
        monkeypatch.setattr(steps, "FIRST", first)
        monkeypatch.setattr(steps, "STEPS", taken)

    return since


@pytest.fixture
def older(url):
    """A database in the artificial layout 0, and the two chains in it."""
    chains = {}
    for dataset in ("adult", "census"):
        with create(url, dataset) as ledger:
            ledger.spend(pure(0.25), purpose="of an older release")
            chains[dataset] = ledger.record().lines
    with raw(url) as connection:
        connection.exec_driver_sql("CREATE TABLE ledgerwood_lines (dataset TEXT, place BIGINT, line TEXT)")
        connection.exec_driver_sql(
            "INSERT INTO ledgerwood_lines SELECT dataset, position, line FROM ledgerwood_entries"
        )
        connection.exec_driver_sql("DROP TABLE ledgerwood_entries")
        connection.exec_driver_sql("DROP TABLE ledgerwood_heads")
        connection.exec_driver_sql("UPDATE ledgerwood_schema SET version = 0")
    return chains


def everything(url):
    """All that the database holds, layout included."""
    with raw(url) as connection:
        names = sorted(name for name in sa.inspect(connection).get_table_names() if name.startswith("ledgerwood"))
        return {
            name: (
                [column["name"] for column in sa.inspect(connection).get_columns(name)],
                sorted(tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")),
            )
            for name in names
        }


@pytest.mark.slow_after(1)  # a fault at each step
def test_an_older_layout_is_carried_over_step_by_step(url, older, later):
    later(MAKE_HEADS, NO_CHANGE, first=0)
    with pytest.raises(LedgerError, match="version 0; this release reads version 2.*`ledgerwood ledger migrate URL`"):
        Ledger.open(url, dataset="adult")
    before, heard = everything(url), []
    dry = migrations.migrate_tables(url, dry_run=True, told=heard.append)
    assert everything(url) == before
    done = migrations.migrate_tables(url)
    assert (
        dry == done == migrations.TablesReport(found=0, now=2, steps=("heads of their own", "nothing else"), datasets=2)
    )
    assert heard == [
        "tables, version 1: heads of their own",
        "tables, version 2: nothing else",
        "chain of data set 'adult', entries: 3",
        "chain of data set 'census', entries: 3",
    ]
    for dataset, lines in older.items():
        with Ledger.open(url, dataset=dataset) as ledger:
            assert ledger.record().lines == lines
            ledger.grant(pure(0.5), purpose="goes on")
            assert verify_ledger(url, dataset=dataset, head=ledger.head).epsilon_readded == 0.75
    assert migrations.migrate_tables(url).steps == ()


def test_from_the_middle_only_what_is_missing(url, older, later):
    later(MAKE_HEADS, first=0)
    migrations.migrate_tables(url)
    later(MAKE_HEADS, NO_CHANGE, first=0)
    assert migrations.migrate_tables(url).steps == ("nothing else",)
    with create(url, "new") as ledger:
        ledger.grant(pure(0.5), purpose="p")
    assert transfer.datasets(url) == ["adult", "census", "new"]


@pytest.mark.slow_after(2)  # a fault at each step
@pytest.mark.parametrize("taken", [(MAKE_HEADS, FAILS), (FAILS,)])
def test_a_step_that_fails_leaves_the_old_version(url, older, later, taken):
    before = everything(url)
    later(*taken, first=0)
    with pytest.raises(LedgerWriteFailed, match="nothing was recorded in the ledger database"):
        migrations.migrate_tables(url)
    assert everything(url) == before
    later(MAKE_HEADS, first=0)
    assert migrations.migrate_tables(url).datasets == 2


def test_a_step_that_is_interrupted_leaves_the_old_version(url, older, later):
    def interrupted(connection):
        heads_from_lines(connection)
        raise KeyboardInterrupt

    before = everything(url)
    later(steps.StoreStep(summary="interrupted", run=interrupted), first=0)
    with pytest.raises(KeyboardInterrupt):
        migrations.migrate_tables(url)
    assert everything(url) == before


@pytest.mark.slow_after(5)  # a fault at each step
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ledgerwood_entries SET line = replace(line, '0.25', '0.125')",
        "DELETE FROM ledgerwood_entries WHERE dataset = 'census' AND position = 1",
        "DELETE FROM ledgerwood_entries WHERE dataset = 'census' AND position = 2",
        "DELETE FROM ledgerwood_entries WHERE dataset = 'census'",
        "UPDATE ledgerwood_heads SET head = 'f' WHERE dataset = 'adult'",
    ],
)
def test_a_step_that_loses_an_entry_is_taken_back(url, older, later, damage):
    before = everything(url)
    later(MAKE_HEADS, steps.StoreStep(summary="a mistake", run=lambda c: c.exec_driver_sql(damage)), first=0)
    dataset = "census" if "census" in damage else "adult"
    with pytest.raises(LedgerCorrupted, match=f"data set '{dataset}', entry .*; nothing was changed"):
        migrations.migrate_tables(url)
    assert everything(url) == before


def test_a_migration_whose_commit_is_lost_is_asked_again(url, older, later, monkeypatch):
    def lost(connection):
        raise OperationalError("COMMIT", {}, ConnectionError("the connection was lost"))

    later(MAKE_HEADS, first=0)
    monkeypatch.setattr(database, "commit", lost)
    with pytest.raises(LedgerError, match="converted is unknown: the connection was lost; try again"):
        migrations.migrate_tables(url)
    monkeypatch.undo()
    later(MAKE_HEADS, first=0)
    assert migrations.migrate_tables(url).found == 0


@pytest.mark.slow_after(5)  # a fault at each step
@pytest.mark.parametrize("version", [2, 7, 0, -1])
def test_tables_of_a_later_or_an_unknown_release_are_refused(url, version):
    create(url).close()
    with raw(url) as connection:
        connection.exec_driver_sql(f"UPDATE ledgerwood_schema SET version = {version}")
    before = everything(url)
    with pytest.raises(LedgerError, match=f"of version {version}; this release reads version 1. Nothing was changed"):
        migrations.migrate_tables(url)
    assert everything(url) == before


def test_what_is_no_ledger_database_is_left_alone(url, tmp_path):
    with raw(url) as connection:
        connection.exec_driver_sql("CREATE TABLE somebody_elses (a TEXT)")
    with pytest.raises(LedgerError, match="there are no ledgers in the database"):
        migrations.migrate_tables(url)
    with pytest.raises(LedgerError, match="there is no ledger database"):
        migrations.migrate_tables(f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()
    create(url).close()
    with raw(url) as connection:
        connection.exec_driver_sql("DELETE FROM ledgerwood_schema")
    with pytest.raises(LedgerError, match="of version none"):
        migrations.migrate_tables(url)


def test_a_ledger_that_is_open_since_before_spends_no_more(url, later):
    """An open handle of an older release: its next grant is refused, whatever the tables look like by then."""
    with create(url) as open_before:
        grant = open_before.grant(pure(0.25), purpose="before")
        later(NO_CHANGE)
        migrations.migrate_tables(url)
        later()  # the older release again
        for write in (lambda: open_before.grant(pure(0.25), purpose="p"), lambda: grant.draw(pure(0.25), purpose="p")):
            with pytest.raises(LedgerError, match="of version 2; this release reads version 1"):
                write()
        assert open_before.spent().epsilon == 0.25
        assert len(open_before.record().lines) == 2  # reading goes on: a model keeps its record


def test_a_migration_waits_for_a_grant_and_grants_wait_for_it(url, later):
    """Whoever is inside when the migration comes ends first; whoever comes meanwhile sees the new version."""
    order, failures = [], []

    def slow(connection):
        order.append("step")
        time.sleep(0.3)

    def migrate():
        migrations.migrate_tables(url)
        order.append("migrated")

    def spend():
        try:
            with Ledger.open(url, dataset="adult") as late:
                late.grant(pure(0.25), purpose="late")
        except LedgerError as error:
            failures.append(str(error))

    with create(url) as ledger:
        threads = [threading.Thread(target=migrate), threading.Thread(target=spend)]
        with ledger._store.locked(ledger._state):
            later(steps.StoreStep(summary="slow", run=slow))
            threads[0].start()
            time.sleep(0.2)
            entry = ledger._state.propose_grant(pure(0.5), ledger._state.price(pure(0.5), "p", None), "p")
            order.append("granted")
            ledger._store.append(entry, durable=True)
        ledger._state.commit(entry)
        time.sleep(0.1)
        threads[1].start()
        for thread in threads:
            thread.join()
        assert order == ["granted", "step", "migrated"]
        assert all("this release reads version 2" in text or "locked" in text for text in failures)
        assert ledger.spent().epsilon == 0.5 + (0.0 if failures else 0.25)
    assert verify_ledger(url, dataset="adult").grants == 2 - len(failures)


def test_a_grant_of_an_older_release_that_waited_for_a_migration_is_refused(url):
    refused = []

    def spend():
        try:
            ledger.grant(pure(0.25), purpose="meanwhile")
        except LedgerError as error:
            refused.append(str(error))

    with create(url) as ledger:
        engine = database.engine_for(database.parsed(url))
        connection = database.begin(engine, writes=True)
        database.lock_gate(connection)
        database.lock_tables(connection)
        late = threading.Thread(target=spend)
        late.start()
        time.sleep(0.2)
        connection.execute(sa.update(database.versions).values(version=2))
        connection.commit()
        database.drop(connection)
        late.join()
        engine.dispose()
        assert len(refused) == 1
        assert "of version 2; this release reads version 1" in refused[0]
        assert len(ledger.entries) == 1


def test_two_migrations_at_once_take_the_steps_once(url, older, later):
    later(MAKE_HEADS, first=0)
    found, together = [], threading.Barrier(2)

    def migrate():
        together.wait()
        found.append(len(migrations.migrate_tables(url).steps))

    threads = [threading.Thread(target=migrate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1]


@pytest.mark.parametrize("version", range(steps.FIRST, steps.current() + 1))
def test_the_tables_of_every_release_are_carried_over_for_ever(version, tmp_path):
    """A database as that release wrote it, with one of the golden ledgers in it."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as old:
        old.executescript((GOLDEN / f"tables-{version}.sql").read_text())
    url = f"sqlite:///{tmp_path}/old.db"
    assert migrations.migrate_tables(url).found == version
    with Ledger.open(url, dataset="golden") as ledger:
        assert list(ledger.record().lines) == read_lines(GOLDEN / "sampled-and-laplace.ledger.jsonl")
        ledger.grant(pure(1e-13), purpose="goes on")
        ledger.migrate(analysts={"ada": 0.5})
    assert LedgerRecord.from_lines(transfer.read_ledger(url, "golden").lines).version == 2
