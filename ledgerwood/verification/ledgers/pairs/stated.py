"""Guarantees as they were stated: the worst pair that keeps an (epsilon, delta) or a table; Renyi curves."""

import functools
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, Points, curve_divergence, mp, mpf, table_atoms
from ledgerwood.verification.ledgers.pairs.node import Node, moment_term
from ledgerwood.verification.ledgers.pairs.pure import Pure


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
            raise ValueError("a sample of a mechanism that is known by its Renyi divergences has none here")
        order = p if p > 1 else 1 - p
        return mp.expm1((order - 1) * curve_divergence(self.rho, self.points, order))

    def pure_epsilon(self) -> Number:
        return mp.inf
