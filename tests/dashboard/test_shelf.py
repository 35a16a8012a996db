"""Ledgers that are followed: what is appended, what is altered, what cannot be read, and what the verifier says."""

import shutil
import sqlite3
import threading
import time

import pytest

import ledgerwood as lw
from ledgerwood.dashboard import books, shown, verifying
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.dashboard.sources import DatabaseSource, FileSource, FolderSource, sources_at
from ledgerwood.dashboard.verifying import ImmediateVerifier, ProcessVerifier, Verifier
from ledgerwood.errors import InvalidParameter

from .conftest import budget, pure


def spent(place, count, dataset="x", **terms):
    with lw.Ledger.open(place, dataset=dataset, budget=budget(), unit=lw.PrivacyUnit.ROW, **terms) as ledger:
        for k in range(count):
            ledger.spend(pure(0.01), purpose=f"count {k}", delta=0.0)
        return ledger.record()


@pytest.fixture
def shelf():
    shelves = []

    def make(*places, verifier=None):
        shelves.append(Shelf(sources_at([str(place) for place in places]), verifier or ImmediateVerifier()))
        return shelves[-1]

    yield make
    for each in shelves:
        each.close()


def look(shelf, place=0):
    shelf.relist()
    return shelf.look(shelf.books()[place], patience=30.0)


@pytest.mark.parametrize("kind", ["file", "database"])
def test_only_what_was_appended_is_read(shelf, tmp_path, kind, monkeypatch):
    place = tmp_path / "x.ledger.jsonl" if kind == "file" else f"sqlite:///{tmp_path}/x.db"
    spent(place, 2)
    board = shelf(place)
    state = look(board).reading.state
    monkeypatch.setattr(books, "replay", lambda lines, **options: pytest.fail("read from the start again"))
    record = spent(place, 3)
    after = look(board).reading
    assert after.state is state
    assert tuple(state.entries) == record.entries
    assert after.failure is None


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_ledger_that_lost_entries_says_so_for_ever(shelf, tmp_path, kind):
    name = "x.ledger.jsonl" if kind == "file" else "x.db"
    place = tmp_path / name if kind == "file" else f"sqlite:///{tmp_path}/{name}"
    spent(place, 2)
    shutil.copy(tmp_path / name, tmp_path / "old")
    spent(place, 1)
    board = shelf(place)
    assert look(board).reading.entries == 7
    shutil.copy(tmp_path / "old", tmp_path / name)
    found = look(board)
    assert found.reading.shrunk == 7
    assert shown.outcome(found).words == "Entries are missing"
    spent(place, 0)
    assert shown.outcome(look(board)).tone == "bad"


class Kept:
    """A folder or a database with one ledger in it, which can be deleted and put back."""

    def __init__(self, kind, tmp_path):
        self.folder = tmp_path / "kept"
        self.folder.mkdir()
        self.file = self.folder / ("x.ledger.jsonl" if kind == "file" else "x.db")
        self.shown = self.folder if kind == "file" else f"sqlite:///{self.file}"
        self.ledger = self.file if kind == "file" else self.shown

    def delete(self):
        if self.ledger is self.file:
            self.file.unlink()
            return
        with sqlite3.connect(self.file) as database:
            for table in ("ledgerwood_entries", "ledgerwood_heads"):
                database.execute(f"DELETE FROM {table}")
        database.close()


def verdicts(found):
    grants = shown.grants_of(found.reading.state)
    return [row.verdict for row in shown.grant_rows(found, shown.paging(len(grants), 1), grants)]


@pytest.fixture(params=["file", "database"])
def kept(request, tmp_path):
    return Kept(request.param, tmp_path)


def spent_on_others(place, count):
    with lw.Ledger.open(place, dataset="x", budget=budget(), unit=lw.PrivacyUnit.ROW) as ledger:
        for k in range(count):
            ledger.spend(pure(0.02), purpose=f"another {k}", delta=0.0)


