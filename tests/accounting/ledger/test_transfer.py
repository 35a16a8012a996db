"""Ledgers in and out of databases: line by line the same, never two for one data set."""

import pytest

from ledgerwood.accounting import Adjacency, Budget, Ledger, LedgerRecord, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import migrations
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def create(place, dataset="adult"):
    return Ledger.open(place, dataset=dataset, budget=BUDGET, unit=PrivacyUnit.ROW)


@pytest.fixture
def record(tmp_path):
    with create(tmp_path / "run.ledger.jsonl") as ledger:
        for purpose in ("first", "second"):
            ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose=purpose)
        return ledger.record()


def test_there_and_back_is_the_same_file(url, record, tmp_path):
    migrations.import_ledger(record, url)
    migrations.read_ledger(url, "adult").save(tmp_path / "back.jsonl")
    assert read_lines(tmp_path / "back.jsonl") == list(record.lines)
    assert verify_ledger(url, dataset="adult", head=record.head) == verify_ledger(tmp_path / "back.jsonl")
    assert migrations.datasets(url) == ["adult"]
    with Ledger.open(url, dataset="adult") as ledger:
        ledger.grant(PureEvent(epsilon=0.5, adjacency=A), purpose="here")
        assert ledger.remaining().epsilon == 0.0


def test_importing_twice_changes_nothing(url, record):
    migrations.import_ledger(record, url)
    migrations.import_ledger(record, url)
    with Ledger.open(url, dataset="adult") as ledger:
        ledger.grant(PureEvent(epsilon=0.25, adjacency=A), purpose="here")
        migrations.import_ledger(record, url)  # the database went on since
        assert len(ledger.entries) == 6


def test_another_ledger_for_the_data_set_is_refused(url, record, tmp_path):
    with create(tmp_path / "other.jsonl") as other:
        other.grant(PureEvent(epsilon=0.125, adjacency=A), purpose="another way")
        migrations.import_ledger(other.record(), url)
        before = migrations.read_ledger(url, "adult")
    with pytest.raises(LedgerError, match=r"another ledger of 2 entries, the first 1 of them the same"):
        migrations.import_ledger(record, url)
    assert migrations.read_ledger(url, "adult") == before


def test_a_longer_file_is_not_grafted_onto_a_shorter_ledger(url, record):
    migrations.import_ledger(LedgerRecord.from_lines(record.lines[:3]), url)
    with pytest.raises(LedgerError, match=r"the first 3 of them the same"):
        migrations.import_ledger(record, url)
    assert len(migrations.read_ledger(url, "adult").lines) == 3


def test_a_ledger_needs_a_label_and_a_chain_that_holds(url, record, tmp_path):
    unnamed = Ledger(BUDGET, unit=PrivacyUnit.ROW).record()
    with pytest.raises(InvalidParameter, match="dataset=None"):
        migrations.import_ledger(unnamed, url)
    forged = LedgerRecord(entries=(*record.entries[:2], *record.entries[3:]))
    with pytest.raises(LedgerCorrupted, match="entry 2"):
        migrations.import_ledger(forged, url)


def test_many_data_sets_are_listed_in_order(url, record):
    for name in ("b", "a", "c"):
        create(url, name).close()
    assert migrations.datasets(url) == ["a", "b", "c"]
    with pytest.raises(LedgerError, match="there is no ledger at .*'d'"):
        migrations.read_ledger(url, "d")


def test_a_database_without_ledgers(sqlite_url, tmp_path):
    (tmp_path / "empty.db").touch()
    assert migrations.datasets(f"sqlite:///{tmp_path}/empty.db") == []
    with pytest.raises(LedgerError, match="there is no ledger database"):
        migrations.datasets(sqlite_url)
    with pytest.raises(LedgerError, match="cannot be read"):
        migrations.datasets("postgresql://nobody@127.0.0.1:1/x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="unable to open"):
        migrations.datasets(f"sqlite:///{tmp_path}/folder")


def test_an_import_that_cannot_be_written_leaves_nothing(sqlite_url, record, tmp_path):
    with pytest.raises(LedgerWriteFailed, match="nothing was recorded"):
        migrations.import_ledger(record, f"sqlite:///{tmp_path}/nowhere/team.db")
    assert not (tmp_path / "nowhere").exists()
