"""The loop that puts numbers into the even steps of their declared ranges."""
# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from ledgerwood.routing import rows_kernel

_BLOCK = 512


@rows_kernel
def numeric_cells(first, end, values, columns, places, lows, highs, factors, bins, gaps, declared, cells, left_out):
    """Write the cells of some columns of a table, a few rows at a time: what lies side by side is read at once.

    Args:
        first, end: which rows.
        values: numbers (n_rows, n_columns).
        columns, places: int64 (f,), which columns, and which lines of `cells` they become.
        lows, highs: float64 (f,), the range of each.
        factors: float64 (f,), steps to a unit.
        bins: even steps of a range.
        gaps: int64 (f,), the cell of a missing value.
        declared: bool (f,), whether a missing value is declared; else the row takes no part.
        cells: uint8 or uint16 (n_features, n_rows), filled at `places`.
        left_out: bool (n_rows,), set where a row takes no part.
    """
    for begin in range(first, end, _BLOCK):
        stop = min(end, begin + _BLOCK)
        for place in range(len(columns)):
            column, own = values[:, columns[place]], cells[places[place]]
            low, high, factor, gap = lows[place], highs[place], factors[place], gaps[place]
            gone = False
            for row in range(np.uint64(begin), np.uint64(stop)):
                value = np.float64(column[row])
                # Clamping comes first: a far outlier must not overflow the product.
                above = min(max(value, low), high) - low
                cell = min(np.int64((0.0 if math.isnan(value) else above) * factor), bins - 1)
                missing = math.isnan(value)
                own[row] = gap if missing else cell
                gone |= missing
            if gone and not declared[place]:
                for row in range(begin, stop):
                    left_out[row] |= math.isnan(np.float64(column[row]))
