"""A plan's curve by its losses: certified points from above and from below, each direction composed apart.

docs/explanation/pld.md#plan.
"""

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.sampling import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.accounting.losses import groups, lattice, lower, saddle, spectrum
from ledgerwood.accounting.losses.lattice import Dots, Indices, Law
from ledgerwood.errors import UnsupportedEvent

Side = Literal["above", "below"]

FINENESS = 64.0  # the lattice's errors go with its inverse square
_MOST_POINTS = 1 << 17  # beyond which blocks are composed first
_MOST_POINTS_EVER = 1 << 20
_LARGEST_INDEX = float(1 << 40)
_FAR = 1.05  # of the epsilon that the coarse model expects
_CLEARLY_LESS = 0.8
_ROOM = 3e-5  # relative to epsilon: what each of the three lattices of a plan may add to it at that fineness
_SMALL = 0.02  # nats, below which that is absolute
_LOG_OUTSIDE = math.log(1e-13)
_ALIGNED = 1e-9  # relative: how far before a largest loss its dot is put, so that the loss is surely not less
_NEGLIGIBLE = 1e-7  # of delta: the mass that goes to infinity
_NARROW = 5e-5
_TARGETS = (math.log(0.1), math.log(1e-4), math.log(1e-10))  # deltas at which a whole curve is composed
_LEAST_LOG_DELTA = math.log(1e-280)


@dataclass(frozen=True, slots=True)
class Curve:
    """One direction of a composed plan near `point`: bounds on log delta, and on epsilon."""

    law: Law
    above: bool

    def log_delta(self, epsilon: float) -> float:
        """The bound at `epsilon` >= 0."""
        law = self.law
        losses = law.index * law.step
        start = int(np.searchsorted(losses, epsilon, side="right"))
        y = losses[start:] - epsilon
        # Not BLAS, whose threads cost more.
        total = float((law.mass[start:] * np.exp(-law.tilt * y) * -np.expm1(-y)).sum())
        value = self._bound(total, epsilon)
        if math.isnan(value):
            raise UnsupportedEvent("the plan's losses leave the range of numbers")
        return value

    def _bound(self, total: float, epsilon: float) -> float:
        """log delta from the tilted sum; its rounding is in docs/explanation/pld.md#loss-rounding."""
        law, misplaced = self.law, self._misplaced(epsilon)
        rounding = 4e-12 + 8.0 * lattice.ULP * law.tilt * (epsilon + 1.0)
        shift = law.log_scale - law.tilt * epsilon
        if not self.above:
            left = total * (1.0 - rounding) - misplaced
            return math.log(left) + shift - law.growth - rounding if left > 0.0 else -math.inf
        value = math.log(total * (1.0 + rounding) + misplaced) + shift
        if law.infinite > 0.0:
            value = float(np.logaddexp(value, math.log(law.infinite) + law.log_whole))
        return value + law.growth + rounding

    def _misplaced(self, epsilon: float) -> float:
        """What misplaced mass can change the tilted sum by."""
        law = self.law
        # The largest weight e^{-tilt y} (1 - e^{-y}) that any of it can have.
        weight = math.exp(-math.log1p(law.tilt) - law.tilt * math.log1p(1.0 / law.tilt))
        return weight * law.error * (1.0 + 1e-6) + 4.0 * lattice.ULP * epsilon

    def misplaced(self, epsilon: float) -> float:
        """The part of the bound on delta at `epsilon` that stands for mass misplaced by rounding and by windows."""
        log_part = math.log(self._misplaced(epsilon)) + self.law.log_scale - self.law.tilt * epsilon
        return math.exp(min(log_part, 0.0))

    def epsilon(self, log_delta: float, near: float) -> float:
        """The epsilon at which the bound meets `log_delta`: it does (above), or it does not yet (below)."""
        rate = self.law.tilt + 1.0
        low, high = 0.0, near
        f_high = self.log_delta(high) - log_delta
        width = max(1e-3 * near, 1e-2 / rate)
        while f_high > 0.0:
            low, high, width = high, high + width, 2.0 * width
            f_high = self.log_delta(high) - log_delta
            if high > 1e9:
                return math.inf if self.above else low
        if low == 0.0:
            trial, width = max(near - width, 0.0), 2.0 * width
            while True:
                value = self.log_delta(trial) - log_delta
                if value > 0.0:
                    low = trial
                    break
                high = trial
                if trial == 0.0:
                    return 0.0
                trial, width = max(trial - width, 0.0), 2.0 * width
        f_low, f_high = self.log_delta(low) - log_delta, self.log_delta(high) - log_delta
        for _ in range(100):
            if high - low <= 1e-9 * high:
                break
            if math.isfinite(f_low) and math.isfinite(f_high):
                middle = low + (high - low) * f_low / (f_low - f_high)
                room = 2e-10 * high
                middle = min(max(middle + room, low + 0.2 * room), high - 0.2 * room)
            else:
                middle = 0.5 * (low + high)
            value = self.log_delta(middle) - log_delta
            if value > 0.0:
                if (high - middle) > 0.5 * (high - low):
                    f_high *= 0.5
                low, f_low = middle, value
            else:
                if (middle - low) > 0.5 * (high - low):
                    f_low *= 0.5
                high, f_high = middle, value
        return high if self.above else low


