"""Shared by systems of greedy trees: each node's test is chosen privately by its gain, leaves have Laplace noise."""

import abc
import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events import BoundedRangeEvent, LaplaceEvent
from ledgerwood.curator import (
    MAX_DAMPING,
    GridlessGains,
    LargeGradients,
    LeafMoments,
    LeafRatios,
    Loss,
    Round,
    SplitGains,
    gain_range,
)
from ledgerwood.curator.queries.splits.tests import MAX_CELLS, CandidateParts, TestedCells
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoxShifts, ExponentialMechanism, GridlessMechanism, LaplaceMechanism
from ledgerwood.mechanisms.sensitivity import quotient_down
from ledgerwood.trainers.base.bounds import Real, positive, require_name, share
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.plan import AbstractBoostedPlan, AbstractEpsilonPlan

LeafRelease = Literal["ratio", "sums"]
LeafRegularization = Literal["lambda", "noise"]
LEAST_LEAF_EPSILON = {"ratio": 2.0**-20, "sums": 2.0**-24}
"""Epsilon of the leaves below which nothing is learnt, so that a budget is refused as too small: a leaf's noise is a
million times the largest ratio, or the sum of ten million rows."""
Candidates = SplitTests | tuple[FeatureCells, ...]
"""Tests, each with a weight of 1; or the cells of all features, all of whose tests are candidates, weighed so that the
features are alike, and chosen among at a cost per row and not per test (`GridlessGains`)."""


