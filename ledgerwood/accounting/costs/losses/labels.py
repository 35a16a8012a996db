"""Allocations of several steps a unit from below: what a sum of labels of the outputs tells, exactly.

Each output becomes a whole number, by bins of its likelihood ratio, and the numbers are added up. That is a function of
the outputs, so that the pair of the sum is dominated by the one of the allocation; and the sum does not depend on which
steps hold the unit, so that its distributions are convolutions. docs/explanation/allocation.md#label-sums.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses.lattice import ULP
from ledgerwood.accounting.events.base import Derived, Event, FloatArray, remembered
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.errors import UnsupportedEvent

_PER_DEVIATION = 48.0  # labels per standard deviation of the sum
_MOST_LABELS = 4096
_REACH = 12.0  # standard deviations of an output beyond which labels are alike
_LEAST = 1e-60  # masses at the ends of a distribution that are dropped
_TAIL_ERROR = 1024.0 * ULP  # relative, of a normal tail up to that distance, its argument's rounding included
_MOST_STEPS = 1 << 20  # whose errors of masses are small
_SHARE = 0.5  # of the rate k / t, in the loss by which outputs are labelled; enters no proof
_CURVED = 0.01  # a variance of the ratio from which labels tell more than the plain sum of the outputs; nor does this


@final
@dataclass(frozen=True, slots=True)
class SummedLabels(Derived):
    """The pair of a sum of labels, from the outputs of an allocation of steps that are Gaussian pairs.

    Args:
        event: the allocation.
        shift: of one step, its mu rounded down.
    """

    event: RandomAllocation
    shift: float

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return self._log_profile(renyi.check_epsilons(epsilons), direction, 1.0)

    def log_profile_below(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """A lower bound on log H at each epsilon >= 0, shape (k,)."""
        return self._log_profile(epsilons, direction, -1.0)

    def _log_profile(self, epsilons: FloatArray, direction: Direction, sign: float) -> FloatArray:
        found = _sums(self)
        p, q = (found.inside, found.outside) if direction is Direction.REMOVE else (found.outside, found.inside)
        strike = np.exp(np.minimum(epsilons, 700.0))[:, np.newaxis]
        rise = sign * (found.error + 8.0 * ULP)
        with np.errstate(divide="ignore"):
            over = np.maximum(p * (1.0 + rise) - strike * q * (1.0 - rise), 0.0).sum(axis=1)
            # What was dropped may be anywhere: it counts against whoever asks.
            over = over + found.dropped if sign > 0.0 else over - strike[:, 0] * found.dropped
            logs = np.log(np.maximum(over * (1.0 + sign * 4.0 * ULP * len(p)), 0.0))
        return np.asarray(np.minimum(logs, 0.0))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.event.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        return math.inf

    def symmetric(self) -> bool:
        return False


def part_of(event: RandomAllocation) -> Event:
    """A part of what the releases tell, whose profile bounds the allocation's from below: allocation.md#fewer."""
    try:
        mu = event.event.mu() * (1.0 - 64.0 * ULP)
    except UnsupportedEvent:
        return event.first_step()
    curved = event.selected**2 / event.steps * math.expm1(min(mu * mu, 700.0))
    if curved < _CURVED or event.steps > _MOST_STEPS:
        noise = math.sqrt(event.steps) / (event.selected * mu) * (1.0 + 8.0 * ULP)
        return GaussianEvent(noise_multiplier=noise, adjacency=event.adjacency)
    return SummedLabels(event, mu)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Masses of the sum's values, with the unit and without it, and by how much they may err.

    Args:
        inside, outside: shape (n,) each, at the same values.
        error: relative.
        dropped: mass of either that is in no value.
    """

    inside: FloatArray
    outside: FloatArray
    error: float
    dropped: float


@dataclass(frozen=True, slots=True)
class _Masses:
    mass: FloatArray
    first: int
    dropped: float

    def plus(self, other: "_Masses") -> "_Masses":
        """The sum of two independent variables, whose far ends are dropped."""
        mass = np.convolve(self.mass, other.mass)
        kept = np.flatnonzero(mass > _LEAST)
        low, high = int(kept[0]), int(kept[-1]) + 1
        lost = float(mass[:low].sum() + mass[high:].sum()) * (1.0 + 1e-6)
        return _Masses(mass[low:high], self.first + other.first + low, self.dropped + other.dropped + lost)

    def times(self, count: int) -> "_Masses":
        """The sum of `count` >= 1 independent copies."""
        found, power = None, self
        while True:
            if count & 1:
                found = power if found is None else found.plus(power)
            count >>= 1
            if not count:
                assert found is not None  # a count has a highest bit
                return found
            power = power.plus(power)


@remembered(64)
def _sums(pair: SummedLabels) -> _Sums:
    """docs/explanation/allocation.md#label-sums."""
    steps, selected, mu = pair.event.steps, pair.event.selected, pair.shift
    edges = _edges(mu, _SHARE * selected / steps, steps)
    outside, error_outside = _masses(edges)
    inside, error_inside = _masses(edges - mu)
    without = _Masses(outside, 0, 0.0)
    rest = without.times(steps - selected) if steps > selected else None
    held = _Masses(inside, 0, 0.0).times(selected)
    inside_sum = held if rest is None else held.plus(rest)
    outside_sum = without.times(steps)
    first = min(inside_sum.first, outside_sum.first)
    size = max(each.first + len(each.mass) for each in (inside_sum, outside_sum)) - first
    both = np.zeros((2, size))
    for row, each in zip(both, (inside_sum, outside_sum), strict=True):
        row[each.first - first : each.first - first + len(each.mass)] = each.mass
    # Each of `steps` factors errs, and each sum of at most `size` positive terms on each of the ways to the root.
    error = steps * max(error_inside, error_outside) + 4.0 * math.log2(2.0 * steps) * (size + 8.0) * ULP
    error += 2.0 * steps * ULP  # products
    if not error < 1e-3:
        raise UnsupportedEvent("the labels of an allocation's outputs have no certain masses")
    dropped = max(inside_sum.dropped, outside_sum.dropped) * steps + 1e-290
    return _Sums(both[0], both[1], 2.0 * error, dropped)


