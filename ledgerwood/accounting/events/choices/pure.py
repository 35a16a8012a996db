"""Pure differential privacy: the randomised-response pair, which dominates every mechanism of the same epsilon.

P = (e^eps, 1) / (1 + e^eps), Q = (1, e^eps) / (1 + e^eps) (Kairouz, Oh and Viswanath 2015, Theorem 2); and randomised
response itself, among k categories. docs/explanation/events.md#pure and #randomised-response.
"""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.errors import UnsupportedEvent


def epsilon_in_range(value: object) -> float:
    """An epsilon in [1e-100, 1e100], in nats."""
    epsilon = _validate.positive("epsilon", value, "nats")
    if not 1e-100 <= epsilon <= 1e100:
        raise _validate.fail("epsilon", value, "in [1e-100, 1e100]", "nats")
    return epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureEvent(Event):
    """Any mechanism that is epsilon-differentially private, accounted by its worst case.

    Args:
        epsilon: in [1e-100, 1e100], in nats.
        adjacency: the relation under which epsilon holds.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_in_range(self.epsilon))
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseEvent(Event):
    """One answer per row, among k categories: the true one with odds e^epsilon to 1 against each other one.

    Replacing a row exchanges the odds of two categories, and the k - 2 others keep theirs. So less is learned than from
    the worst mechanism of the same epsilon. Source: Warner 1965; Kairouz, Bonawitz and Ramage 2016,
    section 3. docs/explanation/events.md#randomised-response.

    Args:
        epsilon: in [1e-100, 1e100], in nats.
        categories: k, in [2, 2^53]; public.
        adjacency: replace-one.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: add-remove or zero-out.
    """

    epsilon: float
    categories: int
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_in_range(self.epsilon))
        k = _validate.count("categories", self.categories, "categories", minimum=2)
        if k > 2**53:
            raise _validate.fail("categories", self.categories, "at most 2^53", "categories")
        object.__setattr__(self, "categories", k)
        require_adjacency(self.adjacency)
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"randomised response under {self.adjacency.value} has no privacy bound: each row gives an answer, "
                "so the number of answers shows the number of rows, and a nulled row has no category to answer with; "
                "use replace-one, or PureEvent if a missing row's answer is drawn so that epsilon holds"
            )

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """H(t) = (e^eps - e^t)+ / (e^eps + k - 1), both directions."""
        return moved_log_profile(epsilons, epsilon=self.epsilon, log_share=-self._log_total())

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.epsilon)

    def pure_epsilon(self) -> float:
        return self.epsilon

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """The moments of `PureEvent` with e^eps + k - 1 for e^eps + 1: categories that do not move have no excess."""
        return moved_log_excess(powers, epsilon=self.epsilon, log_share=-self._log_total(), sampling_rate=sampling_rate)

    def _log_total(self) -> float:
        """log(1 + (k - 1) e^{-eps})."""
        return math.log1p((self.categories - 1) * math.exp(-self.epsilon))


def moved_log_profile(epsilons: ArrayLike, *, epsilon: float, log_share: float) -> FloatArray:
    """log H of a pair with log ratios -epsilon, 0 and epsilon only, Q(-epsilon) = share: share (1 - e^{t - eps})+."""
    gap = np.minimum(renyi.check_epsilons(epsilons) - epsilon, 0.0)
    return renyi.raise_log(renyi.log1mexp(gap) + log_share, 8)


def moved_log_excess(powers: ArrayLike, *, epsilon: float, log_share: float, sampling_rate: float) -> FloatArray:
    """log E_Q[s^p - 1 - p (s - 1)] of such a pair; the ratio 1 has no excess, sampled or not. Shape (k,)."""
    p = renyi.check_powers(powers)
    if sampling_rate == 1.0:
        d = np.where(p > 1.0, p - 1.0, -p)
        return np.asarray(renyi.log_expm1(d * epsilon) + renyi.log1mexp(-(1.0 + d) * epsilon) + log_share)
    return quadrature.discrete_log_excess(
        p,
        log_weight=np.array([log_share, log_share - epsilon]),
        log_ratio=np.array([-epsilon, epsilon]),
        sampling_rate=sampling_rate,
    )
