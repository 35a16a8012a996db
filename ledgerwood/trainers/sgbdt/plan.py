"""S-GBDT's plan and presets: all queries, their noise and what is made of the answers, fixed before a row is read.

Kirschte, Peinemann, Stock, Cotrini, Mohammadi: "S-GBDT: Frugal Differentially Private Gradient Boosting Decision
Trees". Where the paper or its code is wrong, the sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.costs import conversion
from ledgerwood.accounting.events import Event, FilteredEvent, GDPEvent, RenyiEvent
from ledgerwood.accounting.individuals import LIMIT_SLACK, OVERESTIMATE
from ledgerwood.curator import LargeGradients, LeafCurvatures, LeafMoments, LeafRatios, LeafStatistic, Loss
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import Count, positive, require_name
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.estimated.purchase import keyed_names
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianPlan, mean_label_share
from ledgerwood.trainers.parts.leaves import LambdaRule
from ledgerwood.trainers.parts.sampled_trees import AbstractSampledPlan, Sampling, Subsample

IndividualFilter = Literal["none", "gdp", "renyi"]
Preset = Literal["default", "paper"]
LeafNoise = Literal["dynamic", "static"]
LeafKind = Literal["moments", "curvature"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SGBDTPlan(AbstractSampledPlan, AbstractGaussianPlan):
    """The plan of S-GBDT: all queries and their noise. Fields that all systems have: see its base classes.

    `n_estimators` is the number of trees that a maximally contributing row takes part in: all trees, without a filter.
    `noise_multiplier` is that of one tree's leaves. `count_share` is r1 of the published code, and
    r1 / (r1 + r2 g***2) for the noise weights that Theorem 10 prints.

    Args:
        numeric_weight: r, the weight with which a numeric feature is drawn; a categorical one has weight 1.
        subsample: gamma, the probability with which a row takes part in a tree; 1 is full batch.
        sampling: "poisson", a coin for each row and tree (the paper's); "allocation" puts each row into exactly
            round(subsample * trees) of the trees of all forests, chosen uniformly. Ours.
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

    references: ClassVar[tuple[Reference, ...] | None] = (systems.KIRSCHTE_2023, systems.FRIEDMAN_2001)

    numeric_weight: Annotated[float, positive("weight of a categorical feature")]
    subsample: Subsample
    sampling: Sampling = "poisson"
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
        self.require_sums(
            (self.leaf_noise == "static", "leaf_noise='static': a ratio of sums is no sum; set 'dynamic'"),
            (self.subsample < 1.0, f"subsample={self.subsample!r}: a vector's noise has no price on a sample; set 1"),
            (
                self.filter != "none",
                f"filter={self.filter!r}: it charges rows by Gaussian noise; set 'none'",
            ),
        )
        self.require_sampling()
        self._require_filter()
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
    def needs_one_process(self) -> str:
        """See `Plan`: static leaves are ratios."""
        return LeafRatios.__name__ if self.leaf_noise == "static" else ""

    @property
    def tree_event(self) -> Event:
        """The event of one tree: one draw, on a fresh sample unless the plan is full batch; or a step of a draw."""
        return self.one_tree(self.leaf_mechanism.event(self.asked.sensitivity(self.adjacency), self.adjacency))

    @property
    def trees_per_draw(self) -> int:
        """Number of trees of one draw: all trees with a filter, whose limit holds for all of them together."""
        return self.trees_of_draw if self.filter == "none" else self.trees * self.classes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One draw for each tree, whose step is the tree's number from 0; or one for all, of a filter or allocation."""
        if self.filter == "none":
            release = self.leaf_mechanism.event(self.asked.sensitivity(self.adjacency), self.adjacency)
            return (self.tree_stage(release, 0),)
        return (Stage.once(FilteredEvent(self.tree_event, limit=self.row_limit), 0),)

    @property
    def size(self) -> str:
        """See `AbstractGaussianPlan`."""
        return f"{self.trees * self.classes} trees of depth {self.max_depth}"

    @property
    def equal_queries(self) -> int:
        """See `AbstractGaussianPlan`; a sampled tree costs about the square of its share of rows, times its mu**2."""
        return max(1, round(self.n_estimators * self.share_of_rows**2))

    def _found(self, budget: Budget) -> "SGBDTPlan":
        start = self
        if self.initial_score != "moments":  # which keeps its share as the noise is scaled
            initial = self.initial.with_share(self.initial_share, budget)
            start = dataclasses.replace(self, initial_multiplier=initial.multiplier)
        if self.filter == "renyi" and self.filter_order is None:
            start = dataclasses.replace(start, filter_order=start.best_order(budget))
        noise = calibrate(lambda noise_multiplier: start.scaled(noise_multiplier).event, budget)
        plan = start.scaled(noise)
        plan.require_first_fit()
        plan.leaf_mechanism.require_fit(plan.asked.grid)
        return plan

    def leaf_signal(self, rows: float) -> float:
        """See `AbstractGaussianPlan.leaf_signal`; a ratio's signal is divided by its denominator."""
        signal = AbstractGaussianPlan.leaf_signal(self, rows)
        if self.leaf_noise == "dynamic":
            return signal
        assert self.reg_lambda is not None  # checked on construction
        return signal / (self.rows_of_tree(rows) / 2.0**self.max_depth + self.reg_lambda)

    def rows_of_tree(self, rows: float) -> float:
        """See `AbstractGaussianPlan`."""
        return rows * self.share_of_rows

    def of_forest(self, trees: int, forests: int) -> "SGBDTPlan":
        """The plan as one of several forests follows it: the same draws, and its own post-processing."""
        return dataclasses.replace(
            self, n_estimators=trees, extra_trees=0, filter="none", filter_order=None, classes=1, initial_score="zero",
            subsample=self.share_of_rows, sampling="poisson",
        )  # fmt: skip

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`; Algorithm 4, line 7."""
        if self.leaf_noise == "dynamic":
            return self.newton_values(released, self.lambda_rule)
        return self.learning_rate * np.clip(-released[:, 0], -self.max_delta_step, self.max_delta_step)

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`."""
        if self.leaf_noise == "dynamic":
            return self.newton_noise(released, self.lambda_rule)
        return np.full(len(released), self.learning_rate * min(self.leaf_stddevs[0], self.max_delta_step))

    # ------------------------------------------------------------------------------------------------- the filter

    def _require_filter(self) -> None:
        """Refuse a filter that does not fit the rest of the plan.

        Raises:
            AdjacencyMismatch: a filter under replace-one.
            InvalidParameter: everything else.
        """
        kind, order = self.filter, self.filter_order
        if order is not None:
            if kind != "renyi":
                raise InvalidParameter(f"filter_order={order!r} belongs to filter='renyi', not to filter={kind!r}")
            if not 1.0 < _validate.real("filter_order", order, "Renyi order") < math.inf:
                raise _validate.fail("filter_order", order, "> 1", "Renyi order")
        if kind == "none":
            if self.extra_trees > 0:
                raise InvalidParameter(
                    f"extra_trees={self.extra_trees} need a filter: without one every tree is paid for, so raise "
                    "n_estimators (or set filter='gdp' for a full batch, 'renyi' for a sampled one)"
                )
            return
        if self.sampling == "allocation":
            what = f"extra_trees={self.extra_trees} need a filter, and" if self.extra_trees else f"filter={kind!r}"
            verb, off = ("a filter needs", "extra_trees=0") if self.extra_trees else ("needs", "filter='none'")
            raise InvalidParameter(
                f"{what} {verb} sampling='poisson': under an allocation what a row has lost depends on the trees that "
                f"it was in, which no filter can charge before; set {off}, or sampling='poisson'"
            )
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise AdjacencyMismatch(
                f"filter={kind!r} needs adjacency add-remove or zero-out: under replace-one what a row loses depends "
                "on the row that takes its place; set filter='none' or another adjacency"
            )
        if self.leaf_noise == "static":
            raise InvalidParameter(
                f"filter={kind!r} needs leaf_noise='dynamic': what a row changes in a ratio depends on the other rows"
            )
        if kind == "gdp" and self.subsample < 1.0:
            raise InvalidParameter(
                f"filter='gdp' needs subsample=1, not {self.subsample!r}: a Poisson-sampled Gaussian is not a Gaussian "
                "pair; set filter='renyi'"
            )

    @property
    def row_limit(self) -> GDPEvent | RenyiEvent:
        """Algorithm 8, rho(alpha): what `n_estimators` trees cost a row that contributes as much as a row can.

        Raises:
            InvalidParameter: a Renyi filter whose order was not chosen.
        """
        tree, trees = self.tree_event, self.n_estimators * self.classes
        if self.filter == "gdp":
            return GDPEvent(mu=tree.mu() * math.sqrt(trees * (1.0 + LIMIT_SLACK)), adjacency=tree.adjacency)
        if self.filter_order is None:
            raise InvalidParameter(
                "filter_order=None: the order of filter='renyi' is fixed by `calibrated`, or give one"
            )
        # A row's divergence is read off a table that may be above the truth by so much.
        once = float(tree.renyi(np.array([self.filter_order]))[0]) * (1.0 + OVERESTIMATE)
        divergence = trees * once * (1.0 + LIMIT_SLACK)
        return RenyiEvent(orders=(self.filter_order,), divergences=(divergence,), adjacency=tree.adjacency)

    def best_order(self, budget: Budget) -> float:
        """The order at which the plan without the filter needs the least noise for the budget.

        Raises:
            CalibrationFailed, AdjacencyMismatch: as `ledgerwood.calibrate`.
        """
        plain = dataclasses.replace(self, filter="none", extra_trees=0)

        def event(noise_multiplier: float) -> Event:
            return plain.scaled(noise_multiplier).event

        whole, log_delta = event(calibrate(event, budget, method="renyi")), math.log(budget.delta)
        return conversion.least_over_orders(
            whole.renyi, lambda orders, curve: conversion.renyi_epsilons(orders, curve, log_delta)
        ).order


_REGRESSION = SGBDTPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=256,
    max_depth=4,
    max_bins=32,
    features_per_tree=2,
    numeric_weight=1.0,
    subsample=1.0,
    leaf_noise="dynamic",
    leaf_statistic="moments",
    clip=0.25,
    count_share=0.02,
    curvature_scale=0.3,
    learning_rate=0.3,
    reg_lambda=None,
    lambda_rule="add",
    pooling=0.75,
    score_noise=None,
    max_delta_step=2.0,
    initial_score="moments",
    initial_share=0.05,
)
DEFAULT: Mapping[Loss, SGBDTPlan] = {
    "squared": _REGRESSION,
    "logistic": dataclasses.replace(
        _REGRESSION,
        loss="logistic",
        n_estimators=512,
        leaf_statistic="curvature",
        clip=0.5,
        pooling=0.5,
        initial_score="zero",
    ),
}
"""The values that predict best without tuning (docs/explanation/sgbdt.md#defaults)."""
PAPER: Mapping[Loss, SGBDTPlan] = {
    "squared": dataclasses.replace(
        _REGRESSION,
        n_estimators=150,
        max_depth=2,
        features_per_tree=None,
        subsample=0.1,
        clip=0.1,
        count_share=0.2,
        curvature_scale=1.0,
        learning_rate=0.1,
        reg_lambda=15.0,
        lambda_rule="floor",
        pooling=0.0,
        initial_score="laplace",
        initial_share=0.1,
    ),
    "logistic": dataclasses.replace(
        DEFAULT["logistic"],
        n_estimators=200,
        max_depth=6,
        features_per_tree=None,
        count_share=0.2,
        curvature_scale=1.0,
        learning_rate=0.1,
        reg_lambda=10.0,
        pooling=0.0,
        initial_share=0.1,
    ),
}
"""The choices of the paper and of its published code, made sound.

Squared loss: the code's defaults, 150 trees of depth 2, gamma .1, eta .1, g* .1, r1 .2 in the code's units, max(15, n),
and a tenth of epsilon on a Laplace initial score. Logistic loss: the code's stored runs on Adult, 200 trees of depth 6,
full batch, Newton leaves, g* .5, about equal noise on both sums, lambda 10, no initial score.
"""


def preset_plan(preset: Preset, loss: Loss, budget: Budget, expected_rows: int | None) -> SGBDTPlan:
    """A preset's plan, noise still to be calibrated."""
    require_name("preset", preset, get_args(Preset))
    if preset == "default":
        plan, share = DEFAULT[loss], mean_label_share(budget, expected_rows)
        return dataclasses.replace(
            plan, adjacency=budget.adjacency, initial_share=plan.initial_share if share is None else share
        )
    plan = dataclasses.replace(PAPER[loss], adjacency=budget.adjacency)
    # Under replace-one a sample has no certified cost.
    return dataclasses.replace(plan, subsample=1.0) if budget.adjacency is Adjacency.REPLACE_ONE else plan
