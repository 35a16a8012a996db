"""A ledger in a file of JSON lines, held by one process at a time or by several in turn.

Lines are appended, flushed and locked; a lock protects a path only as long as the path names the file that was locked.
docs/explanation/ledger.md#holding-files and docs/explanation/ledger.md#durability say what is promised, and why it
holds.
"""

import errno
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, final

from ledgerwood.accounting.ledger.checkpoints import last_checkpoint
from ledgerwood.accounting.ledger.entries import Entry, encode, first_index
from ledgerwood.accounting.ledger.state import State
from ledgerwood.errors import InvalidParameter, LedgerError, LedgerWriteFailed

_TRIES = 100
PATIENCE = 30.0
"""Seconds that a process which takes turns with others waits for them, at most."""
_PAUSE = 0.002  # s between two looks at a lock that another process has


def hold(path: Path, what: str, *, create: bool, patience: float = 0.0) -> BinaryIO | None:
    """Open the file that the path names, for reading and appending, under an exclusive advisory lock.

    The path is asked again after locking: a file that was replaced or removed between opening and locking is let go,
    and the one that has its name is opened.

    Args:
        path: the path of a regular file; symbolic links are followed.
        what: the kind of file, for messages.
        create: make an empty file where there is none.
        patience: seconds to wait for another holder.

    Returns:
        the file, unbuffered; None if there is no file and none was to be made.

    Raises:
        LedgerError: another holder has it, it cannot be opened, it is not a regular file, or it is replaced too often.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
    for _ in range(_TRIES):
        try:
            file: BinaryIO = os.fdopen(os.open(path, flags, 0o666), "a+b", buffering=0)
        except FileNotFoundError as error:
            if not create:
                return None
            raise LedgerError(f"{what} {path} cannot be opened: {error}") from error
        except OSError as error:
            raise LedgerError(f"{what} {path} cannot be opened: {error}") from error
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise LedgerError(f"{what} {path} must be a regular file, otherwise entries would be lost")
            if patience:
                lock_within(file, f"{what} {path}", patience)
            else:
                lock(file, f"{what} {path}")
            if is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # a lock on what had the name before keeps nobody out
    raise LedgerError(f"{what} {path} is replaced repeatedly by other processes; only one process may hold it")


def is_at(file: BinaryIO, path: Path) -> bool:
    """Returns whether the path names this very file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def lock(file: BinaryIO, name: str) -> None:
    """Lock the file until `unlock`, or until it is closed in all processes that have it from this one.

    Raises:
        LedgerError: another process has the lock, or the platform has no such lock; `name` is what messages call it.
    """
    if sys.platform == "win32":
        raise LedgerError(
            f"{name} cannot be locked: this needs the advisory locks of a POSIX system; keep the ledger in memory"
        )
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LedgerError(f"{name} is open for writing in another process or object; only one may hold it") from error


def lock_within(file: BinaryIO, name: str, patience: float) -> None:
    """Lock the file as soon as others let go of it; one that is locked by it already stays locked.

    Args:
        file: an open file.
        name: what messages call it.
        patience: seconds to wait for another process, at most.

    Raises:
        LedgerError: as `lock`.
    """
    last = time.monotonic() + patience
    while True:
        try:
            return lock(file, name)
        except LedgerError:
            if sys.platform == "win32" or time.monotonic() >= last:
                raise
            time.sleep(_PAUSE)


