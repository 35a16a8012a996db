"""What all readers look at: released trees, the public schema in whose units they are told, and how scores are made.

An estimator is reduced to this value first, so that no reader can reach anything else that an estimator may hold.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate
from ledgerwood.curator import Categorical, Feature, Numeric, Schema, sorted_classes
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.forests import forest_count, shares
from ledgerwood.trainers.privatree.training import PrivaTreeClassifier


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeModel:
    """Released trees with the public schema that gives their numbers names and units.

    Args:
        ensemble: the trees.
        schema: with a target; its features are spelled out.
        max_bins: even steps into which a numeric feature's range is divided.
        labels: whether the values of the leaves are places of classes, as of PrivaTree's one tree, and no scores.

    Raises:
        InvalidParameter: no schema with a target, trees that test more features than it has, or of other classes.
    """

    ensemble: Ensemble
    schema: Schema
    max_bins: int
    labels: bool = False

    def __post_init__(self) -> None:
        if not self.schema.features or self.schema.target is None:
            raise _validate.fail("schema", self.schema, "a Schema with its features spelled out and a target", "schema")
        object.__setattr__(self, "max_bins", _validate.count("max_bins", self.max_bins, "bins"))
        _validate.flag("labels", self.labels)
        width = len(self.schema.features)
        if not all(tree.structure.tests_only(width) for tree in self.ensemble.trees):
            raise _validate.fail("features of the schema", width, "all that the trees test", "features")
        if self.ensemble.n_classes not in {0, len(self.classes)}:
            raise _validate.fail("classes of the trees", self.ensemble.n_classes, f"{len(self.classes)}", "classes")

    @classmethod
    def of(cls, model: Any) -> "TreeModel":
        """The trees of a fitted estimator; a `TreeModel` as it is.

        Raises:
            InvalidParameter: neither a `TreeModel` nor an estimator that releases trees.
            NotFittedError: an estimator without a fit.
        """
        if isinstance(model, TreeModel):
            return model
        if not isinstance(model, AbstractTreeEstimator):
            raise InvalidParameter(
                f"model={type(model).__name__} releases no trees: give a fitted estimator of ledgerwood.trainers, one "
                "that is built on AbstractTreeEstimator, or TreeModel(ensemble=..., schema=..., max_bins=...)"
            )
        check_is_fitted(model, "ensemble_")
        return cls(
            ensemble=model.ensemble_,
            schema=model.schema_.resolved(model.n_features_in_),
            max_bins=model.plan_.max_bins,
            labels=isinstance(model, PrivaTreeClassifier),
        )

    @property
    def trees(self) -> tuple[Tree, ...]:
        """All trees, those of several forests one after another."""
        return self.ensemble.trees

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of the schema, in its order."""
        return self.schema.features

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self.schema.features)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes in the order of an estimator's `classes_`; empty of a numeric target."""
        target = self.schema.target
        return tuple(sorted_classes(target, least=1).tolist()) if isinstance(target, Categorical) else ()

    @property
    def target(self) -> Feature:
        """The target of the schema."""
        assert self.schema.target is not None  # checked on construction
        return self.schema.target

    @property
    def outputs(self) -> tuple[str, ...]:
        """The name of each output: the target's; or the class whose score it is, the second one where two share one."""
        if not self.classes:
            return (self.target.name,)
        return tuple(map(repr, self.classes)) if self._of_each_class else (repr(self.classes[-1]),)

    @property
    def unit(self) -> str:
        """What outputs are measured in: the target's name for its own unit; "score", or "label" where 1 is the label's.

        Numbers are not yet clamped to the declared range, and scores are no probabilities.
        """
        return "label" if self.labels else "score" if self.classes else self.target.name

    @property
    def start(self) -> NDArray[np.float64]:
        """The outputs without any tree, float64 (n_outputs,)."""
        if isinstance(self.target, Numeric):
            return np.array([self.target.low + (self.ensemble.initial_score + 1.0) * self._scale])
        start = 0.0 if self.labels else self.ensemble.start
        return np.array(np.broadcast_to(start, len(self.outputs)))

    def leaf_outputs(self, place: int) -> NDArray[np.float64]:
        """What each leaf of a tree adds to the outputs, float64 (n_leaves, n_outputs).

        Args:
            place: of the tree in the ensemble.
        """
        values = self.trees[place].values
        if self.labels:
            labels = np.minimum(values.astype(np.intp), len(self.classes) - 1)
            return np.eye(len(self.classes))[labels]
        return self._spread(place, values) * self._scale

    def leaf_noise(self, place: int) -> NDArray[np.float64] | None:
        """The standard deviation of the known noise in `leaf_outputs`, of the same shape; None if it is not known."""
        noise = self.trees[place].noise
        return None if noise is None or self.labels else self._spread(place, noise) * self._scale

    def output_of(self, place: int) -> int | None:
        """The one output that a tree adds to; None if it adds to all of them."""
        if self.ensemble.n_classes or self.labels:
            return None
        return self._forest_places[place] if self._of_each_class else 0

    def _spread(self, place: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if values.ndim == 2:
            return values
        found = np.zeros((len(values), len(self.outputs)))
        found[:, self.output_of(place) or 0] = values
        return found

    @property
    def _of_each_class(self) -> bool:
        return self.labels or bool(self.ensemble.n_classes) or forest_count(len(self.classes)) > 1

    @property
    def _forest_places(self) -> list[int]:
        sizes = shares(len(self.trees), len(self.classes))
        return np.repeat(np.arange(len(sizes)), sizes).tolist()

    @property
    def _scale(self) -> float:
        target = self.target
        return (target.high - target.low) / 2.0 if isinstance(target, Numeric) else 1.0

    @property
    def cell_counts(self) -> NDArray[np.int64]:
        """How many cells each feature has, int64 (n_features,), those of other categories and missing values too."""
        return np.array([_cells_of(feature, self.max_bins) for feature in self.features], dtype=np.int64)


def _cells_of(feature: Feature, bins: int) -> int:
    if isinstance(feature, Categorical):
        return feature.missing_cell + feature.missing
    cells = feature.cells(bins)
    return cells.ordered + len(cells.equality)
