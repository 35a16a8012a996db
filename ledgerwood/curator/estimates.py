"""Means and quantiles from released sums, counts and histograms: post-processing, which costs nothing.

Bias and error: docs/explanation/queries.md#column-means and #histogram-quantiles.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.queries.columns.statistics import ColumnHistogram, ColumnMoments, ColumnSum, Steps, numeric
from ledgerwood.curator.release import Release
from ledgerwood.errors import InvalidParameter

Numbers = NDArray[np.int64]


def mean_of_moments(release: Release[Numbers], query: ColumnMoments) -> float:
    """The mean of the column, clamped to its bounds, in its unit.

    Args:
        release: the release of `query`, with any noise; elliptical Gaussian noise divides it best.
        query: the released query.

    Raises:
        InvalidParameter: a release of another shape or grid.
    """
    _require(release, query, "release")
    count, total = release.real.tolist()
    return _mean(query.steps, total, count)


def mean_of_sum_and_count(total: Release[Numbers], count: Release[Numbers] | int, query: ColumnSum) -> float:
    """Estimate a mean as `mean_of_moments`, from two releases, or from one and a public number.

    Args:
        total: the total of `query`.
        count: the count of the same column's `ColumnCount`, or of `RowCount` where no value can be missing; a whole
            number >= 1 only where the number of values is public: under replace-one, of a column without missing
            values.
        query: the query for which `total` was released.

    Raises:
        InvalidParameter: a release of another shape or grid, a number below 1.
    """
    _require(total, query, "total")
    if not isinstance(count, Release):
        values = float(_validate.count("count", count, "rows"))
    elif count.value.shape == (1,):
        values = float(count.real[0])
    else:
        raise InvalidParameter(f"count has shape {count.value.shape}, not (1,) (unit: rows)")
    return _mean(query.steps, float(total.real[0]), values)


def quantiles_of_histogram(
    release: Release[Numbers], query: ColumnHistogram, quantiles: Sequence[float]
) -> tuple[float, ...]:
    """Computes quantiles from a histogram, linear within a cell; in the column's unit, increasing with q.

    At any number of rows, and at the privacy cost of one histogram however many there are.

    Args:
        release: the release of `query`.
        query: the released query, on a numeric column.
        quantiles: numbers in (0, 1).

    Raises:
        InvalidParameter: a release of another shape or grid, a number outside its bound.
        SchemaError: a histogram of a categorical column.
    """
    numeric(query.column, "a quantile")
    edges = np.array(query.edges)
    if release.grid != query.grid or release.value.shape != (query.cells, 1):
        raise InvalidParameter(
            f"release has shape {release.value.shape} on {release.grid!r}, not that of the histogram: "
            f"({query.cells}, 1) on {query.grid!r} (unit: rows)"
        )
    shares = [_validate.real("quantiles", q, "share of the rows") for q in quantiles]
    if not all(0.0 < q < 1.0 for q in shares):
        raise _validate.fail("quantiles", tuple(quantiles), "in (0, 1)", "share of the rows")
    rising = rising_counts(release.real[: query.values, 0])
    if rising is None:
        rising = (edges - edges[0]) / (edges[-1] - edges[0])  # nothing is known but the range
    found = []
    for wanted in (q * rising[-1] for q in shares):
        cell = int(np.searchsorted(rising, wanted)) - 1  # rising[cell] < wanted <= rising[cell + 1]
        inside = (wanted - rising[cell]) / (rising[cell + 1] - rising[cell])
        found.append(float(min(edges[cell] + (edges[cell + 1] - edges[cell]) * inside, edges[cell + 1])))
    return tuple(found)


def rising_counts(counts: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Number of rows below each edge of a noisy histogram, (cells + 1,), increasing from 0; None without rows.

    docs/explanation/queries.md#histogram-quantiles.

    Args:
        counts: (cells,), finite, with any noise.
    """
    below = np.concatenate(([0.0], np.cumsum(counts)))
    if not below[-1] > 0.0:
        return None
    # Noise makes it fall here and there: the middle between the least rising curve above and the largest below.
    below = np.clip(below, 0.0, below[-1])
    rising: NDArray[np.float64] = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2.0
    return rising


def _mean(steps: Steps, total: float, count: float) -> float:
    """Fewer than one row are taken as one."""
    return min(max(steps.origin + total / max(count, 1.0), steps.low), steps.high)


def _require(release: Release[Numbers], query: ColumnMoments | ColumnSum, name: str) -> None:
    if release.grid != query.grid or release.value.shape != (query.grid.columns,):
        raise InvalidParameter(
            f"{name} has shape {release.value.shape} on {release.grid!r}, not that of {type(query).__name__}: "
            f"({query.grid.columns},) on {query.grid!r} (unit: grid steps)"
        )