def unlock(file: BinaryIO) -> None:
    """Give the lock back, also where a forked process still has the file open."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


_WHAT = "the ledger file"
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}  # of a file system without hard links


@final
class JsonLinesFile:
    """One open ledger file, held under an exclusive advisory lock by one process.

    Args:
        path: the path of the file.
        create: make an empty one where there is none.
        shared: give the lock back once the ledger is open, and take it for each entry: processes take turns.

    Raises:
        LedgerError: another holder has the file open for writing, or the platform has no such lock.
        InvalidParameter: there is no file, and none was to be made.
    """

    __slots__ = ("_broken", "_count", "_file", "_length", "_named", "_owner", "_place", "_shared", "path")

    def __init__(self, path: Path, *, create: bool, shared: bool = False) -> None:
        self.path = path
        self._shared = shared
        self._place = path.absolute()  # whatever the process's folder will be later
        file = hold(self._place, _WHAT, create=create, patience=PATIENCE if shared else 0.0)
        if file is None:
            raise InvalidParameter(f"there is no ledger at {path}: a new one needs budget= and unit= (unit: terms)")
        self._file: BinaryIO = file
        self._owner = os.getpid()
        self._broken = False
        self._named = False  # whether the file's name is certainly on the disk
        self._length = 0  # bytes, and lines, that were acknowledged
        self._count = 0

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return str(self.path)

    def read(self, *, from_checkpoint: bool = False) -> list[str]:
        """The complete lines; what stands after the last newline was never acknowledged and is cut off.

        Args:
            from_checkpoint: those from the last checkpoint on, if there is one; the file is read from its end.

        Raises:
            LedgerError: the file is not UTF-8.
        """
        if from_checkpoint:
            self._length = last_checkpoint(self._file, f"{_WHAT} {self.path}")
        lines = self._read_on()
        self._count += first_index(lines)
        return lines

    def create(self, first: Entry) -> list[str]:
        """Write the first entry, durably; errors as in `append`."""
        self.append(first, durable=True)
        return [encode(first)]

    def catch_up(self, state: State, *, lenient: bool = False) -> None:
        """Read what others appended, if the file is shared; nobody else writes to one that is not.

        Raises:
            LedgerError: as in `locked`.
        """
        if self._shared and not self._file.closed:
            with self._turn(state):
                return

    def locked(self, state: State) -> AbstractContextManager[None]:
        """A file is held for as long as it is open; one that is shared, from here to the end, the state caught up.

        Raises:
            LedgerError: another process kept the file for too long, or it was moved, removed, replaced or shortened.
            LedgerCorrupted: what others appended does not fit.
        """
        if self._shared:
            self._require_usable(self._count)
            return self._turn(state)
        return nullcontext()

    def append(self, entry: Entry, *, durable: bool) -> None:
        """Write the entry's line and flush it; `durable` waits until it is on the disk.

        Raises:
            LedgerWriteFailed: nothing was recorded; the file is as before, or refuses further use.
            LedgerError: the path does not name this file any more, or others wrote to it; nothing was recorded.
        """
        self._require_usable(entry.index)
        self._require_in_place(self._length)
        data = encode(entry).encode("utf-8") + b"\n"
        try:
            _write_all(self._file, data)
            self._file.flush()
            if durable:
                _fsync(self._file.fileno())
                if not self._named:  # new, or renamed into place by somebody who may have died before this
                    sync_folder(self._place.parent)
                self._require_in_place(self._length + len(data))
                self._named = True
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
        """Release the file and its lock; a forked process leaves its parent's lock alone."""
        if not self._file.closed and self._owner == os.getpid():
            unlock(self._file)
        self._file.close()

    @contextmanager
    def _turn(self, state: State) -> Iterator[None]:
        """Hold the lock of a shared file, with everything that others appended taken in."""
        lock_within(self._file, f"{_WHAT} {self.path}", PATIENCE)  # the first turn begins when the file is opened
        try:
            if state.count != self._count:
                raise LedgerError(
                    f"the ledger file {self.path} holds an entry whose writing was interrupted; reopen it"
                )
            found = os.fstat(self._file.fileno()).st_size
            if found > self._length:
                state.follow(self._read_on())
            self._require_in_place(self._length)
            yield
        finally:
            unlock(self._file)

    def _read_on(self) -> list[str]:
        """The complete lines from where this object has read to; what stands after the last newline is cut off."""
        self._file.seek(self._length)
        data = self._file.read()
        end = data.rfind(b"\n") + 1
        try:
            lines = data[:end].decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise LedgerError(f"the ledger file {self.path} is not UTF-8: {error}") from error
        self._length += end
        self._count += len(lines)
        if end < len(data):
            warnings.warn(
                f"the ledger file {self.path} ends in {len(data) - end} bytes of a write that was cut short; "
                "they were never acknowledged and are dropped",
                RuntimeWarning,
                stacklevel=5,
            )
            try:
                self._cut()
            except OSError as error:
                raise LedgerWriteFailed(error.errno or 0, f"{self.path}: {error.strerror}") from error
        return lines

    def _require_in_place(self, length: int) -> None:
        """Refuse to record in a moved file, or after entries that others wrote in spite of the lock."""
        try:
            found = os.fstat(self._file.fileno()).st_size if is_at(self._file, self._place) else None
        except OSError as error:
            raise LedgerError(f"{_WHAT} {self.path} cannot be found any more: {error}; nothing was recorded") from error
        if found is None:
            raise LedgerError(
                f"{self.path} is no longer the file that this ledger holds: it was moved, removed or "
                "replaced; nothing was recorded. Restore the newest file, otherwise the spending since the "
                "copy was made is lost"
            )
        if found != length:
            raise LedgerError(
                f"{_WHAT} {self.path} has {found} bytes where this ledger wrote {length}: another program changed it; "
                "nothing was recorded. Open it again to check whether it is intact"
            )

    def _undo(self, cause: BaseException) -> None:
        try:
            self._cut()
        except OSError as error:
            self._broken = True
            raise LedgerWriteFailed(
                error.errno or 0,
                f"an entry could not be written to {self.path} ({cause}) nor undone ({error.strerror}); "
                "this ledger refuses further use",
            ) from cause

    def _cut(self) -> None:
        os.ftruncate(self._file.fileno(), self._length)
        _fsync(self._file.fileno())

    def _require_usable(self, index: int) -> None:
        if self._broken:
            raise LedgerError(f"the ledger file {self.path} refuses further use: a failed write could not be undone")
        if self._file.closed:
            raise LedgerError(f"the ledger file {self.path} was closed")
        if index != self._count:
            raise self._interrupted()

    def _interrupted(self) -> LedgerError:
        return LedgerError(f"the ledger file {self.path} holds an entry whose writing was interrupted; reopen it")


