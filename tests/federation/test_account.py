"""A client's account: what it grants, draws, records and refuses, on the disk before anything is sent."""

import importlib.util
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest

from ledgerwood.accounting import Composed, GaussianEvent, Ledger, Parallel, PrivacyUnit, Repeated, ZCDPFilter
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, jsonl
from ledgerwood.errors import (
    BudgetExceeded,
    DrawRefused,
    InvalidParameter,
    LedgerCorrupted,
    LedgerError,
    LedgerWriteFailed,
    RoundViolation,
    SumRefused,
    UnsupportedEvent,
)
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.verification import verify_ledger

_SPEC = importlib.util.spec_from_file_location("accounts", Path(__file__).with_name("accounts.py"))
kit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kit)
ALL, BOTH, BUDGET, FIRST, PLAN, SECOND, SESSION = (
    kit.ALL, kit.BOTH, kit.BUDGET, kit.FIRST, kit.PLAN, kit.SECOND, kit.SESSION,
)  # fmt: skip
A, account, answers, further, lines, terms, upload = (
    kit.A, kit.account, kit.answers, kit.further, kit.lines, kit.terms, kit.upload,
)  # fmt: skip


@pytest.fixture
def joined(tmp_path):
    mine = account(tmp_path)
    mine.join(terms())
    return mine


def drawn(folder):
    """The events of the ledger's draws, with their purposes."""
    with Ledger.open(folder / "client.ledger.jsonl", shared=True) as ledger:
        return [(entry.event, entry.purpose) for entry in ledger.entries if isinstance(entry, DrawEntry)]


def granted(folder):
    with Ledger.open(folder / "client.ledger.jsonl", shared=True) as ledger:
        return [entry for entry in ledger.entries if isinstance(entry, GrantEntry)]


def test_a_session_is_charged_once_with_its_plan_and_its_server(joined, tmp_path):
    joined.join(terms())
    account(tmp_path).join(terms())
    (entry,) = granted(tmp_path)
    assert entry.event == PLAN
    assert entry.charge.delta == 0.0
    assert entry.purpose == f"resumable: federation {SESSION.hex()} plan {'70' * 32} server server-1"
    assert joined.joined(SESSION) == terms()
    assert joined.joined(bytes(16)) is None


def test_a_round_is_recorded_and_its_draw_made_once(joined, tmp_path):
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    joined.answer(further("recover", 1), session=SESSION)
    joined.answer(further("unmask", 1), session=SESSION)
    joined.answer(upload(2), session=SESSION, draw=2, event=BOTH, release=SECOND)
    joined.answer(upload(3), session=SESSION, draw=2, event=BOTH, release=FIRST)
    assert drawn(tmp_path) == [(FIRST, "federation draw 1"), (BOTH, "federation draw 2")]
    assert verify_ledger(tmp_path / "client.ledger.jsonl").verdict == "confirmed"
    at = [json.loads(line)["at"][1:] for line in answers(tmp_path)[2:]]
    assert at == [[1, 1, "upload"], [1, 1, "recover"], [1, 1, "unmask"], [2, 1, "upload"], [3, 1, "upload"]]


def test_each_part_of_a_composition_is_a_draw_with_a_number_of_its_own(joined, tmp_path):
    whole = Composed((FIRST, Repeated(SECOND, count=2)))
    joined.answer(upload(1), session=SESSION, draw=4, event=whole, release=SECOND)
    joined.answer(upload(2), session=SESSION, draw=4, event=whole, release=FIRST)
    with pytest.raises(RoundViolation, match="draw 6 is over: this client answered in draw 6 already"):
        joined.answer(upload(3), session=SESSION, draw=6, event=BOTH, release=FIRST)
    joined.answer(upload(3), session=SESSION, draw=7, event=BOTH, release=FIRST)
    assert drawn(tmp_path) == [
        (event, f"federation draw {number}") for number, event in enumerate((FIRST, SECOND, SECOND, BOTH), start=4)
    ]


