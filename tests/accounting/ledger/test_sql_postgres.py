"""A PostgreSQL server of one's own: connections that break in a commit, sessions that are ended."""

import threading
import time
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger import migrations
from ledgerwood.errors import LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
REAL_COMMIT, REAL_DROP = database.commit, database.drop


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def create(url):
    return Ledger.open(url, dataset="adult", budget=BUDGET, unit=PrivacyUnit.ROW)


@contextmanager
def raw(url):
    """A connection past the library."""
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def lost(*_, **__):
    raise OperationalError("COMMIT", {}, ConnectionError("the connection was lost"))


def lost_after(connection):
    REAL_COMMIT(connection)
    lost()


def test_a_database_without_ledgers(postgres_url):
    assert migrations.datasets(postgres_url) == []


def test_a_lost_connection_after_the_commit_is_found_to_have_landed(postgres_url, monkeypatch):
    with create(postgres_url) as ledger:
        monkeypatch.setattr(database, "commit", lost_after)
        grant = ledger.grant(pure(0.25), purpose="p")
        grant.draw(pure(0.25), purpose="step")
        monkeypatch.undo()
        assert [entry.index for entry in ledger.entries] == [0, 1, 2]
        assert verify_ledger(postgres_url, dataset="adult", head=ledger.head).draws == 1


@pytest.mark.parametrize("lands", [False, True])
def test_a_commit_still_under_way_is_waited_for(postgres_url, monkeypatch, lands):
    """The lost transaction holds the head row until it ends, and only then its end is looked at."""
    ended = []

    def under_way(connection):
        driver = connection.connection.dbapi_connection
        connection.detach()

        def end():
            time.sleep(0.4)
            ended.append(time.monotonic())  # before it: who waits goes on as soon as it has ended
            (driver.commit if lands else driver.rollback)()
            driver.close()

        threading.Thread(target=end).start()
        lost()

    def leave(connection, *, broken=False):
        if not broken:
            REAL_DROP(connection)

    with create(postgres_url) as ledger:
        monkeypatch.setattr(database, "commit", under_way)
        monkeypatch.setattr(database, "drop", leave)
        if lands:
            assert ledger.grant(pure(0.25), purpose="p").index == 1
        else:
            with pytest.raises(LedgerWriteFailed, match="nothing was recorded"):
                ledger.grant(pure(0.25), purpose="p")
        assert ended
        monkeypatch.undo()
        assert len(ledger.entries) == 1 + lands


@pytest.mark.parametrize("when", ["idle", "before the commit"])
def test_a_server_that_ends_the_session(postgres_url, monkeypatch, when):
    def end_sessions(connection=None):
        mine = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid"
        with raw(postgres_url) as other:
            assert other.scalar(sa.text(mine), {"pid": pid})
        if connection is not None:
            REAL_COMMIT(connection)

    with create(postgres_url) as ledger:
        connection = ledger._store._engine.connect()
        pid = connection.connection.dbapi_connection.info.backend_pid
        connection.close()
        if when == "idle":
            end_sessions()
        else:
            monkeypatch.setattr(database, "commit", end_sessions)
            with pytest.raises(LedgerWriteFailed, match="nothing was recorded"):
                ledger.grant(pure(0.25), purpose="during")
            monkeypatch.undo()
        ledger.grant(pure(0.25), purpose="after")
        assert ledger.spent().epsilon == 0.25


def test_commits_are_synced_on_the_server_whatever_its_default(postgres_url):
    with create(f"{postgres_url}%20-csynchronous_commit%3Doff") as ledger, ledger._store.locked(ledger._state):
        assert ledger._store._connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert ledger._store._connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


@pytest.mark.slow  # a server of its own
def test_sessions_that_the_server_ends_at_any_moment(postgres_url):
    """What was acknowledged is there, what was reported as not recorded is not, and the chain verifies."""
    said, done = {"granted": [], "failed": [], "unknown": []}, threading.Event()

    def spend(name, ledger):
        for i in range(60):
            try:
                said["granted"].append((ledger.grant(pure(2.0**-10), purpose=f"{name} {i}").index, f"{name} {i}"))
            except LedgerWriteFailed:
                said["failed"].append(f"{name} {i}")
            except LedgerError:
                said["unknown"].append(f"{name} {i}")

    def end_sessions():
        rest = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        seen = 0
        while not done.wait(0.012):
            if sum(map(len, said.values())) >= seen + 4:  # both went on since the last time, however slow the machine
                with raw(postgres_url) as other:  # anew: a transaction sees one list of sessions
                    other.exec_driver_sql(rest)
                seen = sum(map(len, said.values()))

    create(postgres_url).close()
    ledgers = {name: Ledger.open(postgres_url, dataset="adult") for name in ("a", "b")}
    spenders = [threading.Thread(target=spend, args=one) for one in ledgers.items()]
    ender = threading.Thread(target=end_sessions)
    for thread in (*spenders, ender):
        thread.start()
    for thread in spenders:
        thread.join()
    done.set()
    ender.join()
    for ledger in ledgers.values():
        ledger.close()
    recorded = {entry.purpose: entry.index for entry in migrations.read_ledger(postgres_url, "adult").entries[1:]}
    assert all(recorded.get(purpose) == index for index, purpose in said["granted"])
    assert not set(said["failed"]) & set(recorded)
    assert set(recorded) <= {purpose for _, purpose in said["granted"]} | set(said["unknown"])
    assert len(said["granted"]) >= 5
    assert len(said["failed"]) >= 1
    assert verify_ledger(postgres_url, dataset="adult").epsilon_readded == len(recorded) * 2.0**-10
