"""DP-XGBoost: the training loop (sections 4.1 to 4.4 of the paper), and its estimators for scikit-learn.

The paper has no algorithm box for the trees: its figure 3 and these sections are cited instead. Where it or its code is
wrong, the sound version is here: docs/explanation/dpxgboost.md#dpxgboost-deviations. Gradient, clip and sum are in
`curator.queries.splits.gains` and `curator.queries.leaf_sums`, and in their kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ledgerwood.curator import Aggregator, CellHessians, LeafCounts, Loss, Round, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, TreeStructure
from ledgerwood.trainers.base.forests import Forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.dpxgboost.plan import DPXGBoostPlan, MinimumBy, Preset, Sketch, SketchWeights, preset_plan
from ledgerwood.trainers.parts.candidates import even_thresholds, least_cells, quantile_thresholds
from ledgerwood.trainers.parts.greedy_trees import AbstractGreedyEstimator
from ledgerwood.trainers.parts.leaves import without_light_splits
from ledgerwood.trainers.parts.sampled_trees import Sampling, tree_rounds


def train(plan: DPXGBoostPlan, aggregator: Aggregator, progress: Progress = unseen) -> Ensemble:
    """Section 4: for each tree draw a sample; sketch, split and average on it; `plan.n_estimators` times.

    Of K > 2 classes each has a forest, whose trees take turns.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        progress: called with (trees done, trees in all).
    """
    cells = aggregator.schema.cells(plan.max_bins)
    forests = Forests.of(plan, aggregator)
    own, order = forests.plans(plan), forests.schedule
    tests = None if plan.sketched or not plan.max_depth else sketched_tests(plan, cells)
    for event, first in plan.schedule():
        if first == 0:  # section 4.1, of a sketch that is made once
            with aggregator.open(event, purpose="sketch") as round_:
                tests = sketched_tests(plan, cells, round_, forests.members[0], purpose="sketch")
            continue
        trees = range(first, first + plan.trees_of_draw)
        whole = f"tree {first}" if len(trees) == 1 else f"trees {first} to {trees[-1]}"
        with tree_rounds(aggregator, event, purpose=whole) as rounds:  # section 4.4: the curator draws the sample
            for number in trees:
                forest, _ = order[number - 1]
                name, ensemble, positive = f"tree {number}", forests.members[forest], forests.positive(forest)
                with rounds.of_next_tree() as round_:
                    own_tests = tests
                    if plan.max_depth and tests is None:  # section 4.1
                        purpose = f"sketch of {name}"
                        own_tests = sketched_tests(plan, cells, round_, ensemble, purpose=purpose, positive=positive)
                    # Section 4.2.
                    structure = split_tree(plan, own_tests, ensemble, round_, name=name, positive=positive)
                    # Section 4.3, Algorithm 1: in the curator, gradients filtered and summed, with noise; then V and
                    # its clip.
                    leaves = f"leaves of {name}"
                    released = plan.released_leaves(structure, ensemble, round_, purpose=leaves, positive=positive)
                forests.add(forest, own[forest].tree(structure, released))
                progress(number, len(order))
    return forests.ensemble


def sketched_tests(
    plan: DPXGBoostPlan,
    cells: Sequence[FeatureCells],
    round_: Round | None = None,
    ensemble: Ensemble | None = None,
    *,
    purpose: str = "sketch",
    positive: int | None = None,
) -> SplitTests:
    """Section 4.1: thresholds by quantiles of released histograms, or evenly without a round; and all equalities.

    The released ensemble, and the class that is told from all others, give the scores of the hessians.
    """
    numeric = tuple(feature for feature, each in enumerate(cells) if each.ordered)
    thresholds = [np.empty(0, dtype=np.int64) for _ in cells]
    if round_ is not None and numeric:
        assert ensemble is not None
        sketch = plan.sketch_of(numeric)
        noise = plan.count_noise(plan.sketch_epsilon, sketch)
        query = sketch.of(ensemble, positive=positive) if isinstance(sketch, CellHessians) else sketch
        weights = round_.release(query, noise, purpose=purpose).real[:, 0].reshape(len(numeric), plan.max_bins)
        for feature, own in zip(numeric, weights, strict=True):
            thresholds[feature] = quantile_thresholds(own, plan.n_candidates)
    else:
        for feature in numeric:
            thresholds[feature] = even_thresholds(plan.max_bins, plan.n_candidates)
    return SplitTests.every(cells, thresholds)


def split_tree(
    plan: DPXGBoostPlan,
    tests: SplitTests | None,
    ensemble: Ensemble,
    round_: Round,
    *,
    name: str,
    positive: int | None,
) -> TreeStructure:
    """Section 4.2: level by level, each node's test by the exponential mechanism on its gain.

    With `min_child_weight_by="levels"` a level's released numbers of rows then undo splits (section 4.3).
    """
    structure, open_nodes = TreeStructure.root(), np.ones(1, dtype=np.bool_)
    for level in range(1, plan.max_depth + 1):
        assert tests is not None  # of a plan with levels
        purpose = f"level {level} of {name}"
        structure = plan.deeper(structure, tests, ensemble, round_, purpose=purpose, positive=positive)
        if plan.min_child_weight_by == "levels":
            query = LeafCounts().of(structure)
            noise = plan.count_noise(plan.weight_epsilon, query)
            rows = round_.release(query, noise, purpose=f"rows of {purpose}").real[:, 0]
            structure, open_nodes = without_light_splits(structure, rows, open_nodes, plan.min_child_weight)
    return structure


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractDPXGBoost(AbstractGreedyEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of `DPXGBoostPlan`.

    Args:
        preset: "default" (for accuracy) or "paper" (the paper's own choices, made sound).
    """

    loss_: ClassVar[Loss]
    _plan_type = DPXGBoostPlan

    preset: Preset = "default"
    subsample: float | None = None
    sampling: Sampling = "poisson"
    pooling: float | None = None
    min_child_weight: float | None = None
    min_child_weight_by: MinimumBy | None = None
    sketch: Sketch | None = None
    sketch_weights: SketchWeights | None = None
    n_candidates: int | None = None
    sketch_share: float | None = None
    split_share: float | None = None
    weight_share: float | None = None
    once_share: float | None = None

    def make_plan(self, schema: Schema | TypedColumns) -> DPXGBoostPlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, DPXGBoostPlan)  # the class of `_preset_plan`
        return plan

    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> DPXGBoostPlan:
        numeric = sum(each.ordered > 0 for each in least_cells(schema, 2))
        return preset_plan(self.preset, self._loss(), self.budget, self.expected_rows, numeric, classes=classes)

    def _named_choices(self, plan: DPXGBoostPlan) -> dict[str, Any]:
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
    """DP-XGBoost for a numeric target, squared loss.

    Parameters: see `AbstractDPXGBoost`; attributes: `AbstractSystemEstimator`.
    """

    loss_ = "squared"


@final
class DPXGBoostClassifier(AbstractClassifier, AbstractDPXGBoost):
    """DP-XGBoost for two classes or more, logistic loss, or squared as in the paper.

    Parameters: see `AbstractDPXGBoost`; attributes: `AbstractSystemEstimator`.
    """

    loss_ = "logistic"
    plan_: DPXGBoostPlan