def test_groups_hold_their_own_releases(tmp_path):
    halves = Parallel((FIRST, SECOND), probabilities=(0.5, 0.25))
    mine = account(tmp_path)
    mine.join(terms(event=halves))
    mine.answer(upload(1), session=SESSION, draw=1, event=halves, release=SECOND, group=1)
    mine.answer(upload(2), session=SESSION, draw=1, event=halves, release=FIRST, group=0)
    again = account(tmp_path)
    with pytest.raises(RoundViolation, match="does not hold; it holds nothing more"):
        again.answer(upload(3), session=SESSION, draw=1, event=halves, release=FIRST, group=0)
    for group in (None, 2):
        with pytest.raises(RoundViolation, match=f"group={group} must be one of 0..1"):
            again.answer(upload(3), session=SESSION, draw=1, event=halves, release=FIRST, group=group)
    assert len(drawn(tmp_path)) == 1


REFUSED = {
    "a release that the draw does not hold": (
        RoundViolation, "which this draw does not hold", {"draw": 2, "event": FIRST, "release": SECOND},
    ),
    "a draw that the plan does not have": (
        DrawRefused, "needs 1 x .* left: the server asks for more than the plan",
        {"draw": 2, "event": GaussianEvent(noise_multiplier=31.0, adjacency=A),
             "release": GaussianEvent(noise_multiplier=31.0, adjacency=A)},
    ),
    "a draw more often than the plan has it": (
        DrawRefused, "has 0 left", {"draw": 2, "event": FIRST, "release": FIRST},
    ),
    "an older draw": (RoundViolation, "draw 1 was of", {"draw": 1, "event": SECOND, "release": SECOND}),
    "a release twice": (RoundViolation, "it holds nothing more", {"draw": 1, "event": FIRST, "release": FIRST}),
    "a group where there is none": (
        RoundViolation, "has no groups", {"draw": 2, "event": SECOND, "release": SECOND, "group": 0},
    ),
    "a sample in a sample": (
        UnsupportedEvent, "one sample per draw", {"draw": 2, "event": Composed((FIRST, BOTH)), "release": FIRST},
    ),
    "no question": (RoundViolation, "needs draw=, event= and release=", {}),
    "half a question": (InvalidParameter, "belong together", {"draw": 2}),
    "draw 0": (InvalidParameter, "draw=0", {"draw": 0, "event": SECOND, "release": SECOND}),
    "an unknown source": (
        InvalidParameter, "randomness='odd'", {"draw": 2, "event": SECOND, "release": SECOND, "randomness": "odd"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("error", "message", "question"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_not_recorded(joined, tmp_path, error, message, question):
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    before = lines(tmp_path), answers(tmp_path)
    with pytest.raises(error, match=message):
        joined.answer(upload(2), session=SESSION, **question)
    assert (lines(tmp_path), answers(tmp_path)) == before
    joined.answer(upload(2), session=SESSION, draw=2, event=SECOND, release=SECOND)
    assert len(drawn(tmp_path)) == 2


@pytest.mark.parametrize("fresh", [False, True], ids=["same process", "fresh process"])
def test_nothing_is_answered_twice(joined, tmp_path, fresh):
    joined.answer(upload(2), session=SESSION, draw=1, event=FIRST, release=FIRST)
    joined.answer(upload(2, attempt=2), session=SESSION, draw=1, event=FIRST, release=FIRST)
    joined.answer(further("unmask", 2, attempt=2), session=SESSION)
    mine = account(tmp_path) if fresh else joined
    asked = {"draw": 1, "event": FIRST, "release": FIRST}
    for answer, question in (
        (upload(2, attempt=2), asked),
        (upload(2), asked),
        (upload(1), asked),
        (upload(2, attempt=3), asked),
        (further("unmask", 2, attempt=2), {}),
        (further("recover", 2, attempt=2), {}),
        (further("unmask", 3), {}),
    ):
        with pytest.raises(SumRefused):
            mine.answer(answer, session=SESSION, **question)
    assert len(answers(tmp_path)) == 5
    assert len(drawn(tmp_path)) == 1


def test_another_attempt_is_of_the_same_question(joined, tmp_path):
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    with pytest.raises(RoundViolation, match="round 1 had another question"):
        joined.answer(upload(1, attempt=2), session=SESSION, draw=2, event=SECOND, release=SECOND)
    account(tmp_path).answer(upload(1, attempt=2), session=SESSION, draw=1, event=FIRST, release=FIRST)
    assert len(drawn(tmp_path)) == 1


def test_a_budget_that_is_too_small_refuses_before_anything_is_recorded(tmp_path):
    mine = account(tmp_path)
    greedy = terms(event=Repeated(PLAN, count=1000))

    for call in (mine.could_join, mine.join):
        with pytest.raises(BudgetExceeded):
            call(greedy)

    assert len(lines(tmp_path)) == 1
    assert len(answers(tmp_path)) == 1
    with pytest.raises(LedgerError, match="was not joined"):
        mine.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)


def test_a_dry_check_spends_nothing(tmp_path):
    mine = account(tmp_path)
    for _ in range(3):
        mine.could_join(terms())
    assert granted(tmp_path) == []
    mine.join(terms())
    mine.could_join(terms())
    assert len(granted(tmp_path)) == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"plan": b"q" * 32}, "another plan or another server"),
        ({"event": Composed((FIRST, SECOND))}, "another plan or another server"),
        ({"server": "server-2"}, "another plan or another server"),
        ({"active": True}, "active=False, not True"),
        ({"unit": PrivacyUnit.USER}, "protects a user each, this client's ledger a row"),
    ],
)
def test_other_terms_under_one_session_are_refused(joined, tmp_path, other, message):
    for call in (joined.could_join, joined.join, account(tmp_path).join):
        with pytest.raises(LedgerError, match=message):
            call(terms(**other))
    assert len(granted(tmp_path)) == 1
    joined.join(terms(session=bytes(16)))
    assert len(granted(tmp_path)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"session": bytes(15)}, {"plan": bytes(33)}, {"server": "a b"}, {"server": ""}, {"server": "x" * 65},
        {"unit": "row"}, {"active": 1},
    ],
)  # fmt: skip
def test_terms_are_of_their_types(wrong):
    (name,) = wrong
    with pytest.raises(InvalidParameter, match=name):
        terms(**wrong)


