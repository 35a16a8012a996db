"""Columns of values from outside, read by type and shape only, so that no row changes how another is read.

numpy and the data frames choose the type, and numpy even the shape, of a list by a look at all of its values. Here a
list stays a list of values, each of which `values` reads by itself.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, final, runtime_checkable

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from ledgerwood import _validate
from ledgerwood.curator.inputs.dates import typed_dates, with_known_dates
from ledgerwood.curator.inputs.sparse_tables import (
    SparseTable,
    by_column,
    is_sparse,
    require_dense,
    require_sparse,
    rows_of,
)
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.schema import Date, Numeric, Schema

Column = NDArray[Any]
"""(n_rows,), of numbers, texts, truth values or objects; of another type only to be refused by it."""
Series = nw.Series[Any]
_TABLE = "a data frame, an array of two dimensions, or a list of rows"
_ONE_COLUMN = "a series, an array of one dimension, or a list"
_CATEGORIES = (nw.String, nw.Object, nw.Categorical, nw.Enum, nw.Unknown)


@runtime_checkable
class ArrayLike(Protocol):
    """An object that numpy can convert to an array."""

    def __array__(self) -> Any:
        """The array."""


@final
class NamedArray(np.ndarray[Any, np.dtype[Any]]):
    """A table (n_rows, n_features) from a file without types, whose columns were found by name.

    Attributes:
        names: of the columns; None of an array that was made of another one.
        kinds: "numeric" or "text" of each column, as its owner says; None where a schema says it.
    """

    names: tuple[str, ...] | None = None
    kinds: tuple[Literal["numeric", "text"], ...] | None = None


def table_width(X: Any, schema: Schema | None) -> int:
    """The number of columns of a table, from its shape alone; of a list of rows, which has none, from the schema.

    Raises:
        SchemaError: not two-dimensional, no columns, or a list of rows for a schema that does not state their number.
        SchemaTypeError: sparse, or not a table at all.
    """
    frame = _frame(X)
    if frame is not None:
        return _some_columns(frame.shape[1])
    if _is_list(X):
        if schema is None or not schema.features:
            raise SchemaError(
                f"X is {_validate.kind_of(X)}, whose number of columns depends on its rows: pass an array or a data "
                "frame, or declare the columns, as Schema.uniform(low, high, n_features=...) does"
            )
        return len(schema.features)
    if is_sparse(X):
        return _some_columns(require_sparse(X)[1])
    return _some_columns(_array(X).shape[1])


def column_names(X: Any) -> tuple[str, ...] | None:
    """The names of a table's columns; None where it has none."""
    frame = _frame(X)
    if frame is not None:
        return tuple(frame.columns)
    return X.names if isinstance(X, NamedArray) else None


def headings(X: Any, schema: Schema | None) -> Any:
    """The part of a table that scikit-learn may see, to record the number and the names of its columns.

    The table itself, or, of a list, an array of no rows: of a list scikit-learn would look at the first row.
    """
    width = table_width(X, schema)
    return np.empty((0, width)) if _is_list(X) else X


def see_columns(estimator: Any, X: Any, schema: Schema | None, *, reset: bool = True) -> None:
    """Let scikit-learn record the number and the names of a table's columns, or compare them. No value is looked at.

    Args:
        estimator: to which they belong.
        X: a table.
        schema: of the columns.
        reset: True records, False compares.

    Raises:
        ValueError: other columns than those that were recorded.
    """
    names = X.names if isinstance(X, NamedArray) else None
    if names is None or reset or "feature_names_in_" not in vars(estimator):
        validate_data(estimator, headings(X, schema), reset=reset, skip_check_array=True)
    # scikit-learn does not see the names of an array, and would warn that there are none.
    if names is not None and reset:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif names is not None and (schema is None or not schema.features):  # which are not found by name
        recorded = vars(estimator).get("feature_names_in_")
        if recorded is None:  # as scikit-learn says of a data frame
            warnings.warn(
                f"X has feature names, but {type(estimator).__name__} was fitted without feature names", UserWarning,
                stacklevel=2,
            )  # fmt: skip
        elif list(names) != list(recorded):
            raise SchemaError(f"the columns are {list(names)}, and those of the fit were {list(recorded)}")


def schema_for(X: Any, schema: Schema, n_features: int) -> Schema:
    """The schema of a later table with the same columns: all are listed for a list of rows, whose width is unknown.

    A schema of one range for all columns takes the columns of a data frame by position, for any names.
    """
    return schema.resolved(n_features) if _is_list(X) else schema


