"""What a function from outside makes of each row, in blocks of one size in which a row's place is its own.

Floats are rounded by a row's place among how many: the same row gives other numbers alone than among others, and one
row more or less would change what the rows after it give. So every block has the same number of rows, the place of a
row in it follows from the row's own values, and places without a row are filled with one public row
(docs/explanation/queries.md#rows-in-blocks).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
"""Columns of some rows by name, each (n,): float64 or int64."""
Places = NDArray[np.int64]
Call = Callable[[Columns, int], NDArray[np.int64] | None]
"""What the function makes of a block of this many rows, one integer vector a row; None where it fails."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_STEPS = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))


def keys_of(rows: Columns) -> NDArray[np.uint64]:
    """A number from each row's own bits, evenly spread: SplitMix64 over the columns."""
    keys = np.zeros(len(next(iter(rows.values()))), dtype=np.uint64)
    for values in rows.values():
        keys = (keys + _ODD) ^ _bits(values)
        for shift, factor in _STEPS:
            keys = (keys ^ (keys >> shift)) * factor
        keys ^= keys >> np.uint64(31)
    return keys


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values).view(np.uint64)


def equal_rows(rows: Columns, keys: NDArray[np.uint64]) -> tuple[Places, Places]:
    """The rows in an order in which equal ones follow each other, and where each group of them starts, and the end.

    Equal means bit for bit. Rows of one key that differ are never in one group, though equal ones may be in several.
    """
    order = np.argsort(keys, kind="stable")
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = False
    for bits in (keys, *map(_bits, rows.values())):
        ordered = bits[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.append(np.flatnonzero(new), len(order))


def blocks(keys: NDArray[np.uint64], size: int) -> Iterator[tuple[Places, Places]]:
    """For each block the rows that are in it, and their places there: the key, modulo the size.

    Rows of one place are in blocks of their own. Which block that is may depend on other rows, and changes nothing.
    """
    at = (keys % np.uint64(size)).astype(np.int64)
    by_place = np.argsort(at, kind="stable")
    ordered = at[by_place]
    number = np.arange(len(at)) - np.searchsorted(ordered, ordered)
    by_block = np.argsort(number, kind="stable")
    rows = by_place[by_block]
    ends = np.searchsorted(number[by_block], np.arange(number.max(initial=-1) + 2))
    for start, end in pairwise(ends.tolist()):
        yield rows[start:end], at[rows[start:end]]


def filled(filler: Columns, size: int) -> dict[str, NDArray[Any]]:
    """A block of one row, again and again."""
    return {name: np.repeat(values, size) for name, values in filler.items()}


def in_block(
    call: Call, rows: Columns, members: Places, at: Places, filler: Columns, size: int, names: Places
) -> Iterator[tuple[Places, NDArray[np.int64]]]:
    """What the function makes of rows of one block.

    Where it fails, the rows that make it fail are found by halves: every row stays in its place of a block of the same
    size, so that the numbers of the other rows do not change.

    Args:
        call: the function.
        rows: columns.
        members: which rows are in the block.
        at: their places in it.
        filler: the row of all other places.
        size: of the block.
        names: by which the rows are returned, with what is made of them.
    """
    block = filled(filler, size)
    for name, values in block.items():
        values[at] = rows[name][members]
    found = call(block, size)
    if found is not None:
        yield names, found[at]
    elif len(members) > 1:
        half = len(members) // 2
        for part in (slice(None, half), slice(half, None)):
            yield from in_block(call, rows, members[part], at[part], filler, size, names[part])
