"""Where a file's last checkpoint is, and whether a checkpoint's own statement holds together."""

import os
from typing import BinaryIO

from ledgerwood.accounting.ledger.entries import CHECKPOINT
from ledgerwood.errors import LedgerError

_FIRST_LOOK = 1 << 16  # bytes


def last_checkpoint(file: BinaryIO, name: str) -> int:
    """Where the line of a ledger file's last checkpoint begins, in bytes; 0 where there is none.

    The file is read from its end, twice as much each time, so that the time depends on what follows the checkpoint.

    Args:
        file: an open file, unbuffered.
        name: what messages call it.

    Raises:
        LedgerError: the file became shorter meanwhile.
    """
    size = os.fstat(file.fileno()).st_size
    look = _FIRST_LOOK
    while True:
        start = max(size - look, 0)
        file.seek(start)
        data = _read(file, size - start, name)
        whole = data[: data.rfind(b"\n") + 1]  # a line without its newline was never acknowledged
        place = whole.rfind(CHECKPOINT)
        begin = whole.rfind(b"\n", 0, max(place, 0)) + 1
        if place >= 0 and (begin or not start):
            return start + begin
        if not start:
            return 0
        look *= 2


def _read(file: BinaryIO, size: int, name: str) -> bytes:
    parts: list[bytes] = []
    while size:
        part = file.read(size)
        if not part:
            raise LedgerError(f"{name} became shorter while it was read")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
