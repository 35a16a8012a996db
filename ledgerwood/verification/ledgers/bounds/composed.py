"""Compositions of many fresh draws: all losses on one lattice, from below or from above, added up under a tilt.

From below outputs are pooled, in parts where needed, until every loss is a lattice point (post-processing); from above
each output is split between the two points around it. The tilt is exponential, so that tails keep their accuracy;
rounding, and what wraps around, are taken off or added.

Masses of small kinds are convolved, which adds positive terms and rounds each by a relative amount; those of large ones
are multiplied as spectra. So thousands of kinds become a few blocks, and the work is linear in their outputs.
docs/explanation/ledger.md#verification-losses.
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.ledgers.bounds.leaves import pooled
from ledgerwood.verification.ledgers.bounds.pair import Floats, LossPair, Side
from ledgerwood.verification.ledgers.effort import spend

_BLOCK = 2048  # lattice points
_FEW = 12  # kinds that have a spectrum each without more ado
_ROUNDING = 2.0**-53


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A part that is repeated `count` times.

    Args:
        index: lattice points, ascending, shape (n,).
        mass: the mass of 1 in all, shape (n,).
        count: how many times.
        error: relative error of the masses.
    """

    index: NDArray[np.int64]
    mass: Floats
    count: int
    error: float


def blocks(parts: list[BlockPart]) -> list[BlockPart]:
    """Parts with the same product: those that stay small together are convolved."""
    if len(parts) <= _FEW:
        return parts
    kept: list[BlockPart] = []
    waiting: list[tuple[int, int, int, Floats, float]] = []  # length, number, first point, masses, relative error
    for number, part in enumerate(parts):
        first, width = int(part.index[0]), int(part.index[-1] - part.index[0])
        if part.count * width >= _BLOCK:
            kept.append(part)
            continue
        single = np.zeros(width + 1)
        single[part.index - first] = part.mass
        power, error = _power(single, part.count, part.error)
        waiting.append((power.size, number, part.count * first, power, error))
    heapq.heapify(waiting)
    number = len(parts)
    while len(waiting) > 1:
        a = heapq.heappop(waiting)
        if a[0] + waiting[0][0] > _BLOCK:
            heapq.heappush(waiting, a)
            break
        b = heapq.heappop(waiting)
        number += 1
        mass, error = _convolved(a[3], b[3], a[4] + b[4])
        heapq.heappush(waiting, (mass.size, number, a[2] + b[2], mass, error))
    for length, _, first, mass, error in waiting:
        kept.append(BlockPart(first + np.arange(length), mass, 1, error))
    return kept


def _power(mass: Floats, count: int, error: float) -> tuple[Floats, float]:
    total, total_error = mass, error
    for bit in bin(count)[3:]:
        total, total_error = _convolved(total, total, 2.0 * total_error)
        if bit == "1":
            total, total_error = _convolved(total, mass, total_error + error)
    return total, total_error


def _convolved(a: Floats, b: Floats, error: float) -> tuple[Floats, float]:
    """All terms are positive: a sum of n of them is right to (n + 1) roundings, in whatever order it is made."""
    spend(2 * a.size * b.size + 20_000)
    return np.convolve(a, b), error + (min(a.size, b.size) + 2.0) * _ROUNDING


