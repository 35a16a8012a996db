"""Synthetic rows of a schema for the test kits, ordinary ones and odd ones, and ears for what a call says."""

import contextlib
import io
import logging
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.schema import Categorical, Date, Feature, Numeric, Ranged, Schema, Target, as_given, object_days

Data = tuple[NDArray[Any], NDArray[Any]]
"""X (n_rows, n_features) of objects, y (n_rows,): numbers, or objects of classes."""
FEATURES = (
    Numeric("length", 0.0, 1.0),
    Categorical("kind", ("u", "v", "w")),
    Numeric("age", -9.0, 9.0, missing=True),
)


def kit_schema(*, classes: bool, weight_bound: float | None = None) -> Schema:
    """The kit's own schema, for a plug-in that is given none."""
    target: Target = Categorical("label", ("no", "yes")) if classes else Numeric("label", 0.0, 10.0)
    return Schema(features=FEATURES, target=target, weight_bound=weight_bound)


def kit_rows(schema: Schema, n_rows: int, *, seed: int = 0) -> Data:
    """Rows of a resolved schema, whose label follows the first column."""
    generator = np.random.default_rng(seed)
    X = np.empty((n_rows, len(schema.features)), dtype=object)
    for place, feature in enumerate(schema.features):
        X[:, place] = _values(feature, n_rows, generator)
    return X, _labels(schema, _shares(schema, X))


def _shares(schema: Schema, X: NDArray[Any]) -> NDArray[np.float64]:
    """Where each row's first cell lies in its column, from 0 to 1."""
    first = schema.features[0]
    if isinstance(first, Date):
        found = [object_days(value, zoned=first.zoned) for value in X[:, 0]]
        days = np.array([first.low if value is None else value for value in found])
        return np.clip((days - first.low) / (first.high - first.low), 0.0, 1.0)
    if isinstance(first, Numeric):
        known = np.array([value if value is not None else first.low for value in X[:, 0]], dtype=np.float64)
        return np.asarray(np.nan_to_num((known - first.low) / (first.high - first.low)))
    return np.array([first.categories.index(value) / len(first.categories) for value in X[:, 0]])


