"""Who answers for a ledger: given at the opening, in the chain, read by both readers, shown in every report."""

import datetime as dt
import hashlib
import json

import pytest

from ledgerwood.accounting import Adjacency, Budget, Ledger, LedgerRecord, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import LedgerAbout, entries, migrations, state
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
SAID = {"owner": "Ada <ada@example.org>", "description": "the yearly report", "opened": "2026-11-28"}
SHARES = {"ada": 0.5, "ben": 0.25}


def opened(place, **said):
    return Ledger.open(place, dataset="adult", budget=BUDGET, unit=PrivacyUnit.ROW, **said)


@pytest.mark.parametrize("analysts", [None, SHARES])
@pytest.mark.parametrize("said", [SAID, {"owner": "Ada"}, {"opened": dt.date(2026, 11, 28)}])
def test_what_is_said_is_kept_and_read_back_by_both(place, said, analysts):
    with opened(place, **said, analysts=analysts, analyst=None if analysts is None else "ada") as ledger:
        assert ledger.about == entries.about(*(said.get(name) for name in SAID))
        ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="counts")
    report = verify_ledger(place, dataset="adult")
    assert (report.owner, report.description) == (said.get("owner"), said.get("description"))
    assert report.opened == (str(said["opened"]) if "opened" in said else None)
    assert (report.verdict, report.grants) == ("confirmed", 1)
    with opened(place) as again:  # who says nothing, accepts what is there
        assert again.about.record == {name: None if (value := said.get(name)) is None else str(value) for name in SAID}
        assert {entry.version for entry in again.entries} == {3}
    with pytest.raises(LedgerError, match="was opened with owner=.*cannot be reopened with owner='Eve'"):
        opened(place, owner="Eve")


def test_without_a_word_a_ledger_stays_what_it_was():
    plain = state.opened(BUDGET, PrivacyUnit.ROW, Ledger(BUDGET, unit=PrivacyUnit.ROW).filter, "adult")
    assert (plain.version, plain.about) == (1, None)
    assert "about" not in entries.encode(plain)


def test_in_memory_too_and_shared_later(tmp_path):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.USER, **SAID)
    assert ledger.about == LedgerAbout(**SAID)
    ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="before")
    ledger.migrate(analysts=SHARES, analyst="ada")
    ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="hers")
    with pytest.raises(LedgerError, match="shares never change"):
        ledger.migrate(analysts=SHARES)
    ledger.save(tmp_path / "kept.jsonl")
    report = verify_ledger(tmp_path / "kept.jsonl")
    assert (report.owner, report.opened, report.verdict) == (SAID["owner"], "2026-11-28", "confirmed")
    record = LedgerRecord.from_lines(ledger.record().lines)
    assert (record, record.analysts) == (ledger.record(), (("ada", 0.5), ("ben", 0.25)))


def test_a_database_takes_and_gives_it(tmp_path):
    pytest.importorskip("sqlalchemy")
    ledger = opened(tmp_path / "one.jsonl", **SAID)
    url = f"sqlite:///{tmp_path / 'team.db'}"
    migrations.import_ledger(ledger.record(), url)
    assert migrations.read_ledger(url, "adult") == ledger.record()
    assert verify_ledger(url, dataset="adult").description == "the yearly report"


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"owner": ""}, "owner='' must be printable text of 1 to 200"),
        ({"owner": "a\nb"}, "owner=.*in one line"),
        ({"owner": 7}, "owner=7"),
        ({"description": "x" * 1001}, "description=.*1 to 1000 characters"),
        ({"opened": "28.11.2026"}, "opened='28.11.2026' must be a date, or a text such as"),
        ({"opened": "20261128"}, "opened="),
        ({"opened": "2026-02-30"}, "opened="),
        ({"opened": dt.datetime(2026, 11, 28, 7, tzinfo=dt.UTC)}, "a day without a time"),
        ({"opened": 20261128}, "opened=20261128"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path, said, match):
    with pytest.raises(InvalidParameter, match=match):
        opened(tmp_path / "new.jsonl", **said)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidParameter, match=match):
        Ledger(BUDGET, unit=PrivacyUnit.ROW, **said)


def rebuilt(index, change):
    """A ledger of version 3 with one entry changed, and every hash after it made to fit."""
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, **SAID)
    ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="counts")
    ledger.migrate(analysts=SHARES, analyst="ada")
    ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="hers")
    lines, previous = [], "0" * 64
    for place, line in enumerate(ledger.record().lines):
        body = {key: value for key, value in json.loads(line).items() if key != "hash"} | {"previous": previous}
        body = change(body) if place == index else body
        previous = hashlib.sha256(entries.canonical(body).encode()).hexdigest()
        lines.append(entries.canonical(body | {"hash": previous}))
    return lines


def with_about(**changed):
    return lambda body: body | {"about": {**body["about"], **changed}}


def without(key):
    return lambda body: {name: value for name, value in body.items() if name != key}


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, with_about(owner="")),
        (0, with_about(owner=["Ada"])),
        (0, with_about(description="x" * 1001)),
        (0, with_about(opened="2026-13-01")),
        (0, with_about(opened=20261128)),
        (0, with_about(phone="1")),
        (0, with_about(owner=None, description=None, opened=None)),
        (0, lambda body: body | {"about": None}),
        (0, without("about")),
        (0, without("analysts")),
        (0, lambda body: body | {"analysts": None}),
        (0, lambda body: body | {"version": 2}),
        (0, lambda body: without("about")(without("analysts")(body)) | {"version": 1}),  # found at entry 1
        (1, lambda body: body | {"analyst": "ada"}),
        (1, without("analyst")),
        (3, lambda body: body | {"version": 2}),
        (3, lambda body: body | {"analysts": {}}),
        (4, lambda body: body | {"analyst": None}),
        (5, lambda body: body | {"version": 1}),
    ],
)
def test_both_readers_refuse_forgeries(tmp_path, index, change):
    (tmp_path / "forged.jsonl").write_text("".join(line + "\n" for line in rebuilt(index, change)))
    state.replay(rebuilt(0, dict))
    with pytest.raises(LedgerCorrupted):
        state.replay(rebuilt(index, change))
    with pytest.raises(LedgerCorrupted, match=r"entry \d:"):
        verify_ledger(tmp_path / "forged.jsonl")