def write_atomically(path: Path, lines: Iterable[str]) -> None:
    """Write a whole ledger beside `path` and rename it into place.

    The file that is there, and the one that takes its place, stay locked from before they are compared until the new
    name is on the disk: no process can spend from either in between.

    Raises:
        LedgerWriteFailed: `path` is as it was before; or, if the message says so, written but perhaps not durable.
        LedgerError: `path` is the file of an open ledger, is not a regular file, has other names, or holds anything
            that these lines do not begin with: entries would be lost.
    """
    content = "".join(line + "\n" for line in lines).encode("utf-8")
    try:
        place = Path(os.path.realpath(path))  # a rename would replace a symbolic link, not the file that it names
        for _ in range(_TRIES):
            with _kept_still(place) as present:
                if present is not None and not content.startswith(present):
                    raise LedgerError(f"{path} does not contain the beginning of this ledger; save to another path")
                if _put(place, content, new=present is None):
                    return
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerWriteFailed(error.errno or 0, f"{path} cannot be written: {error.strerror}") from error
    raise LedgerError(f"{_WHAT} {path} is created and removed repeatedly by other processes; save to another path")


@contextmanager
def _kept_still(place: Path) -> Iterator[bytes | None]:
    """The bytes of the file, which no other process can change or replace in between; None if there is none."""
    if sys.platform == "win32":  # without locks no ledger is open in a file
        yield place.read_bytes() if place.exists() else None
        return
    file = hold(place, _WHAT, create=False)
    if file is None:
        yield None
        return
    with file:
        if (names := os.fstat(file.fileno()).st_nlink) > 1:
            raise LedgerError(
                f"{_WHAT} {place} has {names} names (hard links): the others would still name the old file, "
                "and the same budget could be spent twice; remove them, or save to another path"
            )
        file.seek(0)
        yield file.read()


def _put(place: Path, content: bytes, *, new: bool) -> bool:
    """Write a file and give it its name, durably; False where a file came to be there meanwhile.

    Raises:
        OSError: nothing changed.
        LedgerWriteFailed: it was written, and may not survive a loss of power.
    """
    handle, name = tempfile.mkstemp(prefix=place.name + ".", suffix=".part", dir=place.parent)
    part = Path(name)
    file: BinaryIO = os.fdopen(handle, "r+b", buffering=0)
    try:
        with file:
            if sys.platform != "win32":
                lock(file, f"{_WHAT} {part}")  # before anybody can find it: its name is not on the disk yet
            _write_all(file, content)
            if not new:
                _look_alike(file, place)
            _fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # an open file has no other name there
            if not new:
                part.replace(place)
            elif not _link(part, place):
                return False
            try:
                sync_folder(place.parent)
            except OSError as error:
                raise LedgerWriteFailed(
                    error.errno or 0, f"{place} was written, but may be lost in a power failure: {error.strerror}"
                ) from error
            return True
    finally:
        part.unlink(missing_ok=True)


def _link(part: Path, place: Path) -> bool:
    """Give a new file its name; unlike a rename, this never replaces another."""
    try:
        os.link(part, place)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with suppress(FileExistsError):  # then an empty file takes the place, which is locked and replaced
            os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return False
    part.unlink()  # before the lock is given back: a file with two names is not replaced
    return True


def _look_alike(file: BinaryIO, place: Path) -> None:
    """Give the file the owner and the mode of the file that it replaces, so that the same users can open it."""
    if sys.platform == "win32":
        return
    former, handle = place.stat(), file.fileno()
    with suppress(PermissionError):  # only the superuser gives files away
        os.fchown(handle, former.st_uid, former.st_gid)
    os.fchmod(handle, former.st_mode & 0o777)


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


def _write_all(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[_write(file, rest) :]


def _write(file: BinaryIO, data: memoryview) -> int:
    return file.write(data)


def _fsync(handle: int) -> None:
    os.fsync(handle)
