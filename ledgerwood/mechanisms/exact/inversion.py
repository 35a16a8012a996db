"""Exact draws from a distribution on the integers by inverting its distribution function.

A uniform real is read 64 bits at a time, until one atom is left. All but about one draw in 2**64 an atom are decided by
their first word against a table; the others by integer bounds at whatever precision it takes.
Proof: docs/explanation/exact-noise.md#integer-inversion.
"""

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms.exact.randomness import RandomSource

_WORD = 64
_CHUNK = 1 << 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """Integers around 2**bits times the distribution function F at the atoms first, first + 1, ...

    Args:
        first: the first atom of the window.
        starts: at place j an upper bound of 2**bits F(first + j - 1); never falling.
        ends: at place j a lower bound of 2**bits F(first + j), below 2**bits.
    """

    first: int
    starts: list[int]
    ends: list[int]


DistributionBounds = Callable[[int], Enclosure]
"""bits -> bounds. As the bits grow the window widens and the bounds close."""


@final
class Inversion:
    """Draws from the distribution whose distribution function `bounds` encloses."""

    __slots__ = ("_bounds", "_ends", "_first", "_starts")

    def __init__(self, bounds: DistributionBounds) -> None:
        self._bounds = bounds
        table = bounds(_WORD)
        self._first = table.first
        # A word w stands for all reals in [w, w + 1) / 2**64: atom j has them all if starts[j] <= w < ends[j].
        self._starts = np.array([min(start, (1 << _WORD) - 1) for start in table.starts], dtype=np.uint64)
        self._ends = np.array(table.ends, dtype=np.uint64)

    def draw(self, n: int, source: RandomSource) -> NDArray[np.int64]:
        """n independent integers, n >= 0."""
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, _CHUNK):
            part = out[start : start + _CHUNK]
            words = source.uint64(part.size)
            part[:] = np.searchsorted(self._starts, words, side="right") - 1
            unsure = np.flatnonzero((part < 0) | (words >= self._ends.take(part, mode="clip"))).tolist()
            part += self._first
            for i in unsure:
                part[i] = self._decide(int(words[i]), source)
        return out

    def _decide(self, word: int, source: RandomSource) -> int:
        """The atom of a real that begins with `word`, from further words."""
        bits = _WORD
        while True:
            word = (word << _WORD) + int(source.uint64(1)[0])
            bits += _WORD
            table = self._bounds(bits)
            place = bisect.bisect_right(table.starts, word) - 1
            if place >= 0 and word < table.ends[place]:
                return table.first + place
