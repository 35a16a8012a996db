"""DPBoost as scikit-learn estimators."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
from sklearn.base import is_classifier

from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import is_word, require_name
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.dpboost.presets import Preset, preset_plan
from ledgerwood.trainers.dpboost.training import Assignment, CandidateKind, DPBoostPlan, train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.laplace_leaves import LeafRegularization, LeafRelease


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractDPBoost(AbstractBoostedEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `DPBoostPlan`.

    Args:
        delta: 0, the default, is pure privacy.
        preset: "default" (for accuracy), "paper" (the paper's own choices, made sound), "enhanced" (with the
            initial score and the grid-less choice of the S-GBDT paper), or what the paper compares with: "para", "seq"
            and "np", see docs/explanation/dpboost.md#dpboost-presets.
        loss: "squared" (classes are -1 and 1) or "logistic" (classes only).
        leaf_clamp: largest absolute leaf value before the learning rate, or "off".
    """

    _plan_type = DPBoostPlan

    delta: float = 0.0
    preset: Preset = "default"
    loss: Loss | None = None
    trees_per_ensemble: int | None = None
    assignment: Assignment | None = None
    reg_lambda: float | None = None
    large_gradients: LargeGradients | None = None
    geometric_clipping: bool | None = None
    leaf_release: LeafRelease | None = None
    leaf_share: float | None = None
    count_share: float | None = None
    leaf_regularization: LeafRegularization | None = None
    score_noise: float | None = None
    leaf_clamp: float | Literal["off"] | None = None
    candidates: CandidateKind | None = None

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> DPBoostPlan:
        forests = declared_forests(schema)
        plan = preset_plan(self.preset, self._loss(), self.budget, classes=is_classifier(self), forests=forests)
        if forests > 1:  # each of which starts at 0
            plan = dataclasses.replace(plan, initial_score="zero")
        plan = dataclasses.replace(plan, classes=forests, **self._named_choices())
        plan = self._for_schema(plan, schema)
        if plan.max_depth:
            plan.tests(
                least_cells(schema, plan.max_bins)
            )  # refuses trees that cannot be grown, before anything is spent
        return plan

    def _loss(self) -> Loss:
        if self.loss is None:
            return "squared"
        require_name("loss", self.loss, get_args(Loss))
        if self.loss == "logistic" and not is_classifier(self):
            raise InvalidParameter("loss='logistic' needs two classes: a regressor's loss is 'squared'")
        return self.loss

    def _named_choices(self) -> dict[str, Any]:
        named = self._choices()
        if is_word(named.get("leaf_clamp"), "off"):
            named["leaf_clamp"] = None
        # What one way of releasing leaves has and the other one has not follows it, unless it is named too.
        if self.leaf_release == "sums":
            named.setdefault("geometric_clipping", False)
        if self.leaf_release == "ratio" or named.get("geometric_clipping"):
            named.setdefault("leaf_regularization", "lambda")
        return named

    def _train(
        self, plan: DPBoostPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, progress)


@final
class DPBoostRegressor(AbstractRegressor, AbstractDPBoost):
    """DPBoost for a numeric target, squared loss. Parameters: see `AbstractDPBoost`.

    Attributes:
        plan_: the calibrated `DPBoostPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """


@final
class DPBoostClassifier(AbstractClassifier, AbstractDPBoost):
    """DPBoost for two classes or more, by the squared loss on -1 and 1 or the logistic loss.

    Parameters: see `AbstractDPBoost`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `DPBoostRegressor`.
    """

    plan_: DPBoostPlan
