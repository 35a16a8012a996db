"""Scores back to log-odds, by a line through released counts: post-processing (Platt 1999, on noisy bins)."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ledgerwood.ensemble import Ensemble, Tree

CALIBRATION_BINS = 32
_STEPS = 100
_SURE = 3.0
"""A bin takes part where its released number of rows is so many stddevs above 0."""


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
        trees=tuple(Tree(structure=tree.structure, values=a * tree.values) for tree in ensemble.trees),
    )
