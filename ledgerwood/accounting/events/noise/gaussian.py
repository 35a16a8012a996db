"""Events of the Gaussian mechanism, spherical and elliptical.

The pair is Q = N(0, 1), P = N(mu, 1) with mu = 1 / noise_multiplier. Closed forms: Renyi a mu^2 / 2 (Mironov 2017,
Proposition 7); profile Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang 2018, Theorem 8).
Derivations: docs/explanation/events.md#gaussian and #elliptical.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.errors import InvalidParameter

_SQRT_HALF_PI = math.sqrt(math.pi / 2.0)
_LIMIT = 1e100


def noise_multiplier_in_range(name: str, value: object) -> float:
    """A multiplier in [1e-100, 1e100], so that mu^2 and 1 / mu^2 are ordinary numbers."""
    number = _validate.positive(name, value, "standard deviations or scales per unit of sensitivity")
    if not 1.0 / _LIMIT <= number <= _LIMIT:
        raise _validate.fail(name, value, "in [1e-100, 1e100]", "standard deviations or scales per unit of sensitivity")
    return number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(Event):
    """A statistic with spherical normal noise.

    Args:
        noise_multiplier: standard deviation / L2 sensitivity under `adjacency`, in [1e-100, 1e100].
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
        return gaussian_log_profile(1.0 / self.noise_multiplier, epsilons)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return gaussian_renyi(1.0 / self.noise_multiplier, orders)

    def pure_epsilon(self) -> float:
        return math.inf

    def mu(self) -> float:
        return math.nextafter(1.0 / self.noise_multiplier, math.inf)

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return gaussian_log_excess(1.0 / self.noise_multiplier, powers, sampling_rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EllipticalGaussianEvent(Event):
    """A vector with independent normal noise, with a separate standard deviation for each coordinate.

    It is exactly a `GaussianEvent` with multiplier 1 / sqrt(sum d_k^2 / s_k^2), sampled or not, if coordinate k changes
    by at most d_k, for each k separately. If the coordinates cannot all change by d_k together, a query may state a
    `GaussianEvent` with a smaller sensitivity. docs/explanation/events.md#elliptical.

    Args:
        sensitivities: d_k >= 0, the largest change of coordinate k, in its own units; one of them positive.
        stddevs: s_k > 0, in the same units.
        adjacency: the relation under which the sensitivities were taken.

    Raises:
        InvalidParameter: a value outside its bound, or lengths that differ.
    """

    sensitivities: tuple[float, ...]
    stddevs: tuple[float, ...]
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        d = _numbers("sensitivities", self.sensitivities)
        s = _numbers("stddevs", self.stddevs)
        if len(d) != len(s):
            raise InvalidParameter(f"sensitivities has {len(d)} values and stddevs {len(s)}; one pair per coordinate")
        for value in d:
            _validate.non_negative("sensitivities", value, "units of the coordinate")
        for value in s:
            _validate.positive("stddevs", value, "units of the coordinate")
        object.__setattr__(self, "sensitivities", d)
        object.__setattr__(self, "stddevs", s)
        if not any(d):
            raise _validate.fail("sensitivities", d, "positive in at least one coordinate", "units of the coordinate")
        noise_multiplier_in_range("noise_multiplier", self.noise_multiplier)
        require_adjacency(self.adjacency)

    @property
    def noise_multiplier(self) -> float:
        """1 / sqrt(sum d_k^2 / s_k^2), rounded down: the multiplier of the Gaussian that this event is."""
        norm = math.hypot(*(d / s for d, s in zip(self.sensitivities, self.stddevs, strict=True)))
        return (1.0 - 8 * renyi.ULP) / norm if norm > 0.0 else math.inf

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return gaussian_log_profile(1.0 / self.noise_multiplier, epsilons)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return gaussian_renyi(1.0 / self.noise_multiplier, orders)

    def pure_epsilon(self) -> float:
        return math.inf

    def mu(self) -> float:
        return math.nextafter(1.0 / self.noise_multiplier, math.inf)

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return gaussian_log_excess(1.0 / self.noise_multiplier, powers, sampling_rate)


def _numbers(name: str, values: object) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or len(values) == 0:
        raise _validate.fail(name, values, "a sequence of at least one number", "units of the coordinates")
    return tuple(_validate.real(name, value, "units of the coordinate") for value in values)


def gaussian_renyi(mu: float, orders: ArrayLike) -> FloatArray:
    """Renyi divergence a mu^2 / 2 of N(mu, 1) from N(0, 1), both directions, in nats; shape (k,)."""
    return renyi.raise_by(renyi.check_orders(orders) * (0.5 * mu * mu), 4)


def gaussian_log_excess(mu: float, powers: ArrayLike, sampling_rate: float) -> FloatArray:
    """Log excess moments of the Gaussian pair, sampled at `sampling_rate` (1: not at all); shape (k,)."""
    p = renyi.check_powers(powers)
    if sampling_rate == 1.0:
        return renyi.log_expm1(p * (p - 1.0) * (0.5 * mu * mu))
    return quadrature.gaussian_log_excess(p, mu=mu, sampling_rate=sampling_rate)


def gaussian_log_profile(mu: float, epsilons: ArrayLike) -> FloatArray:
    """log of Phi(-a) - e^eps Phi(-b), a = eps/mu - mu/2, b = eps/mu + mu/2; shape of `epsilons`.

    With the Mills ratio m(x) = Phi(-x) / phi(x) and e^eps phi(b) = phi(a), H = Phi(-a) (1 - m(b) / m(a)); where m(a)
    and m(b) are close, their difference is the integral of -m' over [a, b], which is positive.
    """
    eps = renyi.check_epsilons(epsilons)
    flat = np.atleast_1d(eps).ravel()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        a = flat / mu - 0.5 * mu
        b = flat / mu + 0.5 * mu
        a -= 2 * renyi.ULP * b  # what a lost where its two terms cancel, and mu before: H decreases in a
        log_ratio = _log_mills(b) - _log_mills(a)
        log_part = renyi.log1mexp(np.minimum(np.nan_to_num(log_ratio, nan=0.0, neginf=-np.inf), 0.0))
        close = ~(log_ratio < -0.6) & np.isfinite(a)
        if close.any():
            log_part[close] = np.log(_mills_difference(a[close], mu) / _mills(a[close]))
        result = np.where(np.isfinite(a), log_ndtr(-a) + log_part, -np.inf)
    return renyi.raise_log(result, 16).reshape(eps.shape)


def _mills(x: FloatArray) -> FloatArray:
    return _SQRT_HALF_PI * erfcx(x / math.sqrt(2.0))


def _log_mills(x: FloatArray) -> FloatArray:
    """log m(x); the erfcx form for x > -5, if nothing overflows."""
    low = np.minimum(x, -5.0)
    return np.where(
        x > -5.0,
        np.log(_mills(np.maximum(x, -5.0))),
        log_ndtr(-low) + 0.5 * low * low + 0.5 * math.log(2.0 * math.pi),
    )


def _mills_difference(a: FloatArray, width: float) -> FloatArray:
    """m(a) - m(a + width), by 16 Gauss-Legendre nodes on -m' (analytic; the interval is short or far out)."""
    nodes, weights = quadrature.gauss_legendre(16)
    x = a[:, None] + (0.5 * width) * (1.0 + nodes)[None, :]
    return (0.5 * width) * (_minus_mills_slope(x) @ weights)


def _minus_mills_slope(x: FloatArray) -> FloatArray:
    """-m'(x) = 1 - x m(x) > 0; beyond 3 by the continued fraction of m, where the difference would cancel."""
    result = 1.0 - np.minimum(x, 3.0) * _mills(np.minimum(x, 3.0))
    far = x > 3.0
    if far.any():
        z = x[far]
        tail = z
        for k in range(60, 1, -1):
            tail = z + k / tail
        tail = 1.0 / tail  # 1 / (z + 2 / (z + 3 / ...)): 1/m(z) - z
        result[far] = tail / (z + tail)
    return result
