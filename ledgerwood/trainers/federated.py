"""The framework for federated private boosting: Algorithm 1, with the components that a plan names.

Maddock, Cormode, Wang, Maple and Jha: "Federated Boosted Decision Trees with Differential Privacy" (2022). What is
published in words only, or wrong, is in docs/explanation/federated.md. All that is asked is sums of rows'
contributions (and quantiles, where they are bought): an `Aggregator` may be a federation.
"""

import itertools
from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import (
    Aggregator,
    CandidateBins,
    CellSums,
    FeatureQuantiles,
    Query,
    ScoreCounts,
    SideSums,
    real,
)
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.mechanisms import BallShifts, BoxShifts
from ledgerwood.trainers.candidates import Thresholds
from ledgerwood.trainers.federated_candidates import as_cuts, first_candidates, hessian_total, refined_thresholds
from ledgerwood.trainers.federated_plan import NOTHING, ROOT, FederatedPlan
from ledgerwood.trainers.federated_splits import HistogramTests, best_of, random_tests
from ledgerwood.trainers.forests import Forests
from ledgerwood.trainers.initial_scores import first_score
from ledgerwood.trainers.progress import Progress
from ledgerwood.trainers.recalibration import CALIBRATION_BINS, platt_line, recalibrated, score_edges
from ledgerwood.trainers.splits import NodePath, random_tree