def table_columns(X: Any, schema: Schema | None) -> list[Column]:
    """The columns of a table: of a data frame by the schema's names, else by position.

    A row of a list is a list, a tuple, an array or a series of its cells, or a dict of them by the schema's names. One
    of another kind, or without as many cells as there are columns, has cells that nothing can be read from.

    Args:
        X: data frame, array-like (n_rows, n_features), or list of rows.
        schema: with features by name, or one range for all columns; None: all columns, by position.

    Raises:
        SchemaError: other columns than the schema's; as `table_width`.
    """
    frame, width = _frame(X), table_width(X, schema)
    declared = () if schema is None else schema.features
    if frame is not None:
        if declared:
            _require_names(frame.columns, [feature.name for feature in declared], schema)
            return [
                _dates_of(frame[feature.name], feature)
                if isinstance(feature, Date)
                else series_values(frame[feature.name], numeric=isinstance(feature, Numeric))
                for feature in declared
            ]
        numeric = schema is not None  # one range for all columns
        return [series_values(frame[:, place], numeric=numeric) for place in range(width)]
    if declared and width != len(declared):
        raise SchemaError(f"X has {width} columns, but the schema declares {len(declared)} features")
    if _is_list(X):
        names = tuple(feature.name for feature in declared)
        rows = [_cells(row, width, names) for row in X]
        return [np.fromiter((row[place] for row in rows), object, len(rows)) for place in range(width)]
    array = _array(X)
    return [array[:, place] for place in range(width)]


def columns_in_turn(X: Any, schema: Schema) -> tuple[int, int, Iterator[Column]]:
    """The numbers of rows and of columns, and each column in turn; arguments and errors as of `table_columns`.

    Of a sparse table no two columns are spelled out at once.
    """
    if not is_sparse(X):
        columns = table_columns(X, schema)
        return len(columns[0]), len(columns), iter(columns)
    table = sparse_columns(X, schema)
    return table.n_rows, table.width, (table.column(place) for place in range(table.width))


def sparse_columns(X: Any, schema: Schema) -> SparseTable:
    """A sparse table by column, with as many columns as the schema declares.

    Raises:
        SchemaError: another number of columns, or as of `require_sparse`.
    """
    width, declared = table_width(X, schema), len(schema.features)
    if declared not in (0, width):
        raise SchemaError(f"X has {width} columns, but the schema declares {declared} features")
    return by_column(X)


def one_column(values: Any, name: str, *, numeric: bool = False) -> Column:
    """The values of one column, (n_rows,).

    Args:
        values: series, array-like (n_rows,) or (n_rows, 1), or list.
        name: its name in errors.
        numeric: True if it must hold numbers.

    Raises:
        SchemaError: None, or a wrong number of dimensions.
        SchemaTypeError: not a column at all, or a series of texts that is to hold numbers.
    """
    if values is None:
        raise SchemaError(f"this estimator requires y to be passed, but the target {name} is None")
    column = _series_of(values)
    if column is not None:
        return series_values(column, numeric=numeric)
    frame = _frame(values)
    if frame is not None:
        if frame.shape[1] != 1:
            raise SchemaError(f"{name} is a data frame of {frame.shape[1]} columns; give one column")
        _warn_of_columns(name)
        return series_values(frame[:, 0], numeric=numeric)
    if _is_list(values):
        items = list(values)
        return np.fromiter(items, dtype=object, count=len(items))
    if not isinstance(values, ArrayLike | memoryview):
        raise SchemaTypeError(f"{name} is {_validate.kind_of(values)}; give {_ONE_COLUMN}")
    array = plain_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_of_columns(name)
        array = array[:, 0]
    if array.dtype.kind == "c":
        raise SchemaError(f"Complex data not supported: {name} must be real")
    if array.ndim != 1:
        raise SchemaError(f"{name} should be a 1d array, one value a row; got an array of {array.ndim} dimensions")
    return array


