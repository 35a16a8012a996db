"""Curves over the sensitivity, one per order: K(s) = (a - 1) D_a = log(1 + M) of a pair whose shift is scaled by s.

The axis log2 s is cut into panels, halved until each is exact enough; orders that share a panel share its points. On a
panel K is a polynomial's logarithm, with the interpolation's proven error added, or a chord of the convex K.
Derivations: docs/explanation/individuals.md.
"""

import abc
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_excess
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.errors import InvalidParameter

LEAST = 1e-300
"""What a row that contributes something is charged at least."""
_MOST_ORDER = 2.0**20
_TOLERANCE = 3e-8
_DEGREE = 17
_ELLIPSES = (4.0, 9.0)
_WIDEST_ANGLE = 1.35
_LARGE = 40.0
"""K from which a panel holds K itself, not M = e^K - 1: e^{-40} is nothing beside it."""
_DEEPEST = 40
_LOG_4 = 2.0 * math.log(2.0)


@dataclass(frozen=True, slots=True)
class RowNorms:
    """A chunk of rows: sensitivities, their squares, log2; shapes (n,)."""

    s: FloatArray
    square: FloatArray
    log2: FloatArray


class RowCostCurve(abc.ABC):
    """K = (a - 1) D_a = log(1 + M) of one pair at one order, as a function of the sensitivity."""

    __slots__ = ()

    @abc.abstractmethod
    def at(self, rows: RowNorms) -> FloatArray:
        """K at each row, rounded up, shape (n,)."""


@final
@dataclass(frozen=True, slots=True)
class Parabola(RowCostCurve):
    """K = factor s^2: a Gaussian that is not sampled."""

    factor: float

    def at(self, rows: RowNorms) -> FloatArray:
        return np.maximum(self.factor * rows.square, LEAST)


@dataclass(frozen=True, slots=True)
class _Panel:
    """left <= log2 s <= right; M = s^2 P(y), or where `large` K = log P(y) + slope s^exponent + offset."""

    left: float
    right: float
    powers: FloatArray
    large: bool
    slope: float = 0.0
    offset: float = 0.0


@final
class RowCostTable(RowCostCurve):
    """A table of row costs: panels from the smallest s up; the first has no left end and a constant polynomial."""

    __slots__ = ("_any_large", "_edges", "_exponent", "_large", "_middle", "_offset", "_powers", "_scale", "_slope")

    def __init__(self, panels: list[_Panel], exponent: int) -> None:
        ordered = sorted(panels, key=lambda panel: panel.left)
        self._exponent = exponent
        self._edges = np.array([panel.left for panel in ordered[1:]])
        self._middle = np.array([0.0] + [0.5 * (panel.left + panel.right) for panel in ordered[1:]])
        self._scale = np.array([0.0] + [2.0 / (panel.right - panel.left) for panel in ordered[1:]])
        self._powers = np.stack([panel.powers for panel in ordered], axis=1)
        self._slope = np.array([panel.slope for panel in ordered])
        self._offset = np.array([panel.offset for panel in ordered])
        self._large = np.array([panel.large for panel in ordered])
        self._any_large = bool(self._large.any())

    def at(self, rows: RowNorms) -> FloatArray:
        panel = np.searchsorted(self._edges, rows.log2, side="right")
        y = np.where(panel > 0, rows.log2, 0.0)
        y -= self._middle[panel]
        y *= self._scale[panel]
        total = self._powers[-1].take(panel)
        for coefficients in self._powers[-2::-1]:
            total *= y
            total += coefficients.take(panel)
        k = np.log1p(np.maximum(total * rows.square, LEAST))
        if self._any_large:
            large = np.flatnonzero(self._large[panel])
            panel = panel[large]
            u = (rows.square if self._exponent == 2 else rows.s)[large]
            k[large] = np.log(total[large]) + self._slope[panel] * u + self._offset[panel]
        return np.asarray(k)


# ---------------------------------------------------------------------------------------------------- the two pairs


@dataclass(frozen=True, slots=True)
class _Around:
    """A region of complex shifts t and its bound: |M(t)| <= constant M(t'), t' real, |t| <= t' <= 2^top shift.

    `aside` is at least t'^exponent - Re t^exponent, in units of s^exponent; `stretch` is at least (t'/|t|)^2.
    """

    top: float
    log_constant: float
    log_stretch: float
    aside: float


