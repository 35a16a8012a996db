"""One phrasing for bad values: `name=value is outside bound (unit)`."""

import math
from numbers import Integral, Real
from typing import Any

from ledgerwood.errors import InvalidParameter

_LONG = 300


def fail(name: str, value: object, bound: str, unit: str) -> InvalidParameter:
    """The error that says which value broke which bound, and in which unit."""
    rest = f"{shown(value)} must be {bound} (unit: {unit})"
    return InvalidParameter(f"{name}={rest}", parameter=name, rest=rest)


def shown(value: object) -> str:
    """The value for a message, shortened where it is long or has no text at all, as a number of 5,000 digits."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # what an object says of itself is its own affair
        return f"<{type(value).__name__}>"
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def kind_of(value: object) -> str:
    """The name of a value's type with its article, for a message: "an ndarray", "a list"."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOaeio' or name == 'ndarray' else 'a'} {name}"


def real(name: str, value: object, unit: str) -> float:
    """A finite real number as a Python float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise fail(name, value, "a finite real number", unit)
    try:
        number = float(value)
    except OverflowError:
        raise fail(name, value, "within float64", unit) from None
    if not math.isfinite(number):
        raise fail(name, value, "a finite real number", unit)
    return number + 0.0  # -0.0 becomes 0.0: equal values have one record


def positive(name: str, value: object, unit: str) -> float:
    """A finite real number above zero."""
    number = real(name, value, unit)
    if number <= 0.0:
        raise fail(name, value, "> 0", unit)
    return number


def non_negative(name: str, value: object, unit: str) -> float:
    """A finite real number, zero included."""
    number = real(name, value, unit)
    if number < 0.0:
        raise fail(name, value, ">= 0", unit)
    return number


def rate(name: str, value: object, unit: str) -> float:
    """A probability in (0, 1]."""
    number = real(name, value, unit)
    if not 0.0 < number <= 1.0:
        raise fail(name, value, "in (0, 1]", unit)
    return number


def items(name: str, values: Any, unit: str) -> tuple[Any, ...]:
    """The values as a tuple. One text is refused: Python would take it for the list of its letters."""
    if isinstance(values, str | bytes | bytearray):
        raise fail(name, values, f"a sequence and not one text: write {name}=({values!r},) for a single one", unit)
    try:
        return tuple(values)
    except TypeError:
        raise fail(name, values, "a sequence of values", unit) from None


def several(name: str, values: Any, unit: str) -> tuple[Any, ...]:
    """At least one value, as a tuple; what each of them must be is asked elsewhere."""
    found = items(name, values, unit)
    if not found:
        raise fail(name, found, "at least one number", unit)
    return found


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise fail(name, value, "True or False", "flag")
    return value


def count(name: str, value: object, unit: str, *, minimum: int = 1) -> int:
    """A whole number, at least `minimum`."""
    # What is kept is what is compared: a subclass of int could say that it is large enough.
    if type(value) is int and value >= minimum:  # by far the most: the question below asks a registry of classes
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or (number := int(value)) < minimum:
        raise fail(name, value, f"a whole number >= {minimum}", unit)
    return number
