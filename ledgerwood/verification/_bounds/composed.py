"""Many fresh draws: all losses laid on one lattice, from below or from above, and added up by one Fourier transform.

From below outputs are pooled, in parts where needed, until every loss is a lattice point (post-processing); from above
each output is split between the two points around it. The sum is made under an exponential tilt, so that tails keep
their accuracy; rounding, and what wraps around, are taken off or added. docs/explanation/ledger.md#verification-losses.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification._bounds.pair import Floats, LossPair, Side
from ledgerwood.verification._bounds.pooling import pooled

TARGET = 2e-5  # of epsilon, relative or absolute: what the lattice may change
_MOST_POINTS = 1 << 22
_MOST_TOGETHER = 1 << 24  # of all kinds' spectra
_ROUNDING = 2.0**-53
_WRAPPED = 2e-11  # of the tilted mass, outside of the window


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw's losses in one direction.

    Args:
        loss: nats, ascending, shape (n,).
        log_mass: logarithms of masses under the numerator's distribution, shape (n,).
        lost: mass at an infinite loss.
        count: how many such draws.
    """

    loss: Floats
    log_mass: Floats
    lost: float
    count: int

    def log_moment(self, tilt: float) -> float:
        """log E e^{tilt L}."""
        powers = self.log_mass + tilt * self.loss
        top = float(powers.max())
        return top + math.log(float(np.exp(powers - top).sum()))

    def mean(self, tilt: float) -> float:
        """The mean of the losses under the tilt."""
        return self._moments(tilt)[0]

    def variance(self, tilt: float) -> float:
        """Their variance."""
        return self._moments(tilt)[1]

    def _moments(self, tilt: float) -> tuple[float, float]:
        powers = self.log_mass + tilt * self.loss
        weights = np.exp(powers - powers.max())
        total = float(weights.sum())
        mean = float(weights @ self.loss) / total
        return mean, float(weights @ (self.loss - mean) ** 2) / total