class RowPair(abc.ABC):
    """Moments of a pair of distributions with shift `shift` s, sampled at `rate`, on the real axis and around it."""

    __slots__ = ()
    shift: float
    rate: float
    exponent: int

    @abc.abstractmethod
    def curves(self, orders: FloatArray) -> list[RowCostCurve]:
        """One curve per order."""

    @abc.abstractmethod
    def log_moments(self, orders: FloatArray, log2_s: float) -> FloatArray:
        """log M at s, shape (k,)."""

    @abc.abstractmethod
    def growth(self, orders: FloatArray) -> FloatArray:
        """m with M <= a (a - 1) q^2 t^2 e^{m t^exponent} / 2 at shift t, shape (k,)."""

    @abc.abstractmethod
    def around(self, middle: float, wide: float, angle: float) -> _Around | None:
        """The bound for t = shift 2^z, |Re z - middle| <= wide, |Im z| log 2 <= angle; None if there is none."""

    @abc.abstractmethod
    def log_largest(self, orders: FloatArray, low: float, top: float) -> FloatArray:
        """log of a bound of M / s^2 for low <= log2 s <= top, shape (k,)."""

    @abc.abstractmethod
    def condition(self, orders: FloatArray, log2_s: float) -> FloatArray:
        """A bound of the condition number of log M up to s, shape (k,): how often a unit in the last place counts."""

    def log_tail(self, orders: FloatArray, log2_s: float) -> FloatArray:
        """log of a bound of M / s^2 up to s, shape (k,)."""
        leading = np.log(0.5 * orders) + np.log(orders - 1.0) + 2.0 * (math.log(self.rate) + math.log(self.shift))
        log_u = self.exponent * (math.log(self.shift) + log2_s * math.log(2.0))
        return np.asarray(leading + np.exp(np.log(self.growth(orders)) + log_u))

    def least(self, orders: FloatArray) -> FloatArray:
        """Whole log2 s, up to which the tail's bound is exact enough, shape (k,); at most 0."""
        room = np.log2(_TOLERANCE / self.growth(orders)) / self.exponent - math.log2(self.shift)
        return np.minimum(np.floor(room), 0.0)


@final
@dataclass(frozen=True, slots=True)
class GaussianPair(RowPair):
    """N(0, 1) and N(mu, 1); K is convex in mu^2. docs/explanation/individuals.md#individual-gaussian."""

    shift: float
    rate: float
    exponent: int = 2

    def curves(self, orders: FloatArray) -> list[RowCostCurve]:
        if self.rate == 1.0:
            return [Parabola(0.5 * a * (a - 1.0) * self.shift * self.shift) for a in orders.tolist()]
        return _tables(self, orders)

    def log_moments(self, orders: FloatArray, log2_s: float) -> FloatArray:
        return gaussian_log_excess(self.shift * 2.0**log2_s, orders, self.rate)

    def growth(self, orders: FloatArray) -> FloatArray:
        return np.maximum(1.0, 0.5 * orders * orders)

    def around(self, middle: float, wide: float, angle: float) -> _Around | None:
        if 2.0 * angle > _WIDEST_ANGLE:
            return None
        log_cosine = math.log(math.cos(2.0 * angle))
        top = middle + wide - log_cosine / _LOG_4
        aside = (2.0**top * math.sin(2.0 * angle)) ** 2
        return _Around(top, (self.shift * self.shift * aside) / 8.0 - 0.5 * log_cosine, -log_cosine, aside)

    def log_largest(self, orders: FloatArray, low: float, top: float) -> FloatArray:
        return np.asarray(self.log_moments(orders, top) - _LOG_4 * top)

    def condition(self, orders: FloatArray, log2_s: float) -> FloatArray:
        reach = orders * self.shift * 2.0**log2_s + 14.0
        return np.asarray(3.0 * reach * reach + 4.0 * orders * abs(math.log(self.rate)))


