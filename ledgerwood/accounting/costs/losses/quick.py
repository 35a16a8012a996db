"""Quick estimates of a plan's epsilon, by which a search finds its way before it composes losses.

docs/explanation/pld.md#plan.
"""

import contextlib
import math

import numpy as np

from ledgerwood.accounting.costs.losses import plans, worst
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.allocation import CoarseAllocation, RandomAllocation
from ledgerwood.errors import UnsupportedEvent


def composes_inside(event: Event) -> bool:
    """Returns whether a part has to be composed before it is a draw, which takes most of the time."""
    with contextlib.suppress(UnsupportedEvent):
        if base.holds(event, RandomAllocation):
            return True
        above, _ = worst.parts(event)
        return plans.opened(above) is not above
    return False


def quick_epsilon(event: Event, log_delta: float) -> float:
    """The epsilon of the coarse models, where compositions inside samples are taken for Gaussian: fast, and no bound.

    An allocation is taken by its quick bound.

    Raises:
        UnsupportedEvent: such a composition has no Rényi divergence.
    """
    above, _ = worst.parts(event)
    parts = tuple((_quickly(part), count) for part, count in above)
    found = plans.LossPlan(parts, parts, all(part.symmetric() for part, _ in parts))
    if found.single is not None:
        return plans.single_epsilon(found, found.single, log_delta, True)
    return plans.estimated_epsilon(found, log_delta)


def has_quick_losses(event: Event) -> bool:
    """Returns whether `quick_epsilon` is faster than a conversion of Rényi divergences: that of an allocation.

    Raises:
        UnsupportedEvent: of a class from outside.
    """
    return base.holds(event, RandomAllocation)


def _quickly(event: Event) -> Event:
    if isinstance(event, RandomAllocation) and event.selected == 1:
        return CoarseAllocation(RandomAllocation(plans.with_whole(event.event, _like_gaussian), steps=event.steps))
    return plans.with_whole(event, _like_gaussian)


def _like_gaussian(event: Event) -> Event:
    """The Gaussian event with the composition's Rényi divergence of order 2: no bound of it."""
    divergence = float(event.renyi(np.array([2.0]))[0])
    if not 0.0 < divergence < math.inf:
        raise UnsupportedEvent(f"a composition inside a sample has no Rényi divergence: {type(event).__name__}")
    return GaussianEvent(noise_multiplier=1.0 / math.sqrt(divergence), adjacency=event.adjacency)
