"""Owner-side reading of X and y: check them against the schema, and put each value into its public cell.

What these functions refuse, they refuse before any budget has moved; the outcome is for the owner of the data and is
not private.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d

from ledgerwood.curator.schema import Categorical, Category, Feature, Numeric, Schema
from ledgerwood.errors import SchemaError, SchemaTypeError

Cells = NDArray[np.uint8 | np.uint16]


def column_count(X: Any) -> int:
    """The number of columns of a table, from its shape alone.

    Raises:
        SchemaError: not two-dimensional, no rows or no columns.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    shape = X.shape if isinstance(frame, nw.DataFrame) or issparse(X) else np.asarray(X).shape
    if len(shape) != 2:
        raise SchemaError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data to (n_rows, n_features)"
        )
    for length, what in zip(shape, ("sample", "feature"), strict=True):
        if length == 0:
            raise SchemaError(f"Found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1 is required.")
    return int(shape[1])


def encode_features(X: Any, schema: Schema, *, bins: int) -> Cells:
    """The cell of each value, shape (n_features, n_rows), uint8 where 256 cells are enough and else uint16.

    Args:
        X: array-like (n_rows, n_features), columns in schema order, or a data frame whose columns are found by name.
        schema: the public description; `Schema.uniform` without a number of features takes the table's.
        bins: even steps of a numeric feature's range.

    Raises:
        SchemaError: no rows, other columns than the schema's, a value that is not a number in a numeric column,
            infinity, or a missing value without a declaration.
    """
    columns, features = _columns(X, schema)
    cells = np.empty((len(columns), len(columns[0])), dtype=cell_dtype(features, bins))
    for row, feature, column in zip(cells, features, columns, strict=True):
        match feature:
            case Numeric():
                row[:] = numeric_cells(column, feature, bins)
            case Categorical():
                row[:] = _categorical_cells(column, feature, "column")
    return cells


def feature_columns(X: Any, schema: Schema) -> list[NDArray[Any]]:
    """Each feature's values as they stand, (n_rows,), in the schema's order.

    Raises:
        SchemaError: other columns than the schema's.
    """
    return _columns(X, schema)[0]


def encode_columns(X: Any, schema: Schema) -> tuple[NDArray[Any], ...]:
    """Each feature's values (n_rows,): of a numeric one float64, clamped, NaN where missing; else uint16 cells.

    Args and errors are those of `encode_features`.
    """
    columns, features = _columns(X, schema)
    return tuple(_values(column, feature, "column") for column, feature in zip(columns, features, strict=True))


def encode_column(y: Any, target: Feature) -> NDArray[Any]:
    """The target's values, as `encode_columns` has them; (n_rows,).

    Raises:
        SchemaError: a label that is missing, infinite or not a number where one is declared.
    """
    return _values(_one_column(_unmixed(y)), target, "target")


