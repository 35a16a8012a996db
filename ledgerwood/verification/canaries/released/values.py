"""Turn what a fitted model shows into named columns: numbers, texts, arrays, and tuples and dicts of them."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.tree._tree import Tree

from ledgerwood.errors import InvalidParameter

Released = Callable[[Any], Any] | Literal["attributes"]
"""A function of the fitted object, or its fitted attributes as scikit-learn names them: those that end in "_"."""
Columns = dict[str, NDArray[np.float64]]
"""Each part of a released value by its name, float64 (length,)."""
_EXACT = 2**53
_DEEPEST = 12
_TREE = ("feature", "threshold", "value", "children_left", "children_right", "impurity", "weighted_n_node_samples")


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """What one fit released.

    Args:
        columns: by name.
        skipped: names of attributes that are neither numbers nor texts, so that nothing is seen of them.
        failure: what the fit raised; None where it did not.
    """

    columns: Columns
    skipped: tuple[str, ...] = ()
    failure: str | None = None


def shown(model: Any, released: Released) -> Shown:
    """Read a fitted model.

    Raises:
        InvalidParameter: a function's value with a part that is no number, text, array, tuple or dict.
    """
    columns: Columns = {}
    if released == "attributes":
        skipped: list[str] = []
        _attributes(columns, skipped, "", model, 0, set())
        return Shown(columns=columns, skipped=tuple(dict.fromkeys(skipped)))
    value = released(model)
    if not _add(columns, "", value, 0):
        raise InvalidParameter(
            f"released(model) returned {type(value).__name__} with a part that is no number: return numbers, texts, "
            "arrays, or tuples and dicts of them (unit: released value)"
        )
    return Shown(columns=columns)


def _attributes(columns: Columns, skipped: list[str], prefix: str, model: Any, depth: int, seen: set[int]) -> None:
    """Attributes that end in "_", of the object and of the estimators that it holds under any name."""
    if depth > _DEEPEST or id(model) in seen:
        return
    seen.add(id(model))
    for name, value in sorted(_state(model).items()):
        place = f"{prefix}.{name}" if prefix else name
        for inner, part in _estimators(place, value):
            _attributes(columns, skipped, inner, part, depth + 1, seen)
        if not name.endswith("_") or name.startswith("_") or _only_estimators(value):
            continue
        found: Columns = {}
        if _add(found, place, value, 0):
            columns.update(found)
        else:
            skipped.append(place)


def _state(model: Any) -> dict[str, Any]:
    try:
        return dict(vars(model))
    except TypeError:  # slots
        return {}


def _estimators(name: str, value: Any) -> list[tuple[str, Any]]:
    """Estimators in a value: itself, or those of a list, a tuple, an object array or a dict, pipelines' steps too."""
    if isinstance(value, BaseEstimator):
        return [(name, value)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, Mapping):
        return [found for key, part in value.items() for found in _estimators(f"{name}[{key!r}]", part)]
    if isinstance(value, list | tuple):
        return [found for place, part in enumerate(value) for found in _estimators(f"{name}[{place}]", part)]
    return []


def _only_estimators(value: Any) -> bool:
    if isinstance(value, BaseEstimator):
        return True
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list | tuple) and len(value) > 0 and all(_only_estimators(part) for part in value)


def _add(columns: Columns, name: str, value: Any, depth: int) -> bool:
    """Add a value's columns; False where a part of it is of no kind that can be read."""
    if depth > _DEEPEST:
        return False
    match value:
        case None:
            columns[name] = np.array([math.nan])
        case str() | bytes():
            _add_texts(columns, name, [value])
        case bool() | int() | float() | complex() | np.generic():
            return _add_array(columns, name, np.asarray(value).reshape(1), depth)
        case np.ndarray():
            return _add_array(columns, name, value.ravel(), depth)
        case Tree():
            return all(_add(columns, f"{name}.{part}", getattr(value, part), depth + 1) for part in _TREE)
        case Mapping():
            ordered = sorted(value.items(), key=lambda item: repr(item[0]))
            return all(_add(columns, f"{name}[{key!r}]", part, depth + 1) for key, part in ordered)
        case Sequence():
            return _add_sequence(columns, name, value, depth)
        case sparse.spmatrix() | sparse.sparray():
            matrix: Any = value  # every one of scipy's has it, but not the common base of its types
            return _add_array(columns, name, np.asarray(matrix.toarray()).ravel(), depth)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            held = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
            held |= getattr(value, "__dict__", {})  # what was set later is no field
            return all(_add(columns, f"{name}.{each}", part, depth + 1) for each, part in held.items())
        case _:
            return False
    return True


def _add_sequence(columns: Columns, name: str, value: Sequence[Any], depth: int) -> bool:
    # By its elements, not as one array: numpy makes texts of the numbers that stand beside a text.
    if len(value) and all(isinstance(part, bool | int | float | np.bool_ | np.number) for part in value):
        return _add_array(columns, name, np.asarray(value).ravel(), depth)
    if len(value) and all(isinstance(part, str | bytes) for part in value):
        _add_texts(columns, name, list(value))
        return True
    columns[f"len({name})"] = np.array([float(len(value))])
    return all(_add(columns, f"{name}[{place}]", part, depth + 1) for place, part in enumerate(value))


def _add_array(columns: Columns, name: str, values: NDArray[Any], depth: int) -> bool:
    """A flat array."""
    match values.dtype.kind:
        case "V" if values.dtype.names is not None:
            return all(
                _add_array(columns, f"{name}.{each}", values[each].ravel(), depth) for each in values.dtype.names
            )
        case "O":
            return _add_sequence(columns, name, values.tolist(), depth + 1)
        case "U" | "S":
            _add_texts(columns, name, values.tolist())
        case "c":
            columns[f"{name}.real"], columns[f"{name}.imag"] = values.real.astype(float), values.imag.astype(float)
        case "M" | "m":
            columns[name] = values.astype(np.int64).astype(np.float64)
        case "i" | "u":
            columns[name] = values.astype(np.float64)
            if values.size and bool(np.any(np.abs(values.astype(np.float64)) > _EXACT)):
                columns[f"{name} (low bits)"] = (values & 0xFFFFFFFF).astype(np.float64)
        case "b" | "f":
            columns[name] = values.astype(np.float64)
        case _:
            return False
    return True


def _add_texts(columns: Columns, name: str, texts: list[Any]) -> None:
    """A text is a mark by which equal texts are told from others, and the number that it spells, if it does."""
    words = [text.decode("latin-1") if isinstance(text, bytes) else str(text) for text in texts]
    numbers = np.array([_spelt(word) for word in words], dtype=np.float64)
    if not np.isnan(numbers).all():
        columns[f"{name} (as a number)"] = numbers
    columns[f"{name} (text)"] = np.array([float(crc32(word.encode())) for word in words])


def _spelt(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
