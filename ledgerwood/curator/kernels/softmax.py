"""The loop that sums the multinomial logistic loss's gradients and hessians. `kernels` says what holds."""
# mypy: disable-error-code="no-untyped-def"

import math

import numba
import numpy as np

from ledgerwood.routing import leaf_of, rows_kernel


@rows_kernel
def softmax_sums(
    n_rows,
    cells,
    feature,
    below,
    besides,
    sets,
    scores,
    classes,
    weights,
    sampled,
    curvature_scale,
    per_unit,
    squared_radius,
    leaves,
    partial,
):
    """Add weight * (scaled hessian, gradient) of each class, in grid steps, to each row's leaf.

    A row that is above `squared_radius`, by the last bits of floating point if ever, loses steps of its hessians, and
    counts 0 if that is not enough; so does one of no class, or whose scores are not finite.

    Args:
        feature, below, besides, sets: the tree, as `Lowered`.
        scores: float64 (n_classes, n_rows).
        classes: int32 (n_rows,), -1 for none.
        weights: int32 (n_rows,), in steps of the largest one, or empty where every row weighs the whole of it.
        sampled: bool (n_rows,), or empty where every row takes part.
        squared_radius: bounds the squared norm of a contribution, in squared steps.
        leaves: int32 (n_rows,), filled with each row's leaf.
        partial: int64 (n_blocks, n_leaves, 2 n_classes), zeros: a row for each block of rows.
    """
    n_classes = scores.shape[0]
    block_rows = -(-n_rows // partial.shape[0])
    for block in numba.prange(partial.shape[0]):
        own = np.empty(2 * n_classes, dtype=np.int64)
        pull = np.empty(n_classes, dtype=np.float64)
        for row in range(block * block_rows, min(n_rows, (block + 1) * block_rows)):
            leaf = leaf_of(cells, row, feature, below, besides, sets)
            leaves[row] = leaf
            if (len(sampled) > 0 and not sampled[row]) or classes[row] < 0:
                continue
            top = scores[0, row]
            for k in range(1, n_classes):
                top = max(top, scores[k, row])
            total = 0.0
            for k in range(n_classes):
                pull[k] = math.exp(scores[k, row] - top)
                total += pull[k]
            if not math.isfinite(total):  # a score that is no number
                continue
            norm = np.int64(0)
            for k in range(n_classes):
                p = pull[k] / total
                rest = (total - pull[k]) / total
                own[2 * k] = np.int64(curvature_scale * (p * rest) * per_unit)
                own[2 * k + 1] = np.int64((-rest if k == classes[row] else p) * per_unit)
                norm += own[2 * k] * own[2 * k] + own[2 * k + 1] * own[2 * k + 1]
            for _ in range(4):
                if norm > squared_radius:
                    norm = np.int64(0)
                    for k in range(n_classes):
                        own[2 * k] = max(own[2 * k] - 1, 0)
                        norm += own[2 * k] * own[2 * k] + own[2 * k + 1] * own[2 * k + 1]
            if norm > squared_radius:
                continue
            for column in range(2 * n_classes):
                steps = own[column]
                if len(weights) > 0:
                    # Below 2**53, and the divisor a power of two: no float here is rounded.
                    steps = np.int64(float(steps * weights[row]) / per_unit)
                partial[block, leaf, column] += steps
