"""Numbers as a reader compares them, what is found rounded down, what is allowed rounded up; and a check's generator.

A number is as long as it takes to tell both apart.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from ledgerwood import _validate

_FEW, _SOME, _ALL = 4, 6, 17
"""Significant digits: of what was found, of what is allowed, and all that float64 holds."""


def rounded_down(value: float, digits: int = _FEW) -> str:
    """Significant digits of a lower bound."""
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = _FEW) -> str:
    """Significant digits of an upper bound."""
    return _rounded(value, digits, ROUND_CEILING)


def beside(found: float, allowed: float) -> tuple[str, str]:
    """Both as texts, four digits and six, or as many as show that what was found is above what is allowed, if it is."""
    digits = _FEW
    while True:
        down, up = rounded_down(found, digits), rounded_up(allowed, max(digits, _SOME))
        if digits == _ALL or found <= allowed or float(down) > float(up):
            return down, up
        digits += 1


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(exact):.{digits}g}"


Seeded = np.random.Generator | int | None
"""A generator, or the seed of one; None as each check says."""


def generator_of(rng: object, *, unsaid: int | None = None) -> np.random.Generator:
    """The generator.

    Args:
        rng: as a check was given it: `Seeded`.
        unsaid: the seed where it is None; None for fresh entropy of the operating system.

    Raises:
        InvalidParameter: it is no generator, and no whole number >= 0.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng(unsaid)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise _validate.fail("rng", rng, "a numpy Generator, or a whole number >= 0 that seeds one", "generator")