def test_a_backup_that_is_continued_is_never_confirmed(shelf, kept):
    spent(kept.ledger, 1)
    backup = kept.file.read_bytes()
    spent(kept.ledger, 2)
    board = shelf(kept.shown)
    assert look(board).reading.entries == 7
    kept.file.write_bytes(backup)
    said = shown.outcome(look(board))
    assert (said.tone, said.words) == ("bad", "Entries are missing")
    assert "had 7 entries" in said.sentence
    spent_on_others(kept.ledger, 1)
    assert shown.outcome(look(board)).words == "Entries are missing"
    spent_on_others(kept.ledger, 1)
    found = look(board)
    assert (found.reading.entries, found.reading.failure) == (7, None)
    assert shown.outcome(found).words == "History was replaced"
    spent_on_others(kept.ledger, 2)
    said = shown.outcome(look(board))
    assert (said.tone, said.words) == ("bad", "History was replaced")
    board.verify_again(board.books()[0])
    assert shown.outcome(look(board)).words == "History was replaced"


@pytest.mark.parametrize("more", [0, 1])
def test_grants_that_were_replaced_by_others_are_not_confirmed(shelf, kept, more):
    spent(kept.ledger, 0)
    backup = kept.file.read_bytes()
    spent(kept.ledger, 2)
    slow = Slow()
    board = shelf(kept.shown, verifier=slow)
    look(board)
    slow.go()
    assert shown.outcome(look(board)).words == "The ledger is confirmed"
    assert verdicts(look(board)) == ["confirmed"] * 2
    kept.file.write_bytes(backup)
    spent_on_others(kept.ledger, 2 + more)
    found = look(board)
    said = shown.outcome(found)
    assert found.reading.failure is None
    assert (said.tone, said.words) == ("bad", "History was replaced")
    assert found.verification is None
    assert verdicts(found) == ["not verified yet"] * (2 + more)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_ledger_that_is_deleted_and_opened_anew_is_not_confirmed(shelf, kept, count):
    spent(kept.ledger, 2)
    board = shelf(kept.shown)
    assert shown.outcome(look(board)).words == "The ledger is confirmed"
    kept.delete()
    board.relist()
    assert board.books() == []
    spent_on_others(kept.ledger, count)
    said = shown.outcome(look(board))
    assert (said.tone, said.words) == ("bad", "Entries are missing" if count == 1 else "History was replaced")
    spent_on_others(kept.ledger, 3)
    assert shown.outcome(look(board)).words == "History was replaced"


def test_a_ledger_that_is_deleted_and_put_back_is_confirmed_again(shelf, kept):
    spent(kept.ledger, 2)
    content = kept.file.read_bytes()
    board = shelf(kept.shown)
    look(board)
    kept.delete()
    board.relist()
    assert board.books() == []
    kept.file.write_bytes(content)
    assert shown.outcome(look(board)).words == "The ledger is confirmed"


