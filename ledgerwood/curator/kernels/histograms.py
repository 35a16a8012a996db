"""Counts and histograms of rows.

The loops that add up rows by leaf and bin. `kernels` says what holds, and owns what one row contributes.

The loops that count rows: by the leaf of a tree, and by the cells of features. `kernels` says what holds.
"""

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels.sums import curvature_steps, gradient_of, truncated, weighed
from ledgerwood.routing import leaf_of, rows_kernel

# mypy: disable-error-code="no-untyped-def"


@rows_kernel
def row_contributions(
    n_rows,
    scores,
    targets,
    weights,
    sampled,
    logistic,
    curvature_scale,
    clip,
    per_unit,
    clip_steps,
    squared_radius,
    drop,
    firsts,
    seconds,
):
    """Write what each row adds to its leaf in `kernels.moment_sums` or `kernels.curvature_sums`; 0 where nothing.

    Args:
        weights, sampled, drop: as in `moment_sums`.
        curvature_scale: of `curvature_sums`; 0.0: (1, clipped gradient).
        clip_steps: of `moment_sums`.
        squared_radius: of `curvature_sums`.
        firsts, seconds: int32 (n_rows,), filled; at most 2**28 in size.
    """
    for row in numba.prange(n_rows):
        firsts[row], seconds[row] = 0, 0
        if len(sampled) == 0 or sampled[row]:
            gradient = gradient_of(scores[row], targets[row], logistic)
            if math.isfinite(gradient) and not (drop and abs(gradient) > clip):
                if curvature_scale > 0.0:
                    first, second = curvature_steps(gradient, curvature_scale, clip, per_unit, squared_radius)
                else:
                    first, second = np.int64(per_unit), truncated(gradient, clip, per_unit, clip_steps)
                if first >= 0:
                    if len(weights) > 0:
                        first = weighed(first, weights[row], per_unit)
                        second = weighed(second, weights[row], per_unit)
                    firsts[row], seconds[row] = first, second


