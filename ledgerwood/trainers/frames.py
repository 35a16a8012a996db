"""Predictions as a data frame, with the index of the rows and with names: docs/how-to/train-on-data-frames.md."""

from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrameT
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter, SchemaTypeError
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.trainer import AbstractTrainer

PredictMethod = Literal["predict", "predict_proba", "predict_log_proba", "decision_function"]
_METHODS: tuple[PredictMethod, ...] = get_args(PredictMethod)
_OF_KIND: dict[str, Any] = {"U": nw.String, "b": nw.Boolean, "i": nw.Int64, "f": nw.Float64}
"""The type of a column of classes, by the kind of the array that declares them."""


def predict_frame(
    model: AbstractTrainer | Pipeline | TransformedTargetRegressor,
    X: IntoDataFrameT,
    method: PredictMethod = "predict",
) -> IntoDataFrameT:
    """Predict for the rows of a data frame, and return a data frame of the same library.

    `model.predict(X)` returns an array, as scikit-learn's estimators do. Here the rows keep their index, where the
    library has one, and the columns have names: the target's for "predict", the classes' as texts for probabilities,
    their logarithms and the scores of several classes. Numbers are float64; classes have their declared type.

    Args:
        model: a fitted trainer, or a Pipeline or TransformedTargetRegressor whose last estimator is one.
        X: a pandas, polars or other eager data frame that narwhals knows, or a `pyarrow.Table`; as for `predict`.
        method: which of the model's methods is called.

    Returns:
        A frame with one row for each row of X, in the same order.

    Raises:
        InvalidParameter: another model or method, or probabilities of a regressor.
        SchemaTypeError: rows that are in no data frame.
        SchemaError: columns that are not the schema's.
    """
    require_name("method", method, _METHODS)
    name = _trainer_of(model).schema_.target.name
    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise SchemaTypeError(
            f"X is {_validate.kind_of(X)}, which has no index and no names to keep: call model.{method}(X), or pass an "
            "eager data frame (a LazyFrame: X.collect())"
        )
    if method != "predict" and not is_classifier(model):
        raise InvalidParameter(f"method={method!r} needs a classifier, and {type(model).__name__} is a regressor")
    match method:
        case "predict":
            found: NDArray[Any] = np.asarray(model.predict(X))
        case "predict_proba":
            found = np.asarray(model.predict_proba(X))
        case "predict_log_proba":
            found = np.asarray(model.predict_log_proba(X))
        case "decision_function":
            found = np.asarray(model.decision_function(X))
    names = [name] if found.ndim == 1 else [str(label) for label in np.asarray(model.classes_).tolist()]
    kind = _OF_KIND[found.dtype.kind]
    columns = {
        each: column.tolist() if kind is nw.String else np.ascontiguousarray(column)
        for each, column in zip(names, np.atleast_2d(found.T), strict=True)
    }
    made: Any = nw.from_dict(columns, schema=dict.fromkeys(names, kind), backend=frame.implementation).to_native()
    index = nw.maybe_get_index(frame)
    return made if index is None else made.set_axis(index, axis=0)  # type: ignore[no-any-return]


def _trainer_of(model: object) -> Any:
    """The trainer at the end, fitted."""
    match model:
        case AbstractTrainer():
            check_is_fitted(model, model._keeps)
            return model
        case Pipeline():
            return _trainer_of(model.steps[-1][1])
        case TransformedTargetRegressor():
            check_is_fitted(model, "regressor_")
            return _trainer_of(model.regressor_)
    raise InvalidParameter(
        f"model={model!r} must be a trainer of this library, or a Pipeline that ends in one, not {type(model).__name__}"
    )
