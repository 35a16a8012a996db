"""The staircase mechanism on one number. Geng and Viswanath 2014; docs/explanation/events.md#staircase-noise."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import epsilon_in_range, moved_log_excess, moved_log_profile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StaircaseEvent(Event):
    """One number plus noise whose density falls by e^-epsilon at w, 1 + w, 2 + w, ... sensitivities from 0.

    The worst change is the whole sensitivity, at every epsilon: docs/explanation/events.md#staircase-noise. It does not
    apply to vectors.

    Args:
        epsilon: the pure epsilon, log of each fall of the density, in [1e-100, 1e100], in nats.
        inner_width: w, half the width of the innermost step over the sensitivity under `adjacency`, in [0, 1] (the
            paper's gamma; the expected size of the noise is least at 1 / (1 + e^{epsilon / 2})).
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    inner_width: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_in_range(self.epsilon))
        width = _validate.non_negative("inner_width", self.inner_width, "sensitivities")
        if width > 1.0:
            raise _validate.fail("inner_width", self.inner_width, "in [0, 1]", "sensitivities")
        object.__setattr__(self, "inner_width", width)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """H(t) = share (1 - e^{t - eps})+, both directions."""
        return moved_log_profile(epsilons, epsilon=self.epsilon, log_share=self.log_share())

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.epsilon)

    def pure_epsilon(self) -> float:
        return self.epsilon

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return moved_log_excess(powers, epsilon=self.epsilon, log_share=self.log_share(), sampling_rate=sampling_rate)

    def log_share(self) -> float:
        """log of Q where the log ratio is -epsilon."""
        w, fall = self.inner_width, math.exp(-self.epsilon)
        if w == 0.0:
            return -math.log(2.0)
        rest = (2.0 * w - 1.0) + 2.0 * (1.0 - w) * fall if w >= 0.5 else fall / (2.0 * w + (1.0 - 2.0 * w) * fall)
        return -math.log1p(rest)
