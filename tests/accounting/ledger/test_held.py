"""Files that are replaced, removed or renamed under a ledger: nothing is acknowledged that nobody would find."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger import jsonl as held
from ledgerwood.errors import BudgetExceeded, InvalidParameter, LedgerError, LedgerWriteFailed

ROOT = Path(__file__).resolve().parents[3]
A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=0.0, adjacency=A)
MOST = PureEvent(epsilon=0.8, adjacency=A)
LITTLE = PureEvent(epsilon=0.1, adjacency=A)


def create(path):
    return Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ledger.jsonl"


@pytest.mark.slow  # races of several processes
def test_processes_that_spend_and_save_lose_nothing():
    """5 seconds; LEDGERWOOD_RACE_SECONDS=60 for a nightly run. The benchmark prints the figures."""
    seconds = os.environ.get("LEDGERWOOD_RACE_SECONDS", "5")
    program = [sys.executable, ROOT / "benchmarks" / "ledger_races.py", "--seconds", seconds, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60 + 2 * float(seconds))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["lost"], found["budgets granted twice"], found["chains broken"]) == (0, 0, 0)
    assert min(found[key] for key in ("acknowledged spends", "saved", "opened", "kills")) > 0


def test_nobody_spends_between_a_save_s_comparison_and_its_rename(path, monkeypatch):
    """Once, this lost the spend: the save compared, let go of its lock, and renamed an older ledger over the spend."""
    create(path).close()
    record = Ledger(BUDGET, unit=PrivacyUnit.ROW).record()
    real, refusals = jsonl._fsync, []

    def spend_meanwhile(handle):
        real(handle)
        with pytest.raises(LedgerError, match="open for writing in another") as refusal:
            create(path)
        refusals.append(refusal)

    monkeypatch.setattr(jsonl, "_fsync", spend_meanwhile)
    record.save(path)
    monkeypatch.undo()
    assert len(refusals) == 2  # before the rename, and after it until the folder is on the disk
    with create(path) as ledger:
        ledger.spend(MOST, purpose="p")
    with create(path) as ledger, pytest.raises(BudgetExceeded):
        ledger.spend(MOST, purpose="p")


def test_a_file_that_was_saved_between_opening_and_locking_is_opened_again(path, monkeypatch):
    create(path).close()
    grown = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    grown.spend(MOST, purpose="saved meanwhile")
    real, saved = held.lock, []

    def slow(file, name):
        if not saved:
            saved.append(True)
            grown.save(path)
        real(file, name)

    monkeypatch.setattr(held, "lock", slow)
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == 0.8
        with pytest.raises(BudgetExceeded):
            ledger.spend(MOST, purpose="twice")
        ledger.spend(LITTLE, purpose="on")
    assert "on" in path.read_text()


def test_a_file_that_was_removed_between_opening_and_locking_is_not_spent_from(path, monkeypatch):
    create(path).close()
    real = held.lock
    monkeypatch.setattr(held, "lock", lambda file, name: (path.unlink(missing_ok=True), real(file, name)))
    with pytest.raises(InvalidParameter, match="there is no ledger"):
        Ledger.open(path)
    assert not path.exists()
    with pytest.raises(LedgerError, match="replaced repeatedly"):
        create(path)


@pytest.mark.parametrize("how", ["removed", "moved", "copied back", "cut", "written to"])
def test_an_open_ledger_whose_file_was_touched_grants_and_draws_nothing(path, how):
    with create(path) as ledger:
        grant = ledger.grant(LITTLE, purpose="before")
        before, aside = path.read_bytes(), path.with_name("aside")
        match how:
            case "removed":
                path.unlink()
            case "moved":
                path.rename(aside)
            case "copied back":
                shutil.copy(path, aside)
                aside.replace(path)
            case "cut":
                os.truncate(path, len(before) // 2)
            case "written to":
                path.write_bytes(before + b"more\n")
        entries = ledger.entries
        with pytest.raises(LedgerError, match="nothing was recorded"):
            ledger.spend(LITTLE, purpose="after")
        with pytest.raises(LedgerError, match="nothing was recorded"):
            grant.draw(LITTLE, purpose="after")
        assert ledger.entries == entries
        if how == "moved":
            assert aside.read_bytes() == before
            aside.rename(path)
            grant.draw(LITTLE, purpose="the file is back")


def test_a_file_that_is_replaced_during_a_write_does_not_acknowledge_it(path, monkeypatch):
    with create(path) as ledger:
        shutil.copy(path, path.with_name("copy"))
        real = jsonl._fsync
        monkeypatch.setattr(jsonl, "_fsync", lambda h: (real(h), path.with_name("copy").replace(path)))
        with pytest.raises(LedgerError, match="moved, removed or replaced"):
            ledger.grant(LITTLE, purpose="during")
        assert len(ledger.entries) == 1


def test_another_working_folder_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with create("run.ledger.jsonl") as ledger:
        monkeypatch.chdir("/")
        ledger.spend(LITTLE, purpose="elsewhere")
    assert len((tmp_path / "run.ledger.jsonl").read_text().splitlines()) == 3


def test_saving_by_a_symbolic_link_replaces_the_file_and_keeps_the_link(path, tmp_path):
    """Once, the link became a second file: one budget by each name."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.save(link)
    ledger.spend(MOST, purpose="p")
    ledger.save(link)
    assert link.is_symlink()
    for name in (path, link):
        with Ledger.open(name) as again, pytest.raises(BudgetExceeded):
            again.spend(MOST, purpose="twice")
    with Ledger.open(link), pytest.raises(LedgerError, match="open for writing in another"):
        ledger.save(path)


