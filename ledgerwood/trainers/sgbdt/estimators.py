"""S-GBDT as scikit-learn estimators: parameters, defaults and presets."""

import dataclasses
from typing import Any, Literal, final, get_args

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import is_word, require_name
from ledgerwood.trainers.base.estimator import AdjacencyName
from ledgerwood.trainers.base.forests import declared_forests, most_classes, trees_in_all
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.streams import AbstractStreamEstimator
from ledgerwood.trainers.parts.initial_scores import InitialScoreKind
from ledgerwood.trainers.parts.leaves import LambdaRule
from ledgerwood.trainers.sgbdt.individual_filter import IndividualFilter
from ledgerwood.trainers.sgbdt.training import LeafKind, LeafNoise, SGBDTPlan, train

Preset = Literal["default", "paper"]


def default_plan(loss: Loss, budget: Budget, expected_rows: int | None) -> SGBDTPlan:
    """The default plan (docs/explanation/sgbdt.md#defaults), still to be calibrated."""
    logistic = loss == "logistic"
    initial_share = 0.05
    if expected_rows is not None and budget.delta > 0.0:
        # The mean label should be known to about a tenth of a half range.
        initial_share = min(max((10.0 / (gdp.mu(budget.epsilon, budget.delta) * expected_rows)) ** 2, 0.03), 0.3)
    return SGBDTPlan(
        adjacency=budget.adjacency,
        loss=loss,
        n_estimators=512 if logistic else 256,
        max_depth=4,
        max_bins=32,
        features_per_tree=2,
        numeric_weight=1.0,
        subsample=1.0,
        noise_multiplier=1.0,
        leaf_noise="dynamic",
        leaf_statistic="curvature" if logistic else "moments",
        clip=0.5 if logistic else 0.25,
        count_share=0.02,
        curvature_scale=0.3,
        learning_rate=0.3,
        reg_lambda=None,
        lambda_rule="add",
        pooling=0.5 if logistic else 0.75,
        score_noise=None,
        leaf_clamp=2.0,
        initial_score="zero" if logistic else "moments",
        initial_multiplier=1.0,
        initial_share=initial_share,
    )


def paper_plan(loss: Loss, adjacency: Adjacency) -> SGBDTPlan:
    """The choices of the paper and of its published code, made sound; noise still to be calibrated.

    Squared loss: the code's defaults, 150 trees of depth 2, gamma .1, eta .1, g* .1, r1 .2 in the code's units,
    max(15, n), and a tenth of epsilon on a Laplace initial score. Logistic loss: the code's stored runs on Adult, 200
    trees of depth 6, full batch, Newton leaves, g* .5, about equal noise on both sums, lambda 10, no initial score.
    """
    logistic = loss == "logistic"
    return SGBDTPlan(
        adjacency=adjacency,
        loss=loss,
        n_estimators=200 if logistic else 150,
        max_depth=6 if logistic else 2,
        max_bins=32,
        features_per_tree=None,
        numeric_weight=1.0,
        # Under replace-one a sampled plan has no certified price.
        subsample=1.0 if logistic or adjacency is Adjacency.REPLACE_ONE else 0.1,
        noise_multiplier=1.0,
        leaf_noise="dynamic",
        leaf_statistic="curvature" if logistic else "moments",
        clip=0.5 if logistic else 0.1,
        count_share=0.2,
        curvature_scale=1.0,
        learning_rate=0.1,
        reg_lambda=10.0 if logistic else 15.0,
        lambda_rule="add" if logistic else "floor",
        pooling=0.0,
        score_noise=None,
        leaf_clamp=2.0,
        initial_score="zero" if logistic else "laplace",
        initial_multiplier=1.0,
        initial_share=0.1,
    )


