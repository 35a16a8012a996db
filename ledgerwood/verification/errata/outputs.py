"""Shapes of output that many specimens share, each with its sampler and its exact loss.

A specimen states the distribution of its output on a data set; its sampler and its privacy loss follow from it. Here
too are the value of a leaf and the gain of a split for a constant hessian of 1, as both gain-based systems print them.
"""

import abc
import itertools
import math
from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events.base import Event
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Pair, PureClaim, Specimen, without_last


class CountedRows(Deterministic):
    """A specimen that releases the exact number of rows of a leaf, here four or three."""

    __slots__ = ()
    pair = without_last(np.ones(4))

    @final
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        return (float(dataset.size),)


class CountedClasses(Deterministic):
    """A specimen that releases the number of classes that occur in the labels."""

    __slots__ = ()

    @final
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        return (float(np.unique(dataset).size),)


class LeastAndLargest(Deterministic):
    """A specimen that releases the exact ends of a column."""

    __slots__ = ()

    @final
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(least, largest)."""
        return float(dataset.min()), float(dataset.max())


class RowsOnBothSides(Deterministic):
    """A specimen that splits a root at one half if both sides hold `least` rows, counted exactly."""

    __slots__ = ()
    least: ClassVar[int]

    @property
    def pair(self) -> Pair:
        """Values of the feature, `least` on either side; and one less above."""
        return without_last(np.repeat([0.25, 0.75], self.least))

    @final
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 where the root is split."""
        below = int(np.count_nonzero(dataset < 0.5))
        return (float(min(below, dataset.size - below) >= self.least),)


class Finite(Specimen):
    """A specimen with finitely many outputs, numbered from 0: its loss is an enumeration."""

    __slots__ = ()

    @abc.abstractmethod
    def distribution(self, dataset: FloatArray) -> FloatArray:
        """The probability of every output on `dataset`, shape (k,), k the same for both data sets."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Numbers of outputs, shape (n,)."""
        probabilities = self.distribution(dataset)
        return rng.choice(probabilities.size, n, p=probabilities).astype(np.float64)

    @final
    def _delta(self, epsilon: float) -> float:
        p, q = (self.distribution(part) for part in self.pair)
        return larger_divergence(p, q, epsilon)

    @final
    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """The log ratio by the numbers of the outputs."""
        p, q = (self.distribution(part)[outputs.astype(np.int64)] for part in self.pair)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(p) - np.log(q))

    @final
    def pure_epsilon(self) -> float:
        """The largest |log ratio| of an output's probabilities, in nats; inf if one of them is 0."""
        p, q = (self.distribution(part) for part in self.pair)
        return float(np.abs(self.log_ratio(np.flatnonzero((p > 0.0) | (q > 0.0)).astype(np.float64))).max())


class GaussianNumbers(Specimen):
    """A specimen whose output is numbers with independent normal noise of known size: one Gaussian pair."""

    __slots__ = ()

    @property
    def witness(self) -> float:
        return 1.0

    @abc.abstractmethod
    def distribution(self, dataset: FloatArray) -> tuple[ArrayLike, ArrayLike]:
        """Centres on `dataset`, a number or shape (k,), and standard deviations, the same for both data sets."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Outputs, shape (n,) or (n, k)."""
        centres, stddevs = map(np.asarray, self.distribution(dataset))
        return np.asarray(centres + stddevs * rng.standard_normal((n, *centres.shape)))

    @final
    def mu(self) -> float:
        """The distance of the two centres in standard deviations."""
        (with_row, stddevs), (without, _) = (map(np.asarray, self.distribution(part)) for part in self.pair)
        return float(np.linalg.norm((with_row - without) / stddevs))

    @final
    def _delta(self, epsilon: float) -> float:
        return gdp.delta(self.mu(), epsilon)

    @final
    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """A line in the outputs, 0 half way between the centres."""
        (with_row, stddevs), (without, _) = (map(np.asarray, self.distribution(part)) for part in self.pair)
        terms = (outputs - 0.5 * (with_row + without)) * ((with_row - without) / stddevs**2)
        return np.asarray(terms.reshape(len(outputs), -1).sum(axis=1))


class Disjoint(PureClaim):
    """A specimen with noise of which no output, or no difference of two outputs, is possible on both data sets."""

    __slots__ = ()

    @property
    def witness(self) -> float:
        return 100.0

    @final
    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon."""
        return 1.0

    @final
    def pure_epsilon(self) -> float:
        return math.inf

    @final
    def more_rows(self) -> tuple[()]:
        return ()


class OneLaplace(PureClaim):
    """A specimen whose output is one number with Laplace noise, clipped to `ends`; centre and scale may differ."""

    __slots__ = ()
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    @abc.abstractmethod
    def distribution(self, dataset: FloatArray) -> tuple[float, float]:
        """Centre and scale on `dataset`."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Outputs, shape (n,)."""
        centre, scale = self.distribution(dataset)
        return np.asarray(np.clip(centre + rng.laplace(0.0, scale, n), *self.ends))

    @final
    def _delta(self, epsilon: float) -> float:
        p, q = (self.distribution(part) for part in self.pair)
        return min(1.0, max(_hockey_stick(p, q, epsilon, self.ends), _hockey_stick(q, p, epsilon, self.ends)))

    @final
    def pure_epsilon(self) -> float:
        """The largest |log ratio| of the two distributions, in nats: it is taken at a centre, at an end, or inf."""
        p, q = (self.distribution(part) for part in self.pair)
        low, high = self.ends
        if p[1] != q[1] and math.inf in (-low, high):
            return math.inf
        points = [min(max(x, low), high) for x in (p[0], q[0], low, high) if math.isfinite(x)]
        ratios = [abs(_log_density(x, p) - _log_density(x, q)) for x in points]
        if math.isfinite(low):
            ratios.append(abs(math.log(_below(low, p) / _below(low, q))))
        if math.isfinite(high):
            ratios.append(abs(math.log(_above(high, p) / _above(high, q))))
        return max(ratios)


