"""The recommended trees: the training loop, and its estimators for scikit-learn.

Gradient, clip and sum of a leaf are in `curator.queries.leaf_sums` and its kernel. The derivations, and what each part
gains, are in docs/explanation/boosting.md.
"""

from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.curator import Aggregator, BinCounts, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.forests import Forests, declared_forests
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.boosting.candidates import bought_candidates, even_candidates, histogram_bins
from ledgerwood.trainers.boosting.plan import Candidates, FeatureChoiceKind, PrivateBoostingPlan
from ledgerwood.trainers.boosting.signals import tree_signal
from ledgerwood.trainers.parts.candidates import Thresholds, least_cells
from ledgerwood.trainers.parts.class_leaves import share_hessians, share_scores
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianEstimator
from ledgerwood.trainers.parts.splits import Cuts, random_tree


def train(
    plan: PrivateBoostingPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress = unseen
) -> Ensemble:
    """Candidates, an initial score, then tree after tree.

    Of K > 2 declared classes each leaf has K values, see `train_shared`; estimated ones have a forest each, which take
    turns.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
    """
    cells = aggregator.schema.cells(plan.max_bins)
    cuts = [own.tolist() for own in released_candidates(plan, aggregator)]
    if plan.shared_classes:
        return train_shared(plan, aggregator, cuts, generator, progress)
    forests = Forests.of(plan, aggregator)
    own, order = forests.plans(plan), forests.schedule
    choices = [plan.choice() for _ in forests.members]
    for event, number in plan.schedule():
        forest, _ = order[number]
        # Features and thresholds follow from what was released; the event is the same whatever they are.
        features = choices[forest].next_features()
        structure = random_tree(
            cells, depth=plan.max_depth, features=features, numeric_weight=1.0, generator=generator, cuts=cuts
        )
        query = plan.asked.of(structure, forests.members[forest], positive=forests.positive(forest))
        with aggregator.open(event, purpose=f"tree {number + 1}") as round_:
            release = round_.release(query, plan.leaf_mechanism, purpose=f"leaves of tree {number + 1}")
        sums = plan.in_leaf_units(release.real)
        choices[forest].learn(features, tree_signal(sums[:, 1], plan.leaf_stddevs[1]))
        forests.add(forest, own[forest].tree(structure, sums))
        progress(number + 1, len(order))
    return forests.ensemble


def train_shared(
    plan: PrivateBoostingPlan,
    aggregator: Aggregator,
    cuts: Cuts,
    generator: np.random.Generator,
    progress: Progress,
) -> Ensemble:
    """Trees that all classes share. The first one has no split: its leaf tells the classes' shares, where scores start.

    docs/explanation/several-classes.md#joint-classes.

    Args:
        plan, aggregator, generator, progress: as for `train`.
        cuts: the candidates.
    """
    cells, choice = aggregator.schema.cells(plan.max_bins), plan.choice()
    ensemble, hessians = Ensemble.of_classes((0.0,) * plan.shared_classes), np.empty(0)
    for event, number in plan.schedule():
        features = choice.next_features() if number else ()
        structure = random_tree(
            cells, depth=plan.max_depth if number else 0, features=features, numeric_weight=1.0, generator=generator,
            cuts=cuts,
        )  # fmt: skip
        with aggregator.open(event, purpose=f"tree {number + 1}") as round_:
            query = plan.asked.of(structure, ensemble)
            release = round_.release(query, plan.leaf_mechanism, purpose=f"leaves of tree {number + 1}")
        sums = plan.in_leaf_units(release.real)
        if number:
            choice.learn(features, tree_signal(sums[:, 1:], plan.leaf_stddevs[1]))
            ensemble = ensemble.extended(plan.class_tree(structure, sums, hessians))
        else:
            shares = plan.first_shares(sums)
            ensemble, hessians = Ensemble.of_classes(share_scores(shares)), share_hessians(shares)
        progress(number + 1, plan.n_estimators)
    return ensemble


