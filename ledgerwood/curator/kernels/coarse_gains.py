"""Bounds on the gains of blocks of thresholds, and the exact gains inside of some of them.

A block's thresholds part the rows of one bin of a feature; what the bin's sums leave open is bounded by convexity:
docs/explanation/gains.md#block-bounds.
"""

import numba
import numpy as np

from ledgerwood.curator.kernels.histograms import CHUNK
from ledgerwood.curator.kernels.sorted_gains import share
from ledgerwood.routing import parts_kernel

# mypy: disable-error-code="no-untyped-def"

_MOST = 9.2e18
"""Nearly 2**63, which no gain reaches."""
_FEW = 2.0**14
"""Steps of rows from which on a quotient of floats is near to the true one: 2**-6 rows."""


@numba.njit(inline="always")
def _gain(left_rows, left, rows, total, division):
    """Of a test that sends some of a node's rows left, with their sum."""
    return share(left_rows, left, *division) + share(rows - left_rows, total - left, *division)


@numba.njit(inline="always")
def _side(size, total, damping, ratio, scale):
    """At most a hair below the gain of a side, in floats: of rows in steps of 2**-20 and their sum.

    Args:
        ratio: the most that a step of rows adds to a sum.
        scale: steps of the gain.
    """
    most = ratio * ratio * size
    if size < _FEW:
        return max(most, 0.0) * scale + ratio * ratio * _FEW * scale
    return min(total * total / (size + damping), most) * scale


@numba.njit(inline="always")
def _corner(left_size, left, size, total, damping, ratio, scale):
    """Of both sides."""
    return _side(left_size, left, damping, ratio, scale) + _side(size - left_size, total - left, damping, ratio, scale)


@numba.njit
def _reached(edges, low, high):
    """The first and the last block with a threshold in low .. high - 1; block k has edges[k] + 1 .. edges[k + 1]."""
    if high <= low:
        return 0, -1
    return np.searchsorted(edges[1:], low), np.searchsorted(edges[:-1], high - 2, side="right") - 1


@parts_kernel
def count_blocks(first_part, end_part, places, bounds, edges, first, stop, counts):
    """Count the blocks of each part and node.

    Args:
        first_part, end_part: which parts.
        places: int64 (n_parts,), whose feature's blocks; -1 for tests of equality.
        bounds: int64 (f + 1,), where each feature's `edges` begin, and the end.
        edges: int64, the cells at which each feature's blocks end, from 0 to the last ordered one.
        first, stop: those of `LevelPoints`.
        counts: int64 (n_parts, n_nodes), filled but for tests of equality.
    """
    for part in range(first_part, end_part):
        place = places[part]
        if place >= 0:
            own = edges[bounds[place] : bounds[place + 1]]
            for node in range(counts.shape[1]):
                low, high = _reached(own, first[part, node], stop[part, node])
                counts[part, node] = high + 1 - low


