"""Two plain data sets as neighbours: which row of one is which row of the other, by their values."""

import struct
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.sensitivity.domains import Neighbour

D = TypeVar("D")
Codes = NDArray[np.int64]


def neighbour_of(data: D, other: D) -> Neighbour[D]:
    """`other` as a neighbour of `data`: rows of equal values are the same row, in whatever order they come.

    Values are equal bit for bit, a missing one (NaN) to every missing one; so 0.0 and -0.0 are two values, which a fit
    may tell apart.

    Args:
        data, other: arrays or data frames (n_rows, ...), or tuples (X, y) and (X, y, weights) of them; None, in both,
            where there is nothing.

    Raises:
        InvalidParameter: no rows, rows of other shapes, or data sets that differ in more than one row.
    """
    first, second = _columns("data", data), _columns("neighbour", other)
    if len(first) != len(second):
        raise InvalidParameter(
            f"the neighbour has {len(second)} columns of values, the data {len(first)} (unit: columns)"
        )
    n, m = len(first[0]), len(second[0])
    codes: Codes = np.zeros(n + m, dtype=np.int64)
    for one, two in zip(first, second, strict=True):
        # Two columns at a time become one: whole numbers that are equal where both are.
        column = _codes(one, two)
        _, codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)
    ranks = _ranks(codes[:n]), _ranks(codes[n:])
    # The k-th row of some values is the k-th row of these values.
    _, places = np.unique(np.concatenate([codes * (n + m) + np.concatenate(ranks)]), return_inverse=True)
    where = np.full(n + m, -1, dtype=np.int64)
    where[places[:n]] = np.arange(n)
    origin = where[places[n:]]
    new, gone = int(np.count_nonzero(origin == -1)), n - int(np.count_nonzero(origin != -1))
    if new > 1 or gone > 1:
        raise InvalidParameter(
            f"the neighbour has {new} rows that the data do not have, and lacks {gone} of theirs; neighbours differ in "
            "one row (unit: rows); a `Neighbour` states which row is which if values do not"
        )
    return Neighbour(data=other, rows=n, origin=tuple(origin.tolist()))


def _columns(name: str, data: object) -> list[NDArray[Any]]:
    """One-dimensional columns of one length, of all the arrays."""
    parts = data if isinstance(data, tuple) else (data,)
    columns: list[NDArray[Any]] = []
    for part in parts:
        if part is None:
            continue
        array = np.asarray(part)
        if array.ndim == 0:
            raise InvalidParameter(
                f"{name} is {_validate.kind_of(part)}: rows are matched by value in arrays, and in tuples of arrays, "
                "one value or more a row; for anything else give a Neighbour (unit: rows)"
            )
        flat = (
            array.reshape(len(array), -1) if len(array) else np.empty((0, int(np.prod(array.shape[1:]))), array.dtype)
        )
        columns += list(flat.T)
    if len({len(column) for column in columns}) != 1:
        raise InvalidParameter(
            f"{name}: arrays of {[len(column) for column in columns]} rows; each must have one entry a row (unit: rows)"
        )
    return columns


def _codes(one: NDArray[Any], two: NDArray[Any]) -> Codes:
    """Whole numbers, equal where the values are."""
    kinds = {one.dtype.kind, two.dtype.kind}
    if kinds <= set("iuf") or (len(kinds) == 1 and kinds <= set("bSUMm")):
        both = np.concatenate([one, two])
        if both.dtype.kind == "f":
            missing = np.isnan(both)
            bits = np.where(missing, 0.0, both).astype(np.float64).view(np.int64)
            both = np.where(missing, np.int64(-1), bits)  # the bits of a NaN: no number has them
        codes: Codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
        return codes
    known: dict[object, int] = {}
    try:
        return np.array([known.setdefault(_key(value), len(known)) for value in [*one, *two]], np.int64)
    except TypeError as error:
        raise InvalidParameter(f"rows are matched by value, and a value cannot be: {error} (unit: rows)") from None


def _key(value: Any) -> object:
    if isinstance(value, float | np.floating):
        return "NaN" if value != value else struct.pack("<d", value), float
    return value, type(value)


def _ranks(codes: Codes) -> Codes:
    """How many equal ones come before each."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, np.int64)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    return ranks
