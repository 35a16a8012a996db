"""DP-XGBoost (Grislain, Gonzalvez 2021): the paper's mechanisms and the authors' released code."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Pair, PureClaim, Row, specimen, without_last
from ledgerwood.verification.errata.outputs import (
    ONE_GRADIENT,
    Disjoint,
    Finite,
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


@specimen("errata-dpxgboost-noisy-average", "Section 4.3, Algorithm 1; not used by the released code")
class NoisyAverage(OneLaplace):
    """Algorithm 1: a noisy sum over the exact number of rows, which the scale of the average's noise tells.

    One leaf, g* = 1. The shift of the sum costs up to epsilon; the ratio of the heights of the two densities,
    (n + 1 + lambda) / (n + lambda), comes on top.
    """

    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    epsilon: float = 0.1  # the claim, in nats
    regularization: float = 0.1  # lambda; > 0 for an empty leaf
    count: int = 1  # n, the rows of the leaf without the one that differs

    @property
    def pair(self) -> Pair:
        """Gradients of 1, `count` of them, and one of -1; and without the latter."""
        return without_last(np.append(np.ones(self.count), -1.0))

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        rows = dataset.size + self.regularization
        return leaf_value(dataset, self.regularization), 2.0 / self.epsilon / rows

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"pure epsilon, {count} rows", self.epsilon, replace(self, count=count).pure_epsilon())
            for count in (0, 1, 5, 50, 500)
        )


@specimen("errata-dpxgboost-leaf-noise", "Section 4.3, equation 7; released code, GlobalDPHistmaker::UpdateTree")
class SmallRoot(OneLaplace):
    """A root that is too small to be split is a leaf, with the noise of a large one.

    Equation 7 holds for leaves of at least N_min rows. Nothing makes the root hold them: here it is the only leaf of a
    tree over fewer rows, g* = 1.
    """

    pair = ONE_GRADIENT

    epsilon: float = 1.0  # the privacy cost of the leaves of a tree, in nats
    regularization: float = 0.1  # lambda
    min_child_weight: float = 50.0  # N_min

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        scale = 2.0 / (self.min_child_weight + 1.0 + self.regularization) / self.epsilon
        return leaf_value(dataset, self.regularization), scale


@specimen("errata-dpxgboost-leaf-noise", "released code, GlobalDPHistmaker::CreateHistDP (GetNodeStats) and UpdateTree")
class UnfilteredStatistics(OneLaplace):
    """Gradients are filtered in the histograms, and not in the leaves: one leaf of many rows, one label far off.

    Only its clip bounds the leaf, at g* = 1 on both sides: the sensitivity is 2 g*, not 2 g* / (N_min + 1 + lambda).
    """

    epsilon: float = 1.0  # the privacy cost of the leaves of a tree, in nats
    regularization: float = 0.1  # lambda
    min_child_weight: int = 50  # N_min; the leaf holds twice as many rows
    label: float = 1e5  # that of the row that differs, far outside [-1, 1]

    @property
    def pair(self) -> Pair:
        """Gradients of 0.5 and that of the far label at score 0; and without the latter."""
        return without_last(np.append(np.full(2 * self.min_child_weight, 0.5), -self.label))

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        value = leaf_value(dataset, self.regularization)
        return min(max(value, -1.0), 1.0), 2.0 / (self.min_child_weight + 1.0 + self.regularization) / self.epsilon


@specimen(
    "errata-dpxgboost-gain",
    "Section 2 (data sets of n rows that differ by one instance), equation 5; DPBoost's code from commit 1174730",
    adjacency=Adjacency.REPLACE_ONE,
)
class ReplacedGain(Finite, PureClaim):
    """Equation 5, and DPBoost's code since November 2020: a sensitivity of 3 g*^2 where a row is replaced.

    One split by exp(epsilon G / 6), g* = 1, lambda .1. A row of gradient -1 moves between two cells of the features.
    The left sides hold gradients of 1, the right sides of -1. The first candidate has the row on the right and loses
    almost 4 when it moves, the `alike` others gain as much.
    """

    epsilon: float = 1.0  # the privacy cost of the choice, in nats
    count: int = 1000  # rows of either sign besides the one that moves
    alike: int = 20  # candidates that gain

    @property
    def pair(self) -> Pair:
        """Rows (gradient, cell), the cell 2 times the side under the first candidate plus that under the others."""
        rows = np.repeat([[1.0, 0.0], [-1.0, 3.0]], self.count, axis=0)
        return np.concatenate([rows, [[-1.0, 2.0]]]), np.concatenate([rows, [[-1.0, 1.0]]])

    def distribution(self, dataset: FloatArray) -> FloatArray:
        gradients, cells = dataset.T
        first, others = (gain(gradients, side, 0.1) for side in (cells // 2.0, cells % 2.0))
        return softmax(self.epsilon * np.append(first, np.full(self.alike, others)) / 6.0)


@specimen(
    "errata-dpxgboost-newton",
    "equation 5; released code, GBTree::ConfigureUpdaters (binary:logistic) and exponentialMech",
)
class NewtonGain(Finite, PureClaim):
    """The sensitivity of the gain for a constant hessian, with the logistic loss: gains S^2 / (H + lambda).

    The rows are badly predicted; a row's gradient is p - y and its hessian p (1 - p): 0.99 and 0.0099, both signs. By
    candidate, one more row joins its like or its opposite.
    """

    epsilon: float = 0.05  # the privacy cost of the choice, in nats
    count: int = 200  # rows of either sign besides the last; the hessians of 102 exceed the default minimum, 1

    @property
    def pair(self) -> Pair:
        """Rows (gradient, side under the first candidate, under the second); and without the last."""
        rows = np.repeat([[0.99, 0.0, 0.0], [-0.99, 1.0, 1.0]], self.count, axis=0)
        return without_last([*rows, [0.99, 0.0, 1.0]])

    def distribution(self, dataset: FloatArray) -> FloatArray:
        gradients, *sides = dataset.T
        hessians = np.abs(gradients) * (1.0 - np.abs(gradients))
        gains = [
            sum(gradients[part].sum() ** 2 / (hessians[part].sum() + 0.1) for part in (side == 0.0, side == 1.0))
            for side in sides
        ]
        return softmax(self.epsilon * np.array(gains) / 6.0)


@specimen("errata-dpxgboost-structure", "Section 4.3; released code, GlobalDPHistmaker::EnumerateSplitDP")
class MinChildWeight(RowsOnBothSides):
    """A split needs the minimum child weight, 50, on both sides, counted exactly: a root is split, or not."""

    claim = TRAINING
    least = 50


@specimen(
    "errata-dpxgboost-structure",
    "Section 4.3 (a maximum gain that is too small); released code, GlobalDPHistmaker::FindSplitDP",
)
class ChosenGain(Finite, PureClaim):
    """The split that was chosen is dropped if its exact gain is not positive; g* = 1, lambda .1.

    There are two candidates, of which the second is useless without a row: to choose it then shows as a leaf.
    """

    pair = without_last([[g, 0.5 - 0.5 * g, side] for g in (1.0, -1.0) for side in (0.0, 1.0)] + [[1.0, 0.0, 0.0]])
    """Rows (gradient, side under the first candidate, under the second); and without the last."""
    witness = 100.0

    epsilon: float = 1.0

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of a leaf, the first split, the second split."""
        gradients, *sides = dataset.T
        gains = np.array([gain(gradients, side, 0.1) for side in sides]) - score(gradients, 0.1)
        chosen, kept = softmax(self.epsilon * np.maximum(gains, 0.0) / 6.0), gains > 1e-6
        return np.append(chosen[~kept].sum(), np.where(kept, chosen, 0.0))