@final
@dataclass(frozen=True, slots=True)
class LaplacePair(RowPair):
    """Laplace noise of scale 1 / shift; K is convex in it. docs/explanation/individuals.md#individual-laplace."""

    shift: float
    rate: float
    exponent: int = 1

    def curves(self, orders: FloatArray) -> list[RowCostCurve]:
        return _tables(self, orders)

    def log_moments(self, orders: FloatArray, log2_s: float) -> FloatArray:
        own = LaplaceEvent(noise_multiplier=1.0 / (self.shift * 2.0**log2_s), adjacency=Adjacency.ADD_REMOVE)
        return own.log_excess_moments(orders, sampling_rate=self.rate)

    def growth(self, orders: FloatArray) -> FloatArray:
        return np.maximum(1.0, orders - 1.0)

    def around(self, middle: float, wide: float, angle: float) -> _Around | None:
        top = middle + wide
        if angle > _WIDEST_ANGLE or (across := self.shift * 2.0**top * math.sin(angle)) > 2.0:
            return None
        log_constant = math.log(2.0) - math.log(math.cos(angle)) - math.log(math.cos(0.5 * across))
        return _Around(top, log_constant, 0.0, 2.0**top * (1.0 - math.cos(angle)))

    def log_largest(self, orders: FloatArray, low: float, top: float) -> FloatArray:
        return np.minimum(self.log_moments(orders, top) - _LOG_4 * low, self.log_tail(orders, top))

    def condition(self, orders: FloatArray, log2_s: float) -> FloatArray:
        return np.asarray(4.0 * orders * (self.shift * 2.0**log2_s + abs(math.log(self.rate))) + 40.0)


# --------------------------------------------------------------------------------------------- building the tables


def _tables(pair: RowPair, orders: FloatArray) -> list[RowCostCurve]:
    """The tables of all orders, shape (k,)."""
    if orders.max(initial=1.0) > _MOST_ORDER:
        raise InvalidParameter(f"orders={orders.max()!r} must be at most 2^20 (unit: Renyi order)")
    least = pair.least(orders)
    panels: list[list[_Panel]] = [[_tail(pair, orders[j : j + 1], float(least[j]))] for j in range(orders.size)]
    work = [
        (float(left), left + 1.0, 0, np.flatnonzero(least <= left)) for left in range(int(least.min(initial=0.0)), 0)
    ]
    while work:
        left, right, depth, chosen = work.pop()
        low = pair.log_moments(orders[chosen], left)
        rest = []
        for kind, members in ((_small_panels, low <= _LARGE), (_large_panels, low > _LARGE)):
            if members.any():
                index = chosen[members]
                found = kind(pair, orders[index], low[members], left, right, last=depth == _DEEPEST)
                for j, panel in zip(index.tolist(), found, strict=True):
                    if panel is None:
                        rest.append(j)
                    else:
                        panels[j].append(panel)
        if rest:
            middle, again = 0.5 * (left + right), np.array(sorted(rest))
            work += [(left, middle, depth + 1, again), (middle, right, depth + 1, again)]
    return [RowCostTable(own, pair.exponent) for own in panels]


def _tail(pair: RowPair, order: FloatArray, least: float) -> _Panel:
    powers = np.zeros(_DEGREE + 1)
    powers[0] = math.exp(float(pair.log_tail(order, least)[0])) * _raise(pair, order, least)[0]
    return _Panel(-math.inf, least, powers, large=False)


def _noise(pair: RowPair, orders: FloatArray, log2_s: float) -> FloatArray:
    """What moments raised by their guard may move an interpolant by, relative to the largest: 3 times the guard."""
    return np.asarray(12.0 * renyi.ULP * (16.0 + pair.condition(orders, log2_s)))


def _raise(pair: RowPair, orders: FloatArray, log2_s: float) -> FloatArray:
    """The factor that covers the row's own guard and the rounding of log2 s."""
    return np.asarray(1.0 + renyi.ULP * (4096.0 + 64.0 * pair.condition(orders, log2_s)))


def _small_panels(
    pair: RowPair, orders: FloatArray, low: FloatArray, left: float, right: float, *, last: bool
) -> list[_Panel | None]:
    """Polynomials for M / s^2, where their proven error is small: docs/explanation/individuals.md#individual-panels."""
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    log_error = np.full(orders.shape, np.inf)
    for rho in _ELLIPSES:
        wide, angle = _axes(half, rho)
        if (near := pair.around(middle, wide, angle)) is not None:
            largest = near.log_constant + near.log_stretch + pair.log_largest(orders, middle - wide, near.top)
            log_error = np.minimum(log_error, _log_factor(rho) + largest)
    noise = _noise(pair, orders, right)
    log_error = np.logaddexp(log_error, np.log(noise) + pair.log_moments(orders, right) - _LOG_4 * left)
    room = np.log(np.maximum(_TOLERANCE, 10.0 * noise))
    done = np.full(orders.shape, last) | (log_error - (low - _LOG_4 * right) <= room)
    columns = _polynomials(pair, orders[done], log_error[done], left, right, lambda x: np.full(1, _LOG_4 * x))
    return [_Panel(left, right, next(columns), large=False) if ok else None for ok in done.tolist()]


