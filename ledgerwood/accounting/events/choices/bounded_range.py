"""Bounded range: the exponential mechanism and all that selects by a range. docs/explanation/events.md#bounded-range.

A mechanism is epsilon-bounded-range if, for each neighbouring pair, its privacy loss lies in an interval [t - eps, t]
that holds 0 (Durfee and Rogers 2019, Definition 4.1). With t known, the worst pair has two outcomes of ratio e^t and
e^{t - eps} (Dong, Durfee and Rogers 2020, Lemma 3.2); t may differ from release to release, so each functional is a
supremum over t. The supremum is taken after the functional: the Renyi divergence of the supremum of the profiles is a
looser bound.
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
from ledgerwood.accounting.events.choices.pure import epsilon_in_range

_SERIES_END = 2.0
_NODES = 16
_FLAT_EXPONENT = 12.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRangeEvent(Event):
    """A mechanism whose privacy loss has a range of at most epsilon: the exponential mechanism, not noisy maxima.

    The exponential mechanism that picks o with probability proportional to exp(epsilon u(o) / R) has this property. R
    is the largest max_o (u - u') - min_o (u - u') over neighbours. Permute-and-flip and the maximum of Laplace-noised
    scores do not have this property: state them as `PureEvent`.

    Args:
        epsilon: the range, in [1e-100, 1e100], in nats.
        adjacency: the relation under which the range was taken.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_in_range(self.epsilon))
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """sup over t of the profiles: H(s) = (1 - e^{(s - eps)/2})^2 / (1 - e^{-eps}) up to eps, both directions."""
        gap = np.minimum(renyi.check_epsilons(epsilons) - self.epsilon, 0.0)
        return renyi.raise_log(2.0 * renyi.log1mexp(0.5 * gap) - renyi.log1mexp(np.array(-self.epsilon)), 16)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """sup over t of the divergences, in closed form; both directions alike."""
        a = renyi.check_orders(orders)
        return np.minimum(renyi.raise_by(_divergence(self.epsilon, a), 64), self.epsilon)

    def pure_epsilon(self) -> float:
        return self.epsilon

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        """sup over t of the moments: for each power by its own t, found from a derivative that changes sign once."""
        p = renyi.check_powers(powers)
        unsampled = renyi.to_log_excess(p, lambda a, d: self.renyi(a, direction=d))
        if sampling_rate == 1.0:
            return unsampled
        t = _worst_shift(self.epsilon, p, sampling_rate)
        gap = self.epsilon - t
        whole = renyi.log1mexp(np.array(-self.epsilon))
        log_weight = np.stack((renyi.log1mexp(-gap) - t - whole, renyi.log1mexp(-t) - whole), axis=1)
        moments = quadrature.row_log_excess(
            p, log_weight=log_weight, log_ratio=np.stack((t, -gap), axis=1), sampling_rate=sampling_rate
        )
        # the maximum is flat: a t that is off by 2^-40 of eps costs less than 2^-52, relative
        raised = moments + renyi.ULP * (8.0 + 8.0 * np.abs(whole) + 2.0 * np.clip(-moments, 0.0, 1e3))
        return np.minimum(raised, unsampled)


def _divergence(eps: float, orders: FloatArray) -> FloatArray:
    """D_a = log y + log((1 - e^{-a eps}) / (a (1 - e^{-eps}))) / (a - 1) at the worst t = log y, shape (k,).

    y = (a - 1)(1 - e^{-a eps}) / (a (e^{-eps} - e^{-a eps})). Where the two terms would cancel, as an integral of
    positive terms: events.md#bounded-range.
    """
    d = orders - 1.0
    x = d * eps
    out = np.empty_like(orders)
    far = x >= 1.0
    if far.any():
        out[far] = _divergence_far(eps, orders[far])
    near = ~far
    if near.any():
        nodes, weights = quadrature.gauss_legendre(_NODES)
        v, w = 0.5 * (1.0 + nodes), 0.5 * weights
        rise = x[near, None] * v[None, :]
        if eps >= 1.0:
            out[near] = (_first(eps + rise) - _first(rise)) @ w
        else:
            out[near] = eps * ((_second(rise[:, :, None] + eps * v) @ w) @ w)
    return out


def _divergence_far(eps: float, orders: FloatArray) -> FloatArray:
    d = orders - 1.0
    whole = renyi.log1mexp(-orders * eps)
    log_y = eps + whole - renyi.log1mexp(-d * eps) - np.log1p(1.0 / d)
    return log_y + (whole - np.log1p(d) - renyi.log1mexp(np.array(-eps))) / d


