"""Tilted masses on one lattice, multiplied: small kinds by convolution of positive terms, what is large by spectra.

Convolving positive terms rounds each mass by a relative amount, so thousands of kinds become a few blocks, and the work
is linear in their outputs. docs/explanation/ledger.md#verification-losses.
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.ledgers.bounds.pair import Floats
from ledgerwood.verification.ledgers.effort import spend

_BLOCK = 2048  # lattice points
_FEW = 12  # kinds that have a spectrum each without more ado
_ROUNDING = 2.0**-53


@dataclass(frozen=True, slots=True)
class BlockPart:
    """What is taken `count` times.

    Args:
        index: lattice points, ascending, shape (n,).
        mass: of 1 in all, shape (n,).
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
