"""The federated framework as scikit-learn estimators."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from sklearn.base import is_classifier

from ledgerwood import _validate
from ledgerwood.curator import Aggregator, Loss, Schema, TypedColumns
from ledgerwood.curator.queries.bins import MAX_SUMS
from ledgerwood.ensemble import Ensemble, FeatureCells
from ledgerwood.trainers.base.bounds import is_word
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.federated.candidates import CandidateRule
from ledgerwood.trainers.federated.communication import bins_of
from ledgerwood.trainers.federated.methods import SplitMethod
from ledgerwood.trainers.federated.plan import FeatureCycle, FederatedPlan, Update
from ledgerwood.trainers.federated.presets import Preset, preset_plan
from ledgerwood.trainers.federated.training import train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.pair_noise import NoiseKind


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractFederatedGBDT(AbstractBoostedEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `FederatedPlan`.

    Args:
        delta: > 0.
        preset: "recommended" (for accuracy), "paper" (the paper's proposed best, which is "tr_batched_ih_ebm"), or
            another configuration: "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton",
            "tr_newton_ih"; see docs/explanation/federated.md#federated-presets.
        n_estimators: T, as everywhere; with full_cycles, how often the cycle of all features is gone through.
        full_cycles: whether n_estimators counts cycles of all features.
        features_per_tree: k features a tree, or "all".
        batch: B, trees that share gradients: a whole number, or a share of T below 1.
        reg_lambda: lambda, or "noise" for a multiple of the known noise, by `score_noise`.
    """

    _plan_type = FederatedPlan

    preset: Preset = "recommended"
    split_method: SplitMethod | None = None
    update: Update | None = None
    candidates: CandidateRule | None = None
    n_candidates: int | None = None
    refinements: int | None = None
    candidate_share: float | None = None
    features_per_tree: int | Literal["all"] | None = None
    feature_cycle: FeatureCycle | None = None
    full_cycles: bool = False
    batch: float | None = None
    recalibrate: bool | None = None
    reg_lambda: float | Literal["noise"] | None = None
    score_noise: float | None = None
    pooling: float | None = None
    curvature_scale: float | None = None
    count_share: float | None = None
    leaf_clamp: float | None = None
    noise: NoiseKind | None = None

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> FederatedPlan:
        cells = least_cells(schema, 2)
        _validate.count("n_features", len(cells), "features")
        loss: Loss = "logistic" if is_classifier(self) else "squared"
        numeric = tuple(bool(each.ordered) for each in cells)
        plan = preset_plan(self.preset, loss, self.budget, self.expected_rows, numeric)
        named = self._named_choices(plan, loss)
        plan = self._for_schema(dataclasses.replace(plan, classes=declared_forests(schema), **named), schema)
        _require_size(plan, least_cells(schema, plan.max_bins))
        return plan

    def _named_choices(self, plan: FederatedPlan, loss: Loss) -> dict[str, Any]:
        named = self._choices()
        for field, word in (("features_per_tree", "all"), ("reg_lambda", "noise")):
            if is_word(named.get(field), word):
                named[field] = None
        if not isinstance(self.full_cycles, bool | np.bool_):
            raise _validate.fail("full_cycles", self.full_cycles, "True or False", "flag")
        if self.full_cycles and "n_estimators" in named:
            width = dataclasses.replace(
                plan, features_per_tree=named.get("features_per_tree", plan.features_per_tree)
            ).width
            named["n_estimators"] = _validate.count("n_estimators", named["n_estimators"], "cycles") * math.ceil(
                plan.n_features / width
            )
        trees = named.get("n_estimators", plan.n_estimators)
        if self.batch is not None:
            named["batch"] = self._batch(trees)
        elif plan.batch > 1:  # a preset's batches are a share of its trees
            named["batch"] = max(
                1, round(plan.batch / plan.n_estimators * _validate.count("n_estimators", trees, "trees"))
            )
        if named.get("update", plan.update) == "averaging" and plan.update != "averaging":
            # Means of labels, which are -1 and 1 for two classes.
            named["loss"] = "squared"
            for name, value in (("clip", 1.0), ("count_share", 0.5), ("initial_score", "zero"), ("recalibrate", False)):
                named.setdefault(name, value)
        elif "update" in named and plan.update == "averaging":
            named["loss"] = loss
        return named

    def _batch(self, trees: object) -> int:
        share = _validate.positive("batch", self.batch, "trees, or share of them")
        if share < 1.0:
            return max(1, round(share * _validate.count("n_estimators", trees, "trees")))
        return _validate.count("batch", int(share) if share.is_integer() else self.batch, "trees")

    def _train(
        self, plan: FederatedPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress)


@final
class FederatedGBDTRegressor(AbstractRegressor, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for a numeric target.

    Parameters: see `AbstractFederatedGBDT`.

    Attributes:
        plan_: the calibrated `FederatedPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """


@final
class FederatedGBDTClassifier(AbstractClassifier, AbstractFederatedGBDT):
    """Trains the published federated framework over any `Aggregator`, in process here, for two classes or more.

    Parameters: see `AbstractFederatedGBDT`. Of K > 2 classes each has its own forest, which tells it from all
    others; all is asked K times, and the plan says so.

    Attributes:
        classes_: the declared or estimated classes, sorted.
        ensemble_: the released trees; of K > 2 classes all T of the first one's, then those of the second one, ...,
            each forest's initial score in its first tree.
        plan_, privacy_, ledger_, feature_importances_: as in `FederatedGBDTRegressor`.
    """

    plan_: FederatedPlan


def _require_size(plan: FederatedPlan, cells: Sequence[FeatureCells]) -> None:
    """Refuse histograms that the curator would refuse later on, when the levels above have been paid for.

    Raises:
        InvalidParameter: more than 2**24 sums of a column.
    """
    if plan.asks_leaves:
        return
    by_bins = plan.split_method == "histogram"
    each = sum(bins_of(cells, plan.n_candidates)[: plan.width]) if by_bins else plan.width
    nodes = 2 ** ((len(plan.method.asked(plan)) if by_bins else plan.max_depth) - 1)
    if nodes * each > MAX_SUMS:
        raise _validate.fail("nodes * bins of a level", nodes * each, f"at most {MAX_SUMS}", "sums")
