"""Transformers that learn nothing from rows: all that they do is written in the declared schema.

They stand before a trainer where others have StandardScaler and OneHotEncoder, which read the rows that the trainer is
to protect. docs/how-to/pipelines.md.
"""

import abc
import dataclasses
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config

from ledgerwood import _validate
from ledgerwood.curator import (
    Schema,
    column_count,
    indicator_schema,
    indicator_values,
    scaled_frame,
    scaled_schema,
    scaled_values,
    see_columns,
)
from ledgerwood.errors import InvalidParameter, SchemaError, SchemaTypeError
from ledgerwood.schema import refuse_draft


class AbstractSchemaTransformer(TransformerMixin, BaseEstimator, abc.ABC):  # type: ignore[misc]
    """A transformer by a declared schema. `fit` looks at the number, the names and the order of the columns only."""

    schema: Schema

    @abc.abstractmethod
    def _of_schema(self, schema: Schema) -> Schema:
        """Returns the schema of the transformed columns."""

    @abc.abstractmethod
    def _of_rows(self, X: Any) -> Any:
        """Returns the transformed rows, each by itself: an array, or a frame of the library of `set_output`."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the columns; no value is looked at.

        Raises:
            InvalidParameter: no schema.
            SchemaError: not two-dimensional, or not the schema's columns.
        """
        schema = self._declared()
        _require_dense(X)
        n_features = column_count(X, schema)
        see_columns(self, X, schema)
        self.schema_out_ = self._of_schema(self._named(schema, n_features))
        return self

    def transform(self, X: Any) -> Any:
        """The rows by the schema, each by itself; shape (n_rows, number of features of `schema_out_`).

        An array, or after `set_output(transform="pandas")` or "polars" a frame of this library, whose columns have
        types that follow from the schema.
        """
        schema = self._declared()
        _require_dense(X)
        column_count(X, schema)
        if "n_features_in_" in vars(self):
            see_columns(self, X, schema, reset=False)
        return self._of_rows(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns after `transform`; shape (n_columns,).

        Raises:
            ValueError: other input features than those of `fit`.
            InvalidParameter: a schema of one range for every column, before `fit`.
        """
        fitted = "n_features_in_" in vars(self)
        if input_features is not None and fitted:
            seen = vars(self).get("feature_names_in_")
            if seen is not None and not np.array_equal(seen, input_features):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(input_features) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), "
                    f"got {len(input_features)}"
                )
        schema = self._declared()
        if fitted:
            out = self._of_schema(self._named(schema, self.n_features_in_, input_features))
        elif schema.every is None:
            out = self._of_schema(schema)
        else:
            raise InvalidParameter(
                "a schema of one range for every column does not say how many there are: call fit first"
            )
        return np.array([feature.name for feature in out.features], dtype=object)

    def _named(self, schema: Schema, n_features: int, names: Any = None) -> Schema:
        """The resolved schema; columns of a uniform one are called as those of the data frame."""
        if schema.every is None:
            return schema
        found = vars(self).get("feature_names_in_") if names is None else names
        resolved = schema.resolved(n_features)
        if found is None:
            return resolved
        features = tuple(
            dataclasses.replace(feature, name=str(name)) for feature, name in zip(resolved.features, found, strict=True)
        )
        return dataclasses.replace(resolved, features=features)

    def _declared(self) -> Schema:
        schema: object = self.schema
        refuse_draft(schema)
        if not isinstance(schema, Schema):
            raise InvalidParameter(
                f"schema={schema!r} must be a ledgerwood.Schema: bounds and categories are declared, never learned"
            )
        return schema

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        return tags


def _require_dense(X: Any) -> None:
    """Refuse, by its type alone, what holds no columns of real numbers and categories."""
    if issparse(X):
        raise SchemaTypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        raise SchemaError("Complex data not supported: X must be real")


@final
class SchemaScaler(AbstractSchemaTransformer):
    """Scales each numeric column from its declared range to one range; the place of StandardScaler and MinMaxScaler.

    A value outside the declared range goes to its end, a missing one stays missing. Categories pass as they are: after
    `set_output`, those of a frame of the same library keep their type, others are texts or float64, as declared.

    Args:
        schema: the public description of the columns; the target, if any, is kept for the trainer.
        feature_range: what the ends of each declared range become, (0, 1) or (-1, 1), say.

    Attributes:
        schema_out_: the schema of what comes out, for the trainer after it; known from `fit` on, without a value.
    """

    def __init__(self, schema: Schema, *, feature_range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.schema = schema
        self.feature_range = feature_range

    def _range(self) -> tuple[float, float]:
        ends = _validate.items("feature_range", self.feature_range, "range")
        if len(ends) != 2 or not _validate.real("feature_range", ends[0], "range") < _validate.real(
            "feature_range", ends[1], "range"
        ):
            raise _validate.fail("feature_range", self.feature_range, "(low, high) with low < high", "range")
        return float(ends[0]), float(ends[1])

    def _of_schema(self, schema: Schema) -> Schema:
        return scaled_schema(schema, *self._range())

    def _of_rows(self, X: Any) -> Any:
        match _get_output_config("transform", self)["dense"]:
            case "pandas" | "polars" as library:
                # From an array of objects each column would get a type by its values.
                return scaled_frame(X, self.schema, *self._range(), library=library)
        return scaled_values(X, self.schema, *self._range())


@final
class SchemaOneHotEncoder(AbstractSchemaTransformer):
    """Turns each declared category into a column of 0 and 1; the place of OneHotEncoder.

    A category that was not declared is 0 in all columns of its feature, and is never an error. A missing value is so
    too, and has its own column where the schema declares missing=True. Numbers pass, within their declared range.

    Args:
        schema: the public description of the columns; the target, if any, is kept for the trainer.

    Attributes:
        schema_out_: the schema of what comes out, for the trainer after it; known from `fit` on, without a value.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def _of_schema(self, schema: Schema) -> Schema:
        return indicator_schema(schema)

    def _of_rows(self, X: Any) -> NDArray[np.float64]:
        return indicator_values(X, self.schema)
