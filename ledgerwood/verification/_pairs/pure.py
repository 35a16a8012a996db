"""Pure differential privacy: the randomised-response pair, and the pairs of a bounded range."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification._atoms import Number, mp, worst_shift
from ledgerwood.verification._pairs.node import Node, moment_term


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
        return worst_shift(
            self.epsilon,
            lambda up, down, heavy, light: (
                light * max(slope * up + constant, 0) + heavy * max(slope * down + constant, 0)
            ),
        )

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        term = moment_term(slope, constant, p)
        return worst_shift(
            self.epsilon,
            lambda up, down, heavy, light: light * term(mp.log(up)) + heavy * term(mp.log(down)),
        )

    def pure_epsilon(self) -> Number:
        return self.epsilon
