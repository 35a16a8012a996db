"""PrivaTree as a scikit-learn estimator: parameters, defaults and presets."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, Self, final, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.curator import Aggregator, Categorical, Schema, TypedColumns, sorted_classes
from ledgerwood.ensemble import Ensemble, FeatureCells, Tree
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.importances import feature_importances
from ledgerwood.trainers.base.bounds import is_word, require_name
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator, AdjacencyName
from ledgerwood.trainers.base.fitting import most_that_fits
from ledgerwood.trainers.base.forests import ESTIMATED_CLASSES, MOST_CLASSES, estimates_classes
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.privatree.budget import label_error_share, leaf_epsilon
from ledgerwood.trainers.privatree.training import (
    CandidateRule,
    ChoiceRule,
    PrivaTreePlan,
    SplitRule,
    class_count,
    train,
)

PAPER_BINS = 10
RANDOM_EVIDENCE = 100.0
"""Rows times nats below which splits that are chosen are no better than random ones, which cost nothing."""
LEAST_EVIDENCE = (400.0, 2_500.0, 10_000.0)
"""Rows times nats from which a tree of depth 2, 3 and 4 is worth its price."""
Preset = Literal["default", "paper", "public_bins", "joint_gaussian", "random"]


def default_depth(evidence: float | None) -> int:
    """How deep a tree pays: docs/explanation/privatree.md#privatree-defaults.

    Args:
        evidence: the expected number of rows times epsilon; None where it is not known.
    """
    return 4 if evidence is None else sum(evidence >= least for least in (0.0, *LEAST_EVIDENCE))


def preset_plan(
    preset: Preset, budget: Budget, *, features: int, numeric: int, rows: int | None = None
) -> PrivaTreePlan:
    """A preset's plan, epsilon still to be calibrated: docs/explanation/privatree.md#privatree-presets."""
    require_name("preset", preset, get_args(Preset))
    # A fine grid of which private quantiles choose 9 borders: 255 steps and a missing value's cell fit one byte.
    paper = PrivaTreePlan(
        adjacency=budget.adjacency,
        n_features=features,
        n_numeric=numeric,
        max_depth=4,
        max_bins=255,
        splits="histograms",
        choice="permute_and_flip",
        candidates="quantiles",
        candidate_bins=PAPER_BINS,
        tree_epsilon=1.0,
        leaf_share=0.5,
        quantile_share=0.2,
    )
    match preset:
        case "paper":
            return paper
        case "public_bins":
            return dataclasses.replace(paper, candidates="public")
        case "joint_gaussian":
            return dataclasses.replace(paper, splits="joint_gaussian")
        case "random":
            return dataclasses.replace(paper, splits="random", candidates="public")
        case "default":
            evidence = None if rows is None else rows * budget.epsilon
            tree = dataclasses.replace(paper, splits="gini", candidates="public", candidate_bins=255)
            if evidence is not None and evidence < RANDOM_EVIDENCE:
                return dataclasses.replace(tree, splits="random")
            return dataclasses.replace(tree, max_depth=default_depth(evidence))