@rows_kernel
def row_hessians(n_rows, scores, targets, weights, sampled, per_unit, hessians):
    """Write weight * hessian of the logistic loss, in grid steps; `hessians` int32 (n_rows,), in [0, per_unit / 4]."""
    for row in numba.prange(n_rows):
        hessians[row] = 0
        if len(sampled) == 0 or sampled[row]:
            gradient = gradient_of(scores[row], targets[row], True)
            if math.isfinite(gradient):
                size = abs(gradient)
                steps = truncated(max(size * (1.0 - size), 0.0), 0.25, per_unit, np.int64(per_unit) // 4)
                hessians[row] = steps if len(weights) == 0 else weighed(steps, weights[row], per_unit)


@rows_kernel
def bin_sums(n_rows, binned, offsets, nodes, firsts, seconds, sums):
    """Add up the contributions of the rows of each leaf and bin: a feature at a time, any number of bins.

    Args:
        binned: uint8 or uint16 (f, n_rows), each row's bin of each feature; one that is not there is its last one.
        offsets: int64 (f + 1,), where each feature's bins begin.
        nodes, firsts, seconds: int32 (n_rows,), leaf and contribution.
        sums: int64 (n_leaves, n_bins, 2), filled.
    """
    for place in numba.prange(len(offsets) - 1):
        column = binned[place]
        n_bins = offsets[place + 1] - offsets[place]
        own = np.zeros((sums.shape[0] * n_bins, 2), dtype=np.int64)
        for row in range(n_rows):
            at = nodes[row] * n_bins + min(np.int64(column[row]), n_bins - 1)
            own[at, 0] += firsts[row]
            own[at, 1] += seconds[row]
        for node in range(sums.shape[0]):
            for each in range(n_bins):
                sums[node, offsets[place] + each] = own[node * n_bins + each]


def one_column(binned: NDArray[Any], offsets: NDArray[np.int64], contributions: NDArray[np.int32]) -> NDArray[np.int64]:
    """The sums over all rows by bin, int64 (n_bins, 1); one contribution a row, int32 (n_rows,)."""
    nothing = np.zeros(len(contributions), dtype=np.int32)
    sums: NDArray[np.int64] = np.empty((1, int(offsets[-1]), 2), dtype=np.int64)
    bin_sums(len(nothing), binned, offsets, nothing, contributions, nothing, sums)
    return sums[0, :, :1]


@rows_kernel
def rows_first(n_rows, binned, offsets, by_row):
    """Write each row's bins side by side, uint8 (n_rows, f); `binned` and `offsets` as in `bin_sums`."""
    for block in numba.prange(-(-n_rows // 512)):
        stop = min(n_rows, (block + 1) * 512)
        for place in range(len(offsets) - 1):
            last = offsets[place + 1] - offsets[place] - 1
            for row in range(block * 512, stop):
                by_row[row, place] = min(np.int64(binned[place, row]), last)


@rows_kernel
def packed_sums(n_rows, by_row, offsets, order, starts, stops, packed, shift, at_once, partial):
    """Add up the packed contributions of some leaves' rows, by bin of every feature.

    A packed contribution is first * 2**shift + second. `at_once` of them cannot overflow: a sum is taken apart after
    as many, and the parts are added up in int64.

    Args:
        n_rows: how many rows take part: of all the leaves.
        by_row: uint8 (all rows, f), bins that are there.
        offsets: uint64 (f + 1,), where each feature's bins begin.
        order: uint32 (m,), rows, those of a leaf side by side.
        starts, stops: int64 (n_leaves,), where in `order` each leaf has its rows.
        packed: int64 (all rows,).
        partial: int64 (n_blocks, n_leaves, n_bins, 2), zeros: sums of each block of the rows.
    """
    n_blocks, n_leaves, n_bins = partial.shape[0], partial.shape[1], partial.shape[2]
    n_features = len(offsets) - 1
    for block in numba.prange(n_blocks):
        sums = np.zeros(n_bins, dtype=np.int64)
        # The block's rows: from `low` to `high`, counted over all leaves; `begin` is where the leaf's begin.
        low, high, begin = n_rows * block // n_blocks, n_rows * (block + 1) // n_blocks, 0
        for leaf in range(n_leaves):
            first = starts[leaf] + max(0, low - begin)
            last = min(stops[leaf], starts[leaf] + high - begin)
            begin += stops[leaf] - starts[leaf]
            while first < last:
                until = min(first + at_once, last)
                for i in range(first, until):
                    row = order[i]
                    value = packed[row]
                    for place in range(n_features):
                        sums[offsets[place] + by_row[row, place]] += value
                for each in range(n_bins):
                    value = sums[each]
                    second = (value << (64 - shift)) >> (64 - shift)
                    partial[block, leaf, each, 0] += (value - second) >> shift
                    partial[block, leaf, each, 1] += second
                    sums[each] = 0
                first = until


@rows_kernel
def parted_rows(n_rows, cells, feature, below, besides, sets, order, bounds, deeper, middles):
    """Part the rows of each leaf by its own test: left ones first, in the order that they had.

    Args:
        feature, below, besides, sets: the tests, one a leaf, as `Lowered`.
        order: uint32 (n_rows,), rows, those of a leaf side by side.
        bounds: int64 (n_leaves + 1,), where in `order` each leaf's rows begin, and the end.
        deeper: uint32 (n_rows,), filled.
        middles: int64 (n_leaves,), filled with where the right ones begin.
    """
    for leaf in numba.prange(len(middles)):
        column, edge, beside = cells[feature[leaf]], below[leaf], besides[leaf]
        start, stop = bounds[leaf], min(bounds[leaf + 1], n_rows)
        right = np.empty(stop - start, dtype=np.uint32)
        n_left, n_right = start, 0
        for i in range(start, stop):
            row = order[i]
            cell = column[row]
            # As in `routing.leaf_of`.
            left = cell < edge or cell == beside
            if beside < -1:
                left = cell < sets.shape[1] and sets[-2 - beside, cell]
            # Both are written, and the one that counts is kept: nobody can guess a coin.
            deeper[n_left] = row
            right[n_right] = row
            n_left += 1 if left else 0
            n_right += 0 if left else 1
        middles[leaf] = n_left
        for i in range(n_right):
            deeper[n_left + i] = right[i]


@rows_kernel
def side_sums(n_rows, cells, feature, below, besides, sets, nodes, firsts, seconds, sums):
    """Add up the contributions of the rows that go left, by each test of their leaf.

    Args:
        feature, below, besides, sets: the tests, as `Lowered`: f for each leaf.
        nodes, firsts, seconds: int32 (n_rows,), leaf and contribution.
        sums: int64 (n_leaves, f, 2), zeros.
    """
    n_leaves, n_places = sums.shape[0], sums.shape[1]
    for place in numba.prange(n_places):
        # Tests and sums of one place side by side. The second pair is of what goes right: no branch on a coin.
        own = np.zeros((n_leaves, 2, 2), dtype=np.int64)
        tested, edges, others = feature[place::n_places], below[place::n_places], besides[place::n_places]
        for row in range(n_rows):
            node = nodes[row]
            cell = np.int64(cells[tested[node], row])
            beside = others[node]
            # As in `routing.leaf_of`.
            left = (cell < edges[node]) | (cell == beside)
            if beside < -1:
                left = cell < sets.shape[1] and sets[-2 - beside, cell]
            side = 0 if left else 1
            own[node, side, 0] += firsts[row]
            own[node, side, 1] += seconds[row]
        for node in range(n_leaves):
            sums[node, place, 0] += own[node, 0, 0]
            sums[node, place, 1] += own[node, 0, 1]


# mypy: disable-error-code="no-untyped-def"


@rows_kernel
def leaf_counts(n_rows, cells, feature, below, besides, sets, sampled, leaves, partial):
    """Count the rows of each leaf.

    Args:
        feature, below, besides, sets: the tree, as `Lowered`.
        sampled: bool (n_rows,), or empty where every row takes part.
        leaves: int32 (n_rows,), filled with each row's leaf.
        partial: int64 (n_blocks, n_leaves), zeros: a row for each block of rows.
    """
    block_rows = -(-n_rows // partial.shape[0])
    for block in numba.prange(partial.shape[0]):
        for row in range(block * block_rows, min(n_rows, (block + 1) * block_rows)):
            leaf = leaf_of(cells, row, feature, below, besides, sets)
            leaves[row] = leaf
            if len(sampled) == 0 or sampled[row]:
                partial[block, leaf] += 1


@rows_kernel
def cell_counts(n_rows, cells, features, rows, counts):
    """Count the rows of each cell of some features.

    Args:
        n_rows: how many rows take part.
        cells: uint8 or uint16 (n_features, all rows).
        features: int64 (f,), which of them.
        rows: int64 (n_rows,), which rows take part, or empty where it is all of them.
        counts: int64 (f, n_cells), filled; a row in a cell from n_cells on is not counted.
    """
    n_cells = counts.shape[1]
    for place in numba.prange(len(features)):
        column = cells[features[place]]
        # By turns into two histograms: equal cells one after the other need not wait for each other.
        even, odd = np.zeros(n_cells + 1, dtype=np.int64), np.zeros(n_cells + 1, dtype=np.int64)
        for i in range(0, n_rows - 1, 2):
            first = column[rows[i]] if len(rows) > 0 else column[i]
            second = column[rows[i + 1]] if len(rows) > 0 else column[i + 1]
            even[min(np.int64(first), n_cells)] += 1
            odd[min(np.int64(second), n_cells)] += 1
        if n_rows % 2:
            last = column[rows[n_rows - 1]] if len(rows) > 0 else column[n_rows - 1]
            even[min(np.int64(last), n_cells)] += 1
        for cell in range(n_cells):
            counts[place, cell] = even[cell] + odd[cell]


@rows_kernel
def class_codes(n_rows, cells, feature, below, besides, sets, classes, sampled, n_classes, codes):
    """Write leaf * n_classes + class of each row; n_leaves * n_classes for one of no class or not in the sample.

    Args:
        feature, below, besides, sets: the tree, as `Lowered`.
        classes: int32 (n_rows,), -1 for none.
        sampled: bool (n_rows,), or empty where every row takes part.
        codes: int32 (n_rows,), filled.
    """
    none = (len(feature) + 1) * n_classes
    for row in numba.prange(n_rows):
        if classes[row] < 0 or (len(sampled) > 0 and not sampled[row]):
            codes[row] = none
        else:
            codes[row] = leaf_of(cells, row, feature, below, besides, sets) * n_classes + classes[row]


@rows_kernel
def cell_code_counts(n_rows, columns, places, offsets, codes, counts):
    """Count the rows of each code by the cell of each feature.

    Args:
        columns: uint8 or uint16 (n_columns, n_rows), the cells.
        places: int64 (f,), which columns.
        offsets: int64 (f + 1,), where each one's cells begin; a cell beyond its last one counts as the last one.
        codes: int32 (n_rows,), 0 .. n_codes; the last one is counted nowhere.
        counts: int64 (n_codes, n_cells), filled.
    """
    n_codes = counts.shape[0]
    for place in numba.prange(len(places)):
        column = columns[places[place]]
        width = offsets[place + 1] - offsets[place]
        last = width - 1
        # By turns into two histograms: equal cells one after the other need not wait for each other.
        even = np.zeros((n_codes + 1) * width, dtype=np.int64)
        odd = np.zeros((n_codes + 1) * width, dtype=np.int64)
        for i in range(0, n_rows - 1, 2):
            even[codes[i] * width + min(np.int64(column[i]), last)] += 1
            odd[codes[i + 1] * width + min(np.int64(column[i + 1]), last)] += 1
        if n_rows % 2:
            even[codes[n_rows - 1] * width + min(np.int64(column[n_rows - 1]), last)] += 1
        for code in range(n_codes):
            for cell in range(width):
                counts[code, offsets[place] + cell] = even[code * width + cell] + odd[code * width + cell]
