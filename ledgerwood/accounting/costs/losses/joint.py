"""Compositions inside a sample or a group: bounds on their profile at any epsilon, from a few composed distributions.

From above by a convex function through some of their values, from below by the values themselves
(docs/explanation/pld.md#joint).

`log_profile` bounds the log profile of one draw from below. Events round upward; here each formula is taken at an
argument moved by its own rounding error the other way, and lowered by its guard
(docs/explanation/pld.md#lower-profile).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses import averages, lattice
from ledgerwood.accounting.costs.losses.attained import RangePair
from ledgerwood.accounting.costs.losses.dots import Below
from ledgerwood.accounting.costs.losses.labels import SummedLabels
from ledgerwood.accounting.costs.losses.lattice import ULP, Law
from ledgerwood.accounting.costs.losses.replaced import ReplacedRowPair
from ledgerwood.accounting.events.base import Derived, Event, FloatArray, remembered
from ledgerwood.accounting.events.choices.pure import (
    BoundedRangeEvent,
    PureEvent,
    RandomizedResponseEvent,
    interpolated_below,
)
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.noise.discrete import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    gaussian_corners,
    laplace_corners,
)
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_profile
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent, StaircaseEvent, TruncatedLaplaceEvent
from ledgerwood.accounting.events.noise.mixture import GaussianMixtureEvent, log_ratio, outputs_at, profile_at
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, skellam_corners
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent, ProfileEvent
from ledgerwood.errors import UnsupportedEvent

END = 500.0  # nats: the last loss of a table of chords, so that exponentials of losses are numbers
_PER_FOLD = 2048.0  # dots of a table per factor e of the loss
_MOST_POINTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Sums:
    """The profile of a composed distribution at its lattice points from 0 on; between them it is linear in e^t.

    Args:
        law: its constants, without its masses.
        above: which bound it is.
        misplaced: what misplaced mass can change a tilted sum by.
        values: shape (k,), the sums over mass beyond each point, tilted there.
    """

    law: Law
    above: bool
    misplaced: float
    values: FloatArray

    def log_profile(self, epsilons: FloatArray) -> FloatArray:
        """The bound on log H at each epsilon >= 0, shape (k,)."""
        law, last = self.law, len(self.values) - 1
        # The profile falls, so that uncertain losses are moved to the side on which it errs rightly.
        t = epsilons * (1.0 - 8.0 * ULP if self.above else 1.0 + 8.0 * ULP)
        place = np.minimum(np.floor(t / law.step), float(last)).astype(np.int64)
        gap = np.maximum(t - place * law.step, 0.0)
        share = np.minimum(np.expm1(np.minimum(gap, law.step)) / math.expm1(law.step), 1.0)
        beside = self.values[np.minimum(place + 1, last)] * math.exp(-law.tilt * law.step)
        sums = np.where(place == last, 0.0, self.values[place] * (1.0 - share) + beside * share)
        rounding = 4e-12 + 8.0 * ULP * (law.tilt * (t + 1.0) + len(self.values) * (2.0 + (law.tilt + 1.0) * law.step))
        shift = law.log_scale - law.tilt * law.step * place
        with np.errstate(divide="ignore"):
            if not self.above:
                left = sums * (1.0 - rounding) - self.misplaced * np.exp(-law.tilt * np.minimum(gap, law.step))
                logs = np.log(np.maximum(left, 0.0)) + shift - law.growth - rounding
                return np.where(place == last, -np.inf, logs)
            logs = np.log(sums * (1.0 + rounding)) + shift
            logs = np.logaddexp(logs, math.log(self.misplaced) + law.log_scale - law.tilt * t)
            if law.infinite > 0.0:
                logs = np.logaddexp(logs, math.log(law.infinite) + law.log_whole)
            return np.asarray(logs + law.growth + rounding)


def sums(law: Law, misplaced: float, *, above: bool) -> Sums:
    """The sums of a distribution on consecutive indices, by recurrences of positive terms.

    Raises:
        UnsupportedEvent: a lattice of too many points, or a number that is not one.
    """
    last = int(law.index[-1])
    if last >= _MOST_POINTS:
        raise UnsupportedEvent(f"a composition's losses reach {last} lattice points, more than {_MOST_POINTS}")
    mass = np.zeros(max(last, 0) + 2)
    kept = law.index >= 0
    mass[law.index[kept]] = law.mass[kept]
    decay, faster = math.exp(-law.tilt * law.step), math.exp(-(law.tilt + 1.0) * law.step)
    grown = decay * -math.expm1(-law.step)
    values, beyond, total = [], 0.0, 0.0
    for m in mass[::-1].tolist():
        total = decay * total + grown * beyond
        beyond = faster * beyond + m
        values.append(total)
    found = np.array(values[::-1])
    if not np.isfinite(found).all() or not math.isfinite(law.log_scale + law.growth + misplaced):
        raise UnsupportedEvent("the losses of a composition exceed the range of float64")
    return Sums(replace(law, index=law.index[:0], mass=law.mass[:0]), above, misplaced, found)


@dataclass(frozen=True, slots=True)
class Chords:
    """A profile's bound from above: linear in e^t between the `losses` (ascending from 0), constant beyond the last."""

    losses: FloatArray
    values: FloatArray

    def log_profile(self, epsilons: FloatArray) -> FloatArray:
        """The bound on log H at each epsilon >= 0, shape (k,)."""
        t = np.minimum(epsilons * (1.0 - 8.0 * ULP), self.losses[-1])
        place = np.clip(np.searchsorted(self.losses, t, side="right") - 1, 0, len(self.losses) - 2)
        start, end = self.losses[place], self.losses[place + 1]
        share = np.clip(np.expm1(np.maximum(t - start, 0.0)) / np.expm1(end - start), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = np.log(self.values[place] * (1.0 - share) + self.values[place + 1] * share)
        return np.asarray(logs + 32.0 * ULP)


def chords(ahead: tuple[Sums, ...], back: tuple[Sums, ...], pure_epsilon: float) -> tuple[Chords, Chords]:
    """Both directions of a convex bound from above: some of the least values of each, those that bend the right way."""
    (t, h), (s, g) = _dots(ahead, pure_epsilon), _dots(back, pure_epsilon)
    h[0] = g[0] = min(h[0], g[0])
    (t, h), (s, g) = _convex(t, h), _convex(s, g)
    return _joined(t, h, s, g)


def _dots(found: tuple[Sums, ...], pure_epsilon: float) -> tuple[list[float], list[float]]:
    """The least bound at each of many losses, and 0 at the pure epsilon."""
    step = min(item.law.step for item in found)
    end = max((len(item.values) - 1) * item.law.step for item in found)
    losses: FloatArray = np.asarray(lattice.nodes(step, min(end, END, pure_epsilon), _PER_FOLD) * step, np.float64)
    losses = losses[losses < pure_epsilon]
    logs = np.minimum(np.minimum.reduce([item.log_profile(losses) for item in found]), 0.0)
    values = np.clip(np.exp(logs) * (1.0 + 4.0 * ULP * (2.0 + np.abs(np.maximum(logs, -1e3)))), lattice.LEAST, 1.0)
    t, h = losses.tolist(), values.tolist()
    return ([*t, pure_epsilon], [*h, 0.0]) if pure_epsilon <= END else (t, h)


def _convex(t: list[float], h: list[float]) -> tuple[list[float], list[float]]:
    """The dots that are not above a chord of others."""
    kept: list[int] = []
    slopes: list[float] = []  # of the chords between neighbours of those, in e^loss
    for j, (end, low) in enumerate(zip(t, h, strict=True)):
        while kept:
            i = kept[-1]
            slope = (low - h[i]) / math.expm1(end - t[i]) * math.exp(-t[i])
            if not slopes or not slopes[-1] > slope:
                slopes.append(slope)
                break
            kept.pop()
            slopes.pop()
        kept.append(j)
    return [t[k] for k in kept], [h[k] for k in kept]


def _joined(t: list[float], h: list[float], s: list[float], g: list[float]) -> tuple[Chords, Chords]:
    """Both sides of the line with a chord across e^loss = 1 where they bend the wrong way there."""
    # (x, height) outward from the dot at 1; of few of the dots, since a list of pairs costs more than all the rest.

    def right(j: int) -> tuple[float, float]:
        return math.expm1(t[j]), h[j]  # x - 1, so that near points differ

    def left(i: int) -> tuple[float, float]:
        x = math.expm1(-s[i])
        return x, -x + math.exp(-s[i]) * g[i]

    def chord(i: int, j: int, at: float) -> float:
        (a, u), (b, v) = left(i), right(j)
        share = (at - a) / (b - a)
        return u * (1.0 - share) + v * share

    i, j = 1, 1
    if chord(1, 1, 0.0) < h[0]:
        before = (0, 0)
        while before != (i, j):
            before = i, j
            while i + 1 < len(s) and chord(i + 1, j, left(i)[0]) < left(i)[1]:
                i += 1
            while j + 1 < len(t) and chord(i, j + 1, right(j)[0]) < right(j)[1]:
                j += 1
        h[0] = g[0] = chord(i, j, 0.0) * (1.0 + 32.0 * ULP)
    return (
        Chords(np.array([0.0, *t[j:]]), np.array([h[0], *h[j:]])),
        Chords(np.array([0.0, *s[i:]]), np.array([g[0], *g[i:]])),
    )


@final
@dataclass(frozen=True, slots=True)
class Joint(Derived):
    """A composition as one draw, for samples and groups of it: its profile is a bound, from above.

    Args:
        event: the composition.
        total: its pure epsilon.
        above: both directions of the bound from above, asked for when needed.
        below: the sums from below of a direction.
    """

    event: Event
    total: float = field(compare=False, repr=False)
    above: Callable[[Event], tuple[Chords, Chords]] = field(compare=False, repr=False)
    below: Callable[[Event, Direction], tuple[Sums, ...]] = field(compare=False, repr=False)

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        remove, add = self.above(self.event)
        logs = (remove if direction is Direction.REMOVE else add).log_profile(t)
        return np.where(t >= self.pure_epsilon(), -np.inf, np.minimum(logs, 0.0))

    def log_profile_below(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """A lower bound on log H at each epsilon >= 0, shape (k,)."""
        found = [item.log_profile(epsilons) for item in self.below(self.event, direction)]
        return np.asarray(np.minimum(np.maximum.reduce(found), 0.0))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.event.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        return self.total

    def symmetric(self) -> bool:
        return self.event.symmetric()


_MU_SLACK = 64.0 * ULP  # by how much, relative, an event's mu may have been rounded up on the way
_MOST_SLACK = 1e-3  # beyond it the first-order bound of a Gaussian profile's rounding error is not used


def log_profile(event: Event, epsilons: FloatArray, direction: Direction) -> FloatArray:
    """A lower bound on log H at each epsilon >= 0 (nats), shape (k,); -inf says nothing.

    Raises:
        UnsupportedEvent: no lower bound is proven for this kind of event.
    """
    t = epsilons * (1.0 + 2.0 * ULP)
    match event:
        case Repeated(inner, count=1) | Composed((inner,)):
            return log_profile(inner, epsilons, direction)
        case PoissonSampled(inner, sampling_rate=q):
            return log_profile(inner, epsilons, direction) if q == 1.0 else _sampled(inner, q, t, direction)
        case FixedSizeSampled(inner, sample_size=size, population=population):
            if size == population:
                return log_profile(inner, epsilons, direction)
            rate = size / population * (1.0 - 4.0 * ULP)  # a larger sample costs more
            return np.maximum(*(_sampled_up(inner, rate, t, d) for d in (Direction.REMOVE, Direction.ADD)))
        case RandomAllocation(inner, selected=1, steps=steps):
            if steps == 1:
                return log_profile(inner, epsilons, direction)
            return _allocated(inner, steps, direction).log_profile(t)
        case Parallel(members, probabilities=weights):
            return _mixed(members, weights, epsilons, direction)
        case GaussianMixtureEvent():
            return _mixture(event, t, direction)
        case Joint() | SummedLabels() | RangePair() | ReplacedRowPair():
            return event.log_profile_below(epsilons, direction)
        case LaplaceEvent():
            gap = np.minimum(t - (1.0 - 4.0 * ULP) / event.noise_multiplier, 0.0)
            return _lowered(renyi.log1mexp(0.5 * gap), 0.0)
        case PureEvent():
            return _response(event.epsilon, 1.0, t)
        case RandomizedResponseEvent():
            return _response(event.epsilon, event.categories - 1.0, t)
        case StaircaseEvent():
            share = event.log_share()
            return _lowered(renyi.log1mexp(np.minimum(t - event.epsilon, 0.0)) + share, abs(share))
        case TruncatedLaplaceEvent():
            return _truncated(1.0 / event.noise_multiplier, event.bound, epsilons)
        case BoundedRangeEvent():
            whole = float(renyi.log1mexp(np.array(-event.epsilon)))
            return _lowered(2.0 * renyi.log1mexp(0.5 * np.minimum(t - event.epsilon, 0.0)) - whole, 2.0 * abs(whole))
        case ApproximateEvent():
            log_delta = math.log(event.delta)
            mixed = np.logaddexp(log_delta, math.log1p(-event.delta) + _response(event.epsilon, 1.0, t))
            return _lowered(np.where(t >= event.epsilon, log_delta, mixed), 0.0)
        case DiscreteLaplaceEvent():
            return interpolated_below(laplace_corners(event.scale, event.sensitivity), epsilons)
        case DiscreteGaussianEvent():
            return interpolated_below(gaussian_corners(event.scale, event.sensitivity), epsilons)
        case SkellamEvent():
            return interpolated_below(skellam_corners(event.variance, event.sensitivity), epsilons)
        case ProfileEvent():
            return _tabulated(event, t, direction)
    try:
        mu = event.mu()
    except UnsupportedEvent:
        raise UnsupportedEvent(f"no lower bound on the profile is proven for {type(event).__name__}") from None
    return _gaussian(mu * (1.0 - _MU_SLACK), t)


def log_infinite(event: Event, direction: Direction) -> float:
    """log of a lower bound on the profile at every epsilon, which is the probability of an infinite loss."""
    match event:
        case Repeated(inner, count=1) | Composed((inner,)):
            return log_infinite(inner, direction)
        case PoissonSampled(inner, sampling_rate=q) if q == 1.0 or direction is Direction.REMOVE:
            return (log_infinite(inner, direction) + math.log(q)) * (1.0 + 4.0 * ULP)
        case RandomAllocation(inner, selected=1, steps=steps) if direction is Direction.REMOVE or steps == 1:
            return log_infinite(inner, direction)
        case ApproximateEvent() | TruncatedLaplaceEvent() | ProfileEvent():  # constant from some epsilon on
            return float(log_profile(event, np.array([1e300]), direction)[0])
    return -math.inf


BELOW = Below(log_profile, log_infinite)


@remembered(64)
def _allocated(event: Event, steps: int, direction: Direction) -> averages.Average:
    return averages.average(event, steps, direction, above=False, below=BELOW)


def _lowered(logs: FloatArray, size: float) -> FloatArray:
    """Logarithms made of terms no larger than themselves or `size`, lowered by their rounding error."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(logs), -np.inf, logs - 16.0 * ULP * (1.0 + size + np.abs(logs)))


def _response(epsilon: float, others: float, t: FloatArray) -> FloatArray:
    """Randomised response: (e^eps - e^t)+ / (e^eps + others)."""
    total = math.log1p(others * math.exp(-epsilon))
    return _lowered(renyi.log1mexp(np.minimum(t - epsilon, 0.0)) - total, total)


def _gaussian(mu: float, t: FloatArray) -> FloatArray:
    """Undoes the upward rounding of `gaussian_log_profile`: a guard of its size, and its lowering of a."""
    logs = gaussian_log_profile(mu, t)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = t / mu - 0.5 * mu, t / mu + 0.5 * mu
        slope = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - logs)  # normal density over profile
        slack = 64.0 * ULP * (1.0 + np.abs(logs) + b * slope)
        return np.where(slack <= _MOST_SLACK, logs - slack, -np.inf)


def _mixture(event: GaussianMixtureEvent, t: FloatArray, direction: Direction) -> FloatArray:
    """mixtures.md#mixture-profile, at an output on the other side; -inf where there is none."""
    place = outputs_at(event, t, direction, above=False)
    ratio = log_ratio(event, place)
    reached = ratio >= t if direction is Direction.REMOVE else ratio <= -t
    logs = profile_at(event, place, t, direction, _gaussian)
    size = float(np.abs(np.log(event.probabilities)).max()) + 4.0 * len(event.shifts)
    return np.where(reached, _lowered(np.minimum(logs, 0.0), size), -np.inf)


def _sampled(inner: Event, q: float, t: FloatArray, direction: Direction) -> FloatArray:
    """events.md#sampled-profile, with the inner epsilon raised and the mass lowered."""
    if direction is Direction.REMOVE:
        return _sampled_up(inner, q, t, direction)
    with np.errstate(divide="ignore", over="ignore"):
        grown = (1.0 - q) / q * np.expm1(np.minimum(t, 700.0)) * (1.0 + 16.0 * ULP)
        reached = grown < 1.0
        log_left = np.log1p(-np.where(reached, grown, 0.0))
    values = log_profile(inner, (t - log_left) * (1.0 + 8.0 * ULP), direction)
    return np.where(reached, _lowered(math.log(q) + log_left + values, 2.0 * abs(math.log(q))), -np.inf)


def _sampled_up(inner: Event, q: float, t: FloatArray, direction: Direction) -> FloatArray:
    """log of q H(log(1 + (e^t - 1) / q))."""
    near = np.log1p(np.expm1(np.minimum(t, 1.0)) / q)
    far = (t - math.log(q)) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(t, 1.0)))
    return _lowered(
        math.log(q) + log_profile(inner, np.where(t <= 1.0, near, far) * (1.0 + 16.0 * ULP), direction),
        abs(math.log(q)),
    )