def spectrum_product(parts: list[BlockPart], size: int) -> tuple[NDArray[np.complex128], int, Floats, float]:
    """The product of all spectra on a circle of `size` points; what its origin was moved by; bounds of its errors.

    Returns:
        The product, shape (size / 2 + 1,); the sum of the points that stand at the origin; a bound on the error of each
        value, same shape; and the sum of the relative errors that the masses came with.

    A transform of masses a adds numbers a_j w, w of modulus 1, in log2(size) rounds; in each a product and a sum round
    by less than 8 units, so each value of a spectrum s is wrong by at most d = 8 log2(size) 2^-53. A product of powers
    (s + e)^T with |e| <= d is wrong by at most prod (|s| + d)^T - prod |s|^T; angles and logarithms add their own.
    """
    half, levels = size // 2 + 1, math.log2(size)
    log_product, turns, doubt = np.zeros(half), np.zeros(half), np.zeros(half)  # turns of the circle
    centres, drift, phases = 0, 0.0, 0.0
    unit = 8.0 * levels * _ROUNDING
    for part in parts:
        spend(size * (60.0 + 3.0 * levels) + 50_000)
        centre = round(float(part.mass @ part.index) / float(part.mass.sum()))  # so that phases stay small
        spectrum = np.fft.rfft(np.bincount((part.index - centre) % size, weights=part.mass, minlength=size))
        modulus = np.maximum(np.abs(spectrum), 1e-300)
        log_product += part.count * np.log(modulus)
        turns = np.mod(turns + np.mod(part.count * (np.angle(spectrum) / (2.0 * math.pi)), 1.0), 1.0)
        doubt += part.count * np.log1p(unit / modulus)
        phases += (4.0 * part.count + 8.0) * 2.0 * math.pi * _ROUNDING
        centres += part.count * centre
        drift += part.count * part.error
    doubt += phases + 8.0 * _ROUNDING * (np.abs(log_product) + len(parts))
    product = np.exp(np.maximum(log_product, -700.0)) * np.exp(2j * math.pi * turns)
    grown = np.exp(np.minimum(log_product + doubt, 0.7))
    errors = np.where(doubt < 1.0, np.exp(log_product) * np.expm1(np.minimum(doubt, 1.0)), grown) + 1e-300
    return product, centres, np.minimum(errors, 2.0), drift


TARGET = 2e-5  # of epsilon, relative or absolute: what the lattice may change
_MOST_POINTS = 1 << 22
_WRAPPED = 2e-11  # of the tilted mass, outside of the window
_ROOM = 25.5  # -log of half of it, and a little
_GAPS = 256  # of heavy outputs, that may fall on the lattice by themselves
MASS_ERROR = 1e-12  # relative, of an output's masses before they are laid: many times what rounding adds up to
LOSS_ERROR = 1e-14  # of a loss, relative to the largest one


@dataclass(frozen=True, slots=True)
class ComposedDraws:
    """The losses of all kinds of draws in one direction, one kind after the other.

    Args:
        loss: nats, ascending in each kind, shape (n,).
        log_mass: logarithms of masses under the numerator's distribution, shape (n,).
        starts: the first output of each kind, shape (k,).
        counts: how many such draws, shape (k,).
    """

    loss: Floats
    log_mass: Floats
    starts: NDArray[np.intp]
    counts: Floats

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Outputs of each kind, shape (k,)."""
        return np.diff(np.append(self.starts, self.loss.size))

    def tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """Masses e^{tilt L}, each kind's divided by their sum, shape (n,); and the sums' logarithms, shape (k,)."""
        spend(30 * self.loss.size + 20_000)
        powers = self.log_mass + tilt * self.loss
        top = np.maximum.reduceat(powers, self.starts)
        weights = np.exp(powers - np.repeat(top, self.sizes))
        total = np.add.reduceat(weights, self.starts)
        return weights / np.repeat(total, self.sizes), top + np.log(total)

    def log_moment(self, tilt: float) -> float:
        """log E e^{tilt L} of the sum of all draws."""
        return float(self.counts @ self.tilted(tilt)[1])

    def deviation(self, tilt: float) -> float:
        """The standard deviation of the sum under the tilt."""
        weights = self.tilted(tilt)[0]
        mean = np.add.reduceat(weights * self.loss, self.starts)
        off = (self.loss - np.repeat(mean, self.sizes)) ** 2
        return math.sqrt(float(self.counts @ np.add.reduceat(weights * off, self.starts)))

    def largest(self) -> float:
        """The sum of the largest absolute losses."""
        return float(self.counts @ np.maximum.reduceat(np.abs(self.loss), self.starts))

    def top(self) -> float:
        """The largest loss of the sum."""
        return float(self.counts @ np.maximum.reduceat(self.loss, self.starts))


@dataclass(frozen=True, slots=True)
class _Laid:
    """Losses at offset + step * index, one kind after the other."""

    index: NDArray[np.int64]
    log_mass: Floats
    starts: NDArray[np.intp]
    offsets: Floats
    counts: Floats

    def on(self, step: float) -> ComposedDraws:
        sizes = np.diff(np.append(self.starts, self.index.size))
        loss = np.asarray(np.repeat(self.offsets, sizes) + step * self.index, dtype=np.float64)
        return ComposedDraws(loss, self.log_mass, self.starts, self.counts)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of all finite losses on its lattice, and what reveals everything.

    Args:
        losses: ascending, nats, shape (n,).
        mass: tilted masses, shape (n,).
        log_scale: what they were divided by, a logarithm.
        tilt: masses were multiplied by e^{tilt loss}.
        wrong: a bound on the root of the sum of squared errors of `mass`.
        drift: a bound on the sum of all other errors of the tilted masses, of 1 in all.
        log_error: a bound on the error of `log_scale`, and of the logarithms of the masses that were laid.
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
    drift: float
    log_error: float
    revealed: float
    side: Side
    rising: Floats
    falling: Floats
    norms: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`, from its side."""
        spend(4 * self.losses.size)
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
        error = self.wrong * norm + (2.0 * _WRAPPED + self.drift) * peak
        sign = 1.0 if self.side == "upper" else -1.0
        total = (found + sign * error) * (1.0 + sign * 1e-10)
        if total <= 0.0:
            return self.revealed
        log_total = math.log(total) + self.log_scale - t * epsilon
        log_total += sign * (self.log_error + 1e-14 * (abs(self.log_scale) + t * abs(epsilon)))
        return min(self.revealed + math.exp(log_total), 1.0) if log_total < 0.0 else 1.0


