"""A plan's curve by its losses: certified points from above and from below, each direction composed apart.

docs/explanation/pld.md#plan.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import curve as draws
from ledgerwood.accounting.costs.losses import dots as lines
from ledgerwood.accounting.costs.losses import hits, joint, lattice, saddle, worst
from ledgerwood.accounting.costs.losses import joint as lower
from ledgerwood.accounting.costs.losses import saddle as spectrum
from ledgerwood.accounting.costs.losses.curve import ComposedCurve
from ledgerwood.accounting.costs.losses.lattice import Law
from ledgerwood.accounting.events.base import Event, FloatArray, remembered
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled, ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import UnsupportedEvent

FINENESS = 64.0  # the lattice's errors go with its inverse square
_MOST_POINTS = 1 << 17  # beyond which blocks are composed first
_MOST_POINTS_EVER = 1 << 20
_FAR = 1.05  # of the epsilon that the coarse model expects
_CLEARLY_LESS = 0.8
_ROOM = 3e-5  # relative to epsilon: what each of the three lattices of a plan may add to it at that fineness
_SMALL = 0.02  # nats, below which that is absolute
_LOG_OUTSIDE = math.log(1e-13)
_NEGLIGIBLE = 1e-7  # of delta: the mass that goes to infinity
_NARROW = 5e-5
_TARGETS = (math.log(0.1), math.log(1e-4), math.log(1e-10))  # deltas at which a whole curve is composed
_JOINT_TARGETS = (*_TARGETS, math.log(1e-20), math.log(1e-40))  # those of a composition inside a sample
_MOST_JOINT = 8  # of them in a plan, each with laws of its own
_KEPT_JOINT = 512  # compositions whose bounds are remembered: the different groups of a plan are asked again and again
_MOST_JOINT_POINTS = 1 << 17
_ANYWHERE = np.ones(1)  # an epsilon at which it is asked whether there is a profile; at 0 an allocation needs both
_LEAST_LOG_DELTA = math.log(1e-280)


@dataclass(frozen=True, slots=True)
class LossPlan:
    """The distinct draws of an event, with their profiles seen from afar.

    Args:
        parts: draws that dominate the event's, each with its count.
        below: draws that the event's dominate; the same ones unless there were too many.
        symmetric: whether both directions are alike.
    """

    parts: worst.Parts
    below: worst.Parts
    symmetric: bool

    @property
    def grouped(self) -> bool:
        """True if there were more distinct draws than can be composed."""
        return self.parts is not self.below

    @property
    def single(self) -> Event | None:
        """The only draw, whose own profile says it all."""
        return self.parts[0][0] if len(self.parts) == 1 and self.parts[0][1] == 1 else None

    def directions(self) -> tuple[Direction, ...]:
        return (Direction.REMOVE,) if self.symmetric else (Direction.REMOVE, Direction.ADD)

    def models(self, direction: Direction, log_delta: float) -> list[tuple[saddle.Model, int]]:
        """The coarse models of the draws, for questions about deltas near exp(log_delta)."""
        log_lost = self.log_lost(log_delta)
        return [(draws.model(event, direction, log_lost), count) for event, count in self.parts]

    def log_lost(self, log_delta: float) -> float:
        """Finds where one draw's profile is small enough for its rest to go to infinity."""
        return log_delta + math.log(_NEGLIGIBLE) - math.log(sum(count for _, count in self.parts))

    def point_at_epsilon(self, direction: Direction, epsilon: float) -> saddle.SaddlePoint:
        """The point of the coarse curve at `epsilon`, its models cut for the delta that is found there."""
        point = saddle.point_at_epsilon(self.models(direction, _LEAST_LOG_DELTA), epsilon)
        for _ in range(2):
            guess = min(max(point.log_delta, _LEAST_LOG_DELTA), 0.0)
            point = saddle.point_at_epsilon(self.models(direction, guess), epsilon)
        return point


def plan(event: Event) -> LossPlan:
    """The plan of an event.

    Raises:
        UnsupportedEvent: a draw without a profile, or too many distinct draws that are too different to group.
    """
    above, below = worst.parts(event)
    as_draws = opened(above)
    above, below = as_draws, as_draws if below is above else opened(below)
    for part, _ in above:
        part.log_profile(_ANYWHERE, direction=Direction.REMOVE)
    return LossPlan(above, below, all(part.symmetric() for part, _ in above))


def opened(parts: worst.Parts) -> worst.Parts:
    """The draws with every composition inside a sample or a group as one draw: docs/explanation/pld.md#joint."""
    opened = tuple((with_whole(part, _joint), count) for part, count in parts)
    changed = sum(new != old for (new, _), (old, _) in zip(opened, parts, strict=True))
    if changed > _MOST_JOINT:
        raise UnsupportedEvent(f"{changed} different samples of compositions, more than {_MOST_JOINT}, in one plan")
    return opened if changed else parts


