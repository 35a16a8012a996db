"""DP-XGBoost: boosting with candidates from private histograms, private splits by gain, and leaves with Laplace noise.

Grislain, Gonzalvez: "DP-XGBoost: Private Machine Learning at Scale" (2021). This file is its plan and its loop (section
4). Where the paper or its code is wrong, the sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events import Composed, Event, PoissonSampled
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import MAX_DAMPING, Aggregator, CellCounts, LeafCounts, Round
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import Count, Real, positive, share
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.plan import AbstractLaplacePlan
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.candidates import even_thresholds, quantile_thresholds, tests_at
from ledgerwood.trainers.parts.greedy_trees import GainSplits, require_nodes
from ledgerwood.trainers.parts.laplace_counts import LaplaceCounts
from ledgerwood.trainers.parts.laplace_leaves import LEAST_LEAF_EPSILON, LaplaceLeaves
from ledgerwood.trainers.parts.leaves import newton_leaves, pooled
from ledgerwood.trainers.parts.minimum_weight import merged_leaves, without_light_splits

Sketch = Literal["tree", "once", "none"]
MinimumBy = Literal["leaves", "levels", "none"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPXGBoostPlan(AbstractLaplacePlan):
    """All that DP-XGBoost will do, fixed and priced before a row is read. Fields of all systems: see its base classes.

    A row counts 1 in gains and leaves under either loss: the gain of the logistic loss's own hessians has no bound
    (docs/explanation/gains.md#newton-gain). `clip` is the largest absolute leaf value before the learning rate, too.

    Args:
        n_candidates: thresholds a numeric feature, at most.
        sketch: histograms of all numeric features are released for each "tree", or "once" before the first (ours), and
            their quantiles are the candidates; "none" (ours): even, public thresholds.
        n_numeric: m, how many of the schema's features are numeric; public.
        subsample: gamma; 1 is full batch.
        sketch_share, split_share, leaf_share, weight_share: of a tree's epsilon for its sketch, all levels of splits,
            leaves, and the numbers of rows of all levels; relative to each other. What a plan does not release leaves
            its share to the others.
        reg_lambda: lambda > 0 of gains and leaves, in rows.
        pooling: see `ledgerwood.trainers.parts.leaves.pooled`. Ours.
        min_child_weight: least released number of rows on either side of a split.
        min_child_weight_by: what is released to compare with it: the "leaves" (nothing more), each level's own numbers
            of rows ("levels"), or "none": no minimum.
        once_share: share of the budget's epsilon for a sketch "once".
        once_epsilon: of that sketch, in nats.
    """

    n_candidates: Annotated[int, Count("thresholds a feature")]
    sketch: Sketch
    n_numeric: Annotated[int, Count("features", minimum=0)]
    subsample: Annotated[float, Real("probability", high=1, holds_high=True)]
    sketch_share: Annotated[float, positive("share of a tree's epsilon")]
    split_share: Annotated[float, positive("share of a tree's epsilon")]
    leaf_share: Annotated[float, positive("share of a tree's epsilon")]
    weight_share: Annotated[float, positive("share of a tree's epsilon")]
    reg_lambda: Annotated[float, Real("rows", high=MAX_DAMPING, holds_high=True)]
    pooling: Annotated[float, Real("share of the mean number of rows", high=1, holds_low=True, holds_high=True)]
    min_child_weight: Annotated[float, Real("rows", holds_low=True)]
    min_child_weight_by: MinimumBy
    once_share: Annotated[float, share("share of the budget")]
    once_epsilon: Annotated[float, positive("nats")]

    def _require_whole(self) -> None:
        if self.leaf_release == "ratio" and (
            self.min_child_weight_by == "leaves" or self.leaf_regularization == "noise"
        ):
            raise InvalidParameter(
                "leaf_release='ratio' releases no number of rows, and divides before the noise is added: set "
                "min_child_weight_by='levels' or 'none', and leaf_regularization='lambda'"
            )
        # Checks what they have to be made of.
        self.leaves.leaf  # noqa: B018
        self.splits  # noqa: B018

    @property
    def shares(self) -> dict[str, float]:
        """Each part of a tree that is bought, and its share of the tree's epsilon; relative."""
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
        """True if candidates come from a histogram that is bought."""
        return bool(self.max_depth and self.n_numeric and self.sketch != "none")

    @property
    def sketches(self) -> LaplaceCounts:
        """One sketch: all features' histograms at once."""
        epsilon = self.epsilon_of("sketch") if self.sketch == "tree" else self.once_epsilon
        return LaplaceCounts(adjacency=self.adjacency, epsilon=epsilon)

    @property
    def splits(self) -> GainSplits:
        """The mechanism that chooses one level's splits."""
        return GainSplits(
            adjacency=self.adjacency,
            epsilon=self.epsilon_of("splits", self.max_depth) if self.max_depth else 1.0,
            loss=self.loss,
            clip=self.clip,
            reg_lambda=self.reg_lambda,
            large_gradients=self.large_gradients,
        )

    @property
    def weights(self) -> LaplaceCounts:
        """The numbers of rows of one level ("levels")."""
        return LaplaceCounts(adjacency=self.adjacency, epsilon=self.epsilon_of("weights", self.max_depth))

    @property
    def leaves(self) -> LaplaceLeaves:
        """The query for one tree's leaves."""
        return LaplaceLeaves(
            release=self.leaf_release,
            adjacency=self.adjacency,
            epsilon=self.epsilon_of("leaves"),
            loss=self.loss,
            clip=self.clip,
            large_gradients=self.large_gradients,
            reg_lambda=self.reg_lambda,
            count_share=self.count_share,
            weighted=self.weighted,
        )

    @property
    def tree_event(self) -> Event:
        """One tree: sketch, splits, numbers of rows and leaves on one sample, drawn afresh unless it is full batch."""
        parts: list[Event] = []
        if "sketch" in self.shares:
            parts.append(self.sketches.event)
        for _ in range(self.max_depth):
            parts.append(self.splits.event)
            if self.min_child_weight_by == "levels":
                parts.append(self.weights.event)
        event = Composed((*parts, self.leaves.event))
        return event if self.subsample == 1.0 else PoissonSampled(event, sampling_rate=self.subsample)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The sketch, where one is made once; then a draw a tree, whose step is its number from 1."""
        once = (Stage.once(self.sketches.event, 0),) if self.sketched and self.sketch == "once" else ()
        return (*once, Stage(event=self.tree_event, steps=range(1, self.n_estimators * self.classes + 1)))

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(self.n_estimators) * self.leaves.signal(rows * self.subsample / 2.0**self.max_depth)

    @property
    def least_tree_epsilon(self) -> float:
        """Below it leaves are nothing but noise."""
        shares = self.shares
        return LEAST_LEAF_EPSILON[self.leaf_release] * math.fsum(shares.values()) / shares["leaves"]

    def require_fit(self) -> None:
        """Refuse noise of the trees that cannot be drawn, before a budget moves.

        Raises:
            InvalidParameter: it is too large for a statistic's grid.
        """
        self.leaves.require_fit()
        if self.sketched:
            self.sketches.require_fit(CellCounts(features=tuple(range(self.n_numeric)), cells=self.max_bins))
        if "weights" in self.shares:
            self.weights.require_fit(LeafCounts())

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
        """With what is drawn before the trees at its share of the budget."""
        plan = dataclasses.replace(
            self, initial_multiplier=self.initial.with_share(self.initial_share, budget).multiplier
        )
        if self.sketched and self.sketch == "once":
            shares = split(budget, {"sketch": self.once_share, "rest": 1.0 - self.once_share}, currency="epsilon")
            plan = dataclasses.replace(plan, once_epsilon=shares["sketch"].epsilon)
        return plan

    def candidate_tests(self, cells: Sequence[FeatureCells], round_: Round | None, *, purpose: str) -> SplitTests:
        """Thresholds of the numeric features, from a sketch of the round or evenly without one, and all equalities."""
        numeric = tuple(feature for feature, each in enumerate(cells) if each.ordered)
        if round_ is None or not numeric:
            even = even_thresholds(self.max_bins, self.n_candidates)
            return tests_at(dict.fromkeys(numeric, even), cells)
        query = CellCounts(features=numeric, cells=self.max_bins)
        counts = self.sketches.released(query, round_, purpose=purpose).reshape(len(numeric), self.max_bins)
        return tests_at(
            {
                feature: quantile_thresholds(own, self.n_candidates)
                for feature, own in zip(numeric, counts, strict=True)
            },
            cells,
        )

    def grown(
        self, tests: SplitTests, ensemble: Ensemble, round_: Round, *, purpose: str, positive: int | None = None
    ) -> TreeStructure:
        """A tree's structure: level by level, each followed by its numbers of rows where these undo splits."""
        structure, splits = TreeStructure.root(), self.splits
        open_nodes = np.ones(1, dtype=np.bool_)
        for level in range(1, self.max_depth + 1):
            structure = splits.deeper(
                structure, tests, ensemble, round_, purpose=f"level {level} of {purpose}", positive=positive
            )
            if self.min_child_weight_by == "levels":
                rows = self.weights.released(
                    LeafCounts().of(structure), round_, purpose=f"rows of level {level} of {purpose}"
                )
                structure, open_nodes = without_light_splits(structure, rows, open_nodes, self.min_child_weight)
        return structure

    def of_forest(self, trees: int, forests: int) -> "DPXGBoostPlan":
        """The plan as one of several forests follows it: the same draws, and its own post-processing."""
        return dataclasses.replace(self, n_estimators=trees, classes=1)

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from what was released; shape (n_leaves,)."""
        if self.leaf_release == "ratio":
            steps = -released[:, 0]
        else:
            sums = merged_leaves(released, self.min_child_weight) if self.min_child_weight_by == "leaves" else released
            steps = newton_leaves(pooled(sums[:, 0], self.pooling), sums[:, 1], reg_lambda=self.leaf_lambda, rule="add")
        return self.learning_rate * np.clip(steps, -self.clip, self.clip)

    @property
    def leaf_lambda(self) -> float:
        """Lambda of the denominator of released sums, in rows."""
        if self.leaf_regularization == "lambda":
            return self.reg_lambda
        return self.leaves.lambda_by_noise(
            trees=self.n_estimators, learning_rate=self.learning_rate, score_noise=self.score_noise * self.clip
        )


def train(plan: DPXGBoostPlan, aggregator: Aggregator, progress: Progress | None = None) -> Ensemble:
    """Section 4: for each tree draw a sample; sketch, split and average on it; `plan.n_estimators` times.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        progress: called with (trees done, trees in all).
    """
    cells = aggregator.schema.cells(plan.max_bins)
    forests = Forests.of(plan, aggregator)
    own, order = forests.plans(plan), forests.schedule
    tests = plan.candidate_tests(cells, None, purpose="sketch") if plan.max_depth and not plan.sketched else None
    for event, number in plan.schedule():
        if number == 0:
            with aggregator.open(event, purpose="sketch") as round_:
                tests = plan.candidate_tests(cells, round_, purpose="sketch")
            continue
        forest, _ = order[number - 1]
        purpose, ensemble, positive = f"tree {number}", forests.members[forest], forests.positive(forest)
        with aggregator.open(event, purpose=purpose) as round_:
            structure = TreeStructure.root()
            if plan.max_depth:
                sketched = (
                    plan.candidate_tests(cells, round_, purpose=f"sketch of {purpose}") if tests is None else tests
                )
                structure = plan.grown(sketched, ensemble, round_, purpose=purpose, positive=positive)
            released = plan.leaves.released(
                structure, ensemble, round_, purpose=f"leaves of {purpose}", positive=positive
            )
        forests.add(forest, Tree(structure=structure, values=own[forest].leaf_values(released)))
        if progress is not None:
            progress(number, len(order))
    return forests.ensemble
