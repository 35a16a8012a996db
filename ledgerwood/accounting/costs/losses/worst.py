"""Replaces the many distinct draws of a plan by few that dominate them, so that their losses can be composed.

Which kinds share a group is a choice that enters no bound. docs/explanation/pld.md#groups.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs.losses import labels, saddle
from ledgerwood.accounting.events.base import Derived, Event, FloatArray, remembered
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent, PureEvent
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import UnsupportedEvent

_LOG_DELTA = math.log(1e-6)  # for which the groups are chosen; they are bounds at every delta
_LOG_NEGLIGIBLE = math.log(1e-7)  # of it: profiles below are left out of the choice
_PILOTS = 96  # kinds that stand for all when the tilt is chosen
_CUTS = 15  # places at which a group may be cut in two, for each order of its members

Members = NDArray[np.intp]
Counted = tuple[tuple[Event, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Worst(Derived):
    """One draw that dominates each of several kinds: its profile is the largest of theirs at every epsilon.

    Args:
        events: at least one, all of one adjacency and each with a profile.
    """

    events: tuple[Event, ...]

    @property
    def adjacency(self) -> Adjacency:
        return self.events[0].adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        found = np.array(self.events[0].log_profile(epsilons, direction=direction))
        for event in self.events[1:]:
            np.maximum(found, event.log_profile(epsilons, direction=direction), out=found)
        return found

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        raise UnsupportedEvent(f"a joint bound on {len(self.events)} kinds of draw has no Rényi divergence")

    def pure_epsilon(self) -> float:
        return max(event.pure_epsilon() for event in self.events)

    def symmetric(self) -> bool:
        return all(event.symmetric() for event in self.events)


@dataclass(frozen=True, slots=True)
class _Seen:
    """All kinds from afar: log profiles at `saddle.NODES`, shape (n, nodes), and the count of each, shape (n,)."""

    ahead: FloatArray
    back: FloatArray
    counts: FloatArray
    tilt: float
    log_lost: float

    def excess(self, ahead: FloatArray, back: FloatArray) -> FloatArray:
        """log E e^{tilt * loss}, of both directions together, for log profiles of shape (..., nodes).

        With a = 1 + tilt, E_Q r^a = 1 + a (a - 1) (integral of e^{(a-1) t} H(t) + that of e^{-a t} G(t)) over t >= 0.
        """
        return np.asarray(self._one_way(ahead, back) + self._one_way(back, ahead))

    def _one_way(self, ahead: FloatArray, back: FloatArray) -> FloatArray:
        rises = np.where(ahead > self.log_lost, np.minimum(ahead + self.tilt * saddle.NODES, 300.0), -np.inf)
        integral = (np.exp(rises) + np.exp(back - (1.0 + self.tilt) * saddle.NODES)) @ _WEIGHTS
        return np.asarray(np.log1p(self.tilt * (1.0 + self.tilt) * integral))

    def cost(self, members: Members) -> float:
        ahead, back = self.ahead[members].max(axis=0), self.back[members].max(axis=0)
        return float(self.counts[members].sum() * self.excess(ahead, back))

    def cut(self, members: Members) -> tuple[float, Members, Members]:
        """The cheapest way to make two groups of one: (cost of both, the two)."""
        places = np.unique(np.linspace(1, len(members) - 1, min(_CUTS, len(members) - 1)).astype(np.int64))
        best: tuple[float, Members, Members] = (math.inf, members, members)
        tails = np.argmax(self.ahead[members] <= self.log_lost, axis=1)
        for key in (self.excess(self.ahead[members], self.back[members]), self.ahead[members, 0], tails):
            ordered = members[np.argsort(key, kind="stable")]
            ahead, back, counts = self.ahead[ordered], self.back[ordered], self.counts[ordered].cumsum()
            low = self.excess(np.maximum.accumulate(ahead)[places - 1], np.maximum.accumulate(back)[places - 1])
            high = self.excess(
                np.maximum.accumulate(ahead[::-1])[::-1][places], np.maximum.accumulate(back[::-1])[::-1][places]
            )
            costs = counts[places - 1] * low + (counts[-1] - counts[places - 1]) * high
            place = int(np.argmin(costs))
            if costs[place] < best[0]:
                best = (float(costs[place]), ordered[: places[place]], ordered[places[place] :])
        return best


_WEIGHTS = 0.5 * (np.append(np.diff(saddle.NODES), 0.0) + np.append(0.0, np.diff(saddle.NODES)))


@remembered(32)
def grouped(parts: Counted, most: int) -> Counted:
    """At most `most` draws that together dominate all of `parts`, which are more.

    Raises:
        UnsupportedEvent: `most` kinds or more have no profile at a point, and nothing can stand for them.
    """
    kinds, alone = _with_profiles(parts)
    if len(alone) >= most or not kinds:
        raise UnsupportedEvent(f"{len(alone)} distinct draws have no profile, too many to compose by their losses")
    found = _seen([side for _, side in kinds], [count for (_, count), _ in kinds])
    everyone: Members = np.arange(len(kinds), dtype=np.intp)
    done: list[tuple[float, Members]] = [(found.cost(everyone), everyone)]
    cuts = {0: found.cut(everyone)} if len(kinds) > 1 else {}
    while len(done) + len(alone) < most and cuts:
        place = max(cuts, key=lambda k: done[k][0] - cuts[k][0])
        _, low, high = cuts.pop(place)
        done[place] = (found.cost(low), low)
        done.append((found.cost(high), high))
        for k in (place, len(done) - 1):
            if len(done[k][1]) > 1:
                cuts[k] = found.cut(done[k][1])
    return (*(_as_one([kinds[int(i)][0] for i in members]) for _, members in done), *alone)


@remembered(32)
def costliest(parts: Counted, most: int) -> Counted:
    """At most `most` of the draws, those that tell most: what is left out only makes the whole tell less."""
    kinds, _ = _with_profiles(parts)
    if not kinds:
        raise UnsupportedEvent("none of the plan's distinct draws has a profile")
    found = _seen([side for _, side in kinds], [count for (_, count), _ in kinds])
    order = np.argsort(-found.counts * found.excess(found.ahead, found.back), kind="stable")
    return tuple(kinds[int(i)][0] for i in order[:most])


def _with_profiles(parts: Counted) -> tuple[list[tuple[tuple[Event, int], saddle.Sides]], list[tuple[Event, int]]]:
    """The draws with their profiles seen from afar; and those without: compositions in samples, composed later."""
    kinds, alone = [], []
    for event, count in parts:
        try:
            kinds.append(((event, count), saddle.sides(event)))
        except UnsupportedEvent:
            alone.append((event, count))
    return kinds, alone


def _as_one(kinds: list[tuple[Event, int]]) -> tuple[Event, int]:
    return kinds[0] if len(kinds) == 1 else (Worst(tuple(e for e, _ in kinds)), sum(count for _, count in kinds))


def _seen(sides: list[saddle.Sides], counts: list[int]) -> _Seen:
    """The profiles and a tilt under which losses near the epsilon of the whole are typical, by some of the kinds."""
    ahead, back = np.stack([item.ahead for item in sides]), np.stack([item.back for item in sides])
    log_lost = _LOG_DELTA + _LOG_NEGLIGIBLE - math.log(sum(counts))
    stride = math.ceil(len(sides) / _PILOTS)
    pilots = [(saddle.model(item, log_lost), stride * count) for item, count in zip(sides, counts, strict=True)]
    tilt = saddle.point_at_delta(pilots[::stride], _LOG_DELTA).tilt
    return _Seen(ahead, back, np.array(counts, dtype=np.float64), tilt, log_lost)


_MOST_DISTINCT = 64
_MOST_BELOW = 128  # distinct draws of a bound from below
_MOST_KINDS = 1024  # whose profiles can be compared
_FINEST, _COARSEST = 4096, 32  # cells per factor e of a parameter

Parts = tuple[tuple[Event, int], ...]


def parts(event: Event) -> tuple[Parts, Parts]:
    """The draws and their counts, in two versions: each draw dominated by its own, and dominating it.

    Both are the draws themselves where at most 64 are distinct. Of more, those that a grid of parameters leaves; where
    no grid leaves 64, groups of draws behind their largest profile, and from below the costliest draws.

    Raises:
        UnsupportedEvent: more than 1024 distinct draws that no grid leaves fewer of, or too many without a profile.
    """
    opened, parts_of = _opened(list(event.draws()))
    exact = _merged(opened)
    exact_below = exact if opened == parts_of else _merged(parts_of)
    if len(exact) <= _MOST_DISTINCT:
        return exact, exact_below
    # A coarser grid refines none of the groups, so what one grid has merged may be rounded again.
    above, below = exact, exact_below
    few = exact if len(exact) <= _MOST_KINDS else None
    cells = _FINEST
    while cells >= _COARSEST:
        above, below = (
            _merged((_rounded(draw, cells, up), n) for draw, n in kept) for kept, up in ((above, True), (below, False))
        )
        if max(len(above), len(below)) <= _MOST_DISTINCT:
            return above, below
        if few is None and len(above) <= _MOST_KINDS:
            few = above
        cells //= 2
    if few is None:
        raise UnsupportedEvent(
            f"the plan has {len(exact)} distinct draws, too many to compose by their losses, and too different to group"
        )
    return grouped(few, _MOST_DISTINCT), costliest(exact_below if few is exact else below, _MOST_BELOW)


def _opened(draws: list[tuple[Event, int]]) -> tuple[list[tuple[Event, int]], list[tuple[Event, int]]]:
    """The draws, from above and from below, where an allocation of several steps a unit has no profile.

    From above it is its blocks; from below what a sum or its first step tells: allocation.md#allocation-blocks and
    #fewer.
    """
    above: list[tuple[Event, int]] = []
    below: list[tuple[Event, int]] = []
    for draw, count in draws:
        if isinstance(draw, RandomAllocation) and draw.selected > 1:
            above.extend((block, count * n) for block, n in draw.blocks())
            below.append((labels.part_of(draw), count))
        else:
            above.append((draw, count))
            below.append((draw, count))
    return above, below


def _merged(draws: Iterable[tuple[Event, int]]) -> Parts:
    counts: dict[Event, int] = {}
    for part, count in draws:
        counts[part] = counts.get(part, 0) + count
    return tuple(counts.items())


def _rounded(event: Event, cells: int, up: bool) -> Event:
    """The event with each parameter rounded to a grid, up (costlier) or down; unchanged if of another family."""
    match event:
        case GaussianEvent():
            return GaussianEvent(
                noise_multiplier=_on_grid(event.noise_multiplier, cells, not up), adjacency=event.adjacency
            )
        case LaplaceEvent():
            return LaplaceEvent(
                noise_multiplier=_on_grid(event.noise_multiplier, cells, not up), adjacency=event.adjacency
            )
        case PureEvent():
            return PureEvent(epsilon=_on_grid(event.epsilon, cells, up), adjacency=event.adjacency)
        case BoundedRangeEvent():
            return BoundedRangeEvent(epsilon=_on_grid(event.epsilon, cells, up), adjacency=event.adjacency)
        case PoissonSampled(inner, sampling_rate=rate):
            return PoissonSampled(_rounded(inner, cells, up), sampling_rate=min(_on_grid(rate, cells, up), 1.0))
    return event


def _on_grid(value: float, cells: int, up: bool) -> float:
    """The nearest e^{k / cells} that is not on the wrong side of `value`; floats of one k are equal."""
    place = math.log(value) * cells
    cell = math.ceil(place - 1e-9) if up else math.floor(place + 1e-9)
    while (math.exp(cell / cells) < value) if up else (math.exp(cell / cells) > value):
        cell += 1 if up else -1
    return math.exp(cell / cells)
