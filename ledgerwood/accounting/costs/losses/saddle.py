"""Sums of independent losses, by products of their spectra, and the choice of the grid, window and tilt of such a sum.

* `compose` bounds all that was rounded, wrapped around and cut off: docs/explanation/pld.md#loss-composition.
* The choice rests on a coarse model of a plan's losses and its saddle points. It is not certified and enters no bound:
  a bad choice only makes a bound wider. docs/explanation/pld.md#choices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses.lattice import ULP, Indices, Law, hull, lowered, lowering
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.errors import UnsupportedEvent

NODES = np.concatenate(([0.0], np.geomspace(1e-13, 1e7, 481)))
_MOST_PER_FOLD = 4096.0
_LOG_TILTS = (math.log(1e-6), math.log(1e9))


@dataclass(frozen=True, slots=True)
class Sides:
    """An event's log profile at `NODES`: as asked for (remove or add), and the other way round."""

    ahead: FloatArray
    back: FloatArray

    def turned(self) -> "Sides":
        return Sides(self.back, self.ahead)


@dataclass(frozen=True, slots=True)
class Model:
    """Atoms of one draw's privacy loss (nats) and the logarithms of their mass under P."""

    losses: FloatArray
    log_mass: FloatArray

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """log E e^{tilt L}, and mean and variance of the loss under that tilt."""
        powers = self.log_mass + tilt * self.losses
        top = float(powers.max())
        weights = np.exp(powers - top)
        total = float(weights.sum())
        mean = float(weights @ self.losses) / total
        variance = float(weights @ (self.losses - mean) ** 2) / total
        return top + math.log(total), mean, variance


@dataclass(frozen=True, slots=True)
class SaddlePoint:
    """A point of the curve by the saddle point of its inversion integral.

    Args:
        tilt: > 0, the exponent under which losses near `epsilon` are typical.
        epsilon: nats; may be below 0.
        log_delta: natural logarithm.
        variance: the variance of the whole plan's loss under the tilt, nats squared.
    """

    tilt: float
    epsilon: float
    log_delta: float
    variance: float


def sides(event: Event) -> Sides:
    """Both directions of the event's profile at the nodes."""
    return Sides(
        event.log_profile(NODES, direction=Direction.REMOVE), event.log_profile(NODES, direction=Direction.ADD)
    )


def model(found: Sides, log_lost: float = -math.inf) -> Model:
    """Connect the dots between the nodes; what lies where the profile is at most exp(log_lost) is left out.

    It is left out because a lattice sends it to infinity: unbounded, it may rule every moment and yet no privacy cost.
    """
    ahead, back = _masses(found.ahead), _masses(found.back)
    x = NODES[1:]
    centre = max(1.0 - float(ahead.sum()) - float((back * np.exp(-x)).sum()), 1e-300)
    with np.errstate(divide="ignore"):
        logs = np.concatenate(((np.log(back) - x)[::-1], [math.log(centre)], np.log(ahead)))
        logs[len(x) + 1 :][found.ahead[:-1] <= log_lost] = -np.inf
    losses = np.concatenate((-x[::-1], NODES))
    kept = np.isfinite(logs)
    # The differences at the smallest nodes are rounding noise, whose sum must not count as mass.
    return Model(losses[kept], logs[kept] - float(np.logaddexp.reduce(logs[kept])))


def _masses(log_profile: FloatArray) -> FloatArray:
    """P mass at the nodes beyond 0, shape (k - 1,)."""
    h = np.exp(log_profile)
    falls = np.append(h[:-1] - h[1:], 0.0)
    widths = np.append(np.diff(NODES), 1.0)
    with np.errstate(over="ignore"):
        masses = falls[:-1] / -np.expm1(-widths[:-1]) - falls[1:] / np.expm1(widths[1:])
    return np.asarray(np.maximum(masses, 0.0))


def grid(models: list[tuple[Model, int]], tilt: float, room: float) -> tuple[float, float]:
    """A lattice step (nats), and how many dots per factor e of the loss, that add variance `room` each under the tilt.

    Connecting dots at distance d adds about d^2 / 6 for a loss between them, or |loss| d for one much nearer 0 than d.
    """
    sizes, weights = [], []
    for item, count in models:
        powers = item.log_mass + tilt * item.losses
        shares = np.exp(powers - powers.max())
        sizes.append(np.abs(item.losses))
        weights.append(count * shares / shares.sum())
    size, weight = np.concatenate(sizes), np.concatenate(weights)

    def added(step: float) -> float:
        return float((weight * np.minimum(size * step, step * step / 6.0)).sum())

    low, high = -40.0, 20.0
    for _ in range(26):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if added(math.exp(middle)) > room else (middle, high)
    squares = float((weight * size * size).sum())
    return math.exp(low), min(max(math.sqrt(squares / (6.0 * room)), 24.0), _MOST_PER_FOLD)


