"""S-GBDT: boosting with totally random trees, whose whole budget goes to the leaves.

Kirschte, Peinemann, Stock, Cotrini, Mohammadi: "S-GBDT: Frugal Differentially Private Gradient Boosting Decision
Trees". This file is its plan and its loop (Algorithms 4, 5, 6 and 8). Where the paper or its code is wrong, the sound
version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Composed, Event, FilteredEvent, PoissonSampled, Repeated
from ledgerwood.accounting.splitting import relative_multipliers
from ledgerwood.curator import (
    Aggregator,
    LargeGradients,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    LeafStatistic,
    Loss,
    real,
)
from ledgerwood.ensemble import Ensemble, FeatureCells, Tree
from ledgerwood.errors import CalibrationFailed, InvalidParameter
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    EllipticalGaussianMechanism,
    GaussianMechanism,
)
from ledgerwood.trainers.base.bounds import require_bounds, require_trees
from ledgerwood.trainers.base.fitting import NO_GRID, require_gaussian_delta, too_small
from ledgerwood.trainers.base.forests import Forests, require_zero_start
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schema_purchase import SchemaPurchase, keyed_names
from ledgerwood.trainers.parts.initial_scores import InitialScore, InitialScoreKind
from ledgerwood.trainers.parts.leaves import LambdaRule, lambda_by_noise, newton_leaves, pooled, score_noise_by_rule
from ledgerwood.trainers.parts.splits import cyclic_features, random_tree
from ledgerwood.trainers.sgbdt.individual_filter import IndividualFilter, best_order, check_filter, row_limit

LeafNoise = Literal["dynamic", "static"]
LeafKind = Literal["moments", "curvature"]
_NAMES: dict[str, tuple[object, ...]] = {
    "loss": get_args(Loss),
    "lambda_rule": get_args(LambdaRule),
    "leaf_noise": get_args(LeafNoise),
    "leaf_statistic": get_args(LeafKind),
    "initial_score": get_args(InitialScoreKind),
    "large_gradients": get_args(LargeGradients),
    "filter": get_args(IndividualFilter),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SGBDTPlan:
    """All that S-GBDT will do, fixed and priced before a row is read.

    Args:
        adjacency: the relation under which every event is stated.
        loss: squared, on labels scaled to [-1, 1], or logistic.
        n_estimators: T, number of trees that a maximally contributing row takes part in; all trees, without a filter.
        max_depth: levels of splits of each tree, d.
        max_bins: even steps of a numeric feature's range, among which thresholds are drawn.
        features_per_tree: k features a tree, in a cycle; None for all.
        numeric_weight: the paper's r, the weight of a numeric feature against 1 for a categorical one.
        subsample: the paper's gamma; 1 is full batch.
        noise_multiplier: of one tree's leaves under add-remove, the common scale of the plan's noise.
        leaf_noise: "dynamic" releases a weight and a sum a leaf; "static" releases their ratio (the paper's ablation).
        leaf_statistic: the weight is the number of rows ("moments") or the hessian ("curvature", logistic loss).
        clip: g*, largest absolute gradient that counts.
        count_share: share of a leaf's mu**2 that is spent on the number of rows ("moments"): r1 of the published code,
            and r1 / (r1 + r2 g***2) for the noise weights that Theorem 10 prints.
        curvature_scale: c of the released pair (c x hessian, gradient) ("curvature").
        learning_rate: eta.
        reg_lambda: lambda > 0, in units of the leaf's weight; None for a multiple of the known noise, see
            `score_noise`.
        lambda_rule: see `newton_leaves`.
        pooling: see `pooled`.
        score_noise: without a damping, the stddev that the noise of all trees together may add to a row's score, in
            `gradient_unit`s; None for the rule of docs/explanation/sgbdt.md#defaults.
        leaf_clamp: largest absolute leaf value before the learning rate.
        initial_score: "zero"; "moments", an elliptical (count, sum) pair; "laplace", a noisy count and a noisy sum;
            "public_count", a Laplace sum over the declared number of rows (replace-one).
        initial_multiplier: noise of each release of the initial score, stddev or scale over sensitivity.
        initial_share: share of the budget for the initial score: of mu**2 ("moments") or of epsilon (the others).
        expected_rows: declared number of rows: a public guess for the rule of `score_noise`, exact for "public_count".
        filter: "none"; or each row is charged for its own contributions and takes part until it has lost what
            `n_estimators` trees cost a maximally contributing row, by Gaussian privacy ("gdp", full batch) or by its
            Renyi divergence of one order ("renyi").
        extra_trees: trees beyond `n_estimators`, for the rows that have something left; 0 without a filter.
        filter_order: the order of "renyi"; None for the one that `calibrated` finds best for its budget.
        large_gradients: a row beyond `clip` counts with the clip ("clip"), or not at all ("drop").
        purchase: what is bought of the schema first; None where it is declared.
        weighted: whether rows may have their own weights, up to the schema's bound; "rows" then are rows of that
            weight. Static leaves need more noise for them.
        classes: K for one forest a class, which is told from all others: `n_estimators` and `extra_trees` are of each;
            1 for one forest, whose trees the classes of an estimated schema share.
    """

    adjacency: Adjacency
    loss: Loss
    n_estimators: int
    max_depth: int
    max_bins: int
    features_per_tree: int | None
    numeric_weight: float
    subsample: float
    noise_multiplier: float
    leaf_noise: LeafNoise
    leaf_statistic: LeafKind
    clip: float
    count_share: float
    curvature_scale: float
    learning_rate: float
    reg_lambda: float | None
    lambda_rule: LambdaRule
    pooling: float
    score_noise: float | None
    leaf_clamp: float
    initial_score: InitialScoreKind
    initial_multiplier: float
    initial_share: float
    expected_rows: int | None = None
    filter: IndividualFilter = "none"
    extra_trees: int = 0
    filter_order: float | None = None
    large_gradients: LargeGradients = "clip"
    purchase: SchemaPurchase | None = None
    weighted: bool = False
    classes: int = 1

    def __post_init__(self) -> None:
        require_bounds(self, _NAMES)
        require_trees("n_estimators", self.n_estimators)
        _validate.count("classes", self.classes, "forests")
        require_zero_start(self.classes, self.initial_score)
        if self.features_per_tree is not None:
            _validate.count("features_per_tree", self.features_per_tree, "features")
        _validate.positive("numeric_weight", self.numeric_weight, "weight of a categorical feature")
        _validate.rate("subsample", self.subsample, "probability")
        _validate.positive("noise_multiplier", self.noise_multiplier, "stddev / L2 sensitivity")
        _validate.positive("clip", self.clip, "units of the gradient")
        _validate.positive("curvature_scale", self.curvature_scale, "gradient units a unit of hessian")
        if not 0.0 < _validate.real("count_share", self.count_share, "share of mu**2") < 1.0:
            raise _validate.fail("count_share", self.count_share, "in (0, 1)", "share of mu**2")
        if self.reg_lambda is not None:
            _validate.positive("reg_lambda", self.reg_lambda, "units of the leaf's weight")
        if self.score_noise is not None:
            _validate.positive("score_noise", self.score_noise, "gradient units")
        if not 0.0 <= _validate.real("pooling", self.pooling, "share") <= 1.0:
            raise _validate.fail("pooling", self.pooling, "in [0, 1]", "share of the mean weight")
        _validate.positive("leaf_clamp", self.leaf_clamp, "units of the score")
        if self.leaf_statistic == "curvature" and (self.loss != "logistic" or self.leaf_noise == "static"):
            raise InvalidParameter(
                "leaf_statistic='curvature' needs loss='logistic' and leaf_noise='dynamic'; "
                f"got {self.loss!r} and {self.leaf_noise!r}"
            )
        if self.leaf_noise == "static" and self.reg_lambda is None:
            raise InvalidParameter("leaf_noise='static' divides before the noise is added: give reg_lambda as a number")
        _validate.count("extra_trees", self.extra_trees, "trees", minimum=0)
        check_filter(
            self.filter,
            self.filter_order,
            adjacency=self.adjacency,
            subsample=self.subsample,
            extra_trees=self.extra_trees,
            summed=self.leaf_noise == "dynamic",
        )
        if self.filter == "renyi" and self.purchase is not None and (names := keyed_names(self.purchase.columns)):
            raise InvalidParameter(
                f"filter='renyi' counts at one order, which holds no delta, and the categories of columns {names} cost "
                "one: declare a schema, or take another filter"
            )
        self.leaf  # noqa: B018  # checks the clip, and what else it is made of
        self.initial  # noqa: B018  # checks what the initial score needs

    @property
    def trees(self) -> int:
        """Number of trees of a forest; public, and never a matter of how many rows are left."""
        return self.n_estimators + self.extra_trees

    @property
    def initial(self) -> InitialScore:
        """The initial score: its queries, noise and events."""
        return InitialScore(
            kind=self.initial_score,
            adjacency=self.adjacency,
            multiplier=self.initial_multiplier,
            expected_rows=self.expected_rows,
        )

    @property
    def leaf_mechanism(self) -> GaussianMechanism | EllipticalGaussianMechanism:
        """Noise of one tree's leaves; its stddevs are what `noise_multiplier` means under add-remove."""
        if self.leaf_noise == "dynamic" and self.leaf_statistic == "moments":
            count = self.noise_multiplier / math.sqrt(self.count_share)
            gradient = self.noise_multiplier * self.clip / math.sqrt(1.0 - self.count_share)
            return EllipticalGaussianMechanism(stddevs=(count, gradient))
        width = self.leaf.sensitivity(Adjacency.ADD_REMOVE).l2((1.0,))
        return GaussianMechanism(stddev=self.noise_multiplier * width)

    @property
    def leaf(self) -> LeafStatistic[BoxShifts | BallShifts]:
        """The statistic of one tree's leaves, the same for every tree and every class."""
        if self.leaf_noise == "static":
            assert self.reg_lambda is not None  # checked on construction
            return LeafRatios(
                loss=self.loss, clip=self.clip, damping=self.reg_lambda, large_gradients=self.large_gradients,
                weighted=self.weighted,
            )  # fmt: skip
        if self.leaf_statistic == "curvature":
            return LeafCurvatures(
                clip=self.clip, curvature_scale=self.curvature_scale, large_gradients=self.large_gradients
            )
        return LeafMoments(loss=self.loss, clip=self.clip, large_gradients=self.large_gradients)

    @property
    def tree_event(self) -> Event:
        """One tree: one draw, sampled afresh unless the plan is full batch."""
        event = self.leaf_mechanism.event(self.leaf.sensitivity(self.adjacency), self.adjacency)
        return event if self.subsample == 1.0 else PoissonSampled(event, sampling_rate=self.subsample)

    @property
    def draws(self) -> Iterator[tuple[Event, range]]:
        """What is drawn for the trees, and for which: a draw a tree or, with a filter, one draw for all."""
        event = self.tree_event
        if self.filter == "none":
            return ((event, range(t, t + 1)) for t in range(self.n_estimators * self.classes))
        limit = row_limit(self.filter, event, trees=self.n_estimators * self.classes, order=self.filter_order)
        return iter(((FilteredEvent(event, limit=limit), range(self.trees * self.classes)),))

    @property
    def event(self) -> Event:
        """The whole plan: what the ledger grants."""
        draw, _ = next(self.draws)
        trees = Repeated(draw, count=self.n_estimators * self.classes) if self.filter == "none" else draw
        bought = () if self.purchase is None else self.purchase.events
        return Composed((*bought, *self.initial.events, trees))

    def calibrated(self, budget: Budget) -> "SGBDTPlan":
        """This plan with the least noise that fits the budget.

        Raises:
            CalibrationFailed, AdjacencyMismatch: as `ledgerwood.calibrate`.
            InvalidParameter: noise so large that it cannot be drawn on the statistics' grids, or delta 0.
        """
        require_gaussian_delta(budget)
        try:
            return self._calibrated(budget)
        except (InvalidParameter, CalibrationFailed) as error:
            trees = f"{self.trees * self.classes} trees of depth {self.max_depth}"
            raise type(error)(too_small(trees, budget, NO_GRID)) from error

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for noise that can be drawn."""
        try:
            self._calibrated(budget)
        except (InvalidParameter, CalibrationFailed):
            return False
        return True

    def _calibrated(self, budget: Budget) -> "SGBDTPlan":
        start = self
        if self.initial_score != "moments":  # which keeps its share as the noise is scaled
            initial = self.initial.with_share(self.initial_share, budget)
            start = dataclasses.replace(self, initial_multiplier=initial.multiplier)
        if self.filter == "renyi" and self.filter_order is None:
            plain = dataclasses.replace(start, filter="none", extra_trees=0)
            order = best_order(lambda noise_multiplier: plain.scaled(noise_multiplier).event, budget)
            start = dataclasses.replace(start, filter_order=order)
        noise = calibrate(lambda noise_multiplier: start.scaled(noise_multiplier).event, budget)
        plan = start.scaled(noise)
        if plan.purchase is not None:
            plan.purchase.require_fit()
        plan.initial.require_fit()
        plan.leaf_mechanism.require_fit(plan.leaf.grid)
        return plan

    def scaled(self, noise_multiplier: float) -> "SGBDTPlan":
        """This plan with another common noise scale; a Gaussian initial score keeps its share of mu**2."""
        if self.initial_score != "moments":
            return dataclasses.replace(self, noise_multiplier=noise_multiplier)
        # A sampled tree costs about subsample**2 of its mu**2; a share needs no more accuracy than that.
        trees = max(1, round(self.n_estimators * self.subsample**2))
        relative = relative_multipliers(
            {"initial_score": (self.initial_share, 1), "trees": (1.0 - self.initial_share, trees)}
        )
        return dataclasses.replace(
            self,
            noise_multiplier=noise_multiplier,
            initial_multiplier=noise_multiplier * relative["initial_score"] / relative["trees"],
        )

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        held = rows * self.subsample / 2.0**self.max_depth
        mechanism = self.leaf_mechanism
        noise = mechanism.stddev if isinstance(mechanism, GaussianMechanism) else mechanism.stddevs[1]
        signal = self.clip * held
        if self.leaf_noise == "static":
            assert self.reg_lambda is not None  # checked on construction
            signal /= held + self.reg_lambda
        return math.sqrt(self.n_estimators) * signal / noise

    def of_forest(self, trees: int, forests: int) -> "SGBDTPlan":  # see `ForestPlan`
        """The plan as one of several forests follows it: the same draws, and its own post-processing."""
        return dataclasses.replace(
            self, n_estimators=trees, extra_trees=0, filter="none", filter_order=None, classes=1, initial_score="zero"
        )

    def leaf_values(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from the released sums; shape (n_leaves,)."""
        if self.leaf_noise == "static":
            steps = -sums[:, 0]
        else:
            weight = sums[:, 0] / self.curvature_scale if self.leaf_statistic == "curvature" else sums[:, 0]
            weight = pooled(weight, self.pooling)
            steps = newton_leaves(weight, sums[:, 1], reg_lambda=self.leaf_lambda, rule=self.lambda_rule)
        return self.learning_rate * np.clip(steps, -self.leaf_clamp, self.leaf_clamp)

    @property
    def leaf_lambda(self) -> float:
        """lambda, in units of the leaf's weight: the given one, or by the known noise of the gradients."""
        if self.reg_lambda is not None:
            return self.reg_lambda
        score_noise = self.score_noise_by_rule if self.score_noise is None else self.score_noise
        return lambda_by_noise(
            trees=self.trees,
            learning_rate=self.learning_rate,
            stddev=self._noise_in_gradient_units,
            score_noise=score_noise,
        )

    @property
    def gradient_unit(self) -> float:
        """The clip of the squared loss; 1 for the logistic loss."""
        return self.clip if self.loss == "squared" else 1.0

    @property
    def score_noise_by_rule(self) -> float:
        """See `ledgerwood.trainers.parts.leaves.score_noise_by_rule`."""
        rows = None if self.expected_rows is None else self.expected_rows * self.subsample
        return score_noise_by_rule(self.loss, rows, depth=self.max_depth, stddev=self._noise_in_gradient_units)

    @property
    def _noise_in_gradient_units(self) -> float:
        mechanism = self.leaf_mechanism
        stddev = mechanism.stddev if isinstance(mechanism, GaussianMechanism) else mechanism.stddevs[1]
        return stddev / self.gradient_unit


def train(
    plan: SGBDTPlan,
    aggregator: Aggregator,
    generator: np.random.Generator,
    progress: Progress | None = None,
    *,
    ensemble: Ensemble | None = None,
) -> Ensemble:
    """Algorithm 8: draw a tree, release its leaves over the rows that may still take part, add it; `plan.trees` times.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
        ensemble: what was released before on the same stream, and is added to; None for the initial score.
    """
    cells: Sequence[FeatureCells] = aggregator.schema.cells(plan.max_bins)
    forests = Forests.of(plan, aggregator) if ensemble is None else Forests(members=[ensemble], sizes=(plan.trees,))
    before = 0 if ensemble is None else len(ensemble.trees)
    mechanism, own, schedule = plan.leaf_mechanism, forests.plans(plan), forests.schedule
    for event, trees in plan.draws:
        purpose = f"tree {trees[-1] + 1}" if len(trees) == 1 else f"trees {trees[0] + 1} to {trees[-1] + 1}"
        with aggregator.open(event, purpose=purpose) as round_:
            for number in trees:
                forest, t = schedule[number]
                features = cyclic_features(before + t, n_features=len(cells), per_tree=plan.features_per_tree)
                structure = random_tree(
                    cells,
                    depth=plan.max_depth,
                    features=features,
                    numeric_weight=plan.numeric_weight,
                    generator=generator,
                )
                query = plan.leaf.of(structure, forests.members[forest], positive=forests.positive(forest))
                release = round_.release(query, mechanism, purpose=f"leaves of tree {number + 1}")
                forests.add(forest, Tree(structure=structure, values=own[forest].leaf_values(real(release))))
                if progress is not None:
                    progress(number + 1, len(schedule))
    return forests.ensemble
