"""A lower bound on delta for a plan of fresh draws, by code that shares nothing with `ledgerwood.accounting`.

Each draw's pair is binned (_binned.py), which is post-processing; then neighbouring outputs are pooled, in parts where
needed, until every loss lies on one lattice, which is post-processing too. What is left is exact on the lattice: the
losses are added up by one FFT in float64 under an exponential tilt, and the rounding is taken off.
docs/explanation/ledger.md#verification-losses.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification._atoms import Number, mpf
from ledgerwood.verification._binned import Binned, Floats, binned
from ledgerwood.verification._pairs import Gaussian, Node, hockey_stick, mu_squared
from ledgerwood.verification._pairs.combined import Several

_TARGET = 1e-5  # of epsilon, relative or absolute: what the lattice may lose
_MOST_PARTS = 64
_MOST_DRAWS = 10**10  # of one kind; fewer draws are dominated by more
_MOST_POINTS = 1 << 22
_ROUNDING = 2.0**-53


@dataclass(frozen=True, slots=True)
class _Draw:
    """One draw's losses in one direction: logarithms of masses under the numerator's law, losses ascending."""

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
        powers = self.log_mass + tilt * self.loss
        weights = np.exp(powers - powers.max())
        return float(weights @ self.loss) / float(weights.sum())


@dataclass(frozen=True, slots=True)
class _Laid:
    """One draw's losses at offset + step * index."""

    index: NDArray[np.int64]
    log_mass: Floats
    offset: float
    count: int

    def on(self, step: float) -> _Draw:
        return _Draw(np.asarray(self.offset + step * self.index, dtype=np.float64), self.log_mass, 0.0, self.count)


def least_delta(node: Node, epsilon: float, delta: float) -> Number:
    """A lower bound on the larger direction of the node's delta at `epsilon`; `delta` > 0 sets what is negligible.

    The exact profile where there is one. Else a composed bound, and the largest single draw where that finds less.

    Raises:
        ValueError: a draw has no profile, so that nothing can be said of its losses.
    """
    parts = node.parts if isinstance(node, Several) else ((node, 1),)
    single = len(parts) == 1 and parts[0][1] == 1
    if single and (exact := _exact(node, epsilon)) is not None:
        return exact
    composed = _composed(Several(tuple(parts)), epsilon, delta)
    if composed > 0.0 or single:
        return mpf(composed)
    found = [_exact(part, epsilon) for part, _ in parts[:_MOST_PARTS]]
    return max((value for value in found if value is not None), default=mpf(0))


def _exact(part: Node, epsilon: float) -> Number | None:
    try:
        return hockey_stick(part, mpf(epsilon))
    except ValueError:  # a draw that is a composition in itself
        return None


@functools.lru_cache(maxsize=64)
def _composed(node: Several, epsilon: float, delta: float) -> float:
    counts: dict[Node, int] = {}
    square = mpf(0)
    for part, count in node.parts[: 4 * _MOST_PARTS]:
        own = mu_squared(part)
        if own is None:
            counts[part] = counts.get(part, 0) + count
        else:
            square += own * count
    if square > 0:
        counts[Gaussian(square)] = 1
    total = sum(min(count, _MOST_DRAWS) for count in counts.values())
    log_negligible = max(math.log(delta) - math.log(total) - 14.0, -740.0)
    pairs: list[tuple[Binned, int]] = []
    for part, count in list(counts.items())[:_MOST_PARTS]:
        pair = binned(part, log_negligible)
        if pair is not None:
            pairs.append((pair, min(count, _MOST_DRAWS)))
    if not pairs:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not finite, and ends with no bound at all
        return max(_one_direction(pairs, epsilon, log_negligible, remove) for remove in (True, False))


