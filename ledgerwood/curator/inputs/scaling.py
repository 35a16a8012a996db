"""Rows as numbers by the declared schema alone: scaled to the declared ranges, or one column a category.

Each value is transformed by itself: nothing here is learned from rows, and no value is refused for what it is.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.encoding import encode_columns, feature_columns
from ledgerwood.schema import Categorical, Feature, Numeric, Schema


def scaled_values(X: Any, schema: Schema, low: float, high: float) -> NDArray[Any]:
    """The rows, (n_rows, n_features): numbers scaled from the declared range to [low, high], categories as they are.

    Values outside the declared range go to its ends; what is missing is NaN. Float64 if all features are numeric, else
    objects.

    Args:
        X: array-like or data frame, shape (n_rows, n_features).
        schema: the public description.
        low, high: what the ends of each declared range become.
    """
    columns = _numbers(X, schema)
    features = schema.resolved(len(columns)).features
    found = [
        _scaled(column, feature, low, high) if isinstance(feature, Numeric) else column
        for column, feature in zip(columns, features, strict=True)
    ]
    if all(isinstance(feature, Numeric) for feature in features):
        return np.column_stack(found)
    values = np.empty((len(found[0]), len(found)), dtype=object)
    plain = feature_columns(X, schema)
    for place, feature in enumerate(features):
        values[:, place] = found[place] if isinstance(feature, Numeric) else plain[place]
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
        if isinstance(feature, Numeric):
            parts.append(column[:, np.newaxis])
        else:
            parts.append(column[:, np.newaxis] == np.array(_cells(feature)))
    return np.hstack(parts).astype(np.float64)


def scaled_schema(schema: Schema, low: float, high: float) -> Schema:
    """What `scaled_values` makes of a resolved schema: the target and the weights stay."""
    features = tuple(
        dataclasses.replace(feature, low=low, high=high) if isinstance(feature, Numeric) else feature
        for feature in schema.features
    )
    return dataclasses.replace(schema, features=features)


def indicator_schema(schema: Schema) -> Schema:
    """What `indicator_values` makes of a resolved schema: a `Numeric` in [0, 1] for each column of 0 and 1."""
    features: list[Feature] = []
    for feature in schema.features:
        match feature:
            case Numeric():
                features.append(feature)
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


def _scaled(column: NDArray[np.float64], feature: Numeric, low: float, high: float) -> NDArray[np.float64]:
    # In shares of the range first: neither end is passed by a rounding.
    share = np.clip((column - feature.low) / (feature.high - feature.low), 0.0, 1.0)
    return np.clip(low + share * (high - low), low, high)
