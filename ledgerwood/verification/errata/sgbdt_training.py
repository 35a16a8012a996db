"""S-GBDT (Kirschte, Peinemann, Stock, Cotrini, Mohammadi): what training reads and releases, in paper and code."""

import math

import numpy as np
from scipy import stats

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.errata.base import (
    Deterministic,
    FloatArray,
    Pair,
    PureClaim,
    Row,
    Specimen,
    specimen,
    without_last,
)
from ledgerwood.verification.errata.outputs import (
    CountedRows,
    GaussianNumbers,
    LeastAndLargest,
    larger_divergence,
    larger_profile,
)

TRAINING = Budget(epsilon=0.1, delta=5e-8, adjacency=Adjacency.ADD_REMOVE)
"""A whole training as the paper runs it; an output without noise breaks any claim."""


@specimen("errata-sgbdt-stop", "released code, DPEnsemble::train")
class StopsWhenSpent(Deterministic):
    """The extra rounds end when no row has budget left, and the number of trees is released.

    Clipped gradients stay what they are. A row at the clip has spent all in the regular rounds; one below it has not,
    and training goes on.
    """

    claim = TRAINING
    pair = without_last([1.0, 1.0, 0.5])
    """Gradients as shares of the clip: two rows at it and one at half of it; and without the latter."""

    trees: int = 150  # regular rounds, which are the whole budget of a row at the clip
    extra_trees: int = 100  # the most extra rounds
    count_share: float = 0.2  # r1 of the cost r1 + (1 - r1) (g / g*)^2 of a round

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of extra trees."""
        costs = self.count_share + (1.0 - self.count_share) * np.minimum(np.abs(dataset), 1.0) ** 2
        left, grown = self.trees * (1.0 - costs), 0
        while grown < self.extra_trees and (fits := costs <= left).any():
            left, grown = left - costs * fits, grown + 1
        return (float(grown),)


@specimen("errata-sgbdt-structure", "released code, DPTree::make_tree_DFS (min_samples_split)")
class SmallNodes(Deterministic):
    """A node with fewer rows than `min_samples_split`, here 2, becomes a leaf, by their exact number."""

    claim = TRAINING
    pair = without_last(np.zeros(2))

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the root is split."""
        return (float(dataset.size >= 2),)


@specimen("errata-sgbdt-clock", "released code, random_unique and S_BDT.__cinit__")
class ClockSeededSample(Specimen):
    """The rows of a sample are chosen by `rand()`, seeded with the second at which training starts.

    One count with normal noise over a sample, seen by somebody who knows that second. The first tree's shuffle follows
    from it, and with it the row's place; the sample is the first N rows of the shuffle, and only N ~ Binomial(rows,
    rate) is drawn from a better source. Given the place, the row is in with probability Pr[N >= place], which is near 0
    or near 1.
    """

    witness = 1.0

    noise_multiplier: float = 1.0  # stddev of the count
    sampling_rate: float = 0.1  # gamma
    count: int = 1000  # rows, the one that differs included; the others are in other leaves

    @property
    def claim(self) -> PoissonSampled:
        """A secret Poisson sample."""
        return self._sampled(self.sampling_rate)

    @property
    def pair(self) -> Pair:
        """Membership of the leaf: `count` - 1 rows outside and one inside; and without the latter."""
        return without_last(np.append(np.zeros(self.count - 1), 1.0))

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(place of the last of `count` rows in the shuffle, noisy count of sampled rows in the leaf), shape (n, 2)."""
        place = rng.integers(1, self.count + 1, n)
        inside = (dataset.sum() > 0.0) & (place <= rng.binomial(self.count, self.sampling_rate, n))
        return np.stack([place, inside + rng.normal(0.0, self.noise_multiplier, n)], axis=1)

    def _delta(self, epsilon: float) -> float:
        """The mean over the known place of the sampled Gaussian at the rate that is left, by enumeration."""
        rates = [rate for rate in self.rates() if rate > 1e-20]  # the others add less than that
        return larger_profile([self._sampled(rate) for rate in rates], epsilon) / self.count

    def rates(self) -> tuple[float, ...]:
        """Pr[N >= place] for every place from 1 to `count`."""
        tail = stats.binom.sf(np.arange(self.count), self.count, self.sampling_rate)
        return tuple(float(value) for value in np.minimum(tail, 1.0))

    def _sampled(self, rate: float) -> PoissonSampled:
        event = GaussianEvent(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency)
        return PoissonSampled(event, sampling_rate=rate)


@specimen("errata-sgbdt-custom", "released code, DPEnsemble::train and RDPAccountant::setup_accounting")
class CustomNoise(GaussianNumbers):
    """`custom_noise_scale` is passed where the number of compositions belongs: noise for fewer trees than are trained.

    `setup_accounting(custom_noise_scale)` is the function of one whole number, the compositions: the scale is cut to
    its whole part, noise is sought for that number of trees, and replaces the custom one. Every tree releases a count,
    full batch.
    """

    pair = without_last([1.0])

    custom_scale: float = 5.5  # the parameter, at least 1
    trees: int = 20  # the trees that are trained, more than that
    mu_booked: float = 0.5  # the accountant's Gaussian parameter of floor(custom_scale) releases together

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=1.0 / self.mu_booked, adjacency=self.adjacency)

    def distribution(self, dataset: FloatArray) -> tuple[FloatArray, float]:
        return np.full(self.trees, dataset.sum()), math.sqrt(int(self.custom_scale)) / self.mu_booked

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("Rényi divergence over what is booked", 1.0, self.trees / int(self.custom_scale)),)


@specimen("errata-sgbdt-data-reads", "released code, DataSet::scale_y")
class LabelRange(LeastAndLargest):
    """Labels are scaled by their own least and largest value, and predictions are scaled back by them."""

    claim = TRAINING
    pair = without_last([4.0, 9.0, 29.0])


@specimen("errata-sgbdt-data-reads", "released code, Parser::parse_file and DPTree::find_best_split")
class CategoryList(Specimen):
    """The categories to split on are those that occur in the training rows: one random split on one of them."""

    claim = TRAINING
    pair = without_last([0.0, 0.0, 1.0, 2.0])
    """Category codes with a third category, of one row; and without it."""

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The category of the split, shape (n,)."""
        return rng.choice(np.unique(dataset), n)

    def _delta(self, epsilon: float) -> float:
        """By enumeration over all categories."""
        shown = [np.unique(part) for part in self.pair]
        p, q = (np.isin(np.union1d(*shown), categories) / categories.size for categories in shown)
        return larger_divergence(p, q, epsilon)