def larger_divergence(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """The hockey-stick divergence of finite distributions p and q at epsilon (nats), the larger direction."""
    factor = math.exp(epsilon)
    return min(1.0, max(float(np.maximum(a - factor * b, 0.0).sum()) for a, b in ((p, q), (q, p))))


def larger_profile(events: Sequence[Event], epsilon: float) -> float:
    """The sum of the events' hockey-stick divergences at epsilon (nats), the larger direction."""
    at = np.array([epsilon])
    return max(math.fsum(math.exp(e.log_profile(at, direction=way)[0]) for e in events) for way in Direction)


def twice(shift: float, epsilon: float) -> float:
    """The exact delta of two independent Laplace pairs, each of `shift` scales, at epsilon >= 0 (nats).

    One pair has H(t) = 1 - e^{(t - a) / 2} on [-a, a]. The other pair's loss L is a with probability 1/2, -a with
    e^{-a} / 2, and has density e^{(l - a) / 2} / 4 between. The mean of H(epsilon - L) is 1 - e^{-u} (1 + u / 2),
    u = a - epsilon / 2.
    """
    left = shift - 0.5 * epsilon
    return -math.expm1(-left) - 0.5 * left * math.exp(-left) if left > 0.0 else 0.0


_Laplace = tuple[float, float]
"""Centre and scale."""


def _log_density(x: float, law: _Laplace) -> float:
    return -abs(x - law[0]) / law[1] - math.log(2.0 * law[1])


def _below(x: float, law: _Laplace) -> float:
    """Mass below x."""
    gap = (x - law[0]) / law[1]
    return 0.5 * math.exp(gap) if gap <= 0.0 else 1.0 - 0.5 * math.exp(-gap)


def _above(x: float, law: _Laplace) -> float:
    """Mass above x."""
    return _below(-x, (-law[0], law[1]))


def _between(low: float, high: float, law: _Laplace) -> float:
    """Mass of an interval on one side of the centre."""
    if low >= law[0]:
        return _between(-high, -low, (-law[0], law[1]))
    return 0.5 * (math.exp((high - law[0]) / law[1]) - math.exp((low - law[0]) / law[1]))


def _hockey_stick(p: _Laplace, q: _Laplace, epsilon: float, ends: tuple[float, float]) -> float:
    """Integral of (p - e^epsilon q)_+: log p / q is linear between the centres, so each piece has one root at most."""
    factor, (low, high) = math.exp(epsilon), ends
    total = max(_below(low, p) - factor * _below(low, q), 0.0) if low > -math.inf else 0.0
    if high < math.inf:
        total += max(_above(high, p) - factor * _above(high, q), 0.0)
    for start, stop in itertools.pairwise(sorted({low, high, *(x for x in (p[0], q[0]) if low < x < high)})):
        inside = stop - 1.0 if start == -math.inf else start + 1.0 if stop == math.inf else 0.5 * (start + stop)
        gap = _log_density(inside, p) - _log_density(inside, q) - epsilon
        slope = math.copysign(1.0, inside - q[0]) / q[1] - math.copysign(1.0, inside - p[0]) / p[1]
        begin, end = _positive(start, stop, inside, gap, slope)
        if begin < end:
            total += max(_between(begin, end, p) - factor * _between(begin, end, q), 0.0)
    return total


def _positive(start: float, stop: float, inside: float, gap: float, slope: float) -> tuple[float, float]:
    """Where in (start, stop) a line is positive that has the value `gap` at `inside`; empty if the ends are equal."""
    if slope == 0.0:
        return (start, stop) if gap > 0.0 else (start, start)
    root = min(max(inside - gap / slope, start), stop)
    return (root, stop) if slope > 0.0 else (start, root)


ONE_GRADIENT = without_last([-1.0])
"""One gradient of -1 in the leaf; and none."""


def leaf_value(gradients: FloatArray, regularization: float) -> float:
    """-S / (n + lambda); 0 for no rows."""
    return -float(gradients.sum()) / (gradients.size + regularization) if gradients.size else 0.0


def score(gradients: FloatArray, regularization: float) -> float:
    """S^2 / (n + lambda) of one side; 0 for no rows."""
    total = float(gradients.sum())
    return total * total / (gradients.size + regularization) if gradients.size else 0.0


def gain(gradients: FloatArray, right: FloatArray, regularization: float) -> float:
    """G(I_L, I_R), where `right` is 1 for the rows of the right side."""
    side = right > 0.0
    return score(gradients[~side], regularization) + score(gradients[side], regularization)


def softmax(exponents: FloatArray) -> FloatArray:
    """Returns the probabilities of an exponential mechanism."""
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())
