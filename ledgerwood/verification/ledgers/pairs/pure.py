"""Pure differential privacy: the randomised-response pair, the pairs of a bounded range, the staircase."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf, worst_shift
from ledgerwood.verification.ledgers.pairs.node import Node, excess_of, moment_term, positive_part_of


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