def _one_direction(pairs: list[tuple[Binned, int]], epsilon: float, log_negligible: float, remove: bool) -> float:
    draws = [_directed(pair, count, log_negligible, remove) for pair, count in pairs]
    revealed = -math.expm1(sum(draw.count * math.log1p(-draw.lost) for draw in draws))
    if epsilon >= sum(draw.count * float(draw.loss[-1]) for draw in draws):
        return revealed
    tilt = _saddle(draws, epsilon)
    total = sum(draw.count for draw in draws)
    target = _TARGET * max(epsilon, 1.0)
    step = math.sqrt(24.0 * target / (total * (tilt + 1.0)))
    most = _MOST_POINTS // max(1, len(draws) // 2)  # of all spectra together
    best: tuple[float, list[_Laid], float, tuple[float, float]] | None = None
    for _ in range(8):  # a finer lattice where one draw's outputs are too sparse for this one
        step = _aligned(draws, step)
        if max(float(np.abs(draw.loss).max()) for draw in draws) > 1e15 * step:  # no float holds such a lattice point
            break
        laid = [_lay(draw, step) for draw in draws]
        settled = [item.on(step) for item in laid]
        window = _window(settled, tilt)
        points = (window[1] - window[0]) / step
        if not math.isfinite(points):
            break
        if points > most:
            step *= 2.05 * points / most  # room for an aligned step, which may be half as wide
            continue
        moved = sum(d.count * (d.log_moment(tilt) - e.log_moment(tilt)) for d, e in zip(draws, settled, strict=True))
        if best is None or moved < best[0]:
            best = moved, laid, step, window
        if moved <= 2.0 * target * tilt or 2.0 * points > most / 2.05:
            break
        step /= 4.0
    if best is None:
        return revealed
    return min(revealed + _added_up(*best[1:3], tilt, best[3], epsilon), 1.0)


def _directed(pair: Binned, count: int, log_negligible: float, remove: bool) -> _Draw:
    loss, log_mass, lost = pair.loss, pair.log_p, pair.lost_p
    if not remove:
        loss, log_mass, lost = -pair.loss[::-1], pair.log_q[::-1], pair.lost_q
    kept = log_mass > log_negligible - 12.0
    return _Draw(loss[kept], log_mass[kept], lost, count)


def _saddle(draws: list[_Draw], epsilon: float) -> float:
    """The tilt at which e^{K(s) - s epsilon} / (s (s + 1)) is least: there the losses that count are typical."""
    low, high = 1e-6, 1e9
    for _ in range(60):
        tilt = math.sqrt(low * high)
        mean = sum(draw.count * draw.mean(tilt) for draw in draws)
        low, high = (tilt, high) if mean - 1.0 / tilt - 1.0 / (tilt + 1.0) < epsilon else (low, tilt)
    return low


def _aligned(draws: list[_Draw], step: float) -> float:
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


def _lay(draw: _Draw, step: float) -> _Laid:
    """Outputs pooled, from the top down, until each pool's loss is a lattice point.

    A pool at the lattice point x has sum of masses * (1 - e^{x - loss}) = 0. An output may be shared between pools.
    """
    mass, loss = np.exp(draw.log_mass - draw.log_mass.max()), draw.loss
    heavy = np.flatnonzero(np.exp(draw.log_mass) > 0.02)
    offset = float(loss[heavy[-1]]) - 1e-9 * step if heavy.size else 0.0
    pooled: dict[int, float] = {}
    _sweep(mass[::-1].tolist(), loss[::-1].tolist(), offset, step, pooled)
    found = np.array(sorted(pooled), dtype=np.int64)
    return _Laid(found, np.log([pooled[k] for k in found.tolist()]) + draw.log_mass.max(), offset, draw.count)


def _sweep(masses: list[float], losses: list[float], offset: float, step: float, pooled: dict[int, float]) -> None:
    index, pool, balance = 0, 0.0, 0.0
    for mass, loss in zip(masses, losses, strict=True):
        left = mass
        if pool > 0.0:
            excess = math.expm1(min(offset + index * step - loss, 700.0))
            if excess <= 0.0 or balance > left * excess:
                pool += left
                balance -= left * excess
                continue
            part = balance / excess
            pooled[index] = pooled.get(index, 0.0) + pool + part
            left -= part
            pool = 0.0
        if left > 0.0:  # a new pool, at the lattice point below its first loss
            index = math.floor((loss - offset) / step)
            pool, balance = left, -left * math.expm1(offset + index * step - loss)
    if pool > 0.0:
        _finish(index, pool, balance, step, pooled)


