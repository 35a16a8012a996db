"""PrivaTree's plan and presets: one decision tree whose splits and labels are chosen privately.

Vos, Vos, Li, Erkin, Verwer: "Differentially-Private Decision Trees and Provable Robustness to Data Poisoning" (2023).
Where the paper or its code is wrong, the sound version is here, and docs/errata.md says so. The rule for the labels'
share is Corollary 1 and Equations 7 to 10, corrected for several features:
docs/explanation/privatree.md#privatree-budget.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event, Repeated
from ledgerwood.accounting.splitting import Share, split
from ledgerwood.curator import CandidateBins, Categorical, Loss, Schema, gini_range, label_range
from ledgerwood.curator.queries.classes.counts import class_number
from ledgerwood.curator.queries.row_counts import MAX_COUNTS
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import (
    BoxShifts,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    JointQuantilesMechanism,
    PermuteAndFlipMechanism,
    UtilityRange,
)
from ledgerwood.mechanisms.choices.quantiles import MOST_THRESHOLDS
from ledgerwood.mechanisms.sensitivity import quotient_down
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import Count, positive, require_name, share
from ledgerwood.trainers.base.plan import AbstractEpsilonPlan
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.candidates import even_thresholds

Preset = Literal["default", "paper", "public_bins", "joint_gaussian", "random"]
SplitMethod = Literal["accuracy", "gini", "histograms", "joint_gaussian", "random"]
CandidateRule = Literal["public", "quantiles"]
ChoiceRule = Literal["permute_and_flip", "exponential"]
Choice = PermuteAndFlipMechanism | ExponentialMechanism
LAST: Literal["splits and labels"] = "splits and labels"
"""The last choice by accuracy."""
LEAST_LABEL_EPSILON = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivaTreePlan(AbstractEpsilonPlan):
    """The plan of PrivaTree: all queries and their noise. Fields that all systems have: see `AbstractPlan`.

    Args:
        n_features: m, columns of the schema. n_numeric: how many of them are numeric.
        split_method: "accuracy" (ours), a test is chosen by the rows that the tree can classify correctly with it, at
            a cost that does not depend on m, and the last level's tests together with the labels; "gini" (ours), by n
            times the Gini impurity, at twice the cost for the same noise; "histograms", by numbers of rows by class
            with two-sided geometric noise, which cost m; "joint_gaussian" (ours), with Gaussian noise, which cost the
            root of m and a delta; "random" (ours), drawn without a look at the rows, at no cost.
        choice: of "accuracy" and "gini", "permute_and_flip", never worse at one epsilon; or "exponential",
            bounded-range, which costs less with a delta.
        lookahead: of "accuracy", whether a test is judged with the best further tests below it, at levels where counts
            by pairs of cells are at most 2**24; it costs no budget. Ours.
        candidates: "public", even steps; "quantiles", private quantiles of each numeric feature, which cost
            `n_numeric`.
        candidate_bins: how many bins a numeric feature's candidates make; `max_bins` takes all borders.
        set_categories: of "accuracy", up to how many categories of a feature all sets of them are candidates, beside
            single ones. Ours.
        tree_epsilon: of the whole tree, in nats: the common scale of the plan, found by `calibrated`.
        leaf_share: share of it for the labels, of "accuracy" with the last level's tests; all of it where nothing else
            is released.
        quantile_share: share of the rest for the quantiles; the levels divide what is left evenly.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (systems.VOS_2023,)

    n_features: Annotated[int, Count("features")]
    n_numeric: Annotated[int, Count("features", minimum=0)]
    split_method: SplitMethod
    choice: ChoiceRule
    lookahead: bool = True
    candidates: CandidateRule
    candidate_bins: int
    set_categories: Annotated[int, Count("categories", minimum=0, most=12)] = 0
    tree_epsilon: Annotated[float, positive("nats")] = 1.0
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
        """Not used: PrivaTree counts rows by class."""
        return "squared"

    @property
    def releases_quantiles(self) -> bool:
        """True if thresholds are released: not where there is nothing to split."""
        return (
            self.candidates == "quantiles"
            and self.n_numeric > 0
            and self.max_depth > 0
            and self.split_method != "random"
        )

    @property
    def releases_levels(self) -> bool:
        """True if splits are released."""
        return self.max_depth > 0 and self.split_method != "random"

    @property
    def labels_splits(self) -> bool:
        """True if the last level's tests and the labels are one choice."""
        return self.max_depth > 0 and self.split_method == "accuracy"

    @property
    def levels(self) -> int:
        """Number of levels that are released by themselves."""
        return self.max_depth - self.labels_splits if self.releases_levels else 0

    def _share(self, part: Literal["quantiles", "levels", "labels"]) -> Share:
        rest = 1.0 - self.leaf_share
        parts = {"labels": self.leaf_share if self.levels or self.releases_quantiles else 1.0}
        if self.releases_quantiles:
            parts["quantiles"] = rest * self.quantile_share if self.levels else rest
        if self.levels:
            parts["levels"] = rest * (1.0 - self.quantile_share) if self.releases_quantiles else rest
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
    def level(self) -> Choice | DiscreteLaplaceMechanism | GaussianMechanism:
        """The mechanism that chooses the splits of a level, or releases its numbers of rows."""
        epsilon = self._share("levels").epsilon_each(self.levels)
        if self.split_method in ("accuracy", "gini"):
            return self._choice(quotient_down(epsilon, self._level_range.range))
        if self.split_method == "histograms":
            norm = Fraction(self._counts.l1((1.0,)))
            return DiscreteLaplaceMechanism(
                scale=float_up(norm / Fraction(_validate.positive("level epsilon", epsilon, "nats")))
            )
        return GaussianMechanism(stddev=self._counts.l2((1.0,)) / epsilon)

    def _choice(self, rate: float) -> Choice:
        if self.choice == "exponential":
            return ExponentialMechanism(rate=rate)
        return PermuteAndFlipMechanism(rate=rate)

    @property
    def _level_range(self) -> UtilityRange:
        """What a row may change in a level's utilities."""
        return label_range(self.adjacency) if self.split_method == "accuracy" else gini_range(self.adjacency)

    @property
    def level_words(self) -> str:
        """Name of a level's draw in the ledger."""
        return "splits" if self.split_method in ("accuracy", "gini") else "class histograms"

    @property
    def _counts(self) -> BoxShifts:
        """The shift of a level's numbers of rows by one row, which is in every feature's histogram."""
        return BoxShifts.of_counts(self.adjacency, histograms=self.n_features)

    @property
    def labels(self) -> Choice:
        """The mechanism that chooses the leaves' labels; of "accuracy", with the tests above them."""
        rate = quotient_down(self._share("labels").epsilon, label_range(self.adjacency).range)
        return self._choice(rate) if self.labels_splits else PermuteAndFlipMechanism(rate=rate)

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: how thresholds, tests and labels are chosen."""
        quantiles = (self.quantiles,) if self.releases_quantiles else ()
        levels = (self.level,) if self.levels else ()
        return (*AbstractEpsilonPlan.cited_parts(self), *quantiles, *levels, self.labels)

    @property
    def quantile_event(self) -> Event:
        """All features' thresholds."""
        return Repeated(self.quantiles.event(self.adjacency), count=self.n_numeric)

    @property
    def level_event(self) -> Event:
        """One level: nodes are disjoint, features are not."""
        mechanism = self.level
        if isinstance(mechanism, Choice):
            return mechanism.event(self._level_range, self.adjacency)
        return mechanism.event(self._counts, self.adjacency)

    @property
    def label_event(self) -> Event:
        """All leaves, or all nodes above them, which are disjoint."""
        return self.labels.event(label_range(self.adjacency), self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The quantiles of all features, each level by its number, the labels, with the tests above them or alone."""
        quantiles = (Stage.once(self.quantile_event, "quantiles"),) if self.releases_quantiles else ()
        levels = (Stage(event=self.level_event, steps=range(self.levels)),) if self.levels else ()
        return (*quantiles, *levels, Stage.once(self.label_event, LAST if self.labels_splits else "labels"))

    def calibrated(self, budget: Budget) -> "PrivaTreePlan":
        """See `AbstractEpsilonPlan.calibrated`."""
        if self.split_method == "joint_gaussian" and self.levels and budget.delta == 0.0:
            raise InvalidParameter(
                "split_method='joint_gaussian' adds Gaussian noise, which needs delta > 0; got delta=0.0"
            )
        return AbstractEpsilonPlan.calibrated(self, budget)

    @property
    def size(self) -> str:
        """See `AbstractEpsilonPlan`."""
        return f"a tree of depth {self.max_depth}"

    @property
    def least_tree_epsilon(self) -> float:
        """Epsilon of the tree below which labels are drawn evenly, whatever the rows."""
        return LEAST_LABEL_EPSILON / (self.leaf_share if self.levels or self.releases_quantiles else 1.0)

    def require_fit(self) -> None:
        """Refuse noise of the levels that cannot be drawn on whole rows.

        Raises:
            InvalidParameter: it cannot.
        """
        if self.levels and not isinstance(mechanism := self.level, Choice):
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

    def tests(self, cells: Sequence[FeatureCells], thresholds: Sequence[NDArray[np.int64]]) -> SplitTests:
        """The candidates of a choice.

        Args:
            cells: of each feature.
            thresholds: of each feature.

        Raises:
            InvalidParameter: features that cannot be split.
        """
        return SplitTests.every(cells, thresholds, self.set_categories if self.split_method == "accuracy" else 0)

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
        if not self.releases_levels:
            return
        bins = CandidateBins.of(cells, self.thresholds(cells))
        tests = self.tests(cells, self.thresholds(cells))  # refuses cells that cannot be split
        # With quantiles a threshold may be anywhere among the cells, all of which are counted then.
        counted = max(bins.total, sum(each.ordered + len(each.equality) + 2 for each in cells))
        width = classes * (max(counted, len(tests)) if self.split_method in ("accuracy", "gini") else counted)
        if self.labels_splits:
            width = max(width, classes**2 * len(tests))
        most = (MAX_COUNTS // width).bit_length() if width <= MAX_COUNTS else 0
        if self.max_depth > most:
            raise _validate.fail("max_depth", self.max_depth, f"at most {most} for {width} counts a node", "levels")

    def with_room(self, cells: Sequence[FeatureCells], classes: int) -> "PrivaTreePlan":
        """This plan, with "gini" for "accuracy" where there are too many classes for a choice of tests and labels."""
        try:
            self.require_levels(cells, classes)
        except InvalidParameter:
            if self.labels_splits:
                return dataclasses.replace(self, split_method="gini")
        return self


def class_count(schema: Schema) -> int:
    """The number of declared classes.

    Raises:
        SchemaError: the target is a number, or missing.
    """
    if not isinstance(schema.target, Categorical):
        raise SchemaError(f"PrivaTree needs a Categorical target in the schema; got target={schema.target!r}")
    return len(schema.target.categories)


_LEAST = 1e-6
"""Nats: of more rows than there are the rule would leave less than labels can be drawn with."""


def label_error_constant(classes: int) -> float:
    """max over p of log(1/p) (1 - (1 - (1-p)^K) / (K p)): rows that permute-and-flip may lose in a leaf, at rate 1.

    Its expected loss at a rate of r nats a row is at most this over r, whatever the counts (McKenna and Sheldon 2020,
    Proposition 4). For two classes it is 1 / (2 e), and it grows with K. To nine digits, which is plenty for a rule
    that divides a budget.

    Args:
        classes: K >= 2.
    """
    classes = _validate.count("classes", classes, "classes", minimum=2)
    # By p = exp(-t) for a gap of t nats; beyond 2 log K + 20 the loss only falls.
    gap = np.linspace(0.0, 2.0 * math.log(classes) + 20.0, 200_001)[1:]
    p = np.exp(-gap)
    inside = -np.expm1(classes * np.log1p(-p)) / (classes * p)
    return float(np.max(gap * (1.0 - inside)))


def leaf_epsilon(
    epsilon: float, *, depth: int, classes: int, rows: int | None, error: float, adjacency: Adjacency
) -> float:
    """Epsilon with which the labels lose at most `error` of the rows, at most half of the whole; Equations 7 and 8.

    The paper's factor 2 stands for the range of a leaf's counts, which is 1 where a row is added or removed.

    Args:
        epsilon: of the tree, in nats.
        depth: levels of splits.
        classes: K.
        rows: a public number of rows; None: unknown, and the labels get half.
        error: E_max, in (0, 1), share of the rows.
        adjacency: of neighbouring data sets.

    Raises:
        InvalidParameter: an error outside (0, 1).
    """
    error = label_error_share(error)
    if rows is None:
        return epsilon / 2.0
    needed = label_range(adjacency).range * 2.0**depth * label_error_constant(classes) / (rows * error)
    return min(epsilon / 2.0, max(needed, _LEAST))


def label_error_share(error: object) -> float:
    """A share of the rows that labels may lose.

    Raises:
        InvalidParameter: outside (0, 1).
    """
    share = _validate.real("label_error", error, "share of the rows")
    if not 0.0 < share < 1.0:
        raise _validate.fail("label_error", error, "in (0, 1)", "share of the rows")
    return share


def last_share(depth: int) -> float:
    """Share of the budget for the last level's tests and the labels: as much as two of the other levels.

    Args:
        depth: levels of splits; of fewer than two nothing else is chosen, but for quantiles.
    """
    return 2.0 / (max(depth, 2) + 1.0)


PAPER_BINS = 10
DEFAULT_BINS = 32
"""Of a numeric feature by default: few enough for counts by pairs of bins."""
SET_CATEGORIES = 9
"""Up to how many categories sets of them are candidates, of a schema of categories alone."""
RANDOM_EVIDENCE = 10.0
"""Rows times nats, divided by what a row can change, below which random splits, which cost nothing, are no worse."""
LEAST_EVIDENCE = (150.0, 700.0, 2_500.0)
"""The same, from which a tree of depth 2, 3 and 4 is worth its cost."""
PAPER = PrivaTreePlan(
    adjacency=Adjacency.ADD_REMOVE,
    n_features=1,
    n_numeric=0,
    max_depth=4,
    # A fine grid of which private quantiles choose 9 borders: 255 steps and a missing value's cell fit one byte.
    max_bins=255,
    split_method="histograms",
    choice="permute_and_flip",
    candidates="quantiles",
    candidate_bins=PAPER_BINS,
    leaf_share=0.5,
    quantile_share=0.2,
)
"""The paper's own choices, made sound."""
PRESETS: Mapping[Preset, PrivaTreePlan] = {
    "default": dataclasses.replace(
        PAPER, split_method="accuracy", candidates="public", max_bins=DEFAULT_BINS, candidate_bins=DEFAULT_BINS
    ),
    "paper": PAPER,
    "public_bins": dataclasses.replace(PAPER, candidates="public"),
    "joint_gaussian": dataclasses.replace(PAPER, split_method="joint_gaussian"),
    "random": dataclasses.replace(PAPER, split_method="random", candidates="public"),
}
"""docs/explanation/privatree.md#privatree-presets."""


def default_depth(evidence: float | None) -> int:
    """Depth that a number of rows is worth: docs/explanation/privatree.md#privatree-defaults.

    Args:
        evidence: the expected number of rows times epsilon, divided by the range of a choice; None if not known.
    """
    return 4 if evidence is None else 1 + sum(evidence >= least for least in LEAST_EVIDENCE)


def preset_plan(
    preset: Preset, budget: Budget, *, n_features: int, n_numeric: int, rows: int | None = None
) -> PrivaTreePlan:
    """A preset's plan, epsilon still to be calibrated; the default is less deep where rows times epsilon is small."""
    require_name("preset", preset, get_args(Preset))
    plan = dataclasses.replace(PRESETS[preset], adjacency=budget.adjacency, n_features=n_features, n_numeric=n_numeric)
    if preset != "default":
        return plan
    evidence = None if rows is None else rows * budget.epsilon / label_range(budget.adjacency).range
    if evidence is not None and evidence < RANDOM_EVIDENCE:
        return dataclasses.replace(plan, split_method="random")
    # Beside thresholds sets are too many to choose from.
    sets = 0 if n_numeric else SET_CATEGORIES
    return dataclasses.replace(plan, max_depth=default_depth(evidence), set_categories=sets)
