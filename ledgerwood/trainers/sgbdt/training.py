"""S-GBDT: the training loop (Algorithms 4, 5, 6 and 8 of the paper), and its estimators for scikit-learn.

Where the paper or its code is wrong, the sound version is here: docs/explanation/sgbdt.md#sgbdt-deviations. Gradient,
clip and sum of a leaf are in `curator.queries.leaf_sums` and its kernel, `gradient_of` in `curator.kernels.sums`.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from ledgerwood.curator import Aggregator, LargeGradients, Loss, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import is_word
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.base.streams import AbstractStreamEstimator
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianEstimator
from ledgerwood.trainers.parts.leaves import LambdaRule
from ledgerwood.trainers.parts.sampled_trees import Sampling, tree_rounds
from ledgerwood.trainers.parts.splits import cyclic_features, random_tree
from ledgerwood.trainers.sgbdt.plan import IndividualFilter, LeafKind, LeafNoise, Preset, SGBDTPlan, preset_plan


def train(
    plan: SGBDTPlan,
    aggregator: Aggregator,
    generator: np.random.Generator,
    progress: Progress = unseen,
    ensemble: Ensemble | None = None,
) -> Ensemble:
    """Algorithm 8, TrainSGBDT: a private initial score, then tree after tree.

    Lines 1 and 2 are the plan's. Of K > 2 classes each has a forest, whose trees take turns.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
        ensemble: what was released before on the same stream, and is added to; None for the initial score.
    """
    cells = aggregator.schema.cells(plan.max_bins)
    # Lines 3 and 4: the initial score, by Algorithm 6.
    forests = Forests.of(plan, aggregator) if ensemble is None else Forests(members=[ensemble], sizes=(plan.trees,))
    before = 0 if ensemble is None else len(ensemble.trees)
    own, order = forests.plans(plan), forests.schedule
    for event, first in plan.schedule():  # line 5
        trees = range(first, first + plan.trees_per_draw)
        purpose = f"tree {first + 1}" if len(trees) == 1 else f"trees 1 to {trees[-1] + 1}"
        # Algorithm 5, line 1: the curator draws the sample, or all trees' samples at once (an allocation). With a
        # filter it charges each row before each tree, and leaves out rows that have nothing left: lines 6 and 7.
        with tree_rounds(aggregator, event, purpose=purpose) as rounds:
            for number in trees:
                forest, t = order[number]
                features = cyclic_features(before + t, n_features=len(cells), per_tree=plan.features_per_tree)
                structure = random_tree(  # Algorithm 5, line 4
                    cells, depth=plan.max_depth, features=features, numeric_weight=plan.numeric_weight,
                    generator=generator,
                )  # fmt: skip
                # Algorithm 5, lines 2 and 3, and Algorithm 4, lines 2 to 6, of all leaves at once: in the curator,
                # gradients at the released scores, clipped, summed by leaf, with noise.
                query = plan.asked.of(structure, forests.members[forest], positive=forests.positive(forest))
                with rounds.of_next_tree() as round_:
                    release = round_.release(query, plan.leaf_mechanism, purpose=f"leaves of tree {number + 1}")
                tree = own[forest].tree(structure, plan.in_leaf_units(release.real))  # Algorithm 4, lines 4 (max) and 7
                forests.add(forest, tree)  # line 9
                progress(number + 1, len(order))
    return forests.ensemble


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSGBDT(AbstractStreamEstimator, AbstractGaussianEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `SGBDTPlan`.

    Args:
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
        filter: individual privacy filter, "gdp" (full batch), "renyi" (sampled) or "none"; "auto" is "none" unless
            there are extra trees, see docs/explanation/sgbdt.md#sgbdt-filter.
    """

    loss_: ClassVar[Loss]
    _plan_type = SGBDTPlan

    preset: Preset = "default"
    extra_trees: int | None = None
    subsample: float | None = None
    sampling: Sampling = "poisson"
    lambda_rule: LambdaRule | None = None
    large_gradients: LargeGradients | None = None
    leaf_noise: LeafNoise | None = None
    leaf_statistic: LeafKind | None = None
    numeric_weight: float | None = None
    filter: IndividualFilter | Literal["auto"] = "auto"

    _train = _train_on = staticmethod(train)

    def make_plan(self, schema: Schema | TypedColumns) -> SGBDTPlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, SGBDTPlan)  # the class of `_preset_plan`
        return plan

    def make_stream_plan(self, schema: Schema) -> SGBDTPlan:
        """Returns the plan with an individual filter, which pays for any number of rounds; "auto" chooses which.

        Raises:
            InvalidParameter: also `filter="none"`.
        """
        if is_word(self.filter, "none"):
            raise InvalidParameter(
                "filter='none': a stream needs an individual filter, which says what each row has left; set 'auto'"
            )
        plan = self._preset_plan(schema, 1)
        named = self._named_choices(plan)
        if is_word(self.filter, "auto"):
            named["filter"] = "gdp" if named.get("subsample", plan.subsample) == 1.0 else "renyi"
        plan = dataclasses.replace(plan, weighted=schema.weighted, class_weights=schema.class_weights, **named)
        return plan.calibrated(self.budget)

    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> SGBDTPlan:
        return preset_plan(self.preset, self.loss_, self.budget, self.expected_rows)

    def _named_choices(self, plan: SGBDTPlan) -> dict[str, Any]:
        named = self._choices()
        if named.get("leaf_noise", plan.leaf_noise) == "static" and self.leaf_statistic is None:
            named["leaf_statistic"] = "moments"
        if is_word(self.filter, "auto"):
            full_batch = named.get("subsample", plan.subsample) == 1.0
            named["filter"] = ("gdp" if full_batch else "renyi") if named.get("extra_trees", 0) else "none"
        return named


@final
class SGBDTRegressor(AbstractRegressor, AbstractSGBDT):
    """S-GBDT for a numeric target, squared loss.

    Parameters: see `AbstractSGBDT`; attributes: `AbstractSystemEstimator`.
    """

    loss_ = "squared"


@final
class SGBDTClassifier(AbstractClassifier, AbstractSGBDT):
    """S-GBDT for two classes or more, logistic loss.

    Parameters: see `AbstractSGBDT`; attributes: `AbstractSystemEstimator`.
    """

    loss_ = "logistic"
    plan_: SGBDTPlan
