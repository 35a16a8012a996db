"""The only loops over rows: route, take the gradient, clip, truncate to the grid, sum in int64.

Each statistic is a sum of row contributions that are integers on a public grid, so the result does not depend on the
order of rows or on the number of threads, and its sensitivity is exact. Sums wrap modulo 2**64, a homomorphism; nothing
saturates or raises because of a row.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels.exponential import exp
from ledgerwood.routing import CHUNK_ROWS, leaves_of, parts_kernel, rows_kernel


def n_chunks(n_rows: int) -> int:
    """Number of blocks of rows, each summed apart."""
    return max(1, -(-n_rows // CHUNK_ROWS))


def total(partial: NDArray[np.int64]) -> NDArray[np.int64]:
    """The blocks' sums added up, modulo 2**64."""
    summed: NDArray[np.int64] = partial.sum(axis=0, dtype=np.int64)
    return summed


@numba.njit(inline="always")
def gradient_of(score, target, logistic):
    """d loss / d score: score - y for y in [-1, 1]; p - (y + 1) / 2 for y in {-1, 1}."""
    if logistic:
        # Written in the sign of the label, so that neither tail cancels.
        return -target / (1.0 + exp(target * score))
    return score - target


@numba.njit(inline="always")
def truncated(value, bound, per_unit, bound_steps):
    """Clip to [-bound, bound] and truncate toward zero to the grid, then hold the bound in integers."""
    clipped = min(max(value, -bound), bound)
    steps = np.int64(clipped * per_unit)
    return min(max(steps, -bound_steps), bound_steps)


@numba.njit(inline="always")
def weighed(steps, weight, per_unit):
    """steps * weight / per_unit, truncated toward zero.

    Args:
        steps: at most 2**28 in size.
        weight: in [0, per_unit], steps of the largest weight.
        per_unit: 2**20. The product is below 2**53 and the divisor a power of two, so that no float here is rounded.
    """
    return np.int64(float(steps * weight) / per_unit)


@numba.njit(inline="always")
def curvature_steps(gradient, curvature_scale, clip, per_unit, squared_radius):
    """(Scaled hessian, clipped gradient) of the logistic loss in grid steps, without a weight.

    Its squared norm is at most `squared_radius`: a pair above it (by the last bits of floating point, if ever) loses
    steps of its hessian; (-1, 0) if that is not enough, of a row that contributes nothing.
    """
    size = abs(gradient)
    first = np.int64(curvature_scale * (size * (1.0 - size)) * per_unit)
    second = np.int64(min(max(gradient, -clip), clip) * per_unit)
    for _ in range(4):
        if first > 0 and first * first + second * second > squared_radius:
            first -= 1
    if first * first + second * second > squared_radius:
        first, second = np.int64(-1), np.int64(0)
    return first, second


@numba.njit(inline="always")
def pays(left, row, first, second, costs, first_weight, second_weight):
    """Charge a row for its own contribution, if that fits what it has left; whether it does.

    Args:
        left: int64 (n_rows,), units.
        first, second: the squares of the row's contribution, as floats, in squared grid steps.
        costs: see `accounting.row_costs`.
        first_weight, second_weight: the share of the largest squared norm that a squared step has; rounded up.
    """
    share = (first * first_weight + second * second_weight) * (1 + 2.0**-48)
    # Off the table itself: numba's file cache would not see that a constant of another file changed.
    place = min(share, 1.0) * (len(costs) - 2)
    point = np.int64(place)
    cost = costs[point] + (costs[point + 1] - costs[point]) * (place - point)
    if not cost < 2.0**53:
        return False
    units = np.int64(cost)
    if units > left[row]:
        return False
    left[row] -= units
    return True


@rows_kernel
def moment_sums(
    first_row,
    end_row,
    cells,
    feature,
    below,
    besides,
    sets,
    scores,
    targets,
    weights,
    sampled,
    logistic,
    clip,
    per_unit,
    clip_steps,
    drop,
    left,
    costs,
    first_weight,
    second_weight,
    leaves,
    partial,
):
    """Add (weight, weight * clipped gradient) of each row, in grid steps, to its leaf.

    Args:
        weights: int32 (n_rows,), in steps of the largest one, or empty where every row weighs the whole of it.
        sampled: bool (n_rows,), or empty where every row takes part.
        drop: whether a row whose gradient is beyond the clip contributes 0.
        left: int64 (n_rows,), what each row has left of its limit, or empty where no filter holds. A row that has too
            little contributes 0; the others are charged, drawn or not: see `pays`.
        leaves: int32 (n_rows,), filled with each row's leaf.
        partial: int64 (n_chunks, n_leaves, 2), zeros.
    """
    weighted = len(weights) > 0
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk, end = begin // CHUNK_ROWS, min(end_row, begin + CHUNK_ROWS)
        leaves_of(begin, end, cells, feature, below, besides, sets, leaves, begin)
        for row in range(begin, end):
            leaf = leaves[row]
            absent = len(sampled) > 0 and not sampled[row]
            if absent and len(left) == 0:
                continue
            gradient = gradient_of(scores[row], targets[row], logistic)
            if not math.isfinite(gradient) or (drop and abs(gradient) > clip):
                continue
            first = np.int64(weights[row]) if weighted else np.int64(per_unit)
            second = truncated(gradient, clip, per_unit, clip_steps)
            if weighted:
                second = weighed(second, first, per_unit)
            if len(left) > 0 and not pays(
                left, row, float(first) * float(first), float(second) * float(second), costs, first_weight,
                second_weight,
            ):  # fmt: skip
                continue
            if not absent:
                partial[chunk, leaf, 0] += first
                partial[chunk, leaf, 1] += second