def point_at_tilt(models: list[tuple[Model, int]], log_tilt: float) -> SaddlePoint:
    """The point whose saddle is at exp(log_tilt)."""
    tilt = math.exp(log_tilt)
    total, mean, variance = 0.0, 0.0, 0.0
    for item, count in models:
        log_moment, one_mean, one_variance = item.moments(tilt)
        total, mean, variance = total + count * log_moment, mean + count * one_mean, variance + count * one_variance
    epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt)
    curvature = variance + 1.0 / tilt**2 + 1.0 / (1.0 + tilt) ** 2
    height = total - tilt * epsilon - math.log(tilt) - math.log1p(tilt)
    return SaddlePoint(tilt, epsilon, height - 0.5 * math.log(2.0 * math.pi * curvature), variance)


def point_at_delta(models: list[tuple[Model, int]], log_delta: float) -> SaddlePoint:
    """The point of the curve at `log_delta`, or, where that is reached below epsilon 0, the one at 0."""
    found = _solve(models, lambda point: point.log_delta > log_delta)
    # Exactly 0: what the search leaves around it is noise, and has no order.
    return found if found.epsilon > 0.0 else replace(point_at_epsilon(models, 0.0), epsilon=0.0)


def point_at_epsilon(models: list[tuple[Model, int]], epsilon: float) -> SaddlePoint:
    """The point of the curve at `epsilon` >= 0."""
    return _solve(models, lambda point: point.epsilon < epsilon)


def _solve(models: list[tuple[Model, int]], before: Callable[[SaddlePoint], bool]) -> SaddlePoint:
    low, high = _LOG_TILTS
    found = point_at_tilt(models, 0.5 * (low + high))
    for _ in range(44):
        middle = 0.5 * (low + high)
        found = point_at_tilt(models, middle)
        if before(found):
            low = middle
        else:
            high = middle
        if high - low < 1e-5:
            break
    return found


_FFT_ROUNDING = 16.0 * ULP  # per level of butterflies, relative to the sum of the absolute inputs: #transform
_NEGLIGIBLE = -46.0  # logarithm of spectrum values that are left out, and counted as error
_MARKOV = np.geomspace(0.03, 40.0, 18)  # the least for rare hits, far wider than the deviation
_LEFT = np.array([0.25, 0.5, 0.75, 1.0])
_AT_ONCE = 1 << 16  # exponentials


def window(parts: list[tuple[Law, int]], deviation: float, log_outside: float) -> tuple[int, int]:
    """Lattice indices (first, last) beyond which the composed tilted mass is at most exp(log_outside) on each side.

    By Markov's inequality on exp(s * loss), for the best of some s on the scale of `deviation` (nats).
    """
    step = parts[0][0].step
    with np.errstate(divide="ignore"):
        logs = [(np.log(law.mass), np.asarray(law.index * step, np.float64), count) for law, count in parts]
    ends: list[int] = []
    for sign in (1, -1):
        best = math.inf
        # On the left, an exponent up to 1 + tilt leaves a finite moment whatever the law.
        scales = _MARKOV / deviation if sign > 0 else np.append(_MARKOV / deviation, (1.0 + parts[0][0].tilt) * _LEFT)
        log_sums = [_log_sums(log_mass, losses, sign * scales) for log_mass, losses, _ in logs]
        for place, s in enumerate(scales.tolist()):
            log_moment = sum(count * own[place] for own, (_, _, count) in zip(log_sums, logs, strict=True))
            best = min(best, (log_moment - log_outside) / s)
        extreme = sum(count * int((sign * law.index).max()) for law, count in parts)
        ends.append(min(math.ceil(best / step) + 1, extreme) if math.isfinite(best) else extreme)
    return -ends[1], ends[0]


