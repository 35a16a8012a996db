"""A query's value with no or less rounding error, to tell an exceeded sensitivity from floating-point rounding."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.sensitivity.distances import Norm, collect, root_below
from ledgerwood.verification.sensitivity.domains import Data

_AGREE = 1e-3
"""Of what is claimed: by which the two kinds of numbers may differ and still be of one function."""
Converted = Callable[[NDArray[Any]], NDArray[Any] | None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """How far two values are apart in another arithmetic.

    Args:
        distance: in the norm of the claim.
        breach: whether it is more than claimed for certain.
        arithmetic: in which, in words.
    """

    distance: float
    breach: bool
    arithmetic: str


def exactly(
    query: Callable[[Data], Any], first: Data, second: Data, *, claimed: float, norm: Norm, rows: int
) -> Exact | None:
    """The distance of a query's two values in exact fractions, or else in numpy's longest floats.

    None where the query takes neither of them, where its values are rounded to float64 after all (by a constant of its
    own, or by a cast), or where the two disagree: then it is not one function of what the rows hold.
    """
    found = [
        _in(query, first, second, converted, words, claimed=claimed, norm=norm, rows=rows)
        for converted, words in ((_as_fractions, "exact fractions"), (_as_long, "floats of more digits"))
    ]
    known = [one for one in found if one is not None]
    if len(known) == 2 and abs(known[0].distance - known[1].distance) > _AGREE * max(claimed, known[0].distance):
        return None
    return known[0] if known else None


def _in(
    query: Callable[[Data], Any], first: Data, second: Data, converted: Converted, words: str, *, claimed: float,
    norm: Norm, rows: int,
) -> Exact | None:  # fmt: skip
    try:
        values = [_value(query, data, converted) for data in (first, second)]
    except Exception:  # noqa: BLE001 - a query may take no such numbers, and raise anything
        return None
    known = [value for value in values if value is not None]
    if len(known) < 2 or known[0][0] != known[1][0]:
        return None
    (_, one, precision), (_, other, _) = known
    changes = [b - a for a, b in zip(one, other, strict=True)]
    if not changes:
        return None
    distance = _norm(changes, norm)
    scale = max(map(abs, (*one, *other)), default=Fraction(0))
    spread = {"l1": len(one), "l2": math.isqrt(len(one)) + 1, "linf": 1, "range": 2}[norm]
    forgiven = 8 * Fraction(precision) * (rows + 8) * scale * spread
    return Exact(distance=_as_float(distance), breach=distance > Fraction(claimed) + forgiven, arithmetic=words)


def _value(
    query: Callable[[Data], Any], data: Data, converted: Converted
) -> tuple[list[object], list[Fraction], float] | None:
    """Shapes, numbers and their precision; None where a number is not finite, or was rounded to float64."""
    parts = data if isinstance(data, tuple) else (data,)
    columns: list[Any] = []
    for part in parts:
        column = converted(part) if part.dtype.kind == "f" else part.copy()
        if column is None:
            return None
        columns.append(column)
    shape: list[object] = []
    numbers: list[NDArray[Any]] = []
    with np.errstate(all="ignore"):
        output: Any = query(tuple(columns) if isinstance(data, tuple) else columns[0])
    collect(output, shape, numbers)
    precision, found = 0.0, []
    for part in numbers:
        if part.dtype.kind == "f":
            precision = max(precision, float(np.finfo(part.dtype).eps))
            if precision >= np.finfo(np.float64).eps or not np.isfinite(part).all():
                return None
        found += [_as_fraction(item) for item in part.ravel()]
    return shape, found, precision


def _as_fraction(item: Any) -> Fraction:
    if isinstance(item, int | Fraction):
        return Fraction(item)
    high = float(item)
    return Fraction(high) + Fraction(float(item - np.longdouble(high)))


def _norm(changes: list[Fraction], norm: Norm) -> Fraction:
    """Rounded down, if at all: what is above a claim is so for certain."""
    sizes = [abs(change) for change in changes]
    match norm:
        case "l1":
            return sum(sizes, Fraction(0))
        case "l2":
            return root_below(sum((size * size for size in sizes), Fraction(0))) if len(sizes) > 1 else sizes[0]
        case "linf":
            return max(sizes)
        case "range":
            return max(changes) - min(changes)


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _as_fractions(column: NDArray[Any]) -> NDArray[Any] | None:
    if not np.isfinite(column).all():
        return None
    flat = np.empty(column.size, dtype=object)
    flat[:] = [Fraction(value) for value in column.ravel().tolist()]
    return flat.reshape(column.shape)


def _as_long(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.longdouble)