@rows_kernel
def curvature_sums(
    first_row,
    end_row,
    cells,
    feature,
    below,
    besides,
    sets,
    scores,
    targets,
    weights,
    sampled,
    curvature_scale,
    clip,
    per_unit,
    squared_radius,
    drop,
    left,
    costs,
    first_weight,
    second_weight,
    leaves,
    partial,
):
    """Add weight * (scaled hessian, clipped gradient) of the logistic loss, in grid steps, to each row's leaf.

    `squared_radius` bounds the squared Euclidean norm of a contribution, in squared steps: see `curvature_steps`. A
    weight, which is at most 1, comes after that. `weights`, `drop`, `left` and what belongs to it: as in `moment_sums`.
    """
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk, end = begin // CHUNK_ROWS, min(end_row, begin + CHUNK_ROWS)
        leaves_of(begin, end, cells, feature, below, besides, sets, leaves, begin)
        for row in range(begin, end):
            leaf = leaves[row]
            absent = len(sampled) > 0 and not sampled[row]
            if absent and len(left) == 0:
                continue
            gradient = gradient_of(scores[row], targets[row], True)
            if not math.isfinite(gradient) or (drop and abs(gradient) > clip):
                continue
            first, second = curvature_steps(gradient, curvature_scale, clip, per_unit, squared_radius)
            if first < 0:
                continue
            if len(weights) > 0:
                first = weighed(first, weights[row], per_unit)
                second = weighed(second, weights[row], per_unit)
            if len(left) > 0 and not pays(
                left, row, float(first) * float(first), float(second) * float(second), costs, first_weight,
                second_weight,
            ):  # fmt: skip
                continue
            if not absent:
                partial[chunk, leaf, 0] += first
                partial[chunk, leaf, 1] += second


@rows_kernel
def node_gradients(
    first_row,
    end_row,
    cells,
    feature,
    below,
    besides,
    sets,
    scores,
    targets,
    weights,
    sampled,
    logistic,
    clip,
    per_unit,
    clip_steps,
    drop,
    nodes,
    gradients,
):
    """Write each row's leaf and its weighted clipped gradient, in grid steps; leaf -1 where it contributes nothing.

    Args:
        weights, sampled, drop: as in `moment_sums`.
        nodes, gradients: int32 (n_rows,), filled; a gradient is at most 2**28 steps.
    """
    leaves_of(first_row, end_row, cells, feature, below, besides, sets, nodes, first_row)
    for row in range(first_row, end_row):
        node = nodes[row]
        nodes[row], gradients[row] = -1, 0
        if (len(sampled) == 0 or sampled[row]) and (len(weights) == 0 or weights[row] > 0):
            gradient = gradient_of(scores[row], targets[row], logistic)
            if math.isfinite(gradient) and not (drop and abs(gradient) > clip):
                nodes[row] = node
                steps = truncated(gradient, clip, per_unit, clip_steps)
                gradients[row] = steps if len(weights) == 0 else weighed(steps, weights[row], per_unit)


@parts_kernel
def cell_sums(first, end, cells, features, offsets, rows, nodes, gradients, weights, sums):
    """Add up (1, gradient), or (weight, weighted gradient), of the rows of each node and cell.

    Args:
        first, end: places among the features.
        features, offsets: those of `gains.TestedCells`; a cell that no test tells from the last one is counted there.
        rows: int64 (n_rows,), which rows they are, or empty where it is all of them.
        nodes, gradients: int32 (n_rows,), of these rows; see `node_gradients`.
        weights: int32 (n_rows,), of these rows, or empty where each counts 1.
        sums: int64 (n_nodes, n_cells, 2), filled.
    """
    for place in range(first, end):
        column = cells[features[place]]
        last = offsets[place + 1] - offsets[place] - 1
        # One feature's sums side by side: they stay in the fastest memory for a usual tree.
        own = np.zeros((sums.shape[0] * (last + 1), 2), dtype=np.int64)
        # Two loops: one that asks each row whether it has a weight is a tenth slower, and a function of these arrays,
        # called for each row, is thirty times slower on one thread, for counting who refers to them.
        if len(weights) > 0:
            for i in range(len(nodes)):
                cell = column[rows[i]] if len(rows) > 0 else column[i]
                at = nodes[i] * (last + 1) + min(np.int64(cell), last)
                own[at, 0] += weights[i]
                own[at, 1] += gradients[i]
        else:
            for i in range(len(nodes)):
                cell = column[rows[i]] if len(rows) > 0 else column[i]
                at = nodes[i] * (last + 1) + min(np.int64(cell), last)
                own[at, 0] += 1
                own[at, 1] += gradients[i]
        for node in range(sums.shape[0]):
            for cell in range(last + 1):
                sums[node, offsets[place] + cell] = own[node * (last + 1) + cell]


