"""The plan of the federated framework: what is asked of the rows, how often, and what is made of it; priced first.

Maddock, Cormode, Wang, Maple and Jha: "Federated Boosted Decision Trees with Differential Privacy" (2022), Table 1.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import (
    BinCounts,
    BinHessians,
    CandidateBins,
    FeatureQuantiles,
    LeafCurvatures,
    LeafMoments,
    ScoreCounts,
    ScoreQuery,
    hessian_shifts,
)
from ledgerwood.ensemble import Ensemble, FeatureCells
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoxShifts, EllipticalGaussianMechanism, GaussianMechanism, JointQuantilesMechanism
from ledgerwood.trainers.base.bounds import Count, positive, share
from ledgerwood.trainers.base.plan import AbstractGaussianPlan
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.federated.candidates import (
    CandidateRule,
)
from ledgerwood.trainers.federated.communication import Communication, communication_of
from ledgerwood.trainers.federated.methods import METHODS, AbstractSplitMethod, SplitMethod
from ledgerwood.trainers.federated.query_counts import QueryCounts
from ledgerwood.trainers.parts.leaves import lambda_by_noise, newton_leaves, pooled, score_noise_by_rule
from ledgerwood.trainers.parts.pair_noise import NoiseKind, PairNoise
from ledgerwood.trainers.parts.splits import combined_features, cyclic_features

Update = Literal["averaging", "gradient", "newton"]
FeatureCycle = Literal["windows", "combinations", "random"]
MAX_REACH = 1e100
"""Largest absolute score that all leaves together may give: squares of scores stay finite."""


class Step(NamedTuple):
    """What a draw is for: the tree, in the order of all forests, or None; what is released; of how many features."""

    tree: int | None
    what: Literal["quantiles", "candidates", "sums", "recalibration"]
    features: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedPlan(AbstractGaussianPlan):
    """All that the framework will do, fixed and priced before a row is read. Fields of all systems: see its bases.

    With K forests all is asked K times.

    Args:
        n_features: m. numeric_features: which of them have thresholds.
        split_method: C1. update: C2.
        candidates: C3. n_candidates: Q, thresholds a numeric feature.
        refinements: s, rounds of the iterative hessian rule for each feature.
        features_per_tree: A1: k, or None for all. feature_cycle: all in a cycle, by "windows" of neighbours or by
            "combinations" of k, or drawn at "random".
        batch: A2: B, trees that share gradients, and whose mean is one step.
        recalibrate: whether a line through the scores is fitted at the end, by one query more (logistic loss). Ours.
        candidate_share: share of the budget's epsilon for "quantiles". candidate_epsilon: of one feature's, in nats.
        noise: "gaussian"; or "skellam", whole numbers that clients can add shares of: see `PairNoise`. Ours.
    """

    n_features: Annotated[int, Count("features")]
    numeric_features: tuple[int, ...]
    split_method: SplitMethod
    update: Update
    candidates: CandidateRule
    n_candidates: Annotated[int, Count("thresholds a feature")]
    refinements: Annotated[int, Count("rounds")]
    feature_cycle: FeatureCycle
    batch: Annotated[int, Count("trees")]
    recalibrate: bool
    initial_score: Literal["zero", "moments"]
    candidate_share: Annotated[float, share("share")]
    candidate_epsilon: Annotated[float, positive("nats")]
    noise: NoiseKind = "gaussian"

    def _require_whole(self) -> None:
        object.__setattr__(
            self, "numeric_features", _validate.items("numeric_features", self.numeric_features, "places")
        )
        if not set(self.numeric_features) <= set(range(self.n_features)):
            raise _validate.fail("numeric_features", self.numeric_features, f"in 0 .. {self.n_features - 1}", "places")
        if self.n_estimators * self.learning_rate * self.leaf_clamp > MAX_REACH:
            raise InvalidParameter(
                f"n_estimators={self.n_estimators!r}, learning_rate={self.learning_rate!r} and "
                f"leaf_clamp={self.leaf_clamp!r} must have a product of at most {MAX_REACH!r} (unit: score)"
            )
        if self.update == "averaging" and (self.loss != "squared" or self.initial_score != "zero"):
            raise InvalidParameter(
                "update='averaging' takes means of labels: it needs loss='squared', and no first guess"
            )
        if self.noise == "skellam" and not self._sums_leaves_only:
            raise InvalidParameter(
                "noise='skellam' is for sums of leaves alone: split_method='totally_random', candidates 'uniform' or "
                "'log', initial_score='zero', no recalibration, rows without weights and a declared schema"
            )
        if self.recalibrate and self.loss != "logistic":
            raise InvalidParameter("recalibrate=True fits probabilities: it needs loss='logistic'")
        if self.candidates == "quantiles" and (self.n_candidates > 64 or self.max_bins > 1024):
            raise InvalidParameter(
                f"candidates='quantiles' chooses at most 64 of at most 1024 steps; got "
                f"{self.n_candidates} of {self.max_bins}"
            )
        self.leaf  # noqa: B018  # checks what it has to be made of

    # ------------------------------------------------------------------------------------------- what is asked, and how

    @property
    def leaf(self) -> LeafMoments | LeafCurvatures:
        """C2: what a row adds to its leaf."""
        if self.update == "newton" and self.loss == "logistic":
            return LeafCurvatures(clip=self.clip, curvature_scale=self.curvature_scale)
        return LeafMoments(loss=self.loss, clip=self.clip)

    @property
    def pair_noise(self) -> PairNoise:
        """That of every pair of sums, whatever it is a sum of."""
        return PairNoise(
            kind=self.noise, leaf=self.leaf, multiplier=self.noise_multiplier,
            count_share=self.count_share,
        )  # fmt: skip

    @property
    def gradient_stddev(self) -> float:
        """Noise standard deviation of a sum of gradients; in units of the clip for the squared loss."""
        stddev = self.pair_noise.stddevs[1]
        return stddev / self.clip if self.loss == "squared" else stddev

    @property
    def weight_stddev(self) -> float:
        """Standard deviation of the noise of a weight, in its unit."""
        stddev = self.pair_noise.stddevs[0]
        return stddev / self.curvature_scale if self.update == "newton" and self.loss == "logistic" else stddev

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees of a forest together.

        docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(self.n_estimators) * self.clip * rows / 2.0**self.max_depth / self.pair_noise.stddevs[1]

    def candidate_query(
        self, bins: CandidateBins, ensemble: Ensemble, positive: int | None
    ) -> ScoreQuery[BoxShifts] | BinCounts:
        """C3: the hessians of each bin; numbers of rows, where the hessian is 1."""
        if self.loss == "logistic":
            return BinHessians(bins=bins).of(ensemble, positive=positive)
        return BinCounts(bins=bins)

    @property
    def candidate_mechanism(self) -> GaussianMechanism:
        """Its noise: one feature's histogram is one query."""
        return GaussianMechanism(stddev=self.noise_multiplier * (0.25 if self.loss == "logistic" else 1.0))

    @property
    def score_mechanism(self) -> EllipticalGaussianMechanism:
        """Noise of the recalibration: half of a query's mu**2 for the rows, half for the labels."""
        stddev = self.noise_multiplier / math.sqrt(0.5)
        return EllipticalGaussianMechanism(stddevs=(stddev, stddev))

    @property
    def quantile_mechanism(self) -> JointQuantilesMechanism:
        """How one feature's quantiles are chosen."""
        marks = tuple((place + 1) / (self.n_candidates + 1) for place in range(self.n_candidates))
        # Twice the rows to move, at most: a rate of half the epsilon is at most that much.
        return JointQuantilesMechanism(quantiles=marks, rate=self.candidate_epsilon / 2.0)

    @property
    def _sums_leaves_only(self) -> bool:
        plain = self.candidates in ("uniform", "log") and self.initial_score == "zero"
        declared = self.purchase is None and not self.weighted
        return self.split_method == "totally_random" and plain and declared and not self.recalibrate

    # ------------------------------------------------------------------------------------------------- how often

    @property
    def width(self) -> int:
        """k: how many features a tree may split on."""
        return self.n_features if self.features_per_tree is None else min(self.features_per_tree, self.n_features)

    @property
    def fixed_width(self) -> bool:
        """True if all trees have the same features."""
        return self.width == self.n_features

    def features(self, tree: int) -> tuple[int, ...]:
        """F(t) of tree t, from 0, of a cycle."""
        rule = combined_features if self.feature_cycle == "combinations" else cyclic_features
        return tuple(sorted(rule(tree, n_features=self.n_features, per_tree=self.features_per_tree)))

    def refined_features(self, tree: int) -> int:
        """How many features' histograms of hessians are asked for tree t, by "totally_random" and "partially_random".

        Of a set that is drawn only later on all are, whatever they are: a plan's events are fixed.
        """
        if not self.refined(tree) or self.split_method == "histogram":
            return 0
        if self.feature_cycle == "random" and not self.fixed_width:
            return self.width
        return len(set(self.features(tree)) & set(self.numeric_features))

    def refined(self, tree: int) -> bool:
        """Returns whether candidates are refined at tree t: in as many trees as s cycles of windows have."""
        cycle = math.ceil(self.n_features / self.width)
        return (
            self.candidates == "iterative_hessian"
            and self.max_depth > 0
            and bool(self.numeric_features)
            and tree < self.refinements * cycle
        )

    @property
    def asks_leaves(self) -> bool:
        """True if leaves are their own query, and not what the last level's splits have shown."""
        return self.method is METHODS["totally_random"]

    @property
    def method(self) -> AbstractSplitMethod:
        """C1: what is asked for a tree, and how it grows from it. Without levels only leaves are."""
        return METHODS[self.split_method if self.max_depth else "totally_random"]

    @property
    def query_counts(self) -> QueryCounts:
        """Table 1, with what is needed beyond it: docs/explanation/federated.md#query-counts."""
        forests = self.n_estimators * self.classes
        splits = 0 if self.asks_leaves else forests * sum(self.method.asked(self))
        return QueryCounts(
            splits=splits,
            weights=forests if self.asks_leaves else 0,
            candidates=self.classes * sum(self.refined_features(tree) for tree in range(self.n_estimators)),
            recalibration=self.classes if self.recalibrate else 0,
        )

    def joint_event(self, features: int) -> Event:
        """A pair of sums for each of some features at once: what that many queries cost."""
        shifts = self.pair_noise.asked.sensitivity(self.adjacency)
        return self.pair_noise.mechanism.event(
            shifts if features == 1 else shifts.repeated(histograms=features), self.adjacency
        )

    def candidate_event(self, features: int) -> Event:
        """Histograms of some features' hessians."""
        if self.loss == "logistic":
            shifts = hessian_shifts(features, self.adjacency)
        else:
            shifts = BoxShifts.of_counts(self.adjacency, histograms=features)
        return self.candidate_mechanism.event(shifts, self.adjacency)

    @property
    def score_event(self) -> Event:
        """The recalibration."""
        shifts = ScoreCounts(edges=(0.0,)).sensitivity(self.adjacency)
        return self.score_mechanism.event(shifts, self.adjacency)

    @property
    def quantile_event(self) -> Event | None:
        """All numeric features' quantiles, bought once; None where candidates are others."""
        if self.candidates != "quantiles" or not self.numeric_features or not self.max_depth:
            return None
        query = FeatureQuantiles(features=self.numeric_features, cells=self.max_bins)
        return query.event(self.quantile_mechanism, self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What `schedule` draws, equal events together."""
        parts: Counter[Event] = Counter()
        for features, count in Counter(self.method.asked(self)).items():
            parts[self.joint_event(features)] += self.n_estimators * self.classes * count
        for features, count in Counter(map(self.refined_features, range(self.n_estimators))).items():
            if features:
                parts[self.candidate_event(features)] += self.classes * count
        if self.recalibrate:
            parts[self.score_event] += self.classes
        quantiles = () if self.quantile_event is None else (Stage.once(self.quantile_event, 0),)
        return (*quantiles, *(Stage(event=event, steps=range(count)) for event, count in parts.items()))

    def schedule(self) -> Iterator[tuple[Event, Step]]:
        """(event, step) of each draw after the initial score, in the order of the loop: forests take turns."""
        if self.quantile_event is not None:
            yield self.quantile_event, Step(tree=None, what="quantiles")
        for number in range(self.n_estimators * self.classes):
            tree = number // self.classes
            if refined := self.refined_features(tree):
                yield self.candidate_event(refined), Step(tree=number, what="candidates", features=refined)
            for features in self.method.asked(self):
                yield self.joint_event(features), Step(tree=number, what="sums", features=features)
        for _ in range(self.classes if self.recalibrate else 0):
            yield self.score_event, Step(tree=None, what="recalibration")

    @property
    def size(self) -> str:
        """See `AbstractGaussianPlan`."""
        return f"{self.query_counts.total} queries"

    @property
    def equal_queries(self) -> int:
        """See `AbstractGaussianPlan`."""
        return self.query_counts.total

    def _found(self, budget: Budget) -> "FederatedPlan":
        start = self
        if self.quantile_event is not None:
            shares = split(
                budget, {"candidates": self.candidate_share, "trees": 1.0 - self.candidate_share}, currency="epsilon"
            )
            own = shares["candidates"].epsilon_each(len(self.numeric_features))
            start = dataclasses.replace(self, candidate_epsilon=own)
        plan = start.scaled(calibrate(lambda noise_multiplier: start.scaled(noise_multiplier).event, budget))
        plan.require_first_fit()
        plan.pair_noise.mechanism.require_fit(plan.pair_noise.asked.grid)
        if any(plan.refined_features(tree) for tree in range(plan.n_estimators)):
            bins = CandidateBins.of([FeatureCells(ordered=2, equality=())])
            asked = BinHessians(bins=bins) if plan.loss == "logistic" else BinCounts(bins=bins)
            plan.candidate_mechanism.require_fit(asked.grid)
        if plan.recalibrate:
            plan.score_mechanism.require_fit(ScoreCounts(edges=(0.0,)).grid)
        return plan

    def communication(self, cells: Sequence[FeatureCells], *, n_clients: int = 1) -> Communication:
        """What a federation would send: docs/explanation/federated.md#communication.

        Args:
            cells: of each feature: `schema.cells(plan.max_bins)`.
            n_clients: how many take part.
        """
        return communication_of(self, cells, n_clients=n_clients)

    # --------------------------------------------------------------------------------------------- what is made of it

    def of_forest(self, trees: int, forests: int) -> "FederatedPlan":
        """The plan as one of several forests follows it.

        Of forests that share this plan's trees none is recalibrated: the one draw for it was fixed before the number of
        classes was known.
        """
        if forests == self.classes:
            return dataclasses.replace(self, classes=1)
        batch = max(1, round(self.batch * trees / self.n_estimators))
        return dataclasses.replace(self, n_estimators=trees, batch=batch, recalibrate=False, initial_score="zero")

    def leaf_values(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from released sums (n_leaves, 2)."""
        weight = self.weights(sums)
        if self.update == "averaging":
            means = np.divide(-sums[:, 1], weight, out=np.zeros(len(weight)), where=weight > 0.0)
            return np.asarray(np.clip(means, -1.0, 1.0))
        steps = newton_leaves(pooled(weight, self.pooling), sums[:, 1], reg_lambda=self.leaf_lambda, rule="add")
        return self.learning_rate * np.clip(steps, -self.leaf_clamp, self.leaf_clamp)

    def weights(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Hessians, or numbers of rows, in their own unit; (...,)."""
        curved = self.update == "newton" and self.loss == "logistic"
        return sums[..., 0] / self.curvature_scale if curved else sums[..., 0]

    @property
    def leaf_lambda(self) -> float:
        """lambda, in units of the weight: the given one, or by the known noise of the gradients."""
        if self.reg_lambda is not None:
            return self.reg_lambda
        score_noise = self.score_noise
        if score_noise is None:
            score_noise = score_noise_by_rule(
                self.loss, self.expected_rows, depth=self.max_depth, stddev=self.gradient_stddev
            )
        steps = math.ceil(self.n_estimators / self.batch)
        damping = lambda_by_noise(
            trees=steps, learning_rate=self.learning_rate, stddev=self.gradient_stddev, score_noise=score_noise
        )
        return damping / math.sqrt(min(self.batch, self.n_estimators))
