"""Checkpoints: what they state is compared with what is there; where it is not, it is trusted and never confirmed."""

import json
import sqlite3
import subprocess
from hashlib import sha256

import pytest

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    BasicFilter,
    Budget,
    GaussianEvent,
    GDPFilter,
    Ledger,
    PrivacyUnit,
    PureEvent,
    PureOdometer,
    RenyiFilter,
    Repeated,
    ZCDPFilter,
)
from ledgerwood.accounting.ledger import CheckpointEntry, LedgerRecord, sql
from ledgerwood.errors import BudgetExceeded, LedgerCorrupted, LedgerError, PrivacyError
from ledgerwood.verification import sign_ledger, verify_federation, verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=5.0, delta=1e-5, adjacency=A)
EVENT, OTHER = (GaussianEvent(noise_multiplier=size, adjacency=A) for size in (50.0, 60.0))
FILTERS = {
    "basic": BasicFilter(), "zcdp": ZCDPFilter(), "gdp": GDPFilter(), "renyi": RenyiFilter(order=20.0),
    "whitehouse": AdvancedCompositionFilter(delta_prime=1e-6),
}  # fmt: skip
DELTA = {"basic": 1e-7, "whitehouse": 1e-7}


def written(path, name="zcdp", *, analysts=False, after=1, url=None):
    """A ledger of 3 grants, of which 2 hold something still, a checkpoint at entry 6 (7 with analysts), and more."""
    terms = {"dataset": "d", "budget": BUDGET, "unit": PrivacyUnit.ROW, "filter": FILTERS[name]}
    with Ledger.open(url or path, **terms) as ledger:
        grant = ledger.grant(Repeated(EVENT, count=3), purpose="three", delta=DELTA.get(name))
        grant.draw(EVENT, purpose="one of three", randomness="test" if name == "gdp" else "secure")
        if analysts:
            ledger.migrate(analysts={"ada": 0.5, "ben": 0.25}, analyst="ada")
        ledger.grant(OTHER, purpose="held", delta=DELTA.get(name), resumable=True)
        ledger.spend(OTHER, purpose="spent", delta=DELTA.get(name))
        ledger.checkpoint()
        for _ in range(after):
            ledger.spend(EVENT, purpose="after", delta=DELTA.get(name))
        return ledger.record()


@pytest.mark.parametrize("analysts", [False, True])
@pytest.mark.parametrize("name", FILTERS)
def test_a_ledger_goes_on_from_its_checkpoint_as_from_its_start(tmp_path, name, analysts):
    path, who = tmp_path / "x.jsonl", {"analyst": "ada"} if analysts else {}
    record = written(path, name, analysts=analysts)
    with Ledger.open(path, from_checkpoint=True, **who) as ledger:
        assert ledger.entries == record.entries[6 + analysts :]
        assert ledger.head == record.head
        assert (ledger.spent(), ledger.budget, ledger.filter) == (record.spent(), BUDGET, FILTERS[name])
        grant = ledger.resumed(3 + analysts)  # from before the checkpoint, and not drawn yet
        assert grant.draw(OTHER, purpose="late").event == OTHER
        with pytest.raises(LedgerError, match="is not a grant"):
            ledger.resumed(0)
        ledger.checkpoint()
        ledger.spend(EVENT, purpose="last", delta=DELTA.get(name))
        assert ledger.record().trusted == 6 + analysts
        total, head = ledger.spent(), ledger.head
    with Ledger.open(path, **who) as whole:  # both checkpoints are compared with what was added up
        assert (whole.spent(), whole.head) == (total, head)
        assert LedgerRecord.from_lines(whole.record().lines) == whole.record()
        cut = whole.record().from_checkpoint()
    assert (cut.spent(), cut.head, cut.terms) == (total, head, record.terms)
    assert LedgerRecord.from_lines(cut.lines) == cut
    full, part = verify_ledger(path), verify_ledger(path, from_checkpoint=True)
    assert (full.verdict, full.trusted, full.trusted_to, full.trust) == ("confirmed", 0, None, "")
    assert (part.verdict, part.trusted_to) == ("trusted", "writer")
    assert part.trusted == cut.entries[0].index
    assert (part.grants, part.draws, part.head, part.randomness) == (
        full.grants, full.draws, full.head, full.randomness,
    )  # fmt: skip
    assert part.epsilon_readded == pytest.approx(full.epsilon_readded)
    assert [each.entry for each in part.verdicts] == [1, full.verdicts[-1].entry]  # one is held, one came after
    assert "were not verified" in part.trust
    assert verify_ledger(cut) == part


