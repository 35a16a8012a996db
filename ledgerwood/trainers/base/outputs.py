"""From a model's scores to what scikit-learn expects of a regressor and of a classifier."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ledgerwood.curator import Categorical, Numeric, Schema, sorted_classes, sorted_weights
from ledgerwood.errors import SchemaError
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.trainer import AbstractTrainer

Method = TypeVar("Method", bound=Callable[..., Any])


def _staged(model: Any) -> bool:
    return isinstance(model, AbstractTreeEstimator)


def _if_staged(method: Method) -> Method:
    """Of methods that only sums of trees have: an estimator of another model is without them."""
    return cast("Method", available_if(_staged)(method))


def _staged_scores(model: Any, X: Any) -> Iterator[NDArray[np.float64]]:
    found: Iterator[NDArray[np.float64]] = model.staged_scores(X)
    return found


class AbstractRegressor(RegressorMixin, AbstractTrainer):  # type: ignore[misc]
    """An estimator of a numeric target, whose declared range is [-1, 1] in the scores' unit."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _check_target(self, schema: Schema) -> None:
        _numeric_target(schema)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted labels in the label's unit, inside the declared range; float64 (n_rows,).

        Rows in files, as `fit` takes them, are read in a stream. The predictions of a Dask collection are a series or
        an array with its partitions.
        """
        return self._labels_of(self._scores(X))

    @_if_staged
    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yields the predicted labels after each tree, float64 (n_rows,); see `AbstractTreeEstimator.staged_scores`."""
        return map(self._labels_of, _staged_scores(self, X))

    def _labels_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        target = _numeric_target(self.schema_)
        return target.low + (np.clip(scores, -1.0, 1.0) + 1.0) * ((target.high - target.low) / 2.0)


class AbstractClassifier(ClassifierMixin, AbstractTrainer):  # type: ignore[misc]
    """An estimator of declared or estimated classes.

    Of two, the score grows with the probability of the second one. Of K > 2 each has a score of its own, by which it is
    told from all others (docs/explanation/several-classes.md#one-against-all), or that is one of a softmax's, where one
    tree serves all classes (docs/explanation/several-classes.md#joint-classes). Of one class nothing is asked.

    Where the schema gives the classes weights, scores and `predict` are of the weighted rows: the class of the largest
    weight times probability is predicted. `predict_proba` is of the rows as they are, its weights divided out
    (docs/explanation/several-classes.md#class-weights-link).

    A trainer that learns two classes only sets `_several_classes` to False, and refuses schemas of more.
    """

    _several_classes: ClassVar[bool] = True

    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        many = not isinstance(self.schema, Schema) or len(getattr(self.schema.target, "categories", ())) > 2
        tags.classifier_tags.multi_class = self._several_classes and many
        tags.classifier_tags.poor_score = True
        return tags

    def _check_target(self, schema: Schema) -> None:
        classes = sorted_classes(_categorical_target(schema))
        if len(classes) > 2 and not self._several_classes:
            raise SchemaError(f"{type(self).__name__} learns two classes; the schema declares {len(classes)}")

    def _restore(self) -> None:
        self.classes_ = sorted_classes(_categorical_target(self.schema_), least=1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Raw scores: float64 (n_rows,) of two classes, (n_rows, K) of more.

        Where classes have weights, they are of the weighted rows, as `predict` is: above 0 it gives the second of two
        classes, and of more the class of the largest score.
        """
        return self._class_scores(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes; float64 (n_rows, K).

        Of more than two: each class's own, brought to sum 1. Of trees that all classes share: the softmax of scores,
        with the effect of clipped gradients undone. The weights that the schema gives to classes are divided out.
        """
        return self._probabilities_of(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`; float64 (n_rows, K), -inf where a probability is 0."""
        return log_probabilities(self.predict_proba(X))  # type: ignore[no-any-return]

    @_if_staged
    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yields `decision_function` after each tree; see `AbstractTreeEstimator.staged_scores`."""
        return _staged_scores(self, X)

    @_if_staged
    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yields `predict_proba` after each tree; see `AbstractTreeEstimator.staged_scores`."""
        return map(self._probabilities_of, _staged_scores(self, X))

    @_if_staged
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yields the predicted classes after each tree, (n_rows,); see `AbstractTreeEstimator.staged_scores`."""
        return map(self._classes_of, _staged_scores(self, X))

    def _probabilities_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        found = self._weighted_probabilities(scores)
        if not self.schema_.class_weights:
            return found
        return unweighted_probabilities(found, sorted_weights(_categorical_target(self.schema_)))

    def _weighted_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities by the scores, in the population in which each row counts with its class's weight."""
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        if self._is_multinomial:
            joint = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
            return unclipped_probabilities(softmax(joint, axis=1), clip=self._gradient_clip)
        if scores.ndim == 1:
            return self._pull(scores)
        own = np.column_stack([self._pull(scores[:, place])[:, 1] for place in range(scores.shape[1])])
        total = own.sum(axis=1, keepdims=True)
        even = np.full_like(own, 1.0 / own.shape[1])
        return np.asarray(np.divide(own, total, out=even, where=total > 0.0))

    def _pull(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities that one class's scores give the others and itself; float64 (n_rows, 2)."""
        if self.plan_.loss == "squared":  # on labels -1 and 1, whose mean is 2 p - 1
            pull = np.clip(0.5 * (1.0 + np.column_stack([-scores, scores])), 0.0, 1.0)
        else:
            pull = np.minimum(expit(np.column_stack([-scores, scores])), self._largest_probability)
        return np.asarray(pull / pull.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class, or that of the largest weight times probability; shape (n_rows,)."""
        return self._classes_of(self.decision_function(X))

    def _classes_of(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        places = np.argmax(scores, axis=1) if scores.ndim == 2 else scores > 0.0
        return np.asarray(self.classes_[places.astype(np.intp)])


def unclipped_probabilities(softmaxes: NDArray[np.float64], *, clip: float) -> NDArray[np.float64]:
    """The shares of classes at which a multinomial fit with clipped gradients comes to rest, float64 (n_rows, K).

    Keeps the classes' order. docs/explanation/several-classes.md#joint-link.

    Args:
        softmaxes: of the scores, (n_rows, K).
        clip: largest Euclidean norm of a gradient.
    """
    squares = np.sum(softmaxes**2, axis=1, keepdims=True)
    norms = np.sqrt(np.maximum(squares + 1.0 - 2.0 * softmaxes, 0.0))  # of softmax - unit vector, for each class
    pulled = softmaxes * np.maximum(norms / clip, 1.0)
    return np.asarray(pulled / pulled.sum(axis=1, keepdims=True))


def log_probabilities(probabilities: Any) -> Any:
    """Logarithms of probabilities in an array, a frame or a collection; -inf of 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def unweighted_probabilities(weighted: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of classes in the rows as they are, float64 (n_rows, K), from those in weighted rows.

    Args:
        weighted: (n_rows, K), each row's sum 1.
        weights: of a row of each class, (K,), > 0.
    """
    shares = weighted / weights
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _numeric_target(schema: Schema) -> Numeric:
    if not isinstance(schema.target, Numeric):
        raise SchemaError(f"a regressor needs a Numeric target in the schema; got target={schema.target!r}")
    return schema.target


def _categorical_target(schema: Schema) -> Categorical:
    if not isinstance(schema.target, Categorical):
        raise SchemaError(f"a classifier needs a Categorical target in the schema; got target={schema.target!r}")
    return schema.target