@dataclass(frozen=True, slots=True)
class _Laid:
    """One draw's losses at offset + step * index."""

    index: NDArray[np.int64]
    log_mass: Floats
    offset: float
    count: int

    def on(self, step: float) -> Draw:
        return Draw(np.asarray(self.offset + step * self.index, dtype=np.float64), self.log_mass, 0.0, self.count)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of all finite losses on its lattice, and what reveals everything.

    Args:
        losses: ascending, nats, shape (n,).
        mass: tilted masses, shape (n,).
        log_scale: what they were divided by, a logarithm.
        tilt: masses were multiplied by e^{tilt loss}.
        wrong: a bound on the root of the sum of squared errors of `mass`.
        slack: relative error of everything else.
        revealed: mass at an infinite loss.
        side: whether errors are taken off or added.
        rising: e^{-tilt k h} (1 - e^{-k h}) for k steps h, shape (n,).
        falling: e^{-(tilt + 1) k h}, shape (n,).
        norms: roots of the sums of squares of these two.
    """

    losses: Floats
    mass: Floats
    log_scale: float
    tilt: float
    wrong: float
    slack: float
    revealed: float
    side: Side
    rising: Floats
    falling: Floats
    norms: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`, from its side."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        count = self.losses.size - first
        t, found, norm = self.tilt, 0.0, 0.0
        if count:
            y = float(self.losses[first]) - epsilon  # of the first loss; that of the k-th is k steps more
            mass, scale = self.mass[first:], math.exp(-t * y)
            found = scale * float(mass @ self.rising[:count] - math.expm1(-y) * (mass @ self.falling[:count]))
            norm = scale * (self.norms[0] - math.expm1(-y) * self.norms[1])
        # the largest value that any loss may have, on the lattice or beyond it
        peak = math.exp(-t * math.log1p(1.0 / t)) / (t + 1.0)
        error = self.wrong * norm + 2.0 * _WRAPPED * peak
        sign = 1.0 if self.side == "upper" else -1.0
        total = (found + sign * error) * (1.0 + sign * self.slack)
        if total <= 0.0:
            return self.revealed
        log_total = math.log(total) + self.log_scale - t * epsilon
        log_total += sign * 1e-14 * (abs(self.log_scale) + t * abs(epsilon))
        return min(self.revealed + math.exp(log_total), 1.0) if log_total < 0.0 else 1.0


def added_up(
    pairs: list[tuple[LossPair, int]],
    log_delta: float,
    log_negligible: float,
    side: Side,
    remove: bool,
    target_share: float,
) -> tuple[Sum | None, list[Draw], float]:
    """The sum of all draws' losses in one direction, its draws, and the mass that reveals everything.

    No sum where the lattice would be too large, or where delta is revealed as it is.
    """
    draws = [_directed(pair, count, log_negligible, side, remove) for pair, count in pairs]
    revealed = -math.expm1(sum(draw.count * math.log1p(-min(draw.lost, 1.0 - 1e-16)) for draw in draws))
    revealed *= 1.0 + (1e-12 if side == "upper" else -1e-12)
    if math.log(max(revealed, 1e-320)) >= log_delta:
        return None, draws, min(revealed, 1.0)
    tilt, epsilon = saddle(draws, log_delta)
    total = sum(draw.count for draw in draws)
    target = target_share * max(abs(epsilon), 1.0)
    step = math.sqrt(24.0 * target / (total * (tilt + 1.0)))
    most = min(_MOST_POINTS, _MOST_TOGETHER // len(draws))
    best: tuple[float, list[_Laid], float, tuple[float, float]] | None = None
    for _ in range(8):  # a finer lattice where one draw's outputs are too sparse for this one
        step = _aligned(draws, step)
        if max(float(np.abs(draw.loss).max()) for draw in draws) > 1e15 * step:  # no float holds such a lattice point
            break
        laid = [_lay(draw, step, side) for draw in draws]
        settled = [item.on(step) for item in laid]
        window = _window(settled, tilt)
        points = (window[1] - window[0]) / step
        if not math.isfinite(points):
            break
        if points > most:
            step *= 2.05 * points / most  # room for an aligned step, which may be half as wide
            continue
        moved = abs(
            sum(d.count * (d.log_moment(tilt) - e.log_moment(tilt)) for d, e in zip(draws, settled, strict=True))
        )
        if best is None or moved < best[0]:
            best = moved, laid, step, window
        if moved <= 2.0 * target * tilt or 2.0 * points > most / 2.05:
            break
        step /= 4.0
    if best is None:
        return None, draws, min(revealed, 1.0)
    return _transformed(best[1], best[2], tilt, best[3], revealed, side), draws, min(revealed, 1.0)


def _directed(pair: LossPair, count: int, log_negligible: float, side: Side, remove: bool) -> Draw:
    loss, log_mass, lost = pair.loss, pair.log_p, pair.lost_p
    if not remove:
        loss, log_mass, lost = -pair.loss[::-1], pair.log_q[::-1], pair.lost_q
    kept = log_mass > log_negligible - 12.0
    if side == "upper":
        lost += float(np.exp(log_mass[~kept]).sum())
    return Draw(loss[kept], log_mass[kept], min(lost, 1.0), count)


def saddle(draws: list[Draw], log_delta: float) -> tuple[float, float]:
    """The tilt at which (K(s) - log delta + log of the largest (1 - e^{-y}) e^{-s y}) / s is least, and its epsilon."""

    def epsilon(log_tilt: float) -> float:
        s = math.exp(log_tilt)
        peak = -s * math.log1p(1.0 / s) - math.log1p(s)
        return (sum(draw.count * draw.log_moment(s) for draw in draws) - log_delta + peak) / s

    grid = np.linspace(math.log(1e-6), math.log(1e9), 70)
    values = [epsilon(x) for x in grid.tolist()]
    best = int(np.argmin(values))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    for _ in range(24):
        left, right = low + 0.382 * (high - low), high - 0.382 * (high - low)
        low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
    middle = 0.5 * (low + high)
    return math.exp(middle), max(min(epsilon(middle), *values), 0.0)


def _aligned(draws: list[Draw], step: float) -> float:
    """A step of at most `step` on which as much as possible of the heavy outputs' losses falls by itself."""
    gaps, weights = [], []
    for draw in draws:
        mass = np.exp(draw.log_mass)
        heavy = np.flatnonzero(mass > 0.02)[-64:]
        gaps.append(draw.loss[heavy[-1]] - draw.loss[heavy] if heavy.size else np.zeros(0))
        weights.append(draw.count * mass[heavy])
    gap, weight = np.concatenate(gaps), np.concatenate(weights)
    gap, weight = gap[gap > 0.0], weight[gap > 0.0]
    if gap.size == 0:
        return step
    widths = np.unique(np.concatenate((gap, np.abs(np.diff(gap)))))
    widths = widths[widths > step / 4.0]
    exact = widths / np.ceil(widths / step)
    steps = np.concatenate((exact, step * np.linspace(1.0, 0.5, 2048))) * (1.0 + 1e-12)
    places = gap[:, None] / steps  # measured downward from the heaviest top: what is just above a point falls little
    off = np.ceil(places) - places
    return float(steps[int(np.argmin(weight @ (off * steps)))])