def test_a_budget_is_kept_across_a_checkpoint(tmp_path):
    path = tmp_path / "x.jsonl"
    terms = {"budget": Budget(epsilon=1.0, delta=0.0, adjacency=A), "unit": PrivacyUnit.ROW}
    with Ledger.open(path, **terms) as ledger:
        ledger.spend(PureEvent(epsilon=0.75, adjacency=A), purpose="most")
        ledger.checkpoint()
    with Ledger.open(path, from_checkpoint=True) as ledger:
        with pytest.raises(BudgetExceeded):
            ledger.spend(PureEvent(epsilon=0.2500001, adjacency=A), purpose="too much")
        ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="the rest")
    with Ledger.open(path, from_checkpoint=True, shared=True) as one, Ledger.open(path, shared=True) as other:
        assert one.remaining() == other.remaining()
        other.checkpoint()
        assert one.head == other.head


def test_an_odometer_is_not_told_less_than_was_granted(tmp_path):
    path = tmp_path / "x.jsonl"
    terms = {"budget": Budget(epsilon=20.0, delta=0.0, adjacency=A), "unit": PrivacyUnit.ROW}
    last = PureEvent(epsilon=0.5, adjacency=A)
    with Ledger.open(path, **terms) as ledger:
        for _ in range(8):
            ledger.spend(PureEvent(epsilon=1.0, adjacency=A), purpose="a")
        running = PureOdometer().start().after(ledger.plans)
        ledger.checkpoint()
        ledger.spend(last, purpose="b")
    with Ledger.open(path, from_checkpoint=True) as ledger:
        assert ledger.plans_since(8) == (last,)
        assert running.after(ledger.plans_since(running.events)).epsilon == 8.5
        for read in (lambda: ledger.plans, lambda: ledger.plans_since(7)):
            with pytest.raises(LedgerError, match="8 plans were granted before it"):
                read()


# ------------------------------------------------------------------------------------------------------- forgeries


def chained(records):
    """The records with their places, links and hashes made right."""
    lines, previous = [], "0" * 64
    for index, record in enumerate(records):
        body = {key: value for key, value in record.items() if key != "hash"} | {"index": index, "previous": previous}
        text = canonical(body)
        previous = sha256(text.encode()).hexdigest()
        lines.append(canonical(body | {"hash": previous}))
    return lines


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sealed(record):
    body = {key: value for key, value in record.items() if key != "hash"}
    return body | {"hash": sha256(canonical(body).encode()).hexdigest()}


def opening(record, **fields):
    return record | {"opening": sealed(record["opening"] | fields)}


def held(record, place, change):
    each = [change(one) if k == place else one for k, one in enumerate(record["held"])]
    return record | {"held": [one for one in each if one is not None]}


def charged(one, rho):
    return one | {"grant": sealed(one["grant"] | {"charge": {"method": "zcdp", "rho": rho}})}


