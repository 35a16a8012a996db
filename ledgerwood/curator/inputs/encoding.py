"""Reads X and y for the data owner: puts each value into its public cell, or scales it to its declared range.

What these functions refuse, they refuse by the schema, by types and by shapes alone, and never because of a value: a
value outside its range is clamped, a category that is not listed is "other", and a row with a cell that cannot be read
takes no part. `Schema.check` tells the owner of the data about rows; nothing else does. Each value is transformed by
itself: nothing here is learned from rows. docs/explanation/queries.md#rows-from-outside.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.dates import days
from ledgerwood.curator.inputs.reading import Column, one_column, sparse_columns, table_columns, table_width
from ledgerwood.curator.inputs.sparse_tables import is_sparse
from ledgerwood.curator.inputs.values import MISSING, Keys, categories, numbers
from ledgerwood.curator.kernels import cells as kernels
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.schema import Categorical, Category, Date, Feature, Numeric, Ranged, Schema
from ledgerwood.sparse_cells import AnyCells, SparseCells

Cells = NDArray[np.uint8 | np.uint16]
Flags = NDArray[np.bool_]
_PLAIN = frozenset(np.dtype(kind) for kind in ("f4", "f8", "i4", "i8", "u1"))
"""Usual numbers, of this machine's own byte order, which a loop reads as they are; it is compiled for each type."""


def column_count(X: Any, schema: Schema | None = None) -> int:
    """The number of columns of a table, from its shape alone; of a list of rows, from the schema.

    Raises:
        SchemaError: not two-dimensional, no columns, or a list of rows for a schema that does not state their number.
    """
    return table_width(X, schema)


def encode_features(X: Any, schema: Schema, *, bins: int) -> AnyCells:
    """The cell of each value, shape (n_features, n_rows), uint8 where 256 cells are enough and else uint16.

    Args:
        X: array-like (n_rows, n_features) or list of rows, columns in schema order; or a data frame whose columns are
            found by name; or a sparse table, whose cells are sparse, too.
        schema: the public description; `Schema.uniform` without a number of features takes the table's.
        bins: even steps of a numeric feature's range.

    Raises:
        SchemaError: other columns than the schema's, or of a type that a column cannot have. No value is refused.
    """
    return encode_rows(X, schema, bins=bins)[0]


