"""Candidate splits where the rows are: private histograms on a public grid that is fine where columns tend to be dense.

Many columns are skewed: nearly all rows lie near one end of the range, or near 0. Even steps leave one candidate there.
docs/explanation/boosting.md#boosting-candidates.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import CandidateBins, Ranged, Schema, rising_counts
from ledgerwood.ensemble import FeatureCells
from ledgerwood.trainers.parts.candidates import Thresholds, even_thresholds

EVEN_BINS = 16
"""Even bins of a histogram's grid, where it only serves quantiles of rows."""
HALVINGS = 11
"""How often the grid halves the distance to an end of the range, or to 0."""
CLEAR = 2.5
"""Standard deviations of its noise by which an interval's rows stand out before its halves are looked at."""


def most_sums(even_bins: int) -> int:
    """Sums of a feature's histogram, at most: bins, where the range holds 0, and the cell of missing values."""
    return even_bins + 4 * HALVINGS + 3


def histogram_borders(feature: Ranged, bins: int, even_bins: int = EVEN_BINS) -> Thresholds:
    """The borders of a feature's histogram, rising, in 1 .. bins - 1: even ones, and finer towards both ends and 0.

    Public: they follow from the declared range alone.

    Args:
        feature: its range.
        bins: even steps of the range, of which the borders are some.
        even_bins: number of even bins between the borders, about.
    """
    steps = bins >> np.arange(1, HALVINGS + 1)
    marks = [even_thresholds(bins, even_bins - 1), steps, bins - steps]
    zero = round(-feature.low / (feature.high - feature.low) * bins) if feature.low < 0.0 < feature.high else 0
    if 0 < zero < bins:
        marks += [zero - steps, zero + steps, np.array([zero, zero + 1])]
    borders = np.unique(np.concatenate(marks))
    return borders[(borders >= 1) & (borders < bins)]


def histogram_bins(schema: Schema, bins: int, even_bins: int = EVEN_BINS) -> CandidateBins:
    """The bins of all numeric features' histograms.

    Args:
        schema: resolved.
        bins: even steps of a numeric feature's range.
        even_bins: see `histogram_borders`.
    """
    numeric = [place for place, feature in enumerate(schema.features) if isinstance(feature, Ranged)]
    borders = [
        histogram_borders(feature, bins, even_bins) if isinstance(feature, Ranged) else np.empty(0, dtype=np.int64)
        for feature in schema.features
    ]
    return CandidateBins.of(schema.cells(bins), borders, numeric)


def even_candidates(cells: tuple[FeatureCells, ...], candidates: int) -> list[Thresholds]:
    """Even thresholds of each ordered feature; none of the others."""
    return [
        even_thresholds(each.ordered, candidates) if each.ordered else np.empty(0, dtype=np.int64) for each in cells
    ]


def bought_candidates(
    counts: NDArray[np.float64],
    bins: CandidateBins,
    even: list[Thresholds],
    candidates: int,
    *,
    spread: int = 0,
    stddev: float = 0.0,
) -> list[Thresholds]:
    """The thresholds of each feature: even ones and quantiles of its released histogram, equal ones once.

    Rows are taken as even inside a bin of the histogram. Even candidates stay: quantiles alone do worse on columns
    whose few extreme values matter.

    Args:
        counts: released, (bins.total,), with any noise.
        bins: of the histograms.
        even: see `even_candidates`; of features without a histogram the result.
        candidates: quantiles a feature, at most.
        spread: candidates between even steps and quantiles, at most: quantiles of the root of the rows' density.
            Then both kinds of quantiles are those of a `cleared_density`.
        stddev: of the noise of each count, where there are spread candidates.
    """
    found = list(even)
    marks, spread_marks = (np.arange(1, number + 1) / (number + 1) for number in (candidates, spread))
    for place, (feature, start, ordered) in enumerate(
        zip(bins.features.tolist(), bins.offsets.tolist(), bins.ordered.tolist(), strict=False)
    ):
        own, steps = counts[start : start + ordered], bins.cells[place].ordered
        edges = np.concatenate(([0], bins.thresholds[place], [steps]))
        if spread:
            edges, rows = cleared_density(own, edges, stddev)
            between = quantiles(np.sqrt(rows * np.diff(edges)), edges, spread_marks)
            thresholds = np.union1d(quantiles(rows, edges, marks), between)
        else:
            below = rising_counts(own)
            if below is None:  # fewer rows than noise
                continue
            thresholds = quantiles(np.diff(below), edges, marks)
        found[feature] = np.union1d(found[feature], thresholds[(thresholds >= 1) & (thresholds < steps)])
    return found


def quantiles(masses: NDArray[np.float64], edges: NDArray[np.int64], marks: NDArray[np.float64]) -> Thresholds:
    """The edges, rounded, below which these shares of a piecewise even mass lie; none where there is no mass.

    Args:
        masses: of each interval, (n,), at least 0.
        edges: of the intervals, (n + 1,), rising.
        marks: shares, in (0, 1).
    """
    below = np.concatenate(([0.0], np.cumsum(masses)))
    if not below[-1] > 0.0:
        return np.empty(0, dtype=np.int64)
    return np.asarray(np.rint(np.interp(marks * below[-1], below, edges)), dtype=np.int64)


def cleared_density(
    counts: NDArray[np.float64], edges: NDArray[np.int64], stddev: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A noisy histogram's intervals, halved only as long as their rows stand out of the noise, and their rows.

    Post-processing. An interval of n bins has noise of stddev * sqrt(n); if its rows are fewer than `CLEAR` times that,
    they count as spread evenly over it. Else its two halves share its rows by what was released of each, at least 0.

    Args:
        counts: released, (n,).
        edges: of the bins, (n + 1,), rising.
        stddev: of the noise of each count.

    Returns:
        Edges of the intervals, and the rows of each, at least 0: (m + 1,) and (m,), m <= n.
    """
    below = np.concatenate(([0.0], np.cumsum(counts)))
    starts, rows = [], []
    stack = [(0, len(counts), max(float(below[-1]), 0.0))]
    while stack:
        first, last, held = stack.pop()
        middle = int(np.searchsorted(edges[first : last + 1], (edges[first] + edges[last]) / 2.0)) + first
        middle = min(max(middle, first + 1), last - 1)
        left, right = (max(float(below[b] - below[a]), 0.0) for a, b in ((first, middle), (middle, last)))
        if last - first == 1 or held < CLEAR * stddev * math.sqrt(last - first) or not left + right > 0.0:
            starts.append(int(edges[first]))
            rows.append(held)
            continue
        share = left / (left + right)
        stack += [(middle, last, held * (1.0 - share)), (first, middle, held * share)]  # the left one is taken first
    return np.array([*starts, int(edges[-1])]), np.array(rows)