def test_a_database_file_that_is_deleted_and_made_anew_is_not_confirmed(shelf, tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    spent(url, 2)
    board = shelf(url)
    assert look(board).reading.entries == 5
    (tmp_path / "x.db").unlink()
    board.relist()
    board.books()
    spent_on_others(url, 2)
    board.relist()
    board.books()
    said = shown.outcome(look(board))
    assert (said.tone, said.words) == ("bad", "History was replaced")


def test_other_terms_are_another_history(shelf, tmp_path):
    path = tmp_path / "x.ledger.jsonl"
    spent(path, 2)
    board = shelf(path)
    look(board)
    path.unlink()
    spent(path, 0, dataset="y")
    assert shown.outcome(look(board)).words == "History was replaced"


def test_a_verdict_holds_for_the_history_it_was_made_of(shelf, tmp_path):
    path = tmp_path / "x.ledger.jsonl"
    record = spent(path, 1)
    slow = Slow()
    board = shelf(path, verifier=slow)
    look(board)
    slow.go()
    found = look(board).verification
    assert (found.entries, found.head) == (3, record.entries[-1].hash)
    spent(path, 1)
    assert look(board).verification is found
    assert verdicts(look(board)) == ["not verified yet", "confirmed"]


def test_figures_of_a_part_are_said_to_be_that(shelf, tmp_path, made):
    path = tmp_path / "x.ledger.jsonl"
    record = spent(path, 3)
    whole = shown.card(look(shelf(path)))
    assert whole.part == ""
    assert whole.purses[0].left != ""
    path.write_text("".join(line + "\n" for line in record.lines).replace("count 1", "count 9"))
    failing = made(path)
    path_of_missing = tmp_path / "y.ledger.jsonl"
    spent(path_of_missing, 1)
    backup = path_of_missing.read_bytes()
    spent(path_of_missing, 1)
    missing = made(path_of_missing)
    look(missing.shelf)
    path_of_missing.write_bytes(backup)
    for board in (failing, missing):
        card = shown.card(look(board.shelf))
        assert card.outcome.tone == "bad"
        assert card.part == "of the first 3 entries, at least"
        assert [purse.left for purse in card.purses] == [""]
        for page in ("/", f"/ledger/{card.id}"):
            text = board.get(page).text
            assert ", of the first 3 entries, at least</caption>" in text
            assert "spent, at least</th>" in text
            assert "left for one more plan" not in text
            assert "used and left" not in text


def test_an_altered_entry_is_named_and_what_is_before_it_is_shown(shelf, tmp_path):
    path = tmp_path / "x.ledger.jsonl"
    record = spent(path, 3)
    lines = list(record.lines)
    lines[3] = lines[3].replace("count 1", "count 9")
    path.write_text("".join(line + "\n" for line in lines))
    found = look(shelf(path))
    assert (found.reading.entry, found.reading.entries) == (3, 3)
    said = shown.outcome(found)
    assert (said.tone, said.words) == ("bad", "Fails from entry 3 on")
    assert "the hash does not match the entry" in said.sentence
    assert "(3 entries)" in said.sentence
    assert shown.card(found).grants == 1


def test_what_is_altered_in_place_in_a_database_shows_at_the_next_verification(shelf, tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    spent(url, 2)
    board = shelf(url)
    assert shown.outcome(look(board)).tone == "good"
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("UPDATE ledgerwood_entries SET line = replace(line, 'count 0', 'count 7') WHERE position = 1")
    database.close()
    board.verify_again(board.books()[0])
    assert shown.outcome(look(board)).words == "Fails from entry 1 on"


def test_a_last_entry_that_is_altered_in_place_in_a_database_is_not_waited_for(shelf, tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    spent(url, 1)
    slow = Slow()
    board = shelf(url, verifier=slow)
    assert look(board).reading.failure is None
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("UPDATE ledgerwood_entries SET line = '{}' WHERE position = 2")
    database.close()
    slow.waiting = []
    board._standing.clear()
    look(board)
    slow.go()
    assert shown.outcome(look(board)).words == "Fails from entry 2 on"


def test_a_charge_below_its_cost_is_refuted(shelf, tmp_path):
    from dataclasses import replace

    from ledgerwood.accounting.ledger.entries import encode, sealed

    record = spent(tmp_path / "good.ledger.jsonl", 1)
    opened, grant, _ = record.entries
    forged = sealed(replace(grant, charge=replace(grant.charge, epsilon=0.001)))
    path = tmp_path / "forged.ledger.jsonl"
    path.write_text(encode(opened) + "\n" + encode(forged) + "\n")
    found = look(shelf(path))
    assert found.reading.failure is None
    assert shown.outcome(found).words == "The ledger is refuted"
    place = shown.paging(1, 1)
    assert shown.grant_rows(found, place, shown.grants_of(found.reading.state))[0].verdict == "refuted"


def checkpointed(path, cut):
    """A ledger with a checkpoint at entry 5 in which a grant is half drawn, and the part of it from there on."""
    with lw.Ledger.open(path, dataset="x", budget=budget(), unit=lw.PrivacyUnit.ROW) as ledger:
        ledger.spend(pure(0.25), purpose="before", delta=0.0)
        ledger.grant(lw.Repeated(pure(0.125), count=2), purpose="held", delta=0.0).draw(pure(0.125), purpose="one")
        ledger.checkpoint()
        ledger.spend(pure(0.5), purpose="after", delta=0.0)
        ledger.record().from_checkpoint().save(cut)


def test_what_begins_with_a_checkpoint_is_trusted_and_never_confirmed(shelf, made, tmp_path):
    path, whole = tmp_path / "x.ledger.jsonl", tmp_path / "whole" / "x.ledger.jsonl"
    whole.parent.mkdir()
    checkpointed(whole, path)
    board = shelf(path)
    found = look(board)
    said, card = shown.outcome(found), shown.card(found)
    assert (said.tone, said.words) == ("open", "Trusted before entry 5, a checkpoint")
    assert "The 5 entries before the checkpoint were not verified" in said.sentence
    assert (card.entries, card.grants, card.purses[0].spent) == (8, 3, "epsilon 1, delta 0")
    state = found.reading.state
    rows = shown.grant_rows(found, shown.paging(2, 1), shown.grants_of(state))
    assert [(row.entry, row.drawn, row.verdict) for row in rows] == [
        (6, "1 of 1", "confirmed"), (3, "1 of 2", "confirmed"),
    ]  # fmt: skip
    assert [(total.entry, total.epsilon) for total in shown.totals(state)] == [(5, 0.5), (6, 1.0)]
    with lw.Ledger.open(path, from_checkpoint=True) as ledger:
        ledger.spend(pure(0.125), purpose="more", delta=0.0)
    after = look(board)
    assert (after.reading.state, after.reading.entries) == (state, 10)
    assert after.verification.end == 8  # not again so soon
    assert shown.outcome(after).sentence.startswith("Newer entries are not verified yet (2 entries). The 5 entries")
    pages = made(path)
    page = pages.get(f"/ledger/{found.book.id}").text
    assert "Trusted before entry 5, a checkpoint" in page
    assert "Drawn before the checkpoint" in pages.get(f"/ledger/{found.book.id}/grant/3").text
    assert pages.get(f"/ledger/{found.book.id}/grant/1").status_code == 404


def test_a_part_in_place_of_the_whole_is_the_same_history_if_the_last_entry_is_there(shelf, tmp_path):
    path, cut = tmp_path / "x.ledger.jsonl", tmp_path / "cut"
    checkpointed(path, cut)
    board = shelf(path)
    assert shown.outcome(look(board)).words == "The ledger is confirmed"
    shutil.copy(cut, path)
    assert shown.outcome(look(board)).words == "Verification running"  # what was found of the whole is not said of it
    board.verify_again(board.books()[0])
    assert shown.outcome(look(board)).words == "Trusted before entry 5, a checkpoint"
    lines = cut.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2].replace("after", "other"))
    assert shown.outcome(look(board)).words == "Fails from entry 7 on"


def test_a_line_that_is_being_written_is_left_out(shelf, tmp_path):
    path = tmp_path / "x.ledger.jsonl"
    spent(path, 1)
    whole = path.read_text()
    path.write_text(whole + '{"half')
    found = look(shelf(path))
    assert found.reading.entries == 3
    assert shown.outcome(found).tone == "open"
    assert "not complete" in shown.outcome(found).words


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "Fails from entry 0 on"), (b"\xff\xfe\n", "Cannot be read"), (b"[]\n", "Fails from entry 0 on"),
     (b"\n", "Fails from entry 0 on"), (b'{"version":1}\n', "Fails from entry 0 on"),
     (b"x" * 999, "Fails from entry 0 on"),
     (b"[" * 100_000 + b"\n", "Fails from entry 0 on")],
)  # fmt: skip
def test_what_is_no_ledger_is_shown_with_what_failed(shelf, tmp_path, content, words):
    path = tmp_path / "x.ledger.jsonl"
    path.write_bytes(content)
    found = look(shelf(path))
    assert shown.outcome(found).words == words
    assert shown.card(found).title == "x.ledger.jsonl"