@final
class PrivaTreeClassifier(ClassifierMixin, AbstractTreeEstimator):  # type: ignore[misc]
    """PrivaTree: one decision tree for two or more classes. None takes the preset's value.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability; delta 0, the default, is pure privacy.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately. Rows
            have no weights here.
        schema_share: share of the budget for a privately estimated schema.
        expected_rows: a public guess of the number of rows, for the labels' share, the default's depth and a bought
            schema's bins.
        preset: "default" (for accuracy), "paper" (the paper's own choices, made sound), "public_bins" (the paper's
            PrivaTree*), "joint_gaussian" (for delta > 0) or "random" (random splits, the whole budget for the
            labels).
        max_depth: levels of splits: 4 as in the paper's tables (its code has 3); less by default where `expected_rows`
            times epsilon is small.
        splits: "gini", "histograms", "joint_gaussian" or "random". choice: of "gini", "permute_and_flip" or
            "exponential". candidates: "public" or "quantiles". bins: even
            steps of a numeric feature's range. candidate_bins: how many bins the candidates make. See `PrivaTreePlan`.
        leaf_share: share of epsilon for the labels; "auto" for the paper's rule at `expected_rows`.
        quantile_share: share of the rest for the quantiles; "auto" for as much as a level.
        label_error: E_max of that rule, the share of rows that labels may lose.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.

    Attributes:
        classes_: the declared or estimated classes, sorted.
        plan_, privacy_, ledger_, ensemble_: as in `DPBoostRegressor`; the one tree's values are places of classes.
    """

    plan_: PrivaTreePlan
    classes_: NDArray[Any]
    _plan_type = PrivaTreePlan

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        adjacency: Adjacency | AdjacencyName = "add-remove",
        schema: Schema | None = None,
        schema_share: float = 0.1,
        expected_rows: int | None = None,
        preset: Preset = "default",
        max_depth: int | None = None,
        splits: SplitRule | None = None,
        choice: ChoiceRule | None = None,
        candidates: CandidateRule | None = None,
        max_bins: int | None = None,
        candidate_bins: int | None = None,
        leaf_share: float | Literal["auto"] = "auto",
        quantile_share: float | Literal["auto"] = "auto",
        label_error: float = 0.01,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.schema = schema
        self.schema_share = schema_share
        self.expected_rows = expected_rows
        self.preset = preset
        self.max_depth = max_depth
        self.splits = splits
        self.choice = choice
        self.candidates = candidates
        self.max_bins = max_bins
        self.candidate_bins = candidate_bins
        self.leaf_share = leaf_share
        self.quantile_share = quantile_share
        self.label_error = label_error
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    # Rows count whole: there is nothing that a weight could scale.
    def fit(self, X: Any, y: Any, ledger: Ledger | Grant | None = None) -> Self:  # type: ignore[override]
        """As `AbstractTreeEstimator.fit`, without weights."""
        return super().fit(X, y, ledger)

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> PrivaTreePlan:
        label_error_share(self.label_error)
        cells = least_cells(schema, 2)
        numeric = sum(each.ordered > 0 for each in cells)
        plan = preset_plan(self.preset, self.budget, features=len(cells), numeric=numeric, rows=self.expected_rows)
        classes = 2  # which the rule for the labels' share is of, where they are estimated
        if isinstance(schema, Schema):
            if schema.weight_bound is not None:
                raise InvalidParameter(
                    f"weight_bound={schema.weight_bound!r}: PrivaTree counts rows, not weights; declare no bound"
                )
            classes = class_count(schema)
        plan = dataclasses.replace(plan, **self._named_choices(plan, classes))
        cells = least_cells(schema, plan.max_bins)
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
        if "leaf_share" not in named and depth:
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
            named["quantile_share"] = 1.0 / (1.0 + max(depth, 1))
        return named

    def _check_target(self, schema: Schema) -> None:
        class_count(schema)
        assert isinstance(schema.target, Categorical)  # checked
        sorted_classes(schema.target)

    def _restore(self) -> None:
        assert isinstance(self.schema_.target, Categorical)  # checked, or estimated as such
        self.classes_ = sorted_classes(self.schema_.target, least=1)

    def _train(
        self, plan: PrivaTreePlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress)

    def _labels(self, X: Any) -> NDArray[np.intp]:
        """The place of the predicted class; intp (n_rows,). An only class is at 0, whatever the tree says."""
        return np.minimum(self._scores(X).astype(np.intp), len(self.classes_) - 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row's leaf; shape (n_rows,)."""
        labels = self._labels(X)
        return self.classes_[labels]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """1 for the label of each row's leaf, 0 for the other classes: no proportions are released."""
        labels = self._labels(X)
        return np.eye(len(self.classes_))[labels]

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
    """How many classes an estimate may show: as many as the levels have room for, and no fewer than other systems."""

    def has_room(classes: int) -> bool:
        try:
            plan.require_levels(cells, classes)
        except InvalidParameter:
            return False
        return True

    # With fewer, the refusal of a tree with no room for them is the caller's.
    return max(ESTIMATED_CLASSES, most_that_fits(lambda more: has_room(more + 1), MOST_CLASSES) + 1)
