"""S-GBDT (Kirschte, Peinemann, Stock, Cotrini, Mohammadi): noise and its privacy accounting, in theorems and code."""

import bisect
import math
from dataclasses import replace

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.errata.base import FloatArray, Pair, PureClaim, Row, Specimen, specimen, without_last
from ledgerwood.verification.errata.outputs import GaussianNumbers, OneLaplace, larger_profile


@specimen(
    "errata-sgbdt-initial-score",
    "Theorem 20; released code, Regression::compute_init_score",
    adjacency=Adjacency.REPLACE_ONE,
)
class InitialScoreScale(OneLaplace):
    """The first score with the noise of Theorem 20: the mean moves by 2 m*/n, and the claim covers m*/n.

    Labels are in [-m*, m*], the Laplace noise has scale m* / (n epsilon), n is public, so a row is replaced. That is
    the theorem's best case: one scale for both neighbours, as its proof has it. The loss is twice epsilon.
    """

    epsilon: float = 0.1  # the claim, in nats
    bound: float = 1.0  # m*, in units of the label
    count: int = 100  # n, the number of rows

    @property
    def claim(self) -> LaplaceEvent:
        return theorem_20(self)

    @property
    def pair(self) -> Pair:
        """All labels m*; and the last one replaced by -m*."""
        labels = np.full(self.count, self.bound)
        return labels, np.append(labels[:-1], -self.bound)

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        mean = float(np.clip(dataset, -self.bound, self.bound).mean())
        return mean, self.bound / (dataset.size * self.epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        exact = LaplaceEvent(noise_multiplier=0.5 / self.epsilon, adjacency=self.adjacency)
        return *PureClaim.more_rows(self), Row(
            "Rényi divergence of order 2", float(self.claim.renyi(2.0)[0]), float(exact.renyi(2.0)[0])
        )


@specimen("errata-sgbdt-initial-score", "Algorithm 6, Theorem 20")
class InitialScoreCount(OneLaplace):
    """The first score where the number of rows is private: the scale of its noise, 2 m* / (n epsilon), tells it.

    Two Laplace distributions of different scale: the ratio of their densities is unbounded, and the Rényi divergence
    infinite from order n + 1 on.
    """

    epsilon: float = 0.1  # the claim, in nats
    bound: float = 1.0  # m*, in units of the label
    count: int = 10  # n, the number of rows without the one that differs

    @property
    def claim(self) -> LaplaceEvent:
        return theorem_20(self)

    @property
    def pair(self) -> Pair:
        """Labels m*, `count` of them, and one of -m*; and without the latter."""
        return without_last(np.append(np.full(self.count, self.bound), -self.bound))

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        mean = float(np.clip(dataset, -self.bound, self.bound).mean())
        return mean, 2.0 * self.bound / (dataset.size * self.epsilon)

    def renyi(self, order: float) -> float:
        """The Rényi divergence of the pair at an order > 1, in nats, the larger direction; inf from order n + 1 on."""
        if order >= self.count + 1:
            return math.inf
        return max(self._log_moment(order, 1.0 - order), self._log_moment(1.0 - order, order)) / (order - 1.0)

    def more_rows(self) -> tuple[Row, ...]:
        order, many = float(self.count + 1), replace(self, count=3342)
        return (
            *PureClaim.more_rows(self),
            Row(f"Rényi divergence of order {order:g}", float(self.claim.renyi(order)[0]), self.renyi(order)),
            Row(f"delta at epsilon {self.epsilon:.4g}, {many.count} rows", 0.0, many.delta(self.epsilon)),
        )

    def _log_moment(self, of_p: float, of_q: float) -> float:
        """log of the integral of p^u q^v, u + v = 1, in three pieces: between the centres and on either side."""
        (mean, narrow), (other, wide) = (self.distribution(part) for part in self.pair)
        distance = other - mean
        left, right = -of_q * distance / wide, -of_p * distance / narrow
        tails = (math.exp(left) + math.exp(right)) / (of_p / narrow + of_q / wide)
        between = distance * math.exp(right) * (math.expm1(left - right) / (left - right) if left != right else 1.0)
        return math.log(tails + between) - of_p * math.log(2.0 * narrow) - of_q * math.log(2.0 * wide)


def theorem_20(specimen: PureClaim) -> LaplaceEvent:
    """The claim of the first score: Theorem 20's Rényi divergences are those of a Laplace pair of scale 1 / epsilon."""
    return LaplaceEvent(noise_multiplier=1.0 / specimen.epsilon, adjacency=specimen.adjacency)


@specimen("errata-sgbdt-conversion", "Theorem 18; Algorithm 7, line 6")
class RenyiConversion(GaussianNumbers):
    """One count, converted from Rényi to (epsilon, delta) by log delta = rho - order * epsilon, as Algorithm 7 does.

    A Gaussian of mu^2 = 2 rho / order has exactly that divergence, and its delta has a closed form.
    """

    pair = without_last([1.0])

    order: float = 50.0  # the Rényi order, > 1
    divergence: float = 0.5  # rho at that order, in nats
    target: float = 1e-5  # the delta that is asked for

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=self.witness, delta=self.target, adjacency=self.adjacency)

    @property
    def witness(self) -> float:
        """The epsilon that solves exp(rho - order * epsilon) = delta."""
        return (self.divergence - math.log(self.target)) / self.order

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        return float(dataset.sum()), 1.0 / math.sqrt(2.0 * self.divergence / self.order)

    def more_rows(self) -> tuple[Row, ...]:
        # The same noise by a larger order: the printed rule tends to mu^2 / 2, whatever delta is.
        larger = replace(self, order=2000.0, divergence=2000.0 * self.divergence / self.order)
        return (
            Row(f"epsilon at delta {self.target:.4g}", self.witness, gdp.epsilon(self.mu(), self.target)),
            Row(
                f"delta at epsilon {larger.witness:.4g}, the same noise by order {larger.order:g}",
                self.target,
                larger.delta(larger.witness),
            ),
        )


