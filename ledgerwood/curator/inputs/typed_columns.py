"""Columns and labels by their types alone: what is public of them where nobody has declared a schema.

Columns have a number, names and types, and values that are read by type: what a column of its type cannot hold counts
as missing, or as no category, and is never refused.

Labels of a type that an estimator cannot learn are refused by that type, before anything is spent. No value is looked
at, so that no row can change what is refused. A list or an array of objects has no type: its labels are read one by one
where the schema declares the target (docs/explanation/several-classes.md#label-types).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.inputs.dates import days, is_zoned
from ledgerwood.curator.inputs.reading import (
    NamedArray,
    Series,
    frame_or_none,
    has_objects,
    one_column,
    series_or_none,
    table_columns,
    table_width,
    type_name,
)
from ledgerwood.curator.inputs.sparse_tables import is_sparse, require_dense
from ledgerwood.curator.inputs.values import Keys, categories, numbers
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.schema import (
    Categorical,
    Category,
    Date,
    Feature,
    Numeric,
    Open,
    OpenCategorical,
    OpenDate,
    OpenNumeric,
    Schema,
    SchemaDraft,
    Target,
)

ColumnKind = Literal["numeric", "dates", "instants", "boolean", "text", "codes"]
FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Within which a range of dates is estimated."""
_TYPED = "pass a typed data frame or array, or declare a schema"


@final
@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column by its public name and type.

    Args:
        name: as in the data frame; x0, x1, ... of an array.
        kind: "numeric"; "dates", without a time zone; "instants", dates with one; "boolean", whose two values are
            public; "text" for strings and other categories; "codes" for classes that are numbers.
        given: what a draft says of the column; None: nothing.
    """

    name: str
    kind: ColumnKind
    given: Feature | Open | None = None

    @property
    def read_as(self) -> ColumnKind:
        """The kind that the values are read as: what the draft says, else what the type says."""
        match self.given:
            case Numeric() | OpenNumeric():
                return "numeric"
            case Date() | OpenDate():
                return "instants" if self.given.zoned else "dates"
            case Categorical() | OpenCategorical():
                plain = self.kind == "boolean" and not self.listed
                return self.kind if plain or self.kind in ("text", "codes") else "codes"
        return self.kind

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, or days of dates."""
        return self.read_as in ("numeric", "dates", "instants")

    @property
    def bought(self) -> bool:
        """Whether something of the column is estimated: not of a declared one, and not of booleans."""
        return not isinstance(self.given, Feature) and self.read_as != "boolean"

    @property
    def listed(self) -> tuple[Category, ...]:
        """The public list whose most frequent categories are found; empty where there is none."""
        return (self.given.among or ()) if isinstance(self.given, OpenCategorical) else ()

    @property
    def keyed(self) -> bool:
        """Whether categories are estimated that nobody has listed."""
        return self.bought and not self.ordered and not self.listed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumns:
    """The public part of a table without a schema.

    Args:
        features: in order.
        target: of the labels.
        at_owners: whether the rows lie at several owners, so that categories are counted in tables of bounded size.
    """

    features: tuple[TypedColumn, ...]
    target: TypedColumn
    at_owners: bool = False

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


def with_draft(columns: TypedColumns, draft: SchemaDraft) -> TypedColumns:
    """The columns with what a draft says of them.

    Args:
        columns: by their types.
        draft: of the same columns, by name.

    Raises:
        SchemaError: the draft is of other columns.
        SchemaTypeError: a column of another type than the draft says.
    """
    said = {column.name: column for column in draft.features}
    names = [column.name for column in columns.features]
    if sorted(said) != sorted(names):
        absent, besides = [name for name in said if name not in names], [name for name in names if name not in said]
        raise SchemaError(
            f"the draft's columns are not those of the rows: the rows lack {absent} and also have {besides}; leave "
            "columns out of both, or of neither"
        )
    for column in (*columns.features, columns.target):
        _require_said(column, said.get(column.name) if column is not columns.target else draft.target)
    if isinstance(draft.target, OpenCategorical) and draft.target.max_categories is not None:
        raise SchemaError(f"max_categories={draft.target.max_categories!r} is of features, not of the target")
    return dataclasses.replace(
        columns,
        features=tuple(dataclasses.replace(column, given=said[column.name]) for column in columns.features),
        target=dataclasses.replace(columns.target, given=draft.target),
    )


