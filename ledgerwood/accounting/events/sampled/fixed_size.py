"""Secret samples under replace-one: of a fixed size without replacement, or by Poisson sampling.

A replaced row leads to three output distributions: the old row drawn, the new row drawn, neither drawn. Each direction
of the profile is bounded by joint convexity, and one pair has that profile in both directions:
docs/explanation/events.md#replaced-row.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import tree
from ledgerwood.accounting.events.base import (
    Event,
    FloatArray,
    ReplacedRowSample,
    SizedSample,
    require_event,
    unsampled_moments,
)
from ledgerwood.accounting.events.sampled import presence, replaced
from ledgerwood.accounting.events.sampled.poisson import LEAST_RATE, sampled_epsilon
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST_ROWS = 2**53
_AGAIN = (
    " again: its bound is a profile in both directions, not an output distribution; state one sample of the smaller "
    "rate or size"
)


@final
@dataclass(frozen=True, slots=True)
class FixedSizeSampled(SizedSample):
    """A replace-one event on one secret sample of `sample_size` rows, drawn without replacement from `population` rows.

    Everything computed from one sample is one draw. Source of the profile: Balle, Barthe and Gaboardi 2018
    (without replacement, under substitution); docs/explanation/events.md#fixed-size.

    Args:
        event: the release from the sample, for one row of the sample replaced.
        sample_size: rows in the sample, >= 1; public.
        population: rows in the data, at least sample_size, at most 2^53; public.

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
        UnsupportedEvent: an add-remove or zero-out event; a fixed-size sample of a fixed-size sample, directly or, at
            any depth, one whose population is not this `sample_size`.
    """

    event: Event
    _: KW_ONLY
    sample_size: int
    population: int

    def __post_init__(self) -> None:
        require_event(self.event)
        population = _validate.count("population", self.population, "rows")
        size = _validate.count("sample_size", self.sample_size, "rows")
        if population > _MOST_ROWS:
            raise _validate.fail("population", population, "at most 2^53", "rows")
        if size > population:
            raise InvalidParameter(f"sample_size={size} must be at most population={population} (unit: rows)")
        object.__setattr__(self, "sample_size", size)
        object.__setattr__(self, "population", population)
        if self.event.adjacency is not Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"FixedSizeSampled under {self.event.adjacency.value} has no privacy bound: the number of rows is "
                "public here, and adding or removing a row changes it; and a sample of a fixed size has another row "
                "in the place of an absent one; use replace-one, where a clipped sum moves by twice its norm"
            )
        if isinstance(self.event, FixedSizeSampled):
            raise UnsupportedEvent("a sample of a sample is one sample: state it as FixedSizeSampled of the event")
        for inner in tree.walk(self.event, until=FixedSizeSampled):
            if isinstance(inner, FixedSizeSampled) and inner.population != size:
                raise UnsupportedEvent(
                    f"a sample with population={inner.population} within a sample of sample_size={size} rows: what it "
                    f"is drawn from has {size} rows; state it with population={size} (unit: rows)"
                )

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    @property
    def sampling_rate(self) -> float:
        """sample_size / population, rounded up; 1 also where all rows but one of more than 2^52 are drawn."""
        rate = self.sample_size / self.population
        return rate if rate == 1.0 else min(math.nextafter(rate, 1.0), 1.0)

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """log of q H(log(1 + (e^eps - 1) / q)), both directions."""
        if self.sampling_rate == 1.0:
            return self.event.log_profile(epsilons, direction=direction)
        return replaced.log_amplified(renyi.check_epsilons(epsilons), self.sampling_rate, self.event, None)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        whole = self.event.renyi(orders, direction=direction)
        if self.sampling_rate == 1.0:
            return whole
        return _renyi(self, renyi.check_orders(orders), self.event, None)

    def pure_epsilon(self) -> float:
        return sampled_epsilon(self.event.pure_epsilon(), self.sampling_rate)

    def mu(self) -> float:
        return _mu_of_all(self, self.event, self.sampling_rate == 1.0)

    def symmetric(self) -> bool:
        return self.sampling_rate < 1.0 or self.event.symmetric()

    def unsampled(self) -> Event:
        return self.event.unsampled()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        if self.sampling_rate == 1.0:
            return self.event.log_excess_moments(powers, sampling_rate=sampling_rate)
        return unsampled_moments(self, powers, sampling_rate, _AGAIN)


@final
@dataclass(frozen=True, slots=True)
class ReplaceOneSampled(ReplacedRowSample):
    """A replace-one event on one secret Poisson sample, with the event of a row's presence.

    By advanced joint convexity (Balle, Barthe and Gaboardi 2018); docs/explanation/events.md#replaced-row.

    Args:
        event: the release from the sample, for one row of the sample replaced (a clipped sum moves by twice its norm).
        add_remove: the same release, with one row of the sample added or removed, or zeroed out (a clipped sum moves by
            its norm). It is declared, never inferred: a count moves by 1 here and by 0 above.
        sampling_rate: the probability of each row to be in the sample, in [1e-100, 1].

    Raises:
        InvalidParameter: a rate outside its bound, or something that is not an event.
        UnsupportedEvent: `event` is not stated under replace-one, or `add_remove` is; a fixed-size sample within; or
            `event` loses more than two presences allow, at some threshold (docs/explanation/events.md#two-presences).
    """

    event: Event
    _: KW_ONLY
    add_remove: Event
    sampling_rate: float

    def __post_init__(self) -> None:
        require_event(self.event)
        require_event(self.add_remove)
        q = _validate.rate("sampling_rate", self.sampling_rate, "probability per unit")
        if q < LEAST_RATE:
            raise _validate.fail("sampling_rate", self.sampling_rate, "in [1e-100, 1]", "probability per unit")
        object.__setattr__(self, "sampling_rate", q)
        if self.event.adjacency is not Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"ReplaceOneSampled of a {self.event.adjacency.value} event: a sample under that relation is a "
                "PoissonSampled"
            )
        if tree.holds(self.event, FixedSizeSampled):
            raise UnsupportedEvent(
                "a fixed-size sample of a Poisson sample has no privacy bound: the number of rows that it is drawn "
                "from is random and private, so its rate is not sample_size / population; draw the fixed sample first"
            )
        if self.add_remove.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                "add_remove must be stated under add-remove or zero-out: it is what the presence of a row costs"
            )
        if why := presence.contradiction(self.event, self.add_remove):
            raise UnsupportedEvent(
                f"event cannot lose more than adding one row and removing another, and by add_remove it would: {why}. "
                "A clipped sum's presence costs half of its replacement: state add_remove with at most twice the noise "
                "multiplier of event (a half of its epsilon), or grouped(add_remove, size=2) as event"
            )

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        """log of q [(1 - b) H_present(t') + b H_replaced(t')], t' = log(1 + (e^t - 1)/q), b = e^{t - t'}; both ways.

        Never above log of q H_replaced(t), which bounds it too.
        """
        if self.sampling_rate == 1.0:
            return self.event.log_profile(epsilons, direction=direction)
        return replaced.log_amplified(renyi.check_epsilons(epsilons), self.sampling_rate, self.event, self.add_remove)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        if self.sampling_rate == 1.0:
            return self.event.renyi(orders, direction=direction)
        return _renyi(self, renyi.check_orders(orders), self.event, self.add_remove)

    def pure_epsilon(self) -> float:
        """That of a sample of the larger of the two events, and never above that of `event`."""
        whole = self.event.pure_epsilon()
        if self.sampling_rate == 1.0:
            return whole
        return min(sampled_epsilon(max(whole, self.add_remove.pure_epsilon()), self.sampling_rate), whole)

    def mu(self) -> float:
        return _mu_of_all(self, self.event, self.sampling_rate == 1.0)

    def symmetric(self) -> bool:
        return self.sampling_rate < 1.0 or self.event.symmetric()

    def unsampled(self) -> Event:
        return self.event.unsampled()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        if self.sampling_rate == 1.0:
            return self.event.log_excess_moments(powers, sampling_rate=sampling_rate)
        return unsampled_moments(self, powers, sampling_rate, _AGAIN)


def _renyi(
    sample: "FixedSizeSampled | ReplaceOneSampled", a: FloatArray, event: Event, present: Event | None
) -> FloatArray:
    """Divergences, never above those of the unsampled event, nor above the sample's pure epsilon; shape (k,)."""
    found = renyi.guarded(replaced.log_moment(a, sample.sampling_rate, event, present), a)
    return np.minimum(np.minimum(found, event.renyi(a)), sample.pure_epsilon())


def _mu_of_all(event: Event, inner: Event, everything: bool) -> float:
    if everything:
        return inner.mu()
    raise UnsupportedEvent(f"{event!r} has no exact Gaussian-DP parameter: a mixture of Gaussians is not Gaussian")