def added_up(
    pairs: list[tuple[LossPair, int]],
    log_delta: float,
    log_negligible: float,
    side: Side,
    remove: bool,
    target_share: float,
) -> tuple[Sum | None, ComposedDraws, float]:
    """The sum of all draws' losses in one direction, its draws, and the mass that reveals everything.

    No sum where the lattice would be too large, or where delta is revealed as it is.
    """
    draws, revealed = _directed(pairs, log_negligible, side, remove)
    revealed *= 1.0 + (1e-12 if side == "upper" else -1e-12)
    if math.log(max(revealed, 1e-320)) >= log_delta:
        return None, draws, min(revealed, 1.0)
    tilt, epsilon = saddle(draws, log_delta)
    target = target_share * max(abs(epsilon), 1.0)
    step = math.sqrt(24.0 * target / (float(draws.counts.sum()) * (tilt + 1.0)))
    most = _MOST_POINTS // max(int(np.count_nonzero(draws.counts > 64)) // 4, 1)
    widest, before = float(np.abs(draws.loss).max()), draws.log_moment(tilt)
    best: tuple[float, _Laid, float, tuple[float, float]] | None = None
    for _ in range(8):  # a finer lattice where one draw's outputs are too sparse for this one
        step = _aligned(draws, step)
        if widest > 1e15 * step:  # no float holds such a lattice point
            break
        laid = _laid(draws, step, side)
        settled = laid.on(step)
        window = _window(settled, tilt)
        points = (window[1] - window[0]) / step
        if not math.isfinite(points):
            break
        if points > most:
            step *= 2.05 * points / most  # room for an aligned step, which may be half as wide
            continue
        moved = abs(before - settled.log_moment(tilt))
        if best is None or moved < best[0]:
            best = moved, laid, step, window
        if moved <= 2.0 * target * tilt or 2.0 * points > most / 2.05:
            break
        step /= 4.0
    if best is None:
        return None, draws, min(revealed, 1.0)
    return _transformed(best[1], best[2], tilt, best[3], revealed, side), draws, min(revealed, 1.0)