class AbstractSGBDT(AbstractStreamEstimator):
    """Parameters that the regressor and the classifier share. None takes the preset's value.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately.
        schema_share: share of the budget for a privately estimated schema: of mu**2 and of delta.
        expected_rows: public guess of the number of rows, for tuning rules only. Where the schema has a weight_bound, a
            row of that weight is one row, here and in `reg_lambda`, and others are shares of it.
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
        filter: individual privacy filter, "gdp" (full batch), "renyi" (sampled) or "none"; "auto" is "none" unless
            there are extra trees, see docs/explanation/sgbdt.md#sgbdt-filter.
        extra_trees: trees beyond `n_estimators`, for rows that have lost less than `n_estimators` trees cost a row at
            the clip.
        n_estimators: T, of each class's forest where more than two are declared. Where the classes are privately
            estimated (schema=None, labels of strings or whole numbers), of all forests together, and 32 for any smaller
            number, be there two classes or more: the trees are paid for before the classes are known. `plan_` has the
            number.
        max_depth: d. learning_rate: eta. subsample: the paper's gamma, 1 is full batch.
        reg_lambda: lambda of the leaf's denominator, or "noise" for a multiple of the known noise, by `score_noise`.
        score_noise: stddev that all trees' noise together may add to a score; by default a rule of public quantities.
        lambda_rule: "add" for n + lambda, "floor" for max(lambda, n).
        pooling: share of a leaf's weight that is taken from the mean over the tree's leaves.
        clip: g*, bound on the absolute gradient; labels are scaled to [-1, 1] for the squared loss.
        large_gradients: a row beyond it is clipped ("clip") or left out ("drop").
        curvature_scale: c of the pair (c x hessian, gradient), at most 3.33.
        count_share: share of a leaf's mu**2 that is spent on the number of rows.
        leaf_noise: "dynamic" or "static". leaf_statistic: "moments" or "curvature" (logistic loss).
        leaf_clamp: largest absolute leaf value before the learning rate.
        features_per_tree: k features per tree, in a cycle, or "all".
        numeric_weight: r, weight of a numeric feature against 1 for a categorical one.
        max_bins: even steps of a numeric feature's range, among which thresholds are drawn.
        initial_score: "zero", "moments", "laplace" or "public_count". initial_share: its share of the budget.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.
    """

    loss_: Loss
    plan_: SGBDTPlan
    _plan_type = SGBDTPlan

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        adjacency: Adjacency | AdjacencyName = "add-remove",
        schema: Schema | None = None,
        schema_share: float = 0.1,
        expected_rows: int | None = None,
        preset: Preset = "default",
        n_estimators: int | None = None,
        extra_trees: int | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        subsample: float | None = None,
        reg_lambda: float | Literal["noise"] | None = None,
        score_noise: float | None = None,
        lambda_rule: LambdaRule | None = None,
        pooling: float | None = None,
        clip: float | None = None,
        large_gradients: LargeGradients | None = None,
        curvature_scale: float | None = None,
        count_share: float | None = None,
        leaf_noise: LeafNoise | None = None,
        leaf_statistic: LeafKind | None = None,
        leaf_clamp: float | None = None,
        features_per_tree: int | Literal["all"] | None = None,
        numeric_weight: float | None = None,
        max_bins: int | None = None,
        initial_score: InitialScoreKind | None = None,
        initial_share: float | None = None,
        filter: IndividualFilter | Literal["auto"] = "auto",  # noqa: A002  # what the paper calls it
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
        self.n_estimators = n_estimators
        self.extra_trees = extra_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.reg_lambda = reg_lambda
        self.score_noise = score_noise
        self.lambda_rule = lambda_rule
        self.pooling = pooling
        self.clip = clip
        self.large_gradients = large_gradients
        self.curvature_scale = curvature_scale
        self.count_share = count_share
        self.leaf_noise = leaf_noise
        self.leaf_statistic = leaf_statistic
        self.leaf_clamp = leaf_clamp
        self.features_per_tree = features_per_tree
        self.numeric_weight = numeric_weight
        self.max_bins = max_bins
        self.initial_score = initial_score
        self.initial_share = initial_share
        self.filter = filter
        self.random_state = random_state
        self.verbose = verbose

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> SGBDTPlan:
        plan = self._preset_plan()
        plan = dataclasses.replace(plan, classes=declared_forests(schema), **self._named_choices(plan))
        if isinstance(schema, TypedColumns):
            plan = dataclasses.replace(plan, n_estimators=trees_in_all(plan.n_estimators, schema))
            plan = dataclasses.replace(plan, purchase=self._estimation(schema, most_classes=most_classes(plan.trees)))
        else:
            plan = dataclasses.replace(plan, weighted=schema.weight_bound is not None)
        return plan

    def make_stream_plan(self, schema: Schema) -> SGBDTPlan:
        """The same with an individual filter, which pays for any number of rounds; "auto" is the one that fits.

        Raises:
            InvalidParameter: also `filter="none"`.
        """
        if is_word(self.filter, "none"):
            raise InvalidParameter(
                "filter='none': a stream needs an individual filter, which says what each row has left; set 'auto'"
            )
        plan = self._preset_plan()
        named = self._named_choices(plan)
        if is_word(self.filter, "auto"):
            named["filter"] = "gdp" if named.get("subsample", plan.subsample) == 1.0 else "renyi"
        return dataclasses.replace(plan, **named).calibrated(self.budget)

    def _preset_plan(self) -> SGBDTPlan:
        budget = self.budget
        require_name("preset", self.preset, get_args(Preset))
        match self.preset:
            case "default":
                return default_plan(self.loss_, budget, self.expected_rows)
            case "paper":
                return paper_plan(self.loss_, budget.adjacency)

    def _named_choices(self, plan: SGBDTPlan) -> dict[str, Any]:
        named = self._choices()
        for field, word in (("features_per_tree", "all"), ("reg_lambda", "noise")):
            if is_word(named.get(field), word):
                named[field] = None
        if named.get("leaf_noise", plan.leaf_noise) == "static" and self.leaf_statistic is None:
            named["leaf_statistic"] = "moments"
        named["filter"] = self.filter
        if is_word(self.filter, "auto"):
            full_batch = named.get("subsample", plan.subsample) == 1.0
            named["filter"] = ("gdp" if full_batch else "renyi") if named.get("extra_trees", 0) else "none"
        return named

    def _train(
        self, plan: SGBDTPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress)

    def _train_on(
        self,
        plan: SGBDTPlan,
        aggregator: Aggregator,
        generator: np.random.Generator,
        progress: Progress,
        ensemble: Ensemble,
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress, ensemble=ensemble)


@final
class SGBDTRegressor(AbstractRegressor, AbstractSGBDT):
    """S-GBDT for a numeric target, squared loss. Parameters: see `AbstractSGBDT`.

    Attributes:
        plan_: the calibrated `SGBDTPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """

    loss_ = "squared"


@final
class SGBDTClassifier(AbstractClassifier, AbstractSGBDT):
    """S-GBDT for two classes or more, logistic loss. Parameters: see `AbstractSGBDT`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `SGBDTRegressor`.
    """

    loss_ = "logistic"
    plan_: SGBDTPlan
