"""DP-XGBoost as scikit-learn estimators: parameters, defaults and presets."""

import dataclasses
from typing import Any, Literal, final, get_args

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator, AdjacencyName
from ledgerwood.trainers.base.forests import declared_forests, most_classes, trees_in_all
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.dpxgboost.training import DPXGBoostPlan, MinimumBy, Sketch, train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.initial_scores import InitialScoreKind
from ledgerwood.trainers.parts.laplace_leaves import LeafRegularization, LeafRelease

Preset = Literal["default", "paper"]
LARGE_TABLE = 100_000
"""Rows beyond which the paper takes a minimum child weight of 500 and not of 50."""


def paper_plan(budget: Budget, expected_rows: int | None, numeric_features: int) -> DPXGBoostPlan:
    """The choices of the paper's section 5, made sound; `tree_epsilon` still to be calibrated.

    20 trees of depth 6, eta .3, lambda .1, a tenth of the rows a tree, thirds of a tree's epsilon for sketch, splits
    and leaves, 1024 bins a feature, gradients beyond 1 left out, a minimum child weight of 50 (of 500 for more than
    100,000 rows), classes as labels -1 and 1.
    """
    return DPXGBoostPlan(
        adjacency=budget.adjacency,
        loss="squared",
        n_estimators=20,
        max_depth=6,
        max_bins=1024,
        n_candidates=32,
        sketch="tree",
        n_numeric=numeric_features,
        # Under replace-one a sampled plan has no certified price.
        subsample=1.0 if budget.adjacency is Adjacency.REPLACE_ONE else 0.1,
        tree_epsilon=1.0,
        sketch_share=1.0,
        split_share=1.0,
        leaf_share=1.0,
        weight_share=0.5,
        count_share=0.5,
        clip=1.0,
        large_gradients="drop",
        reg_lambda=0.1,
        learning_rate=0.3,
        leaf_release="sums",
        leaf_regularization="lambda",
        score_noise=1.0,
        pooling=0.0,
        min_child_weight=500.0 if expected_rows is not None and expected_rows > LARGE_TABLE else 50.0,
        min_child_weight_by="leaves",
        initial_score="zero",
        initial_multiplier=1.0,
        initial_share=0.05,
        once_share=0.1,
        once_epsilon=1.0,
    )


def default_plan(
    loss: Loss, budget: Budget, expected_rows: int | None, numeric_features: int, *, classes: int = 1
) -> DPXGBoostPlan:
    """The default plan (docs/explanation/dpxgboost.md#dpxgboost-defaults), still to be calibrated."""
    logistic = loss == "logistic"
    rounds, initial_share = 20, 0.05
    if expected_rows is not None:
        # What a row can do to a tree and the noise on it are in balance where trees grow like this.
        rows = budget.epsilon * expected_rows / classes
        factor, fewest = (0.025, 15) if logistic else (0.1, 6)
        rounds = min(max(round(factor * rows ** (2 / 3)), fewest), 300)
        # The mean label should be known to about a tenth of a half range.
        initial_share = min(max(30.0 / rows, 0.02), 0.3)
    return dataclasses.replace(
        paper_plan(budget, expected_rows, numeric_features),
        loss=loss,
        n_estimators=rounds,
        max_depth=4 if logistic else 5,
        max_bins=32,
        sketch="none",
        subsample=1.0,
        split_share=2.0 if logistic else 0.6,
        count_share=0.1,
        clip=0.75 if logistic else 0.2,
        large_gradients="clip",
        reg_lambda=1.0,
        learning_rate=1.5 if logistic else 0.5,
        leaf_regularization="noise",
        score_noise=1.6 if logistic else 1.0,
        pooling=0.5,
        min_child_weight_by="none",
        initial_score="zero" if logistic else "laplace",
        initial_share=initial_share,
    )


