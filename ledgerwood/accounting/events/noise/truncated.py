"""Laplace noise that is cut off. Geng, Ding, Guo and Kumar 2020; docs/explanation/events.md#truncated-laplace."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.noise.gaussian import noise_multiplier_in_range


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplaceEvent(Event):
    """One number plus Laplace noise that is drawn again until it lies within `bound` sensitivities of 0.

    Outputs near the ends are possible with the unit only, or without it only. So delta does not reach 0 and every Renyi
    divergence is inf; accounting uses the profile. It does not apply to vectors.
    docs/explanation/events.md#truncated-laplace.

    For bound >= 1 the profile falls to delta at epsilon = 1 / noise_multiplier, and
    bound = noise_multiplier * log1p(expm1(epsilon) / (2 delta)).

    Args:
        noise_multiplier: scale of the Laplace distribution / sensitivity under `adjacency`, in [1e-100, 1e100].
        bound: largest size of the noise / sensitivity under `adjacency`, in (0.5, 1e100]; at .5 all is revealed.
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    noise_multiplier: float
    bound: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "noise_multiplier", noise_multiplier_in_range("noise_multiplier", self.noise_multiplier)
        )
        bound = _validate.positive("bound", self.bound, "sensitivities")
        if not 0.5 < bound <= 1e100:
            raise _validate.fail("bound", self.bound, "in (0.5, 1e100]", "sensitivities")
        object.__setattr__(self, "bound", bound)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """H(t) = [1 - e^{(t - l) / 2} + e^{-A l} (e^t - 1) / 2] / (1 - e^{-A l}), l = 1 / multiplier; then constant."""
        exact = 1 / Fraction(self.noise_multiplier)
        least, most = _directed.float_down(exact), _directed.float_up(exact)
        last = least * min(2.0 * self.bound - 1.0, 1.0) * (1.0 - 4 * renyi.ULP if self.bound < 1.0 else 1.0)
        epsilon = renyi.check_epsilons(epsilons)
        t = np.minimum(epsilon, last)
        inside = np.where(
            (epsilon >= most) & (self.bound >= 1.0), -np.inf, renyi.log1mexp(0.5 * np.minimum(t - most, 0.0))
        )
        # (t - l) - (A - 1) l, raised by the rounding of its parts
        left = (t - least) - (self.bound - 1.0) * least + 4 * renyi.ULP * (1.0 + self.bound) * least
        outside = left + renyi.log1mexp(-t) - math.log(2.0)
        kept = renyi.log1mexp(np.asarray(-self.bound * least * (1.0 - 4 * renyi.ULP)))
        return renyi.raise_log(np.minimum(np.logaddexp(inside, outside) - kept, 0.0), 16)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return np.full(renyi.check_orders(orders).shape, np.inf)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """Inf at every power: P has mass where Q has none."""
        return np.full(renyi.check_powers(powers).shape, np.inf)