@specimen("errata-dpxgboost-model", "released code, GlobalDPHistmaker::SetStats and RegTree::SaveModel")
class ModelStatistics(Deterministic):
    """A saved model holds every node's exact weight and value, here the root's for lambda .1."""

    claim = TRAINING
    pair = without_last([-0.5, 0.25, 0.5])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(sum_hessian, base_weight)."""
        return float(dataset.size), leaf_value(dataset, 0.1)


@specimen(
    "errata-dpxgboost-noise",
    "released code, GlobalDPHistmaker::DPHistSketchEntry (randomized and weights are never reset)",
)
class SketchNoise(Disjoint):
    """A thread draws the noise of its first histogram, and of no other.

    The second feature's histogram is counted on top of the first one's noisy counts: their difference has no noise.
    Epsilon is for both.
    """

    pair = without_last([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    """Rows (in the bin of the first feature, of the second): three; and two."""

    epsilon: float = 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The weight of one bin in both histograms, shape (n, 2)."""
        first, second = dataset.sum(axis=0)
        noisy = first + rng.laplace(0.0, 2.0 / self.epsilon, n)
        return np.stack([noisy, noisy + second], axis=1)


@specimen("errata-dpxgboost-noise", "released code, GlobalDPHistmaker::UpdateTree (seed = time(0))")
class SharedSeed(Disjoint):
    """Trees that begin in one second have the same noise: the difference of their leaves has none.

    The first leaves of two trees, g* = 1 and lambda .1, epsilon for both; a row is in the first of them.
    """

    pair = without_last([[-0.5, 1.0, 0.0], [0.5, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    """Rows (gradient, in the first tree's leaf, in the second's): three; and two."""

    epsilon: float = 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves, shape (n, 2)."""
        gradients, *leaves = dataset.T
        values = np.array([leaf_value(gradients[leaf > 0.0], 0.1) for leaf in leaves])
        return np.asarray(values + rng.laplace(0.0, 2.0 / 1.1 / self.epsilon, (n, 1)))


@specimen("errata-dpxgboost-sampling", "Section 4.4; released code, XGBoost's row sampling with the default seed 0")
class PublicSample(OneLaplace):
    """The rows of a sample follow from a seed that is 0 by default: a noisy number of rows known to be sampled."""

    epsilon: float = 1.0  # the privacy cost of a tree without sampling, in nats
    sampling_rate: float = 0.1  # gamma, in [0.001, 1)

    @property
    def claimed_epsilon(self) -> float:
        """log(1 + gamma (e^epsilon - 1))."""
        return float(np.log1p(self.sampling_rate * np.expm1(self.epsilon)))

    @property
    def pair(self) -> Pair:
        """Rows up to and with the first that the public seed samples; and without that one."""
        return without_last(np.ones(1 + int(np.argmax(self._sampled(100_000)))))

    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        return float(dataset[self._sampled(dataset.size)].sum()), 1.0 / self.epsilon

    def _sampled(self, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tells which of the rows, in their order, are in the sample of every run."""
        return np.random.default_rng(0).random(rows) < self.sampling_rate


@specimen(
    "errata-dpxgboost-sampling",
    "Section 4.4 (a fraction without replacement) with the sensitivities of Section 4",
    adjacency=Adjacency.REPLACE_ONE,
)
class ReplacedSample(PureClaim):
    """Sampling without replacement divides the privacy cost of a replaced row.

    A gradient sum over a sample of fixed size, with Laplace noise for the sensitivity of one more row, g* = 1. Balle,
    Barthe and Gaboardi's formula for samples of fixed size takes the cost of a replaced row, twice that of an added
    one.
    """

    epsilon: float = 1.0  # the privacy cost of a tree without sampling for one row more or less, in nats
    sample: int = 1  # rows drawn
    count: int = 10  # rows, more than are drawn

    @property
    def claimed_epsilon(self) -> float:
        """log(1 + gamma (e^epsilon - 1))."""
        return float(np.log1p(self.sample / self.count * np.expm1(self.epsilon)))

    @property
    def pair(self) -> Pair:
        """Gradients of 0 and a last one of 1; or of -1."""
        rows = np.zeros(self.count - 1)
        return np.append(rows, 1.0), np.append(rows, -1.0)

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        rows = np.argsort(rng.random((n, self.count)), axis=1)[:, : self.sample]
        return np.asarray(dataset[rows].sum(axis=1) + rng.laplace(0.0, 1.0 / self.epsilon, n))

    def _delta(self, epsilon: float) -> float:
        """The ratio of the two densities grows with the output, from its smallest value at -1 to the largest at 1."""
        rate, eps = self.sample / self.count, self.epsilon
        inner = math.exp(epsilon) * (1.0 - rate + rate * math.exp(-eps)) - (1.0 - rate)
        place = 0.5 * (math.log(inner / rate) + eps) / eps if inner > 0.0 else 0.0
        if place >= 1.0:
            return 0.0
        absent = 0.5 * (1.0 - rate) * math.exp(-eps * place)
        above = absent + rate * (1.0 - 0.5 * math.exp(eps * (place - 1.0)))
        return max(0.0, above - math.exp(epsilon) * (absent + 0.5 * rate * math.exp(-eps * (place + 1.0))))

    def pure_epsilon(self) -> float:
        rate, eps = self.sample / self.count, self.epsilon
        return math.log1p(rate * math.expm1(eps)) - math.log1p(rate * math.expm1(-eps))


@specimen(
    "errata-dpxgboost-rounds",
    "README.md (num_boost_rounds, the number of trees built); released code, GBTree::DoBoost and BoostNewTrees",
    verdict="slip",
)
class RoundTrees(PureClaim):
    """A round may grow several trees, and the formula counts one: two leaves, each with noise for a tree's budget.

    One round with `num_parallel_tree` 2 over one row, all of a tree's epsilon on its leaf. Classes work alike: a round
    over K classes grows K trees.
    """

    pair = ONE_GRADIENT

    epsilon: float = 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves at lambda .1, shape (n, 2)."""
        return np.asarray(leaf_value(dataset, 0.1) + rng.laplace(0.0, 1.0 / 1.1 / self.epsilon, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        """Two independent Laplace pairs of the full sensitivity."""
        return twice(self.epsilon, epsilon)

    def pure_epsilon(self) -> float:
        return 2.0 * self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return *PureClaim.more_rows(self), Row("pure epsilon, 10 classes", self.epsilon, 10.0 * self.epsilon)


@specimen(
    "errata-dpxgboost-misprints",
    "Section 2, the exponential mechanism; Section 4.2 has it right",
    verdict="misprint",
)
class ExponentialScale(Finite, PureClaim):
    """The exponential mechanism without the 2: a choice by exp(epsilon u / Delta u).

    One row adds Delta u to one utility and takes it from all others.
    """

    pair = without_last([1.0])
    """One row that votes for the first candidate; and none."""

    epsilon: float = 1.0  # the claim, in nats
    others: int = 20  # candidates besides the first

    def distribution(self, dataset: FloatArray) -> FloatArray:
        votes = float(dataset.sum())
        return softmax(self.epsilon * np.append(votes, np.full(self.others, -votes)))
