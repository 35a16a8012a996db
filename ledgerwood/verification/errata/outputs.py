"""Two shapes that many specimens have: finitely many outputs, and one number with Laplace noise; exact losses."""

import abc
import itertools
import math
from typing import ClassVar, final

import numpy as np

from ledgerwood.verification.errata.base import FloatArray, Specimen


class Finite(Specimen):
    """A specimen with finitely many outputs, numbered from 0: its loss is an enumeration."""

    __slots__ = ()

    @abc.abstractmethod
    def law(self, dataset: FloatArray) -> FloatArray:
        """The probability of every output on `dataset`, shape (k,), k the same for both data sets."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Numbers of outputs, shape (n,)."""
        law = self.law(dataset)
        return rng.choice(law.size, n, p=law).astype(np.float64)

    @final
    def _delta(self, epsilon: float) -> float:
        p, q = (self.law(part) for part in self.pair)
        factor = math.exp(epsilon)
        return min(1.0, max(float(np.maximum(a - factor * b, 0.0).sum()) for a, b in ((p, q), (q, p))))

    @final
    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """By the numbers of the outputs."""
        p, q = (self.law(part)[outputs.astype(np.int64)] for part in self.pair)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(p) - np.log(q))

    @final
    def pure_epsilon(self) -> float:
        """The largest |log ratio| of an output's probabilities, in nats; inf where one of them is 0."""
        p, q = (self.law(part) for part in self.pair)
        possible = (p > 0.0) | (q > 0.0)
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(p[possible]) - np.log(q[possible])).max())


class OneLaplace(Specimen):
    """A specimen whose output is one number with Laplace noise, clipped to `ends`; centre and scale may differ."""

    __slots__ = ()
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    @abc.abstractmethod
    def law(self, dataset: FloatArray) -> tuple[float, float]:
        """Centre and scale on `dataset`."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Outputs, shape (n,)."""
        centre, scale = self.law(dataset)
        return np.asarray(np.clip(centre + rng.laplace(0.0, scale, n), *self.ends))

    @final
    def _delta(self, epsilon: float) -> float:
        p, q = (self.law(part) for part in self.pair)
        return min(1.0, max(_hockey_stick(p, q, epsilon, self.ends), _hockey_stick(q, p, epsilon, self.ends)))

    @final
    def pure_epsilon(self) -> float:
        """The largest |log ratio| of the two laws, in nats: it is taken at a centre, at an end, or inf."""
        p, q = (self.law(part) for part in self.pair)
        low, high = self.ends
        if p[1] != q[1] and math.inf in (-low, high):
            return math.inf
        points = [min(max(x, low), high) for x in (p[0], q[0], low, high) if math.isfinite(x)]
        ratios = [abs(_log_density(x, p) - _log_density(x, q)) for x in points]
        ratios += [abs(math.log(_below(end, p) / _below(end, q))) for end in (low,) if math.isfinite(end)]
        ratios += [
            abs(math.log(_below(-end, _mirror(p)) / _below(-end, _mirror(q)))) for end in (high,) if end < math.inf
        ]
        return max(ratios)


def twice(shift: float, epsilon: float) -> float:
    """The exact delta of two independent Laplace pairs, each of `shift` scales, at epsilon >= 0 (nats).

    One pair has H(t) = 1 - e^{(t - a) / 2} on [-a, a]. The other pair's loss L is a with probability 1/2, -a with
    e^{-a} / 2, and has density e^{(l - a) / 2} / 4 between. The mean of H(epsilon - L) is 1 - e^{-u} (1 + u / 2),
    u = a - epsilon / 2.
    """
    left = shift - 0.5 * epsilon
    return -math.expm1(-left) - 0.5 * left * math.exp(-left) if left > 0.0 else 0.0


def _log_density(x: float, law: tuple[float, float]) -> float:
    return -abs(x - law[0]) / law[1] - math.log(2.0 * law[1])


def _below(x: float, law: tuple[float, float]) -> float:
    """Mass below x."""
    gap = (x - law[0]) / law[1]
    return 0.5 * math.exp(gap) if gap <= 0.0 else 1.0 - 0.5 * math.exp(-gap)


def _mirror(law: tuple[float, float]) -> tuple[float, float]:
    return -law[0], law[1]


def _between(low: float, high: float, law: tuple[float, float]) -> float:
    """Mass of an interval on one side of the centre."""
    if low >= law[0]:
        return _between(-high, -low, _mirror(law))
    return 0.5 * (math.exp((high - law[0]) / law[1]) - math.exp((low - law[0]) / law[1]))


def _hockey_stick(p: tuple[float, float], q: tuple[float, float], epsilon: float, ends: tuple[float, float]) -> float:
    """Integral of (p - e^epsilon q)_+: log p / q is linear between the centres, so each piece has one root at most."""
    factor, (low, high) = math.exp(epsilon), ends
    total = max(_below(low, p) - factor * _below(low, q), 0.0) if low > -math.inf else 0.0
    if high < math.inf:
        total += max(_below(-high, _mirror(p)) - factor * _below(-high, _mirror(q)), 0.0)
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
