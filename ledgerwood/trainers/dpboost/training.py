"""DPBoost: the training loop (Algorithms 1 and 2 of the paper), and its estimators for scikit-learn.

Where the paper or its code is wrong, the sound version is here: docs/explanation/dpboost.md#dpboost-deviations.
Gradient, clip and sum are in `curator.queries.splits.gains` and `curator.queries.leaf_sums`, and in their kernels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
from sklearn.base import is_classifier

from ledgerwood.accounting.events import Parallel
from ledgerwood.curator import Aggregator, Round, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.dpboost.plan import Assignment, CandidateKind, DPBoostPlan, Preset, preset_plan
from ledgerwood.trainers.parts.greedy_trees import AbstractGreedyEstimator, Candidates


def train(plan: DPBoostPlan, aggregator: Aggregator, progress: Progress = unseen) -> Ensemble:
    """Algorithm 2: ensembles in sequence over all rows; inside one, each tree over its own rows.

    Lines 1, 2, 13 and 14 are the plan's. Of K > 2 classes each has a forest, whose trees take turns.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        progress: called with (trees done, trees in all).
    """
    candidates = plan.candidate_tests(aggregator.schema.cells(plan.max_bins))
    forests = Forests.of(plan, aggregator)
    own, order = forests.plans(plan), forests.schedule
    for ensemble, (event, first) in enumerate(plan.schedule(), start=1):  # line 6
        assert isinstance(event, Parallel)  # a group of rows a tree
        # Lines 7 to 9: the curator deals all rows to the ensemble's trees at once.
        with aggregator.open_groups(event, purpose=f"ensemble {ensemble}") as groups:
            for place in range(len(event.events)):  # lines 3 and 5
                number = first + place + 1
                forest, _ = order[number - 1]
                tree = train_tree(  # lines 4 and 10 to 12
                    own[forest], place, candidates, forests.members[forest], groups.round(place),
                    name=f"tree {number}", positive=forests.positive(forest),
                )  # fmt: skip
                forests.add(forest, tree)
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
    """Algorithm 1, TrainSingleTree: level after level by the exponential mechanism, then leaves with Laplace noise.

    Lines 1 and 2 are the plan's, line 3 the curator's.

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
    for level in range(plan.max_depth):  # line 4
        assert candidates is not None  # of a plan with levels
        # Lines 5 to 10, of all nodes of the level at once: their gains, in the curator, and a private choice of each.
        purpose = f"splits of {name}, level {level + 1}"
        structure = plan.deeper(
            structure, candidates, ensemble, round_,
            purpose=purpose, positive=positive, numeric_weight=plan.numeric_weight,
        )  # fmt: skip
    # Lines 11 to 14, of all leaves at once: gradients filtered, summed, clipped, with noise, in the curator.
    released = plan.released_leaves(
        structure, ensemble, round_, place=place, purpose=f"leaves of {name}", positive=positive
    )
    return plan.tree(structure, released, place)


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractDPBoost(AbstractGreedyEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `DPBoostPlan`.

    Args:
        preset: "default" (for accuracy), "paper" (the paper's own choices, made sound), "enhanced" (with the
            initial score and the grid-less choice of the S-GBDT paper), or what the paper compares with: "para", "seq"
            and "np", see docs/explanation/dpboost.md#dpboost-presets.
        max_delta_step: largest absolute leaf value before the learning rate, or "off".
    """

    _plan_type = DPBoostPlan
    _words: ClassVar[Mapping[str, str]] = {"max_delta_step": "off"}

    preset: Preset = "default"
    trees_per_ensemble: int | None = None
    assignment: Assignment | None = None
    geometric_clipping: bool | None = None
    max_delta_step: float | Literal["off"] | None = None
    candidates: CandidateKind | None = None
    numeric_weight: float | None = None

    def make_plan(self, schema: Schema | TypedColumns) -> DPBoostPlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, DPBoostPlan)  # the class of `_preset_plan`
        return plan

    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> DPBoostPlan:
        return preset_plan(self.preset, self._loss(), self.budget, classes=is_classifier(self), forests=classes)

    def _named_choices(self, plan: DPBoostPlan) -> dict[str, Any]:
        named = self._choices()
        # A choice that only one way of releasing leaves has follows that way, unless it is named too.
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
    """DPBoost for a numeric target. Parameters: see `AbstractDPBoost`; attributes: `AbstractSystemEstimator`."""


@final
class DPBoostClassifier(AbstractClassifier, AbstractDPBoost):
    """DPBoost for two classes or more. Parameters: see `AbstractDPBoost`; attributes: `AbstractSystemEstimator`."""

    plan_: DPBoostPlan
