"""Values as people read them and as JSON takes them."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

Fact = str | int | float | bool | None
"""A value that is shown beside its name."""


def plain(value: Fact) -> str:
    """A value as people read it: yes and no, and six digits of a number, rounded up as a privacy loss must be."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float() if math.isfinite(value):
            return most(value, 6)
        case _:
            return str(value)


def most(value: float, digits: int = 4) -> str:
    """A few digits of a number, rounded up as an upper bound must be."""
    return _rounded(value, digits, ROUND_CEILING)


def least(value: float) -> str:
    """Four digits of a number, rounded down as a lower bound must be."""
    return _rounded(value, 4, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=digits, rounding=rounding)
    return f"{float(context.create_decimal(Decimal(repr(float(value))))):.{digits}g}"


def finite(value: object) -> object:
    """Plain JSON values: infinities and NaN as texts, tuples as lists."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case _:
            return value
