"""What two samples say of a cell: a log ratio, and one that is believed."""

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray

IntArray = NDArray[np.int64]
CAUTION = 1.0
"""Standard deviations by which a cell's log ratio is lowered before cells are sorted by it: rare cells come late."""
_TIE = 1e-6


def log_ratios(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> FloatArray:
    """Smoothed log ratios of cells' probabilities, shape (k,); 0 where nothing was seen."""
    high, low = with_row + 0.5, without + 0.5
    return np.asarray(np.log(high / low) - np.log((runs[0] + 1.0) / (runs[1] + 1.0)))


def believed(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Lower ends of the log ratio in both directions: first against second, second against first; each shape (k,)."""
    ratio = log_ratios(with_row, without, runs)
    slack = CAUTION * np.sqrt(1.0 / (with_row + 0.5) + 1.0 / (without + 0.5))
    return ratio - slack, -ratio - slack


def counts(cells: IntArray, number: int) -> IntArray:
    """How often each of `number` cells occurs, shape (number,)."""
    return np.bincount(cells, minlength=number).astype(np.int64)


def tail_ratios(with_row: IntArray, without: IntArray, runs: tuple[int, int]) -> FloatArray:
    """For cells in order: the believed log ratio of the best tail that a cell is in, shape (k,).

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
