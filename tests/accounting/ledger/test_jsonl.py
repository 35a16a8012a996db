"""Ledger files: durable before anybody reads a row, whole after any failure, held by one writer."""

import errno
import gc
import os
import stat
import subprocess
import sys
import warnings

import pytest

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
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.errors import DrawRefused, InvalidParameter, LedgerCorrupted, LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ledger.jsonl"


def create(path, **terms):
    return Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW, **terms)


def test_every_entry_is_in_the_file_before_the_call_returns(path):
    with create(path, dataset="clinic") as ledger:
        assert len(path.read_text().splitlines()) == 1
        grant = ledger.grant(Repeated(pure(0.1), count=2), purpose="train")
        assert len(path.read_text().splitlines()) == 2
        grant.draw(pure(0.1), purpose="step 1")
        assert path.read_text().splitlines() == list(ledger.record().lines)
        assert verify_ledger(path, head=ledger.head).draws == 1


def test_terms_and_grants_are_synced_and_draws_flushed(path, monkeypatch):
    synced = []
    monkeypatch.setattr(jsonl, "_fsync", lambda handle: synced.append(len(path.read_text().splitlines())))
    with create(path) as ledger:
        assert synced == [1, 1]  # the file, then the folder that names it
        grant = ledger.grant(pure(0.1), purpose="train")
        assert synced == [1, 1, 2]
        grant.draw(pure(0.1), purpose="step 1")
        assert synced == [1, 1, 2]


def test_reopening_keeps_what_was_spent_and_resumes_no_purse(path):
    with create(path) as ledger:
        grant = ledger.grant(Repeated(pure(0.1), count=2), purpose="train")
        grant.draw(pure(0.1), purpose="step 1")
        spent, head = ledger.spent(), ledger.head
    with Ledger.open(path) as again:
        assert (again.spent(), again.head, again.budget, again.unit) == (spent, head, BUDGET, PrivacyUnit.ROW)
        new = again.grant(pure(0.1), purpose="more")
        new.draw(pure(0.1), purpose="it")
        with pytest.raises(DrawRefused):
            new.draw(pure(0.1), purpose="the old plan's second half")
        with pytest.raises(LedgerError, match="closed"):
            grant.draw(pure(0.1), purpose="step 2")
    assert verify_ledger(path).grants == 2


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"budget": Budget(epsilon=2.0, delta=1e-5, adjacency=A)}, "budget"),
        ({"unit": PrivacyUnit.USER}, "unit"),
        ({"filter": GDPFilter()}, "filter"),
        ({"dataset": "another"}, "dataset"),
    ],
)
def test_other_terms_are_refused_and_both_values_named(path, terms, name):
    create(path, dataset="clinic").close()
    with pytest.raises(LedgerError, match=f"{name}=.*{name}=") as refusal:
        Ledger.open(path, **terms)
    assert repr(next(iter(terms.values()))) in str(refusal.value)
    Ledger.open(path, dataset="clinic", budget=BUDGET, unit=PrivacyUnit.ROW, filter=BasicFilter()).close()


def test_a_new_file_needs_terms_and_a_url_is_refused(path):
    with pytest.raises(InvalidParameter, match="budget="):
        Ledger.open(path)
    assert not path.exists()
    with pytest.raises(InvalidParameter, match="delta"):
        Ledger.open(path, budget=Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW, filter=GDPFilter())
    assert not path.exists()
    with pytest.raises(InvalidParameter, match="sqlite"):
        Ledger.open("mysql://host/ledgers", dataset="clinic", budget=BUDGET, unit=PrivacyUnit.ROW)
    path.touch()
    with pytest.raises(InvalidParameter, match="empty"):
        Ledger.open(path)
    create(path).close()
    with pytest.raises(LedgerError):
        create(path.parent)