def _truncated(rate: float, bound: float, epsilons: FloatArray) -> FloatArray:
    """events.md#truncated-laplace with every part moved down: it falls in t but for the mass beyond, which rises."""
    least, most = rate * (1.0 - 2.0 * ULP), rate * (1.0 + 2.0 * ULP)
    last = most * min(2.0 * bound - 1.0, 1.0) * (1.0 + 4.0 * ULP)
    late, early = np.minimum(epsilons, last) * (1.0 + 2.0 * ULP), np.minimum(epsilons, last) * (1.0 - 8.0 * ULP)
    inside = renyi.log1mexp(0.5 * np.minimum(late - least, 0.0))
    left = (early - most) - (bound - 1.0) * most - 8.0 * ULP * (1.0 + bound) * most
    outside = left + renyi.log1mexp(-early) - math.log(2.0)
    kept = float(renyi.log1mexp(np.asarray(-bound * most * (1.0 + 4.0 * ULP))))
    return _lowered(np.logaddexp(inside, outside) - kept, abs(kept))


def _tabulated(event: ProfileEvent, t: FloatArray, direction: Direction) -> FloatArray:
    """The event's chords less their rounding: shares of exponents up to its last epsilon, and corners left out wrongly.

    A comparison of slopes errs by units of the logarithms that they are made of, and each corner may be one too many.
    """
    logs = event.log_profile(t, direction=direction)
    size = event.epsilons[-1] + max((-math.log(delta) for delta in event.deltas if delta > 0.0), default=0.0) + 4.0
    slack = 16.0 * ULP * (4.0 * (1.0 + np.abs(logs)) + size * (1.0 + len(event.deltas)))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(logs), -np.inf, logs - slack)


def _mixed(
    members: tuple[Event, ...], weights: tuple[float, ...] | None, epsilons: FloatArray, direction: Direction
) -> FloatArray:
    taken = [(e, p) for e, p in zip(members, weights or (1.0,) * len(members), strict=True) if p > 0.0]
    logs = np.stack([log_profile(e, epsilons, direction) for e, _ in taken])
    if weights is None:
        return np.asarray(logs.max(axis=0))
    shares = np.log([p for _, p in taken])[:, None]
    total = np.logaddexp.reduce(logs + shares, axis=0)
    total = np.minimum(total, 0.0)  # probabilities may add up to a rounding error more than 1
    return _lowered(np.asarray(total), float(np.abs(shares).max()) + len(taken))
