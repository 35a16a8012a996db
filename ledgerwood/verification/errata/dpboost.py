"""DPBoost (Li, Wu, Wen, He 2020): the paper's lemmas and algorithms, and the authors' released code."""

from dataclasses import replace

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Pair, PureClaim, Row, specimen, without_last
from ledgerwood.verification.errata.outputs import (
    ONE_GRADIENT,
    CountedRows,
    Disjoint,
    Finite,
    LeastAndLargest,
    OneLaplace,
    RowsOnBothSides,
    gain,
    leaf_value,
    score,
    softmax,
    twice,
)

TRAINING = PureEvent(epsilon=1.0, adjacency=Adjacency.ADD_REMOVE)
"""A whole training; an output without noise breaks any claim."""


@specimen("errata-dpboost-gain", "Lemma 1, Corollary 1; released code until commit 1174730")
class GainSensitivity(Finite, PureClaim):
    """Lemma 1: the gain's sensitivity is taken where all gradients agree; it is largest where they do not.

    One split by the exponential mechanism exp(epsilon G / (2 Delta)), with Lemma 1's Delta and g* = 1. `alike`
    candidates keep all rows on the left, one more sends the last row to the right. All gradients are 1, the last row's
    is -1: it takes almost 3 from the gain of the first, and adds 1 / (1 + lambda) to that of the other.
    """

    epsilon: float = 1.0  # the privacy cost of the choice, in nats
    regularization: float = 0.1  # lambda, > 0
    count: int = 1000  # rows besides the last one
    alike: int = 100  # candidates that keep all rows together

    @property
    def pair(self) -> Pair:
        """Rows (gradient, side under the last candidate): `count` of gradient 1, one of -1; and without the latter."""
        return without_last([*np.tile([1.0, 0.0], (self.count, 1)), [-1.0, 1.0]])

    def sensitivity(self) -> float:
        """Lemma 1, for g* = 1."""
        lam = self.regularization
        return (3.0 * lam + 2.0) / ((lam + 1.0) * (lam + 2.0))

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of all candidates, the one that differs last."""
        gradients, side = dataset.T
        together = gain(gradients, np.zeros(side.size), self.regularization)
        gains = np.append(np.full(self.alike, together), gain(gradients, side, self.regularization))
        return softmax(self.epsilon * gains / (2.0 * self.sensitivity()))

    def more_rows(self) -> tuple[Row, ...]:
        larger = replace(self, regularization=10.0, alike=10_000)
        return *PureClaim.more_rows(self), Row(
            "pure epsilon, lambda 10, 10000 candidates alike", self.epsilon, larger.pure_epsilon()
        )


@specimen(
    "errata-dpboost-leaf-clipping",
    "Algorithm 2, line 14; the released code has the index inside the ensemble",
    verdict="misprint",
)
class GeometricIndex(OneLaplace):
    """Algorithm 2, line 14: the noise uses the tree's index in the whole model, the clip that in its ensemble.

    Every ensemble begins again with a large leaf clip; this is the purpose of ensembles. Line 14 uses t instead of the
    place inside the ensemble. One leaf of the first tree of the second ensemble, g* = 1.
    """

    pair = ONE_GRADIENT

    epsilon: float = 1.0  # the privacy cost of the leaves of a tree, in nats
    regularization: float = 0.1  # lambda
    learning_rate: float = 0.1  # eta, in (0, 1)
    tree: int = 51  # t, counted from 1 in the whole model
    ensemble: int = 50  # T_e, trees in an ensemble

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        bound = (1.0 - self.learning_rate) ** ((self.tree - 1) % self.ensemble)
        value = leaf_value(dataset, self.regularization)
        sensitivity = min(1.0 / (1.0 + self.regularization), 2.0 * (1.0 - self.learning_rate) ** (self.tree - 1))
        return min(max(value, -bound), bound), sensitivity / self.epsilon


@specimen("errata-dpboost-leaf-clipping", "released code, GBDT::TrainOneIter (a constant 0.1)")
class HardwiredLambda(OneLaplace):
    """Leaf noise for lambda = .1, whatever lambda is: one leaf of the first tree with LightGBM's default of 0."""

    pair = ONE_GRADIENT

    epsilon: float = 1.0  # the privacy cost of the leaves of a tree, in nats
    regularization: float = 0.0  # `lambda_l2`

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        return leaf_value(dataset, self.regularization), 1.0 / 1.1 / self.epsilon


