"""The framework for federated private boosting: Algorithm 1, with the components that a plan names.

Maddock, Cormode, Wang, Maple and Jha: "Federated Boosted Decision Trees with Differential Privacy" (2022). What is
published in words only, or wrong, is in docs/explanation/federated.md. All that is asked is sums of rows'
contributions (and quantiles, where they are bought): an `Aggregator` may be a federation.
"""

import itertools
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator import (
    Aggregator,
    CandidateBins,
    FeatureQuantiles,
    Query,
    ScoreCounts,
)
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.mechanisms import BoxShifts
from ledgerwood.trainers.base.forests import Forests, stacked
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.federated.candidates import first_candidates, hessian_total, refined_thresholds
from ledgerwood.trainers.federated.methods import Sapling
from ledgerwood.trainers.federated.plan import FederatedPlan, Step
from ledgerwood.trainers.parts.candidates import Thresholds
from ledgerwood.trainers.parts.recalibration import CALIBRATION_BINS, platt_line, recalibrated, score_edges


@final
class _Forest:
    """One forest while it grows: Algorithm 1 for one class, or for all rows.

    Args:
        plan: of this forest.
        aggregator: holds a grant of the whole plan's event.
        generator: public randomness of the structures.
        positive: the class that is told from all others, of several.
        named: whether its class is part of a draw's purpose: not where it was estimated, since a ledger holds nothing
            that depends on a row.
        thresholds: the candidates to begin with.
        start: the ensemble to begin with.
    """

    def __init__(
        self,
        plan: FederatedPlan,
        aggregator: Aggregator,
        generator: np.random.Generator,
        *,
        positive: int | None,
        named: bool,
        thresholds: list[Thresholds],
        start: Ensemble,
    ) -> None:
        self.plan = plan
        self.ensemble = start
        self._aggregator = aggregator
        self._generator = generator
        self._positive = positive
        self._named = named
        self._thresholds = thresholds.copy()
        self._cells = aggregator.schema.cells(plan.max_bins)
        self._batch: list[tuple[TreeStructure, NDArray[np.float64]]] = []

    def grow(self, t: int, number: int, draws: Sequence[tuple[Event, Step]]) -> None:
        """One tree more; a batch's trees share the gradients of the ensemble before it.

        Args:
            t: the tree of this forest, from 0.
            number: the tree of the plan, from 0.
            draws: what the schedule has for it.
        """
        plan = self.plan
        # Line 11, A2: a batch's trees are one update; averaging is a single batch.
        size = plan.n_estimators if plan.update == "averaging" else plan.batch
        gradients = Ensemble(initial_score=0.0) if plan.update == "averaging" else self.ensemble
        self._batch.append(self._tree(t, gradients, self._purpose(f"tree {number + 1}"), draws))
        if len(self._batch) == size or t + 1 == plan.n_estimators:
            for structure, values in self._batch:
                tree = Tree(structure=structure, values=values / len(self._batch))
                self.ensemble = self.ensemble.extended(tree)
            self._batch = []

    def recalibrate(self, event: Event) -> None:
        """A2: the scores of batched updates are drawn together; one query more brings them back to log-odds."""
        plan, purpose = self.plan, self._purpose("recalibration")
        edges = score_edges(self.ensemble, CALIBRATION_BINS)
        with self._aggregator.open(event, purpose=purpose) as round_:
            if not plan.recalibrate:
                return
            query = ScoreCounts(edges=edges).of(self.ensemble, positive=self._positive)
            released = round_.release(query, plan.score_mechanism, purpose=purpose).real
        line = platt_line(released, edges, stddev=plan.score_mechanism.stddevs[0])
        self.ensemble = recalibrated(self.ensemble, *line)

    def _tree(
        self, t: int, ensemble: Ensemble, name: str, draws: Sequence[tuple[Event, Step]]
    ) -> tuple[TreeStructure, NDArray[np.float64]]:
        """A tree of Algorithm 1: features (line 5, A1), candidates (C3), splits (6 to 9, C1), leaf values (10, C2)."""
        plan = self.plan
        if plan.feature_cycle == "random" and not plan.fixed_width:
            chosen = self._generator.choice(plan.n_features, size=plan.width, replace=False)
            features = tuple(sorted(chosen.tolist()))
        else:
            features = plan.features(t)
        for event, step in draws:
            if step.what == "candidates":
                self._refine(event, step, t, features, ensemble, f"candidates of {name}")
        grown = plan.method.grown(
            Sapling(
                plan=plan,
                aggregator=self._aggregator,
                draws=(event for event, step in draws if step.what == "sums"),
                generator=self._generator,
                cells=self._cells,
                thresholds=self._thresholds,
                features=features,
                ensemble=ensemble,
                positive=self._positive,
                name=name,
            )
        )
        if grown.root is not None and plan.refined(t):
            self._refine_by(self._thresholds, features, grown.root)
        return grown.structure, plan.leaf_values(grown.sums)

    def _purpose(self, what: str) -> str:
        return what if self._positive is None or not self._named else f"{what}, class {self._positive + 1}"

    def _refine(
        self, event: Event, step: Step, t: int, features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> None:
        """One round of the iterative hessian rule, by the hessians at the scores that the tree starts from.

        Forests that share a plan's trees may be paid for other features than this tree has: then nothing is released.
        """
        plan, thresholds = self.plan, self._thresholds
        drawn = plan.feature_cycle == "random" and not plan.fixed_width
        asked = features if drawn else tuple(j for j in features if j in plan.numeric_features)
        with self._aggregator.open(event, purpose=purpose) as round_:
            if plan.refined_features(t) != step.features:
                return
            bins = CandidateBins.of(self._cells, thresholds, asked)
            query: Query[BoxShifts] = plan.candidate_query(bins, ensemble, self._positive)
            released = round_.release(query, plan.candidate_mechanism, purpose=purpose).real[:, 0]
        self._refine_with(thresholds, bins, released)

    def _refine_by(self, thresholds: list[Thresholds], features: tuple[int, ...], root: NDArray[np.float64]) -> None:
        """The same by the root's histograms, which have been released already."""
        bins = CandidateBins.of(self._cells, thresholds, features)
        self._refine_with(thresholds, bins, self.plan.weights(root))

    def _refine_with(self, thresholds: list[Thresholds], bins: CandidateBins, released: NDArray[np.float64]) -> None:
        own, offsets = {}, bins.offsets
        for place, feature in enumerate(bins.features.tolist()):
            if self._cells[feature].ordered:
                own[feature] = released[offsets[place] : offsets[place] + len(thresholds[feature]) + 1]
        total = hessian_total(list(own.values()))
        for feature, hessians in own.items():
            thresholds[feature] = refined_thresholds(
                hessians,
                thresholds[feature],
                total=total,
                candidates=self.plan.n_candidates,
                cells=self._cells[feature].ordered,
            )


def train(
    plan: FederatedPlan,
    aggregator: Aggregator,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> Ensemble:
    """Algorithm 1: a forest, or one for each class, tree after tree in turn.

    Candidates are line 1, trees lines 3 to 12. Deviations: docs/explanation/federated.md#federated-deviations.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
    """
    thresholds = first_candidates(aggregator.schema, plan.candidates, bins=plan.max_bins, candidates=plan.n_candidates)
    draws = plan.schedule()
    if plan.quantile_event is not None:
        event, _ = next(draws)
        query = FeatureQuantiles(features=plan.numeric_features, cells=plan.max_bins)
        with aggregator.open(event, purpose="candidates") as round_:
            found = round_.select(query, plan.quantile_mechanism, purpose="candidates").value
        for feature, own in zip(plan.numeric_features, found, strict=True):
            thresholds[feature] = np.unique(own)
    forests = Forests.of(plan, aggregator)
    declared = plan.classes == len(forests.members)
    grown = [
        _Forest(
            own,
            aggregator,
            generator,
            positive=forests.positive(place),
            named=declared,
            thresholds=thresholds,
            start=forests.members[place],
        )
        for place, own in enumerate(forests.plans(plan))
    ]
    order = forests.schedule
    for number, own_draws in itertools.groupby(draws, key=lambda draw: draw[1].tree):
        if number is None:
            for forest, (event, _) in zip(grown, own_draws, strict=False):
                forest.recalibrate(event)
            continue
        place, t = order[number]
        # Of an estimated number of classes the trees, and what is drawn for them, are numbered as one forest's.
        grown[place].grow(t, t if declared else number, list(own_draws))
        if progress is not None:
            progress(number + 1, len(order))
    return stacked([forest.ensemble for forest in grown])
