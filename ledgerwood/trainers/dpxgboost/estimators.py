"""DP-XGBoost as scikit-learn estimators."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, final, get_args

import numpy as np

from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.dpxgboost.presets import Preset, default_plan, paper_plan
from ledgerwood.trainers.dpxgboost.training import DPXGBoostPlan, MinimumBy, Sketch, train
from ledgerwood.trainers.parts.greedy_trees import least_cells
from ledgerwood.trainers.parts.laplace_leaves import LeafRegularization, LeafRelease


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractDPXGBoost(AbstractBoostedEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `DPXGBoostPlan`.

    Args:
        delta: 0, the default, is pure, as published.
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
        loss: "squared", on labels scaled to [-1, 1] and classes as -1 and 1, or "logistic" (classes only). Either way a
            row counts 1 in gains and leaves; Newton's gain is not offered, as no noise would make it private.
    """

    loss_: ClassVar[Loss]
    _plan_type = DPXGBoostPlan

    delta: float = 0.0
    preset: Preset = "default"
    loss: Loss | None = None
    subsample: float | None = None
    reg_lambda: float | None = None
    leaf_regularization: LeafRegularization | None = None
    score_noise: float | None = None
    pooling: float | None = None
    large_gradients: LargeGradients | None = None
    min_child_weight: float | None = None
    min_child_weight_by: MinimumBy | None = None
    sketch: Sketch | None = None
    n_candidates: int | None = None
    sketch_share: float | None = None
    split_share: float | None = None
    leaf_share: float | None = None
    weight_share: float | None = None
    count_share: float | None = None
    once_share: float | None = None
    leaf_release: LeafRelease | None = None

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> DPXGBoostPlan:
        classes = declared_forests(schema)
        plan = self._preset_plan(sum(each.ordered > 0 for each in least_cells(schema, 2)), classes)
        if classes > 1:  # whose forests start at 0
            plan = dataclasses.replace(plan, initial_score="zero")
        plan = dataclasses.replace(plan, classes=classes, **self._named_choices())
        plan = self._for_schema(plan, schema)
        plan.require_room(least_cells(schema, plan.max_bins))
        return plan

    def _preset_plan(self, numeric_features: int, classes: int) -> DPXGBoostPlan:
        require_name("preset", self.preset, get_args(Preset))
        if self.loss is not None:
            require_name("loss", self.loss, get_args(Loss))
        match self.preset:
            case "default":
                loss = self.loss_ if self.loss is None else self.loss
                return default_plan(loss, self.budget, self.expected_rows, numeric_features, classes=classes)
            case "paper":
                return paper_plan(self.budget, self.expected_rows, numeric_features)

    def _named_choices(self) -> dict[str, Any]:
        if self.loss == "logistic" and self.loss_ == "squared":
            raise InvalidParameter("loss='logistic' needs two classes: a regressor's loss is 'squared'")
        named = self._choices()
        if self.leaf_release == "ratio":
            # Without numbers of rows: what would ask for them steps back, unless it was named.
            named = {"leaf_regularization": "lambda", "min_child_weight_by": "none", **named}
        return named

    def _train(
        self, plan: DPXGBoostPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, progress)


@final
class DPXGBoostRegressor(AbstractRegressor, AbstractDPXGBoost):
    """DP-XGBoost for a numeric target, squared loss. Parameters: see `AbstractDPXGBoost`.

    Attributes:
        plan_: the calibrated `DPXGBoostPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """

    loss_ = "squared"


@final
class DPXGBoostClassifier(AbstractClassifier, AbstractDPXGBoost):
    """DP-XGBoost for two classes or more, logistic loss, or squared as in the paper.

    Parameters: see `AbstractDPXGBoost`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `DPXGBoostRegressor`.
    """

    loss_ = "logistic"
    plan_: DPXGBoostPlan
