"""The one place that integrates: excess moments of sampled pairs.

Every function returns log M_p, M_p = E_Q[s^p - 1 - p (s - 1)], s = 1 - q + q r, r = dP/dQ. The integrand is split into
two positive terms, neither of which cancels (docs/explanation/events.md#excess-moments): with L = log s and
f(y) = e^y - 1 - y,

    p > 1:  s f((p-1) L) + (p-1) (s L - (s - 1))          p < 0:  f(p L) + |p| ((s - 1) - L).

The second term does not depend on the power but for a factor, so an order costs one exponential a node.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.costs import renyi

FloatArray = NDArray[np.float64]

_WINDOW = 9.7
"""Half-width of a window around a peak of curvature >= 1: e^{-9.7^2/2} < 4e-21 of the peak is left out."""
_LOG_TARGET = 40.0
"""Discretisation error asked for, e^{-40} = 4e-18 of the moment."""
_STRIP = 0.98 * math.pi
"""Largest |Im log r| used; s has its zeros at pi."""
_SMALL_MULTIPLIER = 0.03
_LARGE_SHIFT = 100.0
_MATRIX_ENTRIES = 1 << 20
_LONGEST_LATTICE = 1 << 17
_LINEAR_LIMIT = 600.0
_SERIES_LIMIT = 0.7
_SERIES = 1.0 / np.cumprod(np.arange(2.0, 20.0))  # 1/2!, 1/3!, ...


@functools.cache
def gauss_legendre(count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], shapes (count,)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def exp_excess(y: FloatArray) -> FloatArray:
    """f(y) = e^y - 1 - y >= 0 to a few units in the last place; inf if e^y overflows."""
    with np.errstate(over="ignore"):
        result = np.expm1(y) - y
    small = np.abs(y) < _SERIES_LIMIT
    if small.any():
        result[small] = _exp_excess_series(y[small])
    return result


def log_exp_excess(y: FloatArray) -> FloatArray:
    """log f(y) without overflow; -inf at 0."""
    large = np.maximum(y, 30.0)
    with np.errstate(divide="ignore"):
        return np.where(
            y > 30.0, large + np.log1p(-(1.0 + large) * np.exp(-large)), np.log(exp_excess(np.minimum(y, 30.0)))
        )


def _exp_excess_series(y: FloatArray) -> FloatArray:
    total = np.full_like(y, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        total *= y
        total += coefficient
    return total * y * y


class Nodes:
    """A discrete distribution under Q: log weights and the likelihood ratio s of the sample at each node, shapes (n,).

    Args:
        log_weight: log of the Q-mass of each node.
        log_ratio: l = log r at each node.
        q: sampling rate in (0, 1]; 1 for a pair that is not sampled.

    `relative_error` bounds the error of L = log s, relative, in units of 2^-53 (4 of them are charged).
    """

    def __init__(self, log_weight: FloatArray, log_ratio: FloatArray, q: float) -> None:
        self.log_weight = log_weight
        clipped = np.minimum(log_ratio, 700.0)  # u decides only where it is small; q >= 1e-100
        self.u = q * np.expm1(clipped)
        far = np.abs(self.u) > 0.5
        self.log_s = np.log1p(np.where(far, 0.0, self.u))
        if far.any():
            left_out = math.log1p(-q) if q < 1.0 else -math.inf
            self.log_s[far] = np.logaddexp(left_out, math.log(q) + log_ratio[far])
        size = np.abs(log_ratio)
        sampled = np.exp(np.minimum(math.log(q) + log_ratio[far] - self.log_s[far], 0.0))  # q r / s
        relative = 2.0 + size
        relative[far] = 1.0 + sampled * (size[far] - math.log(q)) / np.abs(self.log_s[far])
        self.relative_error = relative

    def conditions(self, *, above: bool) -> tuple[FloatArray, FloatArray]:
        """Relative error of e^w f(kappa L), in units of 2^-53, as base + |kappa| power, shapes (n,): events.md#guard.

        y f'(y) / f(y) is at most 2 where y < 0 and at most 2 + y where y > 0.
        """
        growing = (self.log_s > 0.0) == above
        base = np.abs(self.log_weight) + np.abs(self.log_s) + 2.0 * self.relative_error
        return base, np.where(growing, np.abs(self.log_s) * self.relative_error, 0.0)

    def log_first_order(self, *, above: bool) -> float:
        """log E_Q[s L - (s-1)] (above: p > 1) or log E_Q[(s-1) - L] (p < 0), raised: proportional to the power."""
        values, error = self.first_order_terms(above=above)
        return float(_raised(values.sum(), np.zeros(()), values @ error))

    def first_order_terms(self, *, above: bool) -> tuple[FloatArray, FloatArray]:
        """The terms of `log_first_order` and their condition numbers, shapes (n,)."""
        near = np.abs(self.u) <= 0.5
        t, w = gauss_legendre(12)
        t, w = 0.5 * (1.0 + t), 0.5 * w
        u = self.u[near]
        values = np.empty_like(self.u)
        # u^2 int_0^1 (1 - t or t) / (1 + u t) dt, the Taylor remainder of (1+u) log(1+u) or of -log(1+u)
        kernel = (1.0 - t if above else t) * w
        values[near] = np.exp(self.log_weight[near]) * u * u * ((1.0 / (1.0 + u[:, None] * t)) @ kernel)
        log_s, log_weight = self.log_s[~near], self.log_weight[~near]
        weight, tilted = np.exp(log_weight), np.exp(log_weight + log_s)
        values[~near] = tilted * log_s - (tilted - weight) if above else tilted - weight - weight * log_s
        error = np.abs(self.log_weight) + np.abs(self.log_s) * (1.0 + self.relative_error) + 2.0 * self.relative_error
        return values, error


def _log_sum(nodes: Nodes, kappa: FloatArray, *, above: bool, keep: NDArray[np.bool_] | None = None) -> FloatArray:
    """log sum_j w_j [s_j if above] f(kappa_i L_j), raised by its rounding error, shape (orders,); `keep`: mask."""
    log_weight = nodes.log_weight + nodes.log_s if above else nodes.log_weight
    terms, shift = _terms(log_weight, kappa[:, None] * nodes.log_s, keep)
    base, power = nodes.conditions(above=above)
    error = terms @ base + np.abs(kappa) * (terms @ power)
    return _raised(terms.sum(axis=1), shift, error)


def _terms(log_weight: FloatArray, y: FloatArray, keep: NDArray[np.bool_] | None) -> tuple[FloatArray, FloatArray]:
    """e^{log_weight} f(y) e^{-shift}, shape (orders, nodes), with shift (orders,) > 0 only where it would overflow.

    f comes from its series, or as e^{w+y} - e^w (1+y), where no factor overflows alone.
    """
    exponent = log_weight + y
    if keep is not None:
        exponent = np.where(keep, exponent, -np.inf)
    shift = np.maximum(exponent.max(axis=1) - _LINEAR_LIMIT, 0.0)
    if shift.any():
        exponent -= shift[:, None]
        log_weight = log_weight - shift[:, None]
    weight = np.exp(log_weight)
    terms = np.exp(exponent) - weight * (1.0 + y)
    small = np.abs(y) < _SERIES_LIMIT
    terms[small] = np.broadcast_to(weight, y.shape)[small] * _exp_excess_series(y[small])
    if keep is not None:
        terms[~keep] = 0.0
    return terms, shift


def _raised(total: FloatArray, shift: FloatArray, error: FloatArray) -> FloatArray:
    """log(total) + shift, raised by 4 (8 + condition number) 2^-52: events.md#guard."""
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(total > 0.0, error / total, 0.0)
        return np.asarray(np.log(total) + shift + 4.0 * renyi.ULP * (8.0 + condition))


