"""Ledger files: JSON lines that are appended, flushed and locked (docs/explanation/ledger.md#durability)."""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, final

from ledgerwood.accounting.ledger.entries import Entry, encode
from ledgerwood.accounting.ledger.state import State
from ledgerwood.errors import LedgerError, LedgerWriteFailed


@final
class JsonLinesFile:
    """One open ledger file, held under an exclusive advisory lock by one process.

    Raises:
        LedgerError: another holder has the file open for writing, or the platform has no such lock.
    """

    __slots__ = ("_broken", "_count", "_file", "_length", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._broken = False
        try:
            self._file: BinaryIO = path.open("a+b", buffering=0)
        except OSError as error:
            raise LedgerError(f"the ledger file {path} cannot be opened: {error}") from error
        try:
            _lock(self._file, path)
        except BaseException:
            self._file.close()
            raise
        self._length = 0  # bytes, and lines, that were acknowledged
        self._count = 0

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    def read(self) -> list[str]:
        """The complete lines; what stands after the last newline was never acknowledged and is cut off.

        Raises:
            LedgerError: the file is not UTF-8.
        """
        self._file.seek(0)
        data = self._file.read()
        self._length = data.rfind(b"\n") + 1
        if self._length < len(data):
            warnings.warn(
                f"the ledger file {self.path} ends in {len(data) - self._length} bytes of a write that was cut short; "
                "they were never acknowledged and are dropped",
                RuntimeWarning,
                stacklevel=4,
            )
            try:
                self._cut()
            except OSError as error:
                raise LedgerWriteFailed(error.errno or 0, f"{self.path}: {error.strerror}") from error
        try:
            lines = data[: self._length].decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise LedgerError(f"the ledger file {self.path} is not UTF-8: {error}") from error
        self._count = len(lines)
        return lines

    def create(self, first: Entry) -> list[str]:
        """Write the first entry, durably; errors as in `append`."""
        self.append(first, durable=True)
        return [encode(first)]

    def catch_up(self, state: State, *, lenient: bool = False) -> None:
        """Nobody else writes to this file."""

    def locked(self, state: State) -> AbstractContextManager[None]:
        """The file is held for as long as it is open."""
        return nullcontext()

    def append(self, entry: Entry, *, durable: bool) -> None:
        """Write the entry's line and flush it; `durable` waits until it is on the disk.

        Raises:
            LedgerWriteFailed: nothing was recorded; the file is as before, or refuses further use.
        """
        self._require_usable(entry.index)
        data = encode(entry).encode("utf-8") + b"\n"
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[_write(self._file, rest) :]
            self._file.flush()
            if durable:
                _fsync(self._file.fileno())
                if self._length == 0:
                    sync_folder(self.path.parent)
        except OSError as error:
            self._undo(error)
            raise LedgerWriteFailed(
                error.errno or 0,
                f"the entry could not be written to {self.path} and was not recorded: {error.strerror}",
            ) from error
        except BaseException as error:  # an interrupt: the caller does not commit, so the line must go
            self._undo(error)
            raise
        self._length += len(data)
        self._count += 1

    def close(self) -> None:
        """Release the file and its lock."""
        self._file.close()

    def _undo(self, cause: BaseException) -> None:
        try:
            self._cut()
        except OSError as error:
            self._broken = True
            raise LedgerWriteFailed(
                error.errno or 0,
                f"an entry could not be written to {self.path} ({cause}) nor taken back ({error.strerror}); "
                "this ledger refuses further use",
            ) from cause

    def _cut(self) -> None:
        os.ftruncate(self._file.fileno(), self._length)
        _fsync(self._file.fileno())

    def _require_usable(self, index: int) -> None:
        if self._broken:
            raise LedgerError(
                f"the ledger file {self.path} refuses further use: a failed write could not be taken back"
            )
        if self._file.closed:
            raise LedgerError(f"the ledger file {self.path} was closed")
        if index != self._count:
            raise LedgerError(f"the ledger file {self.path} holds an entry whose writing was interrupted; reopen it")


def write_atomically(path: Path, lines: Iterable[str]) -> None:
    """Write a whole ledger beside `path` and rename it into place.

    Raises:
        LedgerWriteFailed: `path` is as it was before.
        LedgerError: `path` is the file of an open ledger, or holds anything that these lines do not begin with:
            entries would be lost.
    """
    content = "".join(line + "\n" for line in lines).encode("utf-8")
    try:
        if path.exists():
            with path.open("rb") as present:
                if sys.platform != "win32":
                    _lock(present, path)
                if not content.startswith(present.read()):
                    raise LedgerError(f"{path} holds something else than the start of this ledger; save elsewhere")
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    except OSError as error:
        raise LedgerWriteFailed(error.errno or 0, f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _fsync(file.fileno())
        Path(name).replace(path)
        sync_folder(path.parent)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise LedgerWriteFailed(error.errno or 0, f"{path} was not written: {error.strerror}") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a finished ledger file.

    Raises:
        LedgerError: no such file, not UTF-8, or a last line without its newline.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"the ledger file {path} cannot be read: {error}") from error
    if not text.endswith("\n"):
        raise LedgerError(f"the ledger file {path} ends in a line that was cut short")
    return text.split("\n")[:-1]


def sync_folder(folder: Path) -> None:
    """Make a new or renamed file's name durable, where the platform can."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _fsync(handle)
    finally:
        os.close(handle)


def _write(file: BinaryIO, data: memoryview) -> int:
    return file.write(data)


def _fsync(handle: int) -> None:
    os.fsync(handle)


def _lock(file: BinaryIO, path: Path) -> None:
    if sys.platform == "win32":
        raise LedgerError(
            "ledger files need the advisory locks of a POSIX system; keep the ledger in memory and save it"
        )
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LedgerError(f"the ledger file {path} is open for writing elsewhere; one holder at a time") from error
