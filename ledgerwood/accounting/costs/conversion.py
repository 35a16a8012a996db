"""Conversions between Renyi divergences, or a pure epsilon, and (epsilon, delta).

docs/explanation/pricing.md#renyi-conversion.

Everything that limits a loss is rounded up by a guard on the magnitudes of the terms that were added.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import PrivacyError, UnsupportedEvent

LEAST_ORDER, LARGEST_ORDER = 1.0 + 1e-6, 1.0 + 1e6
_COARSE = np.linspace(math.log(1e-6), math.log(1e6), 64)
_ULP = 2.0**-52
_FARTHEST = 1e290  # nats; delta falls with epsilon, and beyond this its logarithm would overflow
_FLAT, _APART = 1e-14, 1e-9  # relative rise of the neighbours at which to stop; least distance of two orders' logs

Curve = Callable[[FloatArray], FloatArray]
"""Orders (k,) to Renyi divergences (k,), in nats."""
Objective = Callable[[FloatArray, FloatArray], FloatArray]
"""Orders (k,) and divergences (k,) to the values (k,) that are to be least."""


class Best(NamedTuple):
    """The least value over all orders, and the order that gives it."""

    value: float
    order: float


def exp_up(log_value: float) -> float:
    """exp rounded up; never 0 unless the argument is -inf, never above 1 for an argument that is not positive."""
    if log_value == -math.inf:
        return 0.0
    value = math.exp(log_value) * (1.0 + (abs(log_value) + 4.0) * _ULP)
    if value < 1e-300:  # where the spacing of numbers is absolute
        value = math.nextafter(value, 1.0)
    return min(value, 1.0) if log_value <= 0.0 else value


def renyi_epsilons(orders: FloatArray, divergences: FloatArray, log_delta: float) -> FloatArray:
    """Epsilon, in nats, from each order alone; may be below 0, where 0 is meant. Rounded up.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12 (= Balle et al. 2020, Theorem 21).
    """
    gap = orders - 1.0
    first, second, third = _log_shrink(orders), np.log(orders) / gap, -log_delta / gap
    guard = 8.0 * _ULP * (divergences + np.abs(first) + second + third)
    epsilons: FloatArray = divergences + first - second + third + guard
    return epsilons


def renyi_log_deltas(orders: FloatArray, divergences: FloatArray, epsilon: float) -> FloatArray:
    """log delta at one epsilon from each order alone; the inverse of `renyi_epsilons`. Rounded up."""
    epsilon = min(epsilon, _FARTHEST)
    gap = orders - 1.0
    first, second = gap * _log_shrink(orders), np.log(orders)
    guard = 8.0 * _ULP * (gap * (divergences + epsilon) + np.abs(first) + second)
    deltas: FloatArray = gap * (divergences - epsilon) + first - second + guard
    return deltas


def renyi_divergences(orders: FloatArray, epsilon: float, log_delta: float) -> FloatArray:
    """The largest divergence at each order that converts to `epsilon`, in nats; below 0 if there is none. Rounded down.

    The inverse of `renyi_epsilons`: that one is the divergence plus what does not depend on it.
    """
    gap = orders - 1.0
    first, second, third = _log_shrink(orders), np.log(orders) / gap, -log_delta / gap
    guard = 8.0 * _ULP * (epsilon + np.abs(first) + second + third)
    divergences: FloatArray = epsilon - first + second - third - guard
    return divergences


def _log_shrink(orders: FloatArray) -> FloatArray:
    """log(1 - 1 / order), to a relative rounding error near 1 and far out."""
    shrunk: FloatArray = np.where(
        orders < 2.0, np.log((orders - 1.0) / orders), np.log1p(-1.0 / np.maximum(orders, 2.0))
    )
    return shrunk


def log_total_variation(divergence: float) -> float:
    """log of a bound on the total variation distance, from any divergence at least Kullback-Leibler. Rounded up.

    Source: Pinsker; Bretagnolle and Huber; both proved in docs/explanation/pricing.md#renyi-conversion.
    """
    if divergence <= 0.0:
        return -math.inf
    pinsker = 0.5 * math.log(divergence / 2.0)
    huber = 0.5 * math.log(-math.expm1(-divergence)) if divergence < 700.0 else 0.0
    return min(min(pinsker, huber) * (1.0 - 8.0 * _ULP) + 8.0 * _ULP, 0.0)


def pure_epsilon_at(pure: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is `pure`-differentially private. Rounded up.

    The randomised-response pair dominates (docs/explanation/events.md#pure).
    Source: docs/explanation/pricing.md#pure-conversion.
    """
    saved = delta * (1.0 + math.exp(-pure))
    if saved >= 1.0:
        return 0.0
    epsilon = pure + math.log1p(-saved)
    return min(max(epsilon + 8.0 * _ULP * (pure + 1.0 / (1.0 - saved)) if delta > 0.0 else pure, 0.0), pure)


