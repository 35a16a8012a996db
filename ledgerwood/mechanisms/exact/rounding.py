"""Noise on a grid: round(s x) for a real deviate x, decided from as many of its bits as it takes.

Proof: docs/explanation/exact-noise.md#rounding.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.mechanisms.exact.deviates import FRACTION_BITS, Cells, EvenDeviate
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.grid import Grid

MAX_STEPS = 2.0**55
"""The coarsest noise, in grid steps: 2**8 standard deviations of it still fit into int64 without wrapping."""

_CHUNK = 1 << 15
_MANTISSA_BITS = 53
_WORD = 64


def add_noise(
    statistic: NDArray[np.int64], grid: Grid, scales: Sequence[float], law: EvenDeviate, source: RandomSource
) -> NDArray[np.int64]:
    """statistic (..., k) + round(scales_i x / step_i), x fresh of `law`, modulo 2**64; scales in the columns' units.

    Raises:
        InvalidParameter: shapes that do not fit, or a scale above 2**55 grid steps. Never because of a value.
    """
    grid.require(statistic, "statistic")
    require_fit(scales, grid)
    noise = np.empty(statistic.size, dtype=np.int64)
    rows = max(1, _CHUNK // grid.columns)
    columns = [math.frexp(scale) for scale in scales]
    exact = [
        (int(math.ldexp(m, _MANTISSA_BITS)), _MANTISSA_BITS - e + exponent)
        for (m, e), exponent in zip(columns, grid.exponents, strict=True)
    ]
    chunk = rows * grid.columns
    for start in range(0, noise.size, chunk):
        part = noise[start : start + chunk]
        _round(law.draw(part.size, source), exact, source, part)
    return statistic + noise.reshape(statistic.shape)


def geometric_noise(n: int, scale: float, law: EvenDeviate, source: RandomSource) -> NDArray[np.int64]:
    """n independent integers: floor(scale |x|) with x's sign, where x is fresh of `law` and -0 is drawn again.

    For Laplace deviates these have probabilities proportional to e^{-|z| / scale}: exact-noise.md#discrete-laplace.

    Args:
        scale: > 0, at most 2**55.
    """
    mantissa, exponent = math.frexp(scale)
    exact = [(int(math.ldexp(mantissa, _MANTISSA_BITS)), _MANTISSA_BITS - exponent)]
    out = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        part = out[start : start + _CHUNK]
        _round(law.draw(part.size, source), exact, source, part, down=True)
        lost = np.flatnonzero(part == -1)
        while lost.size:
            again = np.empty(lost.size, dtype=np.int64)
            _round(law.draw(lost.size, source), exact, source, again, down=True)
            part[lost] = again
            lost = lost[again == -1]
        part += part < 0
    return out


def unbounded_noise(scale: float, grid: Grid, law: EvenDeviate, source: RandomSource) -> int:
    """round(scale x / step), x fresh of `law`, on a grid of one column: the integer itself, not modulo 2**64.

    Raises:
        InvalidParameter: a grid of several columns, or a scale above 2**55 grid steps.
    """
    require_fit((scale,), grid)
    mantissa, exponent = math.frexp(scale)
    exact = (int(math.ldexp(mantissa, _MANTISSA_BITS)), _MANTISSA_BITS - exponent + grid.exponents[0])
    cells = law.draw(1, source)
    x, bits = cells.refined.get(0) or (int(cells.cells[0]), FRACTION_BITS)
    while (nearest := _nearest(x, bits, exact, down=False)) is None:
        x, bits = (x << _WORD) + int(source.uint64(1)[0]), bits + _WORD
    return nearest


def require_fit(scales: Sequence[float], grid: Grid) -> None:
    """Refuse noise that cannot be drawn on a grid; ask before the budget moves.

    Raises:
        InvalidParameter: not one scale a column, or a scale above 2**55 grid steps.
    """
    if len(scales) != grid.columns:
        raise _validate.fail("scales", tuple(scales), f"{grid.columns} numbers, one a column of the grid", "columns")
    for scale, step in zip(scales, grid.steps, strict=True):
        if scale / MAX_STEPS > step:
            raise _validate.fail("scale", scale, f"<= 2**55 grid steps of {step!r}", "statistic")


def _round(
    cells: Cells, scales: list[tuple[int, int]], source: RandomSource, out: NDArray[np.int64], *, down: bool = False
) -> None:
    """round(m / 2**shift x), or its floor, for the (m, shift) of each deviate's column; columns take turns."""
    if len(set(scales)) == 1:
        scales = scales[:1]
    factors = np.array([math.ldexp(m, -shift) for m, shift in scales])
    decided = 0.5 - (factors * 2.0**-47 + 2.0**-50)
    if len(scales) > 1:
        turns = out.size // len(scales)
        factors, decided = np.tile(factors, turns), np.tile(decided, turns)
    real = cells.cells * (factors * 2.0**-FRACTION_BITS)
    if down:
        real -= 0.5
    nearest = np.rint(real)
    out[:] = nearest
    real -= nearest
    undecided = np.flatnonzero(np.abs(real) > decided).tolist()
    if undecided or cells.refined:
        _refine(sorted({*undecided, *cells.refined}), cells, scales, source, out, down)


def _refine(
    places: list[int],
    cells: Cells,
    scales: list[tuple[int, int]],
    source: RandomSource,
    out: NDArray[np.int64],
    down: bool,
) -> None:
    """The same in Python integers, with 64 more bits a turn for the places that are still undecided."""
    undecided = [(i, *(cells.refined.get(i) or (int(cells.cells[i]), FRACTION_BITS))) for i in places]
    while undecided:
        later = []
        for i, x, bits in undecided:
            nearest = _nearest(x, bits, scales[i % len(scales)], down=down)
            if nearest is not None:
                out[i] = ((nearest + (1 << 63)) & ((1 << _WORD) - 1)) - (1 << 63)
            else:
                later.append((i, x, bits))
        words = source.uint64(len(later)).tolist()
        undecided = [(i, (x << _WORD) + word, bits + _WORD) for (i, x, bits), word in zip(later, words, strict=True)]


def _nearest(x: int, bits: int, scale: tuple[int, int], *, down: bool) -> int | None:
    """round(m / 2**shift v), or its floor, if it is one for all v in [x, x + 1) / 2**bits."""
    m, shift = scale
    half = 0 if down else 1 << (bits + shift - 1)
    least = (x * m + half) >> (bits + shift)
    return least if least == ((x + 1) * m - 1 + half) >> (bits + shift) else None
