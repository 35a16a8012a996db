"""The framework for federated private boosting: Algorithm 1, with the components that a plan names.

Maddock, Cormode, Wang, Maple and Jha: "Federated Boosted Decision Trees with Differential Privacy" (2022). What is
published in words only, or wrong, is in docs/explanation/federated.md. All that is asked is sums of rows'
contributions (and quantiles, where they are bought): an `Aggregator` may be a federation.
"""

import itertools
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import (
    Aggregator,
    BinSums,
    CandidateBins,
    FeatureQuantiles,
    Query,
    ScoreCounts,
    SideSums,
    real,
)
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.mechanisms import BoxShifts
from ledgerwood.trainers.base.forests import Forests, stacked
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.federated.candidates import as_cuts, first_candidates, hessian_total, refined_thresholds
from ledgerwood.trainers.federated.plan import ROOT, FederatedPlan
from ledgerwood.trainers.federated.splits import HistogramTests, best_of, random_tests
from ledgerwood.trainers.parts.candidates import Thresholds
from ledgerwood.trainers.parts.recalibration import CALIBRATION_BINS, platt_line, recalibrated, score_edges
from ledgerwood.trainers.parts.splits import NodePath, random_tree


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

    def grow(self, t: int, number: int, refined_features: int) -> None:
        """One tree more; a batch's trees share the gradients of the ensemble before it.

        Args:
            t: the tree of this forest, from 0.
            number: the tree of the plan, from 0.
            refined_features: of how many features the hessians are paid for.
        """
        plan = self.plan
        size = plan.n_estimators if plan.update == "averaging" else plan.batch
        gradients = Ensemble(initial_score=0.0) if plan.update == "averaging" else self.ensemble
        self._batch.append(self._tree(t, gradients, f"tree {number + 1}", refined_features))
        if len(self._batch) == size or t + 1 == plan.n_estimators:
            for structure, values in self._batch:
                tree = Tree(structure=structure, values=values / len(self._batch))
                self.ensemble = self.ensemble.extended(tree)
            self._batch = []

    def recalibrate(self) -> None:
        """A2: the scores of batched updates are drawn together; one query more brings them back to log-odds."""
        plan, purpose = self.plan, self._purpose("recalibration")
        edges = score_edges(self.ensemble, CALIBRATION_BINS)
        with self._aggregator.open(plan.score_event, purpose=purpose) as round_:
            if not plan.recalibrate:
                return
            query = ScoreCounts(edges=edges).of(self.ensemble, positive=self._positive)
            released = real(round_.release(query, plan.score_mechanism, purpose=purpose))
        line = platt_line(released, edges, stddev=plan.score_mechanism.stddevs[0])
        self.ensemble = recalibrated(self.ensemble, *line)

    def _tree(
        self, t: int, ensemble: Ensemble, what: str, refined_features: int
    ) -> tuple[TreeStructure, NDArray[np.float64]]:
        """Lines 5 to 10: features, candidates, splits, leaf values."""
        plan, purpose, thresholds = self.plan, self._purpose(what), self._thresholds
        if plan.feature_cycle == "random" and not plan.fixed_width:
            chosen = self._generator.choice(plan.n_features, size=plan.width, replace=False)
            features = tuple(sorted(chosen.tolist()))
        else:
            features = plan.features(t)
        if refined_features:
            self._refine(refined_features, t, features, ensemble, purpose)
        if plan.asks_leaves:
            structure = random_tree(
                self._cells,
                depth=plan.max_depth,
                features=features,
                numeric_weight=1.0,
                generator=self._generator,
                cuts=as_cuts(thresholds),
            )
            sums = self._leaf_sums(structure, ensemble, f"leaves of {purpose}")
        elif plan.split_method == "histogram":
            structure, sums, root = self._by_histograms(thresholds, features, ensemble, purpose)
            if plan.refined(t) and root is not None:
                self._refine_by(thresholds, features, root)
        else:
            structure, sums = self._partially_random(thresholds, features, ensemble, purpose)
        return structure, plan.leaf_values(sums)

    def _purpose(self, what: str) -> str:
        return what if self._positive is None or not self._named else f"{what}, class {self._positive + 1}"

    def _leaf_sums(self, structure: TreeStructure, ensemble: Ensemble, purpose: str) -> NDArray[np.float64]:
        plan = self.plan
        with self._aggregator.open(plan.joint_event(1), purpose=purpose) as round_:
            query = plan.pair_noise.asked.of(structure, ensemble, positive=self._positive)
            return plan.pair_noise.real(round_.release(query, plan.pair_noise.mechanism, purpose=purpose))

    def _refine(self, paid: int, t: int, features: tuple[int, ...], ensemble: Ensemble, purpose: str) -> None:
        """One round of the iterative hessian rule, by the hessians at the scores that the tree starts from.

        Forests that share a plan's trees may be paid for other features than this tree has: then nothing is released.
        """
        plan, thresholds = self.plan, self._thresholds
        drawn = plan.feature_cycle == "random" and not plan.fixed_width
        asked = features if drawn else tuple(j for j in features if j in plan.numeric_features)
        what = f"candidates of {purpose}"
        with self._aggregator.open(plan.candidate_event(paid), purpose=what) as round_:
            if plan.refined_features(t) != paid:
                return
            bins = CandidateBins.of(self._cells, thresholds, asked)
            query: Query[BoxShifts] = plan.candidate_query(bins, ensemble, self._positive)
            released = real(round_.release(query, plan.candidate_mechanism, purpose=what))[:, 0]
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

    def _by_histograms(
        self, thresholds: list[Thresholds], features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> tuple[TreeStructure, NDArray[np.float64], NDArray[np.float64] | None]:
        """Section 4.3.1: the best of all candidates, level by level; structure, leaf sums, root's histograms."""
        plan, structure = self.plan, ROOT
        tests = HistogramTests.of(self._cells, thresholds, features)
        children = np.zeros((1, 2))
        root: NDArray[np.float64] | None = None
        reached = np.ones((1, 0), dtype=np.bool_)
        for level in range(plan.max_depth):
            if tests is None:  # no candidate: every row goes right
                structure = structure.deeper(_void(2**level))
                children = np.repeat(children, 2, axis=0)
                continue
            if root is None or plan.width > 1:
                what = f"level {level + 1} of {purpose}"
                with self._aggregator.open(plan.joint_event(plan.width), purpose=what) as round_:
                    leaf = plan.leaf.of(structure, ensemble, positive=self._positive)
                    query = BinSums(leaf=leaf, bins=tests.bins)
                    released = real(round_.release(query, plan.pair_noise.mechanism, purpose=what))
                sums = released.reshape(2**level, tests.bins.total, 2)
                if root is None:
                    root, reached = sums[0], np.ones((1, tests.bins.total), dtype=np.bool_)
            else:  # of one feature, a node's bins are bins of the root
                sums = np.where(reached[:, :, np.newaxis], root, 0.0)
            sums = np.stack((plan.weights(sums), sums[..., 1]), axis=-1)
            best, children = tests.chosen(sums, plan.leaf_lambda, 3.0 * plan.weight_stddev)
            structure = structure.deeper(tests.tests.taken(best))
            left = tests.goes_left[best]
            reached = np.stack((reached & left, reached & ~left), axis=1).reshape(-1, tests.bins.total)
        return structure, self._as_released(children), root

    def _partially_random(
        self, thresholds: list[Thresholds], features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> tuple[TreeStructure, NDArray[np.float64]]:
        """Section 4.3.2: the best of one random candidate a feature, by the sums to its left and the inherited one."""
        plan, structure = self.plan, ROOT
        children = self._leaf_sums(structure, ensemble, f"total of {purpose}")
        children = np.stack((plan.weights(children), children[:, 1]), axis=-1)
        paths = [NodePath(self._cells, as_cuts(thresholds))]
        for level in range(plan.max_depth):
            tests, is_open = random_tests(paths, features, self._generator)
            what = f"level {level + 1} of {purpose}"
            with self._aggregator.open(plan.joint_event(plan.width), purpose=what) as round_:
                leaf = plan.leaf.of(structure, ensemble, positive=self._positive)
                released = real(
                    round_.release(SideSums(leaf=leaf, tests=tests), plan.pair_noise.mechanism, purpose=what)
                )
            left = released.reshape(len(paths), len(features), 2)
            left = np.stack((plan.weights(left), left[..., 1]), axis=-1)
            best, children = best_of(
                left, children, is_open.reshape(len(paths), -1), plan.leaf_lambda, 3.0 * plan.weight_stddev
            )
            places = np.where(best < 0, -1, np.arange(len(paths)) * len(features) + best)
            taken = tests.taken(places)
            structure = structure.deeper(taken)
            paths = list(
                itertools.chain.from_iterable(
                    (path, path)
                    if place < 0
                    else path.parted(int(taken.feature[i]), int(taken.split[i]), equals=bool(taken.equals[i]))
                    for i, (path, place) in enumerate(zip(paths, places.tolist(), strict=True))
                )
            )
        return structure, self._as_released(children)

    def _as_released(self, children: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums in the unit of a release, for `leaf_values`."""
        curved = self.plan.update == "newton" and self.plan.loss == "logistic"
        weight = children[:, 0] * self.plan.curvature_scale if curved else children[:, 0]
        return np.stack((weight, children[:, 1]), axis=-1)


def _void(nodes: int) -> SplitTests:
    """Tests that send every row right."""
    return SplitTests(
        feature=np.zeros(nodes, np.int32), split=np.zeros(nodes, np.uint16), equals=np.zeros(nodes, np.bool_)
    )


def train(
    plan: FederatedPlan,
    aggregator: Aggregator,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> Ensemble:
    """Algorithm 1: a forest, or one for each class, tree after tree in turn.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
    """
    thresholds = first_candidates(aggregator.schema, plan.candidates, bins=plan.max_bins, candidates=plan.n_candidates)
    if plan.quantile_event is not None:
        query = FeatureQuantiles(features=plan.numeric_features, cells=plan.max_bins)
        with aggregator.open(plan.quantile_event, purpose="candidates") as round_:
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
    schedule = forests.schedule
    for number, (place, t) in enumerate(schedule):
        # Of an estimated number of classes the trees, and what is drawn for them, are numbered as one forest's.
        tree = t if declared else number
        grown[place].grow(t, tree, plan.refined_features(tree))
        if progress is not None:
            progress(number + 1, len(schedule))
    if plan.recalibrate:
        for forest in grown[: plan.classes]:
            forest.recalibrate()
    return stacked([forest.ensemble for forest in grown])