def encode_keys(column: Any, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Strings as (their places in the list of all of them, int64 (n_rows,), -1 for none; the list).

    Raises:
        SchemaTypeError: a value that is neither a string nor missing.
    """
    values = _one_column(_unmixed(column))
    missing = _missing(values)
    known: dict[str, int] = {}
    codes = np.full(len(values), -1, dtype=np.int64)
    for row, key in enumerate(values.tolist()):
        if missing[row]:
            continue
        if not isinstance(key, str):
            raise SchemaTypeError(f"keys {name!r} hold {key!r}, which is not a string: convert the column to strings")
        codes[row] = known.setdefault(key, len(known))
    return codes, tuple(known)


def encode_numeric_target(y: Any, target: Numeric) -> NDArray[np.float64]:
    """The labels, scaled so that the declared range becomes [-1, 1]; float64 (n_rows,).

    Raises:
        SchemaError: a label that is missing, not a number, or outside the declared range.
    """
    values = floats(_one_column(_unmixed(y)), target.name)
    if np.isnan(values).any():
        raise SchemaError(f"Input y contains NaN: the target {target.name!r} must be a number in every row")
    if np.isinf(values).any():
        raise SchemaError(
            "Input y contains infinity or a value too large for dtype('float64'): "
            f"the target {target.name!r} must be finite"
        )
    outside = (values < target.low) | (values > target.high)
    if outside.any():
        worst = float(values[np.argmax(np.abs(values - (target.low + target.high) / 2))])
        raise SchemaError(
            f"label {worst!r} of target {target.name!r} is outside the declared [{target.low!r}, {target.high!r}] "
            f"({outside.sum()} rows; unit: the label's): declare the public range that labels can take, or clip y to it"
        )
    return np.clip((values - target.low) / (target.high - target.low) * 2.0 - 1.0, -1.0, 1.0)


def encode_classes(y: Any, target: Categorical) -> NDArray[np.int32]:
    """The place of each label among the sorted classes; int32 (n_rows,).

    Raises:
        SchemaError: a label that is missing or not one of the declared classes.
    """
    labels = _one_column(y)
    cells = _categorical_cells(labels, target, "target")
    check_classification_targets(labels)
    unknown = cells >= len(target.categories)
    if unknown.any():
        many = len(target.categories) == 2 and type_of_target(labels) == "multiclass"
        raise SchemaError(
            ("Only binary classification is supported. The type of the target is multiclass. " if many else "")
            + f"label {labels[unknown].tolist()[0]!r} of target {target.name!r} is not one of the declared classes "
            f"{target.categories} ({unknown.sum()} rows)"
        )
    return class_places(target)[cells]


def class_places(target: Categorical) -> NDArray[np.int32]:
    """The place among the sorted classes of each cell of the target, int32; -1 for the cells that are no class."""
    classes = sorted_classes(target).tolist()
    return np.array([*map(classes.index, target.categories), -1, -1], dtype=np.int32)


def signs(places: NDArray[np.int32], positive: int) -> NDArray[np.float64]:
    """+1 for the rows of this class, -1 for those of the others, NaN for those of none; float64 (n_rows,)."""
    return np.where(places < 0, np.nan, np.where(places == positive, 1.0, -1.0))


def sorted_classes(target: Categorical, *, least: int = 2) -> NDArray[Any]:
    """The declared classes in sorted order, shape (n_classes,).

    Args:
        target: of the schema.
        least: how many classes it needs; 1 where they were estimated, and there is no way back.

    Raises:
        SchemaError: fewer classes than that, or strings among numbers, which have no order.
    """
    if len({isinstance(category, str) for category in target.categories}) > 1:
        raise SchemaError(f"target {target.name!r} declares strings among numbers: {target.categories}")
    classes = np.unique(np.asarray(target.categories))
    if len(classes) < least:
        raise SchemaError(
            f"target {target.name!r} declares {len(target.categories)} classes {target.categories}; at least 2 are "
            "needed to tell one from another"
        )
    return classes


def two_classes(target: Categorical) -> NDArray[Any]:
    """The two declared classes in sorted order, shape (2,).

    Raises:
        SchemaError: not exactly two classes, or strings among numbers.
    """
    classes = sorted_classes(target)
    if len(classes) != 2:
        raise SchemaError(
            f"target {target.name!r} declares {len(target.categories)} classes {target.categories}; 2 are supported"
        )
    return classes


def _columns(X: Any, schema: Schema) -> tuple[list[NDArray[Any]], tuple[Feature, ...]]:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _frame_columns(frame, schema)
    array = check_array(_unmixed(X), dtype=None, ensure_all_finite=False, estimator="ledgerwood")
    features = schema.resolved(array.shape[1]).features
    if len(features) != array.shape[1]:
        raise SchemaError(f"X has {array.shape[1]} columns, but the schema declares {len(features)} features")
    return [array[:, j] for j in range(array.shape[1])], features


def _unmixed(values: Any) -> Any:
    """A sequence of Python values as an array of objects, and whatever else as it is.

    As an array of its own making, numpy would choose one type for all rows by a look at each of them.
    """
    return np.asarray(values, dtype=object) if isinstance(values, Sequence) else values


def _frame_columns(frame: nw.DataFrame[Any], schema: Schema) -> tuple[list[NDArray[Any]], tuple[Feature, ...]]:
    features = schema.resolved(frame.shape[1]).features
    if schema.every is not None:
        return [series_values(frame[:, j]) for j in range(frame.shape[1])], features
    declared = [feature.name for feature in features]
    absent = [name for name in declared if name not in frame.columns]
    undeclared = [name for name in frame.columns if name not in declared]
    if absent or undeclared:
        raise SchemaError(
            f"the data frame lacks the declared columns {absent} and has the undeclared columns {undeclared}"
        )
    return [series_values(frame[name]) for name in declared], features


def series_values(series: nw.Series[Any]) -> NDArray[Any]:
    """The values as an array whose missing values are NaN or None, whatever the data frame calls them.

    A value comes out the same whatever the other rows hold: a null or a string among numbers changes its own row only.
    """
    if series.dtype.is_numeric():
        # numpy has no integers of 128 bits.
        long = series.dtype in (nw.Int128, nw.UInt128)
        whole = series.dtype.is_integer() and not long and not series.null_count()
        return series.to_numpy() if whole else series.cast(nw.Float64).to_numpy()
    values = np.fromiter(series.to_list(), dtype=object, count=len(series))
    values[series.is_null().to_numpy()] = None
    return values


def _one_column(y: Any) -> NDArray[Any]:
    if y is None:
        raise SchemaError("this estimator requires y to be passed, but the target y is None")
    series = nw.from_native(y, series_only=True, pass_through=True)
    array = series_values(series) if isinstance(series, nw.Series) else np.asarray(y)
    if np.iscomplexobj(array):
        raise SchemaError("Complex data not supported: y must be real")
    return np.asarray(column_or_1d(array, warn=True))


def cell_dtype(features: tuple[Feature, ...], bins: int) -> type[np.uint8 | np.uint16]:
    """uint8 where 256 cells are enough for every feature, else uint16."""
    return np.uint8 if max(_n_cells(feature, bins) for feature in features) <= 256 else np.uint16


def _n_cells(feature: Feature, bins: int) -> int:
    return bins + 1 if isinstance(feature, Numeric) else feature.missing_cell + 1


def _values(column: NDArray[Any], feature: Feature, role: str) -> NDArray[Any]:
    match feature:
        case Numeric():
            return _clamped(column, feature, role)
        case Categorical():
            return _categorical_cells(column, feature, role).astype(np.uint16)


def numeric_cells(column: NDArray[Any], feature: Numeric, bins: int) -> NDArray[np.int64]:
    """The even step of the range that each value is in, int64 (n_rows,); refusals as in `encode_features`."""
    # Clamping comes first: a far outlier must not overflow the product.
    clamped = _clamped(column, feature, "column")
    missing = np.isnan(clamped)
    above = np.where(missing, feature.low, clamped) - feature.low
    cells = (above * (bins / (feature.high - feature.low))).astype(np.int64)
    return np.where(missing, bins, np.minimum(cells, bins - 1))


def _clamped(column: NDArray[Any], feature: Numeric, role: str) -> NDArray[np.float64]:
    """The values within the declared bounds; NaN where they are missing."""
    values = floats(column, feature.name)
    missing = np.isnan(values)
    if not feature.missing and missing.any():
        raise SchemaError(
            f"Input {_input(role)} contains NaN: {role} {feature.name!r} in {missing.sum()} rows; "
            "declare missing=True for it in the schema"
        )
    if np.isinf(values).any():
        raise SchemaError(
            f"Input {_input(role)} contains infinity or a value too large: {role} {feature.name!r}; "
            "replace it by a finite number"
        )
    return np.clip(values, feature.low, feature.high)


def _input(role: str) -> str:
    return "y" if role == "target" else "X"


def _categorical_cells(column: NDArray[Any], feature: Categorical, role: str) -> NDArray[np.int64]:
    cells = np.full(len(column), feature.other_cell, dtype=np.int64)
    for cell, category in enumerate(feature.categories):
        cells[_equal(column, category)] = cell
    missing = _missing(column)
    if missing.any():
        if not feature.missing:
            raise SchemaError(
                f"Input {_input(role)} contains NaN: {role} {feature.name!r} "
                f"in {missing.sum()} rows; declare missing=True for it in the schema"
            )
        cells[missing] = feature.missing_cell
    return cells


def _equal(column: NDArray[Any], category: Category) -> NDArray[np.bool_]:
    if isinstance(category, str) != (column.dtype.kind in "UT") and column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    if column.dtype.kind in "iuf":
        # In float64, whatever holds the numbers: one missing value turns whole numbers into floats.
        return np.asarray(column.astype(np.float64) == float(category), dtype=np.bool_)
    return np.asarray(column == category, dtype=np.bool_)


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    # NaN is the one value that differs from itself; None is compared by numpy, element by element.
    if column.dtype.kind in "biuU":
        return np.zeros(len(column), dtype=np.bool_)
    differs = np.asarray(column != column, dtype=np.bool_)
    return differs | np.asarray(column == None, dtype=np.bool_) if column.dtype.kind == "O" else differs  # noqa: E711


def floats(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """The column's values as float64.

    Raises:
        SchemaError: one of them is not a real number.
    """
    if np.iscomplexobj(column):
        raise SchemaError(f"Complex data not supported: column {name!r} must be real")
    message = f"column {name!r} is declared numeric but holds a value that is not a number"
    try:
        return np.asarray(column).astype(np.float64)
    except TypeError as error:
        raise SchemaTypeError(f"{message}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise SchemaError(f"{message}: {error}") from error
