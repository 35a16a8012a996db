"""Scaled rows as a data frame, each column with a type that follows from declared types."""

from typing import Any, Literal

import narwhals as nw
import numpy as np

from ledgerwood.curator.inputs.encoding import scaled_values
from ledgerwood.curator.inputs.reading import Column, frame_or_none
from ledgerwood.curator.inputs.values import numbers
from ledgerwood.schema import Categorical, Ranged, Schema

Library = Literal["pandas", "polars"]


def scaled_frame(X: Any, schema: Schema, low: float, high: float, *, library: Library) -> Any:
    """The rows of `scaled_values`, as a data frame of a library; a pandas frame keeps its index.

    Numbers are float64. The categories of a frame of the same library are its own columns, with their type. Other
    categories are texts where texts are declared, and float64 where numbers are; another value is null there.

    Args:
        X, schema, low, high: as in `scaled_values`.
        library: of the frame.
    """
    values = scaled_values(X, schema, low, high)
    features = schema.resolved(values.shape[1]).features
    frame = frame_or_none(X)
    names = [feature.name for feature in features]
    if frame is not None and schema.every is not None:  # whose columns go by position
        names = list(frame.columns)
    scaled = {
        name: values[:, place].astype(np.float64)
        for place, (name, feature) in enumerate(zip(names, features, strict=True))
        if isinstance(feature, Ranged)
    }
    if frame is not None and frame.implementation is nw.Implementation.from_backend(library):
        made = (nw.new_series(name, each, nw.Float64, backend=library) for name, each in scaled.items())
        return frame.select(names).with_columns(*made).to_native()
    columns: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for place, (name, feature) in enumerate(zip(names, features, strict=True)):
        if isinstance(feature, Ranged):
            columns[name], types[name] = scaled[name], nw.Float64
        else:
            columns[name], types[name] = _typed(values[:, place], feature)
    return nw.from_dict(columns, schema=types, backend=library).to_native()


def _typed(column: Column, feature: Categorical) -> tuple[Any, Any]:
    """The values of the declared type, others as null or NaN, and the type."""
    texts = {isinstance(category, str) for category in feature.categories}
    if texts == {False}:
        return numbers(column, feature.name), nw.Float64
    found: list[Any] = column.tolist()
    if texts == {True}:
        return [value if isinstance(value, str) else None for value in found], nw.String
    return found, nw.Object
