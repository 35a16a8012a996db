"""The loops that count rows by leaf or cell, and that add up what rows contribute by leaf and bin.

`kernels` says what holds, and owns what one row contributes.
"""

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels.sums import curvature_steps, gradient_of, truncated, weighed
from ledgerwood.routing import CHUNK_ROWS, leaves_of, parts_kernel, rows_kernel

# mypy: disable-error-code="no-untyped-def"


@rows_kernel
def row_contributions(
    first_row,
    end_row,
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
    """Write what each row adds to its leaf in `kernels.moment_sums` or `kernels.curvature_sums`; 0 if nothing.

    Args:
        weights, sampled, drop: as in `moment_sums`.
        curvature_scale: the scale of `curvature_sums`; 0.0: (1, clipped gradient).
        clip_steps: the clip steps of `moment_sums`.
        squared_radius: the squared radius of `curvature_sums`.
        firsts, seconds: int32 (n_rows,), filled; at most 2**28 in size.
    """
    for row in range(first_row, end_row):
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
def row_hessians(first_row, end_row, scores, targets, weights, sampled, logistic, per_unit, hessians):
    """Write weight * hessian of each row, in grid steps: at most a quarter of the logistic loss, 1 of the squared one.

    `hessians` int32 (n_rows,), filled; 0 of a row that is not drawn or has no target.
    """
    whole = np.int64(per_unit)
    for row in range(first_row, end_row):
        hessians[row] = 0
        if len(sampled) == 0 or sampled[row]:
            gradient = gradient_of(scores[row], targets[row], logistic)
            if math.isfinite(gradient):
                steps = whole
                if logistic:
                    size = abs(gradient)
                    steps = truncated(max(size * (1.0 - size), 0.0), 0.25, per_unit, whole // 4)
                hessians[row] = steps if len(weights) == 0 else weighed(steps, weights[row], per_unit)


@parts_kernel
def bin_sums(first, end, binned, offsets, nodes, firsts, seconds, sums):
    """Add up the contributions of the rows of each leaf and bin: a feature at a time, any number of bins.

    Args:
        first, end: places among the features.
        binned: uint8 or uint16 (f, n_rows), each row's bin of each feature; one that is not there is its last one.
        offsets: int64 (f + 1,), where each feature's bins begin.
        nodes, firsts, seconds: int32 (n_rows,), leaf and contribution.
        sums: int64 (n_leaves, n_bins, 2), filled.
    """
    n_rows = len(nodes)
    for place in range(first, end):
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
    bin_sums(len(nothing), len(binned), binned, offsets, nothing, contributions, nothing, sums)
    return sums[0, :, :1]


CHUNK = 1 << 16
"""Rows that are ordered by leaf apart from others: a row's place among them fits a uint16."""
LINE = 8
"""Words of 8 bytes that memory is read by: 64 bins."""
_AHEAD = 64
_FEW_ROWS = 256
"""Rows whose bins are written before those of the next ones: their lines stay in the fastest memory."""


@rows_kernel
def rows_first(first_row, end_row, cells, features, bins, words):
    """Write each row's bins side by side, a byte each.

    Args:
        first_row, end_row: which rows.
        cells: uint8 or uint16 (n_features, n_rows).
        features: int64 (f,), which of them.
        bins: uint8 (f, n), the bin of each cell; a cell that is not there has the last one's.
        words: uint64 (n_lines, n_rows, words of a line), filled: eight features a word, the first one in its lowest
            byte; the words of a row side by side.
    """
    n_features, width, last = len(features), words.shape[2], np.uint64(bins.shape[1] - 1)
    for begin in range(first_row, end_row, _FEW_ROWS):
        start, stop = np.uint64(begin), np.uint64(min(end_row, begin + _FEW_ROWS))
        for low in range(0, n_features, 8):
            into, at = words[low // 8 // width], np.uint64(low // 8 % width)
            if low + 8 <= n_features:
                # Eight at once, and written once: a byte at a time costs more than a fifth.
                a, b, c, d, e, f, g, h = (
                    cells[features[low]], cells[features[low + 1]], cells[features[low + 2]], cells[features[low + 3]],
                    cells[features[low + 4]], cells[features[low + 5]], cells[features[low + 6]],
                    cells[features[low + 7]],
                )  # fmt: skip
                own = bins[low : low + 8]
                for row in range(start, stop):
                    word = np.uint64(own[0, min(np.uint64(a[row]), last)])
                    word |= np.uint64(own[1, min(np.uint64(b[row]), last)]) << np.uint64(8)
                    word |= np.uint64(own[2, min(np.uint64(c[row]), last)]) << np.uint64(16)
                    word |= np.uint64(own[3, min(np.uint64(d[row]), last)]) << np.uint64(24)
                    word |= np.uint64(own[4, min(np.uint64(e[row]), last)]) << np.uint64(32)
                    word |= np.uint64(own[5, min(np.uint64(f[row]), last)]) << np.uint64(40)
                    word |= np.uint64(own[6, min(np.uint64(g[row]), last)]) << np.uint64(48)
                    word |= np.uint64(own[7, min(np.uint64(h[row]), last)]) << np.uint64(56)
                    into[row, at] = word
            else:
                for row in range(start, stop):
                    into[row, at] = 0
                for each in range(low, n_features):
                    column, its, shift = cells[features[each]], bins[each], np.uint64(8 * (each - low))
                    for row in range(start, stop):
                        into[row, at] |= np.uint64(its[min(np.uint64(column[row]), last)]) << shift


@rows_kernel
def some_rows_first(first, end, cells, features, bins, rows, by_row):
    """Write the bins of some rows, as `rows_first` does.

    Args:
        first, end: places in `rows`.
        cells, features, bins: as in `rows_first`.
        rows: int64 (m,), rising.
        by_row: uint8 (n_lines, n_rows, bytes of a line), filled in these rows.
    """
    width, last = by_row.shape[2], np.uint64(bins.shape[1] - 1)
    for begin in range(first, end, _FEW_ROWS):
        stop = min(end, begin + _FEW_ROWS)
        for place in range(len(features)):
            column, own, line, at = cells[features[place]], bins[place], by_row[place // width], place % width
            for row in rows[begin:stop]:
                line[row, at] = own[min(np.uint64(column[row]), last)]


@rows_kernel
def packed_rows(first_row, end_row, firsts, seconds, shift, packed):
    """Write first * 2**shift + second of each row, int64 (n_rows,)."""
    for row in range(first_row, end_row):
        packed[row] = (np.int64(firsts[row]) << shift) + seconds[row]


@parts_kernel
def rows_in_order(first, end, packed, order, bounds):
    """Write the rows that contribute, as the rows of one leaf.

    Args:
        first, end: the range of chunks of rows.
        packed: int64 (n_rows,); 0 if a row contributes nothing.
        order: uint16 (n_rows,), filled: from each chunk's first row on, the places of its rows in the chunk.
        bounds: int64 (n_chunks, 2), filled with where in `order` they begin, and their end.
    """
    for chunk in range(first, end):
        at = begin = chunk * CHUNK
        for row in range(begin, min(len(packed), begin + CHUNK)):
            # Written anyway, and kept if it counts: nobody can guess a coin.
            order[at] = row - begin
            at += 1 if packed[row] != 0 else 0
        bounds[chunk, 0], bounds[chunk, 1] = begin, at


@parts_kernel
def parted_rows(first, end, cells, feature, below, besides, sets, order, above, bounds):
    """Part the rows of each leaf by its own test, in their place: left ones first, in the order that they had.

    Args:
        first, end: the range of chunks of rows.
        feature, below, besides, sets: the tests, one a leaf, as `Lowered`.
        order: uint16 (n_rows,), as in `rows_in_order`, rows of a leaf side by side; changed.
        above: int64 (n_chunks, n_leaves + 1), where in `order` each leaf's rows begin, and the last one's end.
        bounds: int64 (n_chunks, 2 * n_leaves + 1), filled: the same of the leaves below.
    """
    right = np.empty(CHUNK, dtype=np.uint16)
    for chunk in range(first, end):
        base = np.uint64(chunk * CHUNK)
        for leaf in range(len(feature)):
            edge, beside = np.uint32(below[leaf]), np.uint32(besides[leaf])
            column = cells[feature[leaf]]
            n_left, n_right = np.uint64(above[chunk, leaf]), np.uint64(0)
            bounds[chunk, 2 * leaf] = n_left
            for i in range(n_left, np.uint64(above[chunk, leaf + 1])):
                place = order[i]
                cell = np.uint32(column[base + np.uint64(place)])
                # As in `routing.leaf_of`.
                left = (cell < edge) | (cell == beside)
                if besides[leaf] < -1:
                    left = cell < sets.shape[1] and sets[-2 - besides[leaf], cell]
                order[n_left] = place
                right[n_right] = place
                n_left += np.uint64(left)
                n_right += np.uint64(not left)
            bounds[chunk, 2 * leaf + 1] = n_left
            for i in range(n_right):
                order[n_left + i] = right[i]
        bounds[chunk, 2 * len(feature)] = above[chunk, len(feature)]


@parts_kernel
def packed_sums(first, end, words, offsets, leaves, order, bounds, packed, shift, at_once, partial, groups, met):
    """Add up the packed contributions of some leaves' rows, by bin of every feature.

    A packed contribution is first * 2**shift + second. `at_once` of them cannot overflow: a sum is taken apart after
    as many, and the parts are added up in int64.

    Args:
        first, end: which parts of the work: a group of leaves, in a block of the chunks, by the features of a line.
        words: uint64 (n_lines, n_rows, words of a line), from `rows_first`; bins that are there.
        offsets: uint64 (f + 1,), where each feature's bins begin.
        leaves: int64 (n_leaves,), which of the leaves.
        order, bounds: from `parted_rows`.
        packed: int64 (n_rows,).
        partial: int64 (n_blocks, n_leaves, n_bins, 2), zeros: sums of each block of chunks.
        groups: how many groups of leaves there are.
        met: uint64 (8 * parts,), written to, and of no use: what is read ahead has to be of some.
    """
    by_row = words.view(np.uint8)
    n_lines, width = words.shape[0], by_row.shape[2]
    n_blocks, n_chunks, n_features = partial.shape[0], bounds.shape[0], len(offsets) - 1
    for part in range(first, end):
        line, block, group = part % n_lines, part // n_lines % n_blocks, part // (n_lines * n_blocks)
        low = line * width
        own = offsets[low : min(n_features, low + width) + 1] - offsets[low]
        n_own, at = np.uint64(len(own) - 1), np.int64(offsets[low])
        lines, bins = words[line], by_row[line]
        from_leaf, to_leaf = len(leaves) * group // groups, len(leaves) * (group + 1) // groups
        every, held = np.zeros((to_leaf - from_leaf, own[-1]), dtype=np.int64), np.zeros(to_leaf - from_leaf, np.int64)
        # All leaves of a chunk before the next chunk: a leaf has few rows on each page of memory, a chunk few pages.
        for chunk in range(n_chunks * block // n_blocks, n_chunks * (block + 1) // n_blocks):
            base = np.uint64(chunk * CHUNK)
            for place in range(from_leaf, to_leaf):
                leaf, sums, n_held = leaves[place], every[place - from_leaf], held[place - from_leaf]
                begin, stop = bounds[chunk, leaf], bounds[chunk, leaf + 1]
                while begin < stop:
                    until = min(begin + min(_AHEAD, at_once), stop)
                    if n_held + until - begin > at_once:
                        take_apart(sums, shift, partial[block, place, at:])
                        n_held = 0
                    # Rows that lie apart are fetched together, and not one after the other.
                    ahead = np.uint64(0)
                    for i in range(begin, until):
                        ahead ^= lines[base + np.uint64(order[i]), 0]
                    met[part * LINE] = ahead
                    for i in range(begin, until):
                        row = base + np.uint64(order[i])
                        value = packed[row]
                        for each in range(n_own):
                            sums[own[each] + np.uint64(bins[row, each])] += value
                    n_held += until - begin
                    begin = until
                held[place - from_leaf] = n_held
        for place in range(from_leaf, to_leaf):
            take_apart(every[place - from_leaf], shift, partial[block, place, at:])


@numba.njit
def take_apart(sums, shift, into):
    """Add both halves of packed sums to int64 (n_bins, 2), and begin anew."""
    for each in range(len(sums)):
        value = sums[each]
        second = (value << (64 - shift)) >> (64 - shift)
        into[each, 0] += (value - second) >> shift
        into[each, 1] += second
        sums[each] = 0


@parts_kernel
def side_sums(first, end, cells, feature, below, besides, sets, nodes, firsts, seconds, sums):
    """Add up the contributions of the rows that go left, by each test of their leaf.

    Args:
        first, end: places among a leaf's tests.
        feature, below, besides, sets: the tests, as `Lowered`: f for each leaf.
        nodes, firsts, seconds: int32 (n_rows,), leaf and contribution.
        sums: int64 (n_leaves, f, 2), zeros.
    """
    n_leaves, n_places = sums.shape[0], sums.shape[1]
    n_rows = len(nodes)
    for place in range(first, end):
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
def leaf_counts(first, end, cells, feature, below, besides, sets, sampled, leaves, partial):
    """Count the rows of each leaf.

    Args:
        feature, below, besides, sets: the tree, as `Lowered`.
        sampled: bool (n_rows,), or empty where every row takes part.
        leaves: int32 (n_rows,), filled with each row's leaf.
        partial: int64 (n_chunks, n_leaves), zeros.
    """
    for begin in range(first, end, CHUNK_ROWS):
        chunk, stop = begin // CHUNK_ROWS, min(end, begin + CHUNK_ROWS)
        leaves_of(begin, stop, cells, feature, below, besides, sets, leaves, begin)
        for row in range(begin, stop):
            if len(sampled) == 0 or sampled[row]:
                partial[chunk, leaves[row]] += 1


@parts_kernel
def cell_counts(first, end, cells, features, rows, counts):
    """Count the rows of each cell of some features.

    Args:
        first, end: places among the features.
        cells: uint8 or uint16 (n_features, all rows).
        features: int64 (f,), which of them.
        rows: int64 (n_rows,), which rows take part, or empty where it is all of them.
        counts: int64 (f, n_cells), filled; a row in a cell from n_cells on is not counted.
    """
    n_cells = counts.shape[1]
    n_rows = len(rows) if len(rows) > 0 else cells.shape[1]
    for place in range(first, end):
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


@parts_kernel
def cell_weights(first, end, cells, features, rows, weights, sums):
    """Add up what rows weigh, by cell of some features.

    Args:
        first, end, cells, features, rows: as in `cell_counts`.
        weights: int32 (n_rows,), of these rows, in grid steps.
        sums: int64 (f, n_cells), filled; a row in a cell from n_cells on counts nowhere.
    """
    n_cells = np.uint64(sums.shape[1])
    for place in range(first, end):
        column = cells[features[place]]
        own = np.zeros(n_cells + np.uint64(1), dtype=np.int64)
        if len(rows) > 0:
            for i in range(np.uint64(len(rows))):
                own[min(np.uint64(column[np.uint64(rows[i])]), n_cells)] += weights[i]
        else:
            for i in range(np.uint64(len(weights))):
                own[min(np.uint64(column[i]), n_cells)] += weights[i]
        sums[place] = own[: sums.shape[1]]


@rows_kernel
def class_codes(first, end, cells, feature, below, besides, sets, classes, sampled, n_classes, codes):
    """Write leaf * n_classes + class of each row; n_leaves * n_classes for one of no class or not in the sample.

    Args:
        feature, below, besides, sets: the tree, as `Lowered`.
        classes: int32 (n_rows,), -1 for none.
        sampled: bool (n_rows,), or empty where every row takes part.
        codes: int32 (n_rows,), filled.
    """
    none = (len(feature) + 1) * n_classes
    leaves_of(first, end, cells, feature, below, besides, sets, codes, first)
    for row in range(first, end):
        if classes[row] < 0 or (len(sampled) > 0 and not sampled[row]):
            codes[row] = none
        else:
            codes[row] = codes[row] * n_classes + classes[row]


@parts_kernel
def cell_code_counts(first, end, columns, places, offsets, codes, counts):
    """Count the rows of each code by the cell of each feature.

    Args:
        first, end: places among the features.
        columns: uint8 or uint16 (n_columns, n_rows), the cells.
        places: int64 (f,), which columns.
        offsets: int64 (f + 1,), where each one's cells begin; a cell beyond its last one counts as the last one.
        codes: int32 (n_rows,), 0 .. n_codes; the last one is counted nowhere.
        counts: int64 (n_codes, n_cells), filled.
    """
    n_codes, n_rows = counts.shape[0], len(codes)
    for place in range(first, end):
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
