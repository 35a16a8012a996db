"""What the verifier asks of a pair of distributions; pairs with a density, and pure pairs.

With P the distribution with the unit, Q without it and r = dP/dQ:

* the profile is E_Q[(r - t)+] (remove) and E_Q[(1 - t r)+] (add), t = e^epsilon, both affine in r, so that
  sampling (r becomes 1 - q + q r) stays affine and each leaf has a closed form;
* the Renyi divergence is log(1 + E_Q[s^p - 1 - p (s - 1)]) / (order - 1), p = order (remove) or 1 - order (add), with
  s affine in r.

Pairs with a density are those of Gaussian, Laplace and truncated Laplace noise. Pure pairs are those of randomised
response, of a bounded range and of the staircase.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf, over_normal, over_unit, worst_shift


class Node(abc.ABC):
    """A pair of distributions, or what combines such pairs. Frozen; equal by value."""

    __slots__ = ()

    @abc.abstractmethod
    def positive_part(self, slope: Number, constant: Number) -> Number:
        """E_Q[(slope r + constant)+], of either sign of the slope.

        Raises:
            ValueError: no exact profile is known here.
        """

    @abc.abstractmethod
    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        """E_Q[s^p - 1 - p (s - 1)] with s = slope r + constant, slope + constant = 1; p > 1 or p < 0.

        Raises:
            ValueError: no such moment is known here, or a quadrature does not settle.
        """

    @abc.abstractmethod
    def pure_epsilon(self) -> Number:
        """The least epsilon of pure differential privacy, in nats, or infinity."""

    def mu_squared(self) -> Number | None:
        """mu squared of the Gaussian pair that the node is; None for anything else."""
        return None

    def unsampled(self) -> "Node":
        """The node with every unit in every sample."""
        return self


def moment_term(slope: Number, constant: Number, p: Number) -> Callable[[Number], Number]:
    """s^p - 1 - p (s - 1) as a function of log r."""

    def term(log_ratio: Number) -> Number:
        rise = slope * mp.expm1(log_ratio)
        log_s = log_ratio if constant == 0 else mp.log1p(rise)  # 1 + rise may be less than the digits hold
        return mp.expm1(p * log_s) - p * rise

    return term


def positive_part_of(atoms: list[tuple[Number, Number]], slope: Number, constant: Number) -> Number:
    """E_Q[(slope r + constant)+] of a discrete pair: `atoms` are (log r, Q), no infinite log ratio among them."""
    return sum((weight * max(slope * mp.exp(level) + constant, 0) for level, weight in atoms), mpf(0))


def excess_of(atoms: list[tuple[Number, Number]], slope: Number, constant: Number, p: Number) -> Number:
    """E_Q[s^p - 1 - p (s - 1)] of a discrete pair."""
    term = moment_term(slope, constant, p)
    return sum((weight * term(level) for level, weight in atoms), mpf(0))


@final
@dataclass(frozen=True, slots=True)
class Gaussian(Node):
    """N(mu, 1) against N(0, 1)."""

    square: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        if slope == 0 or (constant >= 0 and slope > 0):
            return max(slope + constant, 0)
        if slope < 0 and constant <= 0:
            return mpf(0)
        mu = mp.sqrt(self.square)
        threshold = mp.log(-constant / slope) / mu + mu / 2
        if slope < 0:  # the outputs below the threshold, by their own masses: a difference from 1 would lose digits
            low = threshold / mp.sqrt(2)
            return (slope * mp.erfc(mu / mp.sqrt(2) - low) + constant * mp.erfc(-low)) / 2
        return (slope * mp.erfc((threshold - mu) / mp.sqrt(2)) + constant * mp.erfc(threshold / mp.sqrt(2))) / 2

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if constant == 0:
            return mp.expm1(p * (p - 1) * self.square / 2)
        return over_normal(moment_term(slope, constant, p), mp.sqrt(self.square), float(slope), float(p))

    def pure_epsilon(self) -> Number:
        return mp.inf

    def mu_squared(self) -> Number:
        return self.square


@final
@dataclass(frozen=True, slots=True)
class Mixture(Node):
    """N(0, 1), moved by each shift with its probability, against N(0, 1); shifts ascend.

    Its losses are known from both sides (bounds/leaves.py), and no moment of it exactly.
    """

    shifts: tuple[tuple[Number, Number], ...]

    def positive_part(self, slope: Number, constant: Number) -> Number:
        if slope == 0 or (constant >= 0 and slope > 0):
            return max(slope + constant, 0)
        if slope < 0 and constant <= 0:
            return mpf(0)
        target, rest = mp.log(-constant / slope), self.rest()
        if rest > 0 and target <= mp.log(rest):
            return max(slope + constant, 0) if slope > 0 else mpf(0)
        low, high = mpf(-200), (abs(target) + 300) / self.shifts[0][0] + self.shifts[-1][0]
        for _ in range(mp.prec):
            middle = (low + high) / 2
            low, high = (middle, high) if self.log_ratio(middle) < target else (low, middle)
        sign = 1 if slope > 0 else -1
        without = mp.erfc(sign * low / mp.sqrt(2)) / 2
        moved = sum((p * mp.erfc(sign * (low - mu) / mp.sqrt(2)) / 2 for mu, p in self.shifts), mpf(0))
        return slope * (rest * without + moved) + constant * without

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        raise ValueError("a mixture of Gaussians has no exact Renyi divergence here")

    def pure_epsilon(self) -> Number:
        return mp.inf

    def rest(self) -> Number:
        """The probability that nothing moves."""
        return 1 - sum((p for _, p in self.shifts), mpf(0))

    def log_ratio(self, output: Number) -> Number:
        """log dP/dQ at an output."""
        return mp.log(self.rest() + sum((p * mp.exp(mu * (output - mu / 2)) for mu, p in self.shifts), mpf(0)))


@final
@dataclass(frozen=True, slots=True)
class Laplace(Node):
    """Laplace noise of this scale per unit of sensitivity."""

    scale: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        if slope < 0:  # P and Q exchanged are the same pair, mirrored
            return self.positive_part(constant, slope) if constant > 0 else mpf(0)
        if slope == 0 or constant >= 0:
            return max(slope + constant, 0)
        with_unit, without = self._above(mp.log(-constant / slope))
        return slope * with_unit + constant * without

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        b = self.scale
        if constant == 0 and p != mpf(1) / 2:
            above, below = (p - 1) / b, p / b  # Mironov 2017, Proposition 6
            return (p * mp.expm1(above) + (p - 1) * mp.expm1(-below)) / (2 * p - 1)
        term = moment_term(slope, constant, p)
        ends = term(-1 / b) / 2 + mp.exp(-1 / b) * term(1 / b) / 2
        return ends + over_unit(lambda x: mp.exp(-x / b) / (2 * b) * term((2 * x - 1) / b))

    def pure_epsilon(self) -> Number:
        return 1 / self.scale

    def _above(self, loss: Number) -> tuple[Number, Number]:
        """P and Q of the outputs whose log likelihood ratio is above `loss`."""
        limit = 1 / self.scale
        if loss >= limit:
            return mpf(0), mpf(0)
        if loss < -limit:
            return mpf(1), mpf(1)
        x = (self.scale * loss + 1) / 2
        return 1 - mp.exp(-(1 - x) / self.scale) / 2, mp.exp(-x / self.scale) / 2


@final
@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Node):
    """Laplace noise of this scale, cut off at -bound and bound, and a shift by 1."""

    scale: Number
    bound: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        if slope < 0:  # P and Q exchanged are the same pair, mirrored
            return self.positive_part(constant, slope) if constant > 0 else mpf(0)
        if slope == 0 or constant >= 0:
            return max(slope + constant, 0)
        x = (self.scale * mp.log(-constant / slope) + 1) / 2  # on 0 .. 1 the ratio rises from e^{-1/b} to e^{1/b}
        if x <= 0:
            x = 1 - self.bound  # all outputs that P reaches
        elif x > 1 or x > self.bound:
            x = self.bound  # those that Q does not reach
        x = max(x, 1 - self.bound)
        return slope * self._above(x - 1) + constant * self._above(x)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        return mp.inf

    def pure_epsilon(self) -> Number:
        return mp.inf

    def _above(self, x: Number) -> Number:
        """The noise's probability to be above x, to all digits: where it is small, no difference from 1."""
        if x <= -self.bound or x >= self.bound:
            return mpf(1) if x < 0 else mpf(0)
        if x < 0:
            return 1 - self._above(-x)
        kept = -2 * mp.expm1(-self.bound / self.scale)
        return -mp.exp(-x / self.scale) * mp.expm1((x - self.bound) / self.scale) / kept


