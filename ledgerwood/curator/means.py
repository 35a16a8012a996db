"""Means from released sums and counts: post-processing, which costs nothing.

Bias and error: docs/explanation/queries.md#column-means.
"""

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.curator import Release, real
from ledgerwood.curator.statistics import ColumnMoments, ColumnSum, Steps
from ledgerwood.errors import InvalidParameter

Numbers = NDArray[np.int64]


def mean_of_moments(release: Release[Numbers], query: ColumnMoments) -> float:
    """The mean of the column, clamped to its bounds, in its unit.

    Args:
        release: of `query`, with any noise; elliptical Gaussian noise divides it best.
        query: what was released.

    Raises:
        InvalidParameter: a release of another shape or grid.
    """
    _require(release, query, "release")
    count, total = real(release).tolist()
    return _mean(query.steps, total, count)


def mean_of_sum_and_count(total: Release[Numbers], count: Release[Numbers] | int, query: ColumnSum) -> float:
    """As `mean_of_moments`, from two releases, or from one and a public number.

    Args:
        total: of `query`.
        count: of the same column's `ColumnCount`, or of `RowCount` where no value can be missing; a whole number >= 1
            only where the number of values is public: under replace-one, of a column without missing values.
        query: what `total` was released for.

    Raises:
        InvalidParameter: a release of another shape or grid, a number below 1.
    """
    _require(total, query, "total")
    if not isinstance(count, Release):
        values = float(_validate.count("count", count, "rows"))
    elif count.value.shape == (1,):
        values = float(real(count)[0])
    else:
        raise InvalidParameter(f"count has shape {count.value.shape}, not (1,) (unit: rows)")
    return _mean(query.steps, float(real(total)[0]), values)


def _mean(steps: Steps, total: float, count: float) -> float:
    """Fewer than one row are taken as one."""
    return min(max(steps.origin + total / max(count, 1.0), steps.low), steps.high)


def _require(release: Release[Numbers], query: ColumnMoments | ColumnSum, name: str) -> None:
    if release.grid != query.grid or release.value.shape != (query.grid.columns,):
        raise InvalidParameter(
            f"{name} has shape {release.value.shape} on {release.grid!r}, not that of {type(query).__name__}: "
            f"({query.grid.columns},) on {query.grid!r} (unit: grid steps)"
        )
