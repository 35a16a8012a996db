"""PrivaTree: the training loop (Algorithm 1 of the paper), and its estimator for scikit-learn.

Where the paper or its code is wrong, the sound version is here: docs/explanation/privatree.md#privatree-deviations.
Numbers of rows by class are in `curator.queries.classes.counts`, impurities in `curator.queries.splits`; no gradients.
"""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.curator import (
    Aggregator,
    BinClassCounts,
    CandidateBins,
    Categorical,
    CorrectSplits,
    FeatureQuantiles,
    GiniSplits,
    LabelledSplits,
    LeafLabels,
    Round,
    Schema,
    TypedColumns,
    pairs_fit,
    sorted_classes,
)
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import is_word
from ledgerwood.trainers.base.forests import ESTIMATED_CLASSES, MOST_CLASSES, estimates_classes
from ledgerwood.trainers.base.outputs import log_probabilities
from ledgerwood.trainers.base.parameters import AbstractSystemEstimator
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.base.suggestions import most_that_fits
from ledgerwood.trainers.parts.candidates import Thresholds, least_cells
from ledgerwood.trainers.parts.importances import feature_importances
from ledgerwood.trainers.parts.splits import random_tree
from ledgerwood.trainers.privatree.partitions import least_gini_splits
from ledgerwood.trainers.privatree.plan import (
    PAPER_BINS,
    CandidateRule,
    Choice,
    ChoiceRule,
    Preset,
    PrivaTreePlan,
    SplitMethod,
    class_count,
    label_error_share,
    last_share,
    leaf_epsilon,
    preset_plan,
)


def train(
    plan: PrivaTreePlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress = unseen
) -> Ensemble:
    """Algorithm 1: bin the features, split level by level, label the leaves; a tree whose values are classes' places.

    Lines 1 and 2 are the plan's. FitTree (lines 6 to 18) goes level by level, all nodes of a level at once.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of random splits.
        progress: called with (steps done, steps in all): the levels and the labels.
    """
    cells, classes = aggregator.schema.cells(plan.max_bins), class_count(aggregator.schema)
    structure, thresholds, done = TreeStructure.root(), plan.thresholds(cells), 0
    candidates: SplitTests | CandidateBins | None = None  # of all levels, when their thresholds are known
    choices = plan.max_depth + (0 if plan.labels_splits else 1)
    if plan.max_depth and not plan.releases_levels:
        features = range(len(cells))
        structure = random_tree(cells, depth=plan.max_depth, features=features, numeric_weight=1.0, generator=generator)
        done = plan.max_depth
    for event, step in plan.schedule():
        purpose = f"{plan.level_words}, level {step + 1}" if isinstance(step, int) else step
        with aggregator.open(event, purpose=purpose) as round_:
            match step:
                case "quantiles":  # lines 3 to 5
                    thresholds = released_quantiles(plan, cells, round_)
                    continue
                case "splits and labels":  # ours: lines 8 to 15 of the last level and its leaves
                    tests = plan.tests(cells, thresholds)
                    pairs = LabelledSplits(structure=structure, tests=tests, classes=classes)
                    last = round_.select(pairs, plan.labels, purpose=purpose).value
                    structure, labels = structure.deeper(last.tests), last.labels
                case "labels":  # lines 8 and 9, of all leaves at once
                    query = LeafLabels(structure=structure, classes=classes)
                    labels = round_.select(query, plan.labels, purpose=purpose).value
                case _:  # lines 11 to 15
                    if candidates is None:
                        every = plan.tests if isinstance(plan.level, Choice) else CandidateBins.of
                        candidates = every(cells, thresholds)
                    splits = released_splits(plan, structure, classes, candidates, round_, purpose=purpose)
                    structure = structure.deeper(splits)
        done += 1
        progress(done, choices)
    return Ensemble(initial_score=0.0, trees=(Tree(structure=structure, values=labels.astype(np.float64)),))


def released_quantiles(plan: PrivaTreePlan, cells: Sequence[FeatureCells], round_: Round) -> list[Thresholds]:
    """Lines 3 to 5: private quantiles of the numeric features; equal ones are one threshold."""
    numeric = tuple(feature for feature, each in enumerate(cells) if each.ordered)
    query = FeatureQuantiles(features=numeric, cells=plan.max_bins)
    thresholds: list[Thresholds] = [np.empty(0, dtype=np.int64) for _ in cells]
    for feature, own in zip(numeric, round_.select(query, plan.quantiles, purpose="quantiles").value, strict=True):
        thresholds[feature] = np.unique(own)
    return thresholds


