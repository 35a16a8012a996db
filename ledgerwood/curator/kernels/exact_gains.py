"""S**2 / (n + damping) of sums, in exact integers of 128 bits: docs/explanation/gains.md#gain-integers."""
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import GRID_EXPONENT

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