def test_sessions_do_not_mix(joined, tmp_path):
    other = bytes(16)
    joined.join(terms(session=other, server="x" * 64))
    joined.answer(upload(5), session=SESSION, draw=1, event=FIRST, release=FIRST)
    joined.answer(upload(1), session=other, draw=1, event=FIRST, release=FIRST)
    joined.answer(upload(6), session=SESSION, draw=2, event=BOTH, release=FIRST)
    again = account(tmp_path)
    with pytest.raises(SumRefused):
        again.answer(upload(5), session=SESSION, draw=2, event=BOTH, release=SECOND)
    again.answer(upload(2), session=other, draw=2, event=SECOND, release=SECOND)
    assert len(drawn(tmp_path)) == 4


def test_what_a_session_was_told_stays(joined, tmp_path):
    joined.fix(SESSION, "roster", b"r" * 32)
    again = account(tmp_path)
    again.fix(SESSION, "roster", b"r" * 32)
    with pytest.raises(LedgerError, match="was told another roster before"):
        again.fix(SESSION, "roster", b"s" * 32)
    again.fix(SESSION, "schema", b"s" * 32)
    with pytest.raises(LedgerError, match="was not joined"):
        again.fix(bytes(16), "roster", b"r" * 32)
    for name, digest in (("Roster", bytes(32)), ("roster", bytes(31))):
        with pytest.raises(InvalidParameter):
            again.fix(SESSION, name, digest)


def test_an_active_session_keeps_its_rules(tmp_path):
    account(tmp_path).join(terms(active=True))
    mine = account(tmp_path)
    assert mine.joined(SESSION).active
    mine.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    with pytest.raises(SumRefused, match="endorsed first"):
        mine.answer(further("unmask", 1), session=SESSION)
    mine.answer(further("endorse", 1), session=SESSION)
    account(tmp_path).answer(further("unmask", 1), session=SESSION)