def released_splits(
    plan: PrivaTreePlan,
    structure: TreeStructure,
    classes: int,
    candidates: SplitTests | CandidateBins,
    round_: Round,
    *,
    purpose: str,
) -> SplitTests:
    """Lines 11 and 12: each node's split, by its own utility, or by released numbers of rows by class."""
    mechanism = plan.level
    if isinstance(mechanism, Choice):
        assert isinstance(candidates, SplitTests)
        query: CorrectSplits | GiniSplits
        if plan.split_method == "accuracy":
            ahead = plan.lookahead and pairs_fit(candidates, nodes=structure.n_leaves, classes=classes)
            query = CorrectSplits(structure=structure, tests=candidates, classes=classes, lookahead=ahead)
        else:
            query = GiniSplits(structure=structure, tests=candidates, classes=classes)
        return round_.select(query, mechanism, purpose=purpose).value
    assert isinstance(candidates, CandidateBins)
    asked = BinClassCounts(structure=structure, bins=candidates, classes=classes)
    counts = round_.release(asked, mechanism, purpose=purpose).real
    return least_gini_splits(structure, candidates, counts.reshape(structure.n_leaves, candidates.total, classes))


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivaTreeClassifier(ClassifierMixin, AbstractSystemEstimator):  # type: ignore[misc]
    """PrivaTree: one decision tree for two or more classes. Rows have no weights here.

    Parameters that are not listed are fields of `PrivaTreePlan`.

    Args:
        delta: 0, the default, is pure privacy.
        expected_rows: a public guess of the number of rows, for the labels' share, the default's depth and the bins of
            an estimated schema.
        preset: "default" (for accuracy), "paper" (the paper's own choices, made sound), "public_bins" (the paper's
            PrivaTree*), "joint_gaussian" (for delta > 0) or "random" (random splits, the whole budget for the
            labels).
        max_depth: 4 as in the paper's tables (its code has 3); less by default where `expected_rows` times epsilon is
            small.
        leaf_share: share of epsilon for the labels; "auto" for the paper's rule at `expected_rows`.
        quantile_share: share of the rest for the quantiles; "auto" for as much as a level.
        label_error: E_max of that rule, the share of rows that labels may lose.

    Attributes:
        classes_: the declared or estimated classes, sorted.
        ensemble_: the one released tree, whose values are places of classes. All others: see `AbstractSystemEstimator`.
    """

    _plan_type = PrivaTreePlan

    delta: float = 0.0
    preset: Preset = "default"
    split_method: SplitMethod | None = None
    choice: ChoiceRule | None = None
    lookahead: bool | None = None
    candidates: CandidateRule | None = None
    candidate_bins: int | None = None
    set_categories: int | None = None
    leaf_share: float | Literal["auto"] = "auto"
    quantile_share: float | Literal["auto"] = "auto"
    label_error: float = 0.01

    _train = staticmethod(train)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    # Rows count whole: there is nothing that a weight could scale.
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        ledger: Ledger | Grant | None = None,
        *,
        scratch: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Pay for the plan from the ledger, then train, as `AbstractTreeEstimator.fit`; without weights."""
        return super().fit(X, y, ledger, scratch=scratch)

    def make_plan(self, schema: Schema | TypedColumns) -> PrivaTreePlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, PrivaTreePlan)  # that of `_uncalibrated_plan`
        return plan

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> PrivaTreePlan:
        label_error_share(self.label_error)
        cells = least_cells(schema, 2)
        numeric = sum(each.ordered > 0 for each in cells)
        plan = preset_plan(self.preset, self.budget, n_features=len(cells), n_numeric=numeric, rows=self.expected_rows)
        classes = 2  # which the rule for the labels' share is of, where they are estimated
        if isinstance(schema, Schema):
            if schema.weight_bound is not None:
                raise InvalidParameter(
                    f"weight_bound={schema.weight_bound!r}: PrivaTree counts rows, not weights; declare no bound"
                )
            if schema.class_weights:
                raise InvalidParameter(
                    f"weights={schema.class_weights!r}: PrivaTree counts rows, not weights; declare classes without "
                    "weights, or take PrivateBoostingClassifier (unit: weight of a class)"
                )
            classes = class_count(schema)
        chosen = dataclasses.replace(plan, **self._named_choices(plan, classes))
        cells = least_cells(schema, chosen.max_bins)
        if self.split_method is None:
            estimated = isinstance(schema, TypedColumns) and estimates_classes(schema)
            roomy = chosen.with_room(cells, ESTIMATED_CLASSES if estimated else classes)
            if roomy.split_method != chosen.split_method:
                chosen = dataclasses.replace(roomy, **self._named_choices(roomy, classes))
        plan = chosen
        if isinstance(schema, TypedColumns):
            if estimates_classes(schema):
                classes = _most_classes(plan, cells)
            plan = dataclasses.replace(plan, purchase=self._estimation(schema, most_classes=classes))
        plan.require_levels(cells, classes)
        return plan

    def _named_choices(self, plan: PrivaTreePlan, classes: int) -> dict[str, Any]:
        named = self._choices()
        for field in ("leaf_share", "quantile_share"):
            if is_word(named.get(field), "auto"):
                del named[field]
        # All borders of the grid stay all borders, whatever the grid; but private quantiles are few.
        bins = named.get("max_bins", plan.max_bins)
        if named.get("candidates") == "quantiles" or plan.candidate_bins < plan.max_bins:
            named.setdefault("candidate_bins", min(PAPER_BINS, bins) if isinstance(bins, int) else PAPER_BINS)
        named.setdefault("candidate_bins", bins)
        depth = dataclasses.replace(plan, max_depth=named.get("max_depth", plan.max_depth)).max_depth  # checked
        accuracy = named.get("split_method", plan.split_method) == "accuracy"
        if accuracy:
            named.setdefault("leaf_share", last_share(depth))
        elif "leaf_share" not in named and depth:
            whole = self.budget
            labels = leaf_epsilon(
                whole.epsilon,
                depth=depth,
                classes=classes,
                rows=self.expected_rows,
                error=self.label_error,
                adjacency=whole.adjacency,
            )
            named["leaf_share"] = labels / whole.epsilon
        if "quantile_share" not in named:
            named["quantile_share"] = 1.0 / (1.0 + max(depth - accuracy, 1))
        return named

    def _check_target(self, schema: Schema) -> None:
        class_count(schema)
        assert isinstance(schema.target, Categorical)  # checked
        sorted_classes(schema.target)

    def _restore(self) -> None:
        assert isinstance(self.schema_.target, Categorical)  # checked, or estimated as such
        self.classes_ = sorted_classes(self.schema_.target, least=1)

    def _labels(self, X: Any) -> NDArray[np.intp]:
        """The place of the predicted class; intp (n_rows,). An only class is at 0, whatever the tree says."""
        if (batches := self._batches(X)) is not None:
            return np.concatenate([self._labels(batch) for batch in batches])
        return np.minimum(self._scores(X).astype(np.intp), len(self.classes_) - 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row's leaf; shape (n_rows,)."""
        labels = self._labels(X)
        return self.classes_[labels]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """1 for the label of each row's leaf, 0 for the other classes: no proportions are released."""
        labels = self._labels(X)
        return np.eye(len(self.classes_))[labels]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`: 0 for the label of each row's leaf, -inf for the other classes."""
        return log_probabilities(self.predict_proba(X))  # type: ignore[no-any-return]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what the tests do to the labels, float64 (n_features,); sums to 1 or 0."""
        check_is_fitted(self, "ensemble_")
        (tree,) = self.ensemble_.trees
        # One tree a class, 1 where it is the label: places of classes are no numbers.
        marks = tuple(
            Tree(structure=tree.structure, values=(tree.values == place).astype(np.float64))
            for place in range(len(self.classes_))
        )
        return feature_importances(Ensemble(initial_score=0.0, trees=marks), self.n_features_in_)


def _most_classes(plan: PrivaTreePlan, cells: Sequence[FeatureCells]) -> int:
    """Largest number of classes of an estimated schema: what fits into the levels, no fewer than of other systems."""

    def has_room(classes: int) -> bool:
        try:
            plan.require_levels(cells, classes)
        except InvalidParameter:
            return False
        return True

    # With fewer, the refusal of a tree with no room for them is the caller's.
    return max(ESTIMATED_CLASSES, most_that_fits(lambda more: has_room(more + 1), MOST_CLASSES) + 1)