LARGE = {"epsilon": 500.0, "delta": 1e-5, "adjacency": "add-remove"}
FORGED = {  # found against what is there; and found (True) or trusted (False) where it is not
    "a smaller amount": (lambda r: r | {"spent": r["spent"] | {"rho": "1/1280"}}, False),
    "no amount": (lambda r: r | {"spent": r["spent"] | {"rho": "0"}}, True),
    "an amount that is below that of the grants that it holds": (
        lambda r: r | {"spent": r["spent"] | {"rho": "1/65536"}}, True,
    ),
    "an amount by another spelling": (lambda r: r | {"spent": r["spent"] | {"rho": "2/2560"}}, True),
    "a negative amount": (lambda r: r | {"spent": r["spent"] | {"rho": "-1/4096"}}, True),
    "an amount beyond the budget": (lambda r: r | {"spent": r["spent"] | {"rho": "17"}}, True),
    "an amount of another currency": (lambda r: r | {"spent": {"grants": 3, "epsilon": "0", "delta": "0"}}, True),
    "fewer grants": (lambda r: r | {"spent": r["spent"] | {"grants": 2}}, True),
    "fewer draws": (lambda r: r | {"draws": 1}, True),
    "draws in the place of grants": (lambda r: r | {"draws": 3, "spent": r["spent"] | {"grants": 2}}, False),
    "fewer draws than its grants lack": (lambda r: r | {"draws": 0, "spent": r["spent"] | {"grants": 5}}, True),
    "another number of checkpoints": (lambda r: r | {"checkpoints": 1}, True),
    "draws that are no number": (lambda r: r | {"draws": True}, True),
    "a larger budget": (lambda r: opening(r, budget=LARGE), False),
    "another filter": (lambda r: opening(r, filter="gdp"), True),
    "another data set": (lambda r: opening(r, dataset="e"), False),
    "an opening that was altered": (lambda r: r | {"opening": r["opening"] | {"budget": LARGE}}, True),
    "other analysts": (lambda r: r | {"analysts": {"ada": 0.75, "ben": 0.25}}, False),
    "no analysts": (lambda r: r | {"analysts": {}}, True),
    "an analyst's smaller amount": (
        lambda r: r | {"by_analyst": r["by_analyst"] | {"ada": {"grants": 2, "rho": "1/32768"}}}, True,
    ),
    "an analyst's larger amount": (
        lambda r: r | {"by_analyst": r["by_analyst"] | {"ben": {"grants": 1, "rho": "1/512"}}}, True,
    ),
    "sums of a stranger": (lambda r: r | {"by_analyst": r["by_analyst"] | {"eve": {"grants": 0, "rho": "0"}}}, True),
    "a missing grant that holds something": (lambda r: held(r, 1, lambda _: None), False),
    "fewer events left": (lambda r: held(r, 0, lambda one: one | {"left": [[one["left"][0][0], 1]]}), False),
    "more events left": (lambda r: held(r, 0, lambda one: one | {"left": [[one["left"][0][0], 4]]}), True),
    "all events left": (lambda r: held(r, 0, lambda one: one | {"left": [[one["left"][0][0], 3]]}), False),
    "an event twice": (lambda r: held(r, 0, lambda one: one | {"left": one["left"] * 2}), True),
    "nothing left": (lambda r: held(r, 0, lambda one: one | {"left": []}), True),
    "half an event left": (lambda r: held(r, 0, lambda one: one | {"left": [[one["left"][0][0], 0.5]]}), True),
    "a held grant twice": (lambda r: r | {"held": [r["held"][0], *r["held"]]}, True),
    "a held grant of a larger charge": (lambda r: held(r, 0, lambda one: charged(one, 0.03)), True),
    "a held grant that was altered": (
        lambda r: held(r, 0, lambda one: one | {"grant": one["grant"] | {"purpose": "x"}}), True,
    ),
    "a held opening": (lambda r: held(r, 0, lambda one: one | {"grant": r["opening"]}), True),
    "a seed that is not told": (lambda r: r | {"randomness": "secure"}, False),
    "an unknown randomness": (lambda r: r | {"randomness": "none"}, True),
    "a field more": (lambda r: r | {"note": ""}, True),
    "a field less": (lambda r: {key: value for key, value in r.items() if key != "held"}, True),
    "an older version": (lambda r: r | {"version": 3}, True),
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A migrated ledger's records; its first draw used a seed."""
    path = tmp_path_factory.mktemp("books") / "x.jsonl"
    lines = written(path, analysts=True).lines
    found = [json.loads(line) for line in lines]
    found[2]["randomness"] = "test"
    found[7]["randomness"] = "test"
    found = [json.loads(line) for line in chained(found)]
    found[7]["opening"] = found[0]
    found[7]["held"][0]["grant"], found[7]["held"][1]["grant"] = found[1], found[4]
    return [json.loads(line) for line in chained(found)]


def saved(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_records_that_are_forged_are_in_order(records, tmp_path):
    path = saved(tmp_path / "x.jsonl", chained(records))
    assert [record["kind"] for record in records].index("checkpoint") == 7
    assert verify_ledger(path).verdict == "confirmed"
    assert verify_ledger(path, from_checkpoint=True).verdict == "trusted"
    with Ledger.open(path, analyst="ada") as ledger:
        assert isinstance(ledger.entries[7], CheckpointEntry)


@pytest.mark.parametrize("name", FORGED)
def test_forged_checkpoints(records, tmp_path, name):
    forge, shows = FORGED[name]
    forged = [forge(record) if record["kind"] == "checkpoint" else record for record in records]
    whole = saved(tmp_path / "whole.jsonl", chained(forged))
    with pytest.raises(LedgerCorrupted, match="entry 7: "):
        verify_ledger(whole)
    with pytest.raises(LedgerCorrupted, match="entry 7: "):
        Ledger.open(whole, analyst="ada")
    cut = saved(tmp_path / "cut.jsonl", chained(forged)[7:])
    if not shows:  # nothing in it says so; it is never confirmed
        report = verify_ledger(cut)
        assert (report.verdict, report.trusted, report.trusted_to) == ("trusted", 7, "writer")
        return
    for path in (whole, cut):
        with pytest.raises(LedgerCorrupted, match="entry [67]: "):
            verify_ledger(path, from_checkpoint=True)
        with pytest.raises(PrivacyError):
            Ledger.open(path, analyst="ada", from_checkpoint=True)


def test_the_charge_of_a_grant_that_a_checkpoint_holds_is_looked_at(records, tmp_path):
    """Its plan is there, and may still be drawn."""
    forged = [held(r, 0, lambda one: charged(one, 1e-5)) if r["kind"] == "checkpoint" else r for r in records]
    cut = saved(tmp_path / "cut.jsonl", chained(forged)[7:])
    with pytest.raises(LedgerCorrupted, match="entry 1: the recorded rho 1e-05 is below what the plan costs"):
        verify_ledger(cut)


def test_two_checkpoints_that_contradict_each_other(records, tmp_path):
    place = 7
    second = records[place] | {"checkpoints": 1}
    after = [record | {"grant": record["grant"] + 1} if "grant" in record else record for record in records[8:]]
    lines = chained([*records[: place + 1], second, *after])
    assert verify_ledger(saved(tmp_path / "right.jsonl", lines)).verdict == "confirmed"
    for wrong in (records[place], second | {"draws": 3}, second | {"held": second["held"][:1]}):
        lines = chained([*records[: place + 1], wrong, *after])
        for path in (saved(tmp_path / "whole.jsonl", lines), saved(tmp_path / "cut.jsonl", lines[place:])):
            with pytest.raises(LedgerCorrupted, match=f"entry {place + 1}: "):
                verify_ledger(path)


def test_a_checkpoint_that_follows_another_chain(records, tmp_path):
    lines = chained(records)
    other = sealed(json.loads(lines[7]) | {"previous": "f" * 64})
    path = saved(tmp_path / "x.jsonl", [*lines[:7], canonical(other)])
    with pytest.raises(LedgerCorrupted, match="entry 7: it does not follow the entry before it"):
        verify_ledger(path)
    with pytest.raises(LedgerCorrupted, match="entry 7: "):
        Ledger.open(path)
    alone = saved(tmp_path / "cut.jsonl", [canonical(other | {"previous": "none"})])
    with pytest.raises(LedgerCorrupted):
        verify_ledger(alone)


# -------------------------------------------------------------------------------------------------- whose word it is


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    private, public = folder / "a.pem", folder / "a.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


def test_a_signature_says_whom_the_entries_before_a_checkpoint_are_trusted_to(tmp_path, keys):
    private, public = keys
    path = tmp_path / "x.jsonl"
    record = written(path, after=0)
    line = sign_ledger(path, private_key=private)
    (tmp_path / "sig").write_text(line)
    early = sign_ledger(LedgerRecord(entries=record.entries[:6]), private_key=private)
    (tmp_path / "early").write_text(early)
    with Ledger.open(path) as ledger:
        ledger.spend(EVENT, purpose="after")
    signed = {"signature": tmp_path / "sig", "public_key": public}
    report = verify_ledger(path, from_checkpoint=True, **signed)
    assert (report.verdict, report.trusted, report.trusted_to) == ("trusted", 6, "signer")
    assert "trusted to whoever signed it" in report.trust
    assert verify_ledger(path, **signed).trusted_to is None
    with pytest.raises(LedgerError, match="is of 6 entries, before the checkpoint at entry 6"):
        verify_ledger(path, from_checkpoint=True, signature=tmp_path / "early", public_key=public)
    cut = verify_ledger(path).head and LedgerRecord.from_lines(tuple(path.read_text().splitlines())).from_checkpoint()
    with pytest.raises(LedgerError, match="6 entries before it were not verified; nothing was signed"):
        sign_ledger(cut, private_key=private)
    again = sign_ledger(cut, private_key=private, allow_unconfirmed=True)
    assert json.loads(again) == json.loads(sign_ledger(path, private_key=private))


def test_what_needs_all_entries_refuses_a_part(tmp_path):
    path = tmp_path / "x.jsonl"
    cut = written(path).from_checkpoint()
    cut.save(tmp_path / "cut.jsonl")
    with pytest.raises(LedgerCorrupted, match=r"begins with a checkpoint, and the 6 entries before it are not there"):
        Ledger.open(tmp_path / "cut.jsonl")
    with pytest.raises(LedgerError, match="begins with a checkpoint; sessions are compared"):
        verify_federation(cut, [path])
    plain = tmp_path / "plain.jsonl"
    with Ledger.open(plain, budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
        ledger.spend(PureEvent(epsilon=0.1, adjacency=A), purpose='"kind":"checkpoint"')
        with pytest.raises(LedgerError, match="the ledger has no checkpoint"):
            ledger.record().from_checkpoint()
        record = ledger.record()
    for place in (plain, record):
        with pytest.raises(LedgerError, match="no checkpoint to begin at"):
            verify_ledger(place, from_checkpoint=True)
    with Ledger.open(plain, from_checkpoint=True) as ledger:  # nothing to trust: all of it is read
        assert ledger.record() == record


def test_a_checkpoint_in_a_database(tmp_path, monkeypatch):
    monkeypatch.setattr(sql, "_FIRST_LOOK", 2)
    url = f"sqlite:///{tmp_path}/x.db"
    record = written(None, url=url, after=3)
    with Ledger.open(url, dataset="d", from_checkpoint=True) as ledger:
        assert ledger.entries == record.entries[6:]
        assert ledger.spent() == record.spent()
        ledger.spend(EVENT, purpose="last")
    report = verify_ledger(url, dataset="d", from_checkpoint=True)
    assert (report.verdict, report.trusted) == ("trusted", 6)
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("DELETE FROM ledgerwood_entries WHERE position = 6")
    with pytest.raises(LedgerError, match="no checkpoint to begin at"):
        verify_ledger(url, dataset="d", from_checkpoint=True)


def test_a_checkpoint_is_found_from_the_end_of_a_long_file(tmp_path):
    path = tmp_path / "x.jsonl"
    written(path, "basic", after=0)
    with Ledger.open(path) as ledger:
        grant = ledger.grant(Repeated(EVENT, count=600), purpose="p" * 200, delta=1e-7)
        for _ in range(590):
            grant.draw(EVENT, purpose="p" * 200)
        record = ledger.record()
    assert path.stat().st_size > 2 * 2**17
    with Ledger.open(path, from_checkpoint=True) as ledger:
        assert ledger.entries == record.entries[6:]
        ledger.checkpoint()
        later = ledger.record()
    assert verify_ledger(path, from_checkpoint=True).trusted == later.entries[-1].index
    with path.open("a") as file:  # a checkpoint whose writing was interrupted is none
        file.write(later.lines[-1])
    with pytest.warns(RuntimeWarning, match="cut short"), Ledger.open(path, from_checkpoint=True) as ledger:
        assert ledger.entries == later.entries[-1:]


def test_a_line_that_is_cut_short_has_its_own_place(tmp_path):
    """Lines before it are those after the checkpoint, at entry 6."""
    path = tmp_path / "x.jsonl"
    written(path)
    with path.open("ab") as file:
        file.write(b'{"half')
    for part in (False, True):
        with pytest.raises(LedgerCorrupted, match="entry 9: the line is cut short"):
            verify_ledger(path, from_checkpoint=part)