@specimen(
    "errata-dpboost-subsets", "Algorithm 2, line 8, Theorem 8; released code, GBDT::BaggingHelper (balance_partition)"
)
class SubsetSizes(PureClaim):
    """Algorithm 2: the trees of an ensemble get disjoint subsets whose sizes are shares of the number of rows.

    One row more makes both subsets grow, so that both leaves change: nothing is disjoint about sizes. Two trees of one
    leaf each, of floor(n / 2) rows each, n private; g* = 1.
    """

    pair = without_last([-1.0, -1.0])
    """Two gradients of -1; and one."""

    epsilon: float = 1.0  # the privacy cost of the leaves of a tree, in nats, and by Theorem 8 of the ensemble
    regularization: float = 0.1  # lambda, > 0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves, shape (n, 2)."""
        rows = np.argsort(rng.random((n, dataset.size)), axis=1)[:, : dataset.size // 2 * 2]
        subsets = dataset[rows].reshape(n, 2, dataset.size // 2)
        values = -subsets.sum(axis=2) / (dataset.size // 2 + self.regularization)
        return np.asarray(values + rng.laplace(0.0, 1.0 / (1.0 + self.regularization) / self.epsilon, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        """Two independent Laplace pairs of the full sensitivity."""
        return twice(self.epsilon, epsilon)

    def pure_epsilon(self) -> float:
        return 2.0 * self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return *PureClaim.more_rows(self), Row(
            "pure epsilon, 50 trees, 49 rows and one more", self.epsilon, 50.0 * self.epsilon
        )


@specimen(
    "errata-dpboost-structure",
    "released code, FeatureHistogram::FindBestThresholdSequence and SerialTreeLearner::Train",
)
class PositiveGain(Finite, PureClaim):
    """A split that does not improve on its node has probability 0.

    The gain is that of the split less that of the node; where this is not positive it is set to 0, and a gain of 0 is
    left out of the choice. Three candidates with the code's own sensitivity of 3, g* = 1, lambda .1; the last is
    useless without a row.
    """

    pair = without_last(
        [[g, 0.5 - 0.5 * g, 0.5 - 0.5 * g, side] for g in (1.0, -1.0) for side in (0.0, 1.0)] + [[1.0, 0.0, 0.0, 0.0]]
    )
    """Rows (gradient, side under each of two like candidates, under the last); and without the last row."""
    witness = 100.0

    epsilon: float = 1.0

    def distribution(self, dataset: FloatArray) -> FloatArray:
        gradients, *sides = dataset.T
        gains = np.array([gain(gradients, side, 0.1) for side in sides]) - score(gradients, 0.1)
        return softmax(np.where(gains > 0.0, self.epsilon * gains / 6.0, -np.inf))


@specimen(
    "errata-dpboost-structure",
    "released code, SerialTreeLearner::BeforeFindBestSplit and FeatureHistogram; LightGBM's min_data_in_leaf = 20",
)
class MinDataInLeaf(RowsOnBothSides):
    """A node is split if both sides hold 20 rows, counted exactly: the root is split at one half, or not at all."""

    claim = TRAINING
    least = 20


@specimen("errata-dpboost-structure", "released code, SerialTreeLearner::Train (ArgMax of best_split_per_leaf_)")
class LeafWiseGrowth(Deterministic):
    """The leaf that is split next is the one with the best exact gain."""

    claim = TRAINING
    pair = without_last(
        [[leaf, side, 1.0 - 2.0 * side] for leaf in (0.0, 1.0) for side in (0.0, 1.0)] + [[1.0, 0.0, 1.0]]
    )
    """Rows (leaf, side, gradient), two leaves alike but for one row more in the second; and without it."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of the leaf; of equal ones the first."""
        gains = []
        for leaf in (0.0, 1.0):
            _, side, gradients = dataset[dataset[:, 0] == leaf].T
            gains.append(gain(gradients, side, 0.1) - score(gradients, 0.1))
        return (float(np.argmax(gains)),)


@specimen("errata-dpboost-data-reads", "Algorithm 1, line 6 (each split value); released code, LightGBM's BinMapper")
class QuantileBins(Deterministic):
    """The split values are the borders of LightGBM's bins, cut from the training rows: two bins of equal count."""

    claim = TRAINING
    pair = without_last([1.0, 2.0, 4.0, 8.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The border, a threshold of the model: half of the rows are below."""
        return (float(np.median(dataset)),)


@specimen("errata-dpboost-data-reads", "Section 4; released code, run_exp.py")
class LabelScaling(LeastAndLargest):
    """Labels are scaled to [-1, 1] by their own smallest and largest value, which scale every prediction back."""

    claim = TRAINING
    pair = without_last([1.0, 8.0, 9.0, 29.0])


@specimen("errata-dpboost-data-reads", "released code, GBDT::BoostFromAverage and Tree::AddBias")
class BoostFromAverage(Deterministic):
    """Training starts from the exact mean of the labels, which the model holds: LightGBM's `boost_from_average`."""

    claim = TRAINING
    pair = without_last([-1.0, 0.5, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The score that is added to every leaf of the first tree."""
        return (float(dataset.mean()),)


@specimen("errata-dpboost-data-reads", "released code, Tree::ToString")
class SavedCounts(CountedRows):
    """A saved model holds the exact number of rows of every leaf, `leaf_count`; its gains are exact, too."""

    claim = TRAINING


@specimen("errata-dpboost-seeds", "released code, GBDT::GBDT (lap(42)), SerialTreeLearner::randomseed, bagging_seed")
class FixedSeeds(Deterministic):
    """All noise comes from generators whose seeds the source code holds: one leaf of lambda .1, noise of epsilon 1."""

    claim = TRAINING
    pair = ONE_GRADIENT

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The leaf with the first draw of seed 42, whatever `rng` a caller of the sampler passes."""
        return (leaf_value(dataset, 0.1) + float(np.random.default_rng(42).laplace(0.0, 1.0 / 1.1)),)


@specimen(
    "errata-dpboost-seeds",
    "released code, Laplace::return_a_random_variable and Tree::add_noise",
    auditor="bitwise",
)
class SinglePrecisionNoise(Disjoint):
    """The noise is a number of single precision, the leaf one of double precision; g* = 1, lambda .1.

    The difference of two exponential deviates of float32 is added in float64. An empty leaf is the noise itself, a
    float32. A leaf of one row is 1 / 1.1, whose digits beyond float32 stay in the sum, so that it never is a float32:

    Let s = fl(v + e), v the leaf, e the noise, a float32 of whole 2^-50 with |e| < 64. Were s a float32, v would be
    within half of s's last place (float64) of a multiple of the smaller of both last places (float32). v is 10/11 to
    2^-54: from multiples of 2^-j, j <= 33, it is 2^-j / 12 away, and that half is at most 2^-47. This leaves
    |e| < 2^-10, where s is in [1/2, 1) and v is no multiple of 2^-52; and |s| < 2^-10, where s = v + e is exact, odd in
    units of 2^-53 and above 2^-28: too many digits.
    """

    pair = ONE_GRADIENT

    epsilon: float = 1.0  # of a tree's leaves, in nats, in [1/4, 4]: no sum is large enough to lose the digits

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The leaf before the learning rate, shape (n,)."""
        uniform = (rng.integers(0, 1 << 24, (2, n)) / np.float64(1 << 24)).astype(np.float32)
        deviates = -np.log1p(-uniform) * np.float32(1.0 / 1.1 / self.epsilon)
        return np.asarray(leaf_value(dataset, 0.1) + (deviates[0] - deviates[1]).astype(np.float64))
