"""The released values of a fitted model, as rows of numbers of equal length.

What a model shows (numbers, texts, arrays, and tuples and dicts of them) becomes named columns, in a layout that is
learned from the first fits and then fixed.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    """The released values of one fit.

    Args:
        columns: by name.
        skipped: names of attributes that are neither numbers nor texts, so that nothing is seen of them.
        failure: what the fit raised; None if it did not.
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


Floats = NDArray[np.float64]
_MOST = 32
"""Columns that are kept as they are; what others say is in the sums over all columns."""
_REACH = 1e6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """The position of each number.

    Args:
        names: the names of the parts that learning fits released.
        lengths: the lengths of each part, the most that one fit had.
        varied: parts whose length differed between fits: the length is a column too.
    """

    names: tuple[str, ...]
    lengths: tuple[int, ...]
    varied: tuple[bool, ...]

    @classmethod
    def of(cls, fits: Sequence[Shown]) -> "Layout":
        """The layout that holds everything that these fits released."""
        found: dict[str, tuple[int, int]] = {}
        for each in fits:
            for name, values in each.columns.items():
                low, high = found.get(name, (values.size, values.size))
                found[name] = (min(low, values.size), max(high, values.size))
        # A part that some fits do not have is one of varied length.
        counts = {name: sum(name in each.columns for each in fits) for name in found}
        answered = sum(each.failure is None for each in fits)
        return cls(
            names=tuple(found),
            lengths=tuple(high for _, high in found.values()),
            varied=tuple(low < high or counts[name] < answered for name, (low, high) in found.items()),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each number of a row."""
        named = ["whether the fit failed", "whether a part was new"]
        for name, length, varied in zip(self.names, self.lengths, self.varied, strict=True):
            own = name or "the value"
            if varied:
                named.append(f"the length of {own}")
            named += [own] if length == 1 else [f"{own}[{place}]" for place in range(length)]
        return tuple(named)

    def rows(self, fits: Sequence[Shown]) -> Floats:
        """Float64 (n, columns): NaN where a fit released less, and cut where it released more."""
        table = np.full((len(fits), len(self.columns)), np.nan)
        known = set(self.names)
        for row, each in zip(table, fits, strict=True):
            longer = any(
                name in each.columns and each.columns[name].size > length
                for name, length in zip(self.names, self.lengths, strict=True)
            )
            row[0], row[1] = float(each.failure is not None), float(longer or not known.issuperset(each.columns))
            at = 2
            for name, length, varied in zip(self.names, self.lengths, self.varied, strict=True):
                values = each.columns.get(name, np.zeros(0))[:length]
                if varied:
                    row[at] = float(values.size)
                    at += 1
                row[at : at + values.size] = values
                at += length
        return table


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """A fixed function from what a fit released to a short row: the columns that tell most, and sums over all of them.

    Args:
        layout: the layout of the parts.
        kept: columns that vary, the ones that differ most between the two data sets first, at most 32 of them.
        centres, scales, weights: those of all columns, for the sums: how far a row is from the middle, and in which
            direction.
    """

    layout: Layout
    kept: NDArray[np.int64]
    centres: Floats
    scales: Floats
    weights: Floats

    @classmethod
    def learned(cls, first: Sequence[Shown], second: Sequence[Shown]) -> "Encoder":
        """Learn from fits of the two data sets."""
        layout = Layout.of([*first, *second])
        a, b = layout.rows(first), layout.rows(second)
        both = np.concatenate([a, b])
        finite = np.isfinite(both)
        filled = np.where(finite, both, 0.0)
        centres, scales = np.zeros(both.shape[1]), np.ones(both.shape[1])
        for place in range(both.shape[1]):
            values = both[finite[:, place], place]
            if values.size:
                low, centres[place], high = np.quantile(values, [0.25, 0.5, 0.75])
                spread = float(high - low) or float(np.abs(values - centres[place]).mean())
                scales[place] = spread if np.isfinite(spread) and spread > 0.0 else 1.0
        x, y = (np.clip((part - centres) / scales, -_REACH, _REACH) for part in np.split(filled, [len(a)]))
        x, y = (np.where(np.isfinite(part), part, 0.0) for part in (x, y))
        shift = x.mean(axis=0) - y.mean(axis=0)
        variance = 0.5 * (x.var(axis=0) + y.var(axis=0)) + 1e-3
        far = np.abs(np.log1p(np.abs(x)).mean(axis=0) - np.log1p(np.abs(y)).mean(axis=0))
        missing = np.abs(np.isfinite(a).mean(axis=0) - np.isfinite(b).mean(axis=0))
        varies = np.array([np.unique(column).size > 1 for column in both.T])  # NaNs are one value
        order = np.argsort(-(np.abs(shift) / np.sqrt(variance) + far + missing), kind="stable")
        kept = order[varies[order]][:_MOST].astype(np.int64)
        return cls(layout=layout, kept=kept, centres=centres, scales=scales, weights=shift / variance)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers of an encoded row."""
        columns = self.layout.columns
        own = tuple(columns[place] for place in self.kept.tolist())
        return own if len(own) < 2 else (*own, "the distance of all values from their middle", "a sum of all values")

    def __call__(self, fits: Sequence[Shown]) -> Floats:
        """Float64 (n, k), k >= 1."""
        rows = self.layout.rows(fits)
        if not len(self.kept):
            return np.zeros((len(fits), 1))
        own = rows[:, self.kept]
        if len(self.kept) < 2:
            return own
        with np.errstate(all="ignore"):
            scaled = np.clip((rows - self.centres) / self.scales, -_REACH, _REACH)
        scaled = np.where(np.isfinite(scaled), scaled, 0.0)
        distance = np.log1p(np.abs(scaled)).mean(axis=1)
        return np.column_stack([own, distance, scaled @ self.weights])
