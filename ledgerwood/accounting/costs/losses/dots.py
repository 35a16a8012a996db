"""One draw on a lattice: where its losses lie, and its profile at the dots, from above and from below.

docs/explanation/pld.md#above and #below.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import lattice, saddle
from ledgerwood.accounting.costs.losses.lattice import Dots, Indices
from ledgerwood.accounting.events.base import Event, FloatArray, remembered
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.errors import UnsupportedEvent

_LARGEST_INDEX = float(1 << 40)
_ALIGNED = 1e-9  # relative: how far before a largest loss its dot is put, so that the loss is surely not less


@dataclass(frozen=True, slots=True)
class Below:
    """How profiles are bounded from below: a function of all kinds of events, which this floor need not know.

    Args:
        log_profile: of an event at epsilons (k,) in a direction, shape (k,).
        log_infinite: log of the probability of an infinite loss, of an event in a direction.
    """

    log_profile: Callable[[Event, FloatArray, Direction], FloatArray]
    log_infinite: Callable[[Event, Direction], float]


@remembered(64)
def sides(event: Event) -> saddle.Sides:
    """Both directions of the draw's profile, seen from afar."""
    return saddle.sides(event)


def dots(
    event: Event, direction: Direction, step: float, log_lost: float, per_fold: float, *, below: Below | None
) -> Dots:
    """The profile at the dots, from above, or from below by `below`."""
    seen = sides(event)
    ahead, back = (seen.ahead, seen.back) if direction is Direction.REMOVE else (seen.back, seen.ahead)
    other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
    alike = event.symmetric() and np.array_equal(ahead, back)
    ahead_index = _indices(event, direction, ahead, step, log_lost, per_fold)
    back_index = ahead_index if alike else _indices(event, other, back, step, log_lost, per_fold)
    points: FloatArray = np.asarray(ahead_index * step, dtype=np.float64)
    back_points: FloatArray = np.asarray(back_index * step, dtype=np.float64)
    h = _from_above(event, points, direction)
    g = h.copy() if alike else _from_above(event, back_points, other)
    h[0] = g[0] = max(h[0], g[0])
    if below is None:
        return Dots(step, ahead_index, h, back_index, g)
    low_h, low_g = (_from_below(event, *side, below) for side in ((points, direction), (back_points, other)))
    low_h[0] = low_g[0] = min(low_h[0], low_g[0])
    rest = math.exp(below.log_infinite(event, direction)) * (1.0 - 1e-9)
    low_h[low_h <= rest * (1.0 + 1e-8)] = rest  # the same number wherever it is all that is left
    low_g[0] = low_h[0]
    caps = _cap(event, ahead_index, step, low_h, rest, direction), _cap(event, back_index, step, low_g, 0.0, other)
    return Dots(step, ahead_index, low_h, back_index, low_g, h - low_h, g - low_g, *caps, rest)


def _cap(event: Event, index: Indices, step: float, low: FloatArray, rest: float, direction: Direction) -> float:
    """The height above `rest`, before the last dot above it, of a line through that dot and a point just beyond it.

    By convexity it lies under the profile there; it tells an atom at the end of a support from a density.
    """
    last = int(np.flatnonzero(low > rest).max(initial=0))
    if last == 0:
        return 0.0
    beyond = step * 0.5 ** np.arange(1.0, 48.0)
    here = float(index[last]) * step
    beyond = (here + beyond) - here  # as the sums were rounded
    beyond = beyond[beyond > 0.0]
    falls = low[last] - _from_above(event, here + beyond, direction)
    slope = float((falls / np.expm1(beyond + 4.0 * lattice.ULP * here)).max(initial=0.0))
    return float(low[last]) - rest + slope * -math.expm1(step * float(index[last - 1] - index[last])) * (1.0 - 1e-12)


def _indices(
    event: Event, direction: Direction, seen: FloatArray, step: float, log_lost: float, per_fold: float
) -> Indices:
    """Lattice indices from 0 on, until the profile is at most exp(log_lost)."""
    past = int(np.argmax(seen <= log_lost)) if (seen <= log_lost).any() else len(seen) - 1
    low, high = float(saddle.NODES[max(past - 1, 0)]), float(saddle.NODES[past])
    for _ in range(3):
        inner = np.linspace(low, high, 18)[1:]
        under = event.log_profile(inner, direction=direction) <= log_lost
        under[-1] = True
        place = int(np.argmax(under))
        low, high = (low if place == 0 else float(inner[place - 1])), float(inner[place])
    if high > _LARGEST_INDEX * step:
        raise UnsupportedEvent(f"losses up to {high:.3g} nats do not fit a lattice of step {step:.3g}")
    return lattice.nodes(step, high, per_fold)


def _from_above(event: Event, points: FloatArray, direction: Direction) -> FloatArray:
    """The profile, moved by the rounding of the points to the side on which it errs upward."""
    logs = event.log_profile(points * (1.0 - 2.0 * lattice.ULP), direction=direction)
    values = np.exp(logs) * (1.0 + 4.0 * lattice.ULP * (2.0 + np.abs(np.maximum(logs, -1e3))))
    return np.where(np.isneginf(logs), 0.0, np.clip(values, lattice.LEAST, 1.0))


def _from_below(event: Event, points: FloatArray, direction: Direction, below: Below) -> FloatArray:
    logs = below.log_profile(event, points, direction)
    values = np.exp(logs) * (1.0 - 4.0 * lattice.ULP * (2.0 + np.abs(np.maximum(logs, -1e3))))
    return np.where(values > lattice.LEAST, values, 0.0)


def aligned(parts: Iterable[tuple[Event, int]], step: float) -> float:
    """A step, at most `step`, that puts a dot just before a loss which has mass of its own: the most frequent one.

    Where no draw has a largest loss: that of not being sampled, near which the losses crowd.
    """
    parts = tuple(parts)
    limits = [
        (True, count, event.epsilon if isinstance(event, ApproximateEvent) else event.pure_epsilon())
        for event, count in parts
    ]
    limits += [
        (False, count, -math.log1p(-event.sampling_rate))
        for event, count in parts
        if isinstance(event, PoissonSampled) and event.sampling_rate < 1.0
    ]
    limits = [limit for limit in limits if step <= limit[2] < math.inf]
    if not limits:
        return step
    largest = max(limits)[2]
    return largest / math.ceil(largest / step) * (1.0 - _ALIGNED)