def encode_rows(X: Any, schema: Schema, *, bins: int) -> tuple[AnyCells, Flags]:
    """The cells, as `encode_features`; and which rows take no part, bool (n_rows,).

    Those are the rows with a cell that is missing, or cannot be read, in a column that does not declare it. Such a cell
    is in the middle of a range, or "other": somewhere that every query knows.
    """
    if is_sparse(X):
        return _encode_sparse(X, schema, bins)
    columns = table_columns(X, schema)
    features = schema.resolved(len(columns)).features
    n_rows = len(columns[0])
    cells: Cells = np.empty((len(columns), n_rows), dtype=cell_dtype(features, bins))
    left_out = np.zeros(n_rows, dtype=np.bool_)
    plain = []
    for place, (row, feature, column) in enumerate(zip(cells, features, columns, strict=True)):
        match feature:
            case Numeric() if column.dtype in _PLAIN:
                plain.append(place)
                continue
            case _:
                row[:], missing = _column_cells(column, feature, bins)
        if not feature.missing:
            left_out |= missing
    if plain:
        block = _side_by_side(columns)
        for places in [plain] if block is not None else [[place] for place in plain]:
            table = columns[places[0]].view(np.ndarray)[:, np.newaxis] if block is None else block
            declared = [features[place] for place in places]
            kernels.numeric_cells(
                n_rows, table, np.array(places if block is not None else [0]), np.array(places),
                np.array([float(each.low) for each in declared if isinstance(each, Numeric)]),
                np.array([float(each.high) for each in declared if isinstance(each, Numeric)]),
                np.array([bins / (each.high - each.low) for each in declared if isinstance(each, Numeric)]), bins,
                np.array([bins if each.missing else bins // 2 for each in declared]),
                np.array([each.missing for each in declared]), cells, left_out,
            )  # fmt: skip
    return cells, left_out


def _encode_sparse(X: Any, schema: Schema, bins: int) -> tuple[SparseCells, Flags]:
    """As `encode_rows`, of what is stored alone: all other values are 0, of the table's type."""
    table = sparse_columns(X, schema)
    features = schema.resolved(table.width).features
    dtype = cell_dtype(features, bins)
    cells: Cells = np.empty(len(table.values), dtype=dtype)
    usual: Cells = np.empty(table.width, dtype=dtype)
    left_out = np.zeros(table.n_rows, dtype=np.bool_)
    zero = np.zeros(1, dtype=table.values.dtype)
    for place, feature in enumerate(features):
        own = table.stored(place)
        usual[place] = _column_cells(zero, feature, bins)[0][0]
        cells[own], missing = _column_cells(table.values[own], feature, bins)
        if not feature.missing and missing.any():
            left_out[table.rows[own][missing]] = True
    return SparseCells(table.n_rows, table.starts, table.rows, cells, usual), left_out


def _column_cells(column: Column, feature: Feature, bins: int) -> tuple[NDArray[Any], Flags]:
    """The cells of a feature's values, and which are missing or cannot be read."""
    if isinstance(feature, Categorical):
        return _key_cells(column, feature)
    values = ranged_values(column, feature)
    return numeric_cells(values, feature, bins), np.isnan(values)


def ranged_values(column: Column, feature: Ranged) -> NDArray[np.float64]:
    """The values on the feature's scale, float64 (n_rows,): numbers, or days of dates; NaN for what is neither.

    Raises:
        SchemaTypeError: an array of a type that has none.
    """
    return days(column, feature) if isinstance(feature, Date) else numbers(column, feature.name)


def _side_by_side(columns: list[Column]) -> NDArray[Any] | None:
    """The columns as one array (n_rows, n_columns), where their memory is one; no value is copied."""
    first, places = columns[0], [column.__array_interface__["data"][0] for column in columns]
    between = places[1] - places[0] if len(places) > 1 else first.itemsize
    if any(column.dtype != first.dtype or column.strides != first.strides for column in columns):
        return None
    if any(after - before != between for before, after in itertools.pairwise(places)):
        return None
    return np.lib.stride_tricks.as_strided(
        first.view(np.ndarray), (len(first), len(columns)), (first.strides[0], between), writeable=False
    )


def feature_columns(X: Any, schema: Schema) -> list[NDArray[Any]]:
    """Each feature's values as they stand, (n_rows,), in the schema's order.

    Raises:
        SchemaError: other columns than the schema's.
    """
    return table_columns(X, schema)


def encode_columns(X: Any, schema: Schema) -> tuple[NDArray[Any], ...]:
    """Each feature's values (n_rows,): of a numeric one float64, clamped, NaN where missing; else uint16 cells.

    A value that is missing, or cannot be read, counts as missing whether or not the column declares it.
    Args and errors are those of `encode_features`.
    """
    columns = table_columns(X, schema)
    features = schema.resolved(len(columns)).features
    return tuple(_values(column, feature) for column, feature in zip(columns, features, strict=True))


def encode_column(y: Any, target: Feature) -> NDArray[Any]:
    """The target's values, as `encode_columns` has them; (n_rows,).

    Raises:
        SchemaError: of another shape, or of a type that it cannot have.
    """
    return _values(one_column(y, "y", numeric=isinstance(target, Numeric)), target)


def encode_keys(column: Any, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Strings as (their places in the list of all of them, int64 (n_rows,), -1 for none; the list).

    What is not a string is no key.

    Raises:
        SchemaTypeError: an array of numbers, or of another type that has no strings.
    """
    values = one_column(column, f"keys {name!r}")
    if values.dtype.kind not in "UTO":
        raise SchemaTypeError(f"keys {name!r} are of type {values.dtype}: convert the column to strings")
    known: dict[str, int] = {}
    codes = [
        known.setdefault(str.__str__(key), len(known)) if issubclass(type(key), str) else -1 for key in values.tolist()
    ]
    return np.array(codes, dtype=np.int64), tuple(known)


def encode_numeric_target(y: Any, target: Numeric) -> NDArray[np.float64]:
    """The labels, clamped and scaled so that the declared range becomes [-1, 1]; float64 (n_rows,), NaN for none.

    Raises:
        SchemaError: of another shape, or of a type that has no numbers.
    """
    return scaled_labels(numbers(one_column(y, "y", numeric=True), target.name), target)


def scaled_labels(values: NDArray[np.float64], target: Numeric) -> NDArray[np.float64]:
    """Numbers in [-1, 1]: the declared range's part, with what is outside clamped to it. NaN stays NaN."""
    clamped = np.clip(values, target.low, target.high)
    return np.clip((clamped - target.low) / (target.high - target.low) * 2.0 - 1.0, -1.0, 1.0)


def encode_classes(y: Any, target: Categorical) -> NDArray[np.int32]:
    """The index of each label among the sorted classes, -1 for all other labels; int32 (n_rows,).

    Raises:
        SchemaError: of another shape, or of a type that has no classes.
    """
    return class_places(target)[key_cells(categories(one_column(y, "y"), target.name), target)]


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
        target: the target of the schema.
        least: how many classes it needs; 1 where they were estimated, and there is no way back.

    Raises:
        SchemaError: fewer classes than that, or strings among numbers, which have no order.
    """
    if len({isinstance(category, str) for category in target.categories}) > 1:
        raise SchemaError(f"target {target.name!r} declares strings among numbers: {target.categories}")
    classes = np.unique(np.asarray(target.categories))
    if len(classes) < least:
        raise SchemaError(
            f"target {target.name!r} declares {len(target.categories)} classes {target.categories}; at "
            "least 2 are needed"
        )
    return classes


def sorted_weights(target: Categorical) -> NDArray[np.float64]:
    """The weight of each class over the largest one, in the order of `sorted_classes`; float64 (n_classes,)."""
    weights = np.empty(len(target.categories))
    weights[class_places(target)[:-2]] = target.relative_weights  # the last two cells are no class
    return weights


def weight_shares(places: NDArray[np.int32], target: Categorical) -> NDArray[np.float64] | None:
    """Each row's share of the largest weight of a class, float64 (n_rows,) in [0, 1]; None where classes have none.

    Args:
        places: see `encode_classes`; a row of no class has the share 0.
        target: the declared one.
    """
    return None if target.weights is None else np.append(sorted_weights(target), 0.0)[places]  # -1 is the last one


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


def cell_dtype(features: tuple[Feature, ...], bins: int) -> type[np.uint8 | np.uint16]:
    """uint8 where 256 cells are enough for every feature, else uint16."""
    return np.uint8 if max(_n_cells(feature, bins) for feature in features) <= 256 else np.uint16


def numeric_cells(values: NDArray[np.float64], feature: Ranged, bins: int) -> NDArray[np.int64]:
    """The even step of the range that each value is in, int64 (n_rows,).

    NaN is in the cell of missing values, or in the middle where the feature has no such cell.
    """
    # Clamping comes first: a far outlier must not overflow the product.
    clamped = np.clip(values, feature.low, feature.high)
    missing = np.isnan(clamped)
    above = np.where(missing, feature.low, clamped) - feature.low
    cells = (above * (bins / (feature.high - feature.low))).astype(np.int64)
    return np.where(missing, bins if feature.missing else bins // 2, np.minimum(cells, bins - 1))


def key_cells(column: Keys, feature: Categorical) -> NDArray[np.int64]:
    """The cell of each key, int64 (n_rows,); a key that is not listed is "other", and so is NO_KEY."""
    known: dict[Category, int] = {}
    for cell, category in enumerate(feature.categories):
        # An enumeration of strings hashes by another name.
        known[str.__str__(category) if isinstance(category, str) else category] = cell
    by_key = [known.get(key, feature.other_cell) for key in column.keys]
    # Codes below 0 count from the end: MISSING is the last one, NO_KEY the one before it.
    lookup = np.array([*by_key, feature.other_cell, feature.missing_cell], dtype=np.int64)
    return lookup[column.codes]


def _key_cells(column: Column, feature: Categorical) -> tuple[NDArray[np.int64], Flags]:
    """The cells, and which rows have no value; such a row is "other" where the feature has no cell for it."""
    return declared_cells(categories(column, feature.name), feature)


def declared_cells(keys: Keys, feature: Categorical) -> tuple[NDArray[np.int64], Flags]:
    """The cells of keys, and which rows have no value, as of a column's values."""
    missing: Flags = keys.codes == MISSING
    cells = key_cells(keys, feature)
    return cells if feature.missing else np.where(missing, feature.other_cell, cells), missing


def _n_cells(feature: Feature, bins: int) -> int:
    return bins + 1 if isinstance(feature, Ranged) else feature.missing_cell + 1


def _values(column: Column, feature: Feature) -> NDArray[Any]:
    match feature:
        case Numeric() | Date():
            return np.clip(ranged_values(column, feature), feature.low, feature.high)
        case Categorical():
            return key_cells(categories(column, feature.name), feature).astype(np.uint16)


def scaled_values(X: Any, schema: Schema, low: float, high: float) -> NDArray[Any]:
    """The rows, (n_rows, n_features): numbers scaled from the declared range to [low, high], categories as they are.

    Dates are numbers of days. Values outside the declared range go to its ends; what is missing is NaN. Float64 if
    there are no categories, else objects.

    Args:
        X: array-like or data frame, shape (n_rows, n_features).
        schema: the public description.
        low, high: what the ends of each declared range become.
    """
    columns = _numbers(X, schema)
    features = schema.resolved(len(columns)).features
    found = [
        _scaled(column, feature, low, high) if isinstance(feature, Ranged) else column
        for column, feature in zip(columns, features, strict=True)
    ]
    if all(isinstance(feature, Ranged) for feature in features):
        return np.column_stack(found)
    values = np.empty((len(found[0]), len(found)), dtype=object)
    plain = feature_columns(X, schema)
    for place, feature in enumerate(features):
        values[:, place] = found[place] if isinstance(feature, Ranged) else plain[place]
    return values


def indicator_values(X: Any, schema: Schema) -> NDArray[np.float64]:
    """The rows, float64 (n_rows, n_columns): one column of 0 and 1 a category, and numbers within their ranges.

    A category that is not declared is 0 in all of its feature's columns. A missing one is so too, and 1 in a column
    after them where it may be missing.

    Args:
        X: array-like or data frame, shape (n_rows, n_features).
        schema: the public description.
    """
    columns = _numbers(X, schema)
    parts = []
    for column, feature in zip(columns, schema.resolved(len(columns)).features, strict=True):
        if isinstance(feature, Ranged):
            parts.append(column[:, np.newaxis])
        else:
            parts.append(column[:, np.newaxis] == np.array(_cells(feature)))
    return np.hstack(parts).astype(np.float64)


def scaled_schema(schema: Schema, low: float, high: float) -> Schema:
    """The resolved schema after `scaled_values`; target and weights do not change."""
    features = tuple(
        Numeric(feature.name, low, high, feature.missing) if isinstance(feature, Ranged) else feature
        for feature in schema.features
    )
    return dataclasses.replace(schema, features=features)


def indicator_schema(schema: Schema) -> Schema:
    """The resolved schema after `indicator_values`: a `Numeric` in [0, 1] for each column of 0 and 1; dates as days."""
    features: list[Feature] = []
    for feature in schema.features:
        match feature:
            case Numeric():
                features.append(feature)
            case Date():
                features.append(feature.scale)
            case Categorical():
                names = [*map(str, feature.categories), *(["missing"] if feature.missing else [])]
                features.extend(Numeric(f"{feature.name}_{name}", 0.0, 1.0) for name in names)
    return dataclasses.replace(schema, features=tuple(features))


def _cells(feature: Categorical) -> list[int]:
    return [*range(len(feature.categories)), *([feature.missing_cell] if feature.missing else [])]


def _numbers(X: Any, schema: Schema) -> tuple[NDArray[Any], ...]:
    """Each feature's values, clamped, or cells; a missing one is NaN, or a cell, whatever the schema says of it."""
    if schema.every is not None:
        lenient = dataclasses.replace(schema, every=dataclasses.replace(schema.every, missing=True))
    else:
        features = tuple(dataclasses.replace(feature, missing=True) for feature in schema.features)
        lenient = dataclasses.replace(schema, features=features)
    return encode_columns(X, lenient)


def _scaled(column: NDArray[np.float64], feature: Ranged, low: float, high: float) -> NDArray[np.float64]:
    # In shares of the range first: neither end is passed by a rounding.
    share = np.clip((column - feature.low) / (feature.high - feature.low), 0.0, 1.0)
    return np.clip(low + share * (high - low), low, high)