def rare_rows(schema: Schema, n_rows: int, *, last: bool) -> tuple[Data, tuple[int, ...]]:
    """Rows of a resolved schema with one row each for what is rare, and the places of these rows.

    All other rows have one and the same category, class and middle values: which categories and classes occur, and how
    far the numbers reach, is then a matter of single rows.

    Args:
        schema: with a target.
        n_rows: at least; there is a row for each category of each column.
        last: whether the last category is the common one, or the first.
    """
    X, y = kit_rows(schema, max(n_rows, 10), seed=1)
    most = max([2, *(len(each.categories) - 1 for each in schema.columns if isinstance(each, Categorical))])
    X = np.concatenate([X] * (1 + (most + 1) // len(X)))
    y = np.empty(len(X), dtype=y.dtype)
    columns = [*((X[:, place], each) for place, each in enumerate(schema.features)), (y, schema.target)]
    for values, feature in columns:
        if isinstance(feature, Categorical):
            common, *rare = reversed(feature.categories) if last else feature.categories
            values[:] = [common] * len(X)
        else:
            assert isinstance(feature, Ranged)  # a kit asks for a target
            middle = np.linspace(feature.low * 0.6 + feature.high * 0.4, feature.low * 0.4 + feature.high * 0.6, len(X))
            values[:] = [as_given(feature, each) for each in middle.tolist()]
            rare = [as_given(feature, each) for each in (feature.low, feature.high)][:: 1 if last else -1]
        for place, value in enumerate(rare):
            values[place] = value
    return (X, y), tuple(range(most))


def skewed_labels(schema: Schema, X: NDArray[Any]) -> NDArray[Any]:
    """Labels of rows that follow the first column; of classes, the first declared one for six rows in ten."""
    target = schema.target
    share = np.argsort(np.argsort(_shares(schema, X), kind="stable")) / len(X)
    if not isinstance(target, Categorical):
        return _labels(schema, share)
    rest = len(target.categories) - 1
    places = np.where(share < 0.6, 0, 1 + np.minimum(((share - 0.6) / 0.4 * rest).astype(np.intp), rest - 1))
    labels = np.empty(len(X), dtype=object)
    labels[:] = [target.categories[place] for place in places]
    return labels


def _values(feature: Feature, n_rows: int, generator: np.random.Generator) -> list[Any]:
    if isinstance(feature, Categorical):
        return [feature.categories[place] for place in generator.integers(0, len(feature.categories), n_rows)]
    values = generator.uniform(feature.low, feature.high, n_rows)
    if feature.missing:
        values[generator.random(n_rows) < 0.1] = math.nan
    if isinstance(feature, Date):
        return [None if value != value else feature.spelled(value) for value in values.tolist()]
    return list(values.tolist())


def _labels(schema: Schema, share: NDArray[np.float64]) -> NDArray[Any]:
    target = schema.target
    if isinstance(target, Numeric):
        return np.asarray(target.low + share * (target.high - target.low))
    assert isinstance(target, Categorical)  # a kit asks for a target
    labels = np.empty(len(share), dtype=object)
    places = np.minimum((share * len(target.categories)).astype(np.intp), len(target.categories) - 1)
    labels[:] = [target.categories[place] for place in places]
    return labels


def typed_rows(schema: Schema, data: Data) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """The rows as arrays with a type, which an estimated schema needs: categories by their places."""
    X, y = data
    columns = np.empty(X.shape, dtype=np.float64)
    for place, feature in enumerate(schema.features):
        columns[:, place] = [_code(feature, value) for value in X[:, place]]
    return columns, np.array([str(label) for label in y]) if y.dtype == object else y


def _code(feature: Feature, value: Any) -> float:
    if isinstance(feature, Categorical):
        return feature.categories.index(value)
    found = object_days(value, zoned=feature.zoned) if isinstance(feature, Date) else float(value)
    return math.nan if found is None else found


class Unreadable:
    """A number by its own word, which it does not keep."""

    def __float__(self) -> float:
        raise RuntimeError("a row was read")

    def __len__(self) -> int:
        raise RuntimeError("a row was measured")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("a row was compared")

    __hash__ = None  # type: ignore[assignment]


ODD: dict[str, tuple[Any, Any, float, Any]] = {
    "beyond the bounds": (1e6, "another", 1e6, "another"),
    "below the bounds": (-1e6, "", -1e6, ""),
    "missing": (math.nan, None, math.nan, None),
    "infinite": (math.inf, math.nan, -math.inf, math.nan),
    "huge": (1e308, "u" * 1000, -1e308, 10**400),
    "longer than a float": (10**400, 10**400, math.nan, -(10**400)),
    "texts": ("0.5", 3, 0.0, "0.7"),
    "nested": ([1.0], ["u"], math.inf, [10.0]),
    "foreign": (Unreadable(), Unreadable(), math.nan, Unreadable()),
}
"""A number's cell, a category's cell, a number's label and a class's label, of an odd row."""


def odd_row(schema: Schema, odd: str) -> tuple[list[Any], Any]:
    """A row whose cells and label are odd; labels of numbers stay floats, of which an array of labels is made."""
    number, category, label, class_label = ODD[odd]
    row = [number if isinstance(feature, Numeric) else category for feature in schema.features]
    return row, label if isinstance(schema.target, Numeric) else class_label


def with_row(data: Data, row: Sequence[Any], label: Any) -> Data:
    """One row more, at the end."""
    X, y = data
    more = np.empty((1, X.shape[1]), dtype=object)
    for place, value in enumerate(row):
        more[0, place] = value
    last = np.empty(1, dtype=y.dtype)
    last[0] = label
    return np.concatenate((X, more)), np.concatenate((y, last))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """All that a call has said.

    Args:
        warned: category and text of each warning.
        logged: name, level and text of each log record; not those of numba's compiler.
        out, err: standard output and standard error, of the interpreter and of what runs below it.
        raised: class and text of what was raised, and of its causes; empty where the call came to its end.
    """

    warned: tuple[tuple[str, str], ...]
    logged: tuple[tuple[str, int, str], ...]
    out: str
    err: str
    raised: tuple[str, ...]

    def difference(self, other: "Heard") -> str | None:
        """What the two do not have in common, in words; None where they are equal, byte for byte."""
        for name in ("raised", "warned", "logged", "out", "err"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                return f"{name}: {_short(one)} and {_short(two)}"
        return None


def heard(call: Callable[[], Any]) -> tuple[Heard, Any]:
    """Make a call, keep what it says, and raise nothing that is an Exception.

    Returns:
        What was said, and the call's result; None where it raised.
    """
    records: list[tuple[str, int, str]] = []
    handler = logging.Handler(0)
    handler.emit = lambda record: records.append((record.name, record.levelno, record.getMessage()))  # type: ignore[method-assign]
    root, level = logging.getLogger(), logging.getLogger().level
    out, err = io.StringIO(), io.StringIO()
    result: Any = None
    raised: tuple[str, ...] = ()
    root.addHandler(handler)
    root.setLevel(0)
    try:
        with (
            _descriptors() as below, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as warned, np.errstate(all="warn"),
        ):  # fmt: skip
            warnings.simplefilter("always")
            try:
                result = call()
            except Exception as error:  # noqa: BLE001  # whatever it is, it says something
                raised = tuple(_chain(error))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    found = Heard(
        warned=tuple((each.category.__name__, str(each.message)) for each in warned or ()),
        logged=tuple(record for record in records if not record[0].startswith("numba")),
        out=out.getvalue() + below[0], err=err.getvalue() + below[1], raised=raised,
    )  # fmt: skip
    return found, result


def _chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@contextlib.contextmanager
def _descriptors() -> Iterator[list[str]]:
    """What is written to the process's own outputs, below Python's; filled in when the block ends."""
    texts = ["", ""]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    files = [tempfile.TemporaryFile() for _ in texts]  # noqa: SIM115
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number, file in zip((1, 2), files, strict=True):
            os.dup2(file.fileno(), number)
        yield texts
    finally:
        for place, (number, file) in enumerate(zip((1, 2), files, strict=True)):
            os.dup2(kept[place], number)
            os.close(kept[place])
            file.seek(0)
            texts[place] = file.read().decode("utf-8", errors="replace")
            file.close()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