def gaussian_log_excess(powers: FloatArray, *, mu: float, sampling_rate: float) -> FloatArray:
    """log M_p of the sampled Gaussian pair, by the trapezoidal rule; shape (k,).

    Args:
        powers: p > 1 or p < 0, shape (k,).
        mu: 1 / noise multiplier.
        sampling_rate: q in (0, 1).
    """
    if mu * _SMALL_MULTIPLIER > 1.0:
        return _separated(powers, sampling_rate, lambda a: 0.5 * a * mu * mu)
    result = np.empty_like(powers)
    for rows in _buckets(powers):
        p = powers[rows]
        run = _gaussian_above if p[0] > 1.0 else _gaussian_below
        result[rows] = run(p, mu, sampling_rate)
    return result


def _buckets(powers: FloatArray) -> list[NDArray[np.intp]]:
    """Indices of powers that may share a lattice: p > 1 together, p < 0 by factors of 8; at most 512 a bucket."""
    key = np.where(powers > 1.0, -1, np.maximum(np.floor(np.log2(np.abs(powers)) / 3.0), 0.0)).astype(np.intp)
    buckets = []
    for value in np.unique(key):
        rows = np.flatnonzero(key == value)
        buckets += [rows[start : start + 512] for start in range(0, rows.size, 512)]
    return buckets


