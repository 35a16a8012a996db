"""Accounts in processes that are killed at every write, and in two processes at once."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, Ledger, LedgerRecord, jsonl
from ledgerwood.errors import LedgerError, SumRefused
from ledgerwood.verification import verify_ledger
from ledgerwood.verification.ledgers.answers import read_answers

PLACE = Path(__file__).with_name("accounts.py")
_SPEC = importlib.util.spec_from_file_location("accounts", PLACE)
kit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kit)

# Imports once, then forks a child for each line: a folder, a write, and the moment in it at which the child kills
# itself. The moment "race" forks two children, each of which tries every round and says which ones it made.
KILLED = """
    import importlib.util, os, signal, sys
    from pathlib import Path
    from ledgerwood.accounting.ledger import jsonl
    from ledgerwood.errors import SumRefused

    spec = importlib.util.spec_from_file_location("accounts", sys.argv[1])
    kit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kit)

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def kill_at(last, moment):
        write, sync, count = jsonl._write, jsonl._fsync, 0

        def written(file, data):
            nonlocal count
            count += 1
            if count == last and moment == "before":
                die()
            if count == last and moment == "within":
                write(file, data[: len(data) // 2])
                die()
            done = write(file, data)
            if count == last and moment == "written":
                die()
            return done

        def synced(handle):
            sync(handle)
            if count == last and moment == "synced":
                die()

        jsonl._write, jsonl._fsync = written, synced

    def send(what):
        os.write(sent, (what + "\\n").encode())

    def race(folder, name):
        mine = kit.account(Path(folder))
        mine.join(kit.terms(event=kit.MANY))
        made = []
        for round_ in range(1, 101):
            try:
                mine.answer(kit.upload(round_), session=kit.SESSION, draw=round_, event=kit.FIRST, release=kit.FIRST)
                made.append(round_)
            except SumRefused:
                pass
        (Path(folder) / name).write_text(" ".join(map(str, made)))

    for line in sys.stdin:
        folder, last, moment = line.split()
        if moment == "race":
            rivals = []
            for name in ("first", "second"):
                rivals.append(os.fork())
                if not rivals[-1]:
                    race(folder, name)
                    os._exit(0)
            print(max(os.waitpid(rival, 0)[1] for rival in rivals), flush=True)
            continue
        child = os.fork()
        if not child:
            sent = os.open(Path(folder) / "sent", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            kill_at(int(last), moment)
            mine = kit.account(Path(folder))
            mine.join(kit.terms())
            mine.fix(kit.SESSION, "roster", bytes(32))
            for round_, (event, release) in enumerate(kit.QUESTIONS, start=1):
                mine.answer(
                    kit.upload(round_), session=kit.SESSION, draw=kit.NUMBERS[round_ - 1], event=event, release=release
                )
                send(f"upload {round_}")
                mine.answer(kit.further("unmask", round_), session=kit.SESSION)
                send(f"unmask {round_}")
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def child():
    """A process that lets a child answer all questions in a folder, and kill itself at a write."""
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), str(PLACE)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def run(folder, write, moment):
        server.stdin.write(f"{folder} {write} {moment}\n")
        server.stdin.flush()
        return int(server.stdout.readline())

    yield run
    server.stdin.close()
    server.wait()
    server.stdout.close()


def drawn(folder):
    with Ledger.open(folder / "client.ledger.jsonl", shared=True) as ledger:
        return [(e.purpose, e.event) for e in ledger.entries if isinstance(e, DrawEntry)]


DRAWN = {1: {1}, 2: {2}, 3: {3, 4}}  # of each round, the numbers of its draws
WRITES = 15
"""Two openings, the session, its grant, the roster; then of each of three rounds two answers, and two draws of one."""


@pytest.mark.slow_after(2)  # fifteen processes each
@pytest.mark.parametrize("moment", ["within", "written", "before", "synced"])
def test_an_account_that_is_killed_at_any_write_goes_on_and_answers_nothing_twice(child, tmp_path, moment):
    (tmp_path / "whole").mkdir()
    assert child(tmp_path / "whole", 0, "never") == 0
    whole = drawn(tmp_path / "whole")
    assert len(whole) == 4
    writes = sum(len(each(tmp_path / "whole")) for each in (kit.lines, kit.answers))
    assert writes == WRITES
    for write in range(1, writes + 1):
        folder = tmp_path / str(write)
        folder.mkdir()
        assert child(folder, write, moment) == signal.SIGKILL
        sent = (folder / "sent").read_text().split("\n")[:-1]
        mine = kit.account(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the ledger's line that was cut short
            mine.join(kit.terms())
        again = []
        for round_, (event, release) in enumerate(kit.QUESTIONS, start=1):
            for kind in ("upload", "unmask"):
                question = {"draw": kit.NUMBERS[round_ - 1], "event": event, "release": release}
                answer = kit.upload(round_) if kind == "upload" else kit.further("unmask", round_)
                try:
                    mine.answer(answer, session=kit.SESSION, **(question if kind == "upload" else {}))
                    again.append(f"{kind} {round_}")
                except SumRefused:
                    pass
        mine.close()
        assert not set(sent) & set(again)
        assert len([*sent, *again]) >= 2 * len(kit.QUESTIONS) - 2  # at most the killed answer and what follows from it
        numbers = [whole.index(each) + 1 for each in drawn(folder)]
        assert numbers == sorted(set(numbers))
        if moment != "within":  # a line that is cut short does not say which draw it was about
            assert len(numbers) == len(whole)
        answered = {number for what in (*sent, *again) for number in DRAWN[int(what.split()[1])]}
        assert answered <= set(numbers)
        report = verify_ledger(folder / "client.ledger.jsonl")
        assert (report.verdict, report.grants) == ("confirmed", 1)
        opening = LedgerRecord.from_lines(tuple(kit.lines(folder))).entries[0].hash
        found = read_answers(folder / "client.ledger.jsonl.answers", opening)[kit.SESSION.hex()]
        assert found.count >= len(sent) + len(again)
        assert set(found.parts) == set(numbers)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (1, "unmask"),  # its newline only
        (300, "unmask"),
        (400, None),
    ],
)
def test_an_answer_that_was_cut_short_counts_as_given(tmp_path, cut, kept):
    mine = kit.account(tmp_path)
    mine.join(kit.terms())
    event, release = kit.QUESTIONS[0]
    mine.answer(kit.upload(1), session=kit.SESSION, draw=1, event=event, release=release)
    mine.answer(kit.further("unmask", 1), session=kit.SESSION)
    mine.close()
    path = tmp_path / "client.ledger.jsonl.answers"
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    length = min(cut, len(last) - 30) if kept else len(last) - 10
    path.write_bytes(whole[:-length])
    again = kit.account(tmp_path)
    for answer in (kit.further("recover", 1), kit.further("unmask", 1), kit.upload(1, attempt=2)):
        with pytest.raises(SumRefused, match="counts as given"):
            again.answer(answer, session=kit.SESSION, **_question(answer))
    following = kit.upload(2)
    if kept:
        again.answer(following, session=kit.SESSION, draw=2, event=kit.SECOND, release=kit.SECOND)
    else:
        with pytest.raises(SumRefused, match="counts as given"):
            again.answer(following, session=kit.SESSION, draw=2, event=kit.SECOND, release=kit.SECOND)
    torn = json.loads(kit.answers(tmp_path)[3])
    assert (torn["what"], torn["bytes"]) == ("torn", len(last) - length)
    assert torn["at"] == ([kit.SESSION.hex(), 1, 1, "unmask"] if kept else None)


def _question(answer):
    event, release = kit.QUESTIONS[0]
    return {"draw": 1, "event": event, "release": release} if answer.kind == "upload" else {}


def test_a_repair_that_is_killed_is_repaired(tmp_path, monkeypatch):
    """The line is put in place, and the process killed before what is left of the old one is cut off."""
    mine = kit.account(tmp_path)
    mine.join(kit.terms())
    event, release = kit.QUESTIONS[0]
    mine.answer(kit.upload(1), session=kit.SESSION, draw=1, event=event, release=release)
    mine.answer(kit.further("recover", 1), session=kit.SESSION)
    mine.close()
    path = tmp_path / "client.ledger.jsonl.answers"
    path.write_bytes(path.read_bytes()[:-5])
    monkeypatch.setattr(os, "ftruncate", lambda handle, length: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        kit.account(tmp_path).joined(kit.SESSION)
    monkeypatch.undo()
    again = kit.account(tmp_path)
    for round_ in (1, 2):
        with pytest.raises(SumRefused, match="counts as given"):
            again.answer(kit.upload(round_), session=kit.SESSION, draw=1, event=event, release=release)
    assert [json.loads(line)["what"] for line in kit.answers(tmp_path)][2:] == ["answer", "torn", "torn"]


def test_of_two_processes_one_waits_and_each_round_is_answered_once(child, tmp_path):
    assert child(tmp_path, 0, "race") == 0
    made = [[int(number) for number in (tmp_path / name).read_text().split()] for name in ("first", "second")]
    together = sorted(made[0] + made[1])
    assert together == sorted(set(together))
    assert together
    with Ledger.open(tmp_path / "client.ledger.jsonl", shared=True) as ledger:
        entries = ledger.entries
    assert sum(isinstance(entry, GrantEntry) for entry in entries) == 1
    numbers = [entry.purpose for entry in entries if isinstance(entry, DrawEntry)]
    assert numbers == [f"federation draw {number}" for number in together]


def test_a_ledger_that_another_process_holds_for_itself_is_waited_for(tmp_path, monkeypatch):
    mine = kit.account(tmp_path)
    mine.join(kit.terms())
    monkeypatch.setattr(jsonl, "PATIENCE", 0.05)
    with Ledger.open(tmp_path / "client.ledger.jsonl"):
        with pytest.raises(LedgerError, match="is open for writing in another process"):
            mine.could_join(kit.terms())
        with pytest.raises(LedgerError, match="is open for writing in another process"):
            kit.account(tmp_path).could_join(kit.terms())
    mine.could_join(kit.terms())
