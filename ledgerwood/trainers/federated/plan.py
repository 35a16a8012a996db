"""The federated framework's plan and presets: what is asked of the rows, how often, and what is made of it.

Maddock, Cormode, Wang, Maple and Jha: "Federated Boosted Decision Trees with Differential Privacy" (2022), Table 1.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple, final, get_args

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
from ledgerwood.curator.queries.bins import MAX_SUMS
from ledgerwood.ensemble import Ensemble, FeatureCells
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    BoxShifts,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    JointQuantilesMechanism,
    SkellamMechanism,
)
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import Count, positive, share
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.federated.candidates import CandidateRule
from ledgerwood.trainers.federated.communication import Communication, bins_of, communication_of
from ledgerwood.trainers.federated.methods import METHODS, AbstractSplitMethod, SplitMethod
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianPlan
from ledgerwood.trainers.parts.splits import combined_features, cyclic_features
from ledgerwood.trainers.parts.whole_noise import bits_of, skellam_noise

Update = Literal["averaging", "gradient", "newton"]
FeatureCycle = Literal["windows", "combinations", "random"]
What = Literal["quantiles", "sums", "candidates", "recalibration"]
"""Kinds of draws, in the order in which the plan's event names them."""
MAX_REACH = 1e100
"""Largest absolute score that all leaves together may give: squares of scores stay finite."""


class Step(NamedTuple):
    """The place of a draw: its tree, counted over all forests, or None; what is released; of how many features."""

    tree: int | None
    what: What
    features: int


