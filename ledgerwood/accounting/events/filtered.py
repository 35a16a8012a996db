"""Rounds under an individual privacy filter: any number of rounds, with a limit on each row's total loss.

Feldman and Zrnic 2021 (Renyi divergences of one order); Koskela, Tobaben and Honkela 2023 (Gaussian privacy). Both are
proven again in docs/explanation/individuals.md#individual-filter and #individual-gdp-filter.
"""

from dataclasses import KW_ONLY, dataclass
from typing import final

from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import GDPEvent, RenyiEvent
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent


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
                f"limit has {len(self.limit.orders)} orders; it must have one, chosen beforehand (unit: Renyi order)"
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
        """What a round releases from its sample."""
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