def series_values(series: Series, *, numeric: bool = False) -> Column:
    """The values as an array whose missing values are NaN or None, for every kind of missing value.

    A value does not depend on the other rows: a null or a string among numbers changes its own row only.

    Args:
        series: the series of any library.
        numeric: True if it must hold numbers.

    Raises:
        SchemaTypeError: of a type that is neither numbers nor categories, such as dates or lists; texts for numbers.
    """
    if has_objects(series):
        return np.fromiter(series.to_native(), dtype=object, count=len(series))
    if series.dtype.is_numeric():
        # numpy has no integers of 128 bits.
        long = series.dtype in (nw.Int128, nw.UInt128)
        if long or not series.dtype.is_integer():
            return series.cast(nw.Float64).to_numpy()
        if not series.null_count():
            return series.to_numpy()
        # Not by a cast: Arrow's refuses a whole number that no float is equal to, and shows it.
        gaps = series.is_null().to_numpy()
        found = series.fill_null(0).to_numpy().astype(np.float64)
        found[gaps] = np.nan
        return found
    if (series.dtype != nw.Boolean and series.dtype not in _CATEGORIES) or _is_foreign(series):
        raise SchemaTypeError(
            f"column {series.name!r} has type {_type_name(series)}, neither numbers nor categories: convert it, or "
            "drop it"
        )
    if numeric and (series.dtype in (nw.String, nw.Enum) or _has_text_categories(series)):
        raise SchemaTypeError(
            f"column {series.name!r} has type {type_name(series.dtype)}, and is declared to hold numbers: convert it"
        )
    values = np.fromiter(series.to_list(), dtype=object, count=len(series))
    values[series.is_null().to_numpy()] = None
    return values


def _dates_of(series: Series, feature: Date) -> Column:
    """The values of a series that is declared to hold dates: dates, or what may be texts of dates."""
    typed = None if has_objects(series) else typed_dates(series, feature)
    return series_values(series) if typed is None else typed


def has_objects(series: Series) -> bool:
    """Returns whether a pandas column may hold anything: narwhals would name its type by a look at its values."""
    return series.implementation.is_pandas_like() and series.to_native().dtype == np.dtype(object)


def _is_foreign(series: Series) -> bool:
    """Returns whether a pandas column has a type unknown to narwhals, with values that are neither numbers nor texts.

    Periods, intervals (what `pandas.cut` makes, as categories) and complex numbers: no row could be read.
    """
    pandas, native = nw.dependencies.get_pandas(), series.to_native()
    if pandas is None or not isinstance(native, pandas.Series):
        return False
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        dtype = dtype.categories.dtype
    return isinstance(dtype, pandas.PeriodDtype | pandas.IntervalDtype) or dtype.kind in "cmM"


def _has_text_categories(series: Series) -> bool:
    """Returns whether the categories of a column are no numbers by their own type, which the data frame declares."""
    if series.dtype != nw.Categorical:
        return False
    pandas, native = nw.dependencies.get_pandas(), series.to_native()
    if pandas is None or not isinstance(native, pandas.Series):
        return True
    return not pandas.api.types.is_numeric_dtype(native.dtype.categories.dtype)


def type_name(dtype: object) -> str:
    """A type's name without its parameters: an `Enum` would list its categories, which are values of the rows."""
    return type(dtype).__name__


def _type_name(series: Series) -> str:
    """narwhals' name, or where it has none the data frame's own."""
    if not _is_foreign(series):
        return type_name(series.dtype)
    native = series.to_native().dtype
    return f"{native} of {native.categories.dtype}" if series.dtype == nw.Categorical else str(native)


def plain_array(values: Any) -> NDArray[Any]:
    """An array, with NaN or None if a masked one has no value.

    Raises:
        SchemaTypeError: a Dask collection, of which an array would be made by computing all of it here.
    """
    if type(values).__module__.partition(".")[0] in ("dask", "dask_expr"):
        raise SchemaTypeError(
            "a Dask collection is given where rows in memory are needed: fit and predictions take collections "
            "throughout; elsewhere give values.compute(), if memory holds them"
        )
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        numbers = values.dtype.kind in "biuf"
        with np.errstate(all="ignore"):  # as in `values.numbers`
            data = values.data.astype(np.float64 if numbers else object)
        data[mask] = np.nan if numbers else None
        return np.asarray(data)
    return np.asarray(values)


@contextmanager
def points_to_check(schema: Schema | None) -> Iterator[None]:
    """Let errors of a declared schema's columns, types and shapes say where their owner sees all that does not fit."""
    try:
        yield
    except SchemaError as error:
        if schema is None or "schema.check" in str(error):
            raise
        raise type(error)(f"{error} (schema.check(X, y) shows the data owner all values that do not fit)") from error