@pytest.mark.slow  # any sequence of grants
def test_a_file_has_one_writer(path):
    with create(path):
        with pytest.raises(LedgerError, match="open for writing in another"):
            Ledger.open(path)
        other = subprocess.run(
            [sys.executable, "-c", f"from ledgerwood.accounting import Ledger; Ledger.open({str(path)!r})"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "open for writing in another" in other.stderr
    Ledger.open(path).close()


@pytest.mark.slow  # any sequence of grants
def test_a_forgotten_ledger_gives_its_file_back(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger = create(path)
        del ledger
        gc.collect()
        with create(path) as again:
            assert [entry.index for entry in again.entries] == [0]


def no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def half_then_full(file, data):
    if len(data) > 40:
        return os.write(file.fileno(), data[: len(data) // 2])
    return no_space()


class NoFlush:
    """The raw file, but its flush finds the disk full."""

    def __init__(self, file):
        self.file, self.full = file, True

    def flush(self):
        if self.full:
            no_space()
        self.file.flush()

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("where", ["write", "half", "flush", "fsync"])
def test_a_full_disk_records_nothing_and_loses_nothing(path, monkeypatch, where):
    with create(path) as ledger:
        ledger.grant(pure(0.25), purpose="before")
        content, before = path.read_bytes(), (ledger.entries, ledger.spent(), ledger.head)
        if where == "flush":
            ledger._store._file = NoFlush(ledger._store._file)
        elif where == "fsync":
            real, calls = jsonl._fsync, []
            monkeypatch.setattr(jsonl, "_fsync", lambda h: real(h) if calls else (calls.append(1), no_space()))
        else:
            monkeypatch.setattr(jsonl, "_write", no_space if where == "write" else half_then_full)
        with pytest.raises(LedgerWriteFailed, match="No space left") as failure:
            ledger.grant(pure(0.25), purpose="during")
        assert failure.value.errno == errno.ENOSPC
        assert path.read_bytes() == content
        assert before == (ledger.entries, ledger.spent(), ledger.head)
        monkeypatch.undo()
        if where == "flush":
            ledger._store._file.full = False
        ledger.grant(pure(0.25), purpose="after")
        assert ledger.spent().epsilon == 0.5
    assert verify_ledger(path).grants == 2


def test_a_draw_that_cannot_be_written_is_not_drawn(path, monkeypatch):
    with create(path) as ledger:
        grant = ledger.grant(pure(0.25), purpose="train")
        monkeypatch.setattr(jsonl, "_write", no_space)
        with pytest.raises(LedgerWriteFailed):
            grant.draw(pure(0.25), purpose="step")
        monkeypatch.undo()
        assert sum(grant.remaining.values()) == 1
        grant.draw(pure(0.25), purpose="step")


def test_a_failed_write_that_cannot_be_taken_back_ends_the_ledger(path, monkeypatch):
    with create(path) as ledger:
        monkeypatch.setattr(jsonl, "_write", half_then_full)
        monkeypatch.setattr(os, "ftruncate", no_space)
        with pytest.raises(LedgerWriteFailed, match="refuses further use"):
            ledger.grant(pure(0.25), purpose="during")
        monkeypatch.undo()
        assert len(ledger.entries) == 1
        with pytest.raises(LedgerError, match="refuses further use"):
            ledger.grant(pure(0.25), purpose="after")
    with pytest.warns(RuntimeWarning, match="cut short"):
        Ledger.open(path).close()


def test_an_interrupt_in_the_middle_of_a_write_records_nothing(path, monkeypatch):
    def interrupted(file, data):
        os.write(file.fileno(), data[:30])
        raise KeyboardInterrupt

    with create(path) as ledger:
        content = path.read_bytes()
        monkeypatch.setattr(jsonl, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.grant(pure(0.25), purpose="during")
        monkeypatch.undo()
        assert path.read_bytes() == content
        ledger.grant(pure(0.25), purpose="after")


def test_an_entry_that_reached_the_file_but_not_the_ledger_stops_it(path, monkeypatch):
    with create(path) as ledger:
        monkeypatch.setattr(type(ledger._state), "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ledger.grant(pure(0.25), purpose="during")
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="interrupted; reopen"):
            ledger.grant(pure(0.25), purpose="after")
    with Ledger.open(path) as again:
        assert again.spent().epsilon == 0.25


@pytest.mark.parametrize("keep", [1, 50, -1])
def test_a_torn_last_line_is_dropped_with_a_warning(path, keep):
    with create(path) as ledger:
        ledger.grant(pure(0.25), purpose="acknowledged")
        whole = path.read_bytes()
        ledger.grant(pure(0.25), purpose="torn")
        line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:keep])
    with pytest.warns(RuntimeWarning, match="never acknowledged"), Ledger.open(path) as again:
        assert again.spent().epsilon == 0.25
        assert path.read_bytes() == whole
        again.grant(pure(0.5), purpose="on")
    assert verify_ledger(path).epsilon_readded == 0.75


@pytest.mark.slow  # any sequence of grants
def test_a_complete_grant_line_stays_although_the_process_died(path):
    code = (
        "import os\n"
        "from ledgerwood.accounting import *\n"
        "A = Adjacency.ADD_REMOVE\n"
        f"l = Ledger.open({str(path)!r}, budget=Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW)\n"
        "l.grant(PureEvent(epsilon=0.25, adjacency=A), purpose='train')\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Ledger.open(path) as again:
            assert again.spent().epsilon == 0.25


def test_an_edited_file_is_not_reopened(path):
    with create(path) as ledger:
        ledger.grant(pure(0.25), purpose="train")
    path.write_text(path.read_text().replace("train", "trail"))
    with pytest.raises(LedgerCorrupted, match="entry 1"):
        Ledger.open(path)
    path.write_bytes(b"\xff\n")
    with pytest.raises(LedgerError, match="UTF-8"):
        Ledger.open(path)


def test_saving_is_whole_or_not_at_all(path, monkeypatch):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.save(path)
    content = path.read_bytes()
    ledger.grant(GaussianEvent(noise_multiplier=9.0, adjacency=A), purpose="p")
    monkeypatch.setattr(jsonl, "_fsync", no_space)
    with pytest.raises(LedgerWriteFailed, match="No space left"):
        ledger.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    ledger.save(path)
    assert verify_ledger(path, head=ledger.head).grants == 1
    with pytest.raises(LedgerWriteFailed):
        ledger.save(path.parent / "nowhere" / "x.jsonl")


def test_a_saved_file_is_synced_before_it_has_its_name_and_its_folder_after(path, monkeypatch):
    """Without the second sync a crash could undo the rename; without the first, leave the name without its content."""
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    lines, synced, real = ledger.record().lines, [], jsonl._fsync

    def record(handle):
        mode = os.fstat(handle)
        folder = stat.S_ISDIR(mode.st_mode)
        where = (mode.st_dev, mode.st_ino) == (path.parent.stat().st_dev, path.parent.stat().st_ino)
        synced.append((folder, where, path.read_text().splitlines() if path.exists() else None))
        real(handle)

    monkeypatch.setattr(jsonl, "_fsync", record)
    ledger.save(path)
    assert synced == [(False, False, None), (True, True, list(lines))]


def test_no_save_overwrites_the_file_of_an_open_ledger(path):
    stranger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    with create(path) as ledger:
        grant = ledger.grant(pure(0.1), purpose="p")
        for saved in (ledger, ledger.record(), stranger, stranger.record()):
            with pytest.raises(LedgerError, match="open for writing in another"):
                saved.save(path)
        grant.draw(pure(0.1), purpose="p")
        assert path.read_text().splitlines() == list(ledger.record().lines)
        ledger.save(path.with_name("copy.jsonl"))
        assert path.with_name("copy.jsonl").read_bytes() == path.read_bytes()


def test_no_save_overwrites_another_ledger(path):
    first, second = Ledger(BUDGET, unit=PrivacyUnit.ROW), Ledger(BUDGET, unit=PrivacyUnit.ROW)
    first.grant(pure(0.1), purpose="first")
    second.grant(pure(0.2), purpose="second")
    first.save(path)
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="does not contain the beginning"):
        second.save(path)
    assert path.read_bytes() == content
    earlier = first.record()
    first.grant(pure(0.1), purpose="later")
    first.save(path)
    assert path.read_bytes().startswith(content)
    assert len(path.read_bytes()) > len(content)
    with pytest.raises(LedgerError, match="does not contain the beginning"):
        earlier.save(path)  # it has grown: the later grant would be forgotten


def test_read_lines_refuses_what_is_cut_short(path):
    with pytest.raises(LedgerError, match="cannot be read"):
        jsonl.read_lines(path)
    path.write_text("{}")
    with pytest.raises(LedgerError, match="cut short"):
        jsonl.read_lines(path)
    path.write_text("a\nb\n")
    assert jsonl.read_lines(path) == ["a", "b"]
