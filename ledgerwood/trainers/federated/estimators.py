"""The federated framework as scikit-learn estimators: parameters, defaults and presets."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np
from sklearn.base import is_classifier

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import Aggregator, Loss, Schema, TypedColumns
from ledgerwood.curator.queries.bins import MAX_SUMS
from ledgerwood.ensemble import Ensemble, FeatureCells
from ledgerwood.trainers.base.bounds import is_word
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator, AdjacencyName
from ledgerwood.trainers.base.forests import declared_forests, most_classes, trees_in_all
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.federated.candidates import CandidateRule
from ledgerwood.trainers.federated.communication import bins_of
from ledgerwood.trainers.federated.plan import FeatureCycle, FederatedPlan, SplitMethod, Update
from ledgerwood.trainers.federated.presets import Preset, preset_plan
from ledgerwood.trainers.federated.training import train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.initial_scores import InitialScoreKind
from ledgerwood.trainers.parts.pair_noise import NoiseKind


class AbstractFederatedGBDT(AbstractTreeEstimator):
    """Parameters that the regressor and the classifier share. None takes the preset's value.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability; delta > 0.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately.
        schema_share: share of the budget for a privately estimated schema: of mu**2 and of delta.
        expected_rows: public guess of the number of rows, for tuning rules only.
        preset: "recommended" (for accuracy), "paper" (the paper's proposed best, which is "tr_batched_ih_ebm"), or
            another configuration: "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton",
            "tr_newton_ih"; see docs/explanation/federated.md#federated-presets.
        split_method: "histogram", "partially_random" or "totally_random". update: "averaging", "gradient" or "newton".
        candidates: "uniform", "log", "quantiles" (bought) or "iterative_hessian". n_candidates: Q, a numeric feature.
        refinements: s, rounds of the iterative hessian rule for each feature.
        candidate_share: share of epsilon for "quantiles".
        features_per_tree: k features a tree, or "all". feature_cycle: "windows" of neighbours or "combinations" of k in
            a cycle, or "random" ones.
        n_estimators: T, of each class's forest where more than two are declared; with full_cycles, how often the cycle
            of all features is gone through. Where the classes are privately estimated (schema=None, labels of strings
            or whole numbers), of all forests together, and 32 for any smaller number, be there two classes or more: the
            trees are paid for before the classes are known. `plan_` has the number.
        full_cycles: whether n_estimators counts cycles of all features.
        batch: B, trees that share gradients: a whole number, or a share of T below 1.
        recalibrate: whether one query more brings scores back to log-odds (classes).
        max_depth: d. learning_rate: eta. max_bins: even steps of a numeric feature's range, whose borders candidates
            are.
        reg_lambda: lambda, or "noise" for a multiple of the known noise, by `score_noise`.
        score_noise: stddev that all trees' noise together may add to a score; by default a rule of public quantities.
        pooling: share of a leaf's weight that is taken from the mean over the tree's leaves.
        clip: bound on the absolute gradient; labels are scaled to [-1, 1] for the squared loss.
        curvature_scale: c of the pair (c x hessian, gradient), at most 3.33; the paper's is 1.
        count_share: share of a query's mu**2 that is spent on the number of rows, where the weight is that.
        leaf_clamp: largest absolute leaf value before the learning rate.
        noise: "gaussian"; or "skellam", whole numbers that clients can add shares of, for sums of leaves alone.
        initial_score: "zero" or "moments". initial_share: its share of the budget, of mu**2.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.
    """

    plan_: FederatedPlan
    _plan_type = FederatedPlan

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        adjacency: Adjacency | AdjacencyName = "add-remove",
        schema: Schema | None = None,
        schema_share: float = 0.1,
        expected_rows: int | None = None,
        preset: Preset = "recommended",
        split_method: SplitMethod | None = None,
        update: Update | None = None,
        candidates: CandidateRule | None = None,
        n_candidates: int | None = None,
        refinements: int | None = None,
        candidate_share: float | None = None,
        features_per_tree: int | Literal["all"] | None = None,
        feature_cycle: FeatureCycle | None = None,
        n_estimators: int | None = None,
        full_cycles: bool = False,
        batch: float | None = None,
        recalibrate: bool | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        max_bins: int | None = None,
        reg_lambda: float | Literal["noise"] | None = None,
        score_noise: float | None = None,
        pooling: float | None = None,
        clip: float | None = None,
        curvature_scale: float | None = None,
        count_share: float | None = None,
        leaf_clamp: float | None = None,
        noise: NoiseKind | None = None,
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
        self.split_method = split_method
        self.update = update
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.refinements = refinements
        self.candidate_share = candidate_share
        self.features_per_tree = features_per_tree
        self.feature_cycle = feature_cycle
        self.n_estimators = n_estimators
        self.full_cycles = full_cycles
        self.batch = batch
        self.recalibrate = recalibrate
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.reg_lambda = reg_lambda
        self.score_noise = score_noise
        self.pooling = pooling
        self.clip = clip
        self.curvature_scale = curvature_scale
        self.count_share = count_share
        self.leaf_clamp = leaf_clamp
        self.noise = noise
        self.initial_score = initial_score
        self.initial_share = initial_share
        self.random_state = random_state
        self.verbose = verbose

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> FederatedPlan:
        cells = least_cells(schema, 2)
        _validate.count("n_features", len(cells), "features")
        loss: Loss = "logistic" if is_classifier(self) else "squared"
        numeric = tuple(bool(each.ordered) for each in cells)
        plan = preset_plan(self.preset, loss, self.budget, self.expected_rows, numeric)
        weighted = isinstance(schema, Schema) and schema.weight_bound is not None
        named = self._named_choices(plan, loss)
        plan = dataclasses.replace(plan, classes=declared_forests(schema), weighted=weighted, **named)
        if isinstance(schema, TypedColumns):
            plan = dataclasses.replace(plan, n_estimators=trees_in_all(plan.n_estimators, schema))
            plan = dataclasses.replace(
                plan, purchase=self._estimation(schema, most_classes=most_classes(plan.n_estimators))
            )
        _require_size(plan, least_cells(schema, plan.max_bins))
        return plan

    def _named_choices(self, plan: FederatedPlan, loss: Loss) -> dict[str, Any]:
        named = self._choices()
        for field, word in (("features_per_tree", "all"), ("reg_lambda", "noise")):
            if is_word(named.get(field), word):
                named[field] = None
        if not isinstance(self.full_cycles, bool | np.bool_):
            raise _validate.fail("full_cycles", self.full_cycles, "True or False", "flag")
        if self.full_cycles and "n_estimators" in named:
            width = dataclasses.replace(
                plan, features_per_tree=named.get("features_per_tree", plan.features_per_tree)
            ).width
            named["n_estimators"] = _validate.count("n_estimators", named["n_estimators"], "cycles") * math.ceil(
                plan.n_features / width
            )
        trees = named.get("n_estimators", plan.n_estimators)
        if self.batch is not None:
            named["batch"] = self._batch(trees)
        elif plan.batch > 1:  # a preset's batches are a share of its trees
            named["batch"] = max(
                1, round(plan.batch / plan.n_estimators * _validate.count("n_estimators", trees, "trees"))
            )
        if named.get("update", plan.update) == "averaging" and plan.update != "averaging":
            # Means of labels, which are -1 and 1 for two classes.
            named["loss"] = "squared"
            for name, value in (("clip", 1.0), ("count_share", 0.5), ("initial_score", "zero"), ("recalibrate", False)):
                named.setdefault(name, value)
        elif "update" in named and plan.update == "averaging":
            named["loss"] = loss
        return named

    def _batch(self, trees: object) -> int:
        share = _validate.positive("batch", self.batch, "trees, or share of them")
        if share < 1.0:
            return max(1, round(share * _validate.count("n_estimators", trees, "trees")))
        return _validate.count("batch", int(share) if share.is_integer() else self.batch, "trees")

    def _train(
        self, plan: FederatedPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress)


@final
class FederatedGBDTRegressor(AbstractRegressor, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for a numeric target.

    Parameters: see `AbstractFederatedGBDT`.

    Attributes:
        plan_: the calibrated `FederatedPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """


@final
class FederatedGBDTClassifier(AbstractClassifier, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for two classes or more.

    Parameters: see `AbstractFederatedGBDT`. Of K > 2 classes each has its own forest, which tells it from all
    others; all is asked K times, and the plan says so.

    Attributes:
        classes_: the declared or estimated classes, sorted.
        ensemble_: the released trees; of K > 2 classes all T of the first one's, then those of the second one, ...,
            each forest's initial score in its first tree.
        plan_, privacy_, ledger_, feature_importances_: as in `FederatedGBDTRegressor`.
    """

    plan_: FederatedPlan


def _require_size(plan: FederatedPlan, cells: Sequence[FeatureCells]) -> None:
    """Refuse histograms that the curator would refuse later on, when the levels above have been paid for.

    Raises:
        InvalidParameter: more than 2**24 sums of a column.
    """
    if plan.asks_leaves:
        return
    by_bins = plan.split_method == "histogram"
    each = sum(bins_of(cells, plan.n_candidates)[: plan.width]) if by_bins else plan.width
    nodes = 2 ** ((plan.histogram_levels if by_bins else plan.max_depth) - 1)
    if nodes * each > MAX_SUMS:
        raise _validate.fail("nodes * bins of a level", nodes * each, f"at most {MAX_SUMS}", "sums")