def with_whole(event: Event, whole: Callable[[Event], Event]) -> Event:
    """The event with each composition inside it as one draw, made by `whole`; itself where it has a profile."""
    try:
        event.log_profile(_ANYWHERE, direction=Direction.REMOVE)
        return event
    except UnsupportedEvent:
        pass
    match event:
        case PoissonSampled(inner, sampling_rate=rate):
            return PoissonSampled(with_whole(inner, whole), sampling_rate=rate)
        case FixedSizeSampled(inner, sample_size=size, population=population):
            return FixedSizeSampled(with_whole(inner, whole), sample_size=size, population=population)
        case ReplaceOneSampled(inner, add_remove=present, sampling_rate=rate):
            return ReplaceOneSampled(
                with_whole(inner, whole), add_remove=with_whole(present, whole), sampling_rate=rate
            )
        case RandomAllocation(inner, selected=1, steps=steps):
            return RandomAllocation(with_whole(inner, whole), steps=steps)
        case RandomAllocation():
            return whole(Composed(tuple(Repeated(block, count=count) for block, count in event.blocks())))
        case Parallel(members, probabilities=weights):
            return Parallel(tuple(with_whole(member, whole) for member in members), probabilities=weights)
        case Repeated(inner, count=1) | Composed((inner,)):
            return with_whole(inner, whole)
        case Repeated() | Composed():
            return whole(event)
    return event


def _joint(event: Event) -> Event:
    above, below = worst.parts(event)
    if above is below:  # a shorter name for the same composition, in whatever order
        event = Composed(tuple(Repeated(part, count=count) for part, count in above))
    return joint.Joint(event, event.pure_epsilon(), _joint_above, _joint_sums_below)


@remembered(_KEPT_JOINT)
def _joint_above(event: Event) -> tuple[joint.Chords, joint.Chords]:
    found = plan(event)
    ahead = _joint_sums(found, Direction.REMOVE, True)
    back = ahead if found.symmetric else _joint_sums(found, Direction.ADD, True)
    return joint.chords(ahead, back, event.pure_epsilon())


@remembered(2 * _MOST_JOINT)
def _joint_sums_below(event: Event, direction: Direction) -> tuple[joint.Sums, ...]:
    return _joint_sums(plan(event), direction, False)


