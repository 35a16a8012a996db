"""Counts of rows by pairs of cells, and how well the best tests one level below a split can do by them.

docs/explanation/gini.md#correct-rows.
"""

import numpy as np

from ledgerwood.routing import parts_kernel

# mypy: disable-error-code="no-untyped-def"


@parts_kernel
def pair_counts(first, end, columns, places, offsets, codes, counts):
    """Count the rows of each code by the cells of each pair of features.

    Args:
        first, end: places among the features.
        columns: uint8 or uint16 (n_columns, n_rows), the cells; one beyond a feature's last cell counts as the last.
        places: int64 (f,), which of the columns.
        offsets: int64 (f + 1,), where each one's cells begin, and the end.
        codes: int32 (n_rows,), in 0 .. n_codes; a row of n_codes is not counted.
        counts: int64 (n_codes, n_cells, n_cells), added to; symmetric in the cells.
    """
    n_codes, n_rows = counts.shape[0], len(codes)
    lines = np.empty(n_rows, dtype=np.uint32)
    for place in range(first, end):
        column, width = columns[places[place]], offsets[place + 1] - offsets[place]
        for row in range(n_rows):
            lines[row] = np.int64(codes[row]) * width + min(np.int64(column[row]), width - 1)
        for other in range(place + 1):
            # A table of one pair is small: it stays in fast memory while all rows pass.
            second, other_width = columns[places[other]], np.uint32(offsets[other + 1] - offsets[other])
            last = np.uint32(other_width - np.uint32(1))
            table = np.zeros((n_codes + 1) * width * other_width, dtype=np.int64)
            for row in range(n_rows):
                table[np.uint64(lines[row] * other_width + min(np.uint32(second[row]), last))] += 1
            for code in range(n_codes):
                for cell in range(width):
                    for beside in range(other_width):
                        found = table[(code * width + cell) * other_width + beside]
                        counts[code, offsets[place] + cell, offsets[other] + beside] += found
                        if other != place:
                            counts[code, offsets[other] + beside, offsets[place] + cell] += found


@parts_kernel
def rows_after_two_splits(first, end, below, start, stop, besides, last, set_at, set_cells, found):
    """Find how many rows of a node the best labels get right, after a test and the best test on each of its sides.

    Args:
        first, end: the range of nodes times tests.
        below: int64 (n_nodes, classes, n_cells + 1, n_cells), the rows whose first cell is among the first so many.
        start, stop, besides, last: int64 (n_tests,), as in `TestedCells`.
        set_at: int64 (n_tests + 1,), where in set_cells each test's begin, and the end.
        set_cells: int64 (m,), further cells that go left.
        found: int64 (n_nodes, n_tests), filled.
    """
    classes, n_cells, n_tests = below.shape[1], below.shape[3], len(start)
    # Rows by class and second cell: of the left side, and of the node; then those with a smaller cell.
    here, left = np.empty((classes, n_cells), dtype=np.int64), np.empty((classes, n_cells), dtype=np.int64)
    all_below = np.zeros((classes, n_cells + 1), dtype=np.int64)
    left_below = np.zeros((classes, n_cells + 1), dtype=np.int64)
    reached = -1
    for part in range(first, end):
        node, test = part // n_tests, part % n_tests
        own = below[node]
        if node != reached:
            reached = node
            for each in range(classes):
                for cell in range(n_cells):
                    # Every row has a cell of the first test's feature.
                    here[each, cell] = own[each, last[0] + 1, cell] - own[each, start[0], cell]
                    all_below[each, cell + 1] = all_below[each, cell] + here[each, cell]
        for each in range(classes):
            for cell in range(n_cells):
                count = own[each, stop[test], cell] - own[each, start[test], cell]
                if besides[test] >= 0:
                    count += own[each, besides[test] + 1, cell] - own[each, besides[test], cell]
                for place in range(set_at[test], set_at[test + 1]):
                    count += own[each, set_cells[place] + 1, cell] - own[each, set_cells[place], cell]
                left[each, cell] = count
                left_below[each, cell + 1] = left_below[each, cell] + count
        best_left, best_right = np.int64(0), np.int64(0)
        for then in range(n_tests):
            low, high, cut, beside = start[then], last[then] + 1, stop[then], besides[then]
            most = np.zeros(4, dtype=np.int64)  # left and right of the left side, then of the right side
            for each in range(classes):
                on_left = left_below[each, cut] - left_below[each, low]
                on_either = all_below[each, cut] - all_below[each, low]
                if beside >= 0:
                    on_left += left[each, beside]
                    on_either += here[each, beside]
                for place in range(set_at[then], set_at[then + 1]):
                    on_left += left[each, set_cells[place]]
                    on_either += here[each, set_cells[place]]
                whole_left = left_below[each, high] - left_below[each, low]
                whole = all_below[each, high] - all_below[each, low]
                most[0] = max(most[0], on_left)
                most[1] = max(most[1], whole_left - on_left)
                most[2] = max(most[2], on_either - on_left)
                most[3] = max(most[3], whole - whole_left - on_either + on_left)
            best_left = max(best_left, most[0] + most[1])
            best_right = max(best_right, most[2] + most[3])
        found[node, test] = best_left + best_right
