"""From format version 1 to 2: one entry of the same chain; nothing before it changes, nothing is spent twice."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    GaussianEvent,
    GDPFilter,
    Ledger,
    PrivacyUnit,
    PureEvent,
    Repeated,
)
from ledgerwood.accounting.ledger import LedgerRecord, MigrationEntry, entries, migrations, state
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.errors import (
    BudgetExceeded,
    DrawRefused,
    InvalidParameter,
    LedgerCorrupted,
    LedgerError,
    LedgerWriteFailed,
)
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
SHARES = {"ada": 0.5, "ben": 0.25}
GOLDEN = sorted((Path(__file__).resolve().parents[2] / "golden").glob("*.jsonl"))


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def create(place):
    return Ledger.open(place, dataset="adult", budget=BUDGET, unit=PrivacyUnit.ROW)


def reopened(place, analyst):
    return Ledger.open(place, dataset="adult", analyst=analyst)


def resealed(record):
    body = {key: value for key, value in record.items() if key != "hash"}
    return entries.canonical({**body, "hash": entries.digest(entries.canonical(body))})


def test_the_history_stands_and_the_shares_begin(place):
    with create(place) as ledger:
        grant = ledger.grant(Repeated(pure(0.125), count=2), purpose="before")
        grant.draw(pure(0.125), purpose="before")
        before = ledger.record()
        ledger.migrate(analysts=SHARES, analyst="ada")
        assert ledger.record().lines[:3] == before.lines
        assert ledger.record().analysts == (("ada", 0.5), ("ben", 0.25))
        assert (before.version, ledger.record().version, before.analysts) == (1, 2, ())
        assert ledger.entries[3] == MigrationEntry(
            index=3, previous=before.head, hash=ledger.head, analysts=(("ada", 0.5), ("ben", 0.25))
        )
        grant.draw(pure(0.125), purpose="a purse from before is still paid for")
        with pytest.raises(DrawRefused):
            grant.draw(pure(0.125), purpose="once too often")
        ledger.spend(pure(0.5), purpose="all of hers")
        with pytest.raises(BudgetExceeded):
            ledger.spend(pure(0.01), purpose="more")
    with reopened(place, "ben") as ben:
        ben.grant(pure(0.25), purpose="all of his")
        assert (ben.spent("ada").epsilon, ben.spent("ben").epsilon, ben.spent().epsilon) == (0.5, 0.25, 1.0)
        assert [entry.version for entry in ben.entries] == [1, 1, 1, 2, 2, 2, 2, 2]
        head = ben.head
    report = verify_ledger(place, dataset="adult", head=head)
    assert (report.epsilon_readded, report.grants, report.draws) == (1.0, 3, 3)


def test_a_share_is_a_ceiling_and_what_is_left_is_the_limit_too(place):
    with create(place) as ledger:
        ledger.grant(pure(0.75), purpose="before")
        ledger.grant(GaussianEvent(noise_multiplier=100.0, adjacency=A), purpose="before", delta=8e-6)
        left = ledger.remaining()
        ledger.migrate(analysts=SHARES, analyst="ada")
        assert ledger.remaining("ada") == left == ledger.remaining()
        with pytest.raises(BudgetExceeded, match="left of epsilon=1.0"):
            ledger.grant(pure(0.3), purpose="within the share, beyond what is left")
        grant = ledger.grant(GaussianEvent(noise_multiplier=100.0, adjacency=A), purpose="all the delta that is left")
        assert grant.charge.delta == left.delta
        assert ledger.remaining("ben").delta == 0.0
    assert verify_ledger(place, dataset="adult").epsilon_readded <= 1.0


SIZES = st.sampled_from([2.0**-6, 0.1, 0.125, 0.2, 0.3])


@pytest.mark.slow  # any sequence of grants
@settings(max_examples=60)
@given(
    before=st.lists(SIZES, max_size=6), after=st.lists(st.tuples(st.sampled_from(sorted(SHARES)), SIZES), max_size=12)
)
def test_any_history_then_any_shares_keep_the_budget_and_the_shares(before, after):
    """Against sums of fractions: a grant is taken exactly if it fits into the whole and into the share."""
    kept = state.State(state.opened(BUDGET, PrivacyUnit.ROW, BasicFilter(), None))
    whole, own = Fraction(), dict.fromkeys(SHARES, Fraction())

    def granted(analyst, size):
        charge = kept.price(pure(size), "p", None, analyst)
        try:
            kept.commit(kept.propose_grant(pure(size), charge, "p", analyst))
        except BudgetExceeded:
            return False
        return True

    for size in before:
        fits = whole + Fraction(size) <= 1
        assert granted(None, size) is fits
        whole += Fraction(size) * fits
    kept.commit(kept.propose_migration(SHARES))
    for analyst, size in after:
        fits = whole + Fraction(size) <= 1 and own[analyst] + Fraction(size) <= Fraction(SHARES[analyst])
        assert granted(analyst, size) is fits
        whole += Fraction(size) * fits
        own[analyst] += Fraction(size) * fits
        left = min(1 - whole, Fraction(SHARES[analyst]) - own[analyst])
        assert 0 <= left - Fraction(kept.remaining(analyst).epsilon) <= Fraction(2) ** -50
    assert kept.charges.total("epsilon", 1) == whole
    assert state.replay([entries.encode(entry) for entry in kept.entries]).head == kept.head


def test_others_who_have_it_open_are_told(url):
    with create(url) as old, create(url) as other:
        purse = other.grant(pure(0.25), purpose="before")
        old.migrate(analysts=SHARES)
        with pytest.raises(LedgerError, match=r"open it with analyst= one of \['ada', 'ben'\]"):
            other.grant(pure(0.1), purpose="nobody's")
        with pytest.raises(LedgerError, match="open it with analyst="):
            old.grant(pure(0.1), purpose="nobody's")
        assert other.head == old.head
        purse.draw(pure(0.25), purpose="paid for before")
        with pytest.raises(LedgerError, match=r"of format version 2, shared by \['ada', 'ben'\]: shares never change"):
            other.migrate(analysts={"eve": 1.0})
        assert len(other.entries) == 4


def test_one_of_two_that_migrate_at_once(url):
    with create(url) as one, create(url) as other:
        one.migrate(analysts=SHARES)
        with pytest.raises(LedgerError, match="shares never change"):
            other.migrate(analysts={"eve": 1.0})
        assert other.record().analysts == one.record().analysts
    assert verify_ledger(url, dataset="adult").grants == 0


@pytest.mark.parametrize(
    ("analysts", "analyst", "kind", "message"),
    [
        ({}, None, InvalidParameter, "at least one"),
        ({"ada": 0.0}, None, InvalidParameter, r"share=0\.0 must be in \(0, 1\] \(unit: share of 'ada'\)"),
        ({"ada": 0.75, "ben": 0.5}, None, InvalidParameter, "at most 1 together"),
        ({"ada": 0.5}, "eve", LedgerError, r"analyst='eve' is not one of \['ada'\]"),
    ],
)
def test_shares_that_are_none_change_nothing(place, analysts, analyst, kind, message):
    with create(place) as ledger:
        before = ledger.entries
        with pytest.raises(kind, match=message):
            ledger.migrate(analysts=analysts, analyst=analyst)
        assert ledger.entries == before
        ledger.grant(pure(0.5), purpose="as before")
    assert verify_ledger(place, dataset="adult").grants == 1


def test_a_filter_that_a_share_is_too_small_for(tmp_path):
    zero = Budget(epsilon=1.0, delta=5e-324, adjacency=A)
    with Ledger.open(tmp_path / "a", budget=zero, unit=PrivacyUnit.ROW) as ledger:
        ledger.migrate(analysts={"ada": 0.5}, analyst="ada")  # a share without delta is a share
        ledger.grant(pure(0.5), purpose="p")
    with Ledger.open(tmp_path / "b", budget=BUDGET, unit=PrivacyUnit.ROW, filter=GDPFilter()) as ledger:
        with pytest.raises(InvalidParameter, match="epsilon"):
            ledger.migrate(analysts={"ada": 5e-324})
        assert len(ledger.entries) == 1


def test_a_migration_that_cannot_be_written_did_not_happen(sqlite_url):
    with create(sqlite_url) as ledger:
        ledger.grant(pure(0.25), purpose="before")

        @sa.event.listens_for(ledger._store._engine, "connect")  # each use of the file is a connection of its own
        def read_only(connection, _):
            connection.execute("PRAGMA query_only = ON")

        with pytest.raises(LedgerWriteFailed, match="read-only"):
            ledger.migrate(analysts=SHARES, analyst="ada")
        assert (len(ledger.entries), ledger.analyst) == (2, None)
    with reopened(sqlite_url, None) as again:
        again.grant(pure(0.25), purpose="of version 1 as before")
        assert again.record().version == 1


def test_terms_are_those_since_the_migration(place):
    with create(place) as ledger:
        ledger.migrate(analysts=SHARES)
    Ledger.open(place, dataset="adult", analysts=SHARES, analyst="ada").close()
    with pytest.raises(LedgerError, match="analysts={'ada': 0.5, 'ben': 0.25}"):
        Ledger.open(place, dataset="adult", analysts={"ada": 0.5}, analyst="ada")
    with pytest.raises(LedgerError, match="no analyst 'eve'"):
        reopened(place, "eve")


def test_it_is_exported_and_imported_as_any_other(url, tmp_path):
    with create(tmp_path / "run.jsonl") as ledger:
        ledger.grant(pure(0.5), purpose="before")
        ledger.migrate(analysts=SHARES)
        migrations.import_ledger(ledger.record(), url)
    with reopened(url, "ada") as ada:
        assert ada.remaining("ada").epsilon == 0.5
    assert LedgerRecord.from_lines(migrations.read_ledger(url, "adult").lines).analysts == (("ada", 0.5), ("ben", 0.25))


def forged(change):
    """The lines of a migrated ledger after a change of its records, each sealed again and chained."""
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.grant(pure(0.25), purpose="before")
    ledger.migrate(analysts=SHARES, analyst="ada")
    ledger.grant(pure(0.25), purpose="after")
    records, lines, head = [json.loads(line) for line in ledger.record().lines], [], "0" * 64
    change(records)
    for index, record in enumerate(records):
        lines.append(resealed(record | {"index": index, "previous": head}))
        head = json.loads(lines[-1])["hash"]
    return lines


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda r: r[1].update(version=2, analyst="ada"), 1),  # version 2 before the migration
        (lambda r: (r[3].pop("analyst"), r[3].update(version=1)), 3),  # and back again afterwards
        (lambda r: r.append(dict(r[2])), 4),  # a second migration
        (lambda r: r[2].update(version=1), 2),  # the kind is of version 2
        (lambda r: r[2].update(version=3), 2),
        (lambda r: r[2].update(analysts={}), 2),
        (lambda r: r[2].update(analysts={"ada": 1.5}), 2),
        (lambda r: r[2].update(analysts={"ada": 0.75, "ben": 0.5}), 2),
        (lambda r: r[2].update(more=1), 2),
        (lambda r: r[2].update(analysts={"ada": 0.125, "ben": 0.5}), 3),  # a share that the grant exceeds
        (lambda r: r[3].update(analyst="eve"), 3),
        (lambda r: r.pop(0), 0),
        (lambda r: (r.pop(0), r.pop(0)), 0),  # it opens no ledger
    ],
)
def test_neither_reader_takes_a_forged_migration(change, place, tmp_path):
    assert len(forged(lambda records: None)) == 4
    lines = forged(change)
    with pytest.raises(LedgerCorrupted, match=f"entry {place}:"):
        LedgerRecord.from_lines(tuple(lines))
    (tmp_path / "forged.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(LedgerCorrupted, match=f"entry {place}:"):
        verify_ledger(tmp_path / "forged.jsonl")


OLDER = [path for path in GOLDEN if LedgerRecord.from_lines(tuple(read_lines(path))).version < 3]


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.name.removesuffix(".ledger.jsonl"))
def test_a_ledger_of_an_older_release_opens_goes_on_and_migrates(path, tmp_path):
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    with Ledger.open(copy) as ledger:
        analyst = next((label for label, _ in ledger.record().analysts), None)
    with Ledger.open(copy, analyst=analyst) as ledger:
        ledger.grant(_affordable(ledger), purpose="goes on")
        if analyst is None:
            ledger.migrate(analysts={"ada": 0.5}, analyst="ada")
            assert ledger.spent("ada").epsilon == 0.0
            ledger.grant(_affordable(ledger), purpose="by its analyst")
        lines = ledger.record().lines
    old = read_lines(path)
    assert list(lines[: len(old)]) == old
    assert read_lines(copy) == list(lines)
    assert LedgerRecord.from_lines(lines).version == 2


def _affordable(ledger):
    adjacency, name = ledger.budget.adjacency, ledger.filter.name
    if name in {"basic", "whitehouse"}:
        return PureEvent(epsilon=1e-13, adjacency=adjacency)
    return GaussianEvent(noise_multiplier=1e7, adjacency=adjacency)
