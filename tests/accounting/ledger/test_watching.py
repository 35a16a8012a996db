"""A database's ledgers, read without ever writing; on SQLite and PostgreSQL."""

import sqlite3

import pytest
import sqlalchemy as sa

import ledgerwood as lw
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.accounting.ledger.migrations import datasets, migrate_tables
from ledgerwood.accounting.ledger.watching import DatabaseReader, Head
from ledgerwood.errors import InvalidParameter, LedgerError
from ledgerwood.verification.ledgers.signatures import database_lines

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A)


def opened(url, dataset="adult"):
    return lw.Ledger.open(url, dataset=dataset, budget=BUDGET, unit=lw.PrivacyUnit.ROW)


def test_heads_and_lines_are_those_of_the_ledgers(url):
    reader = DatabaseReader(url)
    with opened(url) as ledger, opened(url, "census"):
        ledger.spend(lw.PureEvent(epsilon=0.1, adjacency=A), purpose="count")
        assert list(reader.heads()) == ["adult", "census"]
        assert reader.heads()["adult"] == Head(entries=3, hash=ledger.head)
        lines, head = reader.lines("adult")
        assert (tuple(lines), head.hash) == (ledger.record().lines, ledger.head)
        ledger.spend(lw.PureEvent(epsilon=0.1, adjacency=A), purpose="count")
        assert reader.lines("adult", 3) == (list(ledger.record().lines[3:]), Head(entries=5, hash=ledger.head))
        assert reader.lines("adult", 5)[0] == []
    reader.close()


def test_a_reader_cannot_write(url):
    opened(url).close()
    reader = DatabaseReader(url)
    with pytest.raises(LedgerError, match=r"cannot be read: .*(readonly|read-only)"), reader._reading() as connection:
        connection.execute(sa.delete(database.entries))
    assert reader.heads()["adult"].entries == 1
    reader.close()


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger database"):
        DatabaseReader(f"sqlite:///{tmp_path}/none.db").heads()
    sqlite3.connect(tmp_path / "other.db").close()
    other = DatabaseReader(f"sqlite:///{tmp_path}/other.db")
    assert other.heads() == {}
    opened(f"sqlite:///{tmp_path}/team.db").close()
    with pytest.raises(LedgerError, match="there is no ledger of data set 'census'"):
        DatabaseReader(f"sqlite:///{tmp_path}/team.db").lines("census")
    with pytest.raises(InvalidParameter, match="must name a file, and no options"):
        DatabaseReader(f"sqlite:///{tmp_path}/team.db?mode=rw")


def test_a_password_among_the_options_is_never_shown():
    url = "postgresql://u:hunter2@127.0.0.1:1/ledgers?password=hunter3&sslpassword=hunter4&connect_timeout=2"
    reader = DatabaseReader(url)
    assert reader.name == "postgresql+psycopg://u:***@127.0.0.1:1/ledgers"
    assert reader.identity == f"{reader.name}?connect_timeout=2", "another option is another database"
    for asked in (reader.heads, lambda: opened(url), lambda: migrate_tables(url), lambda: datasets(url)):
        with pytest.raises(LedgerError, match=r"127\.0\.0\.1:1/ledgers") as refusal:
            asked()
        assert "hunter" not in str(refusal.value)
    with pytest.raises(LedgerError) as refusal:
        database_lines(url, "adult")
    assert "hunter" not in str(refusal.value)
    for other in ("mysql://u@h/x?password=hunter3", "sqlite:///x?password=hunter3"):
        with pytest.raises(InvalidParameter) as refused:
            DatabaseReader(other)
        assert "hunter" not in str(refused.value)
