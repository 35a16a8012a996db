"""The file of a row vault: its format (docs/adr/0009-row-vaults.md), and how it is replaced and held.

A file is written whole beside the present one, synced and renamed over it, so that there is always one that is whole.
The holder keeps an advisory lock on the file that the path names.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger.entries import canonical
from ledgerwood.accounting.ledger.jsonl import sync_folder
from ledgerwood.curator.inputs.values import KeyKind
from ledgerwood.errors import LedgerCorrupted, LedgerError, LedgerWriteFailed

FORMAT, VERSION = "ledgerwood row vault", 2
DIGEST_BYTES, SALT_BYTES = 16, 32
DIGEST = np.dtype(f"S{DIGEST_BYTES}")  # compares as the 16 bytes do: numpy pads with the zeros that it drops
_LEFT = np.dtype("<i8")
_CHECKSUM_BYTES = 32
_WHAT = "the row vault"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contents:
    """All that a vault knows.

    Args:
        salt: key of the digests.
        kind: what the keys are, by the type of their column; None before one has said it.
        claims: how often units were claimed.
        draw: hash of the ledger entry that paid; None before the first use.
        event: canonical record of the event that was drawn.
        units: digests of the keys, sorted, shape (n,).
        left: what each has left, int64 in [0, FULL], shape (n,).
    """

    salt: bytes
    kind: KeyKind | None = None
    claims: int = 0
    draw: str | None = None
    event: str | None = None
    units: NDArray[np.bytes_]
    left: NDArray[np.int64]


def encode(contents: Contents) -> bytes:
    """The bytes of a file."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "salt": contents.salt.hex(),
        "keys": contents.kind,
        "claims": contents.claims,
        "draw": contents.draw,
        "event": None if contents.event is None else json.loads(contents.event),
        "units": len(contents.units),
    }
    body = b"".join(
        (
            canonical(header).encode("utf-8"),
            b"\n",
            contents.units.tobytes(),
            contents.left.astype(_LEFT, copy=False).tobytes(),
        )
    )
    return body + _checksum(body)


def decode(data: bytes, path: Path) -> Contents:
    """The contents of a file's bytes.

    Raises:
        LedgerCorrupted: not a vault, of another version, cut, or altered. The file is left as it is.
    """
    line, newline, _ = data[: 1 << 20].partition(b"\n")
    try:
        header = json.loads(line)
        if not newline or header["format"] != FORMAT:
            raise ValueError("another format")
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerCorrupted(f"{path} is not a row vault, or its first line was altered") from error
    if version != VERSION:
        raise LedgerCorrupted(
            f"the row vault {path} has format version {version!r}, not {VERSION}: another release wrote it"
        )
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if _checksum(body) != checksum:
        raise LedgerCorrupted(
            f"the row vault {path} was cut or altered: its checksum does not match. What its rows have left is not "
            "known; restore the newest file that was not altered, or end the stream"
        )
    try:
        n = header["units"]
        start = len(line) + 1
        if len(body) != start + n * (DIGEST_BYTES + _LEFT.itemsize):
            raise ValueError("length")
        contents = Contents(
            salt=bytes.fromhex(header["salt"]), kind=header["keys"], claims=header["claims"], draw=header["draw"],
            event=None if header["event"] is None else canonical(header["event"]),
            units=cast("NDArray[np.bytes_]", np.frombuffer(body, DIGEST, n, start)),
            left=np.frombuffer(body, _LEFT, n, start + n * DIGEST_BYTES).astype(np.int64),
        )  # fmt: skip
        _require_sound(contents)
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerCorrupted(f"the row vault {path} does not hold what its first line says: {error}") from error
    return contents


def _require_sound(contents: Contents) -> None:
    if len(contents.salt) != SALT_BYTES or contents.kind not in (None, *get_args(KeyKind)):
        raise ValueError("salt or kind of keys")
    if type(contents.claims) is not int or contents.claims < 0 or not isinstance(contents.draw, str | None):
        raise ValueError("claims or draw")
    if not (contents.units[:-1] < contents.units[1:]).all():
        raise ValueError("units out of order")
    if not ((contents.left >= 0) & (contents.left <= FULL)).all():
        raise ValueError("more left than a full budget, or less than nothing")


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


