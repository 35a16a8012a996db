"""Real pairs in the place of suprema over pairs, for bounds from below. docs/explanation/pld.md#attained."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses import replaced
from ledgerwood.accounting.costs.losses.lattice import ULP
from ledgerwood.accounting.events.base import Derived, Event, FloatArray
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.sampled.fixed_size import ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled

SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Of a range, above 0: which of its pairs all draws are; each gives a bound."""


@final
@dataclass(frozen=True, slots=True)
class RangePair(Derived):
    """One pair of a bounded range: two outcomes, whose log ratios are `share` of the range, and that less the range.

    Args:
        event: the bounded range, dominating the pair.
        share: in (0, 1).
    """

    event: BoundedRangeEvent
    share: float

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return renyi.raise_log(self._log_profile(renyi.check_epsilons(epsilons), direction), 32.0)

    def log_profile_below(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """A lower bound on log H at each epsilon >= 0, shape (k,)."""
        logs = self._log_profile(epsilons * (1.0 + 4.0 * ULP) + 4.0 * ULP * self.event.epsilon, direction)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(logs), -np.inf, logs - 32.0 * ULP * (1.0 + np.abs(logs)))

    def _log_profile(self, t: FloatArray, direction: Direction) -> FloatArray:
        """log of the costlier outcome's probability, and of (1 - e^(t - its log ratio))+."""
        whole = self.event.epsilon
        top = self.share * whole if direction is Direction.REMOVE else whole - self.share * whole
        log_mass = renyi.log1mexp(np.array(top - whole)) - renyi.log1mexp(np.array(-whole))
        return np.asarray(renyi.log1mexp(np.minimum(t - top, 0.0)) + log_mass)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.event.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        return self.event.pure_epsilon()

    def symmetric(self) -> bool:
        return False


def with_pairs(event: Event, share: float) -> Event:
    """The event with a real pair in the place of each bounded range and each replaced row's sample.

    Itself where it holds none.
    """
    match event:
        case BoundedRangeEvent():
            return RangePair(event, share)
        case ReplaceOneSampled():
            return replaced.pair_of(event)
        case PoissonSampled(inner, sampling_rate=rate):
            return PoissonSampled(with_pairs(inner, share), sampling_rate=rate)
        case Repeated(inner, count=count):
            return Repeated(with_pairs(inner, share), count=count)
        case Composed(parts):
            return Composed(tuple(with_pairs(part, share) for part in parts))
        case Parallel(members, probabilities=weights):
            return Parallel(tuple(with_pairs(member, share) for member in members), probabilities=weights)
    return event