@parts_kernel
def bound_blocks(
    first_part,
    end_part,
    places,
    bounds,
    edges,
    bins,
    sums,
    totals,
    beside,
    weight,
    first,
    stop,
    start,
    starts,
    division,
    ratio,
    ends,
    utilities,
    exact,
    parts,
    blocks,
    attained,
):
    """Write the end of each block, a number that no gain of its thresholds is above, and whether it is their gain.

    Args:
        first_part, end_part, places, bounds, edges, first, stop: as in `count_blocks`.
        bins: int64 (f,), where in `sums` the bins of each feature begin: one a block first.
        sums: int64 (n_nodes, n_bins, 2), from `LevelSums`.
        totals: int64 (n_nodes, 2), of all rows of a node.
        beside: int64 (n_nodes, n_parts, 2), sums of the cell that goes left besides.
        weight: of a test, by part. start: of `LevelPoints`.
        starts: int64 (n_parts, n_nodes), where a part's and node's blocks go.
        division: the last arguments of `share`.
        ratio: the most that a step of rows adds to a sum.
        ends, utilities, exact, parts, blocks: (n_stretches,), filled; parts and blocks with each one's own.
        attained: float64 (n_parts, n_nodes), filled with about the largest gain at an end of a block.
    """
    row, damping_steps, up, down = division
    unit, damping = np.float64(row), np.float64(damping_steps)
    scale = 2.0 ** np.float64(up - down)
    for part in range(first_part, end_part):
        place = places[part]
        if place < 0:
            continue
        own = edges[bounds[place] : bounds[place + 1]]
        for node in range(len(totals)):
            lowest, highest = first[part, node], stop[part, node]
            low, high = _reached(own, lowest, highest)
            if high < low:
                continue
            rows, total = totals[node]
            size, whole = np.float64(rows) * unit, np.float64(total)
            room = ratio * ratio * size * scale * 2.0**-40 + 2.0
            left_rows, left = beside[node, part]
            for block in range(low):
                left_rows += sums[node, bins[place] + block, 0]
                left += sums[node, bins[place] + block, 1]
            at, best = starts[part, node], 0.0
            before = _corner(np.float64(left_rows) * unit, np.float64(left), size, whole, damping, ratio, scale)
            for block in range(low, high + 1):
                begin, end = max(own[block] + 1, lowest), min(own[block + 1], highest - 1)
                inside_rows, inside = sums[node, bins[place] + block]
                more, more_sum = np.float64(inside_rows) * unit, np.float64(inside)
                at_left, at_sum = np.float64(left_rows) * unit, np.float64(left)
                after = _corner(at_left + more, at_sum + more_sum, size, whole, damping, ratio, scale)
                ends[at] = start[part, node] + (end + 1 - lowest) * weight[part]
                parts[at], blocks[at] = part, block
                if inside_rows == 0:
                    exact[at] = True
                    utilities[at] = _gain(left_rows, left, rows, total, division)
                elif begin == own[block + 1]:
                    exact[at] = True
                    utilities[at] = _gain(left_rows + inside_rows, left + inside, rows, total, division)
                else:
                    # The rows of one sign first, as far as the sums allow: the corners of what may be on the left.
                    plus = 0.5 * (more + more_sum / ratio)
                    minus = 0.5 * (more - more_sum / ratio)
                    high_corner = _corner(at_left + plus, at_sum + ratio * plus, size, whole, damping, ratio, scale)
                    low_corner = _corner(at_left + minus, at_sum - ratio * minus, size, whole, damping, ratio, scale)
                    most = max(before, after, high_corner, low_corner) * (1.0 + 2.0**-40) + room
                    exact[at] = False
                    utilities[at] = np.int64(most) + 1 if most < _MOST else np.int64(2**63 - 1)
                if end == own[block + 1]:
                    best = max(best, after)
                left_rows += inside_rows
                left += inside
                before = after
                at += 1
            attained[part, node] = best