def without_draft(columns: TypedColumns) -> TypedColumns:
    """The columns by their types alone."""
    return dataclasses.replace(
        columns,
        features=tuple(dataclasses.replace(column, given=None) for column in columns.features),
        target=dataclasses.replace(columns.target, given=None),
    )


def _require_said(column: TypedColumn, said: Feature | Open | None) -> None:
    """Refuse a column that cannot hold what the draft says, by its type alone."""
    match said:
        case Numeric() | OpenNumeric():
            fits, wanted = column.kind in ("numeric", "boolean"), "numbers"
        case Date() | OpenDate():
            fits = column.kind in ("instants" if said.zoned else "dates", "text")
            wanted = f"dates {'with' if said.zoned else 'without'} a time zone"
        case Categorical():
            texts = {isinstance(category, str) for category in said.categories}
            fits, wanted = _may_be(column.kind, texts), f"the categories {said.categories[:5]!r} and their like"
        case OpenCategorical():
            texts = {isinstance(category, str) for category in said.among or ()} or {True, False}
            fits, wanted = _may_be(column.kind, texts), "categories"
        case _:
            return
    if not fits:
        raise SchemaTypeError(
            f"column {column.name!r} is of a type of {column.kind}, and the draft says that it holds {wanted}: convert "
            "the column, or correct the draft"
        )


def _may_be(kind: ColumnKind, texts: set[bool]) -> bool:
    """Whether a value of a column of this kind may be one of the categories, of which some are texts or not."""
    match kind:
        case "text":  # which may be objects, that is numbers too
            return True
        case "numeric" | "codes" | "boolean":
            return False in texts
        case "dates" | "instants":
            return False


def read_columns(X: Any, columns: tuple[TypedColumn, ...]) -> list[NDArray[np.float64] | Keys]:
    """The values of the features, by column.

    Raises:
        SchemaError: another shape or type than the columns', for any values.
    """
    schema = Schema(features=tuple(map(placeholder, columns)))
    return [_values(column, typed) for column, typed in zip(table_columns(X, schema), columns, strict=True)]


def read_target(y: Any, column: TypedColumn) -> NDArray[np.float64] | Keys:
    """The labels."""
    return _values(one_column(y, "y"), column)


def _values(column: NDArray[Any], typed: TypedColumn) -> NDArray[np.float64] | Keys:
    match typed.read_as:
        case "numeric":
            return numbers(column, typed.name)
        case "dates" | "instants":
            return days(column, any_date(typed.name, zoned=typed.read_as == "instants"))
        case "boolean" | "text" | "codes":
            return categories(column, typed.name)


def placeholder(column: TypedColumn) -> Feature:
    """A declared column of this type, with any range or categories: to find and read the values by."""
    match column.read_as:
        case "numeric":
            return Numeric(column.name, -1.0, 1.0, missing=True)
        case "dates" | "instants":
            return any_date(column.name, zoned=column.read_as == "instants")
        case "boolean":
            return Categorical(column.name, (False, True), missing=True)
        case "text":
            return Categorical(column.name, ("a", "b"), missing=True)
        case "codes":
            return Categorical(column.name, (0, 1), missing=True)


def any_date(name: str, *, zoned: bool) -> Date:
    """A column of dates with the range that is looked at where none is declared."""
    end = "T00:00:00+00:00" if zoned else ""
    return Date(name, f"{FIRST_YEAR}-01-01{end}", f"{LAST_YEAR}-01-01{end}", missing=True)


