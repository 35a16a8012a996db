"""Secret samples under replace-one: of a fixed size without replacement, or by Poisson sampling.

A replaced row leads to three output distributions: the old row drawn, the new row drawn, neither drawn. Each direction
of the profile is bounded by joint convexity, and one pair has that profile in both directions:
docs/explanation/events.md#replaced-row.

A Poisson sample states two events, that of a replaced row and that of a row's presence. Replacing a row removes one and
adds another, so the first is bounded by the second at every threshold, and an event that exceeds the bound is refused:
docs/explanation/events.md#two-presences has the exact condition, and why it is exact.
"""

import contextlib
import math
from dataclasses import KW_ONLY, dataclass
from itertools import starmap
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import (
    Derived,
    Event,
    FloatArray,
    ReplacedRowSample,
    SizedSample,
    remembered,
    require_event,
    unsampled_moments,
)
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.group import grouped
from ledgerwood.accounting.events.sampled import poisson
from ledgerwood.accounting.events.sampled.poisson import LEAST_RATE, PoissonSampled, sampled_epsilon
from ledgerwood.errors import InvalidParameter, PrivacyError, UnsupportedEvent

_SLACK = 1e-6  # relative, per unit of 1 + |log H|: rounding of multipliers and profiles, nothing that a price shows
_THRESHOLDS = np.linspace(0.0, 1.0, 65)[:-1] ** 2  # of the range of losses; the end is a question of pure epsilons
_NEGLIGIBLE = -575.0  # log of a profile, below which nothing is compared
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_TURNS = 40
_ORDERS = np.array([1.25, 2.0, 8.0, 64.0])
_SPLITS = 1.0 + np.geomspace(1e-3, 1e3, 31)  # p of the weak triangle inequality


def contradiction(event: Event, present: Event) -> str | None:
    """A message if the statement of a replaced row exceeds the bound by two presences at some threshold; else None.

    Args:
        event: what a replaced row costs, under replace-one.
        present: the event of a row's presence, under add-remove or zero-out.
    """
    if any(isinstance(part, Derived) for root in (event, present) for part in base.walk(root)):
        return None  # made of statements that were asked about
    return _contradiction(event, present)


@remembered(256)
def _contradiction(event: Event, present: Event) -> str | None:
    most = 2.0 * present.pure_epsilon()
    if event.pure_epsilon() > most * (1.0 + _SLACK):
        return f"it may lose {event.pure_epsilon():.6g} nats, two presences at most {most:.6g} (unit: nats)"
    if isinstance(event, PureEvent) and math.isfinite(most):
        return None  # no more than a largest loss is stated
    if _alike(event, present):
        return None
    with contextlib.suppress(UnsupportedEvent):
        mu, largest = event.mu(), 2.0 * present.mu()  # two Gaussian shifts in a line: the condition at every threshold
        return f"its mu is {mu:.6g}, two presences have {largest:.6g}" if mu > largest * (1.0 + _SLACK) else None
    try:
        return _by_profiles(event, present)
    except UnsupportedEvent:
        return _by_divergences(event, present)


def _alike(event: Event, present: Event) -> bool:
    """Returns whether both have the same structure and each pair of parts is possible; then so is the whole."""
    match event, present:
        case (Repeated(inner, count=m), Repeated(other, count=n)):
            return m == n and _contradiction(inner, other) is None
        case (Composed(members), Composed(others)):
            return len(members) == len(others) and not any(starmap(_contradiction, zip(members, others, strict=True)))
        case (Parallel(members, probabilities=p), Parallel(others, probabilities=q)):
            return p == q and len(members) == len(others) and not any(
                starmap(_contradiction, zip(members, others, strict=True))
            )  # fmt: skip
        case (ReplacedRowSample(add_remove=inner, sampling_rate=p), PoissonSampled(other, sampling_rate=q)):
            return p == q and inner == other
    return False


def _by_profiles(event: Event, present: Event) -> str | None:
    reach = float(poisson.nodes_of(event)[-1])
    thresholds: FloatArray = np.asarray(reach * _THRESHOLDS, np.float64)
    stated = poisson.log_profile_of(event, thresholds)
    allowed = np.maximum(two_presences(present, thresholds, reach), _of_a_group(present, thresholds))
    with np.errstate(invalid="ignore"):
        excess = stated - allowed - _SLACK * (1.0 + np.abs(np.maximum(allowed, _NEGLIGIBLE)))
    excess = np.where(stated > _NEGLIGIBLE, excess, -np.inf)
    place = int(np.argmax(excess))
    if not excess[place] > 0.0:
        return None
    return (
        f"at epsilon={thresholds[place]:.6g} it has delta {math.exp(stated[place]):.6g}, "
        f"two presences at most {math.exp(allowed[place]):.6g} (unit: probability)"
    )


def _of_a_group(present: Event, thresholds: FloatArray) -> FloatArray:
    """The log profile of the presence's own group of two, as the library states it; -inf if it states none."""
    try:
        return grouped(present, size=2).log_profile(thresholds, direction=Direction.REMOVE)
    except PrivacyError:
        return np.full(thresholds.shape, -np.inf)