@final
class VaultFile:
    """The file at a path, held by one process. Made by `hold` or `create`."""

    __slots__ = ("_file", "path")

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file

    @classmethod
    def hold(cls, path: Path) -> "VaultFile | None":
        """Lock the file that is there; None if there is none.

        Raises:
            LedgerError: it cannot be opened, or another holder has it.
        """
        file = jsonl.hold(path, _WHAT, create=False)
        if file is None:
            return None
        try:
            _remove_parts(path)  # of holders that were killed: nobody else writes here
        except BaseException:
            file.close()
            raise
        return cls(path, file)

    @classmethod
    def create(cls, path: Path, data: bytes) -> "VaultFile":
        """Write a new file, readable by its owner alone: whole or not at all.

        Raises:
            LedgerWriteFailed: there is no such folder, it cannot be written to, or a file came to be there meanwhile.
        """
        try:
            part, file = _write_part(path, data)
            try:
                os.link(part, path)  # unlike a rename, this never replaces a file
            except BaseException:
                file.close()
                raise
            finally:
                part.unlink()
            sync_folder(path.parent)
        except OSError as error:
            raise LedgerWriteFailed(error.errno or 0, f"the row vault {path} was not made: {error.strerror}") from error
        return cls(path, file)

    def read(self) -> bytes:
        """All bytes."""
        self._file.seek(0)
        return self._file.readall()  # type: ignore[attr-defined, no-any-return]  # unbuffered: a FileIO

    def require_held(self) -> None:
        """Refuse a file that was closed, or that is no longer the file at its path.

        Raises:
            LedgerError: it was.
        """
        if self._file.closed:
            raise LedgerError(f"the row vault {self.path} was closed")
        if not jsonl.is_at(self._file, self.path):
            raise LedgerError(
                f"{self.path} is no longer the file that this row vault holds: it was moved, removed or put back "
                "from a copy, which may have more left than is true; nothing was written"
            )

    def replace(self, data: bytes) -> None:
        """Put these bytes in place of the present ones, durably, in one step.

        Raises:
            LedgerWriteFailed: the file is as it was, or holds these bytes and may not survive a loss of power.
            LedgerError: it was closed, or the path names another file by now: nothing was written.
        """
        try:
            self.require_held()
            part, file = _write_part(self.path, data)
            try:
                part.replace(self.path)
            except BaseException:
                part.unlink(missing_ok=True)
                file.close()
                raise
            former, self._file = self._file, file
            former.close()
            sync_folder(self.path.parent)
        except OSError as error:
            raise LedgerWriteFailed(
                error.errno or 0, f"the row vault {self.path} could not be written: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Release the file and its lock."""
        self._file.close()


def _write_part(path: Path, data: bytes) -> tuple[Path, BinaryIO]:
    """A file beside `path`, mode 0600, synced, locked and still open."""
    handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    part = Path(name)
    file: BinaryIO = os.fdopen(handle, "r+b", buffering=0)
    try:
        jsonl.lock(file, f"{_WHAT} {path}")  # before anyone can find it at `path`
        rest = memoryview(data)
        while rest:
            rest = rest[_write(file, rest) :]
        _fsync(file.fileno())
    except BaseException:
        file.close()
        part.unlink(missing_ok=True)
        raise
    return part, file


def _remove_parts(path: Path) -> None:
    # As `_write_part` names them. Those of a vault whose name begins with this one's have a dot more.
    dots = path.name.count(".") + 2
    for part in path.parent.iterdir():
        name = part.name
        if name.startswith(path.name + ".") and name.endswith(".part") and name.count(".") == dots:
            part.unlink(missing_ok=True)


def _write(file: BinaryIO, data: memoryview) -> int:
    return file.write(data)


def _fsync(handle: int) -> None:
    os.fsync(handle)
