"""Exact deviates of an even density, in integers alone, and their rounding to a grid.

Bits are drawn only until a question is decided. A deviate is known by the cell it lies in: x in [X, X + 1) / 2**55 for
an integer X, and given X all its further bits are still free. The method is rejection from a staircase above the
density (Marsaglia, MacLaren and Bray 1964; Marsaglia and Tsang 2000), every comparison made exact in the manner of
Knuth and Yao 1976 and Karney 2016. Noise on a grid is round(s x), decided from as many bits of x as it takes.
Proofs: docs/explanation/exact-noise.md#staircase and #rounding.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.exact.randomness import RandomSource

STEP_BITS = 6  # a stair is 2**-6 wide
INDEX_BITS = 14  # a side of the density gets 2**14 bricks' worth of area
BRICK_BITS = 40  # a brick is one stair wide and 2**40 units high
FREE_BITS = 64 - INDEX_BITS - 1  # bits of a word that are left to place a point inside its brick
FRACTION_BITS = STEP_BITS + FREE_BITS

_BRICKS = 1 << INDEX_BITS
_INDEX_MASK = np.uint64((1 << (INDEX_BITS + 1)) - 1)
_Y_BITS = 64 - BRICK_BITS  # bits of a word that are left to refine a height
_CHORD_BITS = 20  # bits of x that the chord reads
_WORD = 64

Exponent = Callable[[int, int], tuple[int, int]]
Words = NDArray[np.uint64]
Integers = NDArray[np.int64]


def exp_bounds(numerator: int, shift: int, precision: int) -> tuple[int, int]:
    """Integers around 2**precision exp(-numerator / 2**shift), numerator >= 0.

    Proof: docs/explanation/exact-noise.md#exponential.
    """
    halvings = max(0, numerator.bit_length() - shift + 8)  # so that the series is taken at z < 2**-8
    bits = precision + halvings + 16
    z = (numerator << bits) >> (shift + halvings)
    total = term = 1 << bits
    k = 0
    while term:
        k += 1
        term = (term * z >> bits) // k
        total += -term if k % 2 else term
    error = 4 * k + 4
    low, high = total - error, total + error
    for _ in range(halvings):
        low, high = low * low >> bits, (high * high >> bits) + 1
    return low >> (bits - precision), (high >> (bits - precision)) + 1


def normal_exponent(x: int, bits: int) -> tuple[int, int]:
    """v**2 / 2 at v = x / 2**bits, as numerator and shift."""
    return x * x, 2 * bits + 1


def laplace_exponent(x: int, bits: int) -> tuple[int, int]:
    """|v| at v = x / 2**bits, as numerator and shift."""
    return abs(x), bits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """n independent deviates: number i lies in [cells[i], cells[i] + 1) / 2**55, its further bits free.

    The few numbers in `refined` (far out, or decided by more bits) are known by their (cell, fraction bits) there.
    """

    cells: Integers
    refined: dict[int, tuple[int, int]]


@final
class EvenDeviate:
    """Exact deviates of the density proportional to f(|x|) = exp(-g(|x|)), with g increasing, |f'| <= 1 and |f''| <= 1.

    Args:
        exponent: g at a dyadic rational, as an exact (numerator, shift).
        reach: a whole number; from there on f at least halves with each unit, and a tail takes over from the stairs.
    """

    __slots__ = (
        "_chord",
        "_chord_drop",
        "_cumulative",
        "_exponent",
        "_height",
        "_lift",
        "_reach",
        "_slack",
        "_table",
        "_tail_bits",
    )

    def __init__(self, exponent: Exponent, reach: int) -> None:
        self._exponent = exponent
        self._reach = reach
        stairs = reach << STEP_BITS
        precision = 128
        bounds = [exp_bounds(*exponent(j, STEP_BITS), precision) for j in range(stairs + 1)]
        # f(0) is scaled to `height` units, as high as stairs (each rounded up by a unit) and tail (rounded up to a
        # power of two) still fit into the area of a side's bricks.
        tail_area = 4 << STEP_BITS
        area = sum(high for _, high in bounds[:-1]) + tail_area * bounds[-1][1]
        self._height = (((_BRICKS << BRICK_BITS) - stairs - 2 * tail_area) << precision) // area
        tops = [(self._height * high >> precision) + 1 for _, high in bounds]
        floors = [self._height * low >> precision for low, _ in bounds]
        counts = [floor >> BRICK_BITS for floor in floors[1:]]  # bricks that lie wholly below the density
        wedges = [top - (count << BRICK_BITS) for top, count in zip(tops, counts, strict=False)]
        starts = np.cumsum([0, *wedges], dtype=np.int64)
        self._tail_bits = (tops[-1] - 1).bit_length()
        tail_end = int(starts[-1]) + (2 << (STEP_BITS + self._tail_bits))
        assert sum(counts) * (1 << BRICK_BITS) + tail_end <= _BRICKS << BRICK_BITS
        self._cumulative = np.append(starts[1:], tail_end)
        self._lift = np.array(counts, dtype=np.int64) * (1 << BRICK_BITS) - starts[:-1]
        self._chord = np.array(floors[:-1], dtype=np.int64)
        self._chord_drop = self._chord - np.array(floors[1:], dtype=np.int64)
        self._slack = (self._height >> (2 * STEP_BITS + 3)) + (self._height >> (STEP_BITS + _CHORD_BITS)) + 16
        bricks = np.repeat(np.arange(stairs, dtype=np.int64), counts)
        self._table = np.stack([bricks, ~bricks], axis=1).ravel() << FREE_BITS  # stair j and its mirror image, in turn

    def draw(self, n: int, source: RandomSource) -> Cells:
        """n independent deviates, n >= 0."""
        refined: dict[int, tuple[int, int]] = {}
        cells, positions, above = self._throw(n, source)
        while positions.size:
            lost = self._settle(cells, refined, positions, above, source)
            cells[lost], hits, above = self._throw(lost.size, source)
            positions = lost[hits]
        return Cells(cells=cells, refined=refined)

    def _throw(self, n: int, source: RandomSource) -> tuple[Integers, Integers, Integers]:
        """Points in the bricks' area: their cells, which of them fell above all bricks, and by how many."""
        words = source.uint64(n)
        index = (words & _INDEX_MASK).astype(np.int64)
        cells = self._table.take(index, mode="clip")
        cells |= (words >> np.uint64(INDEX_BITS + 1)).view(np.int64)
        above = np.flatnonzero(index >= self._table.size)
        return cells, above, index[above] - self._table.size

    def _settle(
        self,
        cells: Integers,
        refined: dict[int, tuple[int, int]],
        positions: Integers,
        above: Integers,
        source: RandomSource,
    ) -> Integers:
        """Points of the remaining area (wedges, tail, nothing): writes those below the density, returns the others."""
        words = source.uint64((2, positions.size))
        place = ((above >> 1) << BRICK_BITS) + (words[0] >> np.uint64(_Y_BITS)).view(np.int64)
        piece = np.searchsorted(self._cumulative, place, side="right")
        tail = self._cumulative.size - 1
        stair = np.minimum(piece, tail - 1)
        free = (words[1] >> np.uint64(INDEX_BITS + 1)).view(np.int64)
        height = place + self._lift[stair]
        chord = self._chord[stair] - (self._chord_drop[stair] * (free >> (FREE_BITS - _CHORD_BITS)) >> _CHORD_BITS)
        below = (piece < tail) & (height < chord - self._slack)
        clear = (piece > tail) | ((piece < tail) & (np.abs(height - chord) > self._slack))
        cells[positions] = ((stair << FREE_BITS) + free) ^ -(above & 1)
        for i in np.flatnonzero(~clear).tolist():
            if piece[i] == tail:
                hit = self._tail_point(source)
            else:
                x = (int(stair[i]) << FREE_BITS) + int(free[i])
                y = (int(height[i]) << _Y_BITS) + (int(words[0, i]) & ((1 << _Y_BITS) - 1))
                hit = self._below(x, FRACTION_BITS, y, _Y_BITS, source)
            if hit is not None:
                below[i] = True
                x, bits = hit
                if bits > FRACTION_BITS or piece[i] == tail:
                    refined[int(positions[i])] = (~x if above[i] & 1 else x, bits)
        lost: Integers = positions[~below]
        return lost

    def _tail_point(self, source: RandomSource) -> tuple[int, int] | None:
        """A point of the tail's stairs, each one unit wide and half as high as the last; None if too high."""
        down = 0
        while (word := int(source.uint64(1)[0])) == 0:
            down += _WORD
        down += (word & -word).bit_length() - 1
        x, y = source.uint64(2).tolist()
        return self._below(((self._reach + down) << _WORD) + x, _WORD, y, _WORD + down - self._tail_bits, source)

    def _below(self, x: int, x_bits: int, y: int, y_bits: int, source: RandomSource) -> tuple[int, int] | None:
        """Returns whether the point in the cell (x, y) / (2**x_bits, 2**y_bits) lies below the density, by refining it.

        Returns x and its bits as far as they were drawn, or None for a point above.
        """
        while True:
            precision = _WORD + y_bits
            low, _ = exp_bounds(*self._exponent(x + 1, x_bits), precision)
            _, high = exp_bounds(*self._exponent(x, x_bits), precision)
            if (y + 1) << precision <= (self._height * low) << y_bits:
                return x, x_bits
            if y << precision >= (self._height * high) << y_bits:
                return None
            more_x, more_y = source.uint64(2).tolist()
            x, x_bits = (x << _WORD) + more_x, x_bits + _WORD
            y, y_bits = (y << _WORD) + more_y, y_bits + _WORD


@cache
def standard_normal() -> EvenDeviate:
    """The standard normal distribution."""
    return EvenDeviate(normal_exponent, 8)


@cache
def standard_laplace() -> EvenDeviate:
    """The Laplace distribution of scale 1."""
    return EvenDeviate(laplace_exponent, 16)


MAX_STEPS = 2.0**55
"""The coarsest noise, in grid steps: 2**8 standard deviations of it still fit into int64 without wrapping."""

_CHUNK = 1 << 15
_MANTISSA_BITS = 53


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