def _finish(index: int, pool: float, balance: float, step: float, pooled: dict[int, float]) -> None:
    """The last pool, which nothing from below completes, at a loss between two lattice points.

    It rises to the upper one by what it borrows from other pools, or falls to the lower one, as costs less.
    """
    rise = -math.expm1(-step)
    needed = (pool - balance) * math.exp(step) - pool
    borrowed: list[tuple[int, float]] = []
    distance, missing = 0.0, needed
    for k in sorted(pooled):
        if k <= index + 1 or missing <= 0.0:
            continue
        gain = -math.expm1((index + 1 - k) * step)
        part = min(pooled[k], missing / gain)
        borrowed.append((k, part))
        missing -= part * gain
        distance += part * gain * (k - index - 1) * step
    if missing > 1e-18 * pool or balance < distance or balance < 1e-6 * rise * pool:
        pooled[index] = pooled.get(index, 0.0) + pool
        return
    for k, part in borrowed:
        pooled[k] -= part
        if pooled[k] <= 0.0:
            del pooled[k]
    pooled[index + 1] = pooled.get(index + 1, 0.0) + pool + sum(part for _, part in borrowed)


def _window(draws: list[_Draw], tilt: float) -> tuple[float, float]:
    """Losses between which all but 2e-11 of the tilted law of the sum lies, by Markov's inequality on e^{s L}."""
    centre = sum(draw.count * draw.log_moment(tilt) for draw in draws)
    spread = math.sqrt(sum(draw.count * _variance(draw, tilt) for draw in draws)) + 1e-300
    above: list[float] = []
    below: list[float] = []
    for s in (np.geomspace(1.0, 30.0, 12) / spread).tolist():
        grown = sum(draw.count * draw.log_moment(tilt + s) for draw in draws) - centre
        shrunk = sum(draw.count * draw.log_moment(tilt - s) for draw in draws) - centre
        above.append((grown + 25.3) / s)
        below.append(-(shrunk + 25.3) / s)
    return max(below), min(above)


def _variance(draw: _Draw, tilt: float) -> float:
    powers = draw.log_mass + tilt * draw.loss
    weights = np.exp(powers - powers.max())
    mean = float(weights @ draw.loss) / float(weights.sum())
    return float(weights @ (draw.loss - mean) ** 2) / float(weights.sum())


def _added_up(laid: list[_Laid], step: float, tilt: float, window: tuple[float, float], epsilon: float) -> float:
    """delta at `epsilon` of the sum of all losses on their lattice, lowered by its rounding."""
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
    wrong = float(np.sqrt(np.mean((np.abs(product) * np.minimum(doubt, 1e3)) ** 2))) + 8.0 * levels * _ROUNDING
    mass = np.roll(np.fft.irfft(product, size), -((first - centres) % size))
    losses = (offset + step * first) + step * np.arange(size)
    beyond = losses > epsilon
    y = losses[beyond] - epsilon
    values = -np.exp(-tilt * y) * np.expm1(-y)
    found = float(mass[beyond] @ values)
    # By Cauchy and Schwarz the rounding of all masses together; what is wrapped around; what summing takes.
    error = wrong * math.sqrt(float(values @ values)) + 2e-11 * float(values.max(initial=0.0)) * 2.0
    least = (found - error) * (1.0 - 1e-10 - 40.0 * _ROUNDING * draws)
    if least <= 0.0:
        return 0.0
    return math.exp(min(math.log(least) + log_scale - tilt * epsilon - 1e-14 * (abs(log_scale) + tilt * epsilon), 0.0))