def _log_sums(log_mass: FloatArray, losses: FloatArray, scales: FloatArray) -> list[float]:
    """log of the sum of mass e^{scale loss} for each scale, rounded up."""
    found: list[float] = []
    at_once = max(1, _AT_ONCE // len(losses))
    for begin in range(0, len(scales), at_once):
        powers = log_mass + scales[begin : begin + at_once, np.newaxis] * losses
        tops = powers.max(axis=1)
        totals = np.exp(powers - tops[:, np.newaxis]).sum(axis=1)
        for top, total in zip(tops.tolist(), totals.tolist(), strict=True):
            found.append(top + math.log(total) + 16.0 * ULP * (200.0 + abs(top)))
    return found


def compose(parts: list[tuple[Law, int]], first: int, last: int, log_outside: float, *, above: bool = True) -> Law:
    """The distribution of the sum of all losses, on the indices from `first` to `last` or beyond.

    `log_outside` is what `window` was asked for; errors of the spectrum are added up as squares. Every constant is
    derived in docs/explanation/pld.md#loss-rounding.
    """
    step, tilt = parts[0][0].step, parts[0][0].tilt
    size = 1 << (last - first).bit_length()  # a power of two: the transform's error is proven for radix 2 and 4
    levels = size.bit_length() + 1.0
    half = size // 2 + 1
    log_size, angle, relative = np.zeros(half), np.zeros(half), np.zeros(half)
    log_scale, growth, log_finite, log_whole, error, sizes_of_scales = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for law, count in parts:
        place = law.index % size
        crowd = int(np.bincount(place).max())
        # numpy's transform, since scipy's back end may be exchanged.
        spectrum = np.fft.rfft(np.bincount(place, weights=law.mass, minlength=size))
        noise = _FFT_ROUNDING * levels + ULP * crowd
        # At least the modulus of the exact spectrum, so that differences of powers are at most count times as large.
        largest = np.minimum(np.abs(spectrum) + noise, 1.0 + noise)
        log_size += count * np.log(largest)
        angle += np.mod(count * np.angle(spectrum), 2.0 * math.pi)
        relative += count * (2.0 * noise / largest + 16.0 * ULP)
        log_scale += count * law.log_scale
        sizes_of_scales += count * (abs(law.log_scale) + 1.0)
        growth += count * law.growth
        log_finite += count * math.log1p(-min(law.infinite, 1.0 - ULP))
        log_whole += count * law.log_whole
        error += count * (law.error + 32.0 * ULP)
    relative += 64.0 * ULP * (1 + len(parts)) ** 2
    kept = log_size > _NEGLIGIBLE
    product = np.zeros(half, dtype=np.complex128)
    sizes = np.exp(log_size[kept])
    product[kept] = sizes * np.exp(1j * angle[kept])
    rounding = _total(sizes * np.minimum(relative[kept], 2.1))
    rounding += 2.1 * math.exp(_NEGLIGIBLE) * (half - int(kept.sum()))
    rounding += _FFT_ROUNDING * levels * _total(sizes)
    mass = np.maximum(np.roll(np.fft.irfft(product, size), -(first % size)), 0.0)
    error = math.expm1(min(error, 700.0)) + 2.02 * rounding + 4.04 * math.exp(log_outside)
    index = np.arange(first, first + size)
    growth += (32.0 + len(parts)) * ULP * sizes_of_scales
    infinite = (
        1.0
        if any(law.infinite >= 1.0 for law, _ in parts)
        else -math.expm1(log_finite) * (1.0 + (1e-9 if above else -1e-9))
    )
    return Law(step, tilt, index, mass, log_scale, infinite, log_whole, error, growth)


def _total(errors: FloatArray) -> float:
    """Half of what errors of half a spectrum may add up to in the masses. docs/explanation/pld.md#loss-rounding."""
    return math.sqrt(0.5 * float((errors * errors).sum()))


def trim(law: Law, most: float) -> Law:
    """The distribution without its outermost masses, of sum at most `most` on each side, which become error."""
    total = np.cumsum(law.mass)
    first = int(np.searchsorted(total, most))
    last = len(total) - int(np.searchsorted(np.cumsum(law.mass[::-1]), most))
    return _with(law, law.index[first:last], law.mass[first:last], law.error + 2.02 * most)


def coarsen(law: Law, factor: int, *, above: bool) -> Law:
    """The distribution on a lattice `factor` times as wide: a dominating one (`above`), or a dominated one.

    Args:
        law: on consecutive indices.
        factor: a power of two, so that the new step is exact.
        above: which of the two.
    """
    step, tilt = law.step * factor, law.tilt
    low = np.floor_divide(law.index, factor)
    beyond = (law.index - low * factor) * law.step
    share = np.expm1(-beyond) / math.expm1(-step)
    start = int(low[0])
    size = int(low[-1]) - start + 2
    mass: FloatArray = np.asarray(
        np.bincount(low - start, weights=law.mass * (1.0 - share) * np.exp(-tilt * beyond), minlength=size).astype(
            np.float64
        )
    )
    mass += np.bincount(low - start + 1, weights=law.mass * share * np.exp(tilt * (step - beyond)), minlength=size)
    index = np.arange(start, start + size)
    # A mass that is misplaced on the fine lattice grows by at most e^{tilt step} on its way to the dots of the coarse.
    error = law.error * math.exp(min(tilt * step, 700.0)) + (2.0 * factor + 32.0 + 16.0 * tilt * step) * ULP
    if not above:
        drop = lowering(index, mass, step, tilt)
        mass, moved = hull(index, lowered(index, mass, drop, step, tilt), step, tilt)
        # The last dots are on the ground already: that they cannot fall misplaces at most what their falls would move.
        error += 4.0 * moved + 4.0 * float(drop[-2:].sum()) / -math.expm1(-step)
    return _with(replace(law, step=step), index, mass, error)


def _with(law: Law, index: Indices, mass: FloatArray, error: float) -> Law:
    """The distribution with other masses, scaled to a sum of 1; the error keeps its absolute size or grows."""
    total = float(mass.sum())
    if not total > 0.0:
        raise UnsupportedEvent("the plan's losses span too many scales for one lattice: a block has no mass left")
    scale = law.log_scale + math.log(total)
    error = error / min(total, 1.0) * (1.0 + 1e-9) + 64.0 * ULP
    return replace(law, index=index, mass=mass / total, log_scale=scale, error=error)
