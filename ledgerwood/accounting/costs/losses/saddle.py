"""A coarse, uncertified model of the range of a plan's losses; it chooses grids, windows and tilts.

Nothing here enters a bound: a bad choice only makes a bound wider. docs/explanation/pld.md#choices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.events.base import Event, FloatArray

NODES = np.concatenate(([0.0], np.geomspace(1e-13, 1e7, 481)))
_MOST_PER_FOLD = 4096.0
_LOG_TILTS = (math.log(1e-6), math.log(1e9))


@dataclass(frozen=True, slots=True)
class Sides:
    """An event's log profile at `NODES`: as asked for (remove or add), and the other way round."""

    ahead: FloatArray
    back: FloatArray

    def turned(self) -> "Sides":
        return Sides(self.back, self.ahead)


@dataclass(frozen=True, slots=True)
class Model:
    """Atoms of one draw's privacy loss (nats) and the logarithms of their mass under P."""

    losses: FloatArray
    log_mass: FloatArray

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """log E e^{tilt L}, and mean and variance of the loss under that tilt."""
        powers = self.log_mass + tilt * self.losses
        top = float(powers.max())
        weights = np.exp(powers - top)
        total = float(weights.sum())
        mean = float(weights @ self.losses) / total
        variance = float(weights @ (self.losses - mean) ** 2) / total
        return top + math.log(total), mean, variance


@dataclass(frozen=True, slots=True)
class SaddlePoint:
    """A point of the curve by the saddle point of its inversion integral.

    Args:
        tilt: > 0, the exponent under which losses near `epsilon` are typical.
        epsilon: nats; may be below 0.
        log_delta: natural logarithm.
        variance: of the whole plan's loss under the tilt, nats squared.
    """

    tilt: float
    epsilon: float
    log_delta: float
    variance: float


def sides(event: Event) -> Sides:
    """Both directions of the event's profile at the nodes."""
    return Sides(
        event.log_profile(NODES, direction=Direction.REMOVE), event.log_profile(NODES, direction=Direction.ADD)
    )


def model(found: Sides, log_lost: float = -math.inf) -> Model:
    """Connect the dots between the nodes; what lies where the profile is at most exp(log_lost) is left out.

    It is left out because a lattice sends it to infinity: unbounded, it may rule every moment and yet no privacy cost.
    """
    ahead, back = _masses(found.ahead), _masses(found.back)
    x = NODES[1:]
    centre = max(1.0 - float(ahead.sum()) - float((back * np.exp(-x)).sum()), 1e-300)
    with np.errstate(divide="ignore"):
        logs = np.concatenate(((np.log(back) - x)[::-1], [math.log(centre)], np.log(ahead)))
        logs[len(x) + 1 :][found.ahead[:-1] <= log_lost] = -np.inf
    losses = np.concatenate((-x[::-1], NODES))
    kept = np.isfinite(logs)
    # The differences at the smallest nodes are rounding noise, whose sum must not count as mass.
    return Model(losses[kept], logs[kept] - float(np.logaddexp.reduce(logs[kept])))


def _masses(log_profile: FloatArray) -> FloatArray:
    """P mass at the nodes beyond 0, shape (k - 1,)."""
    h = np.exp(log_profile)
    falls = np.append(h[:-1] - h[1:], 0.0)
    widths = np.append(np.diff(NODES), 1.0)
    with np.errstate(over="ignore"):
        masses = falls[:-1] / -np.expm1(-widths[:-1]) - falls[1:] / np.expm1(widths[1:])
    return np.asarray(np.maximum(masses, 0.0))


def grid(models: list[tuple[Model, int]], tilt: float, room: float) -> tuple[float, float]:
    """A lattice step (nats), and how many dots per factor e of the loss, that add variance `room` each under the tilt.

    Connecting dots at distance d adds about d^2 / 6 for a loss between them, or |loss| d for one much nearer 0 than d.
    """
    sizes, weights = [], []
    for item, count in models:
        powers = item.log_mass + tilt * item.losses
        shares = np.exp(powers - powers.max())
        sizes.append(np.abs(item.losses))
        weights.append(count * shares / shares.sum())
    size, weight = np.concatenate(sizes), np.concatenate(weights)

    def added(step: float) -> float:
        return float((weight * np.minimum(size * step, step * step / 6.0)).sum())

    low, high = -40.0, 20.0
    for _ in range(26):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if added(math.exp(middle)) > room else (middle, high)
    squares = float((weight * size * size).sum())
    return math.exp(low), min(max(math.sqrt(squares / (6.0 * room)), 24.0), _MOST_PER_FOLD)


def point_at_tilt(models: list[tuple[Model, int]], log_tilt: float) -> SaddlePoint:
    """The point whose saddle is at exp(log_tilt)."""
    tilt = math.exp(log_tilt)
    total, mean, variance = 0.0, 0.0, 0.0
    for item, count in models:
        log_moment, one_mean, one_variance = item.moments(tilt)
        total, mean, variance = total + count * log_moment, mean + count * one_mean, variance + count * one_variance
    epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt)
    curvature = variance + 1.0 / tilt**2 + 1.0 / (1.0 + tilt) ** 2
    height = total - tilt * epsilon - math.log(tilt) - math.log1p(tilt)
    return SaddlePoint(tilt, epsilon, height - 0.5 * math.log(2.0 * math.pi * curvature), variance)


def point_at_delta(models: list[tuple[Model, int]], log_delta: float) -> SaddlePoint:
    """The point of the curve at `log_delta`, or, where that is reached below epsilon 0, the one at 0."""
    found = _solve(models, lambda point: point.log_delta > log_delta)
    # Exactly 0: what the search leaves around it is noise, and has no order.
    return found if found.epsilon > 0.0 else replace(point_at_epsilon(models, 0.0), epsilon=0.0)


def point_at_epsilon(models: list[tuple[Model, int]], epsilon: float) -> SaddlePoint:
    """The point of the curve at `epsilon` >= 0."""
    return _solve(models, lambda point: point.epsilon < epsilon)


def _solve(models: list[tuple[Model, int]], before: Callable[[SaddlePoint], bool]) -> SaddlePoint:
    low, high = _LOG_TILTS
    found = point_at_tilt(models, 0.5 * (low + high))
    for _ in range(44):
        middle = 0.5 * (low + high)
        found = point_at_tilt(models, middle)
        if before(found):
            low = middle
        else:
            high = middle
        if high - low < 1e-5:
            break
    return found
