"""Integer noise on one integer: the discrete Laplace and the discrete Gaussian. docs/explanation/events.md#discrete.

The statistic is one whole number that moves by at most `sensitivity`, a whole number. A vector of them is not supported
here: the worst integer shift of a vector is not the worst of its coordinates. State the vector's own proven bound, a
`ZeroConcentratedEvent` (Canonne, Kamath and Steinke 2020, Theorem 14) or a `PureEvent`.
"""

import functools
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
from ledgerwood.accounting.events.choices.pure import Corners, corners_of, interpolated
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_excess
from ledgerwood.errors import UnsupportedEvent

MOST_ATOMS = 1 << 18
_REACH = 40.0  # e^{-40^2/2} = e^{-800}: the window of a discrete Gaussian, in scales
_THETA_SCALE = 3.0  # from here on the lattice differs from the line by less than e^{-177}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceEvent(Event):
    """One whole number plus integer noise z of probability proportional to e^{-|z| / scale} (the geometric mechanism).

    Source: Ghosh, Roughgarden and Sundararajan 2009; docs/explanation/events.md#discrete-laplace.

    Args:
        scale: in [1e-2, 1e12], in units of the statistic.
        sensitivity: largest change of the statistic under `adjacency`, a whole number in [1, 2^18], in the same units.
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    scale: float
    sensitivity: int
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale))
        object.__setattr__(self, "sensitivity", whole_sensitivity(self.sensitivity))
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        profile = interpolated(laplace_corners(self.scale, self.sensitivity), t)
        return np.where(t >= self.pure_epsilon(), -np.inf, profile)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        return _directed.float_up(Fraction(self.sensitivity) / Fraction(self.scale))

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """A finite sum: the log ratios are (2 z - sensitivity) / scale for z = 0 .. sensitivity."""
        p = renyi.check_powers(powers)
        log_weight, log_ratio = _laplace_atoms(self.scale, self.sensitivity)
        return quadrature.discrete_log_excess(
            p, log_weight=log_weight, log_ratio=log_ratio, sampling_rate=sampling_rate
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianEvent(Event):
    """One whole number plus integer noise z of probability proportional to e^{-z^2 / (2 scale^2)}.

    Source: Canonne, Kamath and Steinke 2020; docs/explanation/events.md#discrete-gaussian.

    Args:
        scale: the distribution's sigma, at least .1, in units of the statistic; 40 scale + sensitivity at most 2^18.
        sensitivity: largest change of the statistic under `adjacency`, a whole number >= 1, in the same units.
        adjacency: the relation under which the sensitivity was taken.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: a window of more than 2^18 integers.
    """

    scale: float
    sensitivity: int
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        scale = _scale(self.scale)
        if scale < 0.1:
            raise _validate.fail("scale", self.scale, ">= 0.1", "units of the statistic")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "sensitivity", whole_sensitivity(self.sensitivity))
        require_adjacency(self.adjacency)
        if _REACH * scale + self.sensitivity > MOST_ATOMS:
            rho = 0.5 * (self.sensitivity / scale) ** 2
            raise UnsupportedEvent(
                f"a discrete Gaussian of scale {scale!r} and sensitivity {self.sensitivity} spreads over more than "
                f"{MOST_ATOMS} integers; state ZeroConcentratedEvent(rho={rho!r}), which it keeps"
            )

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        corners = gaussian_corners(self.scale, self.sensitivity)
        far = t >= corners.log_ratio[-1]
        return np.where(far, self._log_tail(np.where(far, t, np.inf)), interpolated(corners, t))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """a D^2 / (2 s^2) + log(theta(a D) / theta(0)) / (a - 1): the second term is 0 if a D is whole."""
        a = renyi.check_orders(orders)
        line = 0.5 * a * (self.sensitivity / self.scale) ** 2
        if self.scale >= _THETA_SCALE:
            return renyi.raise_by(line, 8)
        shift = a * self.sensitivity
        gain = _log_theta_ratio(shift - np.round(shift), self.scale) / (a - 1.0)
        return renyi.raise_by(np.minimum(line + gain * (1.0 - 32 * renyi.ULP) + 32 * renyi.ULP * line, line), 8)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        unsampled = renyi.to_log_excess(p, lambda a, d: self.renyi(a, direction=d))
        if sampling_rate == 1.0:
            return unsampled
        mu = self.sensitivity / self.scale
        # The law is a trapezoidal rule of step 1 / scale for the normal law.
        fine = np.array([quadrature.lattice_is_exact(mu, float(power), 1.0 / self.scale) for power in p])
        out = np.empty_like(p)
        if fine.any():
            out[fine] = gaussian_log_excess(mu, p[fine], sampling_rate) + 4 * renyi.ULP
        octave = np.where(p > 1.0, 1.0, -1.0) * (1.0 + np.ceil(np.log2(np.maximum(np.abs(p), 2.0))))
        for value in np.unique(octave[~fine]):
            rows = ~fine & (octave == value)
            out[rows] = self._summed(p[rows], sampling_rate)
        return np.minimum(out, unsampled)

    def _summed(self, powers: FloatArray, q: float) -> FloatArray:
        """Moments of powers of one sign, summed over the integers of one window."""
        reach, largest = math.ceil(_REACH * self.scale), max(float(np.abs(powers).max()), 2.0)
        side = math.ceil(largest * self.sensitivity)
        left, right = (reach, reach + side) if powers[0] > 1.0 else (reach + side, reach + 2 * self.sensitivity)
        if left + right > MOST_ATOMS:  # s >= 1 - q
            return np.where(powers < 0.0, renyi.log_expm1(np.maximum(powers * math.log1p(-q), 0.0)), np.inf)
        z = np.arange(-left, right + 1.0)
        log_weight = -0.5 * (z / self.scale) ** 2 - _log_theta(self.scale)
        log_ratio = self.sensitivity * (z - 0.5 * self.sensitivity) / self.scale**2
        moments = quadrature.discrete_log_excess(powers, log_weight=log_weight, log_ratio=log_ratio, sampling_rate=q)
        return moments + 4 * renyi.ULP

    def _log_tail(self, t: FloatArray) -> FloatArray:
        """log of a bound on P from the first integer of log ratio above t, beyond the window: a geometric series."""
        with np.errstate(over="ignore", invalid="ignore"):
            first = np.floor(t * self.scale**2 / self.sensitivity - 0.5 * self.sensitivity)  # from the centre of P
            log_mass = -0.5 * (first / self.scale) ** 2 - _log_theta(self.scale)
            series = renyi.log1mexp(-(first + 0.5) / self.scale**2)
            return renyi.raise_log(np.minimum(log_mass - series, 0.0), 64)


@functools.lru_cache(maxsize=16)
def _laplace_atoms(scale: float, sensitivity: int) -> tuple[FloatArray, FloatArray]:
    """log Q and log ratio of z <= 0, z = 1 .. sensitivity - 1, z >= sensitivity."""
    z = np.arange(sensitivity + 1.0)
    log_weight = -z / scale - math.log1p(math.exp(-1.0 / scale))
    log_weight[1:-1] += float(renyi.log1mexp(np.array(-1.0 / scale)))
    return log_weight, (2.0 * z - sensitivity) / scale


@functools.lru_cache(maxsize=16)
def laplace_corners(scale: float, sensitivity: int) -> Corners:
    """The profile of a `DiscreteLaplaceEvent`, whole."""
    log_weight, log_ratio = _laplace_atoms(scale, sensitivity)
    return corners_of(log_weight, log_ratio, -math.inf, -math.inf)


@functools.lru_cache(maxsize=16)
def gaussian_corners(scale: float, sensitivity: int) -> Corners:
    """The profile of a `DiscreteGaussianEvent`, with a bound on what is beyond 40 scales."""
    last = sensitivity + math.ceil(_REACH * scale) + 1
    z = np.arange(max(sensitivity // 2 - 1, 0), last + 1.0)
    log_weight = -0.5 * (z / scale) ** 2 - _log_theta(scale)
    log_ratio = sensitivity * (z - 0.5 * sensitivity) / scale**2

    def beyond(start: float) -> float:  # the mass after `start`, from the law's centre: a geometric series
        series = -(start + 1.5) / scale**2
        first = -0.5 * ((start + 1.0) / scale) ** 2 - _log_theta(scale)
        return first - float(renyi.log1mexp(np.array(series)))

    return corners_of(log_weight, log_ratio, beyond(float(last)), beyond(float(last - sensitivity)))


@functools.lru_cache(maxsize=64)
def _log_theta(scale: float) -> float:
    """log of the sum of e^{-z^2 / (2 scale^2)} over the integers."""
    if scale >= _THETA_SCALE:  # Poisson's formula: the other terms are below e^{-177}
        return math.log(scale) + 0.5 * math.log(2.0 * math.pi)
    return math.log(math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in range(-130, 131)))


def _log_theta_ratio(shift: FloatArray, scale: float) -> FloatArray:
    """log of sum e^{-(z - shift)^2 / (2 scale^2)} / sum e^{-z^2 / (2 scale^2)} <= 0, for |shift| <= 1/2."""
    z = np.arange(1.0, 130.0)
    weight = np.exp(-0.5 * (z / scale) ** 2)
    f = np.abs(shift)[:, None]
    fall = np.expm1(-0.5 * (f[:, 0] / scale) ** 2)
    with np.errstate(under="ignore"):
        # e^{-z^2/2s^2} (e^{-f^2/2s^2} cosh(z f / s^2) - 1), without the 1
        near = np.exp(-0.5 * ((z - f) / scale) ** 2) + np.exp(-0.5 * ((z + f) / scale) ** 2)
        small = z * f / scale**2 < 1.0
        bent = 4.0 * weight * np.sinh(np.where(small, 0.5 * z * f / scale**2, 0.0)) ** 2
        gentle = 2.0 * weight * fall[:, None] + np.exp(-0.5 * (f / scale) ** 2) * bent
        change = np.where(small, gentle, near - 2.0 * weight).sum(axis=1)
    total = math.exp(_log_theta(scale))
    part = (fall + change) / total
    whole = (np.exp(-0.5 * (f[:, 0] / scale) ** 2) + near.sum(axis=1)) / total
    return np.asarray(np.minimum(np.where(part > -0.5, np.log1p(np.maximum(part, -0.6)), np.log(whole)), 0.0))


def _scale(value: object) -> float:
    scale = _validate.positive("scale", value, "units of the statistic")
    if not 1e-2 <= scale <= 1e12:
        raise _validate.fail("scale", value, "in [1e-2, 1e12]", "units of the statistic")
    return scale


def whole_sensitivity(value: object) -> int:
    sensitivity = _validate.count("sensitivity", value, "units of the statistic")
    if sensitivity > MOST_ATOMS:
        raise _validate.fail("sensitivity", value, f"at most {MOST_ATOMS}", "units of the statistic")
    return sensitivity
