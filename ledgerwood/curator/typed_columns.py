"""What is public of columns that nobody has declared: their number, names and types. And their values, by type alone.

Nothing here refuses a value: what a column of its type cannot hold counts as missing, or as no category.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, column_or_1d

from ledgerwood.curator.encoding import column_count, series_values
from ledgerwood.curator.schema import MAX_CATEGORY, Category
from ledgerwood.errors import SchemaError

ColumnKind = Literal["numeric", "boolean", "text", "codes"]
MISSING, NO_KEY = -1, -2
_LARGEST = 2**1000
_TYPED = "pass a typed data frame or array, or declare a schema"


@final
@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column by its public name and type.

    Args:
        name: as in the data frame; x0, x1, ... of an array.
        kind: "numeric"; "boolean", whose two values are public; "text" for strings and other categories; "codes" for
            classes that are numbers.
    """

    name: str
    kind: ColumnKind


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumns:
    """What is public of a table without a schema: features in order, and the target."""

    features: tuple[TypedColumn, ...]
    target: TypedColumn

    @classmethod
    def of(cls, X: Any, y: Any, *, numeric_target: bool) -> "TypedColumns":
        """The names and types of a table's columns; no value is looked at.

        Args:
            X: array with a type of its own (n_rows, n_features), or data frame.
            y: array-like (n_rows,), which the estimator takes for numbers or for classes.
            numeric_target: for numbers.

        Raises:
            SchemaError: a column without a type, or of a type that is neither numbers nor categories.
        """
        features = _features(X)
        if not numeric_target:
            return cls(features=features, target=TypedColumn("y", _class_kind(y)))
        _require_numbers(y)
        return cls(features=features, target=TypedColumn("y", "numeric"))


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """A categorical column: which key each row has.

    Args:
        codes: int64 (n_rows,), positions in `keys`; MISSING, or NO_KEY for what is no category.
        keys: distinct categories.
    """

    codes: NDArray[np.int64]
    keys: tuple[Category, ...]


def read_columns(X: Any, columns: tuple[TypedColumn, ...]) -> list[NDArray[np.float64] | Keys]:
    """The values of the features, by column.

    Raises:
        SchemaError, TypeError: sparse input, or of another shape than the columns', whatever its values.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        values: Iterable[NDArray[Any]] = (series_values(frame[column.name]) for column in columns)
    else:
        values = check_array(X, dtype=None, ensure_all_finite=False, estimator="ledgerwood").T
    return [_values(array, column) for array, column in zip(values, columns, strict=True)]


def read_target(y: Any, column: TypedColumn) -> NDArray[np.float64] | Keys:
    """The labels."""
    return _values(np.asarray(column_or_1d(_label_array(y), warn=True)), column)


def _values(array: NDArray[Any], column: TypedColumn) -> NDArray[np.float64] | Keys:
    return _numbers(array) if column.kind == "numeric" else _keys(array)


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """float64 (n_rows,); what is not a number becomes NaN, each value by itself."""
    with np.errstate(all="ignore"):  # a number that is too large for float64 is infinite, and no warning tells of it
        if values.dtype.kind in "biuf":
            return values.astype(np.float64)
        return np.fromiter(
            (float(value) if _is_number(value) else math.nan for value in values.tolist()), np.float64, len(values)
        )


def _keys(values: NDArray[Any]) -> Keys:
    """Strings, and numbers below 2**53 (a boolean is 0 or 1), are keys; other objects are not.

    Nor is a string that ends in NUL, which `Categorical` cannot list.
    """
    found: dict[Category, int] = {}

    def code(value: object) -> int:
        if isinstance(value, str):
            text = str.__str__(value)  # an enumeration of strings prints something else
            return NO_KEY if text.endswith("\0") else found.setdefault(text, len(found))
        if value is None:
            return MISSING
        if not _is_number(value):
            return NO_KEY
        # As a float before it is compared: numpy's shorter and longer floats round on the way.
        number = value if isinstance(value, int) else float(value)
        if number != number:
            return MISSING
        if not abs(number) < MAX_CATEGORY:
            return NO_KEY
        return found.setdefault(int(number) if number == int(number) else number, len(found))

    with np.errstate(all="ignore"):
        if values.dtype.kind in "biufU":
            distinct, inverse = np.unique(values, return_inverse=True)
            codes = np.fromiter(map(code, distinct.tolist()), np.int64, len(distinct))[inverse]
        else:
            codes = np.fromiter(map(code, values.tolist()), np.int64, len(values))
    return Keys(codes=codes, keys=tuple(found))


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, int):
        return abs(value) < _LARGEST  # a longer one does not fit into a float
    return isinstance(value, float | np.bool_ | np.integer | np.floating)


def _features(X: Any) -> tuple[TypedColumn, ...]:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        kind = _array_kind(X, "X")
        return tuple(TypedColumn(f"x{j}", kind) for j in range(column_count(X)))
    for name in frame.columns:
        if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]  # pandas has others
            raise SchemaError(f"the data frame's column name {name!r} must be a non-empty string to buy a schema by it")
    return tuple(TypedColumn(name, _series_kind(dtype, name)) for name, dtype in frame.schema.items())


def _series_kind(dtype: nw.dtypes.DType, name: str) -> ColumnKind:
    # A pandas column of type object may be called String or Object, by a look at its values: both are "text" here.
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    raise SchemaError(f"column {name!r} has type {dtype}, neither numbers nor categories: convert it, or drop it")


def _array_kind(values: Any, name: str) -> ColumnKind:
    if isinstance(values, list | tuple):
        raise SchemaError(f"{name} is a {type(values).__name__}, whose type only its values tell: {_TYPED}")
    if issparse(values):
        check_array(values, dtype=None, estimator="ledgerwood")  # which refuses it by name
    dtype = np.asarray(values).dtype
    match dtype.kind:
        case "i" | "u" | "f":
            return "numeric"
        case "b":
            return "boolean"
        case "U" | "T":
            return "text"
        case "c":
            raise SchemaError(f"Complex data not supported: {name} must be real")
    raise SchemaError(f"{name} is an array of type {dtype}, in which any value could be: {_TYPED}")


def _require_numbers(y: Any) -> None:
    """Refuse labels whose type says that they are not numbers; a list or an array of objects does not say."""
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        numeric = series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Object, nw.String)
    else:
        numeric = _label_array(y).dtype.kind in "biufO"
    if not numeric:
        raise SchemaError("a regressor needs labels of a numeric type")


def _class_kind(y: Any) -> ColumnKind:
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        kind = _series_kind(series.dtype, "y")
    else:
        array = _label_array(y)
        kind = "text" if array.dtype == object else _array_kind(array, "y")
    return "codes" if kind == "numeric" else kind


def _label_array(y: Any) -> NDArray[Any]:
    """The labels as an array whose type their values do not choose."""
    if y is None:
        raise SchemaError("this estimator requires y to be passed, but the target y is None")
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series_values(series)
    array = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if array.dtype.kind == "c":
        raise SchemaError("Complex data not supported: y must be real")
    return array