@functools.lru_cache(maxsize=64)
def _sides(event: Event) -> saddle.Sides:
    return saddle.sides(event)


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct draws of an event, with their profiles seen from afar.

    Args:
        parts: draws that dominate the event's, each with its count.
        below: draws that the event's dominate; the same ones unless there were too many.
        symmetric: whether both directions are alike.
    """

    parts: groups.Parts
    below: groups.Parts
    symmetric: bool

    @property
    def grouped(self) -> bool:
        """Whether there were more distinct draws than can be composed."""
        return self.parts is not self.below

    def directions(self) -> tuple[Direction, ...]:
        return (Direction.REMOVE,) if self.symmetric else (Direction.REMOVE, Direction.ADD)

    def models(self, direction: Direction, log_delta: float) -> list[tuple[saddle.Model, int]]:
        """The coarse models of the draws, for questions about deltas near exp(log_delta)."""
        log_lost = self.log_lost(log_delta)
        return [(_model(event, direction, log_lost), count) for event, count in self.parts]

    def log_lost(self, log_delta: float) -> float:
        """Where one draw's profile is small enough for its rest to go to infinity."""
        return log_delta + math.log(_NEGLIGIBLE) - math.log(sum(count for _, count in self.parts))

    def point_at_epsilon(self, direction: Direction, epsilon: float) -> saddle.Point:
        """The point of the coarse curve at `epsilon`, its models cut for the delta that is found there."""
        point = saddle.point_at_epsilon(self.models(direction, _LEAST_LOG_DELTA), epsilon)
        for _ in range(2):
            guess = min(max(point.log_delta, _LEAST_LOG_DELTA), 0.0)
            point = saddle.point_at_epsilon(self.models(direction, guess), epsilon)
        return point


@functools.lru_cache(maxsize=128)
def _model(event: Event, direction: Direction, log_lost: float) -> saddle.Model:
    found = _sides(event)
    return saddle.model(found if direction is Direction.REMOVE else found.turned(), log_lost)


def plan(event: Event) -> Plan:
    """The plan of an event.

    Raises:
        UnsupportedEvent: a draw without a profile, or too many distinct draws that are too different to group.
    """
    above, below = groups.parts(event)
    for part, _ in above:
        part.log_profile(np.zeros(1), direction=Direction.REMOVE)
    return Plan(above, below, all(part.symmetric() for part, _ in above))