def _features(X: Any) -> tuple[TypedColumn, ...]:
    require_dense(X)
    if isinstance(X, NamedArray) and X.names is not None and X.kinds is not None:
        return tuple(map(TypedColumn, X.names, X.kinds))
    frame = frame_or_none(X)
    if frame is None:
        _require_array(X, "X")
        width = table_width(X, None)
        kind = _array_kind(X, "X")
        return tuple(TypedColumn(f"x{j}", kind) for j in range(width))
    for name in frame.columns:
        if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]  # pandas has others
            raise SchemaError(
                f"the data frame's column name {name!r} must be a non-empty string: a schema is estimated by names"
            )
    return tuple(TypedColumn(name, series_kind(frame[name], name)) for name in frame.columns)


def series_kind(series: Series, name: str) -> ColumnKind:
    """The kind of a data frame's column, by its type alone; errors as of `dtype_kind`."""
    if has_objects(series):  # whose type narwhals would find by a look at the values
        return "text"
    return dtype_kind(series.dtype, name)


def dtype_kind(dtype: nw.dtypes.DType, name: str) -> ColumnKind:
    """The kind of a column of this type.

    Raises:
        SchemaError: a type that is neither numbers nor dates nor categories.
    """
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    if dtype in (nw.Date, nw.Datetime):
        return "instants" if is_zoned(dtype) else "dates"
    raise SchemaError(
        f"column {name!r} has type {type_name(dtype)}, and is neither numbers nor dates nor categories: convert it, or "
        "drop it"
    )


def _require_array(values: Any, name: str) -> None:
    if isinstance(values, list | tuple):
        raise SchemaError(f"{name} is {_validate.kind_of(values)}, whose type depends on its values: {_TYPED}")


def _array_kind(values: Any, name: str) -> ColumnKind:
    dtype = np.asarray(values).dtype
    match dtype.kind:
        case "i" | "u" | "f":
            return "numeric"
        case "M":
            return "dates"
        case "b":
            return "boolean"
        case "U" | "T":
            return "text"
        case "c":
            raise SchemaError(f"Complex data not supported: {name} must be real")
    raise SchemaError(f"{name} is an array of type {dtype}, which may hold values of any type: {_TYPED}")


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
        kind = series_kind(series, "y")
    else:
        array = one_column(y, "y")
        kind = "text" if array.dtype == object else _array_kind(array, "y")
    return "codes" if kind == "numeric" else kind


LabelKind = Literal["whole", "float", "boolean", "text", "categorical", "untyped", "other"]
_NUMBERS: frozenset[LabelKind] = frozenset({"whole", "float", "boolean"})
_OF_NUMPY: dict[str, LabelKind] = {
    "i": "whole", "u": "whole", "f": "float", "b": "boolean", "U": "text", "T": "text", "O": "untyped",
}  # fmt: skip


def require_labels(y: Any, target: Target | None, *, numeric: bool) -> None:
    """Refuse labels whose type says that they are not what the estimator learns.

    Args:
        y: array-like (n_rows,).
        target: as declared; None if the schema is to be estimated.
        numeric: whether the estimator learns numbers, not classes.

    Raises:
        SchemaError: no labels.
        SchemaTypeError: labels of another type; the message says which type is asked for.
    """
    if y is None:
        raise SchemaError("this estimator requires y to be passed, but the target y is None")
    kind, name = label_kind(y)
    if name.startswith("complex"):
        raise SchemaTypeError(f"Complex data not supported: y is of type {name}, and labels must be real")
    if numeric:
        _require_numeric_labels(kind, name, target)
    elif kind == "other":
        raise SchemaTypeError(
            f"y is of type {name}, and a classifier needs strings, whole numbers or booleans: convert y, for example "
            "by y.astype(str)"
        )
    elif isinstance(target, Categorical):
        _require_same_type(kind, name, target)
    elif kind == "float" and target is None:
        raise SchemaTypeError(
            f"y is of type {name}, and the schema declares no classes: numbers with a fraction are not classes. Pass "
            "whole numbers, strings or booleans (y.astype(int), if that is what they are), or declare the classes with "
            "ledgerwood.Categorical, or use a regressor"
        )


