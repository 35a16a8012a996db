"""A private random forest: random trees of public structure, whose leaves hold noisy means of the labels."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np

import ledgerwood as lw
from ledgerwood.curator import Aggregator, LeafMoments, Loss
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.mechanisms import EllipticalGaussianMechanism
from ledgerwood.trainers import AbstractClassifier, AbstractRegressor, AbstractTreeEstimator, AbstractTreePlan, System
from ledgerwood.trainers.base.bounds import Trees, positive
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.splits import random_tree

LEAF = LeafMoments(loss="squared", clip=1.0)
"""Number of rows and sum of -label of each leaf, with labels in [-1, 1]: a row moves them by at most (1, 1)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForestPlan(AbstractTreePlan):
    """All that the forest will do: one Gaussian release of all leaves for each tree, over all rows.

    Args:
        n_estimators: the number of trees.
        noise_multiplier: of one tree's leaves; found by `calibrated`.
    """

    n_estimators: Trees
    noise_multiplier: Annotated[float, positive("stddev / L2 sensitivity")] = 1.0
    loss: Loss = "squared"
    clip: float = 1.0

    def _require_whole(self) -> None:
        if self.purchase is not None:
            raise lw.PrivacyError("the forest needs a declared schema")

    @property
    def mechanism(self) -> EllipticalGaussianMechanism:
        """The noise of one tree: half of its cost for the numbers of rows, half for the sums."""
        return EllipticalGaussianMechanism(stddevs=(self.noise_multiplier * 2**0.5,) * 2)

    @property
    def tree_event(self) -> lw.Event:
        """One tree's leaves."""
        return self.mechanism.event(LEAF.sensitivity(self.adjacency), self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One draw a tree: the ledger grants them all, and the loop walks them."""
        return (Stage(event=self.tree_event, steps=range(self.n_estimators)),)

    def calibrated(self, budget: lw.Budget) -> Self:
        """This plan with the least noise that fits the budget."""
        noise = lw.calibrate(lambda m: dataclasses.replace(self, noise_multiplier=m).event, budget)
        return dataclasses.replace(self, noise_multiplier=noise)

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together."""
        return rows / 2.0**self.max_depth * self.n_estimators**0.5 / self.mechanism.stddevs[1]


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractForest(AbstractTreeEstimator):
    """Parameters of both estimators: see `ForestPlan`."""

    _plan_type: ClassVar[type[Any]] = ForestPlan

    n_estimators: int = 16
    max_depth: int = 4
    max_bins: int = 32

    def _uncalibrated_plan(self, schema: Any) -> ForestPlan:
        if not isinstance(schema, lw.Schema):
            raise lw.PrivacyError("schema=None: the forest needs a declared schema")
        return ForestPlan(
            adjacency=self.budget.adjacency, max_depth=self.max_depth, max_bins=self.max_bins,
            n_estimators=self.n_estimators,
        )  # fmt: skip

    def _train(
        self, plan: ForestPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Any
    ) -> Ensemble:
        cells, trees = aggregator.schema.cells(plan.max_bins), []
        start = Ensemble(initial_score=0.0)  # whose gradients are the labels themselves
        for event, number in plan.schedule():
            structure = random_tree(
                cells, depth=plan.max_depth, features=range(len(cells)), numeric_weight=1.0, generator=generator
            )
            with aggregator.open(event, purpose=f"tree {number + 1}") as round_:
                release = round_.release(LEAF.of(structure, start), plan.mechanism, purpose=f"leaves {number + 1}")
            count, total = release.real.T
            means = np.clip(-total / np.maximum(count, 1.0), -1.0, 1.0)
            # What else the release tells, for those who read the model: each leaf's rows, and the noise of its value.
            noise = np.minimum(plan.mechanism.stddevs[1] / np.maximum(count, 1.0), 1.0) / plan.n_estimators
            trees.append(Tree(structure=structure, values=means / plan.n_estimators, weights=count, noise=noise))
            progress(number + 1, plan.n_estimators)
        return Ensemble(initial_score=0.0, trees=tuple(trees))


@final
class ForestRegressor(AbstractRegressor, AbstractForest):
    """A private random forest for a numeric target. Parameters: see `AbstractForest`."""


@final
class ForestClassifier(AbstractClassifier, AbstractForest):
    """A private random forest for two classes. Parameters: see `AbstractForest`."""


SYSTEM = System(title="the random forest", classifier=ForestClassifier, regressor=ForestRegressor)
