"""Group privacy: the event of a change of several units at once. docs/explanation/events.md#group."""

import math
from fractions import Fraction

from ledgerwood import _directed, _validate
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.choices.bounded_range import BoundedRangeEvent
from ledgerwood.accounting.events.choices.pure import PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent, DiscreteLaplaceEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, SkellamVectorEvent
from ledgerwood.accounting.events.noise.staircase import StaircaseEvent
from ledgerwood.accounting.events.stated import ApproximateEvent, GDPEvent, ZeroConcentratedEvent
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST = 10**6


def grouped(event: Event, *, size: int) -> Event:
    """The event of the same release for two data sets that are `size` neighbouring steps apart.

    For noise of a fixed scale, the sensitivity is `size` times as large. For stated guarantees, it is the bound by the
    chain of data sets between. The privacy cost of the result holds for groups of up to `size` units.

    Args:
        event: a release, or a composition of releases; no sample, no parallel groups.
        size: units that change at once, from 1 to 10^6.

    Raises:
        InvalidParameter: a size outside its bound, or a group whose guarantee is empty.
        UnsupportedEvent: a sample, groups, a selection or a table: no group event is known for them.
    """
    require_event(event)
    size = _validate.count("size", size, "units")
    if size > _MOST:
        raise _validate.fail("size", size, "at most 10^6", "units")
    return event if size == 1 else _grouped(event, size)


def _grouped(event: Event, size: int) -> Event:
    match event:
        case Repeated():
            return Repeated(_grouped(event.event, size), count=event.count)
        case Composed():
            return Composed(tuple(_grouped(member, size) for member in event.events))
        case GaussianEvent() | LaplaceEvent():
            multiplier = _directed.float_down(Fraction(event.noise_multiplier) / size)
            return type(event)(noise_multiplier=multiplier, adjacency=event.adjacency)
        case EllipticalGaussianEvent():
            shifts = tuple(_times(d, size) for d in event.sensitivities)
            return EllipticalGaussianEvent(sensitivities=shifts, stddevs=event.stddevs, adjacency=event.adjacency)
        case DiscreteLaplaceEvent() | DiscreteGaussianEvent():
            return type(event)(scale=event.scale, sensitivity=event.sensitivity * size, adjacency=event.adjacency)
        case SkellamEvent():
            shift = event.sensitivity * size
            return SkellamEvent(variance=event.variance, sensitivity=shift, adjacency=event.adjacency)
        case SkellamVectorEvent():
            norm = _times(event.l2_sensitivity, size)
            return SkellamVectorEvent(variance=event.variance, l2_sensitivity=norm, adjacency=event.adjacency)
        case StaircaseEvent():
            return PureEvent(epsilon=_times(event.epsilon, size), adjacency=event.adjacency)
        case PureEvent() | BoundedRangeEvent():
            return type(event)(epsilon=_times(event.epsilon, size), adjacency=event.adjacency)
        case RandomizedResponseEvent():
            return Repeated(event, count=size)
        case GDPEvent():
            return GDPEvent(mu=_times(event.mu(), size), adjacency=event.adjacency)
        case ZeroConcentratedEvent():
            return ZeroConcentratedEvent(rho=_times(event.rho, size * size), adjacency=event.adjacency)
        case ApproximateEvent():
            return _approximate(event, size)
        case _:
            raise UnsupportedEvent(
                f"{event!r} has no group event: how many of a group's units a sample holds, or which groups they "
                "enter, is a mixture that this event does not describe, and a curve of one unit's divergences says "
                "little of several; state the group's own event"
            )


def _approximate(event: ApproximateEvent, size: int) -> Event:
    """(size epsilon, delta (1 + e^epsilon + ... + e^{(size - 1) epsilon})), rounded up."""
    epsilon = event.epsilon
    log_sum = (
        (size - 1) * epsilon + math.log(-math.expm1(-size * epsilon)) - math.log(-math.expm1(-epsilon))
        if epsilon > 1e-12
        else math.log(size) + size * epsilon
    )
    log_delta = math.log(event.delta) + log_sum
    log_delta += 2.0**-48 * (1.0 + abs(math.log(event.delta)) + (size - 1) * epsilon + abs(log_sum))
    if log_delta >= 0.0:
        raise InvalidParameter(
            f"a group of size={size} keeps no (epsilon, delta): its delta would be at least 1 (unit: probability)"
        )
    return ApproximateEvent(
        epsilon=_times(epsilon, size),
        delta=min(math.exp(log_delta) * (1.0 + 2.0**-48), 1.0 - 2.0**-53),
        adjacency=event.adjacency,
    )


def _times(value: float, factor: int) -> float:
    return _directed.float_up(Fraction(value) * factor)