def label_kind(y: Any) -> tuple[LabelKind, str]:
    """The kind of the labels' type, and the type's name; "untyped" if it depends on the values."""
    pandas = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(y, pandas.Index | pandas.api.extensions.ExtensionArray):
        y = pandas.Series(y)
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _label_kind(series)
    if isinstance(y, Sequence) and not isinstance(y, str | bytes):
        return "untyped", type(y).__name__
    dtype = np.asarray(y).dtype
    return _OF_NUMPY.get(dtype.kind, "other"), str(dtype)


def _label_kind(series: nw.Series[Any]) -> tuple[LabelKind, str]:
    if series.implementation.is_pandas_like() and series.to_native().dtype == np.dtype(object):
        return "untyped", "object"  # narwhals would name its type by a look at the values
    dtype, name = series.dtype, type_name(series.dtype)
    if dtype.is_numeric():
        return ("whole" if dtype.is_integer() else "float"), name
    if dtype == nw.Boolean:
        return "boolean", name
    if dtype == nw.String:
        return "text", name
    if dtype in (nw.Categorical, nw.Enum):
        return "categorical", name
    if dtype in (nw.Object, nw.Unknown):
        # What pandas and polars keep as complex numbers has no name here.
        native = str(series.to_native().dtype)
        return ("other", native) if native.startswith("complex") else ("untyped", name)
    return "other", name


def _require_numeric_labels(kind: LabelKind, name: str, target: Target | None) -> None:
    if kind in _NUMBERS or (kind == "untyped" and isinstance(target, Numeric)):
        return
    if kind == "untyped":
        raise SchemaTypeError(
            f"y is of type {name}, which may hold values of any type: pass an array or a series of numbers "
            "(numpy.asarray(y, dtype=float)), or declare the target, target=ledgerwood.Numeric(name, low, high)"
        )
    raise SchemaTypeError(
        f"y is of type {name}, and a regressor needs numbers: convert y, for example by y.astype(float), or use a "
        "classifier"
    )


def _require_same_type(kind: LabelKind, name: str, target: Categorical) -> None:
    declared = _other_type(kind, target)
    if declared is not None:
        raise SchemaTypeError(
            f"y is of type {name}, and target {target.name!r} declares the classes {target.categories}, which are "
            f"{declared}: no label could be one of them. Convert y or the classes, so that both are of one type"
        )


def require_categories(X: Any, schema: Schema) -> None:
    """Refuse a column if no value of its type can be one of the declared categories.

    Args:
        X: a table of training rows, with the schema's columns.
        schema: as declared.

    Raises:
        SchemaTypeError: there is one.
    """
    frame = frame_or_none(X)
    array, sparse = isinstance(X, np.ndarray), is_sparse(X)
    for place, feature in enumerate(schema.features):
        if not isinstance(feature, Categorical) or (frame is None and not array and not sparse):
            continue
        kind, name = label_kind(_typed_column(X, place) if frame is None else frame[feature.name])
        declared = _other_type(kind, feature)
        if declared is not None:
            raise SchemaTypeError(
                f"column {feature.name!r} is of type {name}, and declares the categories {feature.categories}, which "
                f"are {declared}: no row could have one of them. Convert the column or the categories, so that "
                "both are of one type"
            )


def _typed_column(X: Any, place: int) -> NDArray[Any]:
    """A column of an array; of a sparse table, whose columns are of one type, none of its values."""
    return np.empty(0, dtype=X.dtype) if is_sparse(X) else X[:, place]


def _other_type(kind: LabelKind, column: Categorical) -> str | None:
    """What the categories are, where no value of the type could be one of them."""
    texts = {isinstance(category, str) for category in column.categories}
    if (kind == "text" and True not in texts) or (kind in _NUMBERS and False not in texts):
        return "strings" if True in texts else "numbers"
    return None