def _gaussian_bound(powers: FloatArray, mu: float, q: float) -> FloatArray:
    """An upper bound of log M_p where a lattice would be too long (a mu^2 above 1e8 or so): events.md#far-orders.

    p > 1: Minkowski, (E s^p)^{1/p} <= 1 - q + q (E r^p)^{1/p}; p < 0: s >= 1 - q. Neither above the unsampled moment.
    """
    unsampled = renyi.log_expm1(powers * (powers - 1.0) * (0.5 * mu * mu))
    exponent = np.where(
        powers > 1.0,
        powers * np.logaddexp(math.log1p(-q), math.log(q) + (powers - 1.0) * (0.5 * mu * mu)),
        powers * math.log1p(-q),
    )
    return np.minimum(unsampled, renyi.log_expm1(np.maximum(exponent, 0.0))) + 32.0 * renyi.ULP


def _separated(powers: FloatArray, q: float, divergence: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """log M_p where P and Q hardly overlap (the overlap is below e^{-40}): events.md#separated.

    p > 1: (1-q) ((1-q)^{p-1} - 1) + q (q^{p-1} E_P[r^{p-1}] - 1), with E_P[r^{a-1}] = e^{(a-1) D_a(P||Q)};
    p < 0: (1-q)^p - 1.
    """
    above = powers > 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        d = np.where(above, powers - 1.0, 1.0)
        gain = d * (math.log(q) + divergence(d + 1.0))
        loss = (1.0 - q) * np.expm1(d * math.log1p(-q))
        moderate = np.log(q * np.expm1(np.minimum(gain, _LINEAR_LIMIT)) + loss)
        kept = np.where(gain > _LINEAR_LIMIT, math.log(q) + gain, moderate)
        lost = renyi.log_expm1(np.maximum(powers * math.log1p(-q), 0.0))
        error = 8.0 + np.where(above, np.abs(d * math.log(q)) + np.abs(gain), 0.0)
    return np.where(above, kept, lost) + 4.0 * renyi.ULP * error


def _step(mu: float, cosine_power: float) -> float:
    """The widest step h whose proven relative error is e^{-40}: events.md#trapezoid.

    error <= 2 K (1 + G) e^{d^2/2} / (e^{2 pi d / h} - 1) for every half-width d of the strip with mu d < pi.
    """
    d = min(9.0, _STRIP / mu) * np.linspace(0.02, 1.0, 50)
    theta = mu * d
    log_k = -cosine_power * np.log(np.cos(0.5 * theta))
    growth = (theta / (2.0 * math.sinh(0.5 * mu))) ** 2 * (1.0 + 6.4 * math.exp(mu))
    return float(np.max(2.0 * math.pi * d / (_LOG_TARGET + math.log(2.0) + log_k + np.log1p(growth) + 0.5 * d * d)))


def lattice_is_exact(mu: float, power: float, step: float) -> bool:
    """Returns whether the trapezoidal rule of `step` gives the moment of `power` to e^{-40}: events.md#trapezoid.

    A discrete Gaussian of scale 1 / step is that rule.
    """
    if mu * _SMALL_MULTIPLIER > 1.0:
        return False
    return step <= _step(mu, 1.0 if power > 1.0 else 2.0 - power)


def _lattice(low: float, high: float, h: float, mu: float, q: float) -> tuple[FloatArray, Nodes]:
    z = h * np.arange(math.floor(low / h), math.ceil(high / h) + 1.0)
    return z, _gaussian_nodes(z, h, mu, q)


def _gaussian_nodes(z: FloatArray, h: float, mu: float, q: float) -> Nodes:
    return Nodes(math.log(h / math.sqrt(2.0 * math.pi)) - 0.5 * z * z, mu * (z - 0.5 * mu), q)


def _gaussian_below(p: FloatArray, mu: float, q: float) -> FloatArray:
    """p < 0: phi s^p is log-concave with its peak at the root of z = p mu w(z), w = q r / s."""
    h = _step(mu, 2.0 - float(p.min()))
    low, high = _peak_below(float(p.min()), mu, q) - _WINDOW, 2.0 * mu + _WINDOW
    if high - low > _LONGEST_LATTICE * h:
        return _gaussian_bound(p, mu, q)
    _, nodes = _lattice(low, high, h, mu, q)
    first = nodes.log_first_order(above=False)
    out = np.empty_like(p)
    rows = max(1, _MATRIX_ENTRIES // nodes.u.size)
    for start in range(0, p.size, rows):
        part = p[start : start + rows]
        out[start : start + rows] = np.logaddexp(np.log(-part) + first, _log_sum(nodes, part, above=False))
    return out


def _peak_below(p: float, mu: float, q: float) -> float:
    """The root of z - p mu w(z) in [p mu, 0], p < 0 (increasing in z): bisection, rounded outward."""
    low, high = p * mu, 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle < p * mu * _weight(middle, mu, q):
            low = middle
        else:
            high = middle
        if high - low < 0.01:
            break
    return low


def _weight(z: float, mu: float, q: float) -> float:
    """w = q r / (1 - q + q r), the posterior of "sampled" at z."""
    log_odds = math.log(q) - math.log1p(-q) + mu * (z - 0.5 * mu)
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0


def _gaussian_above(p: FloatArray, mu: float, q: float) -> FloatArray:
    """p > 1: a bulk around 0 to 2 mu, and a peak near p mu, far from it or merged with it."""
    h = _step(mu, 1.0)
    centre = 0.5 * mu + (math.log1p(-q) - math.log(q)) / mu
    # Beyond `flat` the log-integrand is concave with curvature >= 1/2: p mu^2 w (1 - w) <= 1/2.
    wide = math.sqrt(2.0) * _WINDOW
    flat = np.maximum(centre + np.log(np.maximum(2.0 * p * mu * mu, 1.0)) / mu, 2.0 * mu + 1.0)
    peak = _peak_above(p, flat, mu, q)
    split = peak - wide > flat
    top = np.where(split, flat, np.minimum(np.maximum(p, 2.0) * mu + _WINDOW, np.maximum(flat, peak) + wide))
    top = np.maximum(top, 2.0 * mu + _WINDOW)
    top = np.where(split, np.minimum(top, peak - wide), top)
    if top.max() > _LONGEST_LATTICE * h:
        fits = top <= _LONGEST_LATTICE * h
        out = _gaussian_bound(p, mu, q)
        if fits.any():
            out[fits] = _gaussian_above(p[fits], mu, q)
        return out
    z, nodes = _lattice(-_WINDOW, float(max(top.max(), 2.0 * mu + _WINDOW)), h, mu, q)
    first = nodes.log_first_order(above=True)
    kappa = p - 1.0
    out = np.empty_like(p)
    rows = max(1, _MATRIX_ENTRIES // z.size)
    for start in range(0, p.size, rows):
        s = slice(start, start + rows)
        keep = ~(split[s, None] & (z[None, :] > top[s, None])) if split[s].any() else None
        out[s] = np.logaddexp(np.log(kappa[s]) + first, _log_sum(nodes, kappa[s], above=True, keep=keep))
    if split.any():
        index = np.flatnonzero(split)
        half = math.ceil(wide / h)
        grid = h * (np.round(peak[index] / h)[:, None] + np.arange(-half, half + 1.0)[None, :])
        far = _gaussian_nodes(grid.ravel(), h, mu, q)
        log_s, k = far.log_s.reshape(grid.shape), kappa[index, None]
        terms, shift = _terms(far.log_weight.reshape(grid.shape) + log_s, k * log_s, grid > top[index, None])
        base, power = (part.reshape(grid.shape) for part in far.conditions(above=True))
        condition = base + k * power
        out[index] = np.logaddexp(out[index], _raised(terms.sum(axis=1), shift, (terms * condition).sum(axis=1)))
    return out


def _peak_above(p: FloatArray, flat: FloatArray, mu: float, q: float) -> FloatArray:
    """The largest root of z = p mu w(z) where it lies beyond `flat`, else `flat`; Newton from the right is monotone."""
    z = p * mu
    log_odds_0 = math.log(q) - math.log1p(-q) - 0.5 * mu * mu
    for _ in range(60):
        with np.errstate(over="ignore"):
            w = 1.0 / (1.0 + np.exp(-(log_odds_0 + mu * z)))
        step = (z - p * mu * w) / np.maximum(1.0 - p * mu * mu * w * (1.0 - w), 0.5)
        moved = np.maximum(z - step, flat)
        moved = np.where(z <= flat, flat, moved)
        if np.all(np.abs(moved - z) < 1e-3):
            break
        z = moved
    return np.maximum(z, flat)


# ----------------------------------------------------------------------------------------- two points, Laplace


def discrete_log_excess(
    powers: FloatArray, *, log_weight: FloatArray, log_ratio: FloatArray, sampling_rate: float
) -> FloatArray:
    """log M_p of a sampled pair of discrete distributions, shape (k,).

    Args:
        powers: p > 1 or p < 0, shape (k,).
        log_weight: log of the Q-mass of each atom, shape (n,).
        log_ratio: log dP/dQ at each atom, finite, shape (n,).
        sampling_rate: q in (0, 1].
    """
    out = np.empty_like(powers)
    nodes = Nodes(log_weight, log_ratio, sampling_rate)
    rows = max(1, _MATRIX_ENTRIES // log_ratio.size)
    for start in range(0, powers.size, rows):
        out[start : start + rows] = _discrete(nodes, powers[start : start + rows])
    return out


def row_log_excess(
    powers: FloatArray, *, log_weight: FloatArray, log_ratio: FloatArray, sampling_rate: float
) -> FloatArray:
    """log M_p where each power has its own atoms: as `discrete_log_excess`, with weights and ratios (k, n)."""
    nodes = Nodes(log_weight.ravel(), log_ratio.ravel(), sampling_rate)
    out = np.empty_like(powers)
    for above, chosen in ((True, powers > 1.0), (False, powers < 0.0)):
        if not chosen.any():
            continue

        def rows(values: FloatArray, chosen: NDArray[np.bool_] = chosen) -> FloatArray:
            return values.reshape(log_ratio.shape)[chosen]

        kappa = powers[chosen] - 1.0 if above else powers[chosen]
        values, error = (rows(part) for part in nodes.first_order_terms(above=above))
        first = _raised(values.sum(axis=1), np.zeros(()), (values * error).sum(axis=1))
        weight, log_s = rows(nodes.log_weight), rows(nodes.log_s)
        terms, shift = _terms(weight + log_s if above else weight, kappa[:, None] * log_s, None)
        base, power = (rows(part) for part in nodes.conditions(above=above))
        condition = base + np.abs(kappa)[:, None] * power
        with np.errstate(over="ignore"):  # an exponent above 1e40 is as uncertain as can be
            error = (terms * condition).sum(axis=1)
        second = _raised(terms.sum(axis=1), shift, error)
        out[chosen] = np.logaddexp(np.log(np.abs(kappa)) + first, second)
    return out


def two_point_log_excess(powers: FloatArray, *, epsilon: float, sampling_rate: float) -> FloatArray:
    """log M_p of the sampled randomised-response pair: two atoms, shape (k,)."""
    log_ratio = np.array([-epsilon, epsilon])
    log_weight = np.array([0.0, -epsilon]) - math.log1p(math.exp(-epsilon))
    return _discrete(Nodes(log_weight, log_ratio, sampling_rate), powers)


def laplace_log_excess(powers: FloatArray, *, shift: float, sampling_rate: float) -> FloatArray:
    """log M_p of the sampled Laplace pair, shape (k,): atoms at both ends of l = log r, density e^{-(l+shift)/2} / 4.

    Args:
        powers: p > 1 or p < 0, shape (k,).
        shift: 1 / b.
        sampling_rate: q in (0, 1).
    """
    if shift > _LARGE_SHIFT + abs(math.log(sampling_rate) - math.log1p(-sampling_rate)):
        return _separated(powers, sampling_rate, lambda a: _laplace_renyi_far(a, shift))
    result = np.empty_like(powers)
    sign = powers > 1.0
    octave = np.where(sign, 1.0, -1.0) * (2.0 + np.floor(np.log2(np.maximum(np.abs(powers), 1.0)) / 2.0))
    for value in np.unique(octave):
        rows = octave == value
        edges = _laplace_panels(powers[rows], shift, sampling_rate)
        x, w = gauss_legendre(20)
        half = 0.5 * np.diff(edges)[:, None]
        inner = (edges[:-1, None] + half * (1.0 + x)).ravel()
        density = (np.log(half * w)).ravel() - 0.5 * (inner + shift) - math.log(4.0)
        log_ratio = np.concatenate(([-shift, shift], inner))
        log_weight = np.concatenate(([-math.log(2.0), -shift - math.log(2.0)], density))
        result[rows] = _discrete(Nodes(log_weight, log_ratio, sampling_rate), powers[rows])
    return result


def _laplace_renyi_far(a: FloatArray, shift: float) -> FloatArray:
    """D_a of the Laplace pair: shift + log(a / (2a - 1)) / (a - 1), the other term being below e^{-shift}."""
    return shift + np.log1p(-(a - 1.0) / (2.0 * a - 1.0)) / (a - 1.0)


def _laplace_panels(p: FloatArray, shift: float, q: float) -> FloatArray:
    """Panel ends on [-shift, shift]: width <= 3/4, exponent p L rising by <= 3 a panel except where nothing remains."""
    largest, smallest = float(np.abs(p).max()), float(np.abs(p).min())
    above = p[0] > 1.0
    end = shift if above else -shift
    log_odds = math.log(q) - math.log1p(-q)

    def log_s(value: FloatArray | float) -> FloatArray:
        return np.asarray(np.logaddexp(0.0, log_odds + value))

    edges = np.linspace(-shift, shift, math.ceil(2.0 * shift / 0.75) + 1)
    for _ in range(80):
        left, right = edges[:-1], edges[1:]
        level = log_s(edges)
        rise = largest * np.diff(level)
        near = right if above else left
        gap = smallest * np.abs(log_s(end) - log_s(near)) - 0.5 * np.abs(end - near)
        steep = (rise > 3.0) & (gap < 60.0)
        if not steep.any():
            break
        edges = np.sort(np.concatenate((edges, 0.5 * (left + right)[steep])))
    return edges


def _discrete(nodes: Nodes, powers: FloatArray) -> FloatArray:
    out = np.empty_like(powers)
    for above, chosen in ((True, powers > 1.0), (False, powers < 0.0)):
        if chosen.any():
            p = powers[chosen]
            first = nodes.log_first_order(above=above)
            kappa = p - 1.0 if above else p
            factor = kappa if above else -p
            out[chosen] = np.logaddexp(np.log(factor) + first, _log_sum(nodes, kappa, above=above))
    return out