@specimen(
    "errata-sgbdt-leaf-noise",
    "Theorem 10, Corollary 22; released code, DPTree::add_leaf_noise",
    verdict="slip",
)
class LeafNoiseMultiplier(GaussianNumbers):
    """The paper's sigma_leaf, read as a noise multiplier. Theorem 10 is right; the name invites the slip.

    One leaf's (count, gradient sum) with stddevs sigma / sqrt(2 r1) and g* sigma / sqrt(2 (1 - r1)): a row at the clip
    is a Gaussian of mu = sqrt 2 / sigma.
    """

    sigma: float = 2.0  # sigma_leaf
    count_share: float = 0.2  # r1, in (0, 1)
    bound: float = 0.1  # g*

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=self.sigma, adjacency=self.adjacency)

    @property
    def pair(self) -> Pair:
        """One gradient at the clip; and an empty leaf."""
        return without_last([self.bound])

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.array([dataset.size, np.clip(dataset, -self.bound, self.bound).sum()])
        return sums, leaf_stddevs(self.sigma, (1.0, self.bound), (self.count_share, 1.0 - self.count_share))

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("noise multiplier", self.sigma, 1.0 / self.mu()),)


@specimen("errata-sgbdt-hessian", "released code, DPTree::add_leaf_noise")
class HalfHessianNoise(GaussianNumbers):
    """One leaf's sums of gradients and hessians, logistic loss: the hessian sum gets half of the noise.

    The accountant charges mu^2 = 2 / sigma^2; the halved draw makes it 2 ((1 - r1) + 4 r1) / sigma^2 for a row that
    reaches both bounds, as one of hessian 1/4 does whenever h* <= 1/4.
    """

    pair = without_last([[-0.5, 0.25]])
    """One row (gradient, hessian) at score 0; and none."""

    sigma: float = 4.0  # the code's noise scale
    hessian_share: float = 0.1  # r1, in (0, 1)
    gradient_bound: float = 0.5  # g* <= 1/2 and h* <= 1/4, so that the row of the pair reaches both
    hessian_bound: float = 0.25

    @property
    def claim(self) -> GaussianEvent:
        """The charge of the code's accountant for one full batch: Rényi divergence order / sigma^2."""
        return GaussianEvent(noise_multiplier=self.sigma / math.sqrt(2.0), adjacency=self.adjacency)

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, FloatArray]:
        bounds = np.array([self.gradient_bound, self.hessian_bound])
        stddevs = leaf_stddevs(self.sigma, bounds, (1.0 - self.hessian_share, self.hessian_share))
        return np.clip(dataset, -bounds, bounds).sum(axis=0), np.array([1.0, 0.5]) * stddevs

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(
                f"Rényi divergence times sigma^2 / order, r1 = {share:g}",
                1.0,
                0.5 * (self.sigma * replace(self, hessian_share=share).mu()) ** 2,
            )
            for share in (0.04, 0.1, 0.5)
        )


