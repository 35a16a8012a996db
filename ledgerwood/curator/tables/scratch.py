"""A scratch folder: where encoded rows lie while a fit runs on more rows than memory holds.

A folder of the fit's own, of mode 700, inside the folder that was named. Each file is unlinked as soon as it is made,
where the system allows that: its rows are gone with the process, however it ends. The folder goes at the end of the
fit; one that a killed process left behind goes at the next start. docs/explanation/places.md#scratch.
"""

import errno
import itertools
import mmap
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ledgerwood import _validate
from ledgerwood.errors import ScratchFull

if sys.platform != "win32":
    import fcntl

_PREFIX = "ledgerwood-rows-"
_MOST_AT_ONCE = 1 << 26
"""Numbers that an arena takes at once, for what was not asked for yet: 512 MiB."""
_ALIGNED = 64
"""Bytes to whose multiples each array begins."""


@final
class Scratch:
    """Makes arrays of zeros that lie in files. Made by `scratch_folder`.

    Args:
        folder: of the fit's own.
    """

    __slots__ = ("_files", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = 0

    def arrays(self, *wanted: tuple[Sequence[int], DTypeLike]) -> list[NDArray[Any]]:
        """Arrays of these shapes and types, zeros, in one new file that lives as long as they do.

        The file has all of its blocks before it is mapped: a full disk is found out here, not by a later write.

        Raises:
            ScratchFull: the disk has no room for them.
        """
        places, end = [], 0
        for shape, dtype in wanted:
            kind = np.dtype(dtype)
            size = prod(shape) * kind.itemsize
            places.append((shape, kind, end))
            end += -(-size // _ALIGNED) * _ALIGNED
        room = self._mapped(max(end, _ALIGNED))
        return [np.frombuffer(room, kind, prod(shape), begin).reshape(shape) for shape, kind, begin in places]

    def try_room(self, size: int) -> None:
        """Reserve this number of bytes and release them at once.

        Raises:
            ScratchFull: the disk has no room for them.
        """
        if size:
            self._mapped(size).close()

    def _mapped(self, size: int) -> mmap.mmap:
        path = self.folder / f"{self._files:06d}"
        self._files += 1
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with suppress(OSError):  # before it has a block: a process that is killed now leaves none behind
                path.unlink()
            _reserve(file, size)
            return mmap.mmap(file, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ScratchFull(
                    f"the scratch folder {self.folder.parent} has no room for the encoded rows; nothing was spent. "
                    "Free some space there, or name a folder on a larger disk: scratch=..."
                ) from error
            raise
        finally:
            os.close(file)
            with suppress(OSError):  # where a mapped file cannot be unlinked it goes with the folder
                path.unlink()


@final
class Arena:
    """Room in the scratch folder for what need not be kept: where it is full, room is made in memory, for one query.

    Args:
        scratch: the folder.

    Attributes:
        full: whether the disk had no room for the last one that asked.
    """

    __slots__ = ("_begin", "_free", "_scratch", "_size", "full")

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._free = np.empty(0)
        self._begin = self._size = 0
        self.full = False

    def room(self, n: int) -> NDArray[np.float64]:
        """float64 (n,), zeros. Files grow with what was asked for: few are open for any number of parts."""
        if self.full:
            return np.zeros(n)
        if self._begin + n > len(self._free):
            try:
                (self._free,) = self._scratch.arrays(((max(n, min(self._size, _MOST_AT_ONCE)),), np.float64))
            except OSError:  # `ScratchFull`, or too many files are open
                self.full = True
                return np.zeros(n)
            self._begin = 0
        begin = self._begin
        self._begin += -(-n // 8) * 8
        self._size += n
        return self._free[begin : begin + n]


def _reserve(file: int, size: int) -> None:
    """Give the file all of its blocks: a mapped file that grows on a full disk kills the process."""
    if sys.platform == "linux":
        os.posix_fallocate(file, 0, size)
    else:
        zeros = bytes(1 << 20)
        for begin in range(0, size, len(zeros)):
            os.write(file, zeros[: size - begin])


@contextmanager
def scratch_folder(named: str | os.PathLike[str] | None) -> Iterator[Scratch]:
    """A folder of mode 700 inside the named one, which is made if it is not there; whatever is new goes at the end.

    Args:
        named: the folder; None: the system's folder for temporary files.

    Raises:
        InvalidParameter: not a folder's name, or the name of a file.
        OSError: it cannot be made or written to.
    """
    outer, made = _outer(named)
    claim = None
    folder = None
    try:
        with _locked(outer):
            _sweep(outer)
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=outer))
            claim = _lock(folder)
        yield Scratch(folder)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if claim is not None:
            os.close(claim)
        with suppress(OSError):  # somebody else has put something there
            for each in made:
                each.rmdir()


def _outer(named: object) -> tuple[Path, list[Path]]:
    """The folder that is named, and those that were made for it, the innermost first."""
    if named is None:
        return Path(tempfile.gettempdir()), []
    if not isinstance(named, str | os.PathLike) or not str(named):
        raise _validate.fail("scratch", named, "the name of a folder, or None for the system's own", "folder")
    outer = Path(named)
    if outer.exists() and not outer.is_dir():
        raise _validate.fail("scratch", str(named), "a folder, and it is a file", "folder")
    made = list(itertools.takewhile(lambda each: not each.exists(), (outer, *outer.parents)))
    outer.mkdir(mode=0o700, parents=True, exist_ok=True)
    return outer, made


def _sweep(outer: Path) -> None:
    """Remove the folders of processes that are gone: nobody holds their lock. Called with the outer lock held."""
    if sys.platform == "win32":
        return
    for left in outer.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = left.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):  # somebody else's, or a link
                continue
            claim = _lock(left)
            if claim is not None:
                try:
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(claim)


def _lock(folder: Path) -> int | None:
    """A lock on a folder, as an open file; None where another process has it, or the system has none."""
    if sys.platform == "win32":
        return None
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The only process that makes or sweeps scratch folders here."""
    if sys.platform == "win32":
        yield
        return
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
