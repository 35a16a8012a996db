"""Shared by systems whose leaves are pairs of sums with Gaussian or Skellam noise: noise, lambda and parameters."""

import abc
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.splitting import relative_multipliers
from ledgerwood.curator import LeafClassGradients, LeafCurvatures, LeafMoments, LeafRatios, LeafStatistic
from ledgerwood.errors import CalibrationFailed, InvalidParameter
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, SkellamMechanism
from ledgerwood.mechanisms.block_shifts import Shifts
from ledgerwood.trainers.base.bounds import Count, Real, positive, share
from ledgerwood.trainers.base.parameters import AbstractBoostedEstimator
from ledgerwood.trainers.base.plan import AbstractBoostedPlan, too_small
from ledgerwood.trainers.parts.class_leaves import class_noise
from ledgerwood.trainers.parts.leaves import LambdaRule, newton_leaves, pooled
from ledgerwood.trainers.parts.whole_noise import NoiseKind, WholeLeaves

NO_GRID = "the noise would be too large for the grids that sums are released on"
"""Why a plan of Gaussian noise does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractGaussianPlan(AbstractBoostedPlan):
    """The plan of trees of pairs of sums with Gaussian noise, whose multiplier is the common scale.

    Args:
        noise_multiplier: of one query, under add-remove: the common scale of the plan's noise, found by `calibrated`.
        features_per_tree: k features a tree, in a cycle; None for all.
        curvature_scale: c of the released pair (c x hessian, gradient), at most 3.33. Ours beyond 1.
        count_share: share of a query's mu**2 for the number of rows, where the weight is that.
        reg_lambda: lambda > 0, in units of the leaf's weight; None for a multiple of the known noise, see
            `score_noise` (ours).
        pooling: share by which a leaf's weight is drawn towards the mean of its tree, see `pooled`. Ours.
        score_noise: without a lambda, the stddev that the noise of all trees together may add to a row's score, in
            gradient units; None for the rule of docs/explanation/sgbdt.md#defaults. Ours.
        max_delta_step: largest absolute leaf value before the learning rate.
        noise: "gaussian"; or "skellam", on sums in whole units, of which clients can add shares. Ours.
    """

    noise: NoiseKind = "gaussian"
    noise_multiplier: Annotated[float, positive("stddev / L2 sensitivity")] = 1.0
    features_per_tree: Annotated[int, Count("features")] | None
    curvature_scale: Annotated[float, positive("gradient units a unit of hessian")]
    count_share: Annotated[float, share("share of mu**2")]
    reg_lambda: Annotated[float, positive("units of the leaf's weight")] | None
    pooling: Annotated[float, Real("share of the mean weight", high=1, holds_low=True, holds_high=True)]
    score_noise: Annotated[float, positive("gradient units")] | None
    max_delta_step: Annotated[float, positive("units of the score")]

    @property
    @abc.abstractmethod
    def leaf(self) -> LeafStatistic[Shifts]:
        """The statistic of one tree's leaves, the same for every tree and class: a weight and one gradient or more."""

    @property
    @abc.abstractmethod
    def size(self) -> str:
        """Description of the plan's size, for messages."""

    @property
    @abc.abstractmethod
    def equal_queries(self) -> int:
        """Number of queries of the noise multiplier that cost as much as the trees."""

    @abc.abstractmethod
    def _found(self, budget: Budget) -> Self:
        """See `calibrated`."""

    def calibrated(self, budget: Budget) -> Self:
        """This plan with the least noise that fits the budget.

        Raises:
            CalibrationFailed, AdjacencyMismatch: as `ledgerwood.calibrate`.
            InvalidParameter: noise so large that it cannot be drawn on the statistics' grids, or delta 0.
        """
        if budget.delta == 0.0:
            raise CalibrationFailed("delta=0.0 must be > 0: the noise is Gaussian (unit: probability)")
        try:
            return self._found(budget)
        except (InvalidParameter, CalibrationFailed) as error:
            raise type(error)(too_small(self.size, budget, NO_GRID)) from error

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for noise that can be drawn."""
        try:
            self._found(budget)
        except (InvalidParameter, CalibrationFailed):
            return False
        return True

    def scaled(self, noise_multiplier: float) -> Self:
        """This plan with another common noise scale; a Gaussian initial score keeps its share of mu**2."""
        if self.initial_score != "moments":
            return dataclasses.replace(self, noise_multiplier=noise_multiplier)
        relative = relative_multipliers(
            {"initial_score": (self.initial_share, 1), "trees": (1.0 - self.initial_share, self.equal_queries)}
        )
        return dataclasses.replace(
            self,
            noise_multiplier=noise_multiplier,
            initial_multiplier=noise_multiplier * relative["initial_score"] / relative["trees"],
        )

    # ------------------------------------------------------------------------------------------------------- noise

    @property
    def asked(self) -> LeafStatistic[Shifts]:
        """The statistic that is released of each leaf: in whole units for Skellam noise."""
        return self.leaf if self.noise == "gaussian" else self.whole_leaves.query

    @property
    def leaf_mechanism(self) -> GaussianMechanism | EllipticalGaussianMechanism | SkellamMechanism:
        """Noise of every pair of sums, whatever it is a sum of."""
        return self.gaussian_noise() if self.noise == "gaussian" else self.whole_leaves.mechanism

    @property
    def leaf_stddevs(self) -> tuple[float, float]:
        """Standard deviations of the noise of a leaf's weight and of its gradient, in the statistic's units."""
        return self.gaussian_stddevs() if self.noise == "gaussian" else self.whole_leaves.stddevs

    @property
    def initial_noise(self) -> NoiseKind:
        """See `AbstractBoostedPlan`."""
        return self.noise

    def in_leaf_units(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released sums of leaves, (..., 2), in the leaf statistic's units."""
        return released if self.noise == "gaussian" else self.whole_leaves.in_leaf_units(released)

    @property
    def whole_leaves(self) -> WholeLeaves:
        """The leaves' sums in whole units, with their Skellam noise."""
        leaf = self.leaf
        assert isinstance(leaf, LeafMoments | LeafCurvatures | LeafClassGradients)  # checked on construction
        return WholeLeaves(leaf=leaf, noise_multiplier=self.noise_multiplier, count_share=self.count_share)

    def require_sums(self, *more: tuple[bool, str]) -> None:
        """Refuse what has no Skellam noise, where the noise is to be that, by name.

        Args:
            more: (whether it is there, its name and what to set instead), of the system's own.

        Raises:
            InvalidParameter: it is there.
        """
        if self.noise == "gaussian":
            return
        for present, name in (
            (self.purchase is not None, "a privately estimated schema: declare one"),
            (self.weighted, "rows with weights: leave weight_bound, and weights of classes, out of the schema"),
            (
                self.initial_score not in ("zero", "moments"),
                f"initial_score={self.initial_score!r}, whose noise is Laplace noise: set 'moments' or 'zero'",
            ),
            *more,
        ):
            if present:
                raise InvalidParameter(
                    f"noise='skellam' is for sums in whole units, which clients can share the noise of; it does not "
                    f"support {name} (or set noise='gaussian')"
                )

    def gaussian_stddevs(self) -> tuple[float, float]:
        """Gaussian standard deviations: rows and gradients share mu**2, hessian and gradient have one ball."""
        if isinstance(self.leaf, LeafClassGradients):
            count, gradient, *_ = self._class_noise(self.leaf).stddevs
            return count, gradient
        if isinstance(self.leaf, LeafMoments):
            count = self.noise_multiplier / math.sqrt(self.count_share)
            return count, self.noise_multiplier * self.clip / math.sqrt(1.0 - self.count_share)
        stddev = self.noise_multiplier * self.leaf.sensitivity(Adjacency.ADD_REMOVE).l2((1.0,))
        return stddev, stddev

    def gaussian_noise(self) -> GaussianMechanism | EllipticalGaussianMechanism:
        """Gaussian noise of one tree's leaves; its stddevs are what `noise_multiplier` means under add-remove."""
        if isinstance(self.leaf, LeafClassGradients):
            return self._class_noise(self.leaf)
        if isinstance(self.leaf, LeafMoments):
            return EllipticalGaussianMechanism(stddevs=self.gaussian_stddevs())
        return GaussianMechanism(stddev=self.gaussian_stddevs()[0])

    def _class_noise(self, leaf: LeafClassGradients) -> EllipticalGaussianMechanism:
        return class_noise(leaf, noise_multiplier=self.noise_multiplier, count_share=self.count_share)

    @property
    def gradient_stddev(self) -> float:
        """Noise standard deviation of a sum of gradients; in clips for the squared loss."""
        stddev = self.leaf_stddevs[1]
        return stddev / self.clip if self.loss == "squared" else stddev

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        held = self.rows_of_tree(rows) / 2.0**self.max_depth
        return math.sqrt(self.n_estimators) * self.clip * held / self.leaf_stddevs[1]

    def rows_of_tree(self, rows: float) -> float:
        """Returns how many of the rows take part in one tree."""
        return rows

    # ------------------------------------------------------------------------------------------------ leaf values

    def weights(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released hessians, or numbers of rows, in their own unit; (...,)."""
        return sums[..., 0] / self.curvature_scale if isinstance(self.leaf, LeafCurvatures) else sums[..., 0]

    def leaf_weights(self, released: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """See `AbstractBoostedPlan`."""
        return None if isinstance(self.leaf, LeafRatios) else self.weights(released)

    def newton_values(self, released: NDArray[np.float64], rule: LambdaRule = "add") -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from released sums (n_leaves, 2)."""
        return self._steps(released, released[:, 1], rule)

    def newton_noise(self, released: NDArray[np.float64], rule: LambdaRule = "add") -> NDArray[np.float64]:
        """The standard deviation of the noise in each of `newton_values`, at most, given the weights; (n_leaves,)."""
        return self._steps(released, np.full(len(released), -self.leaf_stddevs[1]), rule)

    def _steps(
        self, released: NDArray[np.float64], gradients: NDArray[np.float64], rule: LambdaRule
    ) -> NDArray[np.float64]:
        weight = pooled(self.weights(released), self.pooling)
        steps = newton_leaves(weight, gradients, reg_lambda=self.leaf_lambda, rule=rule)
        return self.learning_rate * np.clip(steps, -self.max_delta_step, self.max_delta_step)

    @property
    def leaf_lambda(self) -> float:
        """Lambda, in units of the leaf's weight: the given one, or by the known noise of the gradients."""
        return self.lambda_by_noise(self.trees) if self.reg_lambda is None else self.reg_lambda

    def lambda_by_noise(self, trees: int) -> float:
        """The lambda at which the noise of that many trees together adds `score_noise` to a score, at most.

        A tree adds noise of stddev at most learning_rate * stddev / lambda, and the trees' noises are independent.
        """
        score_noise = self.score_noise_by_rule if self.score_noise is None else self.score_noise
        return self.learning_rate * math.sqrt(trees) * self.gradient_stddev / score_noise

    @property
    def score_noise_by_rule(self) -> float:
        """More noise may reach the scores where an average leaf's weight stands out of its tree's noise.

        A rule of public quantities, tuned on public data sets: docs/explanation/sgbdt.md#defaults.
        """
        logistic = self.loss == "logistic"
        factor, low, high, guess, weight = (1.0, 0.4, 1.6, 1.0, 0.25) if logistic else (0.5, 0.3, 0.8, 0.45, 1.0)
        if self.expected_rows is None:
            return guess
        held = self.rows_of_tree(self.expected_rows) * weight / 2**self.max_depth
        return min(max(factor * math.sqrt(held / self.gradient_stddev), low), high)


def mean_label_share(budget: Budget, expected_rows: int | None) -> float | None:
    """The share of mu**2 by which the mean label is known to about a tenth of a half range; None where it is not known.

    Args:
        budget: of the fit.
        expected_rows: a public guess of the number of rows.
    """
    if expected_rows is None or budget.delta == 0.0:
        return None
    return min(max((10.0 / (gdp.mu(budget.epsilon, budget.delta) * expected_rows)) ** 2, 0.03), 0.3)


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractGaussianEstimator(AbstractBoostedEstimator):
    """An estimator of trees of pairs of sums with Gaussian noise. Its parameters are fields of `AbstractGaussianPlan`.

    Args:
        features_per_tree: k features per tree, in a cycle, or "all".
        reg_lambda: lambda of the leaf's denominator, or "noise" for a multiple of the known noise, by `score_noise`.
    """

    _words: ClassVar[Mapping[str, str]] = {"features_per_tree": "all", "reg_lambda": "noise"}

    features_per_tree: int | Literal["all"] | None = None
    reg_lambda: float | Literal["noise"] | None = None
    score_noise: float | None = None
    pooling: float | None = None
    curvature_scale: float | None = None
    count_share: float | None = None
    max_delta_step: float | None = None
    noise: NoiseKind | None = None