def _edges(mu: float, rate: float, steps: int) -> FloatArray:
    """Outputs x, in standard deviations, at which the label changes: even steps of log(1 - q + q r(x)); ascending.

    Any ascending edges give a bound.
    """
    x = np.linspace(-_REACH, _REACH + mu, 4001)
    loss = mu * x - 0.5 * mu * mu
    value = np.logaddexp(math.log1p(-rate), math.log(rate) + loss)
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    mean = float(weight @ value)
    deviation = math.sqrt(max(float(weight @ (value - mean) ** 2), 1e-300) * steps)
    step = max(deviation / _PER_DEVIATION, float(value[-1] - value[0]) / _MOST_LABELS)
    heights = np.arange(float(value[0]) + step, float(value[-1]), step)
    return np.asarray(np.unique(np.interp(heights, value, x)))


def _masses(edges: FloatArray) -> tuple[FloatArray, float]:
    """Standard normal masses between the edges, and their largest relative error; shape (len(edges) + 1,)."""
    below, above = special.ndtr(edges), special.ndtr(-edges)
    middle = int(np.searchsorted(edges, 0.0))  # the bin that holds 0: bins before it by lower tails, others by upper
    low, high = below[:middle], above[middle:]
    center = 1.0 - float(low[-1] if low.size else 0.0) - float(high[0] if high.size else 0.0)
    mass = np.concatenate((np.diff(low, prepend=0.0), [center], -np.diff(high, append=0.0)))
    whole = np.concatenate((low, [1.0], high))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Each value of ndtr errs by some units in the last place, relative; a difference by those of the larger one.
        error = np.where(mass > 0.0, _TAIL_ERROR * whole / mass, np.inf)
    if not (mass > 0.0).all():
        raise UnsupportedEvent("the labels of an allocation's outputs have no certain masses")
    return mass, float(error.max())
