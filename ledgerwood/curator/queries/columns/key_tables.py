"""Counts of keys that nobody has listed, as a table of whole numbers that is a sum over rows.

Rows that lie at several owners have no list of their keys, and a list per owner would show who has which. Here each key
is hashed to one cell of each of seven tables, and a cell adds up the key's bytes, a checksum and 1 for each of its
rows. From the sum over all owners the keys are read one after another: a cell that holds one key shows it, the key is
taken out of all its cells, and others show. What a table tells is what the list of all keys with their total numbers of
rows tells: it is a function of these. docs/explanation/federation.md#estimated-schemas.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.queries.columns.selections import KeyCounts
from ledgerwood.curator.queries.registry import UNDECLARED_CHOICES, Integers
from ledgerwood.curator.views.column_rows import UndeclaredRows
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoundedStabilityMechanism, RandomSource
from ledgerwood.mechanisms.bounded_stability import ROOMS
from ledgerwood.schema import MAX_CATEGORY, Category

MOST_BYTES = 32
"""Of a text, as UTF-8: a longer one is no key, and neither is one with a lone surrogate, which has no UTF-8."""
TABLES = 7
_CHUNK = 3
"""Bytes of a word: less than 2**40 rows times 24 bits stay below 2**64, so that division by the count is exact."""
_KEY_WORDS = -(-(1 + MOST_BYTES) // _CHUNK)
_CHECK_WORDS = 3
WORDS = 1 + _CHECK_WORDS + _KEY_WORDS
"""Of a cell: the number of rows, three words of checksum, and the key's bytes."""
_MOST_ROWS = 1 << 40
_SALT = 16
_TEXT, _WHOLE, _FLOAT = b"s", b"i", b"f"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """The categories of a column, as `KeyCounts` has them, by a table of sums.

    Texts of more than 32 bytes, or without UTF-8, are none.

    Args:
        column: whose categories are counted.
        room: how many distinct ones the table has room for, one of `ROOMS`.
        salt: 16 bytes under which keys are hashed, random and independent of the rows.
    """

    column: int
    room: int
    salt: bytes

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)
        if type(self.room) is not int or self.room not in ROOMS:
            raise _validate.fail("room", self.room, f"one of {ROOMS}", "keys")
        if type(self.salt) is not bytes or len(self.salt) != _SALT:
            raise _validate.fail("salt", self.salt, f"{_SALT} bytes", "bytes")

    @property
    def cells(self) -> int:
        """Of each of the seven tables."""
        return self.room // 2

    def event(self, mechanism: BoundedStabilityMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's.

        Raises:
            RoundViolation: another mechanism, or one for another room.
        """
        given: object = mechanism
        if not isinstance(given, BoundedStabilityMechanism) or given.room != self.room:
            raise RoundViolation(
                f"{mechanism!r} is not a stability histogram for a table with room for {self.room} keys"
            )
        return mechanism.event(adjacency)

    def select(
        self, mechanism: BoundedStabilityMechanism, evidence: Mapping[Category, int] | None, source: RandomSource
    ) -> tuple[tuple[Category, int], ...] | None:
        """As of `KeyCounts`."""
        return KeyCounts(column=self.column).select(mechanism, evidence, source)

    def places(self, packed: bytes) -> tuple[list[int], bytes]:
        """A key's cell in each table, and its checksum."""
        digest = hashlib.blake2b(packed, key=self.salt, person=b"ledgerwood keys", digest_size=64).digest()
        # The number of cells is a power of two: a remainder of 32 random bits is uniform.
        cells = [word % self.cells for word in struct.unpack_from(f">{TABLES}I", digest)]
        return cells, digest[4 * TABLES : 4 * TABLES + _CHUNK * _CHECK_WORDS]


def packed_key(key: Category) -> bytes | None:
    """The key as bytes, without a zero at the end of a text; None for a text that is too long, or broken."""
    if isinstance(key, str):
        try:
            text = key.encode("utf-8")
        except UnicodeEncodeError:  # a schema with it could not be told to owners
            return None
        return _TEXT + text if len(text) <= MOST_BYTES else None
    if isinstance(key, float) and key != int(key):
        return _FLOAT + struct.pack(">d", key)
    return _WHOLE + int(key).to_bytes(8, "big", signed=True)


def unpacked_key(padded: bytes) -> Category | None:
    """The inverse of `packed_key`, from bytes with zeros behind; None for bytes that are no key."""
    kind, rest = padded[:1], padded[1:]
    found: Category | None = None
    try:
        if kind == _TEXT:  # a text that ends in NUL is no key
            found = rest.rstrip(b"\0").decode("utf-8")
        elif kind == _WHOLE:
            found = int.from_bytes(rest[:8], "big", signed=True)
        elif kind == _FLOAT:
            found = float(struct.unpack(">d", rest[:8])[0])
    except UnicodeDecodeError:
        return None
    if found is None or (not isinstance(found, str) and not abs(found) < MAX_CATEGORY):
        return None
    packed = packed_key(found)
    return found if packed is not None and packed.ljust(len(padded), b"\0") == padded else None


def table_of(query: KeyTable, counts: Mapping[Category, int]) -> Integers:
    """The table of keys with these numbers of rows, int64 (7, cells, words)."""
    table = np.zeros((TABLES * query.cells, WORDS), dtype=np.uint64)
    places, words, rows = [], [], []
    for key, count in counts.items():
        packed = packed_key(key)
        if packed is None or not count:
            continue
        cells, check = query.places(packed)
        places.append(cells)
        words.append(_cell(packed, check))
        rows.append(count)
    if rows:
        each = np.frombuffer(b"".join(words), dtype=np.uint8).reshape(len(rows), WORDS - 1, _CHUNK).astype(np.uint64)
        numbers = (each[:, :, 0] << np.uint64(16)) | (each[:, :, 1] << np.uint64(8)) | each[:, :, 2]
        values = np.concatenate([np.ones((len(rows), 1), np.uint64), numbers], axis=1)
        values *= np.array(rows, dtype=np.uint64)[:, None]
        at = np.array(places) + np.arange(TABLES) * query.cells
        for place in at.T:
            np.add.at(table, place, values)
    return table.view(np.int64).reshape(TABLES, query.cells, WORDS)


def keys_in(query: KeyTable, table: Integers) -> dict[Category, int] | None:
    """The keys of a table and their numbers of rows; None where they cannot be read.

    Args:
        query: by which it was made.
        table: int64 (7, cells, words), the sum over all rows, modulo 2**64.
    """
    whole = table.view(np.uint64).reshape(-1, WORDS)
    filled = np.flatnonzero(whole.any(axis=1))
    left: dict[int, list[int]] = dict(zip(filled.tolist(), whole[filled].tolist(), strict=True))
    waiting = list(left)
    found: dict[Category, int] = {}
    while waiting:
        place = waiting.pop()
        only = _only_key(query, place, left[place]) if place in left else None
        if only is None:
            continue
        key, count, cells = only
        if key in found:  # nothing that was taken out comes back
            return None
        found[key] = count
        taken = left[place]
        for cell in cells:
            rest = [own - other for own, other in zip(left.pop(cell, [0] * WORDS), taken, strict=True)]
            if min(rest) < 0:  # a cell without this key
                return None
            if any(rest):
                left[cell] = rest
                waiting.append(cell)
    return None if left else found


def _only_key(query: KeyTable, place: int, cell: list[int]) -> tuple[Category, int, list[int]] | None:
    """The key, its number of rows and its cells, where a cell holds one key alone."""
    count = cell[0]
    if not 0 < count < _MOST_ROWS or any(word % count for word in cell):
        return None
    chunks = [word // count for word in cell[1:]]
    if any(chunk >> 8 * _CHUNK for chunk in chunks):
        return None
    content = b"".join(chunk.to_bytes(_CHUNK, "big") for chunk in chunks)
    key = unpacked_key(content[_CHUNK * _CHECK_WORDS :])
    if key is None:
        return None
    packed = packed_key(key)
    assert packed is not None  # `unpacked_key`
    cells, check = query.places(packed)
    every = [number * query.cells + own for number, own in enumerate(cells)]
    return (key, count, every) if place in every and content.startswith(check) else None


def _cell(packed: bytes, check: bytes) -> bytes:
    return check + packed.ljust(_CHUNK * _KEY_WORDS, b"\0")


# ------------------------------------------------------------------------------------------------------ how it is done


def _check_keys(query: KeyTable, shape: UndeclaredRows) -> None:
    if not isinstance(shape.column(query.column), Keys):
        raise RoundViolation(f"column {query.column} is numeric: it has no categories")


def _read(query: KeyTable, sums: Any, _: UndeclaredRows) -> dict[Category, int] | None:
    table: NDArray[np.int64] = sums
    return keys_in(query, table)


@UNDECLARED_CHOICES.carries_out(KeyTable, check=_check_keys, finish=_read)
def _table(query: KeyTable, rows: UndeclaredRows) -> Integers:
    column = rows.column(query.column)
    assert isinstance(column, Keys)  # `_check_keys`
    codes = column.codes[rows.sampled] if rows.sampled.size else column.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(column.keys))
    return table_of(query, dict(zip(column.keys, counts.tolist(), strict=True)))
