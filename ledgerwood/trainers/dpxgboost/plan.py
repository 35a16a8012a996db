"""DP-XGBoost's plan and presets: candidates from private histograms, private splits by gain, leaves with Laplace noise.

Grislain, Gonzalvez: "DP-XGBoost: Private Machine Learning at Scale" (2021). Where the paper or its code is wrong, the
sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Composed, Event, LaplaceEvent
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import CellCounts, CellHessians, LeafCounts, LeafQuery, Loss
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoxShifts, LaplaceMechanism
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import Count, Real, positive, require_name, share
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.greedy_trees import (
    LEAST_LEAF_EPSILON,
    AbstractGreedyPlan,
    laplace_noise,
    require_nodes,
)
from ledgerwood.trainers.parts.leaves import merged_leaves, newton_leaves, pooled
from ledgerwood.trainers.parts.sampled_trees import AbstractSampledPlan, Sampling, Subsample

Preset = Literal["default", "paper"]
Sketch = Literal["tree", "once", "none"]
SketchWeights = Literal["hessians", "counts"]
MinimumBy = Literal["leaves", "levels", "none"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPXGBoostPlan(AbstractSampledPlan, AbstractGreedyPlan):
    """The plan of DP-XGBoost: all queries and their noise. Fields that all systems have: see its base classes.

    A row counts 1 in gains and leaves under either loss: the gain of the logistic loss's own hessians has no bound
    (docs/explanation/gains.md#newton-gain). `clip` is the largest absolute leaf value before the learning rate, too.

    Args:
        n_candidates: thresholds a numeric feature, at most.
        sketch: histograms of all numeric features are released for each "tree", or "once" before the first (ours), and
            their quantiles are the candidates; "none" (ours): even, public thresholds.
        sketch_weights: a row counts with its hessian of the loss, times its weight, in a tree's sketch ("hessians"), or
            1 ("counts", ours). Before the first tree all hessians are alike, and rows are counted.
        n_numeric: m, how many of the schema's features are numeric; public.
        subsample: gamma, the probability with which a row takes part in a tree; 1 is full batch.
        sampling: "poisson", a coin for each row and tree (the paper's); "allocation" puts each row into exactly
            round(subsample * trees) of the trees of all forests, chosen uniformly, which costs less where there is a
            delta, and needs one. Ours.
        sketch_share, split_share, leaf_share, weight_share: of a tree's epsilon for its sketch, all levels of splits,
            leaves, and the numbers of rows of all levels; relative to each other. What a plan does not release leaves
            its share to the others.
        pooling: see `pooled`. Ours.
        min_child_weight: least released number of rows on either side of a split.
        min_child_weight_by: what is released to compare with it: the "leaves" (nothing more), each level's own numbers
            of rows ("levels"), or "none": no minimum.
        once_share: share of the budget's epsilon for a sketch "once".
        once_epsilon: of that sketch, in nats.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (systems.GRISLAIN_2021, systems.CHEN_2016)

    n_candidates: Annotated[int, Count("thresholds a feature")]
    sketch: Sketch
    sketch_weights: SketchWeights
    n_numeric: Annotated[int, Count("features", minimum=0)]
    subsample: Subsample
    sketch_share: Annotated[float, positive("share of a tree's epsilon")]
    split_share: Annotated[float, positive("share of a tree's epsilon")]
    leaf_share: Annotated[float, positive("share of a tree's epsilon")]
    weight_share: Annotated[float, positive("share of a tree's epsilon")]
    pooling: Annotated[float, Real("share of the mean number of rows", high=1, holds_low=True, holds_high=True)]
    min_child_weight: Annotated[float, Real("rows", holds_low=True)]
    min_child_weight_by: MinimumBy
    once_share: Annotated[float, share("share of the budget")]
    once_epsilon: Annotated[float, positive("nats")] = 1.0
    sampling: Sampling = "poisson"

    def _require_whole(self) -> None:
        if self.leaf_release == "ratio" and (
            self.min_child_weight_by == "leaves" or self.leaf_regularization == "noise"
        ):
            raise InvalidParameter(
                "leaf_release='ratio' releases no number of rows, and divides before the noise is added: set "
                "min_child_weight_by='levels' or 'none', and leaf_regularization='lambda'"
            )
        self.require_sampling()
        self.leaf()  # checks what it has to be made of

    @property
    def shares(self) -> dict[str, float]:
        """Each part of a tree that is released, and its share of the tree's epsilon; relative."""
        shares = {"leaves": self.leaf_share}
        if self.max_depth:
            shares["splits"] = self.split_share
            if self.sketch == "tree" and self.n_numeric:
                shares["sketch"] = self.sketch_share
            if self.min_child_weight_by == "levels":
                shares["weights"] = self.weight_share
        return shares

    def epsilon_of(self, part: str, count: int = 1) -> float:
        """Epsilon of each of `count` releases of a part of a tree, in nats, rounded down."""
        tree = Budget(epsilon=self.tree_epsilon, delta=0.0, adjacency=self.adjacency)
        return split(tree, self.shares)[part].epsilon_each(count)

    @property
    def sketched(self) -> bool:
        """True if candidates come from a released histogram."""
        return bool(self.max_depth and self.n_numeric and self.sketch != "none")

    @property
    def sketch_epsilon(self) -> float:
        """Epsilon of one sketch, all features' histograms at once."""
        return self.epsilon_of("sketch") if self.sketch == "tree" else self.once_epsilon

    @property
    def split_epsilon(self) -> float:
        """See `AbstractGreedyPlan`; a plan of depth 0 has no use for it."""
        return self.epsilon_of("splits", self.max_depth) if self.max_depth else 1.0

    @property
    def weight_epsilon(self) -> float:
        """Epsilon of the numbers of rows of one level ("levels")."""
        return self.epsilon_of("weights", self.max_depth)

    @property
    def leaf_epsilon(self) -> float:
        """See `AbstractGreedyPlan`."""
        return self.epsilon_of("leaves")

    def sketch_of(self, features: tuple[int, ...]) -> CellCounts | CellHessians:
        """The histograms of these numeric features that candidates are made of.

        Of the squared loss without weights each hessian is 1, and whole rows are counted.
        """
        counts = CellCounts(features=features, cells=self.max_bins)
        alike = self.sketch == "once" or (self.loss == "squared" and not self.weighted)
        return counts if alike or self.sketch_weights == "counts" else CellHessians(counts=counts, loss=self.loss)

    def count_noise(
        self, epsilon: float, query: CellCounts | CellHessians | LeafCounts | LeafQuery[BoxShifts]
    ) -> LaplaceMechanism:
        """Noise of numbers of rows: of scale m / epsilon for the histograms of m features, m / 4 of their hessians."""
        return laplace_noise(epsilon, query.sensitivity(self.adjacency))

    def count_event(self, epsilon: float) -> Event:
        """One release of numbers of rows."""
        return LaplaceEvent(noise_multiplier=float_up(1 / Fraction(epsilon)), adjacency=self.adjacency)

    @property
    def tree_release(self) -> Event:
        """One tree: sketch, splits, numbers of rows and leaves on the rows that are in it."""
        parts: list[Event] = []
        if "sketch" in self.shares:
            parts.append(self.count_event(self.sketch_epsilon))
        for _ in range(self.max_depth):
            parts.append(self.split_event)
            if self.min_child_weight_by == "levels":
                parts.append(self.count_event(self.weight_epsilon))
        return Composed((*parts, self.leaf_event))

    @property
    def tree_event(self) -> Event:
        """The event of one tree: one draw, on a fresh sample unless the plan is full batch; or a step of a draw."""
        return self.one_tree(self.tree_release)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The sketch, where one is made once; then a draw a tree, whose step is its number from 1, or one for all."""
        once = (
            (Stage.once(self.count_event(self.sketch_epsilon), 0),) if self.sketched and self.sketch == "once" else ()
        )
        return (*once, self.tree_stage(self.tree_release, 1))

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(self.n_estimators) * self.signal(rows * self.share_of_rows / 2.0**self.max_depth)

    @property
    def least_tree_epsilon(self) -> float:
        """Epsilon of a tree below which leaves are nothing but noise."""
        shares = self.shares
        return LEAST_LEAF_EPSILON[self.leaf_release] * math.fsum(shares.values()) / shares["leaves"]

    def require_fit(self) -> None:
        """Refuse noise of the trees that cannot be drawn, before a budget moves.

        Raises:
            InvalidParameter: it is too large for a statistic's grid.
        """
        AbstractGreedyPlan.require_fit(self)
        if self.sketched:
            query = self.sketch_of(tuple(range(self.n_numeric)))
            self.count_noise(self.sketch_epsilon, query).require_fit(query.grid)
        if "weights" in self.shares:
            self.count_noise(self.weight_epsilon, LeafCounts()).require_fit(LeafCounts().grid)

    def require_room(self, cells: Sequence[FeatureCells]) -> None:
        """Refuse levels whose histogram would not fit, before a budget moves.

        Args:
            cells: of each feature of the schema.

        Raises:
            InvalidParameter: the last level has more nodes times cells or candidates than a choice takes.
        """
        if not self.max_depth:
            return
        tests, width = 0, 0
        for each in cells:
            thresholds = min(self.n_candidates, max(each.ordered - 1, 0))
            tests += thresholds * (1 + len(each.equality)) + len(each.equality) if each.ordered else len(each.equality)
            width += each.ordered + len(each.equality) + 1
        require_nodes(
            self.max_depth,
            max(tests, width),
            f"{tests} candidates over {width} cells: fewer bins, candidates or categories allow more",
        )

    def prepared(self, budget: Budget) -> "DPXGBoostPlan":
        """With what is drawn before the trees at its share of the budget.

        Raises:
            InvalidParameter: an allocation without a delta.
        """
        if self.sampling == "allocation" and budget.delta == 0.0:
            raise InvalidParameter(
                "sampling='allocation' needs delta > 0: by pure privacy (delta=0) it costs as much as a row's trees "
                f"without any sample, {self.trees_of_row} of {self.sampled_trees}; set delta, such as 1e-6, or "
                "sampling='poisson'",
                parameter="delta",
            )
        plan = AbstractGreedyPlan.prepared(self, budget)
        if self.sketched and self.sketch == "once":
            shares = split(budget, {"sketch": self.once_share, "rest": 1.0 - self.once_share}, currency="epsilon")
            plan = dataclasses.replace(plan, once_epsilon=shares["sketch"].epsilon)
        return plan

    def of_forest(self, trees: int, forests: int) -> "DPXGBoostPlan":
        """See `AbstractBoostedPlan`; which trees a row takes part in is the whole plan's."""
        return dataclasses.replace(
            self, n_estimators=trees, classes=1, subsample=self.share_of_rows, sampling="poisson"
        )

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from what was released; shape (n_leaves,)."""
        if self.leaf_release == "ratio":
            steps = -released[:, 0]
        else:
            sums = merged_leaves(released, self.min_child_weight) if self.min_child_weight_by == "leaves" else released
            reg_lambda = self.lambda_by_noise(self.clip)
            steps = newton_leaves(pooled(sums[:, 0], self.pooling), sums[:, 1], reg_lambda=reg_lambda)
        return self.learning_rate * np.clip(steps, -self.clip, self.clip)

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`; the noises of leaves that share their sums add up."""
        variances = np.full((len(released), 1), 2.0 * self.leaf_mechanism().scales[-1] ** 2)
        if self.leaf_release == "ratio":
            noise = np.sqrt(variances[:, 0])
        else:
            sums = np.concatenate((released, variances), axis=1)
            sums = merged_leaves(sums, self.min_child_weight) if self.min_child_weight_by == "leaves" else sums
            reg_lambda = self.lambda_by_noise(self.clip)
            noise = newton_leaves(pooled(sums[:, 0], self.pooling), -np.sqrt(sums[:, -1]), reg_lambda=reg_lambda)
        return np.asarray(self.learning_rate * np.minimum(noise, self.clip))


LARGE_TABLE = 100_000
"""Rows beyond which the paper takes a minimum child weight of 500 and not of 50."""
PAPER = DPXGBoostPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=20,
    max_depth=6,
    max_bins=1024,
    n_candidates=32,
    sketch="tree",
    sketch_weights="hessians",
    n_numeric=0,
    subsample=0.1,
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
    min_child_weight=50.0,
    min_child_weight_by="leaves",
    initial_score="zero",
    initial_share=0.05,
    once_share=0.1,
)
"""The choices of the paper's section 5, made sound.

20 trees of depth 6, eta .3, lambda .1, a tenth of the rows a tree, thirds of a tree's epsilon for sketch, splits and
leaves, 1024 bins a feature, gradients beyond 1 left out, a minimum child weight of 50 (of 500 for more than 100,000
rows), classes as labels -1 and 1.
"""
_REGRESSION = dataclasses.replace(
    PAPER,
    max_depth=5,
    max_bins=32,
    sketch="none",
    subsample=1.0,
    split_share=0.6,
    count_share=0.1,
    clip=0.2,
    large_gradients="clip",
    reg_lambda=1.0,
    learning_rate=0.5,
    leaf_regularization="noise",
    pooling=0.5,
    min_child_weight_by="none",
    initial_score="laplace",
)
DEFAULT: Mapping[Loss, DPXGBoostPlan] = {
    "squared": _REGRESSION,
    "logistic": dataclasses.replace(
        _REGRESSION,
        loss="logistic",
        max_depth=4,
        split_share=2.0,
        clip=0.75,
        learning_rate=1.5,
        score_noise=1.6,
        initial_score="zero",
    ),
}
"""The values that predict best without tuning (docs/explanation/dpxgboost.md#dpxgboost-defaults)."""


def preset_plan(
    preset: Preset, loss: Loss, budget: Budget, expected_rows: int | None, n_numeric: int, *, classes: int = 1
) -> DPXGBoostPlan:
    """A preset's plan, still to be calibrated; the default has more trees for more rows."""
    require_name("preset", preset, get_args(Preset))
    large = expected_rows is not None and expected_rows > LARGE_TABLE
    plan = dataclasses.replace(
        PAPER if preset == "paper" else DEFAULT[loss],
        adjacency=budget.adjacency,
        n_numeric=n_numeric,
        min_child_weight=500.0 if large else 50.0,
    )
    if preset == "paper":
        # Under replace-one a sampled plan has no certified cost.
        full_batch = budget.adjacency is Adjacency.REPLACE_ONE
        return dataclasses.replace(plan, subsample=1.0) if full_batch else plan
    if expected_rows is None:
        return plan
    # What a row can do to a tree and the noise on it are in balance where trees grow like this.
    rows = budget.epsilon * expected_rows / classes
    factor, fewest = (0.025, 15) if loss == "logistic" else (0.1, 6)
    return dataclasses.replace(
        plan,
        n_estimators=min(max(round(factor * rows ** (2 / 3)), fewest), 300),
        # The mean label should be known to about a tenth of a half range.
        initial_share=min(max(30.0 / rows, 0.02), 0.3),
    )
