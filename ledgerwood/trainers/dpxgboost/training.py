"""DP-XGBoost: boosting with candidates from private histograms, private splits by gain, and leaves with Laplace noise.

Grislain, Gonzalvez: "DP-XGBoost: Private Machine Learning at Scale" (2021). This file is its plan and its loop (section
4). Where the paper or its code is wrong, the sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Composed, Event, PoissonSampled, Repeated
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import MAX_DAMPING, Aggregator, CellCounts, LargeGradients, LeafCounts, Loss, Round
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import require_bounds, require_trees
from ledgerwood.trainers.base.fitting import fits_least, fitted, fitted_without_delta
from ledgerwood.trainers.base.forests import Forests, require_zero_start
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schema_purchase import SchemaPurchase
from ledgerwood.trainers.parts.candidates import even_thresholds, quantile_thresholds, tests_at
from ledgerwood.trainers.parts.greedy_trees import GainSplits, require_nodes
from ledgerwood.trainers.parts.initial_scores import InitialScore, InitialScoreKind
from ledgerwood.trainers.parts.laplace_counts import LaplaceCounts
from ledgerwood.trainers.parts.laplace_leaves import LEAST_LEAF_EPSILON, LaplaceLeaves, LeafRegularization, LeafRelease
from ledgerwood.trainers.parts.leaves import newton_leaves, pooled
from ledgerwood.trainers.parts.minimum_weight import merged_leaves, without_light_splits

Sketch = Literal["tree", "once", "none"]
MinimumBy = Literal["leaves", "levels", "none"]
_NAMES: dict[str, tuple[str, ...]] = {
    "loss": get_args(Loss),
    "sketch": get_args(Sketch),
    "large_gradients": get_args(LargeGradients),
    "leaf_release": get_args(LeafRelease),
    "leaf_regularization": get_args(LeafRegularization),
    "min_child_weight_by": get_args(MinimumBy),
    "initial_score": get_args(InitialScoreKind),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPXGBoostPlan:
    """All that DP-XGBoost will do, fixed and priced before a row is read.

    Args:
        adjacency: the relation under which every event is stated.
        loss: squared, on labels scaled to [-1, 1] (two classes are -1 and 1), or logistic. A row counts 1 in gains and
            leaves: the gain of the logistic loss's own hessians has no bound (docs/explanation/gains.md#newton-gain).
        n_estimators: T, number of trees.
        max_depth: levels of splits of each tree.
        max_bins: even steps of a numeric feature's range: the sketch's histogram, and the thresholds that there are.
        n_candidates: thresholds a numeric feature, at most.
        sketch: histograms of all numeric features are bought for each "tree", or "once" before the first, and their
            quantiles are the candidates; "none": even, public thresholds.
        n_numeric: m, how many of the schema's features are numeric; public.
        subsample: the paper's gamma; 1 is full batch.
        tree_epsilon: of one tree on its own sample, in nats: the common scale of the plan.
        sketch_share, split_share, leaf_share, weight_share: of a tree's epsilon for its sketch, all levels of splits,
            leaves, and the numbers of rows of all levels; relative to each other. What a plan does not buy leaves its
            share to the others.
        count_share: share of the leaves' epsilon that is spent on the number of rows ("sums").
        clip: g*, largest absolute gradient that counts, and largest absolute leaf value before the learning rate.
        large_gradients: a row beyond the clip is left out ("drop", gradient-based data filtering), or counts with the
            clip ("clip").
        reg_lambda: lambda > 0 of gains and leaves, in rows.
        learning_rate: eta.
        leaf_release: number of rows and sum of gradients of each leaf ("sums"), or their ratio ("ratio").
        leaf_regularization: of the leaves, "lambda", or "noise" for lambda and a multiple of the known noise, by
            `score_noise` ("sums").
        score_noise: stddev that the noise of all trees together may add to a score, in `clip`s ("noise").
        pooling: see `ledgerwood.trainers.parts.leaves.pooled`.
        min_child_weight: least released number of rows on either side of a split.
        min_child_weight_by: what is released to compare with it: the "leaves" (nothing more), each level's own numbers
            of rows ("levels"), or "none": no minimum.
        initial_score: see `InitialScore`.
        initial_multiplier: noise of each release of the initial score, scale or stddev over sensitivity.
        initial_share: share of the budget for the initial score: of mu**2 ("moments") or of epsilon (the others).
        once_share: share of the budget's epsilon for a sketch "once".
        once_epsilon: of that sketch, in nats.
        expected_rows: declared number of rows: a public guess, exact for the initial score "public_count".
        purchase: what is bought of the schema first; None where it is declared.
        weighted: whether rows may have their own weights, up to the schema's bound; "rows" then are rows of that
            weight.
        classes: K for one forest a class, which is told from all others: `n_estimators` is of each; 1 for one forest,
            whose trees the classes of an estimated schema share.
    """

    adjacency: Adjacency
    loss: Loss
    n_estimators: int
    max_depth: int
    max_bins: int
    n_candidates: int
    sketch: Sketch
    n_numeric: int
    subsample: float
    tree_epsilon: float
    sketch_share: float
    split_share: float
    leaf_share: float
    weight_share: float
    count_share: float
    clip: float
    large_gradients: LargeGradients
    reg_lambda: float
    learning_rate: float
    leaf_release: LeafRelease
    leaf_regularization: LeafRegularization
    score_noise: float
    pooling: float
    min_child_weight: float
    min_child_weight_by: MinimumBy
    initial_score: InitialScoreKind
    initial_multiplier: float
    initial_share: float
    once_share: float
    once_epsilon: float
    expected_rows: int | None = None
    purchase: SchemaPurchase | None = None
    weighted: bool = False
    classes: int = 1

    def __post_init__(self) -> None:
        require_bounds(self, _NAMES)
        require_trees("n_estimators", self.n_estimators)
        _validate.count("classes", self.classes, "forests")
        require_zero_start(self.classes, self.initial_score)
        _validate.count("n_candidates", self.n_candidates, "thresholds a feature")
        _validate.count("n_numeric", self.n_numeric, "features", minimum=0)
        _validate.rate("subsample", self.subsample, "probability")
        for name in ("tree_epsilon", "once_epsilon"):
            _validate.positive(name, getattr(self, name), "nats")
        for name in ("sketch_share", "split_share", "leaf_share", "weight_share"):
            _validate.positive(name, getattr(self, name), "share of a tree's epsilon")
        if not 0.0 < _validate.real("once_share", self.once_share, "share of the budget") < 1.0:
            raise _validate.fail("once_share", self.once_share, "in (0, 1)", "share of the budget")
        if _validate.positive("reg_lambda", self.reg_lambda, "rows") > MAX_DAMPING:
            raise _validate.fail("reg_lambda", self.reg_lambda, f"in (0, {MAX_DAMPING}]", "rows")
        _validate.positive("score_noise", self.score_noise, "clips")
        if not 0.0 <= _validate.real("pooling", self.pooling, "share") <= 1.0:
            raise _validate.fail("pooling", self.pooling, "in [0, 1]", "share of the mean number of rows")
        _validate.non_negative("min_child_weight", self.min_child_weight, "rows")
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
        self.initial  # noqa: B018

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
        """Of one of `count` releases of a part of a tree, in nats, rounded down."""
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
        """How one level is chosen."""
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
        """What is released of one tree's leaves."""
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
    def trees(self) -> int:
        """Number of trees of a forest."""
        return self.n_estimators

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
    def event(self) -> Event:
        """The whole plan: what the ledger grants."""
        bought = () if self.purchase is None else self.purchase.events
        once = (self.sketches.event,) if self.sketched and self.sketch == "once" else ()
        return Composed(
            (*bought, *self.initial.events, *once, Repeated(self.tree_event, count=self.n_estimators * self.classes))
        )

    def calibrated(self, budget: Budget) -> "DPXGBoostPlan":
        """This plan with the largest tree epsilon that fits the budget. Errors: as `fitted`."""
        return fitted(self, budget)

    def without_delta(self, budget: Budget) -> "DPXGBoostPlan":
        """See `fitted_without_delta`; `plan.tree_epsilon` over its `tree_epsilon` is what the delta buys."""
        return fitted_without_delta(self, budget)

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(self.n_estimators) * self.leaves.signal(rows * self.subsample / 2.0**self.max_depth)

    @property
    def trees_at_once(self) -> int:
        """Each tree is paid for."""
        return 1

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

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for trees that learn anything."""
        return fits_least(self.prepared(budget), budget)

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

    def of_forest(self, trees: int, forests: int) -> "DPXGBoostPlan":  # see `ForestPlan`
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
        """Of the denominator of released sums, in rows."""
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
    own, schedule = forests.plans(plan), forests.schedule
    tests: SplitTests | None = None
    if plan.max_depth and plan.sketched and plan.sketch == "once":
        with aggregator.open(plan.sketches.event, purpose="sketch") as round_:
            tests = plan.candidate_tests(cells, round_, purpose="sketch")
    elif plan.max_depth and not plan.sketched:
        tests = plan.candidate_tests(cells, None, purpose="sketch")
    event = plan.tree_event
    for number, (forest, _) in enumerate(schedule, start=1):
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
            progress(number, len(schedule))
    return forests.ensemble
