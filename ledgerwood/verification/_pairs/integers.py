"""Integer noise on one integer, enumerated."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification._atoms import Number, integer_gaussian_excess, laplace_integers, mp, mpf, normal_integers
from ledgerwood.verification._pairs.node import Node, excess_of, positive_part_of


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