def test_filters_without_a_delta_grant_without_one(tmp_path):
    mine = account(tmp_path, filter=ZCDPFilter())
    mine.could_join(terms(event=FIRST, delta=1e-6))
    mine.join(terms(event=FIRST, delta=1e-6))
    (entry,) = granted(tmp_path)
    assert entry.charge.delta is None
    (tmp_path / "basic").mkdir()
    account(tmp_path / "basic").join(terms(event=GaussianEvent(noise_multiplier=30.0, adjacency=A), delta=1e-6))
    (entry,) = granted(tmp_path / "basic")
    assert entry.charge.delta == 1e-6


def test_an_account_is_a_file_and_goes_to_other_processes_by_its_name(joined, tmp_path):
    with pytest.raises(InvalidParameter, match="must be a file"):
        ClientAccount("sqlite:///team.db")
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    other = pickle.loads(pickle.dumps(joined))
    with pytest.raises(SumRefused):
        other.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    other.close()
    joined.close()
    with joined as mine:
        mine.answer(further("unmask", 1, survivors=ALL), session=SESSION)


def test_a_new_ledger_needs_its_terms(tmp_path):
    with pytest.raises(InvalidParameter, match="budget= and unit="):
        ClientAccount(tmp_path / "none.jsonl").could_join(terms())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LedgerError, match="cannot be reopened with budget"):
        account(tmp_path).could_join(terms())
        account(tmp_path, budget=BUDGET.__class__(epsilon=5.0, delta=1e-5, adjacency=A)).could_join(terms())


