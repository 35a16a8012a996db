"""Laplace noise, Laplace noise that is cut off, and staircase noise.

* Laplace: the pair is Q = Laplace(0, b), P = Laplace(1, b), b = noise_multiplier. Renyi divergences in closed form
  (Mironov 2017, Proposition 6), written without cancellation; the profile is 1 - e^{(eps - 1/b)/2}. For a vector with
  L1 sensitivity 1 this pair dominates the product of its coordinates. docs/explanation/events.md#laplace.
* Truncated Laplace: Geng, Ding, Guo and Kumar 2020; docs/explanation/events.md#truncated-laplace.
* Staircase, on one number: Geng and Viswanath 2014; docs/explanation/events.md#staircase-noise.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import epsilon_in_range, moved_log_excess, moved_log_profile
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