def test_a_file_that_is_gone_and_comes_back(shelf, tmp_path):
    path = tmp_path / "ledgers" / "x.ledger.jsonl"
    path.parent.mkdir()
    spent(path, 1)
    single, folder = shelf(path), shelf(path.parent)
    look(single)
    look(folder)
    content = path.read_bytes()
    path.unlink()
    assert "cannot be read" in look(single).reading.failure
    folder.relist()
    assert folder.books() == []
    assert folder.failures() == [
        ("ledgers", "the ledger x.ledger.jsonl was here when the dashboard looked before, and is gone")
    ]
    path.write_bytes(content)
    assert look(single).reading.failure is None
    assert look(folder).reading.failure is None
    assert folder.failures() == []


def test_a_folder_that_cannot_be_read_is_said(shelf, tmp_path):
    folder = tmp_path / "ledgers"
    folder.mkdir()
    board = shelf(folder)
    folder.rmdir()
    board.relist()
    assert board.failures() == [("ledgers", "the folder ledgers cannot be read: No such file or directory")]


class Slow(Verifier):
    """Verifies when it is told to."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def _run(self, lines, keep):
        self.waiting.append((lines, keep))

    def go(self):
        lines, keep = self.waiting.pop()
        keep(verifying._verified(lines, None))


def test_one_verification_at_a_time_and_what_came_meanwhile_is_said(shelf, tmp_path):
    path = tmp_path / "x.ledger.jsonl"
    spent(path, 1)
    slow = Slow()
    board = shelf(path, verifier=slow)
    assert shown.outcome(look(board)).words == "Verification running"
    spent(path, 1)
    look(board)
    assert len(slow.waiting) == 1
    slow.go()
    said = shown.outcome(look(board))
    assert said.words == "Confirmed up to entry 2"
    assert "(2 entries)" in said.sentence
    assert slow.waiting == [], "not at once again"
    board._standing[board.books()[0].id].again = 0.0
    look(board)
    slow.go()
    assert shown.outcome(look(board)).words == "The ledger is confirmed"


def test_the_same_lines_are_verified_once(tmp_path):
    lines = list(spent(tmp_path / "x.ledger.jsonl", 1).lines)
    slow, found = Slow(), []
    slow.verify(lines, found.append)
    slow.go()
    slow.verify(lines, found.append)
    assert found[0] is found[1]
    slow.verify(lines, found.append, anew=True)
    assert len(slow.waiting) == 1
    slow.verify([*lines[:-1], lines[-1].replace("count", "Count")], found.append)
    assert len(slow.waiting) == 2


def test_results_are_forgotten_before_they_fill_the_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(verifying, "_KEPT", 3)
    verifier = ImmediateVerifier()
    for k in range(6):
        verifier.verify([f"{k}"], lambda _: None)
    assert len(verifier._results) == 3
    monkeypatch.setattr(verifying, "_KEPT_VERDICTS", 1)
    lines = list(spent(tmp_path / "x.ledger.jsonl", 2).lines)
    verifier.verify(lines, lambda _: None)
    verifier.verify(lines[:-1], lambda _: None)
    assert len(verifier._results) == 1


def test_a_process_verifies_and_one_that_was_killed_is_not_believed(tmp_path):
    lines = list(spent(tmp_path / "x.ledger.jsonl", 1).lines)
    verifier, found, done = ProcessVerifier(), [], threading.Event()

    def then(result):
        found.append(result)
        done.set()

    try:
        verifier.verify(lines, then)
        assert done.wait(60.0)
        assert found[0].report.verdict == "confirmed"
        verifier._process.kill()
        verifier._process.join()
        done.clear()
        verifier.verify(lines, then, anew=True)
        assert done.wait(60.0)
        assert found[1].report is None
        assert "ended before it had a result" in found[1].failure
        done.clear()
        verifier.verify(lines, then, anew=True)
        assert done.wait(60.0)
        assert found[2].report.verdict == "confirmed"
    finally:
        began = time.monotonic()
        verifier.close()
    assert time.monotonic() - began < 10.0
    assert not verifier._process.is_alive()


def test_places_are_told_apart(tmp_path):
    spent(tmp_path / "x.ledger.jsonl", 0)
    spent(f"sqlite:///{tmp_path}/x.db", 0)
    found = sources_at([str(tmp_path / "x.ledger.jsonl"), str(tmp_path), f"sqlite:///{tmp_path}/x.db"])
    assert [type(source) for source in found] == [FileSource, FolderSource, DatabaseSource]
    for source in found:
        source.close()
    with pytest.raises(InvalidParameter, match="there is no file or folder"):
        sources_at([str(tmp_path / "none")])
    with pytest.raises(InvalidParameter, match="is named twice"):
        sources_at([str(tmp_path), f"{tmp_path}/."])
    with pytest.raises(InvalidParameter, match="name a ledger file"):
        sources_at([])
    with pytest.raises(InvalidParameter, match="must be the path of a JSON lines file"):
        sources_at(["mysql://x/y"])


def test_a_password_among_the_options_of_a_database_is_on_no_page(made, tmp_path):
    (tmp_path / "ledgers").mkdir()
    board = made("postgresql://u@127.0.0.1:1/none?password=hunter2&connect_timeout=2", tmp_path / "ledgers")
    board.login()
    page = board.get("/").text
    assert "127.0.0.1:1/none" in page
    assert "hunter2" not in page
