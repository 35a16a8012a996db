"""The base class of estimators that release trees: an ensemble, its scores and importances, and a warning of noise."""

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ledgerwood import cautions
from ledgerwood.curator import Aggregator, is_collection
from ledgerwood.ensemble import Ensemble, add_values
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.sparse_cells import AnyCells
from ledgerwood.threads import threads
from ledgerwood.trainers.base.forests import forest_count, unstacked
from ledgerwood.trainers.base.plan import AbstractBoostedPlan
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.parts.importances import feature_importances


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractTreeEstimator(AbstractTrainer):
    """Fits a plan over a curator and predicts from the released ensemble, which is `ensemble_`."""

    _model_type: ClassVar[type[Any]] = Ensemble
    _keeps: ClassVar[str] = "ensemble_"

    @abc.abstractmethod
    def _train(self, plan: Any, aggregator: Aggregator, generator: np.random.Generator, progress: Progress) -> Ensemble:
        """The system's loop; see `AbstractTrainer._train`."""

    def plan_cautions(self, plan: Any) -> list[str]:
        """See `AbstractTrainer.plan_cautions`."""
        budget, rows = self.budget, self._public_rows()
        leaves = cautions.leaf_caution(plan.leaf_signal, epsilon=budget.epsilon, delta=budget.delta, expected_rows=rows)
        return [*super().plan_cautions(plan), *([] if leaves is None else [leaves])]

    def _require_loaded(self, model: Ensemble) -> None:
        if not all(tree.structure.tests_only(self.n_features_in_) for tree in model.trees):
            raise InvalidParameter(f"trees that test more features than its {self.n_features_in_}")
        classes = len(getattr(self.schema_.target, "categories", ()))
        if model.n_classes not in {0, classes}:
            raise InvalidParameter(f"trees of {model.n_classes} classes, for a target of {classes}")
        if isinstance(self.plan_, AbstractBoostedPlan) and self.plan_.class_weights != self.schema_.class_weights:
            raise InvalidParameter(
                f"a plan of class_weights={self.plan_.class_weights!r}, and a schema of {self.schema_.class_weights!r}"
            )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        cells = self._cells(X)  # which checks that there is a model
        with threads(self.n_jobs):
            return self.ensemble_.scores(cells)  # type: ignore[no-any-return]

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "ensemble_")
        forests = forest_count(len(self.classes_))
        if self._is_multinomial:
            return _log_odds(self._scores(X))
        if forests == 1:
            return self._scores(X)
        cells = self._cells(X)
        with threads(self.n_jobs):
            return np.column_stack([forest.scores(cells) for forest in unstacked(self.ensemble_, forests)])

    def staged_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The scores after each tree, as `decision_function` of classes, and of numeric targets in [-1, 1] and beyond.

        A tree more costs no privacy: all trees were released. Where each of several classes has its own trees, a stage
        has one tree more of each. The number of stages is public; choose none by rows whose score is to be private.

        Args:
            X: rows in memory, as for `predict`.

        Yields:
            float64 (n_rows,), or (n_rows, K) of more than two classes; each a new array.

        Raises:
            SchemaError: rows in files or on a cluster, or columns that are not the model's.
        """
        if is_collection(X) or self._batches(X) is not None:
            raise SchemaError(
                "stages are of rows in memory: ask for them part by part, of files with model.batches(X), of a Dask "
                "collection with X.map_partitions"
            )
        return self._stages(self._cells(X))

    def _stages(self, cells: AnyCells) -> Iterator[NDArray[np.float64]]:
        count = len(getattr(self, "classes_", ()))
        alone = self._is_multinomial or forest_count(count) == 1
        forests = [self.ensemble_] if alone else unstacked(self.ensemble_, count)
        scores = [np.full((cells.shape[1], *forest.start.shape), forest.start) for forest in forests]
        for stage in range(max(len(forest.trees) for forest in forests)):
            with threads(self.n_jobs):
                for forest, own in zip(forests, scores, strict=True):
                    add_values(forest.trees[stage : stage + 1], cells, own)
            if self._is_multinomial:
                yield _log_odds(scores[0].copy())
            else:
                yield scores[0].copy() if alone else np.column_stack(scores)

    @property
    def _is_multinomial(self) -> bool:
        return bool(self.ensemble_.n_classes)

    @property
    def _largest_probability(self) -> float:
        # Where a clipped fit comes to rest, docs/explanation/sgbdt.md#link: clipping moves scores, not their order.
        plan: Any = self.plan_
        return float(plan.clip) if plan.clip >= 0.5 else 1.0

    @property
    def _gradient_clip(self) -> float:
        return float(getattr(self.plan_, "clip", math.inf))  # a plan from outside may clip nothing

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what the trees' tests do to the predictions, float64 (n_features,); sums to 1 or 0.

        From released values only: see `feature_importances`.
        """
        check_is_fitted(self, "ensemble_")
        return feature_importances(self.ensemble_, self.n_features_in_)


def _log_odds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of classes; of two, one number a row, as scikit-learn's scorers expect it: the logarithm of their odds."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
