"""What a model's trees add up to: one score a row, or one for each class, and how scores become probabilities."""

import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ledgerwood.curator import Numeric, sorted_weights
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.models import TreeModel
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.choosing.private_search import PrivateSearch
from ledgerwood.trainers.privatree.training import PrivaTreeClassifier

Link = Literal["range", "score", "label", "squared", "logistic", "one-against-all", "softmax"]
"""How scores become predictions: see `Outputs`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTree:
    """One tree's part in one score.

    Args:
        tree: its place among the model's trees.
        group: of which score it is a part.
        values: of the leaves, float64 (n_leaves,).
    """

    tree: int
    group: int
    values: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeScores:
    """The scores of a model: sums of trees.

    A regressor's score is in the label's unit, before it is clamped to the declared range. A classifier's are those of
    `decision_function`: one of two classes, and one for each of more. Of a tree whose leaves hold labels they are 1 for
    the label and 0 for other classes; of two classes, 1 for the second one.

    Args:
        start: of a row without any tree, float64 (n_groups,).
        trees: all parts; those of one group in the model's order.
    """

    start: NDArray[np.float64]
    trees: tuple[ScoreTree, ...]

    @classmethod
    def of(cls, read: TreeModel) -> "TreeScores":
        """The scores of a model."""
        start, places = read.start, range(len(read.trees))
        if len(start) == 2 and (read.labels or read.ensemble.n_classes):
            # One score of two classes: the second one's mark, or the difference of theirs.
            first = np.array([[0.0 if read.labels else -1.0], [1.0]])
            joined = [read.leaf_outputs(place) @ first for place in places]
            trees = [ScoreTree(tree=place, group=0, values=joined[place][:, 0]) for place in places]
            return cls(start=start @ first, trees=tuple(trees))
        trees = []
        for place in places:
            own, values = read.output_of(place), read.leaf_outputs(place)
            groups = range(len(start)) if own is None else [own]
            trees += [ScoreTree(tree=place, group=group, values=values[:, group]) for group in groups]
        return cls(start=start, trees=tuple(trees))

    def require_float32(self) -> None:
        """Refuse scores that float32 numbers cannot hold: of a target whose declared range is beyond them.

        Raises:
            InvalidParameter: so it is.
        """
        sizes = np.abs(self.start)
        for part in self.trees:
            sizes[part.group] += np.abs(part.values).max()
        if not (sizes <= np.finfo(np.float32).max).all():
            raise InvalidParameter(
                f"predictions of up to {sizes.max():.3g} are beyond float32's 3.4e38: declare "
                "the target in another unit"
            )

    @property
    def groups(self) -> int:
        """How many scores a row has."""
        return len(self.start)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """How a model's scores become what it predicts.

    Args:
        link: "range", a regressor's score, clamped to the declared range. "score": of trees without an estimator, where
            nothing more is known. "label": scores of 0 and 1 are the probabilities. "squared": the probability of the
            second class is half of 1 + score, clamped to [0, 1]. "logistic": see `clip`. "one-against-all": of several
            classes, each one's own probability by "squared" or "logistic", divided by their sum. "softmax": of several
            classes, or of two, whose score is the difference of theirs.
        own: of "one-against-all", the link of each class.
        clip: of "logistic" the largest probability, before those of both classes are divided by their sum; 1 if there
            is none. Of "softmax" the largest norm of a gradient; infinite if there is none.
        weights: of the classes, relative to the largest, float64 (n_classes,), by which probabilities are divided; None
            if the schema gives none.
    """

    link: Link
    own: Literal["squared", "logistic"] = "logistic"
    clip: float = math.inf
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, model: Any) -> "Outputs":
        """The outputs of a fitted estimator, or of a `TreeModel`.

        Raises:
            InvalidParameter: an estimator that makes predictions of its scores by methods of its own.
        """
        if isinstance(model, PrivaTreeClassifier):
            return cls(link="label")
        if isinstance(model, AbstractRegressor):
            _require_usual(model, AbstractRegressor, ("predict",))
            return cls(link="range")
        if isinstance(model, AbstractClassifier):
            return cls._of_classifier(model)
        read = TreeModel.of(model)
        return cls(link="range" if isinstance(read.schema.target, Numeric) else "label" if read.labels else "score")

    @classmethod
    def _of_classifier(cls, model: Any) -> "Outputs":
        methods = ("decision_function", "predict_proba", "_weighted_probabilities", "_pull", "predict")
        _require_usual(model, AbstractClassifier, methods)
        weights = sorted_weights(model.schema_.target) if model.schema_.class_weights else None
        if model._is_multinomial:
            return cls(link="softmax", clip=model._gradient_clip, weights=weights)
        own: Literal["squared", "logistic"] = "squared" if model.plan_.loss == "squared" else "logistic"
        clip = model._largest_probability if own == "logistic" else 1.0
        return cls(link=own if len(model.classes_) <= 2 else "one-against-all", own=own, clip=clip, weights=weights)

    @property
    def unclipped(self) -> bool:
        """Whether probabilities are the link alone: no clip is undone."""
        if self.link == "softmax":
            return self.clip >= math.sqrt(2.0)  # no difference of probabilities and a unit vector is longer
        return self.clip >= 1.0


def exported_model(model: Any) -> Any:
    """The estimator that is exported in place of `model`: the best one of a private search, else `model` itself.

    Raises:
        InvalidParameter: a pipeline, whose earlier steps cannot be exported.
    """
    if isinstance(model, Pipeline):
        raise InvalidParameter(
            f"model is a Pipeline of {len(model.steps)} steps, and only its last one can be exported: give model[-1]. "
            "The exported model takes rows as the steps before it give them, model[:-1].transform(X)"
        )
    if isinstance(model, PrivateSearch):
        TreeModel.of(model)  # which refuses a search that was not fitted
        return model.best_estimator_
    return model


def _require_usual(model: AbstractTreeEstimator, base: type[Any], names: tuple[str, ...]) -> None:
    """Refuse an estimator from outside with its own ways from trees to predictions: an export would not know them."""
    kind = type(model)
    usual = dict.fromkeys(names, base) | {"_scores": AbstractTreeEstimator, "_class_scores": AbstractTreeEstimator}
    for name, home in usual.items():
        if getattr(kind, name) is not getattr(home, name):
            raise InvalidParameter(
                f"{kind.__name__}.{name} is its own: it cannot be exported, since an export has trees and "
                f"the usual way from sums to predictions, {home.__name__}.{name}. Give TreeModel.of(model) for the "
                "trees alone"
            )
