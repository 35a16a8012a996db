"""The loops that count rows: by the leaf of a tree, and by the cells of features. `kernels` says what holds."""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from ledgerwood.routing import CHUNK_ROWS, leaves_of, parts_kernel, rows_kernel


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
