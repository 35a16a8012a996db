"""Post-processing of the federated framework: split candidates (C3), and scores brought back to log-odds (A2).

Candidates are after Maddock, Cormode, Wang, Maple and Jha 2022, section 4.5: uniform, logarithmic, or refined by
hessians, borders of a public grid of cells. Scores are brought back by a line (Platt 1999, on noisy bins); ours.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ledgerwood import _validate
from ledgerwood.curator import Ranged, Schema
from ledgerwood.ensemble import Ensemble
from ledgerwood.trainers.parts.candidates import Thresholds, even_thresholds

CandidateRule = Literal["uniform", "log", "quantiles", "iterative_hessian"]
CALIBRATION_BINS = 32
_STEPS = 100
_SURE = 3.0
"""A bin takes part if its released number of rows is at least this many standard deviations above 0."""


def first_candidates(schema: Schema, rule: CandidateRule, *, bins: int, candidates: int) -> list[Thresholds]:
    """The thresholds of each feature before any release; none of a feature without order.

    Args:
        schema: resolved.
        rule: "log" for logarithmic ones; even ones for all others.
        bins: even steps of a numeric feature's range, whose borders thresholds are.
        candidates: Q, at most.
    """
    found = []
    for feature, cells in zip(schema.features, schema.cells(bins), strict=True):
        if not cells.ordered or not isinstance(feature, Ranged):
            found.append(np.empty(0, dtype=np.int64))
        elif rule == "log":
            found.append(log_thresholds(feature.low, feature.high, bins=bins, candidates=candidates))
        else:
            found.append(even_thresholds(cells.ordered, candidates))
    return found


def log_thresholds(low: float, high: float, *, bins: int, candidates: int) -> Thresholds:
    """At most Q thresholds, even in log(1 + distance from the end of the range that is nearer to 0).

    The published rule starts at the column's minimum and mirrors by the sign of its skew; here both are public.

    Args:
        low, high: the declared range.
        bins: even steps of it.
        candidates: Q.
    """
    width = high - low
    marks = np.expm1(np.linspace(0.0, math.log1p(width), candidates + 2)[1:-1]) / width * bins
    places = np.unique(np.clip(np.rint(marks), 1, bins - 1).astype(np.int64))
    return places if abs(low) <= abs(high) else np.asarray(np.sort(bins - places))


def refined_thresholds(
    hessians: NDArray[np.float64],
    thresholds: Thresholds,
    *,
    total: float,
    candidates: int,
    cells: int,
) -> Thresholds:
    """One round of the iterative hessian rule for one feature: light bins are merged, heavy ones split; rising.

    Bins are scanned from the left, and their mass is added up: where it passes total / Q the bin's right border is a
    candidate, and, while there are fewer than Q, so is the middle between it and the next border. The last border
    always is one. Gaps are filled evenly where there are still fewer than Q.

    Args:
        hessians: released, float64 (len(thresholds) + 1,), of the ordered bins, with any noise.
        thresholds: the borders between these bins.
        total: hessian of all rows, as the mean over features of their released sums.
        candidates: Q.
        cells: ordered cells of the feature, whose borders 1 .. cells - 1 a candidate may be.

    Raises:
        InvalidParameter: not one bin more than there are thresholds.
    """
    if hessians.shape != (len(thresholds) + 1,):
        raise _validate.fail("hessians.shape", hessians.shape, f"({len(thresholds) + 1},)", "bins")
    if not len(thresholds):
        return thresholds
    masses = np.maximum(hessians, 0.0)
    target = max(total, 0.0) / candidates
    ends = [*thresholds.tolist(), cells]
    found: list[int] = []
    mass = 0.0
    for place, border in enumerate(ends[:-1]):
        mass += float(masses[place])
        if mass > target:
            found.append(border)
            if len(found) < candidates:
                found.append((border + ends[place + 1]) // 2)
            mass = 0.0
    unique = sorted({*(t for t in found if 1 <= t < cells), ends[-2]})
    if len(unique) > candidates:  # the last border always stays
        unique = [*unique[: candidates - 1], ends[-2]]
    return _filled(unique, candidates, cells)


def _filled(borders: list[int], candidates: int, cells: int) -> Thresholds:
    """At most Q candidates: gaps are filled evenly where there are fewer, the ends of the range among them."""
    missing = candidates - len(borders)
    if missing > 0:
        ends = np.array([0, *borders, cells])
        # As many new borders in a gap as its width deserves, the widest remainders first.
        gaps = np.maximum(np.diff(ends) - 1, 0)
        share = np.minimum(np.ceil(candidates / len(borders)).astype(int), gaps)
        fresh: list[list[int]] = []
        for low, high, room in zip(ends[:-1].tolist(), ends[1:].tolist(), share.tolist(), strict=True):
            if room > 0:
                even = np.rint(np.linspace(low, high, room + 2)[1:-1]).astype(np.int64)
                fresh.extend([high - low, int(t)] for t in np.unique(even) if low < t < high)
        fresh.sort(key=lambda each: -each[0])
        borders = sorted({*borders, *(t for _, t in fresh[:missing])})
    return np.array(borders, dtype=np.int64)


def hessian_total(hessians: Sequence[NDArray[np.float64]]) -> float:
    """The hessian of all rows: the mean over features of the sums of their bins, each of at least 0."""
    return math.fsum(float(np.maximum(own, 0.0).sum()) for own in hessians) / max(len(hessians), 1)


def score_edges(ensemble: Ensemble, bins: int) -> tuple[float, ...]:
    """Even edges over the scores that may occur, bins - 1 of them, rising; the outer bins take all scores beyond.

    The range is the mean over all leaves of each tree, added up, and as far to either side as the stddevs of the trees'
    leaves are in sum, as if all trees agreed: rows' scores are well inside of it, and far fewer leaves reach its ends.
    """
    middle = ensemble.initial_score + math.fsum(float(tree.values.mean()) for tree in ensemble.trees)
    reach = math.fsum(float(tree.values.std()) for tree in ensemble.trees)
    edges = np.linspace(middle - reach, middle + reach, bins + 1)[1:-1]
    if not (np.diff(edges) > 0.0).all():  # no tree has said anything
        reach = max(1.0, abs(middle))  # of a large score 1 is less than its rounding
        edges = np.linspace(middle - reach, middle + reach, bins + 1)[1:-1]
    return tuple(edges.tolist())


def platt_line(released: NDArray[np.float64], edges: tuple[float, ...], *, stddev: float) -> tuple[float, float]:
    """(a, b) of the likeliest log-odds a s + b; (1, 0) where too little stands out of the noise.

    Args:
        released: (bins, 2), rows and sum of labels in [-1, 1] of each bin of scores.
        edges: between the bins.
        stddev: of the noise on a number of rows.
    """
    ends = np.array(edges)
    width = float(ends[1] - ends[0]) if len(ends) > 1 else 1.0
    centres = np.concatenate(([ends[0] - width / 2.0], (ends[1:] + ends[:-1]) / 2.0, [ends[-1] + width / 2.0]))
    kept = released[:, 0] > _SURE * stddev
    if kept.sum() < 2:
        return 1.0, 0.0
    rows, scores = released[kept, 0], centres[kept]
    positive = np.clip((rows + released[kept, 1]) / 2.0, 0.0, rows)
    # In units of the scores' spread, so that the ridge, which is less than one row, has no unit.
    middle = float(np.average(scores, weights=rows))
    spread = max(float(np.sqrt(np.average((scores - middle) ** 2, weights=rows))), 1e-12)
    design = np.column_stack(((scores - middle) / spread, np.ones(len(scores))))
    line = np.zeros(2)
    for _ in range(_STEPS):
        p = expit(design @ line)
        slope = design.T @ (rows * p - positive) + 0.5 * line
        curve = design.T @ (design * (rows * p * (1.0 - p))[:, np.newaxis]) + 0.5 * np.eye(2)
        step = np.clip(np.linalg.solve(curve, slope), -1.0, 1.0)
        line = line - step
        if float(np.abs(step).max()) < 1e-9:
            break
    a = float(line[0] / spread)
    b = float(line[1]) - a * middle
    # A line that falls would turn the order of the scores round, on the word of the noise.
    return (a, b) if a > 0.0 else (1.0, 0.0)


def recalibrated(ensemble: Ensemble, a: float, b: float) -> Ensemble:
    """The ensemble whose score is a s + b."""
    return Ensemble(
        initial_score=a * ensemble.initial_score + b,
        trees=tuple(tree.scaled(a) for tree in ensemble.trees),
    )