def released_candidates(plan: PrivateBoostingPlan, aggregator: Aggregator) -> list[Thresholds]:
    """The thresholds of each feature; of bought ones the histograms of all numeric features are one release."""
    even = even_candidates(aggregator.schema.cells(plan.max_bins), plan.n_candidates)
    if not plan.buys_candidates:
        return even
    bins = histogram_bins(aggregator.schema, plan.max_bins, plan.histogram_bins)
    query = BinCounts(bins=bins)
    with aggregator.open(plan.candidate_event, purpose="candidates") as round_:
        release = round_.release(query, plan.candidate_mechanism, purpose="candidates")
    return bought_candidates(
        release.real[:, 0], bins, even, plan.n_candidates, spread=plan.n_spread_candidates,
        stddev=plan.candidate_stddev,
    )  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractPrivateBoosting(AbstractGaussianEstimator):
    """Parameters that the regressor and the classifier share. Those that are not listed are fields of the plan.

    None takes what the public rule of docs/explanation/boosting.md#boosting-rule chooses for the budget, the schema and
    `expected_rows`; `plan_.explain()` says what that was, and why. `n_estimators` is of all declared classes together.
    """

    _plan_type = PrivateBoostingPlan

    candidates: Candidates | None = None
    n_candidates: int | None = None
    n_spread_candidates: int | None = None
    candidate_share: float | None = None
    feature_choice: FeatureChoiceKind | None = None
    even_share: float | None = None
    signal_memory: float | None = None

    _train = staticmethod(train)

    @property
    def partial_fit(self) -> NoReturn:
        """There is none, on purpose: docs/explanation/boosting.md#boosting-streams.

        Raises:
            AttributeError: the reason, and what to use.
        """
        other = "SGBDTRegressor" if isinstance(self, AbstractRegressor) else "SGBDTClassifier"
        raise AttributeError(
            f"{type(self).__name__} has no partial_fit: candidates, depth, number of trees and features are chosen for "
            f"all rows at once. Use {other}(...).partial_fit(X, y, keys=...) for rows that arrive later, or fit all "
            "rows again with ledger=, which has the total"
        )

    def _require_loaded(self, model: Ensemble) -> None:
        super()._require_loaded(model)
        plan: Any = self.plan_
        shared = 0 if plan.purchase is not None else declared_forests(self.schema_)
        for name, value, own in (
            ("n_features", plan.n_features, self.n_features_in_),
            ("shared_classes", plan.shared_classes, shared if shared > 1 else 0),
        ):
            if value != own:
                raise InvalidParameter(f"a plan of {name}={value!r}, and a schema of {own}")

    def _forests(self, schema: Schema | TypedColumns) -> int:
        return 1  # whose leaves have a value for each class

    def make_plan(self, schema: Schema | TypedColumns) -> PrivateBoostingPlan:
        """See `AbstractTrainer.make_plan`."""
        plan = super().make_plan(schema)
        assert isinstance(plan, PrivateBoostingPlan)  # the class of `_preset_plan`
        return plan

    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> PrivateBoostingPlan:
        cells = least_cells(schema, 2)
        _validate.count("n_features", len(cells), "features")
        numeric = tuple(place for place, each in enumerate(cells) if each.ordered)
        return PrivateBoostingPlan.ruled(
            "squared" if isinstance(self, AbstractRegressor) else "logistic",
            self.budget,
            self.expected_rows,
            n_features=len(cells),
            numeric_features=numeric,
            shared_classes=shared if (shared := declared_forests(schema)) > 1 else 0,
        )


@final
class PrivateBoostingRegressor(AbstractRegressor, AbstractPrivateBoosting):
    """The recommended model of a numeric target: boosted private trees whose settings follow from a public rule.

    Parameters: see `AbstractPrivateBoosting`; attributes: `AbstractSystemEstimator`.
    """

    plan_: PrivateBoostingPlan


@final
class PrivateBoostingClassifier(AbstractClassifier, AbstractPrivateBoosting):
    """The recommended model of two classes or more: boosted private trees whose settings follow from a public rule.

    Parameters: see `AbstractPrivateBoosting`; attributes: `AbstractSystemEstimator`.
    """

    plan_: PrivateBoostingPlan
