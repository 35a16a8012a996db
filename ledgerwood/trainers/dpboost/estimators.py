"""DPBoost as scikit-learn estimators: parameters, defaults and presets."""

import dataclasses
import math
from typing import Any, Literal, final, get_args

import numpy as np
from sklearn.base import is_classifier

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import MAX_BINS, is_word, require_name
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator, AdjacencyName
from ledgerwood.trainers.base.forests import declared_forests, most_classes, trees_in_all
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.dpboost.training import Assignment, CandidateKind, DPBoostPlan, train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.initial_scores import InitialScoreKind
from ledgerwood.trainers.parts.laplace_leaves import LeafRegularization, LeafRelease

Preset = Literal["default", "paper", "enhanced", "para", "seq", "np"]


def paper_plan(loss: Loss, adjacency: Adjacency) -> DPBoostPlan:
    """The paper's own choices, made sound: one ensemble of 50 trees, section 4; epsilon still to be calibrated."""
    return DPBoostPlan(
        adjacency=adjacency,
        loss=loss,
        n_estimators=50,
        trees_per_ensemble=50,
        assignment="geometric",
        max_depth=6,
        # LightGBM's default number of bins, on a public grid.
        max_bins=255,
        candidates="grid",
        tree_epsilon=1.0,
        leaf_share=0.5,
        leaf_release="ratio",
        count_share=0.5,
        geometric_clipping=True,
        large_gradients="drop",
        clip=1.0,
        reg_lambda=0.1,
        leaf_regularization="lambda",
        score_noise=0.5,
        learning_rate=0.1,
        # Where every leaf is without noise.
        leaf_clamp=1.0,
        initial_score="zero",
        initial_multiplier=1.0,
        initial_share=0.1,
    )


def default_plan(loss: Loss, budget: Budget, *, classes: bool, forests: int = 1) -> DPBoostPlan:
    """The default plan, for accuracy without tuning (docs/explanation/dpboost.md#dpboost-defaults)."""
    # In the unit of the gradients: of a label in [-1, 1], of a class as -1 or 1, of a class by the logistic loss.
    clip = 0.5 if loss == "logistic" else 1.0 if classes else 0.3
    return dataclasses.replace(
        paper_plan(loss, budget.adjacency),
        n_estimators=min(max(round(25.0 * math.sqrt(budget.epsilon / forests)), 8), 80),
        trees_per_ensemble=1,
        max_depth=4,
        max_bins=32,
        leaf_release="sums",
        leaf_share=0.5 if classes else 0.6,
        count_share=0.15,
        geometric_clipping=False,
        large_gradients="clip",
        clip=clip,
        leaf_regularization="noise",
        score_noise=0.4 if classes else 0.5,
        learning_rate=0.4 if classes else 0.5,
        leaf_clamp=2.0,
        initial_score="zero" if classes else "laplace",
    )


def preset_plan(preset: Preset, loss: Loss, budget: Budget, *, classes: bool, forests: int = 1) -> DPBoostPlan:
    """A preset's plan, epsilon still to be calibrated: docs/explanation/dpboost.md#dpboost-presets."""
    require_name("preset", preset, get_args(Preset))
    paper = paper_plan(loss, budget.adjacency)
    match preset:
        case "default":
            return default_plan(loss, budget, classes=classes, forests=forests)
        case "paper":
            return paper
        case "enhanced":
            return dataclasses.replace(paper, initial_score="laplace", candidates="gridless", max_bins=MAX_BINS)
        case "para":
            return dataclasses.replace(paper, assignment="halving", geometric_clipping=False)
        case "seq":
            return dataclasses.replace(paper, trees_per_ensemble=1, geometric_clipping=False)
        case "np":
            # No gradient of labels and scores in [-1, 1] is larger than 2, none of the logistic loss larger than 1.
            return dataclasses.replace(
                paper,
                trees_per_ensemble=1,
                geometric_clipping=False,
                large_gradients="clip",
                clip=2.0 if loss == "squared" else 1.0,
                leaf_clamp=None,
            )


