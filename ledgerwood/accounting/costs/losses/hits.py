"""A bound from below for plans in which a single draw decides: rare draws with little noise.

Such losses span more scales than a lattice holds. docs/explanation/pld.md#one-large-loss.
"""

import math

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import joint as lower
from ledgerwood.accounting.costs.losses.worst import Parts
from ledgerwood.accounting.events.base import Event, FloatArray

_LEAST, _LARGEST = 1e-9, 600.0  # nats
_COARSE, _FINE = 400, 200  # thresholds that are tried, and once more around the best of them
_CHORDS = (0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)  # of a threshold: where the chords begin that bound its slope
_ROOM = 1e-9  # relative, for all roundings of floats here
_ULP = 2.0**-52


def epsilon(parts: Parts, direction: Direction, log_delta: float) -> float:
    """An epsilon at which the plan's delta in one direction is above exp(log_delta) or equal; 0 where none is proven.

    Args:
        parts: draws that the plan's dominate, with their counts.
        direction: of the loss.
        log_delta: logarithm of the probability.

    Raises:
        UnsupportedEvent: a draw without a lower bound on its profile.
    """
    best = 0.0
    thresholds = np.geomspace(_LEAST, _LARGEST, _COARSE)
    for _ in range(3):
        shift, logs = _decided(parts, direction, thresholds)
        found = np.where(logs >= log_delta, thresholds * (1.0 - _ROOM) - shift, 0.0)
        place = int(np.argmax(found))
        best = max(best, float(found[place]))
        if not best > 0.0:
            break
        near = thresholds[max(place - 1, 0)], thresholds[min(place + 1, len(thresholds) - 1)]
        thresholds = np.geomspace(near[0], near[1], _FINE)
    return best


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def _decided(parts: Parts, direction: Direction, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each threshold x: what all others add to epsilon, at most, and log of the delta at x less that, at least."""
    shift, lost = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    logs = np.full(len(thresholds), -np.inf)
    for event, count in parts:
        least = np.minimum(lower.log_profile(event, thresholds, direction), 0.0)
        beyond, more = _beyond(event, direction, thresholds, np.exp(least))
        lost += -count * np.log1p(-beyond)
        shift += count * more / (1.0 - beyond)
        logs = np.logaddexp(logs, least + math.log(count))
    shift *= 1.0 + _ROOM
    logs -= lost + _ROOM * (1.0 + np.abs(logs) + lost)
    usable = np.isfinite(shift) & np.isfinite(lost)
    return np.where(usable, shift, np.inf), np.where(usable, logs, -np.inf)


def _beyond(
    event: Event, direction: Direction, thresholds: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """P(loss > x), and P(loss > x) - Q(loss > x), from above; 1 and infinity where that says nothing."""
    height = np.exp(np.minimum(event.log_profile(thresholds, direction=direction), 0.0))
    slope = np.full(len(thresholds), np.inf)  # of the profile at e^x, downward: Q(loss > x)
    for share in _CHORDS:
        start = share * thresholds
        above = np.exp(np.minimum(event.log_profile(start, direction=direction), 0.0))
        fall = above - least + 4.0 * _ULP * above
        slope = np.minimum(slope, fall / (np.exp(start) * np.expm1(thresholds - start) * (1.0 - _ROOM)))
    beyond = (height + np.exp(thresholds) * slope) * (1.0 + _ROOM)
    more = (height + np.expm1(thresholds) * slope) * (1.0 + _ROOM)
    usable = beyond < 1.0
    return np.where(usable, beyond, 1.0), np.where(usable, more, np.inf)