def epsilon(found: Plan, log_delta: float, *, above: bool, fineness: float = FINENESS) -> float:
    """The epsilon at `log_delta`, from above or from below; the larger direction."""
    if log_delta < _LEAST_LOG_DELTA:
        raise UnsupportedEvent(f"log delta {log_delta!r} is below {_LEAST_LOG_DELTA:.6g}, the least for privacy losses")
    if above and log_delta >= _log_any_difference(found):
        return 0.0
    points = [(saddle.point_at_delta(found.models(d, log_delta), log_delta), d) for d in found.directions()]
    points.sort(key=lambda item: -item[0].epsilon)
    best = 0.0
    for place, (point, direction) in enumerate(points):
        if place == 0:
            best = _epsilon(found, direction, point, log_delta, above, fineness)
        elif above:  # a coarse bound will do where it shows that this direction is the smaller one
            if _epsilon(found, direction, point, log_delta, above, 0.25 * fineness) > best:
                best = max(best, _epsilon(found, direction, point, log_delta, above, fineness))
        elif point.epsilon > _CLEARLY_LESS * best:  # from below either direction is a bound
            best = max(best, _epsilon(found, direction, point, log_delta, above, fineness))
    return best


def _epsilon(
    found: Plan, direction: Direction, point: saddle.Point, log_delta: float, above: bool, fineness: float
) -> float:
    near = max(point.epsilon, 0.0)
    value = _curve(found, direction, point, above, fineness, log_delta).epsilon(log_delta, near)
    if above and value > _FAR * near + _NARROW:  # from what the coarse model expects: once more on a finer lattice
        with contextlib.suppress(UnsupportedEvent):
            finer = _curve(found, direction, point, above, 4.0 * fineness, log_delta)
            value = min(value, finer.epsilon(log_delta, near))
    return value


def log_delta(found: Plan, epsilon: float, *, above: bool, fineness: float = FINENESS) -> float:
    """log delta at `epsilon`, from above or from below; the larger direction."""
    if not above:
        return _log_delta(found, epsilon, above, fineness)
    cap = _log_any_difference(found)
    try:
        return min(_log_delta(found, epsilon, above, fineness), cap)
    except UnsupportedEvent:
        if cap >= 0.0:
            raise
        return cap


def _log_any_difference(found: Plan) -> float:
    """log of a bound on delta at every epsilon: that any draw's output tells at all. docs/explanation/pld.md#rare."""
    with np.errstate(divide="ignore"):  # clipped where exponentials are still exact to a few units
        same = sum(
            count * float(np.log1p(-np.exp(np.clip(_sides(event).ahead[0], -690.0, 0.0))))
            for event, count in found.parts
        )
    return min(math.log(-math.expm1(same)) + 1e-12 * (1.0 + len(found.parts)), 0.0)


def _log_delta(found: Plan, epsilon: float, above: bool, fineness: float) -> float:
    best = -math.inf
    for direction in found.directions():
        point = found.point_at_epsilon(direction, epsilon)
        target = min(max(point.log_delta, _LEAST_LOG_DELTA), 0.0)
        value = _curve(found, direction, point, above, fineness, target).log_delta(epsilon)
        for _ in range(6):  # again, as `epsilon` would ask for this delta, until that no longer helps
            if not _LEAST_LOG_DELTA < value < 0.0:
                break
            point = saddle.point_at_delta(found.models(direction, value), value)
            try:
                again = _curve(found, direction, point, above, fineness, value).log_delta(epsilon)
            except UnsupportedEvent:
                break
            gain = value - again if above else again - value
            if gain > 0.0:
                value = again
            if gain < 1e-3:
                break
        best = max(best, value)
    return best


