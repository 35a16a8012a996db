"""Group privacy, for several units that change at once; and rounds under an individual privacy filter.

`grouped` is the event of a group of units (docs/explanation/events.md#group); a `FilteredEvent` is any number of rounds
in which each row has a limit on its total loss. Sources: Feldman and Zrnic 2021, Theorem 4.5 (Renyi divergences of one
order); Koskela, Tobaben and Honkela 2023 (Gaussian privacy); proven again in
docs/explanation/individuals.md#individual-filter and docs/explanation/individuals.md#individual-gdp-filter.
"""

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import final

from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent, PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent, DiscreteLaplaceEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent, StaircaseEvent
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, SkellamVectorEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent, GDPEvent, RenyiEvent, ZeroConcentratedEvent
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

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
                f"{event!r} has no group event that is known here: how many of a group's units a sample holds, "
                "or which groups they enter, is a mixture that this event does not describe, and a curve of one unit's "
                "divergences does not bound several units; state the group's own event"
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
            f"a group of size={size} satisfies no (epsilon, delta) below delta 1 (unit: probability)"
        )
    return ApproximateEvent(
        epsilon=_times(epsilon, size),
        delta=min(math.exp(log_delta) * (1.0 + 2.0**-48), 1.0 - 2.0**-53),
        adjacency=event.adjacency,
    )


def _times(value: float, factor: int) -> float:
    return _directed.float_up(Fraction(value) * factor)


@final
@dataclass(frozen=True, slots=True)
class FilteredEvent(Event):
    """Any number of rounds of `event`; each row takes part while its own total privacy loss is within `limit`.

    Before a round each row is charged its own divergence, from its own contribution and the outputs so far; a row
    whose sum would exceed the limit contributes 0. So the privacy cost is that of the limit, for any number of
    rounds and however they are chosen: docs/explanation/individuals.md#individual-filter.

    Args:
        event: one round of Gaussian noise, Poisson-sampled or not, for a maximally contributing row.
        limit: the largest total loss of a row in all rounds. A `GDPEvent` if every row takes part in every round;
            a `RenyiEvent` of one order, fixed beforehand, if rounds are sampled (or not).

    Raises:
        InvalidParameter: something that is not an event, or a limit of several orders.
        AdjacencyMismatch: event and limit under different adjacencies.
        UnsupportedEvent: replace-one, a round that is not one release of Gaussian noise, or a sampled round under a
            `GDPEvent` (a sampled Gaussian pair is not a Gaussian pair).
    """

    event: Event
    _: KW_ONLY
    limit: GDPEvent | RenyiEvent

    def __post_init__(self) -> None:
        require_event(self.event)
        if not isinstance(self.limit, GDPEvent | RenyiEvent):
            raise InvalidParameter(f"limit={self.limit!r} must be a GDPEvent or a RenyiEvent (unit: event)")
        if isinstance(self.limit, RenyiEvent) and len(self.limit.orders) != 1:
            raise InvalidParameter(
                f"limit has {len(self.limit.orders)} orders; it must have one, fixed in advance (unit: Renyi order)"
            )
        if self.event.adjacency is not self.limit.adjacency:
            raise AdjacencyMismatch(
                f"event is under {self.event.adjacency.value}, limit under {self.limit.adjacency.value}"
            )
        if self.event.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                "an individual filter needs add-remove or zero-out: under replace-one what a row loses depends on the "
                "row that takes its place"
            )
        if not isinstance(self.release, GaussianEvent | EllipticalGaussianEvent):
            raise UnsupportedEvent(f"{self.event!r} is not one release of Gaussian noise, sampled or not")
        if isinstance(self.limit, GDPEvent) and self.sampling_rate < 1.0:
            raise UnsupportedEvent(
                "a Poisson-sampled Gaussian pair is not a Gaussian pair: filter it by a RenyiEvent of one order"
            )

    @property
    def release(self) -> Event:
        """The release that a round makes from its sample."""
        return self.event.event if isinstance(self.event, PoissonSampled) else self.event

    @property
    def sampling_rate(self) -> float:
        """The share of the rows that a round draws, each row independently; 1 for all."""
        return self.event.sampling_rate if isinstance(self.event, PoissonSampled) else 1.0

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return self.limit.log_profile(epsilons, direction=direction)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.limit.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        return self.limit.pure_epsilon()

    def mu(self) -> float:
        return self.limit.mu()

    def symmetric(self) -> bool:
        return self.limit.symmetric()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return self.limit.log_excess_moments(powers, sampling_rate=sampling_rate)
