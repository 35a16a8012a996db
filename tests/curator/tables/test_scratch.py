"""The scratch folder: who may read it, when it goes, and what a full disk or a killed process leaves."""

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from ledgerwood.curator.tables import scratch as module
from ledgerwood.curator.tables.scratch import scratch_folder
from ledgerwood.errors import InvalidParameter, ScratchFull


def test_the_folder_is_the_owners_alone_and_goes_at_the_end(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        assert scratch.folder.parent == tmp_path
        assert stat.S_IMODE(scratch.folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_not_there_is_the_owners_alone_and_goes_too(tmp_path):
    named = tmp_path / "new" / "one"
    with scratch_folder(str(named)):
        assert stat.S_IMODE(named.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_else_uses_meanwhile_stays(tmp_path):
    with scratch_folder(tmp_path / "new" / "one"):
        (tmp_path / "new" / "other").touch()
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["other"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_goes_after_an_exception(tmp_path, error):
    with pytest.raises(error), scratch_folder(tmp_path) as scratch:
        scratch.arrays(((3,), np.int64))
        raise error
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_zeros_of_their_own_that_outlive_their_file(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        first, second, nothing = scratch.arrays(((2, 3), np.uint8), ((5,), np.float64), ((0,), np.int32))
        assert not first.any()
        assert not second.any()
        assert nothing.shape == (0,)
        first[:], second[:] = 255, 0.5
        assert list(scratch.folder.iterdir()) == []  # no name by which another process could read them
        (other,) = scratch.arrays(((4,), np.float64))
        assert not other.any()
    assert (first == 255).all()
    assert (second == 0.5).all()
    assert first.flags.c_contiguous
    assert first.flags.writeable


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_with_the_way_out_and_leaves_nothing(tmp_path, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "_reserve", full)
    with (
        pytest.raises(ScratchFull, match=r"no room .* nothing was spent.*scratch="),
        scratch_folder(tmp_path) as scratch,
    ):
        scratch.arrays(((3,), np.int64))
    assert list(tmp_path.iterdir()) == []


def test_blocks_are_reserved_before_they_are_mapped(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        path = scratch.folder / "file"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        module._reserve(file, 1 << 20)
        assert os.fstat(file).st_blocks * 512 >= 1 << 20
        os.close(file)


@pytest.mark.parametrize("named", [3, "", b"bytes"])
def test_what_is_no_folder_is_refused(named):
    with pytest.raises(InvalidParameter, match="scratch"), scratch_folder(named):
        pass


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameter, match="a folder, and it is a file"), scratch_folder(tmp_path / "file"):
        pass


@pytest.mark.slow  # a second interpreter
def test_what_a_killed_process_left_goes_at_the_next_start_and_a_living_ones_stays(tmp_path):
    program = """
        import sys, numpy as np
        from ledgerwood.curator.tables.scratch import scratch_folder
        with scratch_folder(sys.argv[1]) as scratch:
            arrays = scratch.arrays(((1 << 20,), np.uint8))
            print(scratch.folder, flush=True)
            sys.stdin.read()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    theirs = Path(other.stdout.readline().strip())
    (tmp_path / "mine.txt").write_text("not a scratch folder")
    with scratch_folder(tmp_path) as scratch:
        assert {each.name for each in tmp_path.iterdir()} == {
            "mine.txt", theirs.name, scratch.folder.name,
        }  # fmt: skip
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert list(theirs.iterdir()) == []  # no row is left, whoever looks
    with scratch_folder(tmp_path) as scratch:
        assert {each.name for each in tmp_path.iterdir()} == {"mine.txt", scratch.folder.name}
    other.stdin.close()
    other.stdout.close()