def interval(found: Plan, log_delta: float) -> tuple[float, float]:
    """(below, above) around the epsilon at `log_delta`, refined until it is narrow or the lattice is at its limit."""
    low, high, fineness, before = 0.0, math.inf, FINENESS, math.inf
    for _ in range(3):
        try:
            high = min(high, epsilon(found, log_delta, above=True, fineness=fineness))
        except UnsupportedEvent:
            if math.isinf(high):
                raise
            break
        try:
            low = max(low, epsilon(found, log_delta, above=False, fineness=fineness))
        except UnsupportedEvent:  # no lower bound is proven for one of the draws
            break
        wide = (high - low) / max(_NARROW, 10.0 * _NARROW * high)
        if wide <= 1.0 or not wide < 0.5 * before or found.grouped:
            break
        before, fineness = wide, fineness * min(1.2 * math.sqrt(wide), 8.0)
    return low, high


def estimated_epsilon(found: Plan, log_delta: float) -> float:
    """The epsilon at `log_delta` by the coarse models' saddle point: fast, and no bound; inf where they say nothing."""
    if any(max(_sides(event).ahead[-1], _sides(event).back[-1]) > log_delta for event, _ in found.parts):
        return math.inf
    return max(0.0, *(saddle.point_at_delta(found.models(d, log_delta), log_delta).epsilon for d in found.directions()))


def curves(found: Plan, log_delta: float) -> list[Curve]:
    """The bounds from above that are tight near `log_delta` and hold at every epsilon: one a direction."""
    points = [(d, saddle.point_at_delta(found.models(d, log_delta), log_delta)) for d in found.directions()]
    return [_curve(found, direction, point, True, FINENESS, log_delta) for direction, point in points]


def log_deltas(found: Plan, epsilons: FloatArray) -> FloatArray:
    """log delta from above at each epsilon (k,), from few compositions; the larger direction. Wider than `log_delta`.

    Raises:
        UnsupportedEvent: none of the compositions fits a lattice.
    """
    best = np.full(len(epsilons), np.inf)
    for target in _TARGETS:
        with contextlib.suppress(UnsupportedEvent):
            composed = curves(found, target)
            values = [max(curve.log_delta(float(epsilon)) for curve in composed) for epsilon in epsilons]
            best = np.minimum(best, values)
    if len(best) and math.isinf(best[0]):
        raise UnsupportedEvent("the plan's losses span too many scales for one lattice")
    return np.asarray(np.minimum(best, 0.0))


def _curve(
    found: Plan, direction: Direction, point: saddle.Point, above: bool, fineness: float, log_target: float
) -> Curve:
    total = sum(count for _, count in found.parts)
    models = found.models(direction, log_target)
    spread = sum(count * item.moments(0.0)[2] for item, count in models)
    tilt, variance = point.tilt, point.variance
    while variance < 0.02 * spread and tilt > 1e-3:  # near the largest loss of all; any tilt gives a bound
        tilt *= 0.7
        variance = sum(count * item.moments(tilt)[2] for item, count in models)
    deviation = math.sqrt(variance)
    room = _ROOM * max(point.epsilon, _SMALL) * (FINENESS / fineness) ** 2 / (1.0 + tilt)
    step, per_fold = saddle.grid(models, tilt, room)
    step = min(step, deviation / 8.0)
    if not step > 0.0:
        raise UnsupportedEvent("the plan's losses are too small, or too large, for a lattice")
    log_lost = found.log_lost(log_target)
    tried = 0.0
    for _ in range(8):
        aligned = _aligned(found, step)
        step = tried = aligned if aligned > tried else step  # else it would be the one that was too fine
        laws = [
            (lattice.law(_dots(event, direction, step, log_lost, above, per_fold), tilt=tilt, above=above), count)
            for event, count in (found.parts if above else found.below)
        ]
        first, last = spectrum.window(laws, deviation, _LOG_OUTSIDE)
        if last - first < _MOST_POINTS or total < 64:
            if last - first <= _MOST_POINTS_EVER:
                return Curve(spectrum.compose(laws, first, last, _LOG_OUTSIDE), above)
            step *= 1.01 * (last - first) / _MOST_POINTS_EVER
            continue
        curve, excess = _in_stages(laws, deviation, room, above)
        if curve is not None:
            return curve
        step *= 1.01 * excess
    raise UnsupportedEvent("the plan's losses span too many scales for one lattice")


