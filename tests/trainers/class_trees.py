"""A trainer whose trees all classes share, as a plug-in: for tests of what a fit does with them in every place."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import numpy as np

import ledgerwood as lw
from ledgerwood.curator import LeafClassGradients
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.trainers import AbstractClassifier, AbstractTreeEstimator, AbstractTreePlan
from ledgerwood.trainers.base.bounds import Count, Trees, positive
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.class_leaves import class_noise, class_values
from ledgerwood.trainers.parts.splits import random_tree
from ledgerwood.trainers.parts.whole_noise import NoiseKind, WholeLeaves


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTreesPlan(AbstractTreePlan):
    """One release of all leaves for each tree."""

    n_estimators: Trees
    n_classes: Annotated[int, Count("classes")]
    noise_multiplier: Annotated[float, positive("stddev / L2 sensitivity")] = 1.0
    subsample: float = 1.0
    noise: NoiseKind = "gaussian"
    loss: str = "logistic"
    clip: float = 0.9

    def _require_whole(self):
        pass

    @property
    def leaf(self):
        return LeafClassGradients(classes=self.n_classes, clip=self.clip)

    @property
    def whole(self):
        return WholeLeaves(leaf=self.leaf, noise_multiplier=self.noise_multiplier, count_share=0.1)

    @property
    def asked(self):
        return self.leaf if self.noise == "gaussian" else self.whole.query

    @property
    def mechanism(self):
        if self.noise == "gaussian":
            return class_noise(self.leaf, noise_multiplier=self.noise_multiplier, count_share=0.1)
        return self.whole.mechanism

    @property
    def tree_event(self):
        event = self.mechanism.event(self.asked.sensitivity(self.adjacency), self.adjacency)
        return event if self.subsample == 1.0 else lw.PoissonSampled(event, sampling_rate=self.subsample)

    @property
    def stages(self):
        return (Stage(event=self.tree_event, steps=range(self.n_estimators)),)

    def calibrated(self, budget):
        noise = lw.calibrate(lambda m: dataclasses.replace(self, noise_multiplier=m).event, budget)
        return dataclasses.replace(self, noise_multiplier=noise)

    def leaf_signal(self, rows):
        return rows


@final
@dataclass(eq=False, repr=False, kw_only=True)
class ClassTreesClassifier(AbstractClassifier, AbstractTreeEstimator):
    """Parameters: see `ClassTreesPlan`."""

    _plan_type: ClassVar[type[Any]] = ClassTreesPlan

    n_estimators: int = 4
    max_depth: int = 3
    max_bins: int = 16
    subsample: float = 1.0
    noise: str = "gaussian"

    def _uncalibrated_plan(self, schema):
        return ClassTreesPlan(
            adjacency=self.budget.adjacency, max_depth=self.max_depth, max_bins=self.max_bins,
            n_estimators=self.n_estimators, n_classes=len(schema.target.categories), subsample=self.subsample,
            noise=self.noise,
        )  # fmt: skip

    def _train(self, plan, aggregator, generator, progress):
        cells, ensemble = aggregator.schema.cells(plan.max_bins), Ensemble.of_classes((0.0,) * plan.n_classes)
        for event, number in plan.schedule():
            structure = random_tree(
                cells, depth=plan.max_depth, features=range(len(cells)), numeric_weight=1.0, generator=generator
            )
            with aggregator.open(event, purpose=f"tree {number + 1}") as round_:
                query = plan.asked.of(structure, ensemble)
                released = round_.release(query, plan.mechanism, purpose=f"leaves {number + 1}").real
            sums = released if plan.noise == "gaussian" else plan.whole.in_leaf_units(released)
            values = 0.5 * class_values(sums, hessians=np.full(plan.n_classes, 0.5), reg_lambda=5.0, max_delta_step=2.0)
            ensemble = ensemble.extended(Tree(structure=structure, values=values))
            progress(number + 1, plan.n_estimators)
        return ensemble