@final
class _Forest:
    """One forest while it grows: Algorithm 1 for one class, or for all rows."""

    def __init__(
        self, plan: FederatedPlan, aggregator: Aggregator, generator: np.random.Generator, positive: int | None
    ) -> None:
        self._plan = plan
        self._aggregator = aggregator
        self._generator = generator
        self._positive = positive
        self._cells = aggregator.schema.cells(plan.bins)

    def grow(self, thresholds: list[Thresholds], initial_score: float, done: Callable[[int], None]) -> Ensemble:
        """T trees in batches; a batch's trees share the gradients of the ensemble before it."""
        plan, ensemble = self._plan, Ensemble(initial_score=initial_score)
        thresholds = list(thresholds)
        trees = plan.trees
        size = trees if plan.update == "averaging" else plan.batch
        for start in range(0, trees, size):
            members = range(start, min(start + size, trees))
            gradients = NOTHING if plan.update == "averaging" else ensemble
            grown = []
            for t in members:
                grown.append(self._tree(t, thresholds, gradients))
                done(t)
            for structure, values in grown:
                ensemble = ensemble.extended(Tree(structure=structure, values=values / len(members)))
        return ensemble

    def _tree(
        self, t: int, thresholds: list[Thresholds], ensemble: Ensemble
    ) -> tuple[TreeStructure, NDArray[np.float64]]:
        """Lines 5 to 10: features, candidates, splits, leaf values."""
        plan, purpose = self._plan, self._purpose(f"tree {t + 1}")
        if plan.feature_cycle == "random" and not plan.fixed_width:
            chosen = self._generator.choice(plan.n_features, size=plan.width, replace=False)
            features = tuple(sorted(chosen.tolist()))
        else:
            features = plan.features(t)
        if plan.refined_features(t):
            self._refine(thresholds, features, ensemble, purpose)
        if plan.asks_leaves:
            structure = random_tree(
                self._cells,
                depth=plan.depth,
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
        return what if self._positive is None else f"{what}, class {self._positive + 1}"

    def _leaf_sums(self, structure: TreeStructure, ensemble: Ensemble, purpose: str) -> NDArray[np.float64]:
        plan = self._plan
        with self._aggregator.open(plan.joint_event(1), purpose=purpose) as round_:
            query: Query[BoxShifts | BallShifts] = plan.noise.asked(
                plan.leaf_query(structure, ensemble, self._positive)
            )
            return plan.noise.real(round_.release(query, plan.noise.mechanism, purpose=purpose))

    def _refine(
        self, thresholds: list[Thresholds], features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> None:
        """One round of the iterative hessian rule, by the hessians at the scores that the tree starts from."""
        plan = self._plan
        drawn = plan.feature_cycle == "random" and not plan.fixed_width
        asked = features if drawn else tuple(j for j in features if j in plan.numeric_features)
        bins = CandidateBins.of(self._cells, thresholds, asked)
        what = f"candidates of {purpose}"
        with self._aggregator.open(plan.candidate_event(len(asked)), purpose=what) as round_:
            query: Query[BoxShifts] = plan.candidate_query(bins, ensemble, self._positive)
            released = real(round_.release(query, plan.candidate_mechanism, purpose=what))[:, 0]
        self._refine_with(thresholds, bins, released)

    def _refine_by(self, thresholds: list[Thresholds], features: tuple[int, ...], root: NDArray[np.float64]) -> None:
        """The same by the root's histograms, which have been released already."""
        bins = CandidateBins.of(self._cells, thresholds, features)
        self._refine_with(thresholds, bins, self._plan.weights(root))

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
                candidates=self._plan.candidates,
                cells=self._cells[feature].ordered,
            )

    def _by_histograms(
        self, thresholds: list[Thresholds], features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> tuple[TreeStructure, NDArray[np.float64], NDArray[np.float64] | None]:
        """Section 4.3.1: the best of all candidates, level by level; structure, leaf sums, root's histograms."""
        plan, structure = self._plan, ROOT
        tests = HistogramTests.of(self._cells, thresholds, features)
        children = np.zeros((1, 2))
        root: NDArray[np.float64] | None = None
        reached = np.ones((1, 0), dtype=np.bool_)
        for level in range(plan.depth):
            if tests is None:  # no candidate: every row goes right
                structure = structure.deeper(_void(2**level))
                children = np.repeat(children, 2, axis=0)
                continue
            if root is None or plan.width > 1:
                what = f"level {level + 1} of {purpose}"
                with self._aggregator.open(plan.joint_event(plan.width), purpose=what) as round_:
                    leaf = plan.leaf_query(structure, ensemble, self._positive)
                    query = CellSums(leaf=leaf, bins=tests.bins)
                    released = real(round_.release(query, plan.noise.mechanism, purpose=what))
                sums = released.reshape(2**level, tests.bins.total, 2)
                if root is None:
                    root, reached = sums[0], np.ones((1, tests.bins.total), dtype=np.bool_)
            else:  # of one feature, a node's bins are bins of the root
                sums = np.where(reached[:, :, np.newaxis], root, 0.0)
            sums = np.stack((plan.weights(sums), sums[..., 1]), axis=-1)
            best, children = tests.chosen(sums, plan.leaf_damping, 3.0 * plan.weight_stddev)
            structure = structure.deeper(tests.tests.taken(best))
            left = tests.goes_left[best]
            reached = np.stack((reached & left, reached & ~left), axis=1).reshape(-1, tests.bins.total)
        return structure, self._as_released(children), root

    def _partially_random(
        self, thresholds: list[Thresholds], features: tuple[int, ...], ensemble: Ensemble, purpose: str
    ) -> tuple[TreeStructure, NDArray[np.float64]]:
        """Section 4.3.2: the best of one random candidate a feature, by the sums to its left and the inherited one."""
        plan, structure = self._plan, ROOT
        children = self._leaf_sums(structure, ensemble, f"total of {purpose}")
        children = np.stack((plan.weights(children), children[:, 1]), axis=-1)
        paths = [NodePath(self._cells, as_cuts(thresholds))]
        for level in range(plan.depth):
            tests, is_open = random_tests(paths, features, self._generator)
            what = f"level {level + 1} of {purpose}"
            with self._aggregator.open(plan.joint_event(plan.width), purpose=what) as round_:
                leaf = plan.leaf_query(structure, ensemble, self._positive)
                released = real(round_.release(SideSums(leaf=leaf, tests=tests), plan.noise.mechanism, purpose=what))
            left = released.reshape(len(paths), len(features), 2)
            left = np.stack((plan.weights(left), left[..., 1]), axis=-1)
            best, children = best_of(
                left, children, is_open.reshape(len(paths), -1), plan.leaf_damping, 3.0 * plan.weight_stddev
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
        curved = self._plan.update == "newton" and self._plan.loss == "logistic"
        weight = children[:, 0] * self._plan.curvature_scale if curved else children[:, 0]
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
    """Algorithm 1: a forest, or one for each class, one after another.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of the structures.
        progress: called with (trees done, trees in all).
    """
    thresholds = first_candidates(aggregator.schema, plan.candidate_rule, bins=plan.bins, candidates=plan.candidates)
    if plan.quantile_event is not None:
        query = FeatureQuantiles(features=plan.numeric_features, cells=plan.bins)
        with aggregator.open(plan.quantile_event, purpose="candidates") as round_:
            found = round_.select(query, plan.quantile_mechanism, purpose="candidates").value
        for feature, own in zip(plan.numeric_features, found, strict=True):
            thresholds[feature] = np.unique(own)
    forests = Forests.of(plan, aggregator.schema, lambda: first_score(plan.initial, plan.loss, aggregator))
    before, total = 0, sum(forests.sizes)
    for place, own in enumerate(forests.plans(plan)):
        positive, start = forests.positive(place), forests.members[place].initial_score
        forest = _Forest(own, aggregator, generator, positive)

        def done(t: int, before: int = before) -> None:
            if progress is not None:
                progress(before + t + 1, total)

        ensemble = forest.grow(thresholds, start, done)
        forests.members[place] = _recalibrated(own, aggregator, ensemble, positive)
        before += forests.sizes[place]
    return forests.ensemble


def _recalibrated(plan: FederatedPlan, aggregator: Aggregator, ensemble: Ensemble, positive: int | None) -> Ensemble:
    """A2: the scores of batched updates are drawn together; one query more brings them back to log-odds."""
    if not plan.recalibrate:
        return ensemble
    purpose = "recalibration" if positive is None else f"recalibration, class {positive + 1}"
    edges = score_edges(ensemble, CALIBRATION_BINS)
    with aggregator.open(plan.score_event, purpose=purpose) as round_:
        query = ScoreCounts(ensemble=ensemble, edges=edges, positive=positive)
        released = real(round_.release(query, plan.score_mechanism, purpose=purpose))
    return recalibrated(ensemble, *platt_line(released, edges, stddev=plan.score_mechanism.stddevs[0]))