@specimen("errata-sgbdt-data-reads", "released code, Parser::parse_file")
class MajorityClass(Deterministic):
    """The two classes change names where the second is the more frequent one."""

    claim = TRAINING
    pair = without_last([0.0, 0.0, 1.0, 1.0, 1.0])
    """Two rows of class 0 and three of class 1; and one of the latter less: a tie."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 where the names of the classes were exchanged."""
        return (float(np.count_nonzero(dataset == 1.0) > np.count_nonzero(dataset == 0.0)),)


@specimen("errata-sgbdt-export", "released code, DPTree::exportTree")
class ExportedCounts(CountedRows):
    """An exported tree carries the exact number of rows of every node, `n_node_samples`."""

    claim = TRAINING


@specimen(
    "errata-sgbdt-misprints",
    "Algorithm 2, lines 3 to 5; Definition 25 has it right but for its indices",
    verdict="misprint",
)
class BucketIndices(PureClaim):
    """Algorithm 2 as printed: the interval above the largest value is a candidate twice.

    The grid-less exponential mechanism over one numeric feature of range [0, 1], with utility 0 everywhere. The printed
    loop ends at j = n, so that [v_n, v_{n+1}) with v_{n+1} = v_max stands beside B_{n+1} = [v_n, v_max] and its points
    weigh twice. Where "above all values" begins depends on the rows: up to log 2 is lost for any epsilon.
    """

    epsilon: float = 0.1  # the claim of Lemma 26, in nats
    largest: float = 0.9  # the largest value of the rows that stay, in (0, 1); the row that differs has value 1

    @property
    def pair(self) -> Pair:
        """Values of the feature: one, and the upper end of the range; and the first alone."""
        return without_last([self.largest, 1.0])

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Thresholds, shape (n,): a bucket by its width, then uniformly inside."""
        low, high = buckets(dataset)
        chosen = rng.choice(low.size, n, p=(high - low) / (high - low).sum())
        return rng.uniform(low[chosen], high[chosen])

    def _delta(self, epsilon: float) -> float:
        """Both densities are constant between the values of all rows: a sum over these pieces."""
        p, q, widths = self._densities()
        return larger_divergence(widths * p, widths * q, epsilon)

    def pure_epsilon(self) -> float:
        p, q, widths = self._densities()
        return float(np.abs(np.log(p / q))[widths > 0.0].max())

    def _densities(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        edges = np.unique(np.concatenate([np.array([0.0, 1.0]), *self.pair]))
        middles, widths = 0.5 * (edges[:-1] + edges[1:]), np.diff(edges)
        first, second = (density(part, middles) for part in self.pair)
        return first, second, widths


def buckets(values: FloatArray) -> Pair:
    """Lower and upper ends of B_0 to B_{n+1} as printed, each of shape (n + 2,)."""
    ordered = np.sort(values)
    return np.concatenate([[0.0], ordered, ordered[-1:]]), np.concatenate([ordered, [1.0], [1.0]])


def density(values: FloatArray, points: FloatArray) -> FloatArray:
    """The density of the threshold at `points`, by counting the buckets that hold each."""
    low, high = buckets(values)
    inside = (low[:, None] <= points) & (points < high[:, None])
    return np.asarray(inside.sum(axis=0) / (high - low).sum())
