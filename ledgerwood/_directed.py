"""Rounding with a direction: the nearest float64 that is not on the wrong side of an exact rational."""

import math
from fractions import Fraction

from ledgerwood.errors import InvalidParameter


def float_up(value: Fraction, name: str = "a value", unit: str = "number") -> float:
    """The smallest float64 >= value; an error calls it `name`."""
    number = _nearest(value, name, unit)
    number = number if Fraction(number) >= value else math.nextafter(number, math.inf)
    if number == math.inf:
        raise _out_of_range(value, name, unit)
    return number


def float_down(value: Fraction, name: str = "a value", unit: str = "number") -> float:
    """The largest float64 <= value; an error calls it `name`."""
    number = _nearest(value, name, unit)
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


def root_up(square: Fraction) -> float:
    """The smallest float64 >= sqrt(square), for square >= 0."""
    number = float_up(_root(square))
    while Fraction(number) ** 2 < square:
        number = math.nextafter(number, math.inf)
    return number


def root_down(square: Fraction) -> float:
    """The largest float64 <= sqrt(square), for square >= 0."""
    return float_down(_root(square))


def log2(value: Fraction) -> int:
    """log2 of a positive value, to the next whole number or so."""
    return value.numerator.bit_length() - value.denominator.bit_length()


def _root(square: Fraction) -> Fraction:
    """sqrt(square) from below, to 64 bits or more; exact where it is rational at that width."""
    scale = max(0, 128 - log2(square)) // 2 if square else 0
    scaled = square * 4**scale
    return Fraction(math.isqrt(scaled.numerator // scaled.denominator), 2**scale)


def _nearest(value: Fraction, name: str, unit: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _out_of_range(value, name, unit) from None


def _out_of_range(value: Fraction, name: str, unit: str) -> InvalidParameter:
    return InvalidParameter(f"{name} of about 2**{log2(value)} must be within float64 (unit: {unit})")
