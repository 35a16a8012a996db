"""Conversions between excess moments and Renyi divergences; the checks and the upward guard that every event shares.

For r = dP/dQ, the excess moment of power p is M_p = E_Q[r^p - 1 - p (r - 1)] = E_Q[r^p] - 1 >= 0. The Renyi divergence
of order a is log1p(M_p) / (a - 1), with p = a for D_a(P||Q) (remove) and p = 1 - a for D_a(Q||P) (add); see
docs/explanation/events.md#excess-moments.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.errors import InvalidParameter

FloatArray = NDArray[np.float64]

ULP = 2.0**-52
_LEAST = float(np.finfo(np.float64).tiny)
_LARGEST_ORDER = 1e15  # 1 - 1/a and a - 1 are still apart from 1 and a, and powers far from overflow


def check_orders(orders: ArrayLike) -> FloatArray:
    """Real orders > 1 as a float array of shape (k,).

    Raises:
        InvalidParameter: an order that is not a number, <= 1 or above 1e15; more than one axis.
    """
    array = _floats("orders", orders)
    if array.ndim > 1:
        raise InvalidParameter(f"orders has shape {array.shape}; it must have one axis (unit: Renyi order)")
    array = np.atleast_1d(array)
    bad = ~((array > 1.0) & (array <= _LARGEST_ORDER))
    if bad.any():
        raise InvalidParameter(f"orders={array[bad][0]!r} must be > 1 and at most 1e15 (unit: Renyi order)")
    return array


def check_powers(powers: ArrayLike) -> FloatArray:
    """Powers p > 1 or p < 0 as a float array of shape (k,).

    Raises:
        InvalidParameter: a power in [0, 1], or not finite; more than one axis.
    """
    array = _floats("powers", powers)
    if array.ndim > 1:
        raise InvalidParameter(f"powers has shape {array.shape}; it must have one axis (unit: power of dP/dQ)")
    array = np.atleast_1d(array)
    bad = ~(np.isfinite(array) & ((array > 1.0) | (array < 0.0)))
    if bad.any():
        raise InvalidParameter(f"powers={array[bad][0]!r} must be finite, > 1 or < 0 (unit: power of dP/dQ)")
    return array


def check_epsilons(epsilons: ArrayLike) -> FloatArray:
    """Epsilons >= 0 (inf allowed) as a float array of any shape.

    Raises:
        InvalidParameter: an epsilon below 0 or not a number.
    """
    array = _floats("epsilons", epsilons)
    bad = ~(array >= 0.0)
    if bad.any():
        raise InvalidParameter(f"epsilons={array[bad].flat[0]!r} must be >= 0 (unit: nats)")
    return array


def _floats(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InvalidParameter(f"{name} has dtype {array.dtype}; it must hold real numbers")
    return array.astype(np.float64)


def powers_of(orders: FloatArray, direction: Direction) -> FloatArray:
    """The powers of dP/dQ whose excess moments give the divergences in `direction`, shape (k,)."""
    return orders if direction is Direction.REMOVE else 1.0 - orders


def from_log_excess(log_excess: FloatArray, orders: FloatArray) -> FloatArray:
    """D_a = log1p(M) / (a - 1), never zero: a positive divergence below the normal range becomes its least number."""
    return np.maximum(np.logaddexp(0.0, log_excess) / (orders - 1.0), _LEAST)


def guarded(log_excess: FloatArray, orders: FloatArray) -> FloatArray:
    """`from_log_excess`, raised by the rounding error of the logarithm of a small M: events.md#guard."""
    return raise_by(from_log_excess(log_excess, orders), 16.0 + 2.0 * np.clip(-log_excess, 0.0, 1e3))


def to_log_excess(powers: FloatArray, divergence: Callable[[FloatArray, Direction], FloatArray]) -> FloatArray:
    """log M_p of an unsampled event from its Renyi divergences: M_p = expm1((a - 1) D_a), shape (k,).

    Args:
        powers: p > 1 (remove, a = p) or p < 0 (add, a = 1 - p), shape (k,).
        divergence: (orders, direction) -> nats.
    """
    result = np.empty_like(powers)
    for direction, chosen in ((Direction.REMOVE, powers > 1.0), (Direction.ADD, powers < 0.0)):
        if chosen.any():
            p = powers[chosen]
            factor = p - 1.0 if direction is Direction.REMOVE else -p
            result[chosen] = log_expm1(factor * divergence(factor + 1.0, direction))
    return result


def log_expm1(x: FloatArray) -> FloatArray:
    """log(e^x - 1) for x > 0, without overflow; -inf at 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(x > 1.0, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))


def log1mexp(x: FloatArray) -> FloatArray:
    """log(1 - e^x) for x <= 0; -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > -0.6931, np.log(-np.expm1(np.maximum(x, -1.0))), np.log1p(-np.exp(np.minimum(x, -0.5))))


def raise_by(values: FloatArray, ulps: FloatArray | float) -> FloatArray:
    """`values` >= 0, multiplied by 1 + ulps 2^-52 and moved to the next number above."""
    return np.nextafter(values * (1.0 + ULP * ulps), np.inf)


def raise_log(log_values: FloatArray, ulps: float) -> FloatArray:
    """Logarithms of numbers in [0, 1], raised by ulps 2^-52 (1 + |log|), at most 0; -inf stays.

    The error of a logarithm computed from exponents of its own size is a few units of 2^-52 (1 + |log|).
    """
    with np.errstate(invalid="ignore"):
        raised = np.minimum(log_values + ULP * ulps * (1.0 + np.abs(log_values)), 0.0)
    return np.where(np.isneginf(log_values), -np.inf, raised)