def test_an_ordinary_grant_cannot_be_resumed(tmp_path):
    with Ledger.open(tmp_path / "a.jsonl", budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
        plain = ledger.grant(FIRST, purpose="train", delta=1e-6)
        kept = ledger.grant(Repeated(SECOND, count=2), purpose="train", delta=1e-6, resumable=True)
        kept.draw(SECOND, purpose="one")
    with Ledger.open(tmp_path / "a.jsonl") as ledger:
        with pytest.raises(LedgerError, match="was not made to be resumed"):
            ledger.resumed(plain.index)
        for wrong in (0, 3, 4, -1):
            with pytest.raises(LedgerError, match="is not a grant"):
                ledger.resumed(wrong)
        again = ledger.resumed(kept.index)
        assert dict(again.remaining) == {SECOND: 1}
        again.draw(SECOND, purpose="two")
        with pytest.raises(DrawRefused):
            again.draw(SECOND, purpose="three")


def test_draws_of_a_resumable_grant_are_on_the_disk_at_once(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "a.jsonl", budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
        plain = ledger.grant(FIRST, purpose="train", delta=1e-6)
        kept = ledger.grant(FIRST, purpose="train", delta=1e-6, resumable=True)
        synced, real = [], jsonl._fsync
        monkeypatch.setattr(jsonl, "_fsync", lambda handle: (synced.append(len(ledger.entries)), real(handle)))
        plain.draw(FIRST, purpose="flushed")
        assert synced == []
        kept.draw(FIRST, purpose="synced")
        assert len(synced) == 1


def test_an_answer_is_on_the_disk_before_its_draw_and_both_before_it_is_sent(joined, tmp_path, monkeypatch):
    steps, write, sync = [], jsonl._write, jsonl._fsync
    names = {(tmp_path / name).stat().st_ino: name.rpartition(".")[2] for name in
             ("client.ledger.jsonl", "client.ledger.jsonl.answers")}  # fmt: skip

    def name(handle):
        return names[os.fstat(handle).st_ino]

    monkeypatch.setattr(jsonl, "_write", lambda f, data: (steps.append(f"write {name(f.fileno())}"), write(f, data))[1])
    monkeypatch.setattr(jsonl, "_fsync", lambda handle: (steps.append(f"sync {name(handle)}"), sync(handle))[1])
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    assert steps == ["write answers", "sync answers", "write jsonl", "sync jsonl"]
    steps.clear()
    joined.answer(further("unmask", 1), session=SESSION)
    assert steps == ["write answers", "sync answers"]


@pytest.mark.parametrize("full", ["client.ledger.jsonl", "client.ledger.jsonl.answers"])
def test_a_full_disk_answers_nothing_and_loses_nothing(joined, tmp_path, monkeypatch, full):
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    real = jsonl._write

    def write(file, data):
        if jsonl.is_at(file, tmp_path / full):
            real(file, data[:20])
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(jsonl, "_write", write)
    with pytest.raises(LedgerWriteFailed, match="No space left"):
        joined.answer(upload(2), session=SESSION, draw=2, event=BOTH, release=FIRST)
    monkeypatch.undo()
    if full.endswith("answers"):  # nothing was recorded
        joined.answer(upload(2), session=SESSION, draw=2, event=BOTH, release=FIRST)
    else:  # it counts as given, and the draw is made up for
        with pytest.raises(SumRefused):
            joined.answer(upload(2), session=SESSION, draw=2, event=BOTH, release=FIRST)
    assert drawn(tmp_path)[-1] == (BOTH, "federation draw 2")
    joined.answer(upload(3), session=SESSION, draw=2, event=BOTH, release=SECOND)
    assert len(drawn(tmp_path)) == 2


def test_an_older_copy_of_either_file_is_refused(joined, tmp_path):
    ledger, kept = (tmp_path / f"client.ledger.jsonl{end}" for end in ("", ".answers"))
    shutil.copytree(tmp_path, tmp_path / "joined")
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    shutil.copytree(tmp_path, tmp_path / "first", ignore=shutil.ignore_patterns("joined"))
    joined.answer(upload(2), session=SESSION, draw=2, event=BOTH, release=FIRST)
    joined.close()
    newest = ledger.read_bytes(), kept.read_bytes()
    question = {"session": SESSION, "draw": 3, "event": BOTH, "release": FIRST}
    for restored, message in (
        ((newest[0], (tmp_path / "joined" / kept.name).read_bytes()), "answers file was lost, or is an older copy"),
        ((newest[0], (tmp_path / "first" / kept.name).read_bytes()), "answers file was lost, or is an older copy"),
        ((newest[0], b""), "answers file was lost, or is an older copy"),
        (((tmp_path / "joined" / ledger.name).read_bytes(), newest[1]), "one of them is an older copy"),
    ):
        ledger.write_bytes(restored[0])
        kept.write_bytes(restored[1])
        with pytest.raises(LedgerError, match=message):
            account(tmp_path).answer(upload(3), **question)
        assert ledger.read_bytes() == restored[0]
    ledger.write_bytes(newest[0].splitlines(keepends=True)[0])
    kept.write_bytes(newest[1])
    with pytest.raises(LedgerError, match="the ledger is an older copy"):
        account(tmp_path).join(terms())
    ledger.write_bytes(newest[0])
    account(tmp_path).answer(upload(3), **question)


def test_an_altered_answers_file_is_refused(joined, tmp_path):
    joined.answer(upload(1), session=SESSION, draw=1, event=FIRST, release=FIRST)
    joined.close()
    kept = tmp_path / "client.ledger.jsonl.answers"
    whole = kept.read_bytes()
    for altered in (
        whole.replace(b"upload", b"unmask"),
        whole.replace(b'"draw":1', b'"draw":2'),
        b"".join(whole.splitlines(keepends=True)[1:]),
        b"".join([*whole.splitlines(keepends=True), whole.splitlines(keepends=True)[-1]]),
        b"[]\n" + whole,
        whole + b"\xff\n",
    ):
        kept.write_bytes(altered)
        with pytest.raises(LedgerCorrupted, match="the answers file .*, line [0-9]"):
            account(tmp_path).answer(upload(2), session=SESSION, draw=2, event=BOTH, release=FIRST)
    (tmp_path / "other").mkdir()
    elsewhere = account(tmp_path / "other", dataset="others")
    elsewhere.could_join(terms())
    elsewhere.close()
    (tmp_path / "other" / kept.name).write_bytes(whole)
    with pytest.raises(LedgerCorrupted, match="belongs to another ledger"):
        elsewhere.could_join(terms())
