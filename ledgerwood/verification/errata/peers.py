"""Other private tree ensembles: diffprivlib's random forest, Fletcher and Islam's, and interpret's DP-EBM."""

import math
from dataclasses import replace

import numpy as np
from scipy import special, stats

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
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
from ledgerwood.verification.errata.outputs import CountedClasses, Finite, LeastAndLargest

FOREST = PureEvent(epsilon=0.1, adjacency=Adjacency.ADD_REMOVE)
"""A whole training of diffprivlib's forest; an output without noise breaks any claim."""
EBM_BINS = Budget(epsilon=0.1, delta=5e-6, adjacency=Adjacency.ADD_REMOVE)
"""The private bins of a DP-EBM: a tenth of epsilon 1, half of delta 1e-5."""


@specimen("errata-peers-blocks", "diffprivlib 0.6, RandomForestClassifier.fit (shuffle=False, the default)")
class RowBlocks(Finite, PureClaim):
    """Rows go to trees by their places, so that one row more moves the ends of all blocks.

    Trees of one leaf each over blocks of rows, two classes; a row is appended. Every block but the first loses its
    first row and gains the next one's first, of the other class.
    """

    epsilon: float = 0.1  # the claim for a tree and for the forest, in nats
    trees: int = 10  # T
    block: int = 4  # rows of a tree, even

    @property
    def pair(self) -> Pair:
        """Classes; all of a block alike but its first row, and blocks take turns. With a row more; and without."""
        first = np.arange(self.trees + 1) % 2.0
        rows = np.repeat(1.0 - first, self.block)[: self.trees * self.block + 1]
        rows[:: self.block] = first
        return without_last(rows)

    def minorities(self, dataset: FloatArray) -> FloatArray:
        """The probability that each tree's label is the one of its block's minority, shape (trees,)."""
        places = np.arange(dataset.size) * self.trees // dataset.size
        ones = np.bincount(places, weights=dataset, minlength=self.trees)
        return np.asarray(0.5 * np.exp(-self.epsilon * np.abs(2.0 * ones - np.bincount(places))))

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """The distribution of (label of the first tree, number of the other trees that choose their minority class)."""
        first, *others = self.minorities(dataset)
        return np.outer([1.0 - first, first], stats.binom.pmf(np.arange(self.trees), self.trees - 1, others[0])).ravel()

    def loss(self) -> float:
        """The pure epsilon in nats: all trees take the minority. The first gains a row, the others exchange one."""
        with_row, without = (np.log(self.minorities(part)) for part in self.pair)
        return float(np.abs(with_row - without).sum())

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(Row(f"pure epsilon, {t} trees", self.epsilon, replace(self, trees=t).loss()) for t in (10, 100))


@specimen(
    "errata-peers-replaced",
    "diffprivlib 0.6, models.forest (PermuteAndFlip); no neighbouring relation is stated",
    verdict="slip",
    adjacency=Adjacency.REPLACE_ONE,
)
class ReplacedLabel(Finite, PureClaim):
    """A label by permute-and-flip where a row is replaced; PrivaTree's leaves have it, too.

    One leaf of two classes, utilities their counts, `sensitivity=1, monotonic=True`.
    """

    pair = np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4)
    """Classes: four rows, the last of class 0; and of class 1 instead."""

    epsilon: float = 0.1

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of the two labels; class 1 has more rows."""
        other = 0.5 * math.exp(-self.epsilon * (2.0 * dataset.sum() - dataset.size))
        return np.array([other, 1.0 - other])


@specimen(
    "errata-peers-smooth-labels",
    "Fletcher and Islam 2017, smooth sensitivity of a leaf's majority label; so DPGDF (2019)",
)
class SmoothLabel(Finite, PureClaim):
    """A label by the exponential mechanism with smooth sensitivity, e^(-epsilon gap).

    One leaf of two labels; the commonest has utility 1, the other 0.
    """

    epsilon: float = 0.1  # the claim, in nats
    gap: int = 40  # by how many rows the commonest label leads, without the row that is added

    @property
    def pair(self) -> Pair:
        """Labels, all of class 0: with a row more; and without."""
        return without_last(np.zeros(self.gap + 1))

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of the two labels; class 0 has all rows."""
        odds = math.exp(-0.5 * self.epsilon * math.exp(self.epsilon * dataset.size))
        return np.array([1.0, odds]) / (1.0 + odds)

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"pure epsilon, {gap} rows ahead", self.epsilon, replace(self, gap=gap).pure_epsilon())
            for gap in (40, 60, 80)
        )


