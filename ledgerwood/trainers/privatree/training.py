"""PrivaTree: one decision tree whose splits and labels are chosen privately.

Vos, Vos, Li, Erkin, Verwer: "Differentially-Private Decision Trees and Provable Robustness to Data Poisoning" (2023).
This file is its plan and its loop (Algorithm 1). Where the paper or its code is wrong, the sound version is here, and
docs/errata.md says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events import Event, Repeated
from ledgerwood.accounting.splitting import Share, split
from ledgerwood.curator import (
    Aggregator,
    BinClassCounts,
    CandidateBins,
    Categorical,
    FeatureQuantiles,
    GiniSplits,
    LeafLabels,
    Loss,
    Schema,
    gini_range,
    label_range,
)
from ledgerwood.curator.queries.class_counts import class_number
from ledgerwood.curator.queries.row_counts import MAX_COUNTS
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import (
    BoxShifts,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    JointQuantilesMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
)
from ledgerwood.mechanisms.choices.quantiles import MOST_THRESHOLDS
from ledgerwood.mechanisms.sensitivity import quotient_down
from ledgerwood.trainers.base.bounds import Count, positive, share
from ledgerwood.trainers.base.plan import AbstractEpsilonPlan
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.candidates import even_thresholds
from ledgerwood.trainers.parts.splits import random_tree
from ledgerwood.trainers.privatree.partitions import least_gini_splits

SplitRule = Literal["gini", "histograms", "joint_gaussian", "random"]
CandidateRule = Literal["public", "quantiles"]
ChoiceRule = Literal["permute_and_flip", "exponential"]
Choice = PermuteAndFlipMechanism | ExponentialMechanism
LEAST_LABEL_EPSILON = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivaTreePlan(AbstractEpsilonPlan):
    """All that PrivaTree will do, fixed and priced before a row is read. Fields of all systems: see `AbstractPlan`.

    Args:
        n_features: m, columns of the schema. n_numeric: how many of them are numeric.
        splits: "gini" (ours), a test is chosen by n times the Gini impurity, at a cost that does not depend on m;
            "histograms", by numbers of rows by class with Laplace noise, which cost m; "joint_gaussian" (ours), with
            Gaussian noise, which cost the root of m and a delta; "random" (ours), drawn without a look at the rows, at
            no cost.
        choice: of "gini", "permute_and_flip", never worse at one epsilon; or "exponential", bounded-range, which costs
            less with a delta.
        candidates: "public", even steps; "quantiles", private quantiles of each numeric feature, which cost
            `n_numeric`.
        candidate_bins: how many bins a numeric feature's candidates make; `max_bins` takes all borders.
        tree_epsilon: of the whole tree, in nats: the common scale of the plan.
        leaf_share: share of it for the labels; all of it where nothing else is released.
        quantile_share: share of the rest for the quantiles; the levels divide what is left evenly.
    """

    n_features: Annotated[int, Count("features")]
    n_numeric: Annotated[int, Count("features", minimum=0)]
    splits: SplitRule
    choice: ChoiceRule
    candidates: CandidateRule
    candidate_bins: int
    tree_epsilon: Annotated[float, positive("nats")]
    leaf_share: Annotated[float, share("share")]
    quantile_share: Annotated[float, share("share")]

    def _require_whole(self) -> None:
        if self.n_numeric > self.n_features:
            raise _validate.fail("n_numeric", self.n_numeric, f"at most n_features={self.n_features}", "features")
        most = MOST_THRESHOLDS + 1 if self.candidates == "quantiles" else self.max_bins
        if not 2 <= _validate.count("candidate_bins", self.candidate_bins, "bins") <= self.max_bins:
            raise _validate.fail("candidate_bins", self.candidate_bins, f"in [2, max_bins={self.max_bins}]", "bins")
        if self.max_bins > most:
            raise _validate.fail("max_bins", self.max_bins, f"at most {most} for private quantiles", "steps of a range")
        if self.candidates == "quantiles" and self.candidate_bins > 65:
            raise _validate.fail("candidate_bins", self.candidate_bins, "at most 65 for private quantiles", "bins")

    @property
    def loss(self) -> Loss:
        """None is taken: the rows count by class."""
        return "squared"

    @property
    def buys_quantiles(self) -> bool:
        """True if thresholds are bought: not where there is nothing to split."""
        return self.candidates == "quantiles" and self.n_numeric > 0 and self.max_depth > 0 and self.splits != "random"

    @property
    def buys_levels(self) -> bool:
        """True if splits are."""
        return self.max_depth > 0 and self.splits != "random"

    def _share(self, part: Literal["quantiles", "levels", "labels"]) -> Share:
        rest = 1.0 - self.leaf_share
        parts = {"labels": self.leaf_share if self.buys_levels else 1.0}
        if self.buys_quantiles:
            parts["quantiles"] = rest * self.quantile_share
        if self.buys_levels:
            parts["levels"] = rest * (1.0 - self.quantile_share) if self.buys_quantiles else rest
        whole = Budget(epsilon=self.tree_epsilon, delta=0.0, adjacency=self.adjacency)
        return split(whole, parts)[part]

    @property
    def quantiles(self) -> JointQuantilesMechanism:
        """The mechanism that chooses one feature's thresholds; it is used for each numeric feature in turn."""
        shares = tuple(i / self.candidate_bins for i in range(1, self.candidate_bins))
        range_ = JointQuantilesMechanism(quantiles=shares, rate=1.0).event(self.adjacency).epsilon
        epsilon = self._share("quantiles").epsilon_each(self.n_numeric)
        # At a thousand nats a row no draw is off by one.
        return JointQuantilesMechanism(quantiles=shares, rate=min(quotient_down(epsilon, range_), 1e3))

    @property
    def level(self) -> Choice | LaplaceMechanism | GaussianMechanism:
        """How one level is chosen, or its numbers of rows are released."""
        epsilon = self._share("levels").epsilon_each(self.max_depth)
        if self.splits == "gini":
            rate = quotient_down(epsilon, gini_range(self.adjacency).range)
            return (
                PermuteAndFlipMechanism(rate=rate)
                if self.choice == "permute_and_flip"
                else ExponentialMechanism(rate=rate)
            )
        if self.splits == "histograms":
            return LaplaceMechanism.of_multiplier(float_up(1 / Fraction(epsilon)), self._counts, proportions=(1.0,))
        return GaussianMechanism(stddev=self._counts.l2((1.0,)) / epsilon)

    @property
    def _counts(self) -> BoxShifts:
        """By how much a row moves a level's numbers of rows: it is in every feature's histogram."""
        return BoxShifts.of_counts(self.adjacency, histograms=self.n_features)

    @property
    def labels(self) -> PermuteAndFlipMechanism:
        """How the leaves' labels are chosen."""
        epsilon = self._share("labels").epsilon
        return PermuteAndFlipMechanism(rate=quotient_down(epsilon, label_range(self.adjacency).range))

    @property
    def quantile_event(self) -> Event:
        """All features' thresholds."""
        return Repeated(self.quantiles.event(self.adjacency), count=self.n_numeric)

    @property
    def level_event(self) -> Event:
        """One level: nodes are disjoint, features are not."""
        mechanism = self.level
        if isinstance(mechanism, Choice):
            return mechanism.event(gini_range(self.adjacency), self.adjacency)
        return mechanism.event(self._counts, self.adjacency)

    @property
    def label_event(self) -> Event:
        """All leaves, which are disjoint."""
        return self.labels.event(label_range(self.adjacency), self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The quantiles of all features, each level by its number, the labels."""
        quantiles = (Stage.once(self.quantile_event, "quantiles"),) if self.buys_quantiles else ()
        levels = (Stage(event=self.level_event, steps=range(self.max_depth)),) if self.buys_levels else ()
        return (*quantiles, *levels, Stage.once(self.label_event, "labels"))

    def calibrated(self, budget: Budget) -> "PrivaTreePlan":
        """See `AbstractEpsilonPlan.calibrated`."""
        if self.splits == "joint_gaussian" and self.buys_levels and budget.delta == 0.0:
            raise InvalidParameter("splits='joint_gaussian' adds Gaussian noise, which needs delta > 0; got delta=0.0")
        return AbstractEpsilonPlan.calibrated(self, budget)

    @property
    def size(self) -> str:
        """See `AbstractEpsilonPlan`."""
        return f"a tree of depth {self.max_depth}"

    @property
    def least_tree_epsilon(self) -> float:
        """Below it labels are drawn evenly, whatever the rows."""
        return LEAST_LABEL_EPSILON / (self.leaf_share if self.buys_levels else 1.0)

    def require_fit(self) -> None:
        """Refuse noise of the levels that cannot be drawn on whole rows.

        Raises:
            InvalidParameter: it cannot.
        """
        if self.buys_levels and not isinstance(mechanism := self.level, Choice):
            mechanism.require_fit(Grid(exponents=(0,)))

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf's label; docs/explanation/cautions.md#leaf-signal.

        Permute-and-flip is the largest of the counts with exponential noise of scale 1 / rate: the difference of two
        has a stddev of sqrt(2) / rate.

        Args:
            rows: of the table, of one class in each leaf, spread evenly over the leaves.
        """
        return rows / 2.0**self.max_depth * self.labels.rate / math.sqrt(2.0)

    def thresholds(self, cells: Sequence[FeatureCells]) -> list[NDArray[np.int64]]:
        """The public candidates of each feature."""
        return [
            even_thresholds(each.ordered, self.candidate_bins - 1) if each.ordered else np.empty(0, dtype=np.int64)
            for each in cells
        ]

    def require_levels(self, cells: Sequence[FeatureCells], classes: int) -> None:
        """Refuse a schema without a split, too many classes, or a depth with more counts than queries may have; public.

        Args:
            cells: of each feature.
            classes: of the target.

        Raises:
            InvalidParameter: so it is.
        """
        most = (MAX_COUNTS // class_number(classes)).bit_length() - 1
        if self.max_depth > most:
            raise _validate.fail(
                "max_depth", self.max_depth, f"at most {most} for labels of {classes} classes", "levels"
            )
        if not self.buys_levels:
            return
        bins = CandidateBins.of(cells, self.thresholds(cells))
        tests = SplitTests.every(cells, self.thresholds(cells))  # refuses cells that cannot be split
        # With quantiles a threshold may be anywhere among the cells, all of which are counted then.
        counted = max(bins.total, sum(each.ordered + len(each.equality) + 2 for each in cells))
        width = classes * (max(counted, len(tests)) if self.splits == "gini" else counted)
        most = (MAX_COUNTS // width).bit_length() if width <= MAX_COUNTS else 0
        if self.max_depth > most:
            raise _validate.fail("max_depth", self.max_depth, f"at most {most} for {width} counts a node", "levels")


def train(
    plan: PrivaTreePlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress | None = None
) -> Ensemble:
    """Algorithm 1: bin the features, split level by level, label the leaves; a tree whose values are classes' places.

    Deviations: the table of docs/explanation/privatree.md#privatree-deviations.

    Args:
        plan: calibrated.
        aggregator: holds a grant of `plan.event`.
        generator: public randomness of random splits.
        progress: called with (steps done, steps in all): the levels and the labels.
    """
    schema, done = aggregator.schema, 0
    cells, classes = schema.cells(plan.max_bins), class_count(schema)
    structure, thresholds = TreeStructure.root(), plan.thresholds(cells)
    if plan.max_depth and not plan.buys_levels:
        structure = random_tree(
            cells, depth=plan.max_depth, features=range(len(cells)), numeric_weight=1.0, generator=generator
        )
        done = plan.max_depth
    for event, step in plan.schedule():
        match step:
            case "quantiles":  # lines 3 to 5
                thresholds = _bought_thresholds(plan, event, cells, aggregator)
                continue
            case "labels":  # lines 8 and 9, of all leaves at once
                with aggregator.open(event, purpose="labels") as round_:
                    query = LeafLabels(structure=structure, classes=classes)
                    labels = round_.select(query, plan.labels, purpose="labels").value
            case level:  # lines 11 to 13, of all nodes of the level at once
                structure = _deeper(plan, event, level, structure, classes, cells, thresholds, aggregator)
        done += 1
        if progress is not None:
            progress(done, plan.max_depth + 1)
    return Ensemble(initial_score=0.0, trees=(Tree(structure=structure, values=labels.astype(np.float64)),))


def _bought_thresholds(
    plan: PrivaTreePlan, event: Event, cells: Sequence[FeatureCells], aggregator: Aggregator
) -> list[NDArray[np.int64]]:
    """Private quantiles of the numeric features; equal ones are one threshold."""
    numeric = tuple(feature for feature, each in enumerate(cells) if each.ordered)
    with aggregator.open(event, purpose="quantiles") as round_:
        query = FeatureQuantiles(features=numeric, cells=plan.max_bins)
        chosen = round_.select(query, plan.quantiles, purpose="quantiles").value
    thresholds = [np.empty(0, dtype=np.int64) for _ in cells]
    for feature, own in zip(numeric, chosen, strict=True):
        thresholds[feature] = np.unique(own)
    return thresholds


def _deeper(
    plan: PrivaTreePlan,
    event: Event,
    level: int,
    structure: TreeStructure,
    classes: int,
    cells: Sequence[FeatureCells],
    thresholds: list[NDArray[np.int64]],
    aggregator: Aggregator,
) -> TreeStructure:
    """The tree with one level more: each node's split by its own impurity, or by released numbers of rows by class."""
    mechanism = plan.level
    if isinstance(mechanism, Choice):
        purpose = f"splits, level {level + 1}"
        with aggregator.open(event, purpose=purpose) as round_:
            query = GiniSplits(structure=structure, tests=SplitTests.every(cells, thresholds), classes=classes)
            return structure.deeper(round_.select(query, mechanism, purpose=purpose).value)
    purpose, bins = f"class histograms, level {level + 1}", CandidateBins.of(cells, thresholds)
    with aggregator.open(event, purpose=purpose) as round_:
        asked = BinClassCounts(structure=structure, bins=bins, classes=classes)
        counts = round_.release(asked, mechanism, purpose=purpose).real
    return structure.deeper(least_gini_splits(structure, bins, counts.reshape(structure.n_leaves, bins.total, classes)))


def class_count(schema: Schema) -> int:
    """The number of declared classes.

    Raises:
        SchemaError: the target is a number, or missing.
    """
    if not isinstance(schema.target, Categorical):
        raise SchemaError(f"PrivaTree needs a Categorical target in the schema; got target={schema.target!r}")
    return len(schema.target.categories)