def _second(x: FloatArray) -> FloatArray:
    """(x L)'' for L(x) = log(sinh(x/2) / (x/2)) and 0 <= x <= 2, by its power series."""
    square, total = x * x, np.zeros_like(x)
    for k in range(len(_COEFFICIENTS), 0, -1):
        total = total * square + _COEFFICIENTS[k - 1] * (2 * k + 1)
    return total * x


def _first(x: FloatArray) -> FloatArray:
    """(x L)' = L + x L' for x >= 0."""
    low, high = np.minimum(x, _SERIES_END), np.maximum(x, _SERIES_END)
    square, total = low * low, np.zeros_like(x)
    for k in range(len(_COEFFICIENTS), 0, -1):
        total = total * square + _COEFFICIENTS[k - 1] * ((2 * k + 1) / (2 * k))
    # L = x/2 + log(1 - e^{-x}) - log x and x L' = (x/2) coth(x/2) - 1
    decay = np.exp(-high)
    closed = high / (1.0 - decay) + np.log1p(-decay) - np.log(high) - 1.0
    return np.where(x <= _SERIES_END, total * square, closed)


def _bernoulli_over_factorial(count: int) -> tuple[float, ...]:
    """B_{2k} / (2k)! for k = 1 .. count, each to half an ulp, from t / (e^t - 1)."""
    terms = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        terms.append(-sum((terms[j] / math.factorial(n + 1 - j) for j in range(n)), Fraction()))
    return tuple(float(value) for value in terms[2::2])


_COEFFICIENTS = _bernoulli_over_factorial(18)


def _worst_shift(eps: float, powers: FloatArray, q: float) -> FloatArray:
    """The t in (0, eps) at which the moment of each power is largest, shape (k,): events.md#bounded-range-sampled.

    The moment rises in t while the mean of e^{-eps v} under the density e^{-eps v} (w + e^{-eps v})^{p-2} on [0, 1],
    w = (1 - q) e^{-t} / q, exceeds e^{t - eps}; the sign changes once.
    """
    low, high = np.zeros_like(powers), np.full_like(powers, eps)
    for _ in range(60):
        t = 0.5 * (low + high)
        rising = _log_mean(eps, t, powers, q) > t - eps
        low, high = np.where(rising, t, low), np.where(rising, high, t)
        if np.all(high - low <= 2.0**-46 * eps):
            break
    return 0.5 * (low + high)


def _log_mean(eps: float, t: FloatArray, powers: FloatArray, q: float) -> FloatArray:
    """log of the mean of x = e^{-eps v} under the density dx (w + x)^{p-2} on [e^{-eps}, 1], shape (k,)."""
    log_w = math.log1p(-q) - math.log(q) - t
    top, bottom = np.logaddexp(log_w, 0.0), np.logaddexp(log_w, -eps)
    width = top - bottom
    k = powers - 2.0
    result = np.empty_like(t)
    smooth = (np.abs(k) * width < _FLAT_EXPONENT) & (eps < _FLAT_EXPONENT)
    if smooth.any():
        nodes, weights = quadrature.gauss_legendre(40)
        fall = -0.5 * eps * (1.0 + nodes)
        level = np.logaddexp(log_w[smooth, None], fall) - top[smooth, None]
        mass = weights * np.exp(fall + k[smooth, None] * level)
        result[smooth] = np.log((mass @ np.exp(fall)) / mass.sum(axis=1))
    rest = ~smooth
    if rest.any():
        result[rest] = _log_mean_closed(powers[rest] - 1.0, top[rest], bottom[rest], log_w[rest])
    return result


def _log_mean_closed(n: FloatArray, top: FloatArray, bottom: FloatArray, log_w: FloatArray) -> FloatArray:
    """log(E[X] - w), X = w + x of density X^{n-1} between e^bottom and e^top, shape (k,); n > 0 or n < -1."""
    width = top - bottom
    above = n > 0.0
    start = np.where(above, top, bottom)
    ratio = (
        np.log(np.abs(n / (n + 1.0))) + renyi.log1mexp(-np.abs(n + 1.0) * width) - renyi.log1mexp(-np.abs(n) * width)
    )
    log_mean = np.clip(start + ratio, bottom, top)
    with np.errstate(divide="ignore"):
        return log_mean + renyi.log1mexp(np.minimum(log_w - log_mean, 0.0))
