"""Two runs compared: releases matched, and their differences.

Comparison of two public values: queries, mechanisms, events, ensembles, fitted models; floats bit for bit.

Values of unknown types are refused, since they cannot be shown to be equal.

Two plain data sets as neighbours: which row of one is which row of the other, by their values.
"""

import dataclasses
import struct
from collections.abc import Iterable, Mapping
from enum import Enum
from fractions import Fraction
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ledgerwood.accounting.ledger import Ledger
from ledgerwood.errors import InvalidParameter, ReplayFailed
from ledgerwood.verification.sensitivity.domains import Neighbour

_PLAIN = (bool, int, str, bytes, type(None), Enum, Fraction, type, range)


def difference(first: object, second: object, path: str) -> tuple[str, str, str] | None:
    """The first place where they differ, as (path, one value, the other); None where they do not.

    Args:
        first, second: plain values, floats, arrays, dataclasses, estimators, ledgers, and containers of them.
        path: what the two are called.

    Raises:
        ReplayFailed: a kind of value that it cannot look into.
    """
    if first is second:
        return None
    if type(first) is not type(second):
        return path, _shown(first), _shown(second)
    if isinstance(first, float):
        return None if _bits(first) == _bits(second) else (path, repr(first), repr(second))
    if isinstance(first, np.ndarray | np.generic):
        return _array_difference(np.asarray(first), np.asarray(second), path)
    if isinstance(first, _PLAIN):
        return None if first == second else (path, _shown(first), _shown(second))
    if isinstance(first, set | frozenset):
        return None if first == second else (path, _shown(first), _shown(second))
    if isinstance(first, FunctionType) and isinstance(second, FunctionType) and first.__code__ is not second.__code__:
        raise ReplayFailed(f"{path} is not the same function in both fits, and a replay cannot compare two")
    pairs = _parts(first, path), _parts(second, path)
    for (name, one), (other_name, other) in zip(*pairs, strict=False):
        if name != other_name:
            return path, name, other_name
        found = difference(one, other, name)
        if found is not None:
            return found
    if len(pairs[0]) != len(pairs[1]):
        return path, f"{len(pairs[0])} values", f"{len(pairs[1])} values"
    return None


def _parts(value: Any, path: str) -> list[tuple[str, object]]:
    """What the value is made of, each part with its path, in order."""
    if dataclasses.is_dataclass(value):
        stated = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        # What a fit has set on an estimator is no field of it.
        return _named(path, {**stated, **getattr(value, "__dict__", {})}.items())
    match value:
        case tuple() | list():
            return [(f"{path}[{place}]", item) for place, item in enumerate(value)]
        case Mapping():
            return [(f"{path}[{key!r}]", item) for key, item in value.items()]
        case BaseEstimator():
            return _named(path, vars(value).items())
        case Ledger():
            return _named(path, [("entries", value.entries)])
        case FunctionType():
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            return _named(
                path,
                zip(
                    ("defaults", "keywords", *value.__code__.co_freevars),
                    (value.__defaults__, value.__kwdefaults__, *held),
                    strict=True,
                ),
            )
    raise ReplayFailed(f"{path} is a {type(value).__name__}, which a replay cannot look into")


def _named(path: str, parts: Iterable[tuple[str, object]]) -> list[tuple[str, object]]:
    return [(f"{path}.{name}" if path else name, part) for name, part in parts]


def _array_difference(first: Any, second: Any, path: str) -> tuple[str, str, str] | None:
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return path, f"{first.dtype} {first.shape}", f"{second.dtype} {second.shape}"
    if first.dtype == object:
        return difference(first.ravel().tolist(), second.ravel().tolist(), path)
    if first.tobytes() == second.tobytes():
        return None
    for place, (one, other) in enumerate(zip(first.ravel(), second.ravel(), strict=True)):
        if one.tobytes() != other.tobytes():
            return f"{path}[{place}]" if first.ndim else path, repr(one.item()), repr(other.item())
    raise AssertionError("two arrays of different bytes differ in a place")


def _bits(value: Any) -> bytes:
    return struct.pack("<d", value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


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
            "one row (unit: rows); `Neighbour` says which row is which where values do not"
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
                f"{name} is a {type(part).__name__}: rows are matched by value in arrays, and in tuples of arrays, one "
                "value or more a row; for anything else give a Neighbour (unit: rows)"
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
