"""Events of pure differential privacy, of randomised response, and of private choices of bounded range.

The randomised-response pair, P = (e^eps, 1) / (1 + e^eps) and Q = (1, e^eps) / (1 + e^eps), dominates every mechanism
of the same pure epsilon (found by Kairouz, Oh and Viswanath 2015; proof in docs/explanation/events.md#pure). Randomised
response itself is among k categories: docs/explanation/events.md#randomised-response.

The exponential mechanism, and all that selects by a range, is of bounded range: for each neighbouring pair the privacy
loss lies in an interval [t - eps, t] that holds 0 (a definition of Durfee and Rogers 2019). With t known, the worst
pair has two outcomes of ratio e^t and e^{t - eps} (an idea of Dong, Durfee and Rogers 2020); t may differ from release
to release, so each functional is a supremum over t. The supremum is taken after the functional: the Renyi divergence of
the supremum of the profiles is a looser bound. docs/explanation/events.md#bounded-range.

Profiles of discrete pairs: linear in e^t between the log ratios. docs/explanation/events.md#discrete.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, final

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
    the worst mechanism of the same epsilon. Source: Warner 1965; Kairouz, Bonawitz and Ramage 2016; proof
    in docs/explanation/events.md#randomised-response.

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


# By how much, relative, a log ratio may be off: the profile of log ratios (1 + d) l, at (1 + d) t, is at most
# sum Q (e^l - e^t) (1 + d) e^{d l}, so that the rest of it is within the guard.
_RATIO_SLACK = 4.0 * renyi.ULP


class Corners(NamedTuple):
    """A profile that is linear in e^t between the log ratios; arrays of one shape, rising in `log_ratio`."""

    log_ratio: FloatArray
    log_profile: FloatArray  # at the log ratios
    log_mass: FloatArray  # of Q, from each log ratio on
    log_error: FloatArray  # of the profile's terms, each times the size of the exponents that it was made of
    log_outside: float  # of a bound on what the profile owes to what is beyond the last atom, anywhere


def corners_of(log_weight: FloatArray, log_ratio: FloatArray, log_mass_beyond: float, log_beyond: float) -> Corners:
    """The corners of a discrete pair; only sums of positive terms, in long doubles.

    Args:
        log_weight: log Q at each atom, shape (n,).
        log_ratio: rising, shape (n,).
        log_mass_beyond: log of Q beyond the last atom.
        log_beyond: log of an upper bound on the profile beyond the last log ratio, which the one from below leaves out.
    """
    weight = np.append(log_weight, log_mass_beyond).astype(np.longdouble)
    mass = np.logaddexp.accumulate(weight[::-1])[::-1][:-1]
    rise = log_ratio[1:] + renyi.log1mexp(-np.diff(log_ratio)) + mass[1:]
    profile = np.logaddexp.accumulate(np.append(rise, np.longdouble(log_beyond))[::-1])[::-1]
    sizes = np.log(_size(log_ratio[1:], mass[1:]))
    last = np.longdouble(log_beyond + math.log(2.0 + abs(log_beyond)) if math.isfinite(log_beyond) else log_beyond)
    error = np.logaddexp.accumulate(np.append(rise + sizes, last)[::-1])[::-1]
    outside = float(np.logaddexp(log_mass_beyond + log_ratio[-1], log_beyond)) + 1e-9
    parts = [part.astype(np.float64) for part in (profile, mass, error)]
    return Corners(log_ratio, parts[0], parts[1], parts[2], outside)


def _size(log_ratio: FloatArray, log_mass: FloatArray) -> FloatArray:
    """How many units of 2^-53 a product of the two is uncertain by, relative."""
    return np.asarray(2.0 + np.abs(log_ratio) + np.abs(log_mass))


def interpolated(corners: Corners, t: FloatArray) -> FloatArray:
    """H(t) = H(l) + (e^l - e^t) Q(from l on), l the next log ratio, rounded up; the last corner's value beyond it."""
    profile, guard = _between(corners, t * (1.0 - _RATIO_SLACK))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(profile), -np.inf, np.minimum(profile + guard, 0.0))


def interpolated_below(corners: Corners, t: FloatArray) -> FloatArray:
    """Interpolates rounded down, without the mass beyond the last atom; -inf from the last corner on."""
    moved = t * (1.0 + _RATIO_SLACK)
    profile, guard = _between(corners, moved)
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.log(-np.expm1(np.minimum(corners.log_outside - profile, 0.0)))
        below = profile + 2.0 * inside - 2.0 * guard  # twice, for the rounding of the logarithm
    known = (moved < corners.log_ratio[-1]) & np.isfinite(profile) & (guard < 1e-3)
    return np.where(known, below, -np.inf)


def _between(corners: Corners, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log of the profile of these log ratios at t as computed, and a bound on its rounding."""
    index = np.minimum(np.searchsorted(corners.log_ratio, t, side="right"), corners.log_ratio.size - 1)
    level = corners.log_ratio[index]
    mass = corners.log_mass[index]
    fall = level + renyi.log1mexp(np.minimum(t - level, 0.0)) + mass
    profile = np.logaddexp(corners.log_profile[index], fall)
    error = np.logaddexp(corners.log_error[index], fall + np.log(_size(level, mass)))
    count = corners.log_ratio.size * float(np.finfo(np.longdouble).eps) / renyi.ULP
    with np.errstate(invalid="ignore"):
        condition = np.where(np.isneginf(profile), 0.0, np.exp(error - profile))
        return profile, renyi.ULP * ((32.0 + count) * (1.0 + np.abs(profile)) + 8.0 * condition)
