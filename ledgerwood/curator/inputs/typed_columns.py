"""What is public of columns that nobody has declared: their number, names and types. And their values, by type alone.

Nothing here refuses a value: what a column of its type cannot hold counts as missing, or as no category.
"""

from dataclasses import dataclass
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.reading import (
    Series,
    frame_or_none,
    has_objects,
    one_column,
    series_or_none,
    table_columns,
    table_width,
)
from ledgerwood.curator.inputs.values import Keys, categories, numbers
from ledgerwood.errors import SchemaError

ColumnKind = Literal["numeric", "boolean", "text", "codes"]
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
            X: array with its own type (n_rows, n_features), or data frame.
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


def read_columns(X: Any, columns: tuple[TypedColumn, ...]) -> list[NDArray[np.float64] | Keys]:
    """The values of the features, by column.

    Raises:
        SchemaError: of another shape or type than the columns', whatever its values.
    """
    return [_values(column, typed) for column, typed in zip(table_columns(X, None), columns, strict=True)]


def read_target(y: Any, column: TypedColumn) -> NDArray[np.float64] | Keys:
    """The labels."""
    return _values(one_column(y, "y"), column)


def _values(column: NDArray[Any], typed: TypedColumn) -> NDArray[np.float64] | Keys:
    return numbers(column, typed.name) if typed.kind == "numeric" else categories(column, typed.name)


def _features(X: Any) -> tuple[TypedColumn, ...]:
    frame = frame_or_none(X)
    if frame is None:
        _require_array(X, "X")
        width = table_width(X, None)
        kind = _array_kind(X, "X")
        return tuple(TypedColumn(f"x{j}", kind) for j in range(width))
    for name in frame.columns:
        if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]  # pandas has others
            raise SchemaError(f"the data frame's column name {name!r} must be a non-empty string to buy a schema by it")
    return tuple(TypedColumn(name, _series_kind(frame[name], name)) for name in frame.columns)


def _series_kind(series: Series, name: str) -> ColumnKind:
    if has_objects(series):  # whose type narwhals would find by a look at the values
        return "text"
    dtype = series.dtype
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    raise SchemaError(f"column {name!r} has type {dtype}, neither numbers nor categories: convert it, or drop it")


def _require_array(values: Any, name: str) -> None:
    if isinstance(values, list | tuple):
        raise SchemaError(f"{name} is a {type(values).__name__}, whose type only its values tell: {_TYPED}")


def _array_kind(values: Any, name: str) -> ColumnKind:
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
    series = series_or_none(y)
    if series is None:
        numeric = one_column(y, "y").dtype.kind in "biufO"
    elif has_objects(series):
        numeric = True
    else:
        numeric = series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Object, nw.String)
    if not numeric:
        raise SchemaError("a regressor needs labels of a numeric type")


def _class_kind(y: Any) -> ColumnKind:
    series = series_or_none(y)
    if series is not None:
        kind = _series_kind(series, "y")
    else:
        array = one_column(y, "y")
        kind = "text" if array.dtype == object else _array_kind(array, "y")
    return "codes" if kind == "numeric" else kind