def pure_log_delta(pure: float, epsilon: float) -> float:
    """log delta at `epsilon` of any mechanism that is `pure`-differentially private. Rounded up."""
    if epsilon >= pure:
        return -math.inf
    value = math.log(-math.expm1(epsilon - pure)) - math.log1p(math.exp(-pure))
    return min(value + 8.0 * _ULP * (1.0 + abs(value) + pure / (pure - epsilon)), 0.0)


def least_over_orders(curve: Curve, objective: Objective) -> Best:
    """Minimise objective(orders, curve(orders)) over real orders, on the scale of log(order - 1).

    A grid over twelve decades, one refinement, then parabolas until the neighbours are no higher to the last digits.
    Every order is valid, so an imperfect search can only raise the bound.

    Raises:
        UnsupportedEvent: the objective is infinite at every order.
    """

    def evaluate(logs: FloatArray) -> FloatArray:
        orders = 1.0 + np.exp(logs)
        with np.errstate(over="ignore", invalid="ignore"):
            divergences = curve(orders)
            if np.isnan(divergences).any():
                raise PrivacyError(f"a Renyi divergence is not a number at orders {orders[np.isnan(divergences)]}")
            values = objective(orders, divergences)
        return np.where(np.isposinf(divergences), np.inf, values)

    logs, values = _COARSE, evaluate(_COARSE)
    best = int(np.argmin(values))
    if not math.isfinite(values[best]):
        raise UnsupportedEvent("every Renyi divergence of the event is infinite: this method cannot bound its epsilon")
    for step in range(40):
        left, right = max(best - 1, 0), min(best + 1, len(logs) - 1)
        rise = max(values[left], values[right]) - values[best]
        if rise <= _FLAT * abs(values[best]) or logs[right] - logs[left] < 4.0 * _APART:
            break
        inner = np.linspace(logs[left], logs[right], 17) if step == 0 else _around_vertex(logs, values, best)
        found = evaluate(inner)
        logs, index = np.unique(np.concatenate((logs, inner)), return_index=True)
        values = np.concatenate((values, found))[index]
        # Neighbours closer than their rounding noise would bracket nothing.
        apart = np.abs(logs - logs[np.argmin(values)]) > _APART
        apart[np.argmin(values)] = True
        logs, values = logs[apart], values[apart]
        best = int(np.argmin(values))
    return Best(float(values[best]), float(1.0 + np.exp(logs[best])))


def _around_vertex(logs: FloatArray, values: FloatArray, best: int) -> FloatArray:
    """Points that close in on the lowest point: narrowly around the parabola's vertex, and halfway to both neighbours.

    A smooth valley shrinks fiftyfold a round; one with a kink, where a phase of the curve ends, by half.
    """
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    vertex, width = _vertex(logs, values, best), 0.01 * (high - low)
    halves = (0.5 * (low + logs[best]), 0.5 * (logs[best] + high))
    points: FloatArray = np.clip([vertex - width, vertex, vertex + width, *halves], low, high)
    return points


def _vertex(logs: FloatArray, values: FloatArray, best: int) -> float:
    """The lowest point of the parabola through the best point and its neighbours."""
    if not 0 < best < len(logs) - 1:
        return float(logs[best])
    left, right = logs[best - 1] - logs[best], logs[best + 1] - logs[best]
    drop_left, drop_right = values[best - 1] - values[best], values[best + 1] - values[best]
    slope = drop_left * right - drop_right * left
    if not math.isfinite(slope) or slope == 0.0:
        return float(logs[best])
    return float(logs[best] + 0.5 * (drop_left * right * right - drop_right * left * left) / slope)
