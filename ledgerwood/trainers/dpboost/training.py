"""DPBoost: greedy trees whose splits and leaves are both bought, in ensembles of trees over disjoint rows.

Li, Wu, Wen, He: "Privacy-Preserving Gradient Boosting Decision Trees" (2020). This file is its plan and its loop
(Algorithms 1 and 2). Where the paper or its code is wrong, the sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events import Composed, Parallel, Repeated
from ledgerwood.accounting.splitting import Share, split
from ledgerwood.curator import MAX_DAMPING, STEP, Aggregator, Round
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import Count, Real, positive, share
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.plan import AbstractLaplacePlan
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.greedy_trees import Candidates, GainSplits, require_levels
from ledgerwood.trainers.parts.laplace_leaves import LEAST_LEAF_EPSILON, LaplaceLeaves
from ledgerwood.trainers.parts.leaves import newton_leaves

Assignment = Literal["geometric", "halving"]
CandidateKind = Literal["grid", "gridless"]
MAX_GROUPS = 10_000
"""Trees of an ensemble, at most: each is a group of its own in the event, and far fewer are left without a row."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPBoostPlan(AbstractLaplacePlan):
    """All that DPBoost will do, fixed and priced before a row is read. Fields of all systems: see its base classes.

    Loss "squared" is the paper's, on labels scaled to [-1, 1] or classes as -1 and 1; "logistic" is ours. Either way a
    row counts 1 in every denominator.

    Args:
        learning_rate: eta, in (0, 1].
        trees_per_ensemble: T_e, trees that share the rows among them, at most 10,000; 1: every tree sees all rows.
        assignment: share of tree t = 0, 1, ... of an ensemble, one independent draw a row: "geometric", eta (1 - eta)^t
            over their sum; "halving", 2^-(t + 1), the rest in no tree. A tree alone has all rows.
        candidates: "grid", each border a candidate; or "gridless", for many thousands of bins, at a cost per row and
            not per candidate, every feature weighing the same.
        leaf_share: share of a tree's epsilon for its leaves; the levels divide the rest evenly.
        geometric_clipping: tree t = 1, 2, ... of an ensemble has its ratios clipped to clip (1 - eta)^(t-1) ("ratio").
        reg_lambda: lambda > 0 of gains and leaves, in rows.
        leaf_clamp: largest absolute leaf value before the learning rate; None for no limit. Post-processing, ours.
    """

    learning_rate: Annotated[float, Real("factor on a leaf", high=1, holds_high=True)]
    trees_per_ensemble: Annotated[int, Count("trees")]
    assignment: Assignment
    candidates: CandidateKind
    leaf_share: Annotated[float, share("share of a tree")]
    geometric_clipping: bool
    reg_lambda: Annotated[float, Real("rows", low=STEP, high=MAX_DAMPING, holds_low=True, holds_high=True)]
    leaf_clamp: Annotated[float, positive("units of the score")] | None

    def _require_whole(self) -> None:
        if min(self.n_estimators, self.trees_per_ensemble) > MAX_GROUPS:
            raise _validate.fail("trees_per_ensemble", self.trees_per_ensemble, f"at most {MAX_GROUPS}", "trees")
        if self.leaf_release == "sums" and self.geometric_clipping:
            raise InvalidParameter("geometric_clipping=True clips the leaf's ratio, which leaf_release='sums' has not")
        if self.leaf_release == "ratio" and self.leaf_regularization == "noise":
            raise InvalidParameter(
                "leaf_regularization='noise' needs leaf_release='sums': a ratio's noise is added at the end"
            )
        self.leaves(0).mechanism  # noqa: B018  # checks the clip

    @property
    def splits(self) -> GainSplits:
        """How one level of a tree is chosen; a plan of depth 0 has no use for it."""
        epsilon = self._share("splits").epsilon_each(self.max_depth or 1)
        return GainSplits(
            adjacency=self.adjacency, epsilon=epsilon, loss=self.loss, clip=self.clip, reg_lambda=self.reg_lambda,
            large_gradients=self.large_gradients,
        )  # fmt: skip

    def leaves(self, place: int) -> LaplaceLeaves:
        """The leaves of the tree at this place of its ensemble, from 0; all have one privacy cost."""
        epsilon = self._share("leaves").epsilon if self.max_depth else self.tree_epsilon
        leaf_clip = max(self.clip * (1.0 - self.learning_rate) ** place, STEP) if self.geometric_clipping else None
        return LaplaceLeaves(
            release=self.leaf_release, adjacency=self.adjacency, epsilon=epsilon, loss=self.loss, clip=self.clip,
            large_gradients=self.large_gradients, reg_lambda=self.reg_lambda, leaf_clip=leaf_clip,
            count_share=self.count_share, weighted=self.weighted,
        )  # fmt: skip

    def _share(self, part: str) -> Share:
        tree = Budget(epsilon=self.tree_epsilon, delta=0.0, adjacency=self.adjacency)
        return split(tree, {"splits": 1.0 - self.leaf_share, "leaves": self.leaf_share})[part]

    @property
    def tree_event(self) -> Composed:
        """One tree: its levels, one after another, then its leaves. The same for every tree."""
        levels = (Repeated(self.splits.event, count=self.max_depth),) if self.max_depth else ()
        return Composed((*levels, self.leaves(0).event))

    def shares(self, trees: int) -> tuple[float, ...]:
        """The probability of each tree of an ensemble of so many."""
        if trees == 1:
            return (1.0,)
        if self.assignment == "halving":
            return tuple(2.0 ** -(place + 1) for place in range(trees))
        weights = [(1.0 - self.learning_rate) ** place for place in range(trees)]
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    @property
    def ensembles(self) -> tuple[tuple[int, int], ...]:
        """(number of trees, how many such ensembles), in their order; the last one of each forest may be smaller."""
        full, rest = divmod(self.n_estimators, self.trees_per_ensemble)
        found = ((self.trees_per_ensemble, full), (rest, 1))
        return tuple((size, count * self.classes) for size, count in found if size and count)

    def ensemble_event(self, trees: int) -> Parallel:
        """One ensemble of so many trees: one draw, a group of rows a tree, drawn afresh."""
        return Parallel((self.tree_event,) * trees, probabilities=self.shares(trees))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """A draw an ensemble; its step is the number of its first tree."""
        found, first = [], 0
        for size, count in self.ensembles:
            found.append(Stage(event=self.ensemble_event(size), steps=range(first, first + size * count, size)))
            first += size * count
        return tuple(found)

    def tests(self, cells: Sequence[FeatureCells]) -> Candidates:
        """What a node may test, of the schema's cells.

        Raises:
            InvalidParameter: features that cannot be split, or trees too deep for so many candidates.
        """
        found: Candidates = SplitTests.every(cells) if self.candidates == "grid" else tuple(cells)
        require_levels(found, depth=self.max_depth)
        return found

    @property
    def least_tree_epsilon(self) -> float:
        """Below it leaves are nothing but noise."""
        return LEAST_LEAF_EPSILON[self.leaf_release] / (self.leaf_share if self.max_depth else 1.0)

    def require_fit(self) -> None:
        """Refuse noise of the leaves that cannot be drawn; no tree has more than the first of an ensemble."""
        self.leaves(0).require_fit()

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(
            math.fsum(
                count * self.leaves(place).signal(rows * share / 2.0**self.max_depth) ** 2
                for size, count in self.ensembles
                for place, share in enumerate(self.shares(size))
            )
        )

    def of_forest(self, trees: int, forests: int) -> "DPBoostPlan":
        """The plan as one of several forests follows it: the same draws, and its own post-processing."""
        return dataclasses.replace(self, n_estimators=trees, classes=1)

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from what was released; shape (n_leaves,)."""
        if self.leaf_release == "ratio":
            steps = -released[:, 0]
        else:
            steps = newton_leaves(released[:, 0], released[:, 1], reg_lambda=self._sum_damping, rule="add")
        if self.leaf_clamp is not None:
            steps = np.clip(steps, -self.leaf_clamp, self.leaf_clamp)
        return self.learning_rate * steps

    @property
    def _sum_damping(self) -> float:
        """Lambda of the denominator of released sums, in rows."""
        if self.leaf_regularization == "lambda":
            return self.reg_lambda
        unit = self.clip if self.loss == "squared" else 1.0
        return self.leaves(0).lambda_by_noise(
            trees=self.n_estimators, learning_rate=self.learning_rate, score_noise=self.score_noise * unit
        )


def train(plan: DPBoostPlan, aggregator: Aggregator, progress: Progress | None = None) -> Ensemble:
    """Algorithm 2: ensembles in sequence over all rows; inside one, each tree over its own rows.

    Deviations: the table of docs/explanation/dpboost.md#dpboost-deviations.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        progress: called with (trees done, trees in all).
    """
    cells = aggregator.schema.cells(plan.max_bins)
    candidates = plan.tests(cells) if plan.max_depth else None
    forests = Forests.of(plan, aggregator)
    own, order = forests.plans(plan), forests.schedule
    for ensemble, (event, first) in enumerate(plan.schedule(), start=1):
        assert isinstance(event, Parallel)  # a group of rows a tree
        with aggregator.open_groups(event, purpose=f"ensemble {ensemble}") as groups:
            for place in range(len(event.events)):
                number = first + place + 1
                forest, _ = order[number - 1]
                tree = train_tree(
                    own[forest],
                    place,
                    candidates,
                    forests.members[forest],
                    groups.round(place),
                    name=f"tree {number}",
                    positive=forests.positive(forest),
                )
                forests.add(forest, tree)
                if progress is not None:
                    progress(number, len(order))
    return forests.ensemble


def train_tree(
    plan: DPBoostPlan,
    place: int,
    candidates: Candidates | None,
    ensemble: Ensemble,
    round_: Round,
    *,
    name: str,
    positive: int | None = None,
) -> Tree:
    """Algorithm 1: one level after another by the exponential mechanism on the gain, then the leaves with noise.

    Args:
        plan: calibrated.
        place: of the tree in its ensemble, from 0.
        candidates: the tests that a node may make; None at depth 0.
        ensemble: released so far.
        round_: over the tree's rows.
        name: of the tree, for the ledger.
        positive: the class that is told from all others, of several.
    """
    structure = TreeStructure.root()
    for level in range(plan.max_depth):  # lines 4 to 10; all nodes of a level at once
        assert candidates is not None  # of a plan with levels
        purpose = f"splits of {name}, level {level + 1}"
        structure = plan.splits.deeper(structure, candidates, ensemble, round_, purpose=purpose, positive=positive)
    # Lines 11 to 14.
    released = plan.leaves(place).released(structure, ensemble, round_, purpose=f"leaves of {name}", positive=positive)
    return Tree(structure=structure, values=plan.leaf_values(released))
