"""The federated framework of Maddock, Cormode, Wang, Maple and Jha: the paper's Table 1, and the released code."""

import math
from dataclasses import replace

import numpy as np
from scipy import optimize, special, stats

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import (
    Deterministic,
    FloatArray,
    Pair,
    Row,
    Specimen,
    specimen,
    without_last,
)
from ledgerwood.verification.errata.outputs import CountedClasses, CountedRows, GaussianNumbers

TRAINING = Budget(epsilon=1.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE)
"""A whole training; an output without noise breaks any claim."""


@specimen(
    "errata-federated-zero-noise",
    "released code, PrivacyAccountant._compute_gaussian_composition, PrivateGBDT._form_private_gradient_histogram",
)
class ZeroNoise(Specimen):
    """Histogram splits on one feature a tree have noise at the root only (`split_method` hist_based and k = 1).

    The accounting takes the root's noisy histogram to be reused at all depths; the trees sum the rows again. Shown are
    the root's and its left child's histograms of two bins, gradient sums.
    """

    claim = TRAINING
    pair = without_last([[0.0, 0.5], [1.0, -0.5], [1.0, 0.5]])
    """Rows (bin, gradient), all in the left child; and without the last."""

    noise_multiplier: float = 18.7  # that of the root

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both bins of the root, with noise, and of its child, shape (n, 4)."""
        sums = np.bincount(dataset[:, 0].astype(np.int64), weights=dataset[:, 1], minlength=2)
        noisy = sums + self.noise_multiplier * rng.standard_normal((n, 2))
        return np.hstack([noisy, np.tile(sums, (n, 1))])

    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: the child's sums have no noise, and differ."""
        return 1.0


@specimen(
    "errata-federated-queries",
    "Table 1 (C1 partially random, A1 cyclical); the released code counts half of the roots",
    auditor="likelihood ratio",
)
class PartialQueries(GaussianNumbers):
    """Queries of partially random trees are counted without the roots, and one a tree where k = 1.

    Forests of averaging trees. Each query is the pair (rows of class 1, rows), of joint sensitivity sqrt 2. A row of
    class 1 is on the left of every candidate, and moves all of them by that.
    """

    pair = without_last([1.0])
    """Classes: one row of class 1; and none."""

    noise_multiplier: float = 20.0  # standard deviation over the sensitivity of a query
    trees: int = 25  # T
    depth: int = 4  # d
    features: int = 1  # k, of each tree

    @property
    def claim(self) -> GaussianEvent:
        multiplier = self.noise_multiplier / math.sqrt(self.claimed())
        return GaussianEvent(noise_multiplier=multiplier, adjacency=self.adjacency)

    def claimed(self) -> int:
        """Queries by Table 1."""
        return self.trees if self.features == 1 else self.trees * self.features * self.depth

    def queries(self) -> int:
        """Queries in which the row takes part: a left sum for each feature and level, and the root's total."""
        return self.trees * (self.features * self.depth + 1)

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, float]:
        """Two numbers of every query."""
        return np.tile([dataset.sum(), dataset.size], self.queries()), self.noise_multiplier * math.sqrt(2.0)

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"queries, T = {s.trees}, d = {s.depth}, k = {s.features}", s.claimed(), s.queries())
            for s in (self, replace(self, features=14))
        )


@specimen(
    "errata-federated-neighbours",
    "Section 2.2 (neighbouring data sets), section 4.2 (sensitivity)",
    verdict="slip",
    adjacency=Adjacency.REPLACE_ONE,
)
class ReplacedGradient(GaussianNumbers):
    """Data sets differ on a single individual, and the sensitivity is that of one row more.

    One pair of sums (gradient, hessian) in which a row is replaced by one of the opposite gradient: the hessian stays,
    the gradient sum moves by twice the gradient.
    """

    noise_multiplier: float = 2.0  # standard deviation over the printed sensitivity
    gradient: float = 0.99  # of the row, in (0, 1); the hessian is gradient * (1 - gradient)

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency)

    @property
    def pair(self) -> Pair:
        """Gradients p - y; the last row's sign is exchanged."""
        return np.array([0.5, -0.5, self.gradient]), np.array([0.5, -0.5, -self.gradient])

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, float]:
        """Both sums, with noise by the printed sensitivity, sqrt(17) / 4."""
        size = np.abs(dataset)
        sums = np.array([dataset.sum(), (size * (1.0 - size)).sum()])
        return sums, self.noise_multiplier * math.sqrt(17.0) / 4.0

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("sensitivity", math.sqrt(17.0) / 4.0, 2.0 * self.gradient),)