@final
@dataclass(frozen=True, slots=True)
class Pure(Node):
    """The randomised-response pair among this many categories; the two that move decide."""

    epsilon: Number
    categories: int = 2

    def positive_part(self, slope: Number, constant: Number) -> Number:
        up = mp.exp(self.epsilon)
        heavy, light = up / (1 + up), 1 / (1 + up)
        other = (up + 1) / (up + self.categories - 1)  # of the mass, on the two categories that move
        moved = light * max(slope * up + constant, 0) + heavy * max(slope / up + constant, 0)
        return other * moved + (1 - other) * max(slope + constant, 0)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        term, up = moment_term(slope, constant, p), mp.exp(self.epsilon)
        return (term(self.epsilon) + up * term(-self.epsilon)) / (up + self.categories - 1)

    def pure_epsilon(self) -> Number:
        return self.epsilon


@final
@dataclass(frozen=True, slots=True)
class Range(Node):
    """The worst of all pairs of two outcomes whose log likelihood ratios are t and t - epsilon."""

    epsilon: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        """At e^s the worst pair is that of t = (s + epsilon) / 2: (1 - e^{(s - epsilon)/2})^2 / (1 - e^{-epsilon})."""
        if slope < 0:  # both directions of the largest profile are one
            return self.positive_part(constant, slope) if constant > 0 else mpf(0)
        if slope == 0 or constant >= 0:
            return max(slope + constant, 0)
        s = mp.log(-constant / slope)
        if s >= self.epsilon:
            return mpf(0)
        if s <= -self.epsilon:
            return slope + constant
        return slope * mp.expm1((s - self.epsilon) / 2) ** 2 / -mp.expm1(-self.epsilon)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        term = moment_term(slope, constant, p)
        return worst_shift(
            self.epsilon,
            lambda up, down, heavy, light: light * term(mp.log(up)) + heavy * term(mp.log(down)),
        )

    def pure_epsilon(self) -> Number:
        return self.epsilon


@final
@dataclass(frozen=True, slots=True)
class Staircase(Node):
    """A density that falls by e^-epsilon at w, 1 + w, ... from 0, and a shift by 1: ratios e^-epsilon, 1, e^epsilon."""

    epsilon: Number
    width: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        return positive_part_of(self.atoms(), slope, constant)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        return excess_of(self.atoms(), slope, constant, p)

    def pure_epsilon(self) -> Number:
        return self.epsilon

    def atoms(self) -> list[tuple[Number, Number]]:
        """(log likelihood ratio, Q) of its three kinds of output."""
        fall = mp.exp(-self.epsilon)
        height = (1 - fall) / (2 * (self.width + fall * (1 - self.width)))
        # all of x >= 1, and the part of (0, 1) on which 1 - x is in the innermost step and x is not
        up = fall / 2 + min(self.width, 1 - self.width) * height * fall
        return [(-self.epsilon, up / fall), (mpf(0), 1 - up - up / fall), (self.epsilon, up)]
