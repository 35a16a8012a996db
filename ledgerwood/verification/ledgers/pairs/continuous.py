"""Pairs with a density: Gaussian, Laplace and truncated Laplace noise."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.integrals import over_normal, over_unit
from ledgerwood.verification.ledgers.pairs.node import Node, moment_term


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
