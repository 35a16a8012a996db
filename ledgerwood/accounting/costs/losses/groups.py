"""The distinct draws of a plan, few enough to compose: near ones are replaced by one that dominates them all.

docs/explanation/pld.md#groups.
"""

import math
from collections.abc import Iterable

from ledgerwood.accounting.costs.losses import worst
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.bounded_range import BoundedRangeEvent
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import UnsupportedEvent

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
    exact = _merged(event.draws())
    if len(exact) <= _MOST_DISTINCT:
        return exact, exact
    # A coarser grid refines none of the groups, so what one grid has merged may be rounded again.
    above = below = exact
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
    return worst.grouped(few, _MOST_DISTINCT), worst.costliest(few if few is exact else below, _MOST_BELOW)


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