@rows_kernel
def target_sums(first_row, end_row, targets, weights, sampled, per_unit, partial):
    """Add weight * (1, label in [-1, 1]) of each row, in grid steps; `partial` int64 (n_chunks, 2)."""
    one = np.int64(per_unit)
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk = begin // CHUNK_ROWS
        for row in range(begin, min(end_row, begin + CHUNK_ROWS)):
            if (len(sampled) == 0 or sampled[row]) and math.isfinite(targets[row]):
                first, second = one, truncated(targets[row], 1.0, per_unit, one)
                if len(weights) > 0:
                    first, second = np.int64(weights[row]), weighed(second, weights[row], per_unit)
                partial[chunk, 0] += first
                partial[chunk, 1] += second


@rows_kernel
def fit_sums(first_row, end_row, scores, targets, weights, sampled, logistic, width, per_unit, partial):
    """Add how well each row is predicted, between 0 and its weight, in grid steps; `partial` int64 (n_chunks, 1)."""
    one = np.int64(per_unit)
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk = begin // CHUNK_ROWS
        for row in range(begin, min(end_row, begin + CHUNK_ROWS)):
            if (len(sampled) > 0 and not sampled[row]) or not math.isfinite(scores[row] + targets[row]):
                continue
            if logistic:
                fit = one if (scores[row] > 0.0) == (targets[row] > 0.0) else np.int64(0)
            else:
                miss = (min(max(scores[row], -1.0), 1.0) - targets[row]) / width
                fit = max(truncated(1.0 - min(miss * miss, 1.0), 1.0, per_unit, one), np.int64(0))
            partial[chunk, 0] += fit if len(weights) == 0 else weighed(fit, weights[row], per_unit)


@rows_kernel
def score_sums(first_row, end_row, scores, targets, weights, sampled, edges, per_unit, partial):
    """Add weight * (1, label in [-1, 1]) of each row to the bin of its score, in grid steps.

    Args:
        edges: float64 (k,), rising; a score is in the bin of the number of edges that are at or below it.
        partial: int64 (n_chunks, k + 1, 2), zeros.
    """
    one = np.int64(per_unit)
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk = begin // CHUNK_ROWS
        for row in range(begin, min(end_row, begin + CHUNK_ROWS)):
            if (len(sampled) > 0 and not sampled[row]) or not math.isfinite(scores[row] + targets[row]):
                continue
            first, second = one, truncated(targets[row], 1.0, per_unit, one)
            if len(weights) > 0:
                first, second = np.int64(weights[row]), weighed(second, weights[row], per_unit)
            low, high = 0, len(edges)
            while low < high:
                middle = (low + high) // 2
                if edges[middle] <= scores[row]:
                    low = middle + 1
                else:
                    high = middle
            partial[chunk, low, 0] += first
            partial[chunk, low, 1] += second


@rows_kernel
def add_leaf_values(first_row, end_row, leaves, values, scores):
    """Add each row's leaf value to its score, where the leaf is known already."""
    for row in range(first_row, end_row):
        scores[row] += values[leaves[row]]


@rows_kernel
def column_moments(first_row, end_row, values, sampled, low, high, origin, per_unit, least, most, partial):
    """Add (1, value - origin in steps) of each row that has a value; `partial` int64 (n_chunks, 2).

    Args:
        values: float64 (n_rows,); what is not finite contributes nothing.
        low, high, origin: in the values' unit.
        least, most: what a row's steps are held between, in integers.
    """
    for begin in range(first_row, end_row, CHUNK_ROWS):
        chunk = begin // CHUNK_ROWS
        count, total = np.int64(0), np.int64(0)
        for row in range(begin, min(end_row, begin + CHUNK_ROWS)):
            if (len(sampled) == 0 or sampled[row]) and math.isfinite(values[row]):
                steps = np.int64((min(max(values[row], low), high) - origin) * per_unit)
                count += 1
                total += min(max(steps, least), most)
        partial[chunk, 0] += count
        partial[chunk, 1] += total


@parts_kernel
def code_histogram(first, end, codes, sampled, partial):
    """Count the rows of each code; `codes` whole (n_rows,) below n_cells, `partial` int64 (n_blocks, n_cells)."""
    n_rows = len(codes)
    block_rows = -(-n_rows // partial.shape[0])
    for block in range(first, end):
        for row in range(block * block_rows, min(n_rows, (block + 1) * block_rows)):
            if len(sampled) == 0 or sampled[row]:
                partial[block, codes[row]] += 1