def two_presences(present: Event, thresholds: FloatArray, reach: float) -> FloatArray:
    """log of the least of h(s) + e^s g(t - s) over all real s, at each threshold t >= 0 (k,); from above.

    h and g are the profiles of removing and adding a row, at negative arguments too. The sum is convex in e^s.

    Args:
        present: the event of a row's presence.
        thresholds: t, in nats, shape (k,).
        reach: the reach of the losses that matter, in nats.

    Source: docs/explanation/events.md#two-presences.
    """

    def at(s: FloatArray) -> FloatArray:
        u = thresholds - s
        return np.logaddexp(_everywhere(present, s, Direction.REMOVE), s + _everywhere(present, u, Direction.ADD))

    low, high = np.full(thresholds.shape, -reach), thresholds + reach
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    middle = 0.5 * thresholds  # the best one of a symmetric pair
    best: FloatArray = np.minimum(at(middle), np.minimum(at_left, at_right))
    for _ in range(_TURNS):
        lower = at_left <= at_right
        high, low = np.where(lower, right, high), np.where(lower, low, left)
        fresh = np.where(lower, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = at(fresh)
        left, right = np.where(lower, fresh, right), np.where(lower, left, fresh)
        at_left, at_right = np.where(lower, value, at_right), np.where(lower, at_left, value)
        best = np.minimum(best, value)
    return best


def _everywhere(present: Event, t: FloatArray, direction: Direction) -> FloatArray:
    """The log profile at any real t: H(t) = 1 - e^t + e^t G(-t) at t < 0, G that of the other direction."""
    other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
    ahead = present.log_profile(np.maximum(t, 0.0), direction=direction)
    back = present.log_profile(np.maximum(-t, 0.0), direction=other)
    return np.where(t >= 0.0, ahead, np.logaddexp(renyi.log1mexp(np.minimum(t, 0.0)), np.minimum(t, 0.0) + back))


def _by_divergences(event: Event, present: Event) -> str | None:
    """By Renyi divergences, where a profile is not known: the weak triangle inequality, a necessary condition.

    Source: Mironov 2017, Proposition 11; docs/explanation/events.md#two-presences.
    """
    orders, splits = _ORDERS[:, None], _SPLITS[None, :]
    first, second = orders * splits, (orders * splits - 1.0) / (splits - 1.0)
    ahead = present.renyi(first.ravel(), direction=Direction.REMOVE).reshape(first.shape)
    back = present.renyi(second.ravel(), direction=Direction.ADD).reshape(first.shape)
    allowed = np.min((orders - 1.0 / splits) / (orders - 1.0) * ahead + back, axis=1)
    with contextlib.suppress(PrivacyError):
        allowed = np.maximum(allowed, grouped(present, size=2).renyi(_ORDERS))
    stated = event.renyi(_ORDERS)
    if not np.isfinite(stated).any():
        return "neither its profile nor its Renyi divergences are known, so this event cannot be checked"
    with np.errstate(invalid="ignore"):
        excess = np.where(stated > allowed * (1.0 + _SLACK), stated - allowed, -np.inf)
    place = int(np.argmax(excess))
    if not excess[place] > 0.0:
        return None
    return (
        f"its Renyi divergence of order {_ORDERS[place]:g} is {stated[place]:.6g}, "
        f"two presences have at most {allowed[place]:.6g} (unit: nats)"
    )


_MOST_ROWS = 2**53
_AGAIN = (
    " again: its bound is a profile in both directions, not an output distribution; state one sample of the smaller "
    "rate or size"
)


@final
@dataclass(frozen=True, slots=True)
class FixedSizeSampled(SizedSample):
    """A replace-one event on one secret sample of `sample_size` rows, drawn without replacement from `population` rows.

    Everything computed from one sample is one draw. The profile is that of Balle, Barthe and Gaboardi 2018
    (without replacement, under substitution); proof in docs/explanation/events.md#fixed-size.

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
        for inner in base.walk(self.event, until=FixedSizeSampled):
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
        return poisson.log_amplified(renyi.check_epsilons(epsilons), self.sampling_rate, self.event, None)

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

    By advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2); docs/explanation/events.md#replaced-row.

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
        if base.holds(self.event, FixedSizeSampled):
            raise UnsupportedEvent(
                "a fixed-size sample of a Poisson sample has no privacy bound: the number of rows that it is drawn "
                "from is random and private, so its rate is not sample_size / population; draw the fixed sample first"
            )
        if self.add_remove.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                "add_remove must be stated under add-remove or zero-out: it states the cost of a row's presence"
            )
        if why := contradiction(self.event, self.add_remove):
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
        return poisson.log_amplified(renyi.check_epsilons(epsilons), self.sampling_rate, self.event, self.add_remove)

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
    found = renyi.guarded(poisson.log_moment(a, sample.sampling_rate, event, present), a)
    return np.minimum(np.minimum(found, event.renyi(a)), sample.pure_epsilon())


def _mu_of_all(event: Event, inner: Event, everything: bool) -> float:
    if everything:
        return inner.mu()
    raise UnsupportedEvent(f"{event!r} has no exact Gaussian-DP parameter: a mixture of Gaussians is not Gaussian")
