"""The federated framework: the training loop (Algorithm 1 of the paper), and its estimators for scikit-learn.

What is published in words only, or wrong, is in docs/explanation/federated.md#federated-deviations. All that is asked
is sums of rows' contributions, and quantiles where a plan has them: an `Aggregator` may be a federation. Gradient, clip
and sum are in `curator.queries.leaf_sums` and `curator.queries.histograms`, and in their kernels.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ledgerwood import _validate
from ledgerwood.accounting.events import Event
from ledgerwood.curator import Aggregator, CandidateBins, FeatureQuantiles, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble, FeatureCells, Tree
from ledgerwood.trainers.base.forests import Forests, stacked
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.federated.candidates import (
    CALIBRATION_BINS,
    CandidateRule,
    first_candidates,
    hessian_total,
    platt_line,
    recalibrated,
    refined_thresholds,
    score_edges,
)
from ledgerwood.trainers.federated.methods import Sapling, SplitMethod
from ledgerwood.trainers.federated.plan import FeatureCycle, FederatedPlan, Step, Update
from ledgerwood.trainers.federated.presets import OF_AVERAGES, Preset, preset_plan
from ledgerwood.trainers.parts.candidates import Thresholds, least_cells
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianEstimator

Draws = Sequence[tuple[Event, Step]]


def train(
    plan: FederatedPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress = unseen
) -> Ensemble:
    """Algorithm 1: a forest, or one for each of K > 2 classes, tree after tree in turn.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
    """
    draws = plan.schedule()
    # Line 1, C3: the candidates of each feature. Line 2: forests, each with its initial score.
    thresholds = first_candidates(aggregator.schema, plan.candidates, bins=plan.max_bins, candidates=plan.n_candidates)
    if plan.releases_quantiles:
        release_quantiles(plan, aggregator, next(draws)[0], thresholds)
    forests = Forests.of(plan, aggregator)
    declared, order = plan.classes == len(forests.members), forests.schedule
    grown = [
        Forest(
            plan=own, aggregator=aggregator, generator=generator, positive=forests.positive(place), named=declared,
            thresholds=thresholds.copy(), cells=aggregator.schema.cells(plan.max_bins), ensemble=forests.members[place],
        )
        for place, own in enumerate(forests.plans(plan))
    ]  # fmt: skip
    for number, own_draws in itertools.groupby(draws, key=lambda draw: draw[1].tree):  # line 3
        if number is None:
            for forest, (event, _) in zip(grown, own_draws, strict=False):
                forest.recalibrate(event)
            continue
        place, t = order[number]
        # The trees of an estimated number of classes, and what is drawn for them, are numbered as one forest's.
        name = f"tree {(t if declared else number) + 1}"
        grown[place].grow(t, name, list(own_draws))  # lines 4 to 12
        progress(number + 1, len(order))
    return stacked([forest.ensemble for forest in grown])


def release_quantiles(plan: FederatedPlan, aggregator: Aggregator, event: Event, thresholds: list[Thresholds]) -> None:
    """Put private quantiles in the place of the numeric features' candidates; equal ones are one."""
    query = FeatureQuantiles(features=plan.numeric_features, cells=plan.max_bins)
    with aggregator.open(event, purpose="candidates") as round_:
        found = round_.select(query, plan.quantile_mechanism, purpose="candidates").value
    for feature, own in zip(plan.numeric_features, found, strict=True):
        thresholds[feature] = np.unique(own)


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Forest:
    """One forest while it grows: lines 4 to 12 of Algorithm 1 for one class, or for all rows.

    Args:
        plan: of this forest.
        aggregator: holds a grant of the whole plan's event.
        generator: public randomness of the structures.
        positive: the class that is told from all others, of several.
        named: whether its class is part of a draw's purpose: not where it was estimated, since a ledger holds nothing
            that depends on a row.
        thresholds: the candidates; refined as trees grow.
        cells: of every feature of the schema.
        ensemble: what has been released.
        batch: trees that wait for the rest of their batch, each with its leaf values.
    """

    plan: FederatedPlan
    aggregator: Aggregator
    generator: np.random.Generator
    positive: int | None
    named: bool
    thresholds: list[Thresholds]
    cells: Sequence[FeatureCells]
    ensemble: Ensemble
    batch: list[Tree] = dataclasses.field(default_factory=list)

    def grow(self, t: int, name: str, draws: Draws) -> None:
        """One tree more.

        Args:
            t: the tree of this forest, from 0.
            name: of the tree, for the ledger.
            draws: what the schedule has for it.
        """
        plan, name = self.plan, self._purpose(name)
        # Line 4, C2: the gradients of a batch's trees are those of the ensemble before it. Averaging is a single batch.
        averaging = plan.update == "averaging"
        ensemble = Ensemble(initial_score=0.0) if averaging else self.ensemble
        features = self._features(t)  # line 5, A1
        sums = [event for event, step in draws if step.what == "sums"]
        if len(sums) < len(draws):
            self._refine(*draws[0], t, features, ensemble, f"candidates of {name}")
        # Lines 6 to 9, C1: the splits.
        structure, released, root = plan.method.grown(
            Sapling(
                plan=plan, aggregator=self.aggregator, draws=iter(sums), generator=self.generator, cells=self.cells,
                thresholds=self.thresholds, features=features, ensemble=ensemble, positive=self.positive, name=name,
            )
        )  # fmt: skip
        if root is not None and plan.refined(t):  # the root's histograms, which have been released already
            bins = CandidateBins.of(self.cells, self.thresholds, features)
            self._refine_by(bins, plan.weights(root))
        self.batch.append(plan.tree(structure, released))  # line 10, C2
        # Lines 11 and 12, A2: a batch's trees are one update.
        size = plan.n_estimators if averaging else plan.trees_per_batch
        if len(self.batch) == size or t + 1 == plan.n_estimators:
            for tree in self.batch:
                self.ensemble = self.ensemble.extended(tree.scaled(1.0 / len(self.batch)))
            self.batch = []

    def recalibrate(self, event: Event) -> None:
        """A2: the scores of batched updates are drawn together; one query more brings them back to log-odds."""
        plan, purpose = self.plan, self._purpose("recalibration")
        edges = score_edges(self.ensemble, CALIBRATION_BINS)
        with self.aggregator.open(event, purpose=purpose) as round_:
            if not plan.recalibrate:
                return
            query = plan.score_query(edges).of(self.ensemble, positive=self.positive)
            released = plan.in_rows(round_.release(query, plan.score_mechanism, purpose=purpose).real)
        self.ensemble = recalibrated(self.ensemble, *platt_line(released, edges, stddev=plan.score_stddev))

    def _features(self, t: int) -> tuple[int, ...]:
        plan = self.plan
        if not plan.drawn_features:
            return plan.features(t)
        return tuple(sorted(self.generator.choice(plan.n_features, size=plan.width, replace=False).tolist()))

    def _purpose(self, what: str) -> str:
        return what if self.positive is None or not self.named else f"{what}, class {self.positive + 1}"

    def _refine(
        self, event: Event, step: Step, t: int, features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> None:
        """One round of the iterative hessian rule, by the hessians at the scores that the tree starts from.

        Forests that share a plan's trees may be paid for other features than this tree has: then nothing is released.
        """
        plan = self.plan
        asked = features if plan.drawn_features else tuple(j for j in features if j in plan.numeric_features)
        with self.aggregator.open(event, purpose=purpose) as round_:
            if plan.refined_features(t) != step.features:
                return
            bins = CandidateBins.of(self.cells, self.thresholds, asked)
            query = plan.candidate_query(bins, ensemble, self.positive)
            released = plan.in_hessian_units(round_.release(query, plan.candidate_mechanism, purpose=purpose).real)
        self._refine_by(bins, released[:, 0])

    def _refine_by(self, bins: CandidateBins, hessians: NDArray[np.float64]) -> None:
        own = {
            feature: hessians[start : start + len(self.thresholds[feature]) + 1]
            for feature, start in zip(bins.features.tolist(), bins.offsets.tolist(), strict=False)
            if self.cells[feature].ordered
        }
        total = hessian_total(list(own.values()))
        for feature, masses in own.items():
            self.thresholds[feature] = refined_thresholds(
                masses, self.thresholds[feature], total=total, candidates=self.plan.n_candidates,
                cells=self.cells[feature].ordered,
            )  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractFederatedGBDT(AbstractGaussianEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `FederatedPlan`.

    Args:
        delta: the probability with which the bound of epsilon may fail, > 0: the noise is Gaussian.
        preset: "recommended" (for accuracy), "paper" (the paper's proposed best, with its own constants), or another
            configuration: "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton", "tr_newton_ih",
            "tr_batched_ih_ebm" (the components of "paper" with our constants); see
            docs/explanation/federated.md#federated-presets.
        n_estimators: T, as everywhere; with full_cycles, how often the cycle of all features is gone through.
        full_cycles: whether n_estimators counts cycles of all features.
        trees_per_batch: B, trees that share gradients: a whole number, or a share of T below 1.
    """

    _plan_type = FederatedPlan

    preset: Preset = "recommended"
    split_method: SplitMethod | None = None
    update: Update | None = None
    candidates: CandidateRule | None = None
    n_candidates: int | None = None
    refinements: int | None = None
    candidate_share: float | None = None
    feature_cycle: FeatureCycle | None = None
    full_cycles: bool = False
    trees_per_batch: float | None = None
    recalibrate: bool | None = None

    _train = staticmethod(train)

    def make_plan(self, schema: Schema | TypedColumns) -> FederatedPlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, FederatedPlan)  # the class of `_preset_plan`
        return plan

    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> FederatedPlan:
        cells = least_cells(schema, 2)
        _validate.count("n_features", len(cells), "features")
        numeric = tuple(bool(each.ordered) for each in cells)
        return preset_plan(self.preset, self._loss(), self.budget, self.expected_rows, numeric)

    def _named_choices(self, plan: FederatedPlan) -> dict[str, Any]:
        named = self._choices()
        if not isinstance(self.full_cycles, bool | np.bool_):
            raise _validate.fail("full_cycles", self.full_cycles, "True or False", "flag")
        if self.full_cycles and "n_estimators" in named:
            width = dataclasses.replace(
                plan, features_per_tree=named.get("features_per_tree", plan.features_per_tree)
            ).width
            cycles = _validate.count("n_estimators", named["n_estimators"], "cycles")
            named["n_estimators"] = cycles * math.ceil(plan.n_features / width)
        trees = named.get("n_estimators", plan.n_estimators)
        if self.trees_per_batch is not None:
            named["trees_per_batch"] = self._batch(trees)
        elif plan.trees_per_batch > 1:  # a preset's batches are a share of its trees
            whole = _validate.count("n_estimators", trees, "trees")
            named["trees_per_batch"] = max(1, round(plan.trees_per_batch / plan.n_estimators * whole))
        if named.get("update", plan.update) == "averaging" and plan.update != "averaging":
            named = {**OF_AVERAGES, **named}
        elif "update" in named and plan.update == "averaging":
            named["loss"] = self._loss()
        return named

    def _loss(self) -> Loss:
        return "logistic" if is_classifier(self) else "squared"

    def _batch(self, trees: object) -> int:
        share = _validate.positive("trees_per_batch", self.trees_per_batch, "trees, or share of them")
        if share < 1.0:
            return max(1, round(share * _validate.count("n_estimators", trees, "trees")))
        whole = int(share) if share.is_integer() else self.trees_per_batch
        return _validate.count("trees_per_batch", whole, "trees")


@final
class FederatedGBDTRegressor(AbstractRegressor, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for a numeric target.

    Parameters: see `AbstractFederatedGBDT`; attributes: `AbstractSystemEstimator`.
    """


@final
class FederatedGBDTClassifier(AbstractClassifier, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for two classes or more.

    Parameters: see `AbstractFederatedGBDT`; attributes: `AbstractSystemEstimator`. Of K > 2 classes each has its own
    forest, which tells it from all others; all is asked K times, and the plan says so.
    """

    plan_: FederatedPlan