@specimen("errata-sgbdt-cache", "released code, RDPAccountant::gen_rho", auditor="likelihood ratio")
class PriceCache(Specimen):
    """Individual filter, Newton leaves: a row's privacy cost is cached under a key without its hessian.

    Two rows have gradients clipped to the same size; the second is charged for the first one's hessian. The noise is
    that of the accounting (not halved), to show this defect alone.
    """

    witness = 0.5

    sigma: float = 2.0  # the code's noise scale
    hessian_share: float = 0.5  # r1, in (0, 1)
    bound: float = 0.3  # g*, the clip of the gradient, at most 1/2
    hessian_bound: float = 0.25  # h*, at most 1/4
    sampling_rate: float = 0.1  # gamma, below 1: only then the code caches
    first_gradient: float = 0.99  # |g| of the row that comes first, in (bound, 1); its hessian is |g| (1 - |g|)
    order: float = 16.0  # the Rényi order of the filter

    @property
    def claim(self) -> PoissonSampled:
        """The filter's entry for the second row: the cost of the first."""
        return self._sampled(min(self.first_gradient * (1.0 - self.first_gradient) / self.hessian_bound, 1.0))

    @property
    def pair(self) -> Pair:
        """Rows (leaf, gradient, hessian): the first in leaf 0, one of hessian 1/4 in leaf 1; and the first alone."""
        first = [0.0, self.first_gradient, self.first_gradient * (1.0 - self.first_gradient)]
        return without_last([first, [1.0, -0.5, 0.25]])

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(gradient sum, hessian sum) of both leaves, shape (n, 2, 2)."""
        bounds = np.array([self.bound, self.hessian_bound])
        drawn = rng.random((n, len(dataset))) < self.sampling_rate
        member = dataset[:, :1] == np.arange(2.0)  # (rows, leaves)
        sums = np.einsum("nr,rl,rk->nlk", drawn, member, np.clip(dataset[:, 1:], -bounds, bounds))
        return np.asarray(sums + rng.normal(0.0, 1.0, (n, 2, 2)) * self._stddevs())

    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """log(1 - gamma + gamma dN(mu) / dN(0)) of leaf 1; leaf 0 is distributed alike on both data sets."""
        stddevs = self._stddevs()
        mean = np.array([-self.bound, self.hessian_bound]) / stddevs
        present = (outputs[:, 1] / stddevs) @ mean - 0.5 * float(mean @ mean)
        return np.asarray(np.log1p(self.sampling_rate * np.expm1(present)))

    def _stddevs(self) -> FloatArray:
        shares = (1.0 - self.hessian_share, self.hessian_share)
        return leaf_stddevs(self.sigma, (self.bound, self.hessian_bound), shares)

    def _delta(self, epsilon: float) -> float:
        """The loss of leaf 1, whose row reaches both bounds; leaf 0 is independent of it."""
        return larger_profile([self._sampled(1.0)], epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        charged, exact = self.claim.renyi(self.order)[0], self._sampled(1.0).renyi(self.order)[0]
        return (Row(f"Rényi divergence of order {self.order:g}", float(charged), float(exact)),)

    def _sampled(self, relative_hessian: float) -> PoissonSampled:
        """The event of a row at the gradient's bound and at `relative_hessian` of the hessian's."""
        mu_squared = 2.0 * (1.0 - self.hessian_share + self.hessian_share * relative_hessian**2) / self.sigma**2
        event = GaussianEvent(noise_multiplier=1.0 / math.sqrt(mu_squared), adjacency=self.adjacency)
        return PoissonSampled(event, sampling_rate=self.sampling_rate)


@specimen("errata-sgbdt-cache", "released code, RDPAccountant::approximate_rho")
class ApproximatePrices(GaussianNumbers):
    """Approximate filter, Newton leaves: a row is charged by a table that is looked up at the least hessian.

    Pairs (gradient, hessian) are compared by their first member: the next entry above (g, h) is the next gradient with
    the *least* hessian. Full batch, and the noise of the accounting (not halved).
    """

    sigma: float = 2.0  # the code's noise scale
    hessian_share: float = 0.5  # r1, in (0, 1)
    gradient: float = 0.3333  # |g| of the row, in (0, bound); its hessian is |g| (1 - |g|)
    bound: float = 0.5  # g* <= 1/2, the clip of the gradient
    hessian_bound: float = 0.25  # h* <= 1/4
    steps: int = 1000  # entries of the table along each axis

    @property
    def claim(self) -> GaussianEvent:
        """The entry that the look-up returns."""
        (_, hessian), bounds = self.pair[0][0], (self.bound, self.hessian_bound)
        gradients, hessians = ([(step + 1.0) / self.steps * most for step in range(self.steps)] for most in bounds)
        row = bisect.bisect_left(gradients, self.gradient)
        above = gradients[row] > self.gradient
        column = 0 if above else min(bisect.bisect_right(hessians, hessian), self.steps - 1)
        _, stddevs = self.distribution(self.pair[0])
        mu = float(np.linalg.norm(np.array([gradients[row], hessians[column]]) / stddevs))
        return GaussianEvent(noise_multiplier=1.0 / mu, adjacency=self.adjacency)

    @property
    def pair(self) -> Pair:
        """One row (gradient, hessian), shape (1, 2); and none."""
        return without_last([[self.gradient, self.gradient * (1.0 - self.gradient)]])

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, FloatArray]:
        bounds = np.array([self.bound, self.hessian_bound])
        stddevs = leaf_stddevs(self.sigma, bounds, (1.0 - self.hessian_share, self.hessian_share))
        return np.clip(dataset, -bounds, bounds).sum(axis=0), stddevs

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("Rényi divergence of order 2", float(self.claim.renyi(2.0)[0]), self.mu() ** 2),)


def leaf_stddevs(sigma: float, bounds: FloatArray | tuple[float, float], shares: tuple[float, float]) -> FloatArray:
    """The standard deviations of a leaf's two sums: sigma * bound / sqrt(2 * share)."""
    return np.asarray(sigma * np.asarray(bounds) / np.sqrt(2.0 * np.array(shares)))
