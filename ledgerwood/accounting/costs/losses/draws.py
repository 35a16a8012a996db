"""One draw on a lattice: where its losses lie, and its profile at the dots, from above and from below.

docs/explanation/pld.md#above and #below.
"""

import math

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import groups, lattice, lower, saddle
from ledgerwood.accounting.costs.losses.lattice import Dots, Indices
from ledgerwood.accounting.events.base import Event, FloatArray, remembered
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.errors import UnsupportedEvent

_LARGEST_INDEX = float(1 << 40)
_ALIGNED = 1e-9  # relative: how far before a largest loss its dot is put, so that the loss is surely not less


@remembered(64)
def sides(event: Event) -> saddle.Sides:
    """Both directions of the draw's profile, seen from afar."""
    return saddle.sides(event)


@remembered(128)
def model(event: Event, direction: Direction, log_lost: float) -> saddle.Model:
    """The draw's coarse model, without the losses that a lattice would send to infinity."""
    found = sides(event)
    return saddle.model(found if direction is Direction.REMOVE else found.turned(), log_lost)


def aligned(parts: groups.Parts, step: float) -> float:
    """A step, at most `step`, that puts a dot just before a loss which has mass of its own: the most frequent one.

    Where no draw has a largest loss: that of not being sampled, near which the losses crowd.
    """
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


def dots(event: Event, direction: Direction, step: float, log_lost: float, above: bool, per_fold: float) -> Dots:
    seen = sides(event)
    ahead, back = (seen.ahead, seen.back) if direction is Direction.REMOVE else (seen.back, seen.ahead)
    other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
    ahead_index = _indices(event, direction, ahead, step, log_lost, per_fold)
    back_index = _indices(event, other, back, step, log_lost, per_fold)
    points: FloatArray = np.asarray(ahead_index * step, dtype=np.float64)
    back_points: FloatArray = np.asarray(back_index * step, dtype=np.float64)
    h, g = _from_above(event, points, direction), _from_above(event, back_points, other)
    h[0] = g[0] = max(h[0], g[0])
    if above:
        return Dots(step, ahead_index, h, back_index, g)
    low_h, low_g = _from_below(event, points, direction), _from_below(event, back_points, other)
    low_h[0] = low_g[0] = min(low_h[0], low_g[0])
    rest = math.exp(lower.log_infinite(event, direction)) * (1.0 - 1e-9)
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


def _from_below(event: Event, points: FloatArray, direction: Direction) -> FloatArray:
    logs = lower.log_profile(event, points, direction)
    values = np.exp(logs) * (1.0 - 4.0 * lattice.ULP * (2.0 + np.abs(np.maximum(logs, -1e3))))
    return np.where(values > lattice.LEAST, values, 0.0)
