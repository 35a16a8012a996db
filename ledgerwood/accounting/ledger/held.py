"""Files that one process holds: a lock protects a path only as long as the path names the file that was locked.

docs/explanation/ledger.md#holding-files says what is promised, and why it holds.
"""

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from ledgerwood.errors import LedgerError

_TRIES = 100


def hold(path: Path, what: str, *, create: bool) -> BinaryIO | None:
    """Open the file that the path names, for reading and appending, under an exclusive advisory lock.

    The path is asked again after locking: a file that was replaced or removed between opening and locking is let go,
    and the one that has its name is opened.

    Args:
        path: of a regular file; symbolic links are followed.
        what: the kind of file, for messages.
        create: make an empty file where there is none.

    Returns:
        the file, unbuffered; None where there is no file and none was to be made.

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
                raise LedgerError(f"{what} {path} must be a regular file: what is written to it would be lost")
            lock(file, f"{what} {path}")
            if is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # a lock on what had the name before keeps nobody out
    raise LedgerError(f"{what} {path} is replaced again and again by other processes; one holder at a time")


def is_at(file: BinaryIO, path: Path) -> bool:
    """Returns whether the path names this very file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def lock(file: BinaryIO, name: str) -> None:
    """Lock the file until `unlock`, or until it is closed in all processes that have it from this one.

    Raises:
        LedgerError: somebody else has the lock, or the platform has no such lock; `name` is what messages call it.
    """
    if sys.platform == "win32":
        raise LedgerError(f"{name} cannot be held: that needs the advisory locks of a POSIX system; keep it in memory")
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LedgerError(f"{name} is open for writing elsewhere; one holder at a time") from error


def unlock(file: BinaryIO) -> None:
    """Give the lock back, also where a forked process still has the file open."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
