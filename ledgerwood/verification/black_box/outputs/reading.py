"""The conversion of outputs of any kind to rows of numbers: learned from the learning draws, then fixed.

docs/explanation/black-box.md#black-box-encoding.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed
from ledgerwood.verification.black_box.outputs.leaves import Key, Leaf, leaves
from ledgerwood.verification.black_box.outputs.readers import (
    Lengths,
    Numbers,
    Reader,
    Unread,
    bytes_of,
    numbers_of,
    texts_of,
)

_MOST = 4096
"""Columns of outputs that are no plain arrays."""
_PRESENT = -1


@final
@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One number of an output's row.

    Args:
        key: the leaf that it is read from.
        part: of the leaf's reader; -1 for whether the leaf is there.
        name: in words.
    """

    key: Key
    part: int
    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """A function from one output to a row of numbers; what it does not know becomes NaN.

    Args:
        readers: of each leaf.
        columns: in order.
        plain: the shape of one output, where all of them were arrays of real numbers of this shape; else None.
        kept: of a plain output's numbers, those that are columns; None for all.
        notes: what is not looked at, in words.
        unread: whether some leaf is too varied to be looked at.
    """

    readers: dict[Key, Reader]
    columns: tuple[OutputColumn, ...]
    plain: tuple[int, ...] | None
    kept: tuple[int, ...] | None
    notes: tuple[str, ...]
    unread: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def wide(self) -> bool:
        """True if some numbers are whole ones beyond 2^53."""
        return any(isinstance(reader, Numbers) and reader.limbs > 0 for reader in self.readers.values())

    def only(self, places: Sequence[int]) -> "Encoding":
        """The same with these columns alone."""
        kept = None
        if self.plain is not None:
            before = range(len(self.columns)) if self.kept is None else self.kept
            kept = tuple(before[place] for place in places)
        return replace(self, columns=tuple(self.columns[place] for place in places), kept=kept)

    def __call__(self, outputs: Any, runs: int) -> FloatArray:
        """Rows of one call's outputs, shape (runs, columns), laid out by column: scores read column by column."""
        if self.plain is not None and _plain_shape(outputs) == self.plain:
            block = outputs.reshape(runs, -1)
            return np.asfortranarray(block if self.kept is None else block[:, list(self.kept)], dtype=np.float64)
        values = np.full((runs, len(self.columns)), np.nan, order="F")
        wanted: dict[Key, list[int]] = {}
        for place, column in enumerate(self.columns):
            wanted.setdefault(column.key, []).append(place)
            if column.part == _PRESENT:
                values[:, place] = 0.0
        for leaf in leaves(outputs, runs):
            places = wanted.get(leaf.key)
            if places:
                self._fill(values, leaf, places)
        return values

    def _fill(self, values: FloatArray, leaf: Leaf, places: list[int]) -> None:
        rows: Any = slice(None) if leaf.rows is None else leaf.rows
        parts = [place for place in places if self.columns[place].part != _PRESENT]
        found = self.readers[leaf.key].columns(leaf.cells, [self.columns[place].part for place in parts])
        for place, column in zip(parts, found, strict=True):
            values[rows, place] = column
        for place in places:
            if self.columns[place].part == _PRESENT:
                values[rows, place] = 1.0


def _plain_shape(outputs: Any) -> tuple[int, ...] | None:
    """Of one output, where all outputs are an array of real numbers."""
    if type(outputs) is np.ndarray and outputs.dtype.kind in "biuf":
        shape: tuple[int, ...] = outputs.shape[1:]
        return shape
    return None


def learned(samples: Sequence[tuple[Any, int]]) -> Encoding:
    """The encoding that the outputs of the learning draws ask for.

    Args:
        samples: outputs and their number, of each call.

    Raises:
        AuditFailed: an output of a type that cannot be taken apart.
    """
    shapes = {_plain_shape(outputs) for outputs, _ in samples}
    shape = next(iter(shapes))
    if len(shapes) == 1 and shape is not None:
        wide = any(numbers_of([outputs]).limbs for outputs, _ in samples)
        if not wide:
            return _of_plain(shape)
    found: dict[Key, list[Leaf]] = {}
    for outputs, runs in samples:
        for leaf in leaves(outputs, runs):
            found.setdefault(leaf.key, []).append(leaf)
    total = sum(runs for _, runs in samples)
    present = Counter({key: sum(len(leaf.cells) for leaf in parts) for key, parts in found.items()})
    readers: dict[Key, Reader] = {}
    columns: list[OutputColumn] = []
    notes: list[str] = []
    unread = False
    for key, times in present.most_common():
        reader = _reader(key, found[key])
        if len(columns) + len(reader.words) >= _MOST:
            notes.append(f"of {len(found)} parts of the outputs {len(readers)} were looked at, from {key[0]} on none")
            break
        name, kind = key
        readers[key] = reader
        columns += [OutputColumn(key, part, words.replace("{}", name)) for part, words in enumerate(reader.words)]
        if times < total:
            columns.append(OutputColumn(key, _PRESENT, f"whether {name} is {_article(kind)}"))
        notes += [words.replace("{}", name) for words in reader.notes]
        unread |= any("forms of their own" in words for words in reader.notes)
    return Encoding(readers=readers, columns=tuple(columns), plain=None, kept=None, notes=tuple(notes), unread=unread)


def _article(kind: str) -> str:
    return {"number": "a number", "text": "a text", "bytes": "bytes", "nothing": "None"}.get(kind, "there")


def _of_plain(shape: tuple[int, ...]) -> Encoding:
    places = itertools.product(*(range(size) for size in shape))
    names = ["output" + "".join(f"[{at}]" for at in place) for place in places]
    return Encoding(
        readers={(name, "number"): Numbers() for name in names},
        columns=tuple(OutputColumn((name, "number"), 0, name) for name in names),
        plain=shape, kept=None, notes=(), unread=False,
    )  # fmt: skip


def _reader(key: Key, parts: list[Leaf]) -> Reader:
    cells: list[Any] = [leaf.cells for leaf in parts]
    match key[1]:
        case "number":
            return numbers_of(cells)
        case "text":
            return texts_of(cells)
        case "bytes":
            return bytes_of(cells)
        case "length":
            return Lengths()
        case "nothing":
            return Unread()
    kinds = sorted({type(cell).__name__ for part in cells for cell in part})
    raise AuditFailed(
        f"{key[0]} is of type {', '.join(kinds)}: numbers, texts, bytes, None, and arrays, tuples, lists, mappings, "
        "sets and dataclasses of them can be audited. Return what the mechanism releases as one of these"
    )


def varying(first: FloatArray, second: FloatArray, *, bits: bool) -> NDArray[np.int64]:
    """The columns that have more than one value in these rows: of bits, if those are looked at."""
    found = []
    for place in range(first.shape[1]):
        columns = (first[:, place], second[:, place])
        start = columns[0][:1]
        if bits:
            same = all(
                bool((np.ascontiguousarray(part).view(np.int64) == np.ascontiguousarray(start).view(np.int64)).all())
                for part in columns
            )
        elif math.isnan(start[0]):
            same = all(bool(np.isnan(part).all()) for part in columns)
        else:
            same = all(bool((part == start[0]).all()) for part in columns)
        if not same:
            found.append(place)
    return np.array(found, np.int64)
