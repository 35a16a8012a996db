"""Values from outside, each read by itself and by the type that its column is declared to have.

Nothing here refuses a value, warns of one or looks at two at once: what cannot be read counts as missing. What may be
refused is the type of an array.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import SchemaTypeError
from ledgerwood.schema import MAX_CATEGORY, Category

MISSING, NO_KEY = -1, -2
_NUMBERS, _CATEGORIES = "biufO", "biufUTO"
_NUMPY = (np.bool_, np.integer, np.floating)


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """A categorical column: which key each row has.

    Args:
        codes: int64 (n_rows,), positions in `keys`; MISSING, or NO_KEY for what no schema can list.
        keys: distinct categories.
    """

    codes: NDArray[np.int64]
    keys: tuple[Category, ...]


def numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """float64 (n_rows,); what is not a number becomes NaN, and so does a whole number beyond float64.

    Args:
        column: see `reading`.
        name: for errors.

    Raises:
        SchemaTypeError: an array of a type that has no numbers.
    """
    _require_kind(column, name, _NUMBERS, "numbers")
    with np.errstate(all="ignore"):  # a number that is too large for float64 is infinite, and no warning tells of it
        if column.dtype.kind != "O":
            return column.astype(np.float64)
        values = column.tolist()
        if all(type(value) is float for value in values):
            return np.array(values, dtype=np.float64)
        return np.fromiter(map(_float, values), np.float64, len(values))


def categories(column: NDArray[Any], name: str) -> Keys:
    """Strings, and numbers below 2**53 (a boolean is 0 or 1), are keys; other numbers are NO_KEY.

    So is a string that ends in NUL, which `Categorical` cannot list. What is neither counts as missing.

    Args:
        column: see `reading`.
        name: for errors.

    Raises:
        SchemaTypeError: an array of a type that has no categories.
    """
    _require_kind(column, name, _CATEGORIES, "strings, numbers or truth values")
    found: dict[Category, int] = {}

    def code(value: object) -> int:
        if issubclass(type(value), str):
            text = str.__str__(value)  # an enumeration of strings prints something else
            return NO_KEY if text.endswith("\0") else found.setdefault(text, len(found))
        number = real_number(value)
        if number is None or number != number:
            return MISSING
        if not abs(number) < MAX_CATEGORY:
            return NO_KEY
        return found.setdefault(int(number) if number == int(number) else number, len(found))

    with np.errstate(all="ignore"):
        if column.dtype.kind in "biufU":
            distinct, inverse = np.unique(column, return_inverse=True)
            codes = np.fromiter(map(code, distinct.tolist()), np.int64, len(distinct))[inverse]
        else:
            codes = np.fromiter(map(code, column.tolist()), np.int64, len(column))
    return Keys(codes=codes, keys=tuple(found))


def real_number(value: object) -> int | float | None:
    """The number as one of Python's own; None for what is not one.

    By the true class and its base's conversion: what an object says of itself, or raises, is its own affair.
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]  # as its class says
    try:
        if issubclass(kind, float):
            return float.__float__(value)  # type: ignore[arg-type]
        if issubclass(kind, int):
            return int.__int__(value)  # type: ignore[arg-type]
        if issubclass(kind, np.integer):
            return int(value)  # type: ignore[call-overload,no-any-return]
        if issubclass(kind, _NUMPY):
            return float(value)  # type: ignore[arg-type]
        if issubclass(kind, Decimal):
            return Decimal.__float__(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  # a signalling NaN, or a subclass that raises: no number
        return None
    return None


def _float(value: object) -> float:
    number = real_number(value)
    if number is None:
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.nan


def _require_kind(column: NDArray[Any], name: str, kinds: str, wanted: str) -> None:
    if column.dtype.kind == "c":
        raise SchemaTypeError(f"Complex data not supported: column {name!r} must be real")
    if column.dtype.kind not in kinds:
        raise SchemaTypeError(
            f"column {name!r} is an array of type {column.dtype}, and is declared to hold {wanted}: convert it"
        )
