"""Sums of independent losses: products of spectra, with a bound on all that was rounded, wrapped and cut off.

docs/explanation/pld.md#loss-composition.
"""

import math

import numpy as np
from scipy import fft

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.losses.lattice import ULP, Indices, Law, hull, lowered, lowering

_FFT_ROUNDING = 16.0 * ULP  # per level of butterflies, relative to the sum of the absolute inputs
_NEGLIGIBLE = -46.0  # logarithm of spectrum values that are left out, and counted as error
_MARKOV = np.geomspace(0.5, 40.0, 24)


def window(parts: list[tuple[Law, int]], deviation: float, log_outside: float) -> tuple[int, int]:
    """Lattice indices (first, last) beyond which the composed tilted mass is at most exp(log_outside) on each side.

    By Markov's inequality on exp(s * loss), for the best of some s on the scale of `deviation` (nats).
    """
    step = parts[0][0].step
    ends = []
    for sign in (1.0, -1.0):
        best = math.inf
        for s in _MARKOV / deviation:
            log_moment = sum(count * _log_moment(law, sign * float(s)) for law, count in parts)
            best = min(best, (log_moment - log_outside) / float(s))
        extreme = sum(count * float((sign * law.index).max()) * step for law, count in parts)
        ends.append(min(best, extreme))
    return -math.ceil(ends[1] / step) - 1, math.ceil(ends[0] / step) + 1


def _log_moment(law: Law, s: float) -> float:
    powers = s * law.step * law.index
    top = float(powers.max())
    top_mass = float((law.mass * np.exp(powers - top)).sum())
    if top_mass <= 0.0:
        return math.inf
    return top + math.log(top_mass) + 16.0 * ULP * (8.0 + abs(top))


def compose(parts: list[tuple[Law, int]], first: int, last: int, log_outside: float) -> Law:
    """The law of the sum of all losses, on the indices first..last.

    `log_outside` is what `window` was asked for.
    """
    step, tilt = parts[0][0].step, parts[0][0].tilt
    size = fft.next_fast_len(last - first + 1, real=True)
    levels = math.log2(size) + 2.0
    half = size // 2 + 1
    log_size, angle, relative = np.zeros(half), np.zeros(half), np.zeros(half)
    log_scale, growth, log_finite, error = 0.0, 0.0, 0.0, 0.0
    noise = _FFT_ROUNDING * levels
    with np.errstate(divide="ignore", over="ignore"):
        for law, count in parts:
            spectrum = fft.rfft(np.bincount(law.index % size, weights=law.mass, minlength=size))
            modulus = np.maximum(np.abs(spectrum), 1e-300)
            log_size += count * np.log(np.minimum(modulus + noise, 1.0 + noise))
            angle += np.mod(count * np.angle(spectrum), 2.0 * math.pi)
            # |z + e|^n - |z|^n <= |z + noise|^n * n * noise / |z|, and the phase count * angle is rounded itself.
            relative += count * (noise / modulus + 8.0 * ULP)
            log_scale += count * law.log_scale
            growth += count * law.growth
            log_finite += count * math.log1p(-law.infinite)
            error += count * law.error
        error *= math.exp(min(error, 1.0))
        kept = log_size > _NEGLIGIBLE
        product = np.zeros(half, dtype=np.complex128)
        sizes = np.exp(log_size[kept])
        product[kept] = sizes * np.exp(1j * angle[kept])
        rounding = 2.0 * float((sizes * np.minimum(np.expm1(relative[kept]) + 64.0 * ULP, 2.0)).sum())
        rounding += 2.0 * math.exp(_NEGLIGIBLE) * (half - int(kept.sum()))
        rounding += 2.0 * noise * float(sizes.sum())
    mass = np.maximum(np.roll(fft.irfft(product, size), -(first % size)), 0.0)
    error += rounding + 4.0 * math.exp(log_outside)
    index = np.arange(first, first + size)
    growth += 32.0 * ULP * (abs(log_scale) + sum(count for _, count in parts))
    return Law(step, tilt, index, mass, log_scale, -math.expm1(log_finite), error, growth)


def trim(law: Law, most: float) -> Law:
    """The law without its outermost masses, of sum at most `most` on each side, which become error."""
    total = np.cumsum(law.mass)
    first = int(np.searchsorted(total, most))
    last = len(total) - int(np.searchsorted(np.cumsum(law.mass[::-1]), most))
    return _with(law, law.index[first:last], law.mass[first:last], law.error + 2.0 * most)


def coarsen(law: Law, factor: int, *, above: bool) -> Law:
    """The law on a lattice `factor` times as wide: a dominating one (`above`), or a dominated one."""
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
    error = law.error
    if not above:
        drop = lowering(index, mass, step, tilt)
        mass, moved = hull(index, lowered(index, mass, drop, step, tilt), step, tilt)
        error += 4.0 * moved + 2.0 * float(drop[-2:].sum()) / math.expm1(step)
    return _with(Law(step, tilt, index, mass, law.log_scale, law.infinite, error, law.growth), index, mass, error)


def _with(law: Law, index: Indices, mass: FloatArray, error: float) -> Law:
    """The law with other masses, scaled to a sum of 1; the error keeps its absolute size or grows."""
    total = float(mass.sum())
    rounding = 64.0 * ULP
    return Law(
        law.step, law.tilt, index, mass / total, law.log_scale + math.log(total),
        law.infinite, error / min(total, 1.0) + rounding, law.growth,
    )  # fmt: skip
