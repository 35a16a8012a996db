"""The gains of all thresholds of fine grids, from rows in the order of their cells: a loop's cost is a row's.

Thresholds of a node between two neighbouring cells of its rows are a group: they part the rows alike and have one gain.
"""
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np

from ledgerwood.curator.kernels.exact_gains import share
from ledgerwood.routing import parts_kernel

FEW_ROWS = 24
"""Up to so many rows of a node are sorted faster by insertion."""
WEIGHT_BITS = 32
"""With weights, a row's step holds both: weight * 2**32 + gradient, |gradient| < 2**31."""


@numba.njit(inline="always")
def _parted(step, weighted):
    """How much a row counts, and its gradient."""
    if weighted:
        weight = (np.int64(step) + (np.int64(1) << (WEIGHT_BITS - 1))) >> WEIGHT_BITS
        return weight, np.int64(step) - (weight << WEIGHT_BITS)
    return np.int64(1), np.int64(step)


@numba.njit(cache=True)
def rows_by_node(rows, nodes, given, weighted, bounds, totals, own_rows, own_steps):
    """Put each node's rows together: each later loop then stays within the memory of one node.

    Args:
        rows, nodes: as in `grouped_gains`.
        given: of these rows, gradients, int32, or with weights int64; see `_parted`.
        bounds: int64 (n_nodes + 1,), zeros, filled with where each node's rows begin, and the end.
        totals: int64 (n_nodes, 2), zeros, filled with how much each node's rows count, and their sum of gradients.
        own_rows, own_steps: int64 (m,) and as `given`, filled, node after node.
    """
    for i in range(len(nodes)):
        counts, gradient = _parted(given[i], weighted)
        bounds[nodes[i] + 1] += 1
        totals[nodes[i], 0] += counts
        totals[nodes[i], 1] += gradient
    for node in range(len(totals)):
        bounds[node + 1] += bounds[node]
    at = bounds.copy()
    for i in range(len(nodes)):
        own_rows[at[nodes[i]]] = rows[i] if len(rows) > 0 else i
        own_steps[at[nodes[i]]] = given[i]
        at[nodes[i]] += 1


@parts_kernel
def sort_rows(first_place, end_place, cells, features, rows, own_steps, bounds, keys, steps):
    """Sort the rows of each node by each feature's cell: few by insertion, more by bytes, the lower one first.

    Args:
        first_place, end_place: places among the features.
        features: int64 (f,).
        rows, own_steps, bounds: from `rows_by_node`.
        keys, steps: uint16 (f, m) and as `own_steps` (f, m), filled with the cells, and the steps of their rows.
    """
    for place in range(first_place, end_place):
        column, key, step = cells[features[place]], keys[place], steps[place]
        spare_key, spare_step = np.empty(len(rows), dtype=np.uint16), np.empty(len(rows), dtype=own_steps.dtype)
        low, high = np.zeros(257, dtype=np.int64), np.zeros(257, dtype=np.int64)
        for node in range(len(bounds) - 1):
            begin, end = bounds[node], bounds[node + 1]
            if end - begin <= FEW_ROWS:
                for i in range(begin, end):
                    cell, at = column[rows[i]], i
                    while at > begin and key[at - 1] > cell:
                        key[at], step[at] = key[at - 1], step[at - 1]
                        at -= 1
                    key[at], step[at] = cell, own_steps[i]
                continue
            low[:] = 0
            high[:] = 0
            for i in range(begin, end):
                cell = np.int64(column[rows[i]])
                low[(cell & 255) + 1] += 1
                high[(cell >> 8) + 1] += 1
            one_byte = high[1] == end - begin
            low[0], high[0] = begin, begin
            for digit in range(256):
                low[digit + 1] += low[digit]
                high[digit + 1] += high[digit]
            for i in range(begin, end):
                cell = np.int64(column[rows[i]])
                at = low[cell & 255]
                low[cell & 255] += 1
                if one_byte:
                    key[at], step[at] = cell, own_steps[i]
                else:
                    spare_key[at], spare_step[at] = cell, own_steps[i]
            if not one_byte:
                for i in range(begin, end):
                    byte = np.int64(spare_key[i]) >> 8
                    at = high[byte]
                    high[byte] += 1
                    key[at], step[at] = spare_key[i], spare_step[i]