def laplace_noise(epsilon: float, sensitivity: BoxShifts, proportions: tuple[float, ...] = (1.0,)) -> LaplaceMechanism:
    """Laplace noise of one release of `epsilon` nats, with scales in these proportions.

    Raises:
        InvalidParameter: no epsilon above 0 is left for it.
    """
    epsilon = _validate.positive("leaf epsilon", epsilon, "nats")
    return LaplaceMechanism.of_multiplier(float_up(1 / Fraction(epsilon)), sensitivity, proportions=proportions)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractGreedyPlan(AbstractBoostedPlan, AbstractEpsilonPlan):
    """The plan of greedy trees by pure privacy: splits by the exponential mechanism, leaves with Laplace noise.

    Args:
        tree_epsilon: of one tree on its own rows, in nats: the common scale of the plan, found by `calibrated`.
        count_share: share of the leaves' epsilon for the number of rows ("sums"). Ours.
        large_gradients: a row beyond `clip` takes no part in a tree ("drop", gradient-based data filtering), or counts
            with the clip ("clip", ours).
        reg_lambda: lambda > 0 of gains and leaves, in rows.
        leaf_release: number of rows and sum of gradients of each leaf, whose ratio is post-processing ("sums"), or
            the leaf's value with noise, the sum of gradients over (rows + reg_lambda) ("ratio").
        leaf_regularization: of the leaves, "lambda", or "noise" for lambda and a multiple of the known noise, by
            `score_noise` ("sums"). Ours.
        score_noise: stddev that the noise of all trees together may add to a score ("noise"), in clips for the squared
            loss. Ours.
    """

    tree_epsilon: Annotated[float, positive("nats")] = 1.0
    count_share: Annotated[float, share("share of epsilon")]
    large_gradients: LargeGradients
    reg_lambda: Annotated[float, Real("rows", high=MAX_DAMPING, holds_high=True)]
    leaf_release: LeafRelease
    leaf_regularization: LeafRegularization
    score_noise: Annotated[float, positive("gradient units")]

    @property
    @abc.abstractmethod
    def split_epsilon(self) -> float:
        """Epsilon of one level of a tree, in nats."""

    @property
    @abc.abstractmethod
    def leaf_epsilon(self) -> float:
        """Epsilon of one tree's leaves, in nats."""

    def leaf_clip(self, place: int) -> float | None:
        """Largest absolute ratio of a leaf of the tree at this place of its ensemble; None: no bound but the clip's."""
        return None

    @property
    def size(self) -> str:
        """See `AbstractEpsilonPlan`."""
        return f"{self.n_estimators} trees of depth {self.max_depth}"

    def pure(self) -> Self:
        """See `AbstractEpsilonPlan`."""
        first = "laplace" if self.initial_score == "moments" else self.initial_score
        return dataclasses.replace(self, purchase=None, initial_score=first)

    def prepared(self, budget: Budget) -> Self:
        """With the initial score at its share of the budget."""
        initial = self.initial.with_share(self.initial_share, budget)
        return dataclasses.replace(self, initial_multiplier=initial.multiplier)

    def require_fit(self) -> None:
        """Refuse noise of the leaves that cannot be drawn, before a budget moves."""
        self.leaf_mechanism().require_fit(self.leaf().grid)

    # ------------------------------------------------------------------------------------------------------ splits

    @property
    def split_mechanism(self) -> ExponentialMechanism:
        """The mechanism that chooses a level's tests: its rate is epsilon over the gain's range, rounded down."""
        return ExponentialMechanism(rate=quotient_down(self.split_epsilon, gain_range(self.clip, self.adjacency).range))

    @property
    def gridless_mechanism(self) -> GridlessMechanism:
        """The same choice at a cost per row: one rate, one range, one event; only the way to draw is another."""
        return GridlessMechanism(rate=self.split_mechanism.rate)

    @property
    def split_event(self) -> BoundedRangeEvent:
        """The event of one level, whose nodes cost no more than one: docs/explanation/gains.md#gain-levels."""
        return self.split_mechanism.event(gain_range(self.clip, self.adjacency), self.adjacency)

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: how tests are chosen."""
        return (*AbstractBoostedPlan.cited_parts(self), *((self.split_mechanism,) if self.max_depth else ()))

    def deeper(
        self,
        structure: TreeStructure,
        candidates: Candidates,
        ensemble: Ensemble,
        round_: Round,
        *,
        purpose: str,
        positive: int | None = None,
        numeric_weight: float | None = None,
    ) -> TreeStructure:
        """The tree with one level more: each node's test by the exponential mechanism on its gain.

        Args:
            structure: the tree so far; its leaves are the nodes to be split.
            candidates: the tests that a node may make; public.
            ensemble: the released ensemble whose scores give the gradients.
            round_: holds one `split_event` for it.
            purpose: printable text of one line.
            positive: the class that is told from all others, of several.
            numeric_weight: of candidates that are cells, as in `GridlessGains`.
        """
        if isinstance(candidates, SplitTests):
            tests = SplitGains(
                structure=structure, tests=candidates, ensemble=ensemble, loss=self.loss, clip=self.clip,
                damping=self.reg_lambda, large_gradients=self.large_gradients, positive=positive,
            )  # fmt: skip
            return structure.deeper(round_.select(tests, self.split_mechanism, purpose=purpose).value)
        query = GridlessGains(
            structure=structure, cells=candidates, ensemble=ensemble, loss=self.loss, clip=self.clip,
            damping=self.reg_lambda, large_gradients=self.large_gradients, positive=positive,
            numeric_weight=numeric_weight,
        )  # fmt: skip
        return structure.deeper(round_.select(query, self.gridless_mechanism, purpose=purpose).value)

    # ------------------------------------------------------------------------------------------------------ leaves

    def leaf(self, place: int = 0) -> LeafMoments | LeafRatios:
        """The statistic of the leaves of the tree at this place of its ensemble, from 0; all have one privacy cost."""
        if self.leaf_release == "ratio":
            return LeafRatios(
                loss=self.loss, clip=self.clip, damping=self.reg_lambda, leaf_clip=self.leaf_clip(place),
                large_gradients=self.large_gradients, weighted=self.weighted,
            )  # fmt: skip
        return LeafMoments(loss=self.loss, clip=self.clip, large_gradients=self.large_gradients)

    @property
    def needs_one_process(self) -> str:
        """See `Plan`: leaves may be ratios."""
        return LeafRatios.__name__ if self.leaf_release == "ratio" else ""

    def leaf_mechanism(self, place: int = 0) -> LaplaceMechanism:
        """Noise of these leaves: as much as the tree's own sensitivity asks for."""
        proportions: tuple[float, ...] = (1.0,)
        if self.leaf_release == "sums":
            proportions = (1.0 / self.count_share, self.clip / (1.0 - self.count_share))
        return laplace_noise(self.leaf_epsilon, self.leaf(place).sensitivity(self.adjacency), proportions)

    @property
    def leaf_event(self) -> LaplaceEvent:
        """The event of one tree's leaves."""
        return LaplaceEvent(noise_multiplier=float_up(1 / Fraction(self.leaf_epsilon)), adjacency=self.adjacency)

    def released_leaves(
        self,
        structure: TreeStructure,
        ensemble: Ensemble,
        round_: Round,
        *,
        place: int = 0,
        purpose: str,
        positive: int | None = None,
    ) -> NDArray[np.float64]:
        """The leaves' noisy ratios (n_leaves, 1), or numbers of rows and sums of gradients (n_leaves, 2).

        Arguments: as of `deeper`, and `place`, of the tree in its ensemble.
        """
        query = self.leaf(place).of(structure, ensemble, positive=positive)
        return round_.release(query, self.leaf_mechanism(place), purpose=purpose).real

    def leaf_weights(self, released: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """See `AbstractBoostedPlan`."""
        return None if self.leaf_release == "ratio" else released[:, 0]

    def lambda_by_noise(self, unit: float) -> float:
        """Lambda of the denominator of released sums, in rows: with what keeps all trees' noise at `score_noise` units.

        A tree adds noise of stddev at most eta s / lambda to a score, and the trees' noises are independent.
        """
        if self.leaf_regularization == "lambda":
            return self.reg_lambda
        stddev = math.sqrt(2.0) * self.leaf_mechanism().scales[1]
        steps = self.learning_rate * math.sqrt(self.n_estimators)
        return self.reg_lambda + steps * stddev / (self.score_noise * unit)

    def signal(self, rows: float, place: int = 0) -> float:
        """Bounds the signal-to-noise ratio of one leaf of one tree; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: in the leaf, all with the largest gradient that counts.
            place: of the tree in its ensemble.
        """
        signal = self.clip * rows
        if self.leaf_release == "ratio":
            clip = self.leaf_clip(place)
            signal /= rows + self.reg_lambda
            signal = signal if clip is None else min(signal, clip)
        return signal / (math.sqrt(2.0) * self.leaf_mechanism(place).scales[-1])


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractGreedyEstimator(AbstractBoostedEstimator):
    """An estimator of greedy trees. Its parameters are fields of `AbstractGreedyPlan` and its subclasses.

    Args:
        delta: 0, the default, is pure privacy.
        loss: "squared", on labels scaled to [-1, 1] and classes as -1 and 1, or "logistic" (classes only). Either way a
            row counts 1 in gains and leaves; Newton's gain is not offered, as no noise would make it private.
    """

    loss_: ClassVar[Loss] = "squared"

    delta: float = 0.0
    loss: Loss | None = None
    reg_lambda: float | None = None
    large_gradients: LargeGradients | None = None
    leaf_release: LeafRelease | None = None
    leaf_share: float | None = None
    count_share: float | None = None
    leaf_regularization: LeafRegularization | None = None
    score_noise: float | None = None

    def _loss(self) -> Loss:
        """The loss of the default plan: the one that was named, or this estimator's usual one."""
        if self.loss is None:
            return self.loss_
        require_name("loss", self.loss, get_args(Loss))
        if self.loss == "logistic" and not is_classifier(self):
            raise InvalidParameter("loss='logistic' needs two classes: a regressor's loss is 'squared'")
        return self.loss


def require_levels(candidates: Candidates, *, depth: int) -> None:
    """Refuse a depth whose last level has more nodes times cells, or tests, than a choice may have.

    Raises:
        InvalidParameter: it is too deep, and the message says what is not; or there is no candidate at all.
    """
    if isinstance(candidates, SplitTests):
        width = max(TestedCells.of(candidates).total, len(candidates))
    else:
        parts = CandidateParts.of(candidates)
        if not len(parts):
            raise _validate.fail("tests", 0, ">= 1: no feature of this schema can be split", "tests")
        width = len(parts) + len(parts.equal)
    require_nodes(depth, width, f"the {width} cells or tests of this schema")


def require_nodes(depth: int, width: int, of: str) -> None:
    """Refuse a depth whose last level has more nodes times `width`, the cells or candidates of each, than a choice has.

    Raises:
        InvalidParameter: it is too deep; the message says what is not, and for what (`of`).
    """
    most = (MAX_CELLS // width).bit_length()
    if depth > most:
        raise _validate.fail("max_depth", depth, f"at most {most} for {of}", "levels")
