"""The exponential function of this library, which is the same on every processor.

What a row contributes is an integer, truncated from its gradient. A library's exp may differ in the last bit between
processors and versions, and with it the integer: two workers of one cluster would not count the same row alike. This
one is made of additions, multiplications and shifts, each of them rounded as IEEE 754 says, in one order.

docs/explanation/places.md#own-exp has the bound on its error.
"""
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np

_LEAST, _MOST = -746.0, 710.0
"""At and beyond these ends the result is 0, and infinite: exp(-745.14) rounds to 0, exp(709.79) is too large."""
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_LN2_HIGH = float.fromhex(
    "0x1.62e42fefa0000p-1"
)  # 36 bits, so that its product with a whole number below 2**11 is exact
_LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
_ROUNDER = 1.5 * 2.0**52
"""Added to a number below 2**51 in size it leaves the nearest whole one, in the last bits of the sum."""
_ROUNDER_BITS = np.int64(0x4338 << 48)
# 1 / k!, rounded to the nearest.
_C2, _C3, _C4, _C5 = 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0
_C6, _C7, _C8, _C9 = 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40320.0, 1.0 / 362880.0
_C10, _C11, _C12, _C13 = 1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0


@numba.njit(inline="always")
def _power_of_two(exponent):
    """2**exponent, of a whole number in [-1022, 1023]."""
    return np.int64((exponent + np.int64(1023)) << np.int64(52)).view(np.float64)


@numba.njit(inline="always")
def exp(x):
    """Returns e**x, with an error below two units in the last place; infinite and 0 as IEEE 754 has it, NaN of NaN."""
    held = min(max(x, _LEAST), _MOST)
    rounded = held * _PER_LN2 + _ROUNDER
    whole = rounded - _ROUNDER
    r = (held - whole * _LN2_HIGH) - whole * _LN2_LOW
    # The order of these terms is part of the result.
    square = r * r
    fourth = square * square
    low = (_C2 + _C3 * r) + square * (_C4 + _C5 * r)
    middle = (_C6 + _C7 * r) + square * (_C8 + _C9 * r)
    high = (_C10 + _C11 * r) + square * (_C12 + _C13 * r)
    near = 1.0 + (r + square * (low + fourth * (middle + fourth * high)))
    exponent = np.float64(rounded).view(np.int64) - _ROUNDER_BITS
    # In two steps: 2**1024 is no number, and a result below the least normal one is rounded once.
    half = exponent >> np.int64(1)
    value = near * _power_of_two(half) * _power_of_two(exponent - half)
    return value if x == x else x