def _in_stages(laws: list[tuple[Law, int]], deviation: float, room: float, above: bool) -> tuple[Curve | None, float]:
    """Blocks of draws on the fine lattice first, then the blocks on one as coarse as adding variance `room` allows."""
    total = sum(count for _, count in laws)
    block = max(2, round(math.sqrt(total)))
    factor = max(1, math.floor(math.sqrt(6.0 * room * block / total) / laws[0][0].step)).bit_length() - 1
    deviation_of_block = deviation * math.sqrt(block / total)
    log_outside_block = _LOG_OUTSIDE - math.log(total / block)
    groups: list[tuple[list[tuple[Law, int]], int]] = []
    groups.extend(([(item, block)], count // block) for item, count in laws if count >= block)
    if rest := [(item, count % block) for item, count in laws if count % block]:
        groups.append((rest, 1))
    blocks: list[tuple[Law, int]] = []
    for group, count in groups:
        first, last = spectrum.window(group, deviation_of_block, log_outside_block)
        if last - first > _MOST_POINTS_EVER:
            return None, (last - first) / _MOST_POINTS_EVER
        composed = spectrum.compose(group, first, last, log_outside_block)
        trimmed = spectrum.trim(composed, math.exp(log_outside_block))
        blocks.append((spectrum.coarsen(trimmed, 2**factor, above=above) if factor else trimmed, count))
    first, last = spectrum.window(blocks, deviation, _LOG_OUTSIDE)
    if last - first > _MOST_POINTS_EVER:
        return None, (last - first) / _MOST_POINTS_EVER
    return Curve(spectrum.compose(blocks, first, last, _LOG_OUTSIDE), above), 1.0


def _aligned(found: Plan, step: float) -> float:
    """A step, at most `step`, that puts a dot just before a loss which has mass of its own: the most frequent one.

    Where no draw has a largest loss: that of not being sampled, near which the losses crowd.
    """
    limits = [
        (True, count, event.epsilon if isinstance(event, ApproximateEvent) else event.pure_epsilon())
        for event, count in found.parts
    ]
    limits += [
        (False, count, -math.log1p(-event.sampling_rate))
        for event, count in found.parts
        if isinstance(event, PoissonSampled) and event.sampling_rate < 1.0
    ]
    limits = [limit for limit in limits if step <= limit[2] < math.inf]
    if not limits:
        return step
    largest = max(limits)[2]
    return largest / math.ceil(largest / step) * (1.0 - _ALIGNED)


def _dots(event: Event, direction: Direction, step: float, log_lost: float, above: bool, per_fold: float) -> Dots:
    seen = _sides(event)
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
    caps = _cap(event, ahead_index, step, low_h, direction), _cap(event, back_index, step, low_g, other)
    return Dots(step, ahead_index, low_h, back_index, low_g, h - low_h, g - low_g, *caps)


def _cap(event: Event, index: Indices, step: float, low: FloatArray, direction: Direction) -> float:
    """The height, before the last positive dot, of a line through that dot and a point just beyond it.

    By convexity it lies under the profile there; it tells an atom at the end of a support from a density.
    """
    last = int(np.flatnonzero(low > 0.0).max(initial=0))
    if last == 0:
        return 0.0
    beyond = step * 0.5 ** np.arange(1.0, 48.0)
    here = float(index[last]) * step
    beyond = (here + beyond) - here  # as the sums were rounded
    beyond = beyond[beyond > 0.0]
    falls = low[last] - _from_above(event, here + beyond, direction)
    slope = float((falls / np.expm1(beyond + 4.0 * lattice.ULP * here)).max(initial=0.0))
    return float(low[last]) + slope * -math.expm1(step * float(index[last - 1] - index[last])) * (1.0 - 1e-12)


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
