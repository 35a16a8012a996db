"""Candidate splits where the rows are: private histograms on a public grid that is fine where columns tend to be dense.

Many columns are skewed: nearly all rows lie near one end of the range, or near 0. Even steps leave one candidate there.
docs/explanation/boosting.md#boosting-candidates.
"""

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import CandidateBins, Numeric, Schema, rising_counts
from ledgerwood.ensemble import FeatureCells
from ledgerwood.trainers.parts.candidates import Thresholds, even_thresholds

EVEN_BINS = 16
"""Even bins of a histogram's grid."""
HALVINGS = 11
"""How often the grid halves the distance to an end of the range, or to 0."""
MOST_BINS = EVEN_BINS + 4 * HALVINGS + 3
"""Sums of a feature's histogram, at most: bins, where the range holds 0, and the cell of missing values."""


def histogram_borders(feature: Numeric, bins: int) -> Thresholds:
    """The borders of a feature's histogram, rising, in 1 .. bins - 1: even ones, and finer towards both ends and 0.

    Public: they follow from the declared range alone.

    Args:
        feature: its range.
        bins: even steps of the range, of which the borders are some.
    """
    steps = bins >> np.arange(1, HALVINGS + 1)
    marks = [even_thresholds(bins, EVEN_BINS - 1), steps, bins - steps]
    zero = round(-feature.low / (feature.high - feature.low) * bins) if feature.low < 0.0 < feature.high else 0
    if 0 < zero < bins:
        marks += [zero - steps, zero + steps, np.array([zero, zero + 1])]
    borders = np.unique(np.concatenate(marks))
    return borders[(borders >= 1) & (borders < bins)]


def histogram_bins(schema: Schema, bins: int) -> CandidateBins:
    """The bins of all numeric features' histograms.

    Args:
        schema: resolved.
        bins: even steps of a numeric feature's range.
    """
    numeric = [place for place, feature in enumerate(schema.features) if isinstance(feature, Numeric)]
    borders = [
        histogram_borders(feature, bins) if isinstance(feature, Numeric) else np.empty(0, dtype=np.int64)
        for feature in schema.features
    ]
    return CandidateBins.of(schema.cells(bins), borders, numeric)


def even_candidates(cells: tuple[FeatureCells, ...], candidates: int) -> list[Thresholds]:
    """Even thresholds of each ordered feature; none of the others."""
    return [
        even_thresholds(each.ordered, candidates) if each.ordered else np.empty(0, dtype=np.int64) for each in cells
    ]


def bought_candidates(
    counts: NDArray[np.float64], bins: CandidateBins, even: list[Thresholds], candidates: int
) -> list[Thresholds]:
    """The thresholds of each feature: even ones and quantiles of its released histogram, equal ones once.

    Rows are taken as even inside a bin of the histogram. Even candidates stay: quantiles alone do worse on columns
    whose few extreme values matter.

    Args:
        counts: released, (bins.total,), with any noise.
        bins: of the histograms.
        even: see `even_candidates`; of features without a histogram the result.
        candidates: quantiles a feature, at most.
    """
    found = list(even)
    marks = np.arange(1, candidates + 1) / (candidates + 1)
    for place, (feature, start, ordered) in enumerate(
        zip(bins.features.tolist(), bins.offsets.tolist(), bins.ordered.tolist(), strict=False)
    ):
        below = rising_counts(counts[start : start + ordered])
        if below is None:  # fewer rows than noise
            continue
        steps = bins.cells[place].ordered
        edges = np.concatenate(([0], bins.thresholds[place], [steps]))
        quantiles = np.rint(np.interp(marks * below[-1], below, edges)).astype(np.int64)
        found[feature] = np.union1d(found[feature], quantiles[(quantiles >= 1) & (quantiles < steps)])
    return found
