"""Loops over rows that have a score for each class: gradients of the multinomial loss, clipped, summed in int64.

One routing of a row serves all classes. The sums of powers are taken in the order of the classes, with this library's
own exponential, so that a row counts alike wherever it lies: docs/explanation/places.md#own-exp.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numba
import numpy as np

from ledgerwood.curator.kernels.exponential import exp
from ledgerwood.curator.kernels.sums import pays, weighed
from ledgerwood.routing import CHUNK_ROWS, leaves_of, rows_kernel


@numba.njit(inline="always")
def _sums(values):
    """The sum of the values, and that of their squares, in one order: every second one, and the rest, and both."""
    even, odd, even_squares, odd_squares = 0.0, 0.0, 0.0, 0.0
    for place in range(0, len(values) - 1, 2):
        even += values[place]
        odd += values[place + 1]
        even_squares += values[place] * values[place]
        odd_squares += values[place + 1] * values[place + 1]
    if len(values) % 2:
        even += values[-1]
        even_squares += values[-1] * values[-1]
    return even + odd, even_squares + odd_squares


@rows_kernel
def class_gradient_sums(
    first_row,
    end_row,
    cells,
    feature,
    below,
    besides,
    sets,
    scores,
    classes,
    weights,
    sampled,
    clip,
    per_unit,
    squared_radius,
    left,
    costs,
    first_weight,
    second_weight,
    leaves,
    partial,
):
    """Add weight * (1, clipped gradient of the multinomial loss for each class), in grid steps, to each row's leaf.

    The gradient is p - e, for the probabilities p by the row's scores and the unit vector e of its class; a longer one
    than `clip` is scaled down to it, and each number truncated toward zero. The squared norm is then at most
    `squared_radius`: a vector above it (by the last bits of floating point, if ever) loses steps of its own class's
    gradient, the largest one; a row where that is not enough contributes nothing.

    Args:
        scores: float64 (n_rows, n_classes).
        classes: int32 (n_rows,), the place of each row's class, -1 for none: such a row contributes nothing.
        clip: the largest Euclidean norm of a gradient.
        squared_radius: the largest squared norm, in squared steps.
        weights, sampled, left, costs, first_weight, second_weight, leaves: as in `sums.moment_sums`.
        partial: int64 (n_chunks, n_leaves, 1 + n_classes), zeros.
    """
    n_classes = scores.shape[1]
    powers = np.empty(n_classes)
    steps = np.empty(n_classes, dtype=np.int32)  # at most 2**21 in size
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk, end = begin // CHUNK_ROWS, min(end_row, begin + CHUNK_ROWS)
        leaves_of(begin, end, cells, feature, below, besides, sets, leaves, begin)
        for row in range(begin, end):
            own = classes[row]
            absent = len(sampled) > 0 and not sampled[row]
            if own < 0 or (absent and len(left) == 0):
                continue
            top = scores[row, 0]
            for place in range(1, n_classes):
                top = max(top, scores[row, place])
            for place in range(n_classes):
                powers[place] = exp(scores[row, place] - top)
            likely, powers[own] = powers[own], 0.0
            others, squares = _sums(powers)
            total = others + likely
            if not math.isfinite(total):  # so is a score
                continue
            # Not p - 1: near certainty that would cancel.
            powers[own], squares = -others, squares + others * others
            norm = math.sqrt(squares) / total
            scale = per_unit * (clip / norm if norm > clip else 1.0) / total
            for place in range(n_classes):
                steps[place] = np.int32(powers[place] * scale)
            whole = np.int64(0)
            for place in range(n_classes):
                whole += np.int64(steps[place]) * np.int64(steps[place])
            for _ in range(4):
                if whole > squared_radius and steps[own] < 0:
                    whole += 2 * np.int64(steps[own]) + 1
                    steps[own] += 1
            if whole > squared_radius:
                continue
            first = np.int64(per_unit)
            if len(weights) > 0:
                first, whole = np.int64(weights[row]), np.int64(0)
                for place in range(n_classes):
                    steps[place] = weighed(np.int64(steps[place]), first, per_unit)
                    whole += np.int64(steps[place]) * np.int64(steps[place])
            if len(left) > 0 and not pays(
                left, row, float(first) * float(first), float(whole), costs, first_weight, second_weight
            ):
                continue
            if not absent:
                leaf = leaves[row]
                partial[chunk, leaf, 0] += first
                for place in range(n_classes):
                    partial[chunk, leaf, 1 + place] += steps[place]


@rows_kernel
def add_class_values(first_row, end_row, leaves, values, scores):
    """Add the values of each row's leaf to its scores, where the leaf is known already."""
    for row in range(first_row, end_row):
        for place in range(scores.shape[1]):
            scores[row, place] += values[leaves[row], place]
