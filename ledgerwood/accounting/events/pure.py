"""Pure differential privacy: the randomised-response pair, which dominates every mechanism of the same epsilon.

P = (e^eps, 1) / (1 + e^eps), Q = (1, e^eps) / (1 + e^eps) (Kairouz, Oh and Viswanath 2015, Theorem 2).
docs/explanation/events.md#pure.
"""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting import quadrature, renyi
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.events.base import Event, FloatArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureEvent(Event):
    """Any mechanism that is epsilon-differentially private, priced by its worst case.

    Args:
        epsilon: in [1e-100, 1e100], in nats.
        adjacency: the relation under which epsilon holds.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        epsilon = _validate.positive("epsilon", self.epsilon, "nats")
        if not 1e-100 <= epsilon <= 1e100:
            raise _validate.fail("epsilon", self.epsilon, "in [1e-100, 1e100]", "nats")
        object.__setattr__(self, "epsilon", epsilon)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """H(t) = (e^eps - e^t)+ / (1 + e^eps), both directions."""
        gap = np.minimum(renyi.check_epsilons(epsilons) - self.epsilon, 0.0)
        return renyi.raise_log(renyi.log1mexp(gap) - np.log1p(np.exp(-self.epsilon)), 8)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.epsilon)

    def pure_epsilon(self) -> float:
        return self.epsilon

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        if sampling_rate == 1.0:
            # E_Q[r^p] - 1 = (e^{d eps} - 1) (1 - e^{-(1 + d) eps}) / (1 + e^{-eps}), d = p - 1 or -p:
            # a product of positives.
            d = np.where(p > 1.0, p - 1.0, -p)
            eps = self.epsilon
            grown, shrunk = renyi.log_expm1(d * eps), renyi.log1mexp(-(1.0 + d) * eps)
            return np.asarray(grown + shrunk - math.log1p(math.exp(-eps)))
        return quadrature.two_point_log_excess(p, epsilon=self.epsilon, sampling_rate=sampling_rate)
