"""What two samples say of a cell: a log ratio, and one that is believed."""

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray

IntArray = NDArray[np.int64]
CAUTION = 1.0
"""Standard deviations by which a cell's log ratio is lowered before cells are sorted by it: rare cells come late."""


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