@specimen(
    "errata-federated-data-reads",
    "released code, SplitCandidateManager.find_split_candidates (nanmin, nanmax); the paper assumes public bounds",
)
class FederatedDataBounds(Deterministic):
    """Split candidates, 32 equally spaced ones, span the smallest and largest value of the training rows."""

    claim = TRAINING
    pair = without_last([0.0, 1.0, 3.0, 8.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The largest candidate."""
        return (float(np.linspace(dataset.min(), dataset.max(), 32, endpoint=False)[-1]),)


@specimen(
    "errata-federated-data-reads",
    "released code, SplitCandidateManager.find_split_candidates (log: skew of the column)",
)
class SkewSign(Deterministic):
    """Logarithmic candidates, dense on one side of public bounds, are mirrored where the exact skewness is negative."""

    claim = TRAINING
    pair = np.array([0.0, 1.0, 5.0, 8.0, 9.0, 10.0]), np.array([0.0, 1.0, 5.0, 9.0, 10.0])
    """Values of a feature within public ends, 0 and 10; and without one of them."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the candidates are mirrored."""
        return (float(((dataset - dataset.mean()) ** 3).sum() < 0.0),)


@specimen("errata-federated-data-reads", "released code, PrivateGBDT.fit (assign_budget with 1 / X.shape[0])")
class SizeInDelta(Specimen):
    """The claimed delta is one over the exact number of rows, and the noise follows it.

    Leaves that hold no row: nothing but noise, whose scale tells the number of rows elsewhere.
    """

    epsilon: float = 1.0  # the claim, in nats
    count: int = 10  # rows, without the one that differs, at least 2
    trees: int = 200  # T, one query each
    leaves: int = 15  # empty ones of a tree

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=1.0 / self.count, adjacency=self.adjacency)

    @property
    def pair(self) -> Pair:
        """Rows, all in another leaf: one more; and `count`."""
        return without_last(np.ones(self.count + 1))

    @property
    def witness(self) -> float:
        return self.epsilon

    def scale(self, dataset: FloatArray) -> float:
        """The least noise multiplier of `trees` queries for epsilon and a delta of one over the rows."""

        def excess(mu: float) -> float:
            above = float(stats.norm.cdf(mu / 2.0 - self.epsilon / mu))
            below = float(stats.norm.cdf(-mu / 2.0 - self.epsilon / mu))
            return above - math.exp(self.epsilon) * below - 1.0 / dataset.size

        return math.sqrt(self.trees) / float(optimize.brentq(excess, 1e-3, 50.0, xtol=1e-14))

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The sum of squares of all gradient and hessian sums, a sufficient statistic of them, shape (n,)."""
        return np.asarray(self.scale(dataset) ** 2 * rng.chisquare(2 * self.trees * self.leaves, n))

    def _delta(self, epsilon: float) -> float:
        """Two chi-square distributions of different scale: the log ratio is a line in the sum of squares."""
        numbers = 2 * self.trees * self.leaves
        wide, narrow = (self.scale(part) ** 2 for part in self.pair)
        slope = 0.5 / narrow - 0.5 / wide
        offset = 0.5 * numbers * math.log(wide / narrow)
        high, low = (offset + epsilon) / slope, max((offset - epsilon) / slope, 0.0)
        factor = math.exp(epsilon)
        more = stats.chi2.sf(high / wide, numbers) - factor * stats.chi2.sf(high / narrow, numbers)
        less = stats.chi2.cdf(low / narrow, numbers) - factor * stats.chi2.cdf(low / wide, numbers)
        return max(0.0, float(more), float(less))


@specimen("errata-federated-data-reads", "released code, PrivacyAccountant._add_dp_noise (num_obs)")
class ClippedSums(Specimen):
    """Noisy sums are clipped to what the exact number of rows allows: a sum that was clipped is that number.

    The gradient sum of one leaf whose rows all have gradient 0, bounds of 1, `gradient_clipping` on.
    """

    claim = TRAINING

    count: int = 10  # rows of the leaf, without the one that differs
    stddev: float = 20.0  # of the noise of a sum, in units of the gradient

    @property
    def pair(self) -> Pair:
        """Gradients of 0: one more; and `count`."""
        return without_last(np.zeros(self.count + 1))

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The leaf's noisy sum, clipped, shape (n,)."""
        noisy = dataset.sum() + self.stddev * rng.standard_normal(n)
        return np.asarray(np.clip(noisy, -float(dataset.size), float(dataset.size)))

    def _delta(self, epsilon: float) -> float:
        """The same at every epsilon: both agree between the smaller ends; the ends have mass on one data set only.

        With the row everything at or beyond the smaller ends is impossible without it, but for the ends themselves,
        which have no mass with it; so both directions lose the mass of |noise| >= count.
        """
        return float(2.0 * special.ndtr(-self.count / self.stddev))


@specimen("errata-federated-data-reads", "released code, PrivateGBDT.fit (np.unique of the labels)")
class ClassNumber(CountedClasses):
    """The number of classes, and of columns of scores, is counted in the labels; of two, one column is kept."""

    claim = TRAINING
    pair = without_last([0.0, 1.0, 1.0, 2.0])


@specimen("errata-federated-data-reads", "released code, PrivateGBDT._build_tree (DecisionNode, num_observations)")
class NodeCounts(CountedRows):
    """Every node of a trained model holds its exact number of rows, `num_observations`."""

    claim = TRAINING
