"""Pools of a draw's outputs, from the top down, until each has a lattice point as its loss: post-processing."""

import math

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.ledgers.bounds.pair import Floats


def pooled(loss: Floats, log_mass: Floats, offset: float, step: float) -> tuple[NDArray[np.int64], Floats]:
    """Indices of lattice points offset + step * index, and the logarithms of their masses under the numerator.

    A pool at the lattice point x has sum of masses * (1 - e^{x - loss}) = 0. An output may be shared between pools.
    """
    top = float(log_mass.max())
    found: dict[int, float] = {}
    _sweep(np.exp(log_mass - top)[::-1].tolist(), loss[::-1].tolist(), offset, step, found)
    index = np.array(sorted(found), dtype=np.int64)
    return index, np.log([found[k] for k in index.tolist()]) + top


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
    if step > 600.0:  # no float holds what it would have to borrow
        pooled[index] = pooled.get(index, 0.0) + pool
        return
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