class AbstractDPXGBoost(AbstractTreeEstimator):
    """Parameters that the regressor and the classifier share. None takes the preset's value.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability; delta 0 is pure, as published.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately.
        schema_share: share of the budget for an estimated schema: of mu**2 and of delta, or of epsilon at delta 0.
        expected_rows: public guess of the number of rows, for tuning rules only.
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
        loss: "squared", on labels scaled to [-1, 1] and classes as -1 and 1, or "logistic" (classes only). Either way a
            row counts 1 in gains and leaves; Newton's gain is not offered, as no noise would make it private.
        n_estimators: T, of each class's forest where more than two are declared. Where the classes are privately
            estimated (schema=None, labels of strings or whole numbers), of all forests together, and 32 for any smaller
            number, be there two classes or more: the trees are paid for before the classes are known. `plan_` has the
            number.
        max_depth: levels of splits. learning_rate: eta. subsample: the paper's gamma, 1 is full batch.
        reg_lambda: lambda of gains and leaves, in rows.
        leaf_regularization: of the leaves, "lambda", or "noise" for lambda and a multiple of their noise, by
            `score_noise`.
        score_noise: stddev that all trees' noise together may add to a score, in `clip`s.
        pooling: share of a leaf's number of rows that is taken from the mean over the tree's leaves.
        clip: g*, largest absolute gradient that counts, and largest leaf value before the learning rate.
        large_gradients: a row beyond it is left out ("drop", the paper's filtering), or counts with the clip ("clip").
        min_child_weight: least number of rows on either side of a split, as released.
        min_child_weight_by: "leaves" compares with the leaves' numbers of rows, which are released in any case;
            "levels" buys each level's, and leaves more budget to nodes that are split; "none": no minimum.
        sketch: candidates by private histograms of each "tree", or "once"; or "none", even over the schema's ranges.
        max_bins: even steps of a numeric feature's range. n_candidates: thresholds a feature, at most.
        sketch_share, split_share, leaf_share, weight_share: of a tree's epsilon for sketch, splits, leaves and the
            numbers of rows of "levels", relative to each other. count_share: of the leaves' for the number of rows.
        once_share: share of the budget's epsilon for a sketch "once".
        leaf_release: "sums" (numbers of rows and sums of gradients) or "ratio" (one noisy value, with noise for any
            leaf).
        initial_score: "zero", "laplace", "moments" (delta > 0) or "public_count". initial_share: of the budget.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.
    """

    loss_: Loss
    plan_: DPXGBoostPlan
    _plan_type = DPXGBoostPlan

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
        loss: Loss | None = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        subsample: float | None = None,
        reg_lambda: float | None = None,
        leaf_regularization: LeafRegularization | None = None,
        score_noise: float | None = None,
        pooling: float | None = None,
        clip: float | None = None,
        large_gradients: LargeGradients | None = None,
        min_child_weight: float | None = None,
        min_child_weight_by: MinimumBy | None = None,
        sketch: Sketch | None = None,
        max_bins: int | None = None,
        n_candidates: int | None = None,
        sketch_share: float | None = None,
        split_share: float | None = None,
        leaf_share: float | None = None,
        weight_share: float | None = None,
        count_share: float | None = None,
        once_share: float | None = None,
        leaf_release: LeafRelease | None = None,
        initial_score: InitialScoreKind | None = None,
        initial_share: float | None = None,
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
        self.loss = loss
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.reg_lambda = reg_lambda
        self.leaf_regularization = leaf_regularization
        self.score_noise = score_noise
        self.pooling = pooling
        self.clip = clip
        self.large_gradients = large_gradients
        self.min_child_weight = min_child_weight
        self.min_child_weight_by = min_child_weight_by
        self.sketch = sketch
        self.max_bins = max_bins
        self.n_candidates = n_candidates
        self.sketch_share = sketch_share
        self.split_share = split_share
        self.leaf_share = leaf_share
        self.weight_share = weight_share
        self.count_share = count_share
        self.once_share = once_share
        self.leaf_release = leaf_release
        self.initial_score = initial_score
        self.initial_share = initial_share
        self.random_state = random_state
        self.verbose = verbose

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> DPXGBoostPlan:
        classes = declared_forests(schema)
        plan = self._preset_plan(sum(each.ordered > 0 for each in least_cells(schema, 2)), classes)
        if classes > 1:  # whose forests start at 0
            plan = dataclasses.replace(plan, initial_score="zero")
        plan = dataclasses.replace(plan, classes=classes, **self._named_choices())
        if isinstance(schema, TypedColumns):
            plan = dataclasses.replace(plan, n_estimators=trees_in_all(plan.n_estimators, schema))
            plan = dataclasses.replace(
                plan, purchase=self._estimation(schema, most_classes=most_classes(plan.n_estimators))
            )
        else:
            plan = dataclasses.replace(plan, weighted=schema.weight_bound is not None)
        plan.require_room(least_cells(schema, plan.max_bins))
        return plan

    def _preset_plan(self, numeric_features: int, classes: int) -> DPXGBoostPlan:
        require_name("preset", self.preset, get_args(Preset))
        if self.loss is not None:
            require_name("loss", self.loss, get_args(Loss))
        match self.preset:
            case "default":
                loss = self.loss_ if self.loss is None else self.loss
                return default_plan(loss, self.budget, self.expected_rows, numeric_features, classes=classes)
            case "paper":
                return paper_plan(self.budget, self.expected_rows, numeric_features)

    def _named_choices(self) -> dict[str, Any]:
        if self.loss == "logistic" and self.loss_ == "squared":
            raise InvalidParameter("loss='logistic' needs two classes: a regressor's loss is 'squared'")
        named = self._choices()
        if self.leaf_release == "ratio":
            # Without numbers of rows: what would ask for them steps back, unless it was named.
            named = {"leaf_regularization": "lambda", "min_child_weight_by": "none", **named}
        return named

    def _train(
        self, plan: DPXGBoostPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, progress)


@final
class DPXGBoostRegressor(AbstractRegressor, AbstractDPXGBoost):
    """DP-XGBoost for a numeric target, squared loss. Parameters: see `AbstractDPXGBoost`.

    Attributes:
        plan_: the calibrated `DPXGBoostPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """

    loss_ = "squared"


@final
class DPXGBoostClassifier(AbstractClassifier, AbstractDPXGBoost):
    """DP-XGBoost for two classes or more, logistic loss, or squared as in the paper.

    Parameters: see `AbstractDPXGBoost`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `DPXGBoostRegressor`.
    """

    loss_ = "logistic"
    plan_: DPXGBoostPlan