@specimen("errata-peers-residual", "interpret-core 0.7, BaseEBM.fit (domain_size) and boost; interpret issue 523")
class UnclippedResidual(Specimen):
    """DP-EBM's regression: noise for the range of the labels, while residuals are not clipped.

    Two rounds over one bin of noisy weight 1 at learning rate 1; the label range is 1. The first round's noise is in
    the score, so that the second one's residual is as large as it happens to be.
    """

    pair = without_last([1.0])
    """Labels in [0, 1]: one of 1; and none."""
    witness = 1.0

    noise_multiplier: float = 2.0  # standard deviation over the range of the labels, a round

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=self.noise_multiplier / math.sqrt(2.0), adjacency=self.adjacency)

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both rounds' noisy sums of residuals, shape (n, 2)."""
        noise = self.noise_multiplier * rng.standard_normal((n, 2))
        first = dataset.sum() + noise[:, 0]
        second = dataset.sum() - dataset.size * first + noise[:, 1]
        return np.stack([first, second], axis=1)

    def _delta(self, epsilon: float) -> float:
        """Over the first round, the profile of the second, a Gaussian pair of shift 1 - x, at the epsilon left."""
        sigma = self.noise_multiplier
        points, weights = np.polynomial.legendre.leggauss(64)
        edges = 1.0 + sigma * np.linspace(-40.0, 40.0, 81)
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        x = (middle[:, None] + half[:, None] * points).ravel()
        mass = (half[:, None] * weights).ravel()
        loss, mu = (x - 0.5) / sigma**2, np.abs(1.0 - x) / sigma
        root = math.sqrt(2.0 * math.pi)
        first, second = (np.exp(-0.5 * ((x - centre) / sigma) ** 2) / (sigma * root) for centre in (1.0, 0.0))
        remove = float(mass @ (first * _profile(mu, epsilon - loss)))
        add = float(mass @ (second * _profile(mu, epsilon + loss)))
        return min(1.0, max(remove, add))


def _profile(mu: FloatArray, epsilon: FloatArray) -> FloatArray:
    """The divergence of N(mu, 1) from N(0, 1), at any real epsilon; its second term in logarithms."""
    second = np.exp(epsilon + special.log_ndtr(-0.5 * mu - epsilon / mu))
    return np.asarray(np.maximum(special.ndtr(0.5 * mu - epsilon / mu) - second, 0.0))


@specimen("errata-peers-data-reads", "diffprivlib 0.6, RandomForestClassifier.fit (np.unique of the labels)")
class DataClasses(CountedClasses):
    """The forest's classes are those of the training rows; every model holds them as `classes_`."""

    claim = FOREST
    pair = without_last([0.0, 1.0, 2.0])


@specimen("errata-peers-data-reads", "diffprivlib 0.6, RandomForestClassifier.fit (bounds=None: a warning)")
class PeersDataBounds(LeastAndLargest):
    """Without declared `bounds` the forest holds those of the training rows, and draws its thresholds from them."""

    claim = FOREST
    pair = without_last([17.0, 45.0, 90.0])


@specimen(
    "errata-peers-data-reads",
    "interpret-core 0.7, private_numeric_binning (target_weight)",
    auditor="likelihood ratio",
)
class TargetWeight(Specimen):
    """Noisy weights of bins are merged up to a target that is a share of the exact number of rows.

    The first of the bins shows its noisy weight, if that reaches the target; else nothing is cut. A weight that is
    shown is at least the target: between the targets of n and n + 1 rows it can only be of n.
    """

    claim = EBM_BINS

    count: int = 640  # rows, without the one that differs
    max_bins: int = 32  # of a feature
    stddev: float = 32.5  # of the noise of a weight; 32.5 is what `EBM_BINS` needs for one feature

    @property
    def pair(self) -> Pair:
        """Rows, none of them in the first bin: one more; and `count`."""
        return without_last(np.ones(self.count + 1))

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The weight of the first bin, or 0 if it is merged with the next, shape (n,)."""
        weight = self.stddev * rng.standard_normal(n)
        return np.asarray(np.where(weight >= dataset.size / self.max_bins, weight, 0.0))

    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """Below the larger target only the smaller one shows a weight; above it both show the same."""
        more, less = (part.size / self.max_bins for part in self.pair)
        merged = special.log_ndtr(more / self.stddev) - special.log_ndtr(less / self.stddev)
        return np.where(outputs == 0.0, merged, np.where(outputs < more, -np.inf, 0.0))

    def _delta(self, epsilon: float) -> float:
        """The same at every epsilon: the mass between the targets, of weights that only the smaller target shows."""
        more, less = (special.ndtr(part.size / self.max_bins / self.stddev) for part in self.pair)
        return float(more - less)


@specimen("errata-peers-data-reads", "interpret-core 0.7, private_categorical_binning (np.unique of the column)")
class CategoryNames(Finite):
    """The names of categories are those of the training rows; one is kept if its noisy weight reaches the target.

    One category of many rows, and one of a single row.
    """

    claim = EBM_BINS

    count: int = 40  # rows of the common category
    max_bins: int = 32  # of a feature
    stddev: float = 32.5  # of the noise of a weight

    @property
    def pair(self) -> Pair:
        """Categories: all rows of one but the last; and without that."""
        return without_last(np.append(np.zeros(self.count), 1.0))

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of the names that the model shows: both; the common one alone; neither.

        A small category is merged with the smallest other one as long as both together are below the target; of two
        categories either both names are kept or none.
        """
        gaps = (np.unique(dataset, return_counts=True)[1] - dataset.size / self.max_bins) / self.stddev
        if gaps.size == 1:
            return np.array([0.0, special.ndtr(gaps[0]), special.ndtr(-gaps[0])])
        shown = float(special.ndtr(gaps).prod())
        return np.array([shown, 0.0, 1.0 - shown])


@specimen("errata-peers-data-reads", "interpret-core 0.7, EBMModel.fit (max_weight)")
class LargestWeight(Deterministic):
    """The noise is scaled by the largest sample weight, and the model says by how much: `noise_scale_boosting_`."""

    claim = Budget(epsilon=1.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE)
    pair = without_last([1.0, 1.0, 3.0])
    """Sample weights, the last of them the largest; and without it."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The scale of all noise, at a noise multiplier of 2 over all rounds, times the learning rate."""
        return (2.0 * float(dataset.max()),)