class AbstractDPBoost(AbstractTreeEstimator):
    """Parameters that the regressor and the classifier share. None takes the preset's value.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability; delta 0, the default, is pure privacy.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately.
        schema_share: share of the budget for a privately estimated schema.
        expected_rows: public number of rows, exact, for `initial_score="public_count"`; a guess for a schema's bins.
        preset: "default" (for accuracy), "paper" (the paper's own choices, made sound), "enhanced" (with the first
            guess and the grid-less choice of the S-GBDT paper), or what the paper compares with: "para", "seq" and
            "np", see docs/explanation/dpboost.md#dpboost-presets.
        loss: "squared" (classes are -1 and 1) or "logistic" (classes only).
        n_estimators: T, of each class's forest where more than two are declared. Where the classes are privately
            estimated (schema=None, labels of strings or whole numbers), of all forests together, and 32 for any smaller
            number, be there two classes or more: the trees are paid for before the classes are known. `plan_` has the
            number.
        trees_per_ensemble: T_e. assignment: how an ensemble's trees share the rows, "geometric" or
            "halving". max_depth: levels of splits. learning_rate: eta, at most 1.
        reg_lambda: lambda of gains and leaves, in rows.
        clip: g*, bound on the absolute gradient; labels are scaled to [-1, 1] for the squared loss.
        large_gradients: a row beyond it takes no part in a tree ("drop", gradient-based data filtering), or counts with
            the clip ("clip").
        geometric_clipping: clip leaf ratios more from tree to tree of an ensemble.
        leaf_release: "ratio", or "sums" for a number of rows and a sum. leaf_share: the leaves' share of a tree.
        count_share: share of the leaves' epsilon for the number of rows ("sums").
        leaf_regularization: "lambda", or "noise" for lambda and a multiple of the known noise ("sums").
        score_noise: stddev that all trees' noise together may add to a score ("noise").
        leaf_clamp: largest absolute leaf value before the learning rate, or "off".
        max_bins: even steps of a numeric feature's range, among whose borders splits are chosen. candidates: "grid", or
            "gridless" for up to 60,000 bins.
        initial_score: "zero", "moments" (delta > 0), "laplace" or "public_count". initial_share: its share.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.
    """

    plan_: DPBoostPlan
    _plan_type = DPBoostPlan

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
        trees_per_ensemble: int | None = None,
        assignment: Assignment | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        reg_lambda: float | None = None,
        clip: float | None = None,
        large_gradients: LargeGradients | None = None,
        geometric_clipping: bool | None = None,
        leaf_release: LeafRelease | None = None,
        leaf_share: float | None = None,
        count_share: float | None = None,
        leaf_regularization: LeafRegularization | None = None,
        score_noise: float | None = None,
        leaf_clamp: float | Literal["off"] | None = None,
        max_bins: int | None = None,
        candidates: CandidateKind | None = None,
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
        self.trees_per_ensemble = trees_per_ensemble
        self.assignment = assignment
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.reg_lambda = reg_lambda
        self.clip = clip
        self.large_gradients = large_gradients
        self.geometric_clipping = geometric_clipping
        self.leaf_release = leaf_release
        self.leaf_share = leaf_share
        self.count_share = count_share
        self.leaf_regularization = leaf_regularization
        self.score_noise = score_noise
        self.leaf_clamp = leaf_clamp
        self.max_bins = max_bins
        self.candidates = candidates
        self.initial_score = initial_score
        self.initial_share = initial_share
        self.random_state = random_state
        self.verbose = verbose

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> DPBoostPlan:
        forests = declared_forests(schema)
        plan = preset_plan(self.preset, self._loss(), self.budget, classes=is_classifier(self), forests=forests)
        if forests > 1:  # each of which starts at 0
            plan = dataclasses.replace(plan, initial_score="zero")
        plan = dataclasses.replace(plan, classes=forests, **self._named_choices())
        if isinstance(schema, TypedColumns):
            plan = dataclasses.replace(plan, n_estimators=trees_in_all(plan.n_estimators, schema))
            plan = dataclasses.replace(
                plan, purchase=self._estimation(schema, most_classes=most_classes(plan.n_estimators))
            )
        else:
            plan = dataclasses.replace(plan, weighted=schema.weight_bound is not None)
        if plan.max_depth:
            plan.tests(
                least_cells(schema, plan.max_bins)
            )  # refuses trees that cannot be grown, before anything is spent
        return plan

    def _loss(self) -> Loss:
        if self.loss is None:
            return "squared"
        require_name("loss", self.loss, get_args(Loss))
        if self.loss == "logistic" and not is_classifier(self):
            raise InvalidParameter("loss='logistic' needs two classes: a regressor's loss is 'squared'")
        return self.loss

    def _named_choices(self) -> dict[str, Any]:
        named = self._choices()
        if is_word(named.get("leaf_clamp"), "off"):
            named["leaf_clamp"] = None
        # What one way of releasing leaves has and the other one has not follows it, unless it is named too.
        if self.leaf_release == "sums":
            named.setdefault("geometric_clipping", False)
        if self.leaf_release == "ratio" or named.get("geometric_clipping"):
            named.setdefault("leaf_regularization", "lambda")
        return named

    def _train(
        self, plan: DPBoostPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, progress)


@final
class DPBoostRegressor(AbstractRegressor, AbstractDPBoost):
    """DPBoost for a numeric target, squared loss. Parameters: see `AbstractDPBoost`.

    Attributes:
        plan_: the calibrated `DPBoostPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """


@final
class DPBoostClassifier(AbstractClassifier, AbstractDPBoost):
    """DPBoost for two classes or more, by the squared loss on -1 and 1 or the logistic loss.

    Parameters: see `AbstractDPBoost`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `DPBoostRegressor`.
    """

    plan_: DPBoostPlan
