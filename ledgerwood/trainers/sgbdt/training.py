"""S-GBDT: boosting with totally random trees, whose whole budget goes to the leaves.

Kirschte, Peinemann, Stock, Cotrini, Mohammadi: "S-GBDT: Frugal Differentially Private Gradient Boosting Decision
Trees". This file is its plan and its loop (Algorithms 4, 5, 6 and 8). Where the paper or its code is wrong, the sound
version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Event, FilteredEvent, PoissonSampled
from ledgerwood.curator import (
    Aggregator,
    LargeGradients,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    LeafStatistic,
)
from ledgerwood.ensemble import Ensemble, FeatureCells, Tree
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    EllipticalGaussianMechanism,
    GaussianMechanism,
)
from ledgerwood.trainers.base.bounds import Count, Real, positive
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.plan import AbstractGaussianPlan
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.base.schema_purchase import keyed_names
from ledgerwood.trainers.parts.leaves import LambdaRule, lambda_by_noise, newton_leaves, pooled, score_noise_by_rule
from ledgerwood.trainers.parts.splits import cyclic_features, random_tree
from ledgerwood.trainers.sgbdt.individual_filter import IndividualFilter, best_order, check_filter, row_limit

LeafNoise = Literal["dynamic", "static"]
LeafKind = Literal["moments", "curvature"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SGBDTPlan(AbstractGaussianPlan):
    """All that S-GBDT will do, fixed and priced before a row is read. Fields of all systems: see its base classes.

    `n_estimators` is the number of trees that a maximally contributing row takes part in: all trees, without a filter.
    `noise_multiplier` is that of one tree's leaves. `count_share` is r1 of the published code, and
    r1 / (r1 + r2 g***2) for the noise weights that Theorem 10 prints.

    Args:
        numeric_weight: r, the weight of a numeric feature against 1 for a categorical one.
        subsample: gamma; 1 is full batch.
        leaf_noise: "dynamic" releases a weight and a sum a leaf; "static" releases their ratio (the paper's ablation).
        leaf_statistic: the weight is the number of rows ("moments") or the hessian ("curvature", logistic loss).
        lambda_rule: see `newton_leaves`; "add" is ours.
        filter: "none"; or each row is charged for its own contributions and takes part until it has lost what
            `n_estimators` trees cost a maximally contributing row, by Gaussian privacy ("gdp", full batch) or by its
            Renyi divergence of one order ("renyi").
        extra_trees: trees beyond `n_estimators`, for the rows that have something left; 0 without a filter.
        filter_order: the order of "renyi"; None for the one that `calibrated` finds best for its budget.
        large_gradients: a row beyond `clip` counts with the clip ("clip"), or not at all ("drop", ours).
    """

    numeric_weight: Annotated[float, positive("weight of a categorical feature")]
    subsample: Annotated[float, Real("probability", high=1, holds_high=True)]
    leaf_noise: LeafNoise
    leaf_statistic: LeafKind
    lambda_rule: LambdaRule
    filter: IndividualFilter = "none"
    extra_trees: Annotated[int, Count("trees", minimum=0)] = 0
    filter_order: float | None = None
    large_gradients: LargeGradients = "clip"

    def _require_whole(self) -> None:
        if self.leaf_statistic == "curvature" and (self.loss != "logistic" or self.leaf_noise == "static"):
            raise InvalidParameter(
                "leaf_statistic='curvature' needs loss='logistic' and leaf_noise='dynamic'; "
                f"got {self.loss!r} and {self.leaf_noise!r}"
            )
        if self.leaf_noise == "static" and self.reg_lambda is None:
            raise InvalidParameter("leaf_noise='static' divides before the noise is added: give reg_lambda as a number")
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

    @property
    def trees(self) -> int:
        """Number of trees of a forest; public, and never a matter of how many rows are left."""
        return self.n_estimators + self.extra_trees

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
    def stages(self) -> tuple[Stage, ...]:
        """A draw a tree or, with a filter, one draw for all; its steps are the trees that it is for."""
        count = self.n_estimators * self.classes
        if self.filter == "none":
            return (Stage(event=self.tree_event, steps=range(count)),)
        limit = row_limit(self.filter, self.tree_event, trees=count, order=self.filter_order)
        return (Stage.once(FilteredEvent(self.tree_event, limit=limit), range(self.trees * self.classes)),)

    @property
    def size(self) -> str:
        """See `AbstractGaussianPlan`."""
        return f"{self.trees * self.classes} trees of depth {self.max_depth}"

    @property
    def equal_queries(self) -> int:
        """See `AbstractGaussianPlan`; a sampled tree costs about subsample**2 of its mu**2, which is near enough."""
        return max(1, round(self.n_estimators * self.subsample**2))

    def _found(self, budget: Budget) -> "SGBDTPlan":
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
        plan.require_first_fit()
        plan.leaf_mechanism.require_fit(plan.leaf.grid)
        return plan

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

    def of_forest(self, trees: int, forests: int) -> "SGBDTPlan":
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

    Deviations: the table of docs/explanation/sgbdt.md#sgbdt-deviations.

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
    for event, step in plan.schedule():
        trees = step if isinstance(step, range) else range(step, step + 1)
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
                forests.add(forest, Tree(structure=structure, values=own[forest].leaf_values(release.real)))
                if progress is not None:
                    progress(number + 1, len(schedule))
    return forests.ensemble
