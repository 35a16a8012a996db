"""Candidate splits: public steps, or quantiles of released histograms, which is post-processing and costs nothing.

After DP-XGBoost (2021, section 4.1), which feeds a histogram with noise to a quantile sketch once a tree. With cells
that are public, the histogram is all there is to sketch: docs/explanation/queries.md#candidate-thresholds.
"""

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Schema, TypedColumns, rising_counts
from ledgerwood.ensemble import FeatureCells

Thresholds = NDArray[np.int64]


def even_thresholds(cells: int, candidates: int) -> Thresholds:
    """min(candidates, cells - 1) thresholds t of "cell < t", rising, as evenly apart as whole numbers are.

    Args:
        cells: of the feature, ordered, >= 1; one cell alone has no threshold.
        candidates: how many are wanted, >= 1.

    Raises:
        InvalidParameter: a number outside its bound.
    """
    cells = _validate.count("cells", cells, "ordered cells")
    parts = min(_validate.count("candidates", candidates, "thresholds") + 1, cells)
    # To the nearest whole number: they are one apart or more, so that none falls on another.
    return (2 * cells * np.arange(1, parts) + parts) // (2 * parts)


def quantile_thresholds(counts: NDArray[np.float64], candidates: int) -> Thresholds:
    """At most `candidates` thresholds t of "cell < t", rising, that part the rows of a histogram as evenly as they can.

    Each wanted share of the rows takes the threshold whose share is nearest; those that fall on one threshold are one.
    At least one where there are two cells; even ones where the histogram has no rows.

    Args:
        counts: (cells,), of ordered cells, with any noise, in [-2**63, 2**63]: a column of a release's real view.
        candidates: how many are wanted, >= 1.

    Raises:
        InvalidParameter: a number outside its bound, counts of another shape.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim != 1 or not len(counts) or not (np.abs(counts) <= 2.0**63).all():
        found = f"{counts.shape}, up to {np.abs(counts).max(initial=0.0)}"
        raise _validate.fail("counts", found, "(cells,) with cells >= 1, in [-2**63, 2**63]", "rows")
    wanted = _validate.count("candidates", candidates, "thresholds") + 1
    below = rising_counts(counts)
    if len(counts) == 1 or below is None:
        return even_thresholds(len(counts), candidates)
    shares = below[1:-1] / below[-1]
    marks = np.arange(1, wanted) / wanted
    above = np.searchsorted(shares, marks).clip(1, len(shares) - 1) if len(shares) > 1 else np.zeros(len(marks), int)
    lower = np.maximum(above - 1, 0)
    nearest = np.where(marks - shares[lower] <= shares[above] - marks, lower, above)
    return np.unique(nearest) + 1


def least_cells(schema: Schema | TypedColumns, bins: int) -> tuple[FeatureCells, ...]:
    """The cells of each feature; of columns whose schema is estimated, what their types say: more may be found."""
    if isinstance(schema, Schema):
        return tuple(schema.cells(bins))
    numeric, two = FeatureCells(ordered=bins, equality=(bins,)), FeatureCells(ordered=0, equality=(0, 1))
    return tuple(numeric if column.ordered else two for column in schema.features)
