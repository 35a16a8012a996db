"""The gains of all thresholds of fine grids, from rows in the order of their cells: a loop's cost is a row's.

A gain is S**2 / (n + damping) of sums, in exact integers of 128 bits: docs/explanation/gains.md#gain-integers.
Thresholds of a node between two neighbouring cells of its rows are a group: they part the rows alike and have one gain.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import GRID_EXPONENT
from ledgerwood.routing import parts_kernel

# mypy: disable-error-code="no-untyped-def"


_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_WORD = np.uint64(64)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BASE = np.uint64(2**32)
_NEAR = 2.0**49


def exact_gains(
    sums: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    besides: NDArray[np.int64],
    first_feature: int,
    damping_steps: int,
    exponent: int,
    *,
    weighted: bool = False,
) -> NDArray[np.int64]:
    """The gain of each test at each node, int64 (n_nodes, n_tests) in steps of 2**exponent, each side truncated.

    Args:
        sums: int64 (n_nodes, n_cells, 2): rows, and their gradients in steps of 2**-20. With g the most steps of a
            gradient, |gradients| <= g * rows.
        start, stop, besides: int64 (n_tests,): the cells from start to stop - 1 go left, and one more, or -1 for none.
        first_feature: how many cells the first feature has; each row is in one of them.
        damping_steps: in [0, 2**60], steps of 2**-20 rows.
        exponent: such that a squared clip is at most 2**28 steps. Then every number is within its bound for fewer than
            2**35 rows.
        weighted: whether the rows are counted in steps of 2**-20 of the largest weight, too.
    """
    nodes, cells = sums.shape[:2]
    below = np.zeros((nodes, cells + 1, 2), dtype=np.int64)
    np.cumsum(sums, axis=1, out=below[:, 1:])
    gains = np.empty((nodes, len(start)), dtype=np.int64)
    shift = GRID_EXPONENT - exponent
    # An argument: numba's file cache would not see that a constant of another file changed.
    row = _ONE if weighted else np.uint64(2**-GRID_EXPONENT)
    damping = np.uint64(damping_steps)
    _fill(below, start, stop, besides, first_feature, row, damping, max(shift, 0), max(-shift, 0), gains)
    return gains


@numba.njit(cache=True)
def _fill(below, start, stop, besides, first_feature, row, damping, up, down, gains):
    for node in range(gains.shape[0]):
        rows, total = below[node, first_feature]
        for test in range(gains.shape[1]):
            left_rows = below[node, stop[test], 0] - below[node, start[test], 0]
            left = below[node, stop[test], 1] - below[node, start[test], 1]
            cell = besides[test]
            if cell >= 0:
                left_rows += below[node, cell + 1, 0] - below[node, cell, 0]
                left += below[node, cell + 1, 1] - below[node, cell, 1]
            gains[node, test] = share(left_rows, left, row, damping, up, down) + share(
                rows - left_rows, total - left, row, damping, up, down
            )


@numba.njit
def share(rows, total, row, damping, up, down):
    """floor(total**2 * 2**(up - down) / (rows * row + damping)), and 0 without rows; `up` or `down` is 0."""
    if rows <= 0:
        return np.int64(0)
    size = np.uint64(abs(total))
    divisor = np.uint64(rows) * row + damping
    if down == 0:
        # Off by one at most, which the rest tells, modulo 2**64: docs/explanation/gains.md#gain-integers.
        half = np.float64(np.int64(size))
        near = half * half * np.float64(np.int64(1) << np.int64(up)) / np.float64(np.int64(divisor))
        if near < _NEAR:
            found = np.int64(near)
            rest = np.int64(((size * size) << np.uint64(up)) - np.uint64(found) * divisor)
            if rest < 0:
                return found - 1
            return found + 1 if rest >= np.int64(divisor) else found
    high, low = _product(size, size)
    if up > 0:
        high = (high << np.uint64(up)) | (low >> (_WORD - np.uint64(up)))
        low = low << np.uint64(up)
    elif down > 0:
        low = (low >> np.uint64(down)) | (high << (_WORD - np.uint64(down)))
        high = high >> np.uint64(down)
    return np.int64(_quotient(high, low, divisor))


@numba.njit
def _product(a, b):
    """The high and the low word of a product of two words."""
    low, first, second = (a & _LOW) * (b & _LOW), (a >> _HALF) * (b & _LOW), (a & _LOW) * (b >> _HALF)
    middle = (low >> _HALF) + (first & _LOW) + (second & _LOW)
    high = (a >> _HALF) * (b >> _HALF) + (first >> _HALF) + (second >> _HALF) + (middle >> _HALF)
    return high, (low & _LOW) | (middle << _HALF)


@numba.njit
def _quotient(high, low, divisor):
    """(high, low) // divisor for high < divisor: long division by half words, Knuth's algorithm D."""
    if high == _ZERO:
        return low // divisor
    shift, step = _ZERO, _HALF
    while step > _ZERO:  # until the divisor's first bit is set
        if divisor >> (_WORD - step) == _ZERO:
            divisor, shift = divisor << step, shift + step
        step = step >> _ONE
    if shift > _ZERO:
        high = (high << shift) | (low >> (_WORD - shift))
        low = low << shift
    first, rest = _digit(high, low >> _HALF, divisor)
    second, _ = _digit(rest, low & _LOW, divisor)
    return (first << _HALF) | second


@numba.njit
def _digit(high, low, divisor):
    """(high * 2**32 + low) divided by a divisor of 64 bits, high < divisor: a digit below 2**32, and the rest."""
    top, bottom = divisor >> _HALF, divisor & _LOW
    digit = high // top
    rest = high - digit * top
    while rest < _BASE and (digit >= _BASE or digit * bottom > (rest << _HALF) | low):
        digit -= _ONE
        rest += top
    # Modulo 2**64: the rest is below the divisor.
    return digit, (high << _HALF) + low - digit * divisor


# mypy: disable-error-code="no-untyped-def"


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
        given: the values of these rows: gradients, int32, or with weights int64; see `_parted`.
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
        first, stop: those of `LevelPoints`.
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
        besides, weight: those of `CandidateParts`.
        first, stop, start: those of `LevelPoints`.
        starts: int64 (n_parts, n_nodes), where the groups of a part and node go.
        division: the last arguments of `share`.
        ends, gains: those of `GroupedGains`, filled.
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
        feature, offsets, equal, width, weight: those of `CandidateParts`.
        equal_open, start: those of `LevelPoints`.
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