def _lay(draw: Draw, step: float, side: Side) -> _Laid:
    heavy = np.flatnonzero(np.exp(draw.log_mass) > 0.02)
    offset = float(draw.loss[heavy[-1]]) if heavy.size else 0.0
    if side == "lower":
        index, log_mass = pooled(draw.loss, draw.log_mass, offset - 1e-9 * step, step)
        return _Laid(index, log_mass, offset - 1e-9 * step, draw.count)
    place = (draw.loss - offset) / step
    below = np.floor(place)
    part = place - below  # of a step above the lower point
    width = -math.expm1(-step)
    with np.errstate(divide="ignore"):
        to_low = draw.log_mass - part * step + np.log(-np.expm1(-(1.0 - part) * step) / width)
        to_high = draw.log_mass + np.log(-np.expm1(-part * step) / width)
    index = np.concatenate((below, below + 1.0)).astype(np.int64)
    log_mass = np.concatenate((to_low, to_high))
    order = np.argsort(index, kind="stable")
    index, log_mass = index[order], log_mass[order]
    starts = np.flatnonzero(np.diff(index, prepend=index[0] - 1))
    total = np.logaddexp.reduceat(log_mass, starts)
    kept = total > -math.inf
    return _Laid(index[starts][kept], total[kept], offset, draw.count)


def _window(draws: list[Draw], tilt: float) -> tuple[float, float]:
    """Losses between which all but 2e-11 of the tilted sum lies, by Markov's inequality on e^{s L}."""
    centre = sum(draw.count * draw.log_moment(tilt) for draw in draws)
    spread = math.sqrt(sum(draw.count * draw.variance(tilt) for draw in draws)) + 1e-300
    above: list[float] = []
    below: list[float] = []
    for s in (np.geomspace(1.0, 30.0, 12) / spread).tolist():
        grown = sum(draw.count * draw.log_moment(tilt + s) for draw in draws) - centre
        shrunk = sum(draw.count * draw.log_moment(tilt - s) for draw in draws) - centre
        above.append((grown + 25.3) / s)
        below.append(-(shrunk + 25.3) / s)
    return max(below), min(above)


def _transformed(
    laid: list[_Laid], step: float, tilt: float, window: tuple[float, float], revealed: float, side: Side
) -> Sum:
    offset = sum(item.count * item.offset for item in laid)
    first = math.floor((window[0] - offset) / step) - 1  # the window's first lattice index
    size = 1 << max(math.ceil((window[1] - window[0]) / step + 3.0).bit_length(), 6)
    log_scale, draws, centres, levels = 0.0, 0, 0, math.log2(size)
    log_product = np.zeros(size // 2 + 1)
    turns = np.zeros(size // 2 + 1)  # of the circle
    doubt = np.zeros(size // 2 + 1)
    for item in laid:
        powers = item.log_mass + tilt * (item.offset + step * item.index)
        top = float(powers.max())
        weights = np.exp(powers - top)
        whole = float(weights.sum())
        log_scale += item.count * (top + math.log(whole))
        draws += item.count
        centre = round(float(weights @ item.index) / whole)  # so that phases stay small
        spectrum = np.fft.rfft(np.bincount((item.index - centre) % size, weights=weights / whole, minlength=size))
        modulus = np.maximum(np.abs(spectrum), 1e-300)
        log_product += item.count * np.log(modulus)
        turns = np.mod(turns + np.mod(item.count * (np.angle(spectrum) / (2.0 * math.pi)), 1.0), 1.0)
        doubt += item.count * (4.0 * levels * _ROUNDING) / modulus
        centres += item.count * centre
    product = np.exp(np.maximum(log_product, -700.0)) * np.exp(2j * math.pi * turns)
    errors = np.minimum(np.abs(product) * doubt, 1.0)
    wrong = float(np.sqrt(np.mean(errors**2))) + 8.0 * levels * _ROUNDING
    mass = np.roll(np.fft.irfft(product, size), -((first - centres) % size))
    losses = (offset + step * first) + step * np.arange(size)
    slack = 1e-10 + 40.0 * _ROUNDING * draws
    y = step * np.arange(size)
    rising, falling = np.exp(-tilt * y), np.exp(-(tilt + 1.0) * y)
    rising = rising * -np.expm1(-y)
    norms = math.sqrt(float(rising @ rising)), math.sqrt(float(falling @ falling))
    return Sum(losses, mass, log_scale, tilt, wrong, slack, revealed, side, rising, falling, norms)