def _joint_sums(found: LossPlan, direction: Direction, above: bool) -> tuple[joint.Sums, ...]:
    """The profiles of the composed distributions that are tight at some deltas; each bounds the plan's everywhere."""
    sums, tilt = [], 0.0
    fineness = FINENESS if len(found.parts) > 8 else 4.0 * FINENESS
    for target in _JOINT_TARGETS:
        point = saddle.point_at_delta(found.models(direction, target), target)
        if point.tilt < 1.05 * tilt:  # near the largest loss, or at 0: the same law again
            continue
        with contextlib.suppress(UnsupportedEvent):
            curve = _curve(found, direction, point, above, fineness, target)
            factor = (len(curve.law.index) // _MOST_JOINT_POINTS).bit_length()
            if factor:
                curve = ComposedCurve(spectrum.coarsen(curve.law, 2**factor, above=above), above)
            sums.append(joint.sums(curve.law, curve.misplaced_tilted(0.0), above=above))
            tilt = point.tilt
    if not sums:
        raise UnsupportedEvent("the losses of a composition inside a sample span too many scales for one lattice")
    return tuple(sums)


def epsilon(found: LossPlan, log_delta: float, *, above: bool, fineness: float = FINENESS) -> float:
    """The epsilon at `log_delta`, from above or from below; the larger direction."""
    if log_delta < _LEAST_LOG_DELTA:
        raise UnsupportedEvent(f"log delta {log_delta!r} is below {_LEAST_LOG_DELTA:.6g}, the least for privacy losses")
    if found.single is not None:
        return single_epsilon(found, found.single, log_delta, above)
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


def single_epsilon(found: LossPlan, event: Event, log_delta: float, above: bool) -> float:
    """By bisection: the bound fits (above), or it does not yet (below)."""
    if above and isinstance(event, RandomAllocation) and event.steps > 1:
        return _allocated_epsilon(event, log_delta)
    bracket = _search.least_fitting(
        lambda epsilons: _single(found, event, epsilons, above) <= log_delta, event.pure_epsilon()
    )
    if bracket is None:
        raise UnsupportedEvent(f"no epsilon up to 1e12 nats reaches log delta {log_delta!r}")
    return bracket[1] if above else bracket[0]


def _allocated_epsilon(event: RandomAllocation, log_delta: float) -> float:
    """The bound of direction remove, if a quick one shows that the other direction's is no larger; else of both."""
    pure, best = event.pure_epsilon(), 0.0
    for direction in (Direction.REMOVE, Direction.ADD):
        if best > 0.0 and float(event.coarse_log_profile(np.array([best]), direction)[0]) <= log_delta:
            continue

        def fits(epsilons: FloatArray, side: Direction = direction) -> NDArray[np.bool_]:
            return np.asarray(event.one_direction(epsilons, side) <= log_delta)

        bracket = _search.least_fitting(fits, pure)
        if bracket is None:
            raise UnsupportedEvent(f"no epsilon up to 1e12 nats reaches log delta {log_delta!r}")
        best = max(best, bracket[1])
    return best


def _single(found: LossPlan, event: Event, epsilons: FloatArray, above: bool) -> FloatArray:
    """A bound on the log profile of one draw at each epsilon >= 0, shape (k,); the larger direction."""
    logs = [
        event.log_profile(epsilons, direction=d) if above else lower.log_profile(event, epsilons, d)
        for d in found.directions()
    ]
    return np.asarray(np.maximum.reduce(logs))


def _epsilon(
    found: LossPlan, direction: Direction, point: saddle.SaddlePoint, log_delta: float, above: bool, fineness: float
) -> float:
    near = max(point.epsilon, 0.0)
    value = _curve(found, direction, point, above, fineness, log_delta).epsilon(log_delta, near)
    if above and value > _FAR * near + _NARROW:  # from what the coarse model expects: once more on a finer lattice
        with contextlib.suppress(UnsupportedEvent):
            finer = _curve(found, direction, point, above, 4.0 * fineness, log_delta)
            value = min(value, finer.epsilon(log_delta, near))
    if not above and abs(value - near) > math.sqrt(point.variance):
        with contextlib.suppress(UnsupportedEvent):
            point = _finer_point(found, direction, point, log_delta, fineness)
            again = _curve(found, direction, point, above, fineness, log_delta)
            value = max(value, again.epsilon(log_delta, max(point.epsilon, 0.0)))
    return value


def _finer_point(
    found: LossPlan, direction: Direction, point: saddle.SaddlePoint, log_delta: float, fineness: float
) -> saddle.SaddlePoint:
    """The point by the draws' lattice distributions: the coarse model's dots add deviations to a plan of 1e6 draws."""
    step, per_fold = saddle.grid(
        found.models(direction, log_delta), point.tilt, _room(point.epsilon, point.tilt, fineness)
    )
    step = min(step, math.sqrt(point.variance) / 8.0)
    models = []
    for event, count in found.below:
        dots = lines.dots(event, direction, step, found.log_lost(log_delta), per_fold, below=None)
        law = lattice.law(dots, tilt=0.0, above=True)
        losses: FloatArray = np.asarray(law.index * step, dtype=np.float64)
        models.append((saddle.Model(losses, np.log(law.mass)), count))
    return saddle.point_at_delta(models, log_delta)


def _room(epsilon: float, tilt: float, fineness: float) -> float:
    """The variance that each of the three lattices of a plan may add."""
    return _ROOM * max(epsilon, _SMALL) * (FINENESS / fineness) ** 2 / (1.0 + tilt)


def log_delta(found: LossPlan, epsilon: float, *, above: bool, fineness: float = FINENESS) -> float:
    """log delta at `epsilon`, from above or from below; the larger direction."""
    if found.single is not None:
        return float(_single(found, found.single, np.array([epsilon]), above)[0])
    if not above:
        return _log_delta(found, epsilon, above, fineness)
    cap = _log_any_difference(found)
    try:
        return min(_log_delta(found, epsilon, above, fineness), cap)
    except UnsupportedEvent:
        if cap >= 0.0:
            raise
        return cap


def _log_any_difference(found: LossPlan) -> float:
    """log of a bound on delta at every epsilon: that any draw's output tells at all. docs/explanation/pld.md#rare."""
    with np.errstate(divide="ignore"):  # clipped where exponentials are still exact to a few units
        same = sum(
            count * float(np.log1p(-np.exp(np.clip(lines.sides(event).ahead[0], -690.0, 0.0))))
            for event, count in found.parts
        )
    return min(math.log(-math.expm1(same)) + 1e-12 * (1.0 + len(found.parts)), 0.0)


def _log_delta(found: LossPlan, epsilon: float, above: bool, fineness: float) -> float:
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


def interval(found: LossPlan, log_delta: float) -> tuple[float, float]:
    """(below, above) around the epsilon at `log_delta`, refined until it is narrow or the lattice is at its limit.

    Where the first lattices leave it wide, a single draw may decide (docs/explanation/pld.md#one-large-loss).
    """
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
        if wide > 1.0 and math.isinf(before):
            with contextlib.suppress(UnsupportedEvent):
                low = max(low, *(hits.epsilon(found.below, each, log_delta) for each in found.directions()))
            wide = (high - low) / max(_NARROW, 10.0 * _NARROW * high)
        if wide <= 1.0 or not wide < 0.5 * before or found.grouped:
            break
        before, fineness = wide, fineness * min(1.2 * math.sqrt(wide), 8.0)
    return low, high


def estimated_epsilon(found: LossPlan, log_delta: float) -> float:
    """The epsilon at `log_delta` by the coarse models' saddle point: fast, and no bound; inf if they say nothing."""
    if any(max(lines.sides(event).ahead[-1], lines.sides(event).back[-1]) > log_delta for event, _ in found.parts):
        return math.inf
    return max(0.0, *(saddle.point_at_delta(found.models(d, log_delta), log_delta).epsilon for d in found.directions()))


def curves(found: LossPlan, log_delta: float) -> list[ComposedCurve]:
    """The bounds from above that are tight near `log_delta` and hold at every epsilon: one a direction."""
    points = [(d, saddle.point_at_delta(found.models(d, log_delta), log_delta)) for d in found.directions()]
    return [_curve(found, direction, point, True, FINENESS, log_delta) for direction, point in points]


def log_deltas(found: LossPlan, epsilons: FloatArray) -> FloatArray:
    """log delta from above at each epsilon (k,), from few compositions; the larger direction. Wider than `log_delta`.

    Raises:
        UnsupportedEvent: none of the compositions fits a lattice.
    """
    if found.single is not None:
        return np.minimum(_single(found, found.single, epsilons, True), 0.0)
    best = np.full(len(epsilons), np.inf)
    for target in _TARGETS:
        with contextlib.suppress(UnsupportedEvent):
            composed = curves(found, target)
            values = [max(curve.log_delta(float(epsilon)) for curve in composed) for epsilon in epsilons]
            best = np.minimum(best, values)
    if len(best) and math.isinf(best[0]):
        raise UnsupportedEvent("the plan's losses span too many scales for one lattice; use method='renyi'")
    return np.asarray(np.minimum(best, 0.0))


def _curve(
    found: LossPlan, direction: Direction, point: saddle.SaddlePoint, above: bool, fineness: float, log_target: float
) -> ComposedCurve:
    total = sum(count for _, count in found.parts)
    models = found.models(direction, log_target)
    spread = sum(count * item.moments(0.0)[2] for item, count in models)
    tilt, variance = point.tilt, point.variance
    while variance < 0.02 * spread and tilt > 1e-3:  # near the largest loss of all; any tilt gives a bound
        tilt *= 0.7
        variance = sum(count * item.moments(tilt)[2] for item, count in models)
    deviation = math.sqrt(variance)
    room = _room(point.epsilon, tilt, fineness)
    step, per_fold = saddle.grid(models, tilt, room)
    step = min(step, deviation / 8.0)
    if not step > 0.0:
        raise UnsupportedEvent("the plan's losses are too small, or too large, for a lattice")
    log_lost, below = found.log_lost(log_target), None if above else joint.BELOW
    tried = 0.0
    for _ in range(8):
        aligned = lines.aligned(found.parts, step)
        step = tried = aligned if aligned > tried else step  # else it would be the one that was too fine
        laws = [
            (
                lattice.law(
                    lines.dots(event, direction, step, log_lost, per_fold, below=below), tilt=tilt, above=above
                ),
                count,
            )
            for event, count in (found.parts if above else found.below)
        ]
        first, last = spectrum.window(laws, deviation, _LOG_OUTSIDE)
        if last - first < _MOST_POINTS or total < 64:
            if last - first <= _MOST_POINTS_EVER:
                return ComposedCurve(spectrum.compose(laws, first, last, _LOG_OUTSIDE, above=above), above)
            step *= 1.01 * (last - first) / _MOST_POINTS_EVER
            continue
        curve, excess = _in_stages(laws, deviation, room, above)
        if curve is not None:
            return curve
        step *= 1.01 * excess
    raise UnsupportedEvent("the plan's losses span too many scales for one lattice; use method='renyi'")


def _in_stages(
    laws: list[tuple[Law, int]], deviation: float, room: float, above: bool
) -> tuple[ComposedCurve | None, float]:
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
        composed = spectrum.compose(group, first, last, log_outside_block, above=above)
        trimmed = spectrum.trim(composed, math.exp(log_outside_block))
        blocks.append((spectrum.coarsen(trimmed, 2**factor, above=above) if factor else trimmed, count))
    first, last = spectrum.window(blocks, deviation, _LOG_OUTSIDE)
    if last - first > _MOST_POINTS_EVER:
        return None, (last - first) / _MOST_POINTS_EVER
    return ComposedCurve(spectrum.compose(blocks, first, last, _LOG_OUTSIDE, above=above), above), 1.0
