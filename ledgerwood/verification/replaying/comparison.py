"""Comparison of two public values: queries, mechanisms, events, ensembles, fitted models; floats bit for bit.

Values of unknown types are refused, since they cannot be shown to be equal.
"""

import dataclasses
import struct
from collections.abc import Iterable, Mapping
from enum import Enum
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ledgerwood import _validate
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.errors import ReplayFailed

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
    raise ReplayFailed(f"{path} is {_validate.kind_of(value)}, which a replay cannot look into")


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
