"""The Laplace mechanism. Pair: Q = Laplace(0, b), P = Laplace(1, b), b = noise_multiplier.

Renyi in closed form (Mironov 2017, Proposition 6), written without cancellation; profile 1 - e^{(eps - 1/b)/2}.
For a vector with L1 sensitivity 1 this pair dominates the product of its coordinates.
docs/explanation/events.md#laplace.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.noise.gaussian import noise_multiplier_in_range


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent(Event):
    """A statistic with Laplace noise.

    Args:
        noise_multiplier: scale b / L1 sensitivity under `adjacency`, in [1e-100, 1e100].
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    noise_multiplier: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "noise_multiplier", noise_multiplier_in_range("noise_multiplier", self.noise_multiplier)
        )
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        gap = np.minimum(renyi.check_epsilons(epsilons) - self.pure_epsilon(), 0.0)
        return renyi.raise_log(renyi.log1mexp(0.5 * gap), 8)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        shift = 1.0 / self.noise_multiplier
        exact = Fraction(shift) * Fraction(self.noise_multiplier) >= 1  # rounded up unless it already is no less
        return shift if exact else math.nextafter(shift, math.inf)

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        shift = 1.0 / self.noise_multiplier
        if sampling_rate == 1.0:
            # E_Q[r^a] - 1 = [a f((a-1) shift) + (a-1) f(-a shift)] / (2a-1), f(y) = e^y - 1 - y:
            # the linear terms cancel exactly.
            d = np.where(p > 1.0, p - 1.0, -p)
            a = d + 1.0
            grown = np.log(a) + quadrature.log_exp_excess(d * shift)
            shrunk = np.log(d) + quadrature.log_exp_excess(-a * shift)
            return np.logaddexp(grown, shrunk) - np.log(a + d)
        return quadrature.laplace_log_excess(p, shift=shift, sampling_rate=sampling_rate)
