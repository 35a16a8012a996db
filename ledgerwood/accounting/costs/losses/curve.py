"""The curve of a composed loss, and its draws.

A composed distribution read as a curve: bounds on log delta at an epsilon, and on epsilon at a log delta.

docs/explanation/pld.md#loss-rounding.

One draw on a lattice: where its losses lie, and its profile at the dots, from above and from below.

docs/explanation/pld.md#above and #below.
"""

import math
from dataclasses import dataclass

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import joint, lattice, saddle, worst
from ledgerwood.accounting.costs.losses.lattice import Dots, Indices, Law
from ledgerwood.accounting.events.base import Event, FloatArray, remembered
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.errors import UnsupportedEvent


@dataclass(frozen=True, slots=True)
class ComposedCurve:
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
            raise UnsupportedEvent("the plan's losses exceed the range of float64")
        return value

    def _bound(self, total: float, epsilon: float) -> float:
        """log delta from the tilted sum; its rounding is in docs/explanation/pld.md#loss-rounding."""
        law, misplaced = self.law, self.misplaced_tilted(epsilon)
        rounding = 4e-12 + 8.0 * lattice.ULP * law.tilt * (epsilon + 1.0)
        shift = law.log_scale - law.tilt * epsilon
        if not self.above:
            left = total * (1.0 - rounding) - misplaced
            value = math.log(left) + shift - law.growth - rounding if left > 0.0 else -math.inf
            if law.infinite > 0.0:
                value = float(np.logaddexp(value, math.log(law.infinite) + law.log_whole)) - rounding
            return value
        value = math.log(total * (1.0 + rounding) + misplaced) + shift
        if law.infinite > 0.0:
            value = float(np.logaddexp(value, math.log(law.infinite) + law.log_whole))
        return value + law.growth + rounding

    def misplaced_tilted(self, epsilon: float) -> float:
        """Bounds the change of the tilted sum by misplaced mass."""
        law = self.law
        # The largest weight e^{-tilt y} (1 - e^{-y}) that any of it can have.
        weight = math.exp(-math.log1p(law.tilt) - law.tilt * math.log1p(1.0 / law.tilt))
        return weight * law.error * (1.0 + 1e-6) + 4.0 * lattice.ULP * epsilon

    def misplaced(self, epsilon: float) -> float:
        """The part of the bound on delta at `epsilon` that stands for mass misplaced by rounding and by windows."""
        log_part = math.log(self.misplaced_tilted(epsilon)) + self.law.log_scale - self.law.tilt * epsilon
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


def aligned(parts: worst.Parts, step: float) -> float:
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
    rest = math.exp(joint.log_infinite(event, direction)) * (1.0 - 1e-9)
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
    logs = joint.log_profile(event, points, direction)
    values = np.exp(logs) * (1.0 - 4.0 * lattice.ULP * (2.0 + np.abs(np.maximum(logs, -1e3))))
    return np.where(values > lattice.LEAST, values, 0.0)
