"""Integer noise, private selections and stated guarantees, enumerated.

* Noise on one integer is enumerated; a vector with Skellam noise has a bound.
* The best of a random number of runs is known by a bound of its Renyi divergences.
* A stated (epsilon, delta) or table has the worst pair that keeps it; a Renyi curve stands for itself.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import (
    Number,
    Points,
    curve_divergence,
    integer_gaussian_excess,
    laplace_integers,
    least_between,
    mp,
    mpf,
    normal_integers,
    skellam_bend,
    skellam_integers,
    table_atoms,
)
from ledgerwood.verification.ledgers.pairs.continuous import Node, Pure, excess_of, moment_term, positive_part_of


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Node):
    """Integer noise of probability proportional to e^{-|z| / scale}, and a shift by `sensitivity`."""

    scale: Number
    sensitivity: int

    def positive_part(self, slope: Number, constant: Number) -> Number:
        return positive_part_of(laplace_integers(self.scale, self.sensitivity), slope, constant)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        return excess_of(laplace_integers(self.scale, self.sensitivity), slope, constant, p)

    def pure_epsilon(self) -> Number:
        return self.sensitivity / self.scale


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Node):
    """Integer noise of probability proportional to e^{-z^2 / (2 scale^2)}, and a shift by `sensitivity`."""

    scale: Number
    sensitivity: int

    def positive_part(self, slope: Number, constant: Number) -> Number:
        return positive_part_of(normal_integers(self.scale, self.sensitivity, mpf(2)), slope, constant)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if constant == 0:
            return integer_gaussian_excess(self.scale, self.sensitivity, p)
        return excess_of(normal_integers(self.scale, self.sensitivity, max(abs(p), 2)), slope, constant, p)

    def pure_epsilon(self) -> Number:
        return mp.inf


@final
@dataclass(frozen=True, slots=True)
class Skellam(Node):
    """Skellam noise of this variance, and a shift by `sensitivity`."""

    variance: Number
    sensitivity: int

    def positive_part(self, slope: Number, constant: Number) -> Number:
        atoms = skellam_integers(self.variance, self.sensitivity, mpf(2), 800)
        if atoms is None:
            raise ValueError(f"Skellam noise of variance {self.variance} is too wide to be enumerated")
        return sum((max(slope * with_unit + constant * without, 0) for with_unit, without in atoms), mpf(0))

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        atoms = skellam_integers(self.variance, self.sensitivity, p, 100)
        if atoms is not None:
            levels = [(mp.log(with_unit / without), without) for with_unit, without in atoms]
            return excess_of(levels, slope, constant, p)
        if constant != 0:
            raise ValueError(f"a sample with Skellam noise of variance {self.variance} is too wide to be enumerated")
        return SkellamVector(self.variance, mpf(self.sensitivity)).excess(slope, constant, p)

    def pure_epsilon(self) -> Number:
        return mp.inf


@final
@dataclass(frozen=True, slots=True)
class SkellamVector(Node):
    """Whole numbers with Skellam noise of this variance each, which move by `sensitivity` in L2: a bound."""

    variance: Number
    sensitivity: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a vector with Skellam noise has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if constant != 0:
            raise ValueError("a sample of a vector with Skellam noise has no Renyi divergence here")
        power = p - 1 if p > 1 else -p
        below = mp.floor(power)

        def at(n: Number) -> Number:  # n D at the whole order n + 1
            return n * (n + 1) / 2 * self.sensitivity**2 * skellam_bend(self.variance)

        return mp.expm1(at(below) + (power - below) * (at(below + 1) - at(below)))

    def pure_epsilon(self) -> Number:
        return mp.inf


@final
@dataclass(frozen=True, slots=True)
class SelectionNode(Node):
    """The best of K runs, K of a truncated negative binomial distribution."""

    inner: Node
    shape: Number
    stopping_rate: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a selection has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        a = _order(constant, p)
        log_runs = -mp.log(self.stopping_rate)
        rank = _least(lambda u: (1 - u) * _divergence(self.inner, 1 / u) + u * log_runs)
        rank = min(rank, self.inner.pure_epsilon())
        bound = _divergence(self.inner, a) + (1 + self.shape) * rank + mp.log(self.mean_runs()) / (a - 1)
        return min(mp.expm1((a - 1) * bound), _pure_excess(self, p))

    def mean_runs(self) -> Number:
        """The expected number of runs."""
        if self.shape == 0:
            return (1 / self.stopping_rate - 1) / -mp.log(self.stopping_rate)
        return self.shape * (1 / self.stopping_rate - 1) / (1 - self.stopping_rate**self.shape)

    def pure_epsilon(self) -> Number:
        return (2 + self.shape) * self.inner.pure_epsilon()


@final
@dataclass(frozen=True, slots=True)
class SelectedPoisson(Node):
    """The best of K runs, K of a Poisson distribution; "no run" where K is 0."""

    inner: Node
    mean: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a selection has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        a = _order(constant, p)
        shift = (a - 1) * (_divergence(self.inner, a) + self.mean * self._delta(a / (a - 1)))
        moment = mp.exp(-self.mean) + self.mean * mp.exp(shift)
        return min(moment - 1, _pure_excess(self, p))

    def pure_epsilon(self) -> Number:
        inner = self.inner.pure_epsilon()
        return inner if mp.isinf(inner) else inner + self.mean * mp.tanh(inner / 2)

    def _delta(self, x: Number) -> Number:
        """The hockey-stick divergence of one run at e^epsilon = x: by its profile, or else by its divergences."""
        try:
            return max(self.inner.positive_part(mpf(1), -x), self.inner.positive_part(-x, mpf(1)))
        except ValueError:
            pure, epsilon = self.inner.pure_epsilon(), mp.log(x)
            cap = mpf(1) if mp.isinf(pure) else max(1 - mp.exp(epsilon - pure), 0) / (1 + mp.exp(-pure))

        def log_delta(u: Number) -> Number:
            b = 1 / u
            return (b - 1) * (_divergence(self.inner, b) - epsilon + mp.log(1 - u)) - mp.log(b)

        return min(mp.exp(min(_least(log_delta), 0)), cap)


def _order(constant: Number, p: Number) -> Number:
    if constant != 0:
        raise ValueError("a sample of a selection has no Renyi divergence here")
    return p if p > 1 else 1 - p


def _pure_excess(node: Node, p: Number) -> Number:
    """At most that of the randomised response of its pure epsilon: near order 1 the bounds above are far from it."""
    pure = node.pure_epsilon()
    return pure if mp.isinf(pure) else Pure(pure).excess(mpf(1), mpf(0), p)


def _divergence(node: Node, order: Number) -> Number:
    """The larger direction of the Renyi divergence, in nats."""
    excess = max(node.excess(mpf(1), mpf(0), p) for p in (order, 1 - order))
    return mp.log1p(excess) / (order - 1)


def _least(function: Callable[[Number], Number]) -> Number:
    """The least value over 0 < u < 1 of a function with one minimum, by golden sections in log(1/u - 1)."""
    # Orders from 1.0001 to three million.
    return least_between(lambda z: function(1 / (1 + mp.exp(z))), mpf(-9), mpf(15), 32)


@final
@dataclass(frozen=True, slots=True)
class Approximate(Node):
    """All is revealed with probability delta, else a randomised response."""

    epsilon: Number
    delta: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        kept = Pure(self.epsilon).positive_part(slope, constant)
        return self.delta * (max(slope, 0) + max(constant, 0)) + (1 - self.delta) * kept

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        return mp.inf

    def pure_epsilon(self) -> Number:
        return mp.inf


@functools.lru_cache(maxsize=16)
def table_masses(points: Points) -> tuple[Number, list[tuple[Number, Number]], Number]:
    """Mass at an infinite ratio; (epsilon > 0, Q there, which is P at -epsilon); and the mass of both at ratio 1."""
    lost = min(delta for _, delta in points)  # as much of Q where P has nothing
    both = [(end, mass) for end, mass in table_atoms(points) if end > 0 and mass > 0]
    return lost, both, 1 - lost - sum((mass * (1 + mp.exp(end)) for end, mass in both), mpf(0))


@final
@dataclass(frozen=True, slots=True)
class StatedTable(Node):
    """Points (epsilon, delta) of a profile, as given."""

    points: tuple[tuple[Number, Number], ...]

    def positive_part(self, slope: Number, constant: Number) -> Number:
        lost, both, rest = table_masses(self.points)
        value = lost * (max(slope, 0) + max(constant, 0)) + rest * max(slope + constant, 0)
        for end, mass in both:
            up = mp.exp(end)
            value += mass * (max(slope * up + constant, 0) + up * max(slope / up + constant, 0))
        return value

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if mp.isinf(self.pure_epsilon()):
            return mp.inf
        term = moment_term(slope, constant, p)
        atoms = table_atoms(self.points)
        return sum((mass * (term(end) + mp.exp(end) * term(-end)) for end, mass in atoms), mpf(0))

    def pure_epsilon(self) -> Number:
        return min((epsilon for epsilon, delta in self.points if delta == 0), default=mp.inf)


@final
@dataclass(frozen=True, slots=True)
class StatedCurve(Node):
    """Renyi divergences alone: rho times the order, or points (order, divergence) as given."""

    rho: Number | None
    points: tuple[tuple[Number, Number], ...]

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a mechanism that is known by its Renyi divergences has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if constant != 0:
            raise ValueError("a sample of a mechanism that is known by its Renyi divergences has no known divergence")
        order = p if p > 1 else 1 - p
        return mp.expm1((order - 1) * curve_divergence(self.rho, self.points, order))

    def pure_epsilon(self) -> Number:
        return mp.inf
