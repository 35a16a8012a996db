"""The form of an output that the scores use: numbers, values that recur, bits; and the log ratio of a cell.

Nothing here sees more of a number than its order among thresholds and whether it is one of few values that recur,
except `lowest_bits` and `row_bits`, which only a bitwise audit calls.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray

IntArray = NDArray[np.int64]
CAUTION = 1.0
"""Standard deviations by which a cell's log ratio is lowered before cells are sorted by it: rare cells come late."""
_TIE = 1e-6


def log_ratios(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> FloatArray:
    """Smoothed log ratios of cells' probabilities, shape (k,); 0 if nothing was seen."""
    high, low = with_row + 0.5, without + 0.5
    return np.asarray(np.log(high / low) - np.log((runs[0] + 1.0) / (runs[1] + 1.0)))


def believed(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Lower ends of the log ratio in both directions: first against second, second against first; each shape (k,)."""
    ratio = log_ratios(with_row, without, runs)
    slack = CAUTION * np.sqrt(1.0 / (with_row + 0.5) + 1.0 / (without + 0.5))
    return ratio - slack, -ratio - slack


def counts(cells: IntArray, number: int) -> IntArray:
    """Counts how often each of `number` cells occurs, shape (number,)."""
    return np.bincount(cells, minlength=number).astype(np.int64)


def tail_ratios(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> FloatArray:
    """Estimates for ordered cells the log ratio of the best tail that contains each cell, shape (k,).

    Tails begin at one end, whichever promises more, so the numbers fall from that end to the other. Among equal ones
    cells farther out come a little higher: a threshold can still cut a tail that was too rare to be learned.
    """
    found: list[FloatArray] = []
    for step in (1, -1):
        tails, _ = believed(np.cumsum(with_row[::step]), np.cumsum(without[::step]), runs)
        best = np.maximum.accumulate(tails[::-1])[::-1] - _TIE * np.arange(tails.size)
        found.append(best[::step])
    return max(found, key=lambda ratios: float(ratios.max()))


def smoothed(cells: IntArray) -> IntArray:
    """Sums over each cell and its four nearest neighbours, the ends repeated, shape (k,)."""
    return np.convolve(np.pad(cells, 2, mode="edge"), np.ones(5, np.int64), mode="valid")


_FEW = 256
"""The largest number of distinct values of a column that get separate bins."""
_ATOMS = 64
_LEAST = 12
"""A value that recurs so often, and in a two-thousandth of all outputs, is an atom."""
_SPECIAL = 3
_ENOUGH = 40_000
_QUANTILES = np.concatenate(
    [np.geomspace(2e-5, 1e-2, 14), np.linspace(1e-2, 0.99, 80), 1.0 - np.geomspace(1e-2, 2e-5, 14)]
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Intervals of one column, and a cell each for NaN, inf and -inf.

    Args:
        edges: increasing; a number is in the cell of the last edge that it reaches.
    """

    edges: FloatArray

    @property
    def number(self) -> int:
        """The number of cells."""
        return self.edges.size + 1 + _SPECIAL

    def cells(self, column: FloatArray) -> IntArray:
        """The cell of each value, shape (n,)."""
        found = np.searchsorted(self.edges, column, side="right").astype(np.int64, copy=False)
        if np.isfinite(column).all():
            return found
        first = self.edges.size + 1
        found[np.isnan(column)] = first
        found[column == np.inf] = first + 1
        found[column == -np.inf] = first + 2
        return found


def bins(column: FloatArray, most: int = 1000) -> Bins:
    """Bins that hold about equally many of these values, narrower in both tails; or one for each of few values."""
    if most < _FEW:
        column = _some(column)
    finite = np.sort(column[np.isfinite(column)])
    if finite.size == 0:
        return Bins(finite)
    new = np.flatnonzero(np.diff(finite)) + 1
    if new.size < min(_FEW, most):
        return Bins(finite[new])
    wanted = _QUANTILES[(_QUANTILES * finite.size >= 8) & ((1.0 - _QUANTILES) * finite.size >= 8)]
    if wanted.size > most:
        wanted = np.linspace(0.0, 1.0, most + 2)[1:-1]
    return Bins(np.unique(finite[(wanted * finite.size).astype(np.int64)]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Values of one column that recur, numbered; all other numbers share a code; NaN, inf and -inf have their own.

    Args:
        values: increasing.
    """

    values: FloatArray

    @property
    def number(self) -> int:
        """The code of all numbers that are not atoms (values that recur)."""
        return self.values.size

    @property
    def codes_in_all(self) -> int:
        """The total number of codes."""
        return self.values.size + 1 + _SPECIAL

    def codes(self, column: FloatArray) -> IntArray:
        """The code of each value, shape (n,)."""
        size = self.values.size
        found = np.full(column.shape, size, np.int64)
        if size:
            places = np.minimum(np.searchsorted(self.values, column), size - 1)
            hit = self.values[places] == column
            found = np.where(hit, places, size)
        if np.isfinite(column).all():
            return found
        found[np.isnan(column)] = size + 1
        found[column == np.inf] = size + 2
        found[column == -np.inf] = size + 3
        return found


def _some(column: FloatArray) -> FloatArray:
    """Values at equal steps, 40 000 of them or more: enough for quantiles and for what recurs."""
    return column[:: max(column.size // _ENOUGH, 1)]


def atoms(column: FloatArray) -> Atoms:
    """The values that recur, at most the 64 most frequent."""
    column = _some(column)
    values, times = np.unique(column[np.isfinite(column)], return_counts=True)
    often = times >= max(_LEAST, 5e-4 * column.size)
    if often.sum() > _ATOMS:
        often &= times >= np.sort(times)[-_ATOMS]
    return Atoms(values[often])


def keys(codes: list[IntArray]) -> NDArray[np.uint64]:
    """One number for each row of codes, shape (n,): equal rows have equal numbers, others as good as never."""
    mixed = np.zeros(codes[0].shape, np.uint64)
    for column in codes:
        mixed = _scrambled(mixed + column.view(np.uint64))
    return mixed


def _scrambled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # splitmix64's finaliser: a bijection of 64 bits
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def lowest_bits(column: FloatArray) -> tuple[IntArray, IntArray]:
    """(exponent, place of the lowest bit that is set) of each value, on the absolute grid, shape (n,) each.

    A value is a multiple of 2^-k exactly if its lowest bit is at -k or above. 0 has place 2000, -0.0 has 2001, values
    that are not finite 2002.
    """
    finite = np.isfinite(column)
    mantissa, exponent = np.frexp(np.where(finite, column, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    _, lowest = np.frexp((whole & -whole).astype(np.float64))
    place = exponent.astype(np.int64) - 53 + lowest - 1
    place[whole == 0] = np.where(np.signbit(column[whole == 0]), 2001, 2000)
    place[~finite] = 2002
    return exponent.astype(np.int64), place


def row_bits(values: FloatArray) -> NDArray[np.uint64]:
    """One number for the bits of each row, shape (n,)."""
    return keys([np.ascontiguousarray(column).view(np.int64) for column in values.T])