def _large_panels(
    pair: RowPair, orders: FloatArray, low: FloatArray, left: float, right: float, *, last: bool
) -> list[_Panel | None]:
    """Chords of K, or those and a polynomial for e^(K - chord): docs/explanation/individuals.md#individual-chords."""
    e, middle, half = pair.exponent, 0.5 * (left + right), 0.5 * (right - left)
    start, end = 2.0 ** (e * left), 2.0 ** (e * right)
    inner, high = _k(pair, orders, math.log2(0.5 * (start + end)) / e), _k(pair, orders, right)
    slope = (high - low) / (end - start)
    offset = low - slope * start
    gap = low + high - 2.0 * inner  # K is convex: nowhere is the chord further above it
    chord = np.full(orders.shape, last) | (gap <= _TOLERANCE * low)

    log_error = np.full(orders.shape, np.inf)
    for rho in _ELLIPSES if not chord.all() else ():
        wide, angle = _axes(half, rho)
        if (near := pair.around(middle, wide, angle)) is not None:
            ends = [_k(pair, orders, x) - (offset + slope * 2.0 ** (e * x)) for x in (middle - wide, near.top)]
            largest = near.log_constant + np.maximum(*ends) + slope * near.aside
            log_error = np.minimum(log_error, _log_factor(rho) + largest)
    log_error = np.logaddexp(log_error, np.log(_noise(pair, orders, right)))
    done = ~chord & (log_error <= math.log(_TOLERANCE * _LARGE) - gap)
    columns = _polynomials(
        pair, orders[done], log_error[done], left, right, lambda x: (offset + slope * 2.0 ** (e * x))[done]
    )
    one = np.zeros(_DEGREE + 1)
    one[0] = 1.0
    raised = 1.0 + 64.0 * renyi.ULP * (1.0 + pair.condition(orders, right) / low)
    found: list[_Panel | None] = []
    for j in range(orders.size):
        if chord[j] or done[j]:
            line = raised[j] * slope[j], raised[j] * offset[j]
            found.append(_Panel(left, right, one if chord[j] else next(columns), True, *map(float, line)))
        else:
            found.append(None)
    return found


def _k(pair: RowPair, orders: FloatArray, log2_s: float) -> FloatArray:
    return np.logaddexp(0.0, pair.log_moments(orders, log2_s))


def _polynomials(
    pair: RowPair,
    orders: FloatArray,
    log_error: FloatArray,
    left: float,
    right: float,
    log_unit: Callable[[float], FloatArray],
) -> Iterator[FloatArray]:
    """For each order the powers of y of a bound of M / unit on the panel, shape (degree + 1,)."""
    if orders.size == 0:
        return iter(())
    y, to_coefficients, to_powers = _chebyshev()
    axis = 0.5 * (left + right) + 0.5 * (right - left) * y
    coefficients = to_coefficients @ np.exp([pair.log_moments(orders, x) - log_unit(x) for x in axis.tolist()])
    powers = to_powers @ coefficients
    rounding = 64.0 * renyi.ULP * (np.abs(to_powers) @ np.abs(coefficients)).sum(axis=0)
    powers[0] += np.exp(log_error) + rounding
    powers *= _raise(pair, orders, right)
    return iter(powers.T)


def _axes(half: float, rho: float) -> tuple[float, float]:
    """Semi-axes of the ellipse rho about a panel of log2 s: along it in its unit, and across it in radians."""
    return half * 0.5 * (rho + 1.0 / rho), half * math.log(2.0) * 0.5 * (rho - 1.0 / rho)


def _log_factor(rho: float) -> float:
    """log of the interpolation's error over the maximum on the ellipse: individuals.md#individual-panels."""
    return math.log(4.0 / (rho - 1.0)) - _DEGREE * math.log(rho)


@functools.cache
def _chebyshev() -> tuple[FloatArray, FloatArray, FloatArray]:
    """cos(pi j / n); values there to Chebyshev coefficients; these to powers: (n+1,), (n+1, n+1), (n+1, n+1)."""
    n = _DEGREE
    j = np.arange(n + 1.0)
    ends = np.where((j == 0) | (j == n), 0.5, 1.0)
    to_coefficients = 2.0 / n * np.cos(np.pi * (np.outer(j, j) % (2 * n)) / n) * np.outer(ends, ends)
    to_powers = np.zeros((n + 1, n + 1))
    for k in range(n + 1):
        column = np.polynomial.chebyshev.cheb2poly(np.eye(n + 1)[k])
        to_powers[: column.size, k] = column
    return np.cos(np.pi * j / n), to_coefficients, to_powers