def _directed(
    pairs: list[tuple[LossPair, int]], log_negligible: float, side: Side, remove: bool
) -> tuple[ComposedDraws, float]:
    losses, masses, kept_at_all = [], [], 0.0
    for pair, count in pairs:
        spend(100_000 + 20 * pair.loss.size)
        loss, log_mass, lost = pair.loss, pair.log_p, pair.lost_p
        if not remove:
            loss, log_mass, lost = -pair.loss[::-1], pair.log_q[::-1], pair.lost_q
        kept = log_mass > log_negligible - 12.0
        if side == "upper":
            lost += float(np.exp(log_mass[~kept]).sum())
        losses.append(loss[kept])
        masses.append(log_mass[kept])
        kept_at_all += count * math.log1p(-min(lost, 1.0 - 1e-16))
    starts = np.cumsum([0, *(loss.size for loss in losses[:-1])]).astype(np.intp)
    counts = np.array([float(count) for _, count in pairs])
    return ComposedDraws(np.concatenate(losses), np.concatenate(masses), starts, counts), -math.expm1(kept_at_all)


def saddle(draws: ComposedDraws, log_delta: float) -> tuple[float, float]:
    """The tilt at which (K(s) - log delta + log of the largest (1 - e^{-y}) e^{-s y}) / s is least, and its epsilon."""

    def epsilon(log_tilt: float) -> float:
        s = math.exp(log_tilt)
        peak = -s * math.log1p(1.0 / s) - math.log1p(s)
        return (draws.log_moment(s) - log_delta + peak) / s

    grid = np.linspace(math.log(1e-6), math.log(1e9), 36)
    values = [epsilon(x) for x in grid.tolist()]
    best = int(np.argmin(values))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = epsilon(left), epsilon(right)
    for _ in range(12):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = epsilon(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = epsilon(right)
    middle = left if at_left <= at_right else right
    return math.exp(middle), max(min(at_left, at_right, *values), 0.0)


def _aligned(draws: ComposedDraws, step: float) -> float:
    """A step of at most `step` on which as much as possible of the heavy outputs' losses falls by itself."""
    mass = np.exp(draws.log_mass)
    heavy = np.flatnonzero(mass > 0.02)
    if heavy.size == 0:
        return step
    kind = np.repeat(np.arange(draws.starts.size), draws.sizes)
    tops = np.maximum.reduceat(np.where(mass > 0.02, draws.loss, -math.inf), draws.starts)
    gap, weight = tops[kind[heavy]] - draws.loss[heavy], draws.counts[kind[heavy]] * mass[heavy]
    gap, weight = gap[gap > 0.0], weight[gap > 0.0]
    chosen = np.sort(np.argsort(-weight, kind="stable")[:_GAPS])
    gap, weight = gap[chosen], weight[chosen]
    if gap.size == 0:
        return step
    widths = np.unique(np.concatenate((gap, np.abs(np.diff(gap)))))
    widths = widths[widths > step / 4.0]
    exact = widths / np.ceil(widths / step)
    steps = np.concatenate((exact, step * np.linspace(1.0, 0.5, 2048))) * (1.0 + 1e-12)
    spend(10 * gap.size * steps.size)
    places = gap[:, None] / steps  # measured downward from the heaviest top: what is just above a point falls little
    off = np.ceil(places) - places
    return float(steps[int(np.argmin(weight @ (off * steps)))])


def _laid(draws: ComposedDraws, step: float, side: Side) -> _Laid:
    heavy = np.where(draws.log_mass > math.log(0.02), draws.loss, -math.inf)
    offsets = np.maximum.reduceat(heavy, draws.starts)
    offsets = np.where(np.isfinite(offsets), offsets, 0.0)
    if side == "lower":
        spend(1000 * draws.loss.size)
        ends = np.append(draws.starts[1:], draws.loss.size)
        found = [
            pooled(draws.loss[a:b], draws.log_mass[a:b], offset - 1e-9 * step, step)
            for a, b, offset in zip(draws.starts.tolist(), ends.tolist(), offsets.tolist(), strict=True)
        ]
        starts = np.cumsum([0, *(index.size for index, _ in found[:-1])]).astype(np.intp)
        index = np.concatenate([index for index, _ in found])
        # laid a little below where they were pooled, for the rounding of the pools
        lower = offsets - 2e-9 * step
        return _Laid(index, np.concatenate([mass for _, mass in found]), starts, lower, draws.counts)
    spend(300 * draws.loss.size)
    place = (draws.loss - np.repeat(offsets, draws.sizes)) / step
    below = np.floor(place)
    part = place - below  # of a step above the lower point
    width = -math.expm1(-step)
    with np.errstate(divide="ignore"):
        to_low = draws.log_mass - part * step + np.log(-np.expm1(-(1.0 - part) * step) / width)
        to_high = draws.log_mass + np.log(-np.expm1(-part * step) / width)
    kind = np.repeat(np.arange(draws.starts.size), draws.sizes)
    index = np.concatenate((below, below + 1.0)).astype(np.int64)
    kinds, log_mass = np.concatenate((kind, kind)), np.concatenate((to_low, to_high))
    order = np.lexsort((index, kinds))
    index, kinds, log_mass = index[order], kinds[order], log_mass[order]
    new = (np.diff(index, prepend=index[0] - 1) != 0) | (np.diff(kinds, prepend=-1) != 0)
    starts = np.flatnonzero(new)
    total = np.logaddexp.reduceat(log_mass, starts)
    kept = total > -math.inf
    index, kinds = index[starts][kept], kinds[starts][kept]
    firsts = np.flatnonzero(np.diff(kinds, prepend=-1))
    return _Laid(index, total[kept], firsts, offsets, draws.counts)


def _window(draws: ComposedDraws, tilt: float) -> tuple[float, float]:
    """Losses between which all but 2e-11 of the tilted sum lies, by Markov's inequality on e^{s L}."""
    centre = draws.log_moment(tilt)
    spread = draws.deviation(tilt) + 1e-300
    above: list[float] = []
    below: list[float] = []
    for s in (np.geomspace(1.0, 30.0, 12) / spread).tolist():
        above.append((draws.log_moment(tilt + s) - centre + _ROOM) / s)
        below.append(-(draws.log_moment(tilt - s) - centre + _ROOM) / s)
    return max(below), min(above)


def _transformed(
    laid: _Laid, step: float, tilt: float, window: tuple[float, float], revealed: float, side: Side
) -> Sum:
    offset = float(laid.counts @ laid.offsets)
    first = math.floor((window[0] - offset) / step) - 1  # the window's first lattice index
    size = 1 << max(math.ceil((window[1] - window[0]) / step + 3.0).bit_length(), 6)
    settled = laid.on(step)
    weights, log_sums = settled.tilted(tilt)
    ends = np.append(laid.starts[1:], laid.index.size)
    parts = [
        BlockPart(laid.index[a:b], weights[a:b], int(count), 0.0)
        for a, b, count in zip(laid.starts.tolist(), ends.tolist(), laid.counts.tolist(), strict=True)
    ]
    grouped = blocks(parts)
    product, centres, errors, drift = spectrum_product(grouped, size)
    levels = math.log2(size)
    # Parseval: half of the spectrum stands for all of it; and the rounding of the transform back
    wrong = math.sqrt(2.0 * float(errors @ errors) / size) + 8.0 * levels * _ROUNDING
    mass = np.asarray(np.roll(np.fft.irfft(product, size), -((first - centres) % size)), dtype=np.float64)
    losses = (offset + step * first) + step * np.arange(size, dtype=np.float64)
    # relative errors of the tilted masses, by the sizes of the exponents that were rounded
    exponents = np.abs(laid.log_mass) + abs(tilt) * np.abs(settled.loss)
    own = np.add.reduceat(weights * (8.0 + 4.0 * exponents), laid.starts) * _ROUNDING
    drift = math.expm1(min(drift + float(laid.counts @ own), 600.0)) + 2.0 * size * _ROUNDING
    log_error = float(laid.counts @ (4.0 * _ROUNDING * (np.abs(log_sums) + 1.0) + MASS_ERROR))
    y = step * np.arange(size)
    rising, falling = np.exp(-tilt * y), np.exp(-(tilt + 1.0) * y)
    rising = rising * -np.expm1(-y)
    norms = math.sqrt(float(rising @ rising)), math.sqrt(float(falling @ falling))
    log_scale = float(laid.counts @ log_sums)
    return Sum(losses, mass, log_scale, tilt, wrong, drift, log_error, revealed, side, rising, falling, norms)
