"""A privacy profile that is given at points, proven elsewhere. docs/explanation/events.md#tabulated.

Between the points the profile is bounded by chords in x = e^eps: the greatest function that keeps the contract of a
profile and the points. It is the profile of a discrete pair, so everything else follows exactly from that pair.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.stated import numbers, require_increasing
from ledgerwood.errors import InvalidParameter

_LARGEST_EPSILON = 700.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEvent(Event):
    """Any mechanism that is (epsilons[i], deltas[i])-private for every i, in both directions.

    The profile bounds the mechanism alone, sampled and in groups. Renyi divergences (and so composition by them) are
    finite only if the last delta is 0.

    Args:
        epsilons: increasing, in [0, 700], in nats; at most 10 000.
        deltas: one per epsilon, in [0, 1], the last below 1; a delta above an earlier one is lowered to it.
        adjacency: the relation under which they hold.

    Raises:
        InvalidParameter: a value outside its bound, lengths that differ, or delta 0 at epsilon 0.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        epsilons, deltas = numbers("epsilons", self.epsilons), numbers("deltas", self.deltas)
        if len(epsilons) != len(deltas):
            raise InvalidParameter(f"epsilons has {len(epsilons)} values and deltas {len(deltas)}; give pairs")
        require_increasing("epsilons", epsilons, "nats")
        if epsilons[0] < 0.0 or epsilons[-1] > _LARGEST_EPSILON:
            raise _validate.fail("epsilons", epsilons, f"in [0, {_LARGEST_EPSILON:g}]", "nats")
        for value in deltas:
            if not (value == 0.0 or 1e-300 <= value <= 1.0):
                raise _validate.fail("deltas", value, "0 or in [1e-300, 1]", "probability")
        if min(deltas) == 1.0:
            raise _validate.fail("deltas", min(deltas), "below 1 somewhere", "probability")
        if epsilons[0] == 0.0 and deltas[0] == 0.0:
            raise _validate.fail("deltas", deltas[0], "> 0 at epsilon 0: else nothing is released", "probability")
        object.__setattr__(self, "epsilons", epsilons)
        object.__setattr__(self, "deltas", deltas)
        require_adjacency(self.adjacency)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """The chords in e^eps; from the last point on its delta."""
        t = renyi.check_epsilons(epsilons)
        ends, deltas = _corners(self.epsilons, self.deltas)
        right = np.minimum(np.searchsorted(ends, t, side="right"), ends.size - 1)
        inside = t < ends[-1]
        s = np.where(inside, t, 0.0)
        # the share of the corner on the left: (x1 - x) / (x1 - x0), with x0 = -1 for the first chord
        below = renyi.log1mexp(np.minimum(s - ends[right], 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.where(right > 0, ends[right - 1], 0.0)
            whole = renyi.log1mexp(np.minimum(left - ends[right], 0.0))
            grown = np.log(-np.expm1(np.minimum(left - s, 0.0)))
            first = np.log1p(np.exp(-ends[right]))
            share_left = np.where(right > 0, below - whole, below - first)
            share_right = np.where(
                right > 0, s - ends[right] + grown - whole, s - ends[right] + np.log1p(np.exp(-s)) - first
            )
            logs = np.log(deltas)
            chord = np.logaddexp(share_left + np.where(right > 0, logs[right - 1], 0.0), share_right + logs[right])
            last = float(logs[-1])
        return np.where(inside, np.minimum(renyi.raise_log(chord, 32), 0.0), last)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        excess = self.log_excess_moments(a, sampling_rate=1.0)
        return np.minimum(renyi.guarded(excess, a), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        ends, deltas = _corners(self.epsilons, self.deltas)
        return float(ends[-1]) if deltas[-1] == 0.0 else math.inf

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        ends, deltas = _corners(self.epsilons, self.deltas)
        if deltas[-1] > 0.0:
            return np.full(p.shape, np.inf)
        moved = ends > 0.0  # at ratio 1 nothing is in excess
        log_weight, ends = _log_masses(ends, deltas)[moved], ends[moved]
        return quadrature.discrete_log_excess(
            p,
            log_weight=np.concatenate((log_weight + ends, log_weight)),
            log_ratio=np.concatenate((-ends, ends)),
            sampling_rate=sampling_rate,
        )


@functools.lru_cache(maxsize=64)
def _corners(epsilons: tuple[float, ...], deltas: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Corners of the greatest convex minorant at e^eps >= 1 that its mirror image continues: epsilons and deltas.

    A function that is its own mirror image is convex if it is on x >= 1 together with the point (-1, 1), through which
    all lines pass that are their own mirror images. That point comes before the corners that are returned.
    """
    points: list[tuple[float, float]] = []
    steepness: list[float] = []  # log of minus the slope of the chord that ends in each point
    least = 1.0
    for end, delta in zip(epsilons, deltas, strict=True):
        if delta >= least:
            continue  # the profile does not rise, so the earlier point says as much
        least = delta
        while points and _steepness(points[-1], (end, delta)) >= steepness[-1]:
            points.pop()
            steepness.pop()
        steepness.append(_steepness(points[-1] if points else None, (end, delta)))
        points.append((end, delta))
        if delta == 0.0:
            break
    table = np.array(points)
    return table[:, 0], table[:, 1]


def _steepness(left: tuple[float, float] | None, right: tuple[float, float]) -> float:
    """log of minus the slope, in x = e^eps, from `left` (None: the point (-1, 1)) to `right`."""
    end, delta = right
    if left is None:
        return math.log1p(-delta) - end - math.log1p(math.exp(-end))
    return math.log(left[1] - delta) - end - math.log(-math.expm1(left[0] - end))


def _log_masses(ends: FloatArray, deltas: FloatArray) -> FloatArray:
    """log Q(log r = end) at each corner: the rise of the slope there, rounded up, shape (n,)."""
    points = list(zip(ends.tolist(), deltas.tolist(), strict=True))
    steep = [_steepness(points[i - 1] if i else None, point) for i, point in enumerate(points)]
    before = np.array(steep)
    after = np.array([*steep[1:], -math.inf])
    guard = 16.0 * renyi.ULP * (2.0 + np.abs(before))
    with np.errstate(divide="ignore"):
        rise = -np.expm1(np.minimum(after - before, 0.0)) + 2.0 * guard
    masses = before + np.log(rise)
    return np.asarray(masses)
