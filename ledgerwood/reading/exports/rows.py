"""Rows as exported models take them: float32 numbers, one column a feature.

A numeric feature's values are the numbers themselves, clamped to the declared range. A category is its place in the
schema's list, and any other category the number after the last place. A missing value is NaN. Thresholds of exported
trees are float32 numbers that part the float32 numbers as the model's own cells do, so numeric columns may also be
given as they are: docs/explanation/reading.md#encoded-rows.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _extras
from ledgerwood.curator import Categorical, Feature, Ranged, Schema, encode_columns, encode_features, schema_for
from ledgerwood.reading.exports.scores import exported_model
from ledgerwood.reading.models import TreeModel
from ledgerwood.schema import scale_of

if TYPE_CHECKING:
    import xgboost

_LARGEST = float(np.finfo(np.float32).max)
_INFINITY_KEY = 0x7F80_0000
"""The bits of float32's infinity, as a whole number."""


def encoded_rows(model: Any, X: Any) -> NDArray[np.float32]:
    """Encode rows as exported models take them, float32 (n_rows, n_features).

    Numbers stay numbers, clamped to the declared range; a category becomes its place in the schema's list, one that is
    not listed the number after the last place; what is missing becomes NaN. A number that no float32 can hold becomes
    the nearest one in the same bin of the model, so that the exported trees send every row the same way as the model.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        X: what the estimator's `predict` takes, in memory: array-like or data frame, (n_rows, n_features). Of a sparse
            table give `X.toarray()`.

    Raises:
        SchemaError: other columns than the schema's, or of a type that a column cannot have. No value is refused.
        InvalidParameter: a model without trees.
    """
    model = exported_model(model)
    read = TreeModel.of(model)
    schema = read.schema if isinstance(model, TreeModel) else schema_for(X, model.schema_, model.n_features_in_)
    columns = encode_columns(X, schema)
    rows = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for place, (feature, column) in enumerate(zip(read.features, columns, strict=True)):
        rows[:, place] = _codes(column, feature) if isinstance(feature, Categorical) else _floats(column, feature, read)
    return rows


def booster_rows(model: Any, X: Any) -> "xgboost.DMatrix":
    """Encode rows as a matrix for the booster of `to_xgboost`: `encoded_rows` with names and types of the features.

    Args:
        model: that was given to `to_xgboost`.
        X: as `encoded_rows` takes it.

    Raises:
        SchemaError, InvalidParameter: see `encoded_rows`.
        ModuleNotFoundError: xgboost is not installed.
    """
    try:
        import xgboost
    except ModuleNotFoundError as missing:
        raise _extras.needed("booster_rows", missing) from missing
    read = TreeModel.of(exported_model(model))
    return xgboost.DMatrix(
        encoded_rows(model, X),
        feature_names=feature_names(read),
        feature_types=feature_types(read),
        enable_categorical=True,
    )


def feature_names(read: TreeModel) -> list[str]:
    """The names of the features in XGBoost's form, which has no brackets and no "<"; distinct.

    A name that has some gets "_" in their place; two that are then the same get their places in the schema.
    """
    plain = ["".join("_" if sign in "[]<" else sign for sign in name) for name in read.names]
    return plain if len(set(plain)) == len(plain) else [f"{name}_{place}" for place, name in enumerate(plain)]


def feature_types(read: TreeModel) -> list[str]:
    """XGBoost's types of the features: "c" for categories, "float" for numbers."""
    return ["c" if isinstance(feature, Categorical) else "float" for feature in read.features]


def least_floats(feature: Ranged, bins: int) -> NDArray[np.float32]:
    """The least float32 number in bin t or above, for t = 1 .. bins - 1; float32 (bins - 1,), infinity if none is.

    Bins rise with the number, so that "x < least" holds for the float32 numbers below bin t and for no others.

    Args:
        feature: with its declared range.
        bins: even steps of it.
    """
    wanted = np.arange(1, bins)
    below = np.full(bins - 1, -_INFINITY_KEY)  # all of bin 0: the model's smallest
    above = np.full(bins - 1, _INFINITY_KEY)
    while (above - below > 1).any():
        middle = (below + above) // 2
        high = bins_of(_ranked(middle), feature, bins) >= wanted
        below, above = np.where(high, below, middle), np.where(high, middle, above)
    return _ranked(above)


def bins_of(values: NDArray[Any], feature: Ranged, bins: int) -> NDArray[np.int64]:
    """The bin of each number, as the model's own predictions find it; int64 (n,)."""
    cells = encode_features(values[:, np.newaxis], Schema(features=(scale_of(feature),)), bins=bins)
    assert isinstance(cells, np.ndarray)  # of an array
    return np.asarray(cells[0].astype(np.int64))


def _ranked(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    """The float32 numbers in their order: 0 at key 0, the next larger one at 1, and so on."""
    sizes = np.abs(keys).astype(np.uint32).view(np.float32)
    return np.where(keys < 0, -sizes, sizes)


def _codes(cells: NDArray[np.uint16], feature: Categorical) -> NDArray[np.float32]:
    return np.where(cells == feature.missing_cell, np.float32(np.nan), cells.astype(np.float32))


def _floats(values: NDArray[np.float64], feature: Feature, read: TreeModel) -> NDArray[np.float32]:
    assert isinstance(feature, Ranged)  # the caller asked
    near = np.clip(values, -_LARGEST, _LARGEST).astype(np.float32)
    own, found = (bins_of(each, feature, read.max_bins) for each in (values, near))
    with np.errstate(over="ignore"):  # beyond the largest number, which nobody takes
        lower, upper = (np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))
    return np.where(found > own, lower, np.where(found < own, upper, near))