def row_count(values: Any) -> int:
    """The number of rows of a table, or of values of a column.

    Raises:
        SchemaError: None, or a single value.
        SchemaTypeError: neither a table nor a column at all.
    """
    held = _held(values)
    if held is not None or _is_list(values):
        return len(values if held is None else held)
    if is_sparse(values):
        return require_sparse(values)[0]
    if not isinstance(values, ArrayLike | memoryview):
        kind = SchemaError if values is None else SchemaTypeError
        raise kind(f"rows are {_validate.kind_of(values)}; give {_TABLE}, and for one column {_ONE_COLUMN}")
    array = plain_array(values)
    if not array.ndim:
        raise SchemaError(f"rows are a single value; give {_TABLE}, and for one column {_ONE_COLUMN}")
    return len(array)


def rows_at(values: Any, places: NDArray[np.int64]) -> Any:
    """The rows of a table, or the values of a column, at these places: of the same types, be there few rows or none."""
    held = _held(values)
    if held is not None:
        return held[places].to_native()
    if _is_list(values):
        return [values[place] for place in places.tolist()]
    if is_sparse(values):
        return rows_of(values, places)
    return plain_array(values)[places]


def _held(values: Any) -> nw.DataFrame[Any] | Series | None:
    frame = _frame(values)
    return _series_of(values) if frame is None else frame


def same_length(length: int, other: int, name: str) -> None:
    """Refuse columns of another length than X. The message tells no number of rows.

    Raises:
        SchemaError: they differ.
    """
    if length != other:
        raise SchemaError(
            f"Found input variables with inconsistent numbers of samples: X and {name} differ; give one value of "
            f"{name} a row (schema.check counts them)"
        )


def series_or_none(values: Any) -> Series | None:
    """The series of a data frame library, if it is one."""
    return _series_of(values)


def frame_or_none(values: Any) -> nw.DataFrame[Any] | None:
    """The data frame, if it is one."""
    return _frame(values)


def _series_of(values: Any) -> Series | None:
    pandas = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(values, pandas.Index | pandas.api.extensions.ExtensionArray):
        values = pandas.Series(values)
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _frame(X: Any) -> nw.DataFrame[Any] | None:
    frame = nw.from_native(with_known_dates(X), eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _is_list(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


def _array(X: Any) -> NDArray[Any]:
    """A table as an array of two dimensions."""
    require_dense(X)
    if not isinstance(X, ArrayLike | memoryview):
        raise SchemaTypeError(f"Expected 2D array, got {_validate.kind_of(X)} instead: X must be {_TABLE}")
    array = plain_array(X)
    if array.ndim != 2:
        raise SchemaError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data to (n_rows, n_features)"
        )
    return array


def _some_columns(width: int) -> int:
    if not width:
        raise SchemaError("Found array with 0 feature(s) while a minimum of 1 is required: X has no columns")
    return int(width)


def _cells(row: Any, width: int, names: tuple[str, ...]) -> Sequence[Any]:
    """A row's cells; of a row of another length, or of none, cells that hold the row: nothing can be read from them.

    Args:
        row: anything.
        width: the number of columns.
        names: the names of the columns; none where the schema has one range for all of them.
    """
    try:
        cells = _listed(row, names)
    except Exception:  # noqa: BLE001  # of a class that raises when it is looked at: its error would tell of the row
        cells = None
    return [(row,)] * width if cells is None or len(cells) != width else cells


def _listed(row: Any, names: tuple[str, ...]) -> list[Any] | None:
    """A row's cells, by name or in their order; None if the value is not a row."""
    kind = type(row)
    if issubclass(kind, dict):
        return [row[name] for name in names] if names and row.keys() == set(names) else None
    series = kind.__name__ == "Series" and _series_of(row) is not None
    if series or issubclass(kind, list | tuple) or (issubclass(kind, np.ndarray) and row.ndim == 1):
        return list(row)
    return None


def _require_names(found: list[str], declared: list[str], schema: Schema | None) -> None:
    absent = [name for name in declared if name not in found]
    undeclared = [name for name in found if name not in declared]
    wrong = []
    if absent:
        wrong.append(f"lacks the declared columns {absent}")
    if undeclared:
        target = None if schema is None or schema.target is None else schema.target.name
        aside = f", of which {target!r} is the target and belongs in y" if target in undeclared else ""
        wrong.append(f"has the undeclared columns {undeclared}{aside}: leave them out of X, or declare them")
    if wrong:
        raise SchemaError(f"the data frame {' and '.join(wrong)}")


def _warn_of_columns(name: str) -> None:
    warnings.warn(
        f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of {name} to "
        f"(n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=2,
    )