def test_a_link_that_was_turned_to_another_file_is_noticed(path, tmp_path):
    link = tmp_path / "link.jsonl"
    create(path).close()
    link.symlink_to(path)
    with Ledger.open(link) as ledger:
        link.unlink()
        link.symlink_to(tmp_path / "other")
        with pytest.raises(LedgerError, match="no longer the file"):
            ledger.spend(LITTLE, purpose="p")


def test_a_file_with_two_names_is_not_split_by_a_save(path, tmp_path):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.save(path)
    os.link(path, tmp_path / "second name")
    ledger.spend(MOST, purpose="p")
    with pytest.raises(LedgerError, match="2 names"):
        ledger.save(path)
    (tmp_path / "second name").unlink()
    ledger.save(path)


def test_what_is_no_file_is_refused(tmp_path):
    for place in (Path("/dev/null"), tmp_path):
        with pytest.raises(LedgerError, match="regular file|cannot be opened"):
            create(place)
        with pytest.raises(LedgerError, match="regular file|cannot be opened"):
            Ledger(BUDGET, unit=PrivacyUnit.ROW).save(place)
    assert Path("/dev/null").is_char_device()


def test_a_save_keeps_the_mode_of_the_file(path):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.save(path)
    path.chmod(0o640)
    ledger.spend(LITTLE, purpose="p")
    ledger.save(path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("links", [True, False])
def test_a_save_to_a_new_name_never_replaces_what_came_there_meanwhile(path, monkeypatch, links):
    real, came = os.link, []

    def link(source, target):
        if not came:
            came.append(True)
            with create(path) as ledger:
                ledger.spend(MOST, purpose="meanwhile")
        if not links:
            raise OSError(errno.EPERM, "Operation not permitted")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    stranger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    stranger.spend(LITTLE, purpose="a stranger's")
    with pytest.raises(LedgerError, match="does not contain the beginning"):
        stranger.save(path)
    with Ledger.open(path) as ledger:
        assert ledger.spent().epsilon == 0.8


def test_a_save_without_hard_links_is_whole_too(path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    ledger.spend(LITTLE, purpose="p")
    ledger.save(path)
    assert path.read_text().splitlines() == list(ledger.record().lines)
    assert list(path.parent.iterdir()) == [path]


def test_a_save_whose_folder_could_not_be_synced_says_that_it_is_written(path, monkeypatch):
    def full(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(jsonl, "sync_folder", full)
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    with pytest.raises(LedgerWriteFailed, match="was written, but may be lost"):
        ledger.save(path)
    monkeypatch.undo()
    assert path.read_text().splitlines() == list(ledger.record().lines)
    assert list(path.parent.iterdir()) == [path]


def test_a_reopened_file_s_name_is_made_durable_before_its_first_grant(path, monkeypatch):
    """Whoever renamed it into place may have died before that: a loss of power would bring the older file back."""
    create(path).close()
    synced = []
    monkeypatch.setattr(jsonl, "sync_folder", synced.append)
    with Ledger.open(path) as ledger:
        ledger.spend(LITTLE, purpose="first")
        assert synced == [path.parent]
        ledger.spend(LITTLE, purpose="second")
        assert synced == [path.parent]


def test_a_closed_ledger_s_file_is_free_though_a_forked_child_lives_on(path):
    ready, release = os.pipe()
    ledger = create(path)
    child = os.fork()
    if child == 0:
        os.close(release)
        os.read(ready, 1)
        os._exit(0)
    try:
        ledger.close()
        Ledger.open(path).close()
    finally:
        os.close(release)
        os.waitpid(child, 0)
        os.close(ready)


def test_a_forked_child_that_closes_its_copy_does_not_free_the_file(path):
    with create(path) as ledger:
        child = os.fork()
        if child == 0:
            ledger.close()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(LedgerError, match="open for writing in another"):
            Ledger.open(path)
        ledger.spend(LITTLE, purpose="p")


@pytest.mark.parametrize("how", ["removed", "older copy"])
def test_a_database_file_that_was_put_aside_is_not_spent_from(tmp_path, how):
    pytest.importorskip("sqlalchemy")
    file = tmp_path / "team.db"
    with Ledger.open(f"sqlite:///{file}", dataset="d", budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
        shutil.copy(file, tmp_path / "copy.db")
        ledger.spend(LITTLE, purpose="before")
        file.rename(tmp_path / "aside.db")
        if how == "older copy":
            (tmp_path / "copy.db").replace(file)
        with pytest.raises(LedgerError):
            ledger.spend(LITTLE, purpose="after")
        (tmp_path / "aside.db").replace(file)
        assert ledger.spent().epsilon == 0.1
        ledger.spend(LITTLE, purpose="the file is back")
