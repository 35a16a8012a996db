"""Vault files: claimed on the disk before anybody reads a row, whole after any failure, held by one process."""

import errno
import gc
import hashlib
import os
import shutil
import signal
import stat
import time
import warnings

import numpy as np
import pytest

from ledgerwood.accounting import Adjacency, Budget, GaussianEvent, Ledger, PrivacyUnit
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.curator.tables import vault_files
from ledgerwood.curator.tables.vault import RowVault
from ledgerwood.errors import LedgerCorrupted, LedgerError, LedgerWriteFailed

A = Adjacency.ADD_REMOVE
EVENT = GaussianEvent(noise_multiplier=20.0, adjacency=A)
RECEIPT = (
    Ledger(Budget(epsilon=1.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    .grant(EVENT, purpose="stream")
    .draw(EVENT, purpose="stream")
)


def keys(*values):
    return read_keys(list(values), len(values))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.vault"


@pytest.fixture
def used(path):
    """A closed vault in which three units have 1, 2 and 3 left."""
    with RowVault.open(path) as vault:
        vault.begin(RECEIPT)
        vault.claim(keys("a", "b", "c"), RECEIPT)
        vault.settle(np.array([1, 2, 3]))
    return path


def left_of(path, *names):
    with RowVault.open(path) as vault:
        left = vault.claim(keys(*names), RECEIPT)
        vault.settle(left)
        return left.tolist()


def test_a_file_is_its_owners_alone_and_24_bytes_a_unit(path):
    with RowVault.open(path) as vault:
        vault.begin(RECEIPT)
        empty = path.stat().st_size
        vault.claim(read_keys(np.arange(100), 100), RECEIPT)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert 2400 <= path.stat().st_size - empty <= 2420
    assert [file.name for file in path.parent.iterdir()] == ["rows.vault"]


def test_what_is_settled_is_there_again_and_what_is_not_is_spent(used):
    assert left_of(used, "c", "a", "new") == [3, 1, FULL]
    with RowVault.open(used) as vault:
        vault.claim(keys("a", "later"), RECEIPT)
    with RowVault.open(used) as vault:
        assert (vault.draw, vault.claims) == (RECEIPT.hash, 3)
        assert vault.claim(keys("a", "b", "later"), RECEIPT).tolist() == [0, 2, 0]


def test_a_claim_is_on_the_disk_before_it_returns(used, monkeypatch):
    synced = []
    with RowVault.open(used) as vault:
        monkeypatch.setattr(vault_files, "_fsync", lambda handle: synced.append("file"))
        monkeypatch.setattr(vault_files, "sync_folder", lambda folder: synced.append(folder))
        vault.claim(keys("a"), RECEIPT)
        assert synced == ["file", used.parent]
        on_disk = vault_files.decode(used.read_bytes(), used)
        assert sorted(on_disk.left.tolist()) == [0, 2, 3]


def test_a_file_has_one_holder(used, fork):
    def another():
        try:
            RowVault.open(used)
        except LedgerError as refusal:
            return 7 if "open for writing in another" in str(refusal) else 1
        return 0

    with RowVault.open(used) as vault:
        with pytest.raises(LedgerError, match="open for writing in another"):
            RowVault.open(used)
        vault.claim(keys("a"), RECEIPT)  # the file is another one now, and held too
        child = fork(another)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    RowVault.open(used).close()


def test_a_lock_on_a_file_that_was_replaced_keeps_nobody_out(used, monkeypatch):
    """Between opening and locking, the holder replaces the file and goes away: what it was is not what is read."""
    lock, replaced = jsonl.lock, []

    def slow(file, name):
        if not replaced:
            replaced.append(True)
            shutil.copy(used, used.with_name("copy"))
            with RowVault.open(used) as vault:
                vault.claim(keys("a", "b", "c"), RECEIPT)
        lock(file, name)

    monkeypatch.setattr(jsonl, "lock", slow)
    with RowVault.open(used) as vault:
        assert vault.claim(keys("a", "b", "c"), RECEIPT).tolist() == [0, 0, 0]


def test_a_closed_vault_writes_nothing(used):
    vault = RowVault.open(used)
    vault.claim(keys("a"), RECEIPT)
    vault.close()
    with pytest.raises(LedgerError, match="was closed"):
        vault.settle(np.array([1]))
    assert left_of(used, "a", "b") == [0, 2]


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_forgotten_vault_gives_its_file_back(used):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vault = RowVault.open(used)
        del vault
        gc.collect()
        assert left_of(used, "a") == [1]


def test_every_flipped_bit_is_found_and_the_file_left_alone(used):
    whole = used.read_bytes()
    for place in range(len(whole)):
        bad = bytearray(whole)
        bad[place] ^= 1 << (place % 8)
        used.write_bytes(bad)
        with pytest.raises(LedgerCorrupted, match="rows.vault"):
            RowVault.open(used)
        assert used.read_bytes() == bad
    used.write_bytes(whole)
    assert left_of(used, "a", "b", "c") == [1, 2, 3]


def test_every_cut_is_found(used):
    whole = used.read_bytes()
    for length in (*range(0, len(whole), 7), len(whole) - 1):
        used.write_bytes(whole[:length])
        with pytest.raises(LedgerCorrupted):
            RowVault.open(used)
    used.write_bytes(whole + b"\0")
    with pytest.raises(LedgerCorrupted):
        RowVault.open(used)


def resealed(data, old, new):
    """A forged file: altered, with a checksum that matches."""
    body = data[:-32].replace(old, new)
    assert body != data[:-32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"version":2', b'"version":1', "version 1, not 2"),
        (b'"format":"ledgerwood row vault"', b'"format":"diary"', "not a row vault"),
        (b'"units":3', b'"units":4', "length"),
        (b'"units":3', b'"units":-3', "length"),
        (b'"units":3', b'"units":"3"', "first line says"),
        (b'"claims":1', b'"claims":-1', "claims"),
        (b'"keys":null', b'"keys":"poems"', "kind of keys"),
        ((2).to_bytes(8, "little"), (FULL + 1).to_bytes(8, "little"), "more left than a full budget"),
        ((2).to_bytes(8, "little"), b"\xff" * 8, "less than nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_whatever_its_checksum(used, old, new, problem):
    used.write_bytes(resealed(used.read_bytes(), old, new))
    with pytest.raises(LedgerCorrupted, match=problem):
        RowVault.open(used)


def test_units_out_of_order_are_refused(used):
    contents = vault_files.decode(used.read_bytes(), used)
    body = used.read_bytes()[:-32]
    start = body.index(b"\n") + 1
    first = body[start : start + 16]
    forged = body[: start + 16] + first + body[start + 32 :]
    assert len(contents.units) == 3
    used.write_bytes(forged + hashlib.blake2b(forged, digest_size=32).digest())
    with pytest.raises(LedgerCorrupted, match="out of order"):
        RowVault.open(used)


def test_a_copy_that_is_put_back_is_noticed_while_open_and_by_the_count_of_claims_after(used):
    old = used.with_name("copy")
    shutil.copy(used, old)
    with RowVault.open(used) as vault:
        vault.claim(keys("a"), RECEIPT)
        vault.settle(np.array([0]))
        seen = vault.claims
        old.replace(used)
        with pytest.raises(LedgerError, match="no longer the file"):
            vault.claim(keys("b"), RECEIPT)
    with RowVault.open(used) as vault:
        assert vault.claims < seen


def test_a_removed_file_is_not_written_again(used):
    with RowVault.open(used) as vault:
        vault.claim(keys("a"), RECEIPT)
        used.unlink()
        with pytest.raises(LedgerError, match="no longer the file"):
            vault.settle(np.array([1]))
    assert not used.exists()


def test_a_link_is_followed(used):
    link = used.with_name("link")
    link.symlink_to(used)
    assert left_of(link, "a") == [1]
    assert link.is_symlink()
    with RowVault.open(used) as vault:
        assert vault.claims == 2


def test_what_a_killed_holder_left_behind_is_removed(used):
    part, others = used.with_name("rows.vault.x7.part"), ("other.part", "rows.vault.2.x7.part", "rows.vault.2")
    for name in (part.name, *others):
        used.with_name(name).touch()
    RowVault.open(used).close()
    assert not part.exists()
    assert all(used.with_name(name).exists() for name in others)


def refuse(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("step", ["_write", "_fsync", "sync_folder", "mkstemp"])
def test_a_failed_write_loses_nothing_and_may_be_tried_again(used, monkeypatch, code, step):
    place = vault_files.tempfile if step == "mkstemp" else vault_files
    with RowVault.open(used) as vault:
        with monkeypatch.context() as patch:
            patch.setattr(place, step, refuse(code))
            with pytest.raises(LedgerWriteFailed, match=os.strerror(code)) as failure:
                vault.claim(keys("a", "new"), RECEIPT)
            assert failure.value.errno == code
        assert vault.claim(keys("a", "b", "new"), RECEIPT).tolist() == [1, 2, FULL]
        with monkeypatch.context() as patch:
            patch.setattr(place, step, refuse(code))
            with pytest.raises(LedgerWriteFailed):
                vault.settle(np.array([1, 1, 5]))
        vault.settle(np.array([1, 1, 5]))
    assert left_of(used, "a", "b", "c", "new") == [1, 1, 3, 5]
    assert [file.name for file in used.parent.iterdir()] == ["rows.vault"]


def test_a_second_try_gives_back_no_more_than_the_first(used, monkeypatch):
    with RowVault.open(used) as vault:
        vault.claim(keys("c"), RECEIPT)
        with monkeypatch.context() as patch:
            patch.setattr(vault_files, "sync_folder", refuse(errno.EIO))
            with pytest.raises(LedgerWriteFailed):
                vault.settle(np.array([1]))
        with pytest.raises(ValueError, match="the claimed amount"):
            vault.settle(np.array([2]))
        vault.settle(np.array([1]))


def test_an_interrupt_leaves_one_whole_file(used, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with RowVault.open(used) as vault:
        for step in ("_write", "_fsync"):
            with monkeypatch.context() as patch:
                patch.setattr(vault_files, step, interrupt)
                with pytest.raises(KeyboardInterrupt):
                    vault.claim(keys("a"), RECEIPT)
        assert vault.claim(keys("a"), RECEIPT).tolist() == [1]
    assert [file.name for file in used.parent.iterdir()] == ["rows.vault"]


@pytest.mark.parametrize("folder", ["missing", "/proc"], ids=["missing", "read-only"])
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path, folder):
    with pytest.raises(LedgerWriteFailed, match="was not made"):
        RowVault.open(tmp_path / folder / "rows.vault")


def test_something_else_at_the_path_is_refused(tmp_path, path):
    with pytest.raises(LedgerError, match="cannot be opened"):
        RowVault.open(tmp_path)
    path.write_text('{"version": 1}\n')
    with pytest.raises(LedgerCorrupted, match="not a row vault"):
        RowVault.open(path)
    assert path.read_text() == '{"version": 1}\n'


def test_two_that_create_at_once_do_not_overwrite_each_other(path, monkeypatch):
    write = vault_files._write_part

    def late(place, data):
        monkeypatch.undo()
        with RowVault.open(path) as first:
            first.begin(RECEIPT)
        return write(place, data)

    monkeypatch.setattr(vault_files, "_write_part", late)
    with pytest.raises(LedgerWriteFailed, match="was not made"):
        RowVault.open(path)
    with RowVault.open(path) as vault:
        assert vault.draw == RECEIPT.hash
    assert [file.name for file in path.parent.iterdir()] == ["rows.vault"]


UNITS = 400  # more than 12 kills can take, 8 at a time; and a pipe carries as many numbers whole


def spend_until_killed(path, pipe):
    """Claim random units, use a third of what each has, say so, settle; for ever."""
    rng = np.random.default_rng(os.getpid())
    with RowVault.open(path) as vault:
        while True:
            units = rng.permutation(UNITS)[: rng.integers(1, 9)]
            left = vault.claim(read_keys(units, len(units)), RECEIPT)
            used = np.zeros(UNITS, dtype=np.int64)
            used[units] = (left + 2) // 3
            os.write(pipe, used.tobytes())
            vault.settle(left - used[units])


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_killed_processes_lose_budget_at_most(path, fork):
    with RowVault.open(path) as vault:
        vault.begin(RECEIPT)
    rng, spent, rounds = np.random.default_rng(7), np.zeros(UNITS, dtype=np.int64), 0
    for _ in range(12):
        reader, writer = os.pipe()
        child = fork(lambda writer=writer: spend_until_killed(path, writer))
        os.close(writer)
        first = os.read(reader, 8 * UNITS)  # it runs
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        with os.fdopen(reader, "rb") as pipe:
            said = np.frombuffer(first + pipe.read(), dtype=np.int64).reshape(-1, UNITS)
        rounds += len(said)
        spent += said.sum(axis=0)
        with RowVault.open(path) as vault:
            assert (vault._contents.left <= FULL).all()
            left = vault.claim(read_keys(np.arange(UNITS), UNITS), RECEIPT)
            vault.settle(left)
        assert (spent + left <= FULL).all()
    assert rounds >= 12
    assert 0 < left.sum() < UNITS * FULL
    assert [file.name for file in path.parent.iterdir()] == ["rows.vault"]


def test_a_vault_that_cannot_take_on_a_stream_says_so_before_it_is_paid(path, monkeypatch):
    vault = RowVault.open(path)
    vault.prepare()
    with monkeypatch.context() as patch:
        patch.setattr(vault_files, "_write", refuse(errno.ENOSPC))
        with pytest.raises(LedgerWriteFailed, match="No space"):
            vault.prepare()
    vault.prepare()
    vault.begin(RECEIPT)
    with pytest.raises(LedgerError, match="a new stream needs a new vault"):
        vault.prepare()
    vault.require(RECEIPT, claims=0)
    vault.claim(keys("a"), RECEIPT)
    vault.require(RECEIPT, claims=1)
    with pytest.raises(LedgerError, match="has recorded 1 claims, and the stream has made 2"):
        vault.require(RECEIPT, claims=2)
    vault.close()
    with pytest.raises(LedgerError, match="was closed"):
        vault.require(RECEIPT, claims=1)
    closed = RowVault.open(path.with_name("new.vault"))
    closed.close()
    with pytest.raises(LedgerError, match="was closed"):
        closed.prepare()
