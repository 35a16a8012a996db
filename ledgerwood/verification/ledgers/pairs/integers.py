"""Integer noise on one integer, enumerated; and the bound for a vector with Skellam noise."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import (
    Number,
    integer_gaussian_excess,
    laplace_integers,
    mp,
    mpf,
    normal_integers,
    skellam_bend,
    skellam_integers,
)
from ledgerwood.verification.ledgers.pairs.node import Node, excess_of, positive_part_of


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
