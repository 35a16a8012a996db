"""S-GBDT as scikit-learn estimators."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np

from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import is_word, require_name
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.streams import AbstractStreamEstimator
from ledgerwood.trainers.parts.leaves import LambdaRule
from ledgerwood.trainers.sgbdt.individual_filter import IndividualFilter
from ledgerwood.trainers.sgbdt.presets import Preset, default_plan, paper_plan
from ledgerwood.trainers.sgbdt.training import LeafKind, LeafNoise, SGBDTPlan, train


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSGBDT(AbstractStreamEstimator, AbstractBoostedEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `SGBDTPlan`.

    Args:
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
        filter: individual privacy filter, "gdp" (full batch), "renyi" (sampled) or "none"; "auto" is "none" unless
            there are extra trees, see docs/explanation/sgbdt.md#sgbdt-filter.
        reg_lambda: lambda of the leaf's denominator, or "noise" for a multiple of the known noise, by `score_noise`.
        features_per_tree: k features per tree, in a cycle, or "all".
    """

    loss_: ClassVar[Loss]
    _plan_type = SGBDTPlan

    preset: Preset = "default"
    extra_trees: int | None = None
    subsample: float | None = None
    reg_lambda: float | Literal["noise"] | None = None
    score_noise: float | None = None
    lambda_rule: LambdaRule | None = None
    pooling: float | None = None
    large_gradients: LargeGradients | None = None
    curvature_scale: float | None = None
    count_share: float | None = None
    leaf_noise: LeafNoise | None = None
    leaf_statistic: LeafKind | None = None
    leaf_clamp: float | None = None
    features_per_tree: int | Literal["all"] | None = None
    numeric_weight: float | None = None
    filter: IndividualFilter | Literal["auto"] = "auto"

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> SGBDTPlan:
        plan = self._preset_plan()
        plan = dataclasses.replace(plan, classes=declared_forests(schema), **self._named_choices(plan))
        return self._for_schema(plan, schema)

    def make_stream_plan(self, schema: Schema) -> SGBDTPlan:
        """The same with an individual filter, which pays for any number of rounds; "auto" is the one that fits.

        Raises:
            InvalidParameter: also `filter="none"`.
        """
        if is_word(self.filter, "none"):
            raise InvalidParameter(
                "filter='none': a stream needs an individual filter, which says what each row has left; set 'auto'"
            )
        plan = self._preset_plan()
        named = self._named_choices(plan)
        if is_word(self.filter, "auto"):
            named["filter"] = "gdp" if named.get("subsample", plan.subsample) == 1.0 else "renyi"
        return dataclasses.replace(plan, **named).calibrated(self.budget)

    def _preset_plan(self) -> SGBDTPlan:
        budget = self.budget
        require_name("preset", self.preset, get_args(Preset))
        match self.preset:
            case "default":
                return default_plan(self.loss_, budget, self.expected_rows)
            case "paper":
                return paper_plan(self.loss_, budget.adjacency)

    def _named_choices(self, plan: SGBDTPlan) -> dict[str, Any]:
        named = self._choices()
        for field, word in (("features_per_tree", "all"), ("reg_lambda", "noise")):
            if is_word(named.get(field), word):
                named[field] = None
        if named.get("leaf_noise", plan.leaf_noise) == "static" and self.leaf_statistic is None:
            named["leaf_statistic"] = "moments"
        named["filter"] = self.filter
        if is_word(self.filter, "auto"):
            full_batch = named.get("subsample", plan.subsample) == 1.0
            named["filter"] = ("gdp" if full_batch else "renyi") if named.get("extra_trees", 0) else "none"
        return named

    def _train(
        self, plan: SGBDTPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress)

    def _train_on(
        self,
        plan: SGBDTPlan,
        aggregator: Aggregator,
        generator: np.random.Generator,
        progress: Progress,
        ensemble: Ensemble,
    ) -> Ensemble:
        return train(plan, aggregator, generator, progress, ensemble=ensemble)


@final
class SGBDTRegressor(AbstractRegressor, AbstractSGBDT):
    """S-GBDT for a numeric target, squared loss. Parameters: see `AbstractSGBDT`.

    Attributes:
        plan_: the calibrated `SGBDTPlan`.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees.
        feature_importances_: importance of each feature for the released predictions.
    """

    loss_ = "squared"


@final
class SGBDTClassifier(AbstractClassifier, AbstractSGBDT):
    """S-GBDT for two classes or more, logistic loss. Parameters: see `AbstractSGBDT`.

    Attributes:
        classes_: the declared or estimated classes, sorted. Of K > 2 each has a forest: see `trainers.forests`.
        plan_, privacy_, ledger_, ensemble_, feature_importances_: as in `SGBDTRegressor`.
    """

    loss_ = "logistic"
    plan_: SGBDTPlan