@numba.njit(cache=True, nogil=True)
def cells_of_blocks(
    column,
    order,
    bounds,
    node,
    counts,
    gradients,
    edges,
    wanted,
    sums,
    beside,
    totals,
    weight,
    first,
    stop,
    start,
    division,
    starts,
    widths,
    utilities,
):
    """Write the stretches of equal gain of some blocks of a feature, at one node; how many there are.

    Args:
        column: uint8 or uint16 (n_rows,), the feature's cells.
        order, bounds: the rows by node, from `LevelSums.rows`.
        node: whose rows.
        counts, gradients: int32 (n_rows,), what a row adds.
        edges: of the feature's blocks.
        wanted: int64 (k,), rising: which blocks; each has a threshold among the node's.
        sums: int64 (n_bins, 2), of the node, from the feature's first bin on.
        beside, totals: int64 (2,), of the part and of the node.
        weight, first, stop, start: numbers, of the part and of the node.
        division: the last arguments of `share`.
        starts, widths, utilities: int64, filled; long enough for all thresholds of these blocks.
    """
    # One pair of sums for each cell of the blocks, side by side; the last one is of all other cells.
    slots = np.full(edges[-1] + 1, -1, dtype=np.int32)
    n_slots = 0
    for block in wanted:
        for cell in range(edges[block], edges[block + 1]):
            slots[cell] = n_slots
            n_slots += 1
    slots[slots < 0] = n_slots
    found = np.zeros((n_slots + 1, 2), dtype=np.int64)
    last = np.int64(edges[-1])
    for chunk in range(len(bounds)):
        base = np.uint64(chunk * CHUNK)
        for i in range(bounds[chunk, node], bounds[chunk, node + 1]):
            row = base + np.uint64(order[i])
            slot = slots[min(np.int64(column[row]), last)]
            found[slot, 0] += counts[row]
            found[slot, 1] += gradients[row]
    rows, total = totals
    left_rows, left = beside
    at, slot, block = 0, 0, np.int64(0)
    for each in wanted:
        while block < each:
            left_rows += sums[block, 0]
            left += sums[block, 1]
            block += 1
        begin, end = max(edges[each] + 1, first), min(edges[each + 1], stop - 1)
        inside_rows, inside = left_rows, left
        since = begin
        for cell in range(edges[each], edges[each + 1]):
            # The thresholds up to this cell have it on the right.
            if cell >= begin and cell <= end and found[slot, 0] > 0:
                starts[at], widths[at] = start + (since - first) * weight, (cell + 1 - since) * weight
                utilities[at] = _gain(inside_rows, inside, rows, total, division)
                at += 1
                since = cell + 1
            inside_rows += found[slot, 0]
            inside += found[slot, 1]
            slot += 1
        if since <= end:
            # Those from here on have all rows of the block on the left whose cells are below the end.
            starts[at], widths[at] = start + (since - first) * weight, (end + 1 - since) * weight
            for cell in range(end, edges[each + 1]):
                inside_rows -= found[slot - (edges[each + 1] - cell), 0]
                inside -= found[slot - (edges[each + 1] - cell), 1]
            utilities[at] = _gain(inside_rows, inside, rows, total, division)
            at += 1
    return at


@parts_kernel
def equality_sums(first, end, cells, order, bounds, counts, gradients, feature, offsets, equal, sums):
    """Add up the rows of each node in each of some cells.

    Args:
        first, end: places among the features.
        cells: uint8 or uint16 (n_features, n_rows).
        order, bounds, counts, gradients: as in `cells_of_blocks`.
        feature: int64 (f,). offsets: int64 (f + 1,), where each one's cells begin in `equal`, and the end.
        equal: int64 (n_equal,), the cells, distinct within a feature.
        sums: int64 (n_nodes, n_equal, 2), zeros.
    """
    for place in range(first, end):
        column, own = cells[feature[place]], equal[offsets[place] : offsets[place + 1]]
        last = own.max() + 1
        slots = np.full(last + 1, -1, dtype=np.int64)
        for slot in range(len(own)):
            slots[own[slot]] = offsets[place] + slot
        for chunk in range(len(bounds)):
            base = np.uint64(chunk * CHUNK)
            for node in range(sums.shape[0]):
                for i in range(bounds[chunk, node], bounds[chunk, node + 1]):
                    row = base + np.uint64(order[i])
                    slot = slots[min(np.int64(column[row]), last)]
                    if slot >= 0:
                        sums[node, slot, 0] += counts[row]
                        sums[node, slot, 1] += gradients[row]


@numba.njit(cache=True, nogil=True)
def equality_gains(sums, totals, division, gains):
    """Write the gain of each test of equality; sums int64 (n_nodes, n_equal, 2), gains int64 (n_nodes, n_equal)."""
    for node in range(len(totals)):
        rows, total = totals[node]
        for each in range(sums.shape[1]):
            gains[node, each] = _gain(sums[node, each, 0], sums[node, each, 1], rows, total, division)
