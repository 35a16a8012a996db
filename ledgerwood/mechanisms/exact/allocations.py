"""Random allocation of rows to steps: each row takes part in exactly k of t, a function of a key and its position.

Step by step: a row with m of its steps left takes part in the next one of b steps with probability m / b, exactly. So
each choice of k of t steps has the same probability. docs/explanation/places.md#allocation-coins.
"""

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._uncopied import Uncopied
from ledgerwood.mechanisms.exact.coins import KEY_WORDS, RowCoins

_CHUNK_ROWS = 1 << 16
_WORDS = 1 << 64

Words = Callable[[int, int, int], NDArray[np.uint64]]
"""From (attempt, start, n) the words of the rows start .. start + n - 1 at that attempt, uint64 (n,)."""


@final
class RowAllocation(Uncopied):
    """Which of some consecutive rows take part in each step. Rows elsewhere, and how many there are, change nothing.

    It keeps how many steps each row still has to take part in, a byte or two a row. Steps come in order; an earlier one
    begins again with the first.

    Args:
        coins: of the whole allocation, with a fresh key that serves nothing else.
        selected: k, steps of each row.
        steps: t.
        start: the first row's position.
        n_rows: how many rows.

    Raises:
        InvalidParameter: counts that are not 1 <= selected <= steps.
    """

    __slots__ = ("_coins", "_left", "_selected", "_start", "_steps", "done")

    def __init__(self, coins: RowCoins, *, selected: int, steps: int, start: int, n_rows: int) -> None:
        self._steps = _validate.count("steps", steps, "steps")
        self._selected = _validate.count("selected", selected, "steps of a row")
        if self._selected > self._steps:
            raise _validate.fail("selected", selected, f"at most steps={steps}", "steps of a row")
        self._coins = coins
        self._start = _validate.count("start", start, "rows", minimum=0)
        self._left = np.empty(_validate.count("n_rows", n_rows, "rows", minimum=0), np.min_scalar_type(selected))
        self._restart()

    @property
    def n_rows(self) -> int:
        """The number of rows, curator only."""
        return len(self._left)

    def members(self, step: int) -> NDArray[np.bool_]:
        """Who takes part in a step, from 0; bool (n_rows,).

        Raises:
            InvalidParameter: there is no such step.
        """
        step = _validate.count("step", step, "step's place", minimum=0)
        if step >= self._steps:
            raise _validate.fail("step", step, f"in 0..{self._steps - 1}", "step's place")
        if step < self.done:
            self._restart()
        while self.done < step:
            self._advance()
        return self._advance()

    def _restart(self) -> None:
        self.done = 0
        self._left.fill(self._selected)

    def _advance(self) -> NDArray[np.bool_]:
        chosen = np.empty(len(self._left), dtype=np.bool_)
        words = step_words(self._coins, self.done, self._steps)
        for begin in range(0, len(chosen), _CHUNK_ROWS):
            left = self._left[begin : begin + _CHUNK_ROWS]
            chosen[begin : begin + _CHUNK_ROWS] = takes_part(left, self._steps - self.done, words, self._start + begin)
            left -= chosen[begin : begin + _CHUNK_ROWS]
        self.done += 1
        return chosen

    def __repr__(self) -> str:
        return "RowAllocation(<secret>)"

    def _uncopied(self) -> str:
        return "an allocation of rows is neither copied nor pickled: whoever has it knows each row's steps"


def step_words(coins: RowCoins, step: int, steps: int) -> Words:
    """The words of one step: each step, and each attempt at it, has a separate key, made of words of the first one."""
    kept: dict[int, RowCoins] = {}

    def words(attempt: int, start: int, n: int) -> NDArray[np.uint64]:
        if attempt not in kept:
            place = KEY_WORDS * (step + attempt * steps)
            kept[attempt] = RowCoins(coins.words(place, KEY_WORDS).astype("<u8").tobytes())
        return kept[attempt].words(start, n)

    return words


def takes_part(left: NDArray[np.unsignedinteger], remaining: int, words: Words, start: int) -> NDArray[np.bool_]:
    """True with probability left / remaining, exactly, if words are uniform; bool, shape of `left`.

    A word is taken modulo `remaining`; one of the last 2**64 mod `remaining` words is replaced by the next attempt's.

    Args:
        left: steps that each row still has to take part in, at most `remaining`.
        remaining: steps that are left, this one included.
        words: see `Words`.
        start: the first row's position.
    """
    found = words(0, start, len(left))
    beyond = _WORDS % remaining
    if beyond:
        attempt, last = 0, np.uint64(_WORDS - beyond - 1)
        rejected = np.flatnonzero(found > last)
        while rejected.size:
            attempt += 1
            for place in rejected:  # one row in 2**34, at most
                found[place] = words(attempt, start + int(place), 1)[0]
            rejected = rejected[found[rejected] > last]
    return np.asarray(found % np.uint64(remaining) < left)
