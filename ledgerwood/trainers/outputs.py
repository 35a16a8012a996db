"""From an ensemble's score to what scikit-learn expects of a regressor and of a classifier of two classes."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin

from ledgerwood.curator import Categorical, Numeric, Schema, two_classes
from ledgerwood.errors import SchemaError
from ledgerwood.trainers.estimator import AbstractTreeEstimator, Plan


class AbstractRegressor(RegressorMixin, AbstractTreeEstimator):  # type: ignore[misc]
    """An estimator of a numeric target, whose declared range is [-1, 1] in the scores' unit."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _check_target(self, schema: Schema) -> None:
        _numeric_target(schema)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted labels in the label's unit, inside the declared range; float64 (n_rows,)."""
        scores = np.clip(self._scores(X), -1.0, 1.0)
        target = _numeric_target(self.schema_)
        return target.low + (scores + 1.0) * ((target.high - target.low) / 2.0)


class ClippedPlan(Plan, Protocol):
    """A plan whose gradients are clipped, or left out, beyond one bound."""

    @property
    def clip(self) -> float:
        """The largest absolute gradient that counts."""


class AbstractClassifier(ClassifierMixin, AbstractTreeEstimator):  # type: ignore[misc]
    """An estimator of two declared classes; the score grows with the probability of the second one."""

    plan_: ClippedPlan
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def _check_target(self, schema: Schema) -> None:
        two_classes(_categorical_target(schema))

    def _restore(self) -> None:
        self.classes_ = two_classes(_categorical_target(self.schema_))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The ensemble's raw score; float64 (n_rows,)."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the two classes; float64 (n_rows, 2)."""
        scores = self._scores(X)
        if self.plan_.loss == "squared":  # on labels -1 and 1, whose mean is 2 p - 1
            pull = np.clip(0.5 * (1.0 + np.column_stack([-scores, scores])), 0.0, 1.0)
        else:
            pull = expit(np.column_stack([-scores, scores]))
            if self.plan_.clip >= 0.5:
                # Where a clipped fit comes to rest, docs/explanation/sgbdt.md#link: clipping moves scores, not their
                # order.
                pull = np.minimum(pull, self.plan_.clip)
        return np.asarray(pull / pull.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class; shape (n_rows,)."""
        scores = self._scores(X)
        return self.classes_[(scores > 0.0).astype(np.intp)]


def _numeric_target(schema: Schema) -> Numeric:
    if not isinstance(schema.target, Numeric):
        raise SchemaError(f"a regressor needs a Numeric target in the schema; got target={schema.target!r}")
    return schema.target


def _categorical_target(schema: Schema) -> Categorical:
    if not isinstance(schema.target, Categorical):
        raise SchemaError(f"a classifier needs a Categorical target in the schema; got target={schema.target!r}")
    return schema.target
