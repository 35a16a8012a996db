"""The entries of a long ledger in little memory.

The newest are kept as they are, the others as compressed blocks of their lines; when those are many, in a temporary
file without a name, which is gone with the process. So a million spends need as much memory as some ten thousand.
"""

import os
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final, overload

from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.ledger.entries import Entry, GrantEntry, decode, encode

_BLOCK = 1024
_NEWEST = 8 * _BLOCK  # entries that are kept as they are
_IN_MEMORY = 16 * 2**20  # bytes of compressed blocks


@final
@dataclass(frozen=True, slots=True)
class _Block:
    """Compressed lines of `_BLOCK` entries: in memory, or in the file from `start` on; `grants` of them are grants."""

    grants: int
    size: int
    data: bytes | None = None
    start: int = 0


@final
class KeptEntries(Sequence[Entry]):
    """Entries that follow each other, from the first one on; they are only added, and never change.

    Args:
        first: the first of them.
        compact: compress older entries; else all are kept as they are.
    """

    __slots__ = ("__weakref__", "_blocks", "_compact", "_file", "_fresh", "_in_memory", "_written", "first")

    def __init__(self, first: Entry, *, compact: bool) -> None:
        self.first, self._compact = first, compact
        self._fresh: list[Entry] = [first]  # never empty
        self._blocks: list[_Block] = []
        self._in_memory = self._written = 0  # bytes
        self._file: int | None = None

    @property
    def last(self) -> Entry:
        """The newest entry."""
        return self._fresh[-1]

    def append(self, entry: Entry) -> None:
        """Add the next one."""
        self._fresh.append(entry)
        if self._compact and len(self._fresh) >= _NEWEST + _BLOCK:
            self._seal()

    def at(self, index: int) -> Entry | None:
        """The entry with this index in the ledger; None where it is not among these."""
        place = index - self.first.index
        return self[place] if 0 <= place < len(self) else None

    def since(self, index: int) -> Iterator[Entry]:
        """The entries with this index in the ledger and later ones."""
        skipped = max(index - self.first.index, 0)
        for place in range(skipped // _BLOCK, len(self._blocks)):
            yield from self._opened(place)[max(skipped - place * _BLOCK, 0) :]
        yield from self._fresh[max(skipped - len(self._blocks) * _BLOCK, 0) :]

    def grants(self, known: int = 0) -> Iterator[GrantEntry]:
        """The grants but the first `known` of them, in order."""
        passed = place = 0
        while place < len(self._blocks) and passed + self._blocks[place].grants <= known:
            passed += self._blocks[place].grants
            place += 1
        for entry in self.since(self.first.index + place * _BLOCK):
            if isinstance(entry, GrantEntry):
                passed += 1
                if passed > known:
                    yield entry

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK + len(self._fresh)

    def __iter__(self) -> Iterator[Entry]:
        for place in range(len(self._blocks)):
            yield from self._opened(place)
        yield from self._fresh

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        sealed = len(self._blocks) * _BLOCK
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"no entry {place} of {len(self)}")
        return self._opened(place // _BLOCK)[place % _BLOCK] if place < sealed else self._fresh[place - sealed]

    def _seal(self) -> None:
        """Compress the oldest block of entries that are kept as they are."""
        old = self._fresh[:_BLOCK]
        data = zlib.compress("\n".join(encode(entry) for entry in old).encode("utf-8"), 1)
        self._blocks.append(_Block(sum(isinstance(entry, GrantEntry) for entry in old), len(data), data))
        del self._fresh[:_BLOCK]
        self._in_memory += len(data)
        if self._in_memory > _IN_MEMORY and sys.platform != "win32":
            with suppress(OSError):  # a full disk: they stay in memory
                self._write_out()

    def _write_out(self) -> None:
        """Move all blocks in memory to the temporary file."""
        if sys.platform == "win32":
            return
        if self._file is None:
            handle, name = tempfile.mkstemp(prefix="ledgerwood-")
            Path(name).unlink()
            weakref.finalize(self, os.close, handle)
            self._file = handle
        moved, start = list(self._blocks), self._written
        for place, block in enumerate(moved):
            if block.data is not None:
                rest = memoryview(block.data)
                while rest:
                    rest = rest[os.pwrite(self._file, rest, start + block.size - len(rest)) :]
                moved[place] = _Block(block.grants, block.size, start=start)
                start += block.size
        self._blocks, self._written, self._in_memory = moved, start, 0

    def _opened(self, place: int) -> list[Entry]:
        """The entries of one block."""
        block = self._blocks[place]
        data = block.data if block.data is not None else self._read(block)
        known: dict[str, Event] = {}
        return [decode(line, known) for line in zlib.decompress(data).decode("utf-8").split("\n")]

    def _read(self, block: _Block) -> bytes:
        if self._file is None or sys.platform == "win32":
            raise OSError("the temporary file of a ledger's older entries is not open")
        return os.pread(self._file, block.size, block.start)