@parts_kernel
def count_groups(first_part, end_part, place, keys, bounds, first, stop, groups):
    """Count the groups of thresholds of each part and node.

    Args:
        first_part, end_part: which parts.
        keys, bounds: as in `sort_rows`.
        place: int64 (n_parts,), the part's feature among the sorted ones, -1 for tests of equality.
        first, stop: of `LevelPoints`.
        groups: int64 (n_parts, n_nodes), zeros for thresholds, filled there.
    """
    for part in range(first_part, end_part):
        if place[part] >= 0:
            key = keys[place[part]]
            for node in range(len(bounds) - 1):
                low, most = first[part, node], stop[part, node] - 2
                count = 1 if most + 2 > low else 0
                last = np.int64(-1)
                for i in range(bounds[node], bounds[node + 1]):
                    cell = np.int64(key[i])
                    if cell > most:
                        break
                    if cell != last:
                        last = cell
                        if cell >= low:
                            count += 1
                groups[part, node] = count


@numba.njit
def _gain(left_rows, left, rows, total, division):
    """Of a test that sends some of a node's rows left, with their sum."""
    return share(left_rows, left, *division) + share(rows - left_rows, total - left, *division)


@parts_kernel
def fill_thresholds(
    first_part,
    end_part,
    place,
    keys,
    steps,
    weighted,
    bounds,
    totals,
    besides,
    weight,
    first,
    stop,
    start,
    starts,
    division,
    ends,
    gains,
):
    """Write the end and the gain of each group of thresholds.

    Args:
        first_part, end_part, place, keys, bounds: as in `count_groups`.
        steps: from `sort_rows`. weighted: see `_parted`.
        totals: from `rows_by_node`.
        besides, weight: of `CandidateParts`.
        first, stop, start: of `LevelPoints`.
        starts: int64 (n_parts, n_nodes), where the groups of a part and node go.
        division: the last arguments of `share`.
        ends, gains: of `GroupedGains`, filled.
    """
    for part in range(first_part, end_part):
        if place[part] >= 0:
            key, step, one = keys[place[part]], steps[place[part]], weight[part]
            for node in range(len(totals)):
                low, high = first[part, node], stop[part, node]
                if high <= low:
                    continue
                begin, end, line, at = bounds[node], bounds[node + 1], start[part, node], starts[part, node]
                rows, total = totals[node]
                # What goes left: the cell besides from the beginning, and the cells below the threshold.
                left_rows, left = np.int64(0), np.int64(0)
                if besides[part] >= 0:
                    for i in range(end - 1, begin - 1, -1):
                        if key[i] < besides[part]:
                            break
                        if key[i] == besides[part]:
                            counts, gradient = _parted(step[i], weighted)
                            left_rows += counts
                            left += gradient
                last = np.int64(-1)
                for i in range(begin, end):
                    cell = np.int64(key[i])
                    if cell > high - 2:
                        break
                    if cell != last:
                        last = cell
                        if cell >= low:
                            # A group's last threshold is "below this cell", which has the cell's rows on its right.
                            ends[at] = line + (cell + 1 - low) * one
                            gains[at] = _gain(left_rows, left, rows, total, division)
                            at += 1
                    counts, gradient = _parted(step[i], weighted)
                    left_rows += counts
                    left += gradient
                ends[at] = line + (high - low) * one
                gains[at] = _gain(left_rows, left, rows, total, division)


@parts_kernel
def fill_equalities(
    first_part,
    end_part,
    cells,
    rows,
    own_steps,
    weighted,
    bounds,
    totals,
    feature,
    offsets,
    equal,
    width,
    weight,
    equal_open,
    start,
    starts,
    division,
    ends,
    gains,
):
    """Write the end and the gain of each test of equality: its own group.

    Args:
        first_part, end_part: as in `count_groups`.
        cells, rows, own_steps, bounds: as in `sort_rows`.
        weighted, totals, starts, division, ends, gains: as in `fill_thresholds`.
        feature, offsets, equal, width, weight: of `CandidateParts`.
        equal_open, start: of `LevelPoints`.
    """
    for part in range(first_part, end_part):
        tests = offsets[part + 1] - offsets[part]
        if tests > 0:
            column = cells[feature[part]]
            slots = np.zeros(width[part] + 1, dtype=np.int64)  # from 1 on; at 0, rows of no tested cell
            for slot in range(tests):
                slots[equal[offsets[part] + slot]] = slot + 1
            own = np.zeros((tests + 1, 2), dtype=np.int64)
            for node in range(len(totals)):
                own[:] = 0
                for i in range(bounds[node], bounds[node + 1]):
                    slot = slots[min(np.int64(column[rows[i]]), width[part])]
                    counts, gradient = _parted(own_steps[i], weighted)
                    own[slot, 0] += counts
                    own[slot, 1] += gradient
                end, at = start[part, node], starts[part, node]
                rows_here, total = totals[node]
                for slot in range(tests):
                    if equal_open[node, offsets[part] + slot]:
                        end += weight[part]
                        ends[at] = end
                        gains[at] = _gain(own[slot + 1, 0], own[slot + 1, 1], rows_here, total, division)
                        at += 1
