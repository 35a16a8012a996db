"""A composed distribution of losses read as a curve: bounds on log delta at an epsilon, and on epsilon at a log delta.

docs/explanation/pld.md#loss-rounding. `model` makes a draw's coarse model, which chooses the step of its lattice.
"""

import math
from dataclasses import dataclass

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import dots, lattice, saddle
from ledgerwood.accounting.costs.losses.lattice import Law
from ledgerwood.accounting.events.base import Event, remembered
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


@remembered(128)
def model(event: Event, direction: Direction, log_lost: float) -> saddle.Model:
    """The draw's coarse model, without the losses that a lattice would send to infinity."""
    found = dots.sides(event)
    return saddle.model(found if direction is Direction.REMOVE else found.turned(), log_lost)