class QueryCounts(NamedTuple):
    """Table 1: how many queries of one noise multiplier the components are worth, whose costs add up.

    Args:
        splits: kappa_s. weights: kappa_w. candidates: kappa_c. recalibration: 1 for each forest, or 0.
    """

    splits: int
    weights: int
    candidates: int
    recalibration: int

    @property
    def total(self) -> int:
        """kappa: the plan's noise multiplier grows with its root."""
        return sum(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedPlan(AbstractGaussianPlan):
    """The plan of the federated framework: all queries and their noise. Fields that all systems have: see its bases.

    With K forests all is asked K times.

    Args:
        n_features: m. numeric_features: which of them have thresholds.
        split_method: C1, how a split is found: by noisy histograms, partly random, or drawn without a look.
        update: C2, what a leaf's value is made of.
        candidates: C3, where thresholds come from: even or logarithmic steps, private quantiles, or steps that are
            refined by released hessians.
        n_candidates: Q, thresholds a numeric feature.
        refinements: s, rounds of the iterative hessian rule for each feature.
        features_per_tree: A1: k, or None for all. feature_cycle: all in a cycle, by "windows" of neighbours or by
            "combinations" of k, or drawn at "random".
        trees_per_batch: A2: B, trees that share gradients, and whose mean is one step.
        recalibrate: whether a line through the scores is fitted at the end, by one query more (logistic loss). Ours.
        candidate_share: share of the budget's epsilon for "quantiles". candidate_epsilon: of one feature's, in nats.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (systems.MADDOCK_2022, systems.CHEN_2016)

    n_features: Annotated[int, Count("features")]
    numeric_features: tuple[int, ...]
    split_method: SplitMethod
    update: Update
    candidates: CandidateRule
    n_candidates: Annotated[int, Count("thresholds a feature")]
    refinements: Annotated[int, Count("rounds")]
    feature_cycle: FeatureCycle
    trees_per_batch: Annotated[int, Count("trees")]
    recalibrate: bool
    initial_score: Literal["zero", "moments"]
    candidate_share: Annotated[float, share("share")]
    candidate_epsilon: Annotated[float, positive("nats")] = 1.0

    def _require_whole(self) -> None:
        object.__setattr__(
            self, "numeric_features", _validate.items("numeric_features", self.numeric_features, "places")
        )
        if not set(self.numeric_features) <= set(range(self.n_features)):
            raise _validate.fail("numeric_features", self.numeric_features, f"in 0 .. {self.n_features - 1}", "places")
        if self.n_estimators * self.learning_rate * self.max_delta_step > MAX_REACH:
            raise InvalidParameter(
                f"n_estimators={self.n_estimators!r}, learning_rate={self.learning_rate!r} and "
                f"max_delta_step={self.max_delta_step!r} must have a product of at most {MAX_REACH!r} (unit: score)"
            )
        if self.update == "averaging" and (self.loss != "squared" or self.initial_score != "zero"):
            raise InvalidParameter(
                "update='averaging' takes means of labels: it needs loss='squared' and initial_score='zero'"
            )
        self.require_sums(
            (self.candidates == "quantiles", "candidates='quantiles': a choice is no sum; set another rule"),
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
    def weight_stddev(self) -> float:
        """Standard deviation of the noise of a weight, in its unit."""
        stddev = self.leaf_stddevs[0]
        return stddev / self.curvature_scale if isinstance(self.leaf, LeafCurvatures) else stddev

    def candidate_query(
        self, bins: CandidateBins, ensemble: Ensemble, positive: int | None
    ) -> ScoreQuery[BoxShifts] | BinCounts:
        """C3: the hessians of each bin; numbers of rows, where the hessian is 1."""
        if self.loss == "logistic":
            return BinHessians(bins=bins, bits=self.candidate_bits).of(ensemble, positive=positive)
        return BinCounts(bins=bins)

    @property
    def candidate_stddev(self) -> float:
        """Standard deviation of the candidates' histograms; one feature's histogram is one query."""
        return self.noise_multiplier * (0.25 if self.loss == "logistic" else 1.0)

    @property
    def candidate_bits(self) -> int | None:
        """Whole units of 2**-bits that Skellam noise on hessians is drawn in; rows are whole anyhow."""
        return bits_of(self.candidate_stddev) if self.noise == "skellam" and self.loss == "logistic" else None

    @property
    def candidate_mechanism(self) -> GaussianMechanism | SkellamMechanism:
        """Noise of the candidates' histograms."""
        if self.noise == "skellam":
            return skellam_noise(self.candidate_stddev, self.candidate_bits or 0)
        return GaussianMechanism(stddev=self.candidate_stddev)

    def in_hessian_units(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released histograms of candidates, in hessians or rows."""
        return released * 2.0 ** -(self.candidate_bits or 0)

    @property
    def score_stddev(self) -> float:
        """Standard deviation of the recalibration: half of a query's mu**2 for the rows, half for the labels."""
        return self.noise_multiplier / math.sqrt(0.5)

    def score_query(self, edges: tuple[float, ...]) -> ScoreCounts:
        """The recalibration's statistic."""
        return ScoreCounts(edges=edges, bits=bits_of(self.score_stddev) if self.noise == "skellam" else None)

    @property
    def score_mechanism(self) -> EllipticalGaussianMechanism | SkellamMechanism:
        """Noise of the recalibration."""
        if self.noise == "skellam":
            return skellam_noise(self.score_stddev, bits_of(self.score_stddev))
        return EllipticalGaussianMechanism(stddevs=(self.score_stddev, self.score_stddev))

    def in_rows(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released counts of scores, in rows and labels."""
        return released * 2.0 ** -bits_of(self.score_stddev) if self.noise == "skellam" else released

    @property
    def quantile_mechanism(self) -> JointQuantilesMechanism:
        """The mechanism that chooses one feature's quantiles."""
        marks = tuple((place + 1) / (self.n_candidates + 1) for place in range(self.n_candidates))
        # Twice the rows to move, at most: a rate of half the epsilon is at most that much.
        return JointQuantilesMechanism(quantiles=marks, rate=self.candidate_epsilon / 2.0)

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: how candidates are chosen, where they are private quantiles."""
        quantiles = (self.quantile_mechanism,) if self.candidates == "quantiles" else ()
        return (*AbstractGaussianPlan.cited_parts(self), *quantiles)

    # ------------------------------------------------------------------------------------------------- how often

    @property
    def width(self) -> int:
        """k: how many features a tree may split on."""
        return self.n_features if self.features_per_tree is None else min(self.features_per_tree, self.n_features)

    @property
    def drawn_features(self) -> bool:
        """True if a tree's features are drawn, and not those of a cycle."""
        return self.feature_cycle == "random" and self.width < self.n_features

    def features(self, tree: int) -> tuple[int, ...]:
        """F(t) of tree t, from 0, of a cycle."""
        rule = combined_features if self.feature_cycle == "combinations" else cyclic_features
        return tuple(sorted(rule(tree, n_features=self.n_features, per_tree=self.features_per_tree)))

    def refined_features(self, tree: int) -> int:
        """Number of features whose histograms of hessians are asked for tree t.

        Of a set that is drawn only later on all are, whatever they are: a plan's events are fixed.
        """
        if not self.refined(tree) or self.split_method == "histogram":
            return 0
        if self.drawn_features:
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
        found: Counter[What] = Counter()
        for (what, features), count in self._kinds.items():
            found[what] += features * count
        splits, weights = (0, found["sums"]) if self.asks_leaves else (found["sums"], 0)
        return QueryCounts(splits, weights, found["candidates"], found["recalibration"])

    def event_of(self, what: What, features: int) -> Event:
        """The event of one step of the schedule: of some features at once, what that many queries cost."""
        match what:
            case "quantiles":
                query = FeatureQuantiles(features=self.numeric_features, cells=self.max_bins)
                return query.event(self.quantile_mechanism, self.adjacency)
            case "sums":
                pair = self.asked.sensitivity(self.adjacency)
                pair = pair if features == 1 else pair.repeated(histograms=features)
                return self.leaf_mechanism.event(pair, self.adjacency)
            case "candidates" if self.loss == "logistic":
                return self.candidate_mechanism.event(
                    hessian_shifts(features, self.adjacency, bits=self.candidate_bits), self.adjacency
                )
            case "candidates":
                counts = BoxShifts.of_counts(self.adjacency, histograms=features)
                return self.candidate_mechanism.event(counts, self.adjacency)
            case "recalibration":
                scores = self.score_query((0.0,)).sensitivity(self.adjacency)
                return self.score_mechanism.event(scores, self.adjacency)

    @property
    def releases_quantiles(self) -> bool:
        """True if the candidates are private quantiles, which are released once."""
        return self.candidates == "quantiles" and bool(self.numeric_features) and self.max_depth > 0

    def steps_of(self, tree: int) -> tuple[tuple[What, int], ...]:
        """The draws of a tree of one forest, in order: what is released, and of how many features at once."""
        refined = self.refined_features(tree)
        candidates: tuple[tuple[What, int], ...] = (("candidates", refined),) if refined else ()
        return (*candidates, *(("sums", features) for features in self.method.asked(self)))

    def schedule(self) -> Iterator[tuple[Event, Step]]:
        """See `AbstractPlan`; forests take turns."""
        events = {kind: self.event_of(*kind) for kind in self._kinds}
        if self.releases_quantiles:
            yield events["quantiles", 0], Step(None, "quantiles", 0)
        for number in range(self.n_estimators * self.classes):
            for kind in self.steps_of(number // self.classes):
                yield events[kind], Step(number, *kind)
        for _ in range(self.classes if self.recalibrate else 0):
            yield events["recalibration", 1], Step(None, "recalibration", 1)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The draws of the schedule, equal events together."""
        kinds, parts = self._kinds, Counter[Event]()
        for kind in sorted(kinds, key=lambda kind: get_args(What).index(kind[0])):
            parts[self.event_of(*kind)] += kinds[kind]
        return tuple(
            Stage(event=event, steps=range(count), single=self.releases_quantiles and place == 0)
            for place, (event, count) in enumerate(parts.items())
        )

    @property
    def _kinds(self) -> Counter[tuple[What, int]]:
        """Number of steps of each kind in the schedule."""
        found: Counter[tuple[What, int]] = Counter()
        if self.releases_quantiles:
            found["quantiles", 0] = 1
        for steps, count in Counter(map(self.steps_of, range(self.n_estimators))).items():
            for kind in steps:
                found[kind] += count * self.classes
        if self.recalibrate:
            found["recalibration", 1] = self.classes
        return found

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
        if self.releases_quantiles:
            shares = split(
                budget, {"candidates": self.candidate_share, "trees": 1.0 - self.candidate_share}, currency="epsilon"
            )
            own = shares["candidates"].epsilon_each(len(self.numeric_features))
            start = dataclasses.replace(self, candidate_epsilon=own)
        plan = start.scaled(calibrate(lambda noise_multiplier: start.scaled(noise_multiplier).event, budget))
        plan.require_first_fit()
        plan.leaf_mechanism.require_fit(plan.asked.grid)
        if plan.query_counts.candidates:
            bins = CandidateBins.of([FeatureCells(ordered=2, equality=())])
            asked = (
                BinHessians(bins=bins, bits=plan.candidate_bits) if plan.loss == "logistic" else BinCounts(bins=bins)
            )
            plan.candidate_mechanism.require_fit(asked.grid)
        if plan.recalibrate:
            plan.score_mechanism.require_fit(plan.score_query((0.0,)).grid)
        return plan

    def require_room(self, cells: Sequence[FeatureCells]) -> None:
        """See `AbstractBoostedPlan`: histograms that the curator would refuse when the levels above are paid for."""
        if self.asks_leaves:
            return
        by_bins = self.split_method == "histogram"
        each = sum(bins_of(cells, self.n_candidates)[: self.width]) if by_bins else self.width
        nodes = 2 ** ((len(self.method.asked(self)) if by_bins else self.max_depth) - 1)
        if nodes * each > MAX_SUMS:
            raise _validate.fail("nodes * bins of a level", nodes * each, f"at most {MAX_SUMS}", "sums")

    def communication(self, cells: Sequence[FeatureCells], *, n_clients: int = 1) -> Communication:
        """Counts what a federation would send: docs/explanation/federated.md#communication.

        Args:
            cells: of each feature: `schema.cells(plan.max_bins)`.
            n_clients: how many take part.
        """
        return communication_of(self, cells, n_clients=n_clients)

    # --------------------------------------------------------------------------------------------- what is made of it

    def of_forest(self, trees: int, forests: int) -> "FederatedPlan":
        """The plan as one of several forests follows it.

        Forests that share the trees of one forest are not recalibrated: the one draw for it was fixed before the number
        of classes was known.
        """
        if forests == self.classes:
            return dataclasses.replace(self, classes=1)
        batch = max(1, round(self.trees_per_batch * trees / self.n_estimators))
        return dataclasses.replace(
            self, n_estimators=trees, trees_per_batch=batch, recalibrate=False, initial_score="zero"
        )

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`; by "averaging" the mean label, else a damped step."""
        if self.update != "averaging":
            return self.newton_values(released)
        weight = self.weights(released)
        means = np.divide(-released[:, 1], weight, out=np.zeros(len(weight)), where=weight > 0.0)
        return np.asarray(np.clip(means, -1.0, 1.0))

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64] | None:
        """See `AbstractBoostedPlan`; not known where the splits are the best ones by the same noise."""
        if not self.asks_leaves:
            return None
        if self.update != "averaging":
            return self.newton_noise(released)
        weight = self.weights(released)
        noise = np.divide(self.leaf_stddevs[1], weight, out=np.zeros(len(weight)), where=weight > 0.0)
        return np.asarray(np.minimum(noise, 1.0))

    @property
    def leaf_lambda(self) -> float:
        """See `AbstractGaussianPlan`; the noise of a batch's mean is smaller by the root of its trees."""
        if self.reg_lambda is not None:
            return self.reg_lambda
        steps = math.ceil(self.n_estimators / self.trees_per_batch)
        return self.lambda_by_noise(steps) / math.sqrt(min(self.trees_per_batch, self.n_estimators))
