"""Ranges of numbers and of dates from released counts of public bins: docs/explanation/bought-schema.md."""

import datetime as dt
import functools

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import FIRST_YEAR, LAST_YEAR, Date, ValueCounts
from ledgerwood.schema import Feature, Open, OpenNumeric, spelled_days

OCTAVES = range(-20, 40)
"""Powers of two that are told apart: beyond a trillion a number is clamped, below a millionth it is as good as 0."""
_EPOCH = dt.date(1970, 1, 1).toordinal()


@functools.cache
def bin_edges(per_octave: int) -> tuple[float, ...]:
    """Even steps of each octave on both sides of 0, one bin around 0, and one beyond at each end; rising."""
    steps = [1.0 + i / per_octave for i in range(per_octave)]
    positive = [step * 2.0**octave for octave in OCTAVES for step in steps] + [2.0**OCTAVES.stop]
    return (*(-edge for edge in reversed(positive)), *positive)


@functools.cache
def date_edges(per_year: int) -> tuple[float, ...]:
    """The first days of the years that are told apart, and of as many even parts of each year; days since 1970-01-01.

    Args:
        per_year: 1, 2 or 4: years, half years or quarters.
    """
    firsts = [
        dt.date(year, 1 + part * (12 // per_year), 1)
        for year in range(FIRST_YEAR, LAST_YEAR)
        for part in range(per_year)
    ]
    return tuple(float(day.toordinal() - _EPOCH) for day in (*firsts, dt.date(LAST_YEAR, 1, 1)))


def date_between(name: str, low: float, high: float, *, zoned: bool, missing: bool) -> Date:
    """The column of dates from one edge to another.

    Args:
        name: of the column.
        low, high: of `date_edges`.
        zoned, missing: as of `Date`.
    """
    if zoned:
        return Date(name, f"{spelled_days(low)}T00:00:00Z", f"{spelled_days(high)}T00:00:00Z", missing)
    return Date(name, spelled_days(low), spelled_days(high - 1.0), missing)  # which includes all of its last day


ANY_BINS = ValueCounts(column=0, edges=(-1.0, 1.0))
"""Whatever the bins, one row moves one count."""


def likely_range(
    counts: NDArray[np.float64], edges: tuple[float, ...], *, per_bin: float, full: float
) -> tuple[float, float]:
    """The ends of the run of bins that stands out most from the noise, and of bins far from it that are surely full.

    docs/explanation/bought-schema.md#bought-schema-bounds.

    Args:
        counts: released, float64 (n_bins,).
        edges: n_bins + 1, rising.
        per_bin: what each bin of the run costs, in rows: the run has the largest sum of (count - per_bin).
        full: the count from which a bin is surely full, in rows.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts - per_bin)])
    lowest = np.minimum.accumulate(sums[:-1])
    last = int(np.argmax(sums[1:] - lowest))
    first = int(np.argmin(sums[: last + 1]))
    outposts = np.flatnonzero(counts >= full)
    if outposts.size:
        first, last = min(first, int(outposts[0])), max(last, int(outposts[-1]))
    return edges[first], edges[last + 1]


def within(given: Feature | Open | None, low: float, high: float) -> tuple[float, float]:
    """An estimated range, with the one end in the place of its own that a draft gives.

    Args:
        given: what the draft says of the column.
        low, high: as estimated, low < high.
    """
    if isinstance(given, OpenNumeric) and given.low is not None:
        return given.low, high if high > given.low else given.low + max(1.0, abs(given.low))
    if isinstance(given, OpenNumeric) and given.high is not None:
        return low if low < given.high else given.high - max(1.0, abs(given.high)), given.high
    return low, high
