"""Plans, filters and budgets in words, for those who answer for a ledger and did not write the code that spends.

The words describe; the number that counts is the charge beside them.
"""

import math
from collections.abc import Sequence
from typing import assert_never

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
    GaussianMixtureEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
    SkellamEvent,
    SkellamVectorEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.filters import (
    AdvancedCompositionFilter,
    BasicFilter,
    Charge,
    Filter,
    GDPFilter,
    Remaining,
    RenyiFilter,
    ZCDPFilter,
)
from ledgerwood.pages.values import least, plain

_SHOWN_PARTS = 4
"""Different parts of a composition that are described; the others are counted."""
_DEEPEST = 6

NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with and without any one unit",
    Adjacency.ZERO_OUT: "with any one unit, and with an empty record in its place",
    Adjacency.REPLACE_ONE: "with any one unit replaced by another",
}


def plan_in_words(event: Event) -> str:
    """The plan of a grant as one sentence without a full stop."""
    return _words(event, 0)


def filter_in_words(filter_: Filter) -> str:
    """How the filter adds up grants."""
    match filter_:
        case BasicFilter():
            return "basic: epsilons and deltas add up"
        case AdvancedCompositionFilter(delta_prime=spare):
            return f"advanced composition: many small epsilons add up to less, for a delta of {plain(spare)}"
        case GDPFilter():
            return "Gaussian privacy: squares of mu add up"
        case ZCDPFilter():
            return "concentrated privacy: rhos add up"
        case RenyiFilter(order=order):
            return f"Renyi privacy: divergences of order {plain(order)} add up"
        case _:
            assert_never(filter_)


def left_in_words(left: Remaining, filter_: Filter) -> str:
    """What one more plan may cost, in the filter's currency, rounded down."""
    match filter_:
        case BasicFilter() | AdvancedCompositionFilter():
            return f"epsilon {_floor(left.epsilon)}, delta {_floor(left.delta)}"
        case GDPFilter():
            noise = (
                "" if not left.mu else f"; Gaussian noise of {plain(1.0 / left.mu)} times the sensitivity costs that"
            )
            return f"mu {_floor(left.mu)}{noise}"
        case ZCDPFilter():
            return f"rho {_floor(left.rho)}{_costs_that(math.sqrt(0.5 / left.rho) if left.rho else None)}"
        case RenyiFilter(order=order):
            return f"divergence {_floor(left.divergence)} of order {plain(order)}"
        case _:
            assert_never(filter_)


def charge_in_words(charge: Charge) -> str:
    """The amounts of a charge, epsilon before delta."""
    amounts = {name: value for name, value in charge.amounts().items() if value is not None}
    return ", ".join(f"{name} {plain(value)}" for name, value in amounts.items())


def _costs_that(noise: float | None) -> str:
    return "" if noise is None else f"; Gaussian noise of {plain(noise)} times the sensitivity costs that"


def _floor(value: float | None) -> str:
    return "-" if value is None else least(value)


def _words(event: Event, depth: int) -> str:
    if depth > _DEEPEST:
        return "a further plan inside it"
    if not isinstance(event, Composed | Parallel):
        return _of_one(event, depth)
    parts = [_words(part, depth + 1) for part in event.events[:_SHOWN_PARTS]]
    if len(event.events) > _SHOWN_PARTS:
        parts.append(f"{len(event.events) - _SHOWN_PARTS:,} further parts")
    if isinstance(event, Composed):
        return "; and ".join(parts)
    return f"each unit takes part in one of {len(event.events):,}: {'; or '.join(parts)}"


def _of_one(event: Event, depth: int) -> str:
    match event:
        case Repeated(event=inner, count=1):
            return _words(inner, depth)
        case Repeated(event=inner, count=count):
            return f"{count:,} times {_words(inner, depth + 1)}"
        case PoissonSampled(event=inner, sampling_rate=rate) | ReplaceOneSampled(event=inner, sampling_rate=rate):
            return f"{_words(inner, depth + 1)}, on a fresh sample of {_share(rate)} of the units"
        case RandomAllocation(event=inner, selected=selected, steps=steps):
            chosen = f"{steps:,} releases, of which each unit takes part in {selected:,}, chosen at random"
            return f"{chosen}; each is {_words(inner, depth + 1)}"
        case FixedSizeSampled(event=inner, sample_size=size, population=population):
            return f"{_words(inner, depth + 1)}, on a fresh sample of {size:,} of {population:,} units"
        case FilteredEvent(event=inner):
            return f"{_words(inner, depth + 1)}, where each unit takes part until its own share is used up"
        case RepeatedSelection(event=inner, stopping_rate=rate):
            return f"the best of a random number of runs (stopping rate {plain(rate)}), each {_words(inner, depth + 1)}"
        case PoissonSelection(event=inner, mean=mean):
            return f"the best of a random number of runs (mean {plain(mean)}), each {_words(inner, depth + 1)}"
        case _:
            return _noise(event)


def _noise(event: Event) -> str:
    match event:
        case GaussianEvent(noise_multiplier=noise):
            return f"a result with Gaussian noise of {plain(noise)} times the sensitivity"
        case LaplaceEvent(noise_multiplier=noise):
            return f"a result with Laplace noise of {plain(noise)} times the sensitivity"
        case TruncatedLaplaceEvent(noise_multiplier=noise):
            return f"a result with truncated Laplace noise of {plain(noise)} times the sensitivity"
        case EllipticalGaussianEvent(sensitivities=parts):
            return f"{len(parts):,} results with Gaussian noise, each with a separate scale"
        case DiscreteGaussianEvent(scale=scale, sensitivity=whole):
            return f"a whole-numbered result with Gaussian noise of {plain(scale / whole)} times the sensitivity"
        case DiscreteLaplaceEvent(scale=scale, sensitivity=whole):
            return f"a whole-numbered result with Laplace noise of {plain(scale / whole)} times the sensitivity"
        case SkellamEvent(variance=variance, sensitivity=whole):
            size = math.sqrt(variance) / whole
            return f"a whole-numbered result with Skellam noise of {plain(size)} times the sensitivity"
        case SkellamVectorEvent(variance=variance, l2_sensitivity=norm):
            size = math.sqrt(variance) / norm
            return f"a vector of whole numbers with Skellam noise of {plain(size)} times the sensitivity"
        case GaussianMixtureEvent(shifts=shifts, probabilities=weights, noise_multiplier=noise):
            moved = f"at most {plain(shifts[-1])} times it, with probability {plain(math.fsum(weights))} at all"
            result = f"a result with Gaussian noise of {plain(noise)} times the sensitivity"
            return f"{result}, which each unit moves by a random amount, {moved}"
        case StaircaseEvent(epsilon=epsilon):
            return f"a result with staircase noise of epsilon {plain(epsilon)}"
        case PureEvent(epsilon=epsilon):
            return f"a release of epsilon {plain(epsilon)}"
        case BoundedRangeEvent(epsilon=epsilon):
            return f"a private choice of epsilon {plain(epsilon)}"
        case RandomizedResponseEvent(epsilon=epsilon, categories=count):
            return f"answers changed at random among {count:,} categories, epsilon {plain(epsilon)} each"
        case ApproximateEvent(epsilon=epsilon, delta=delta):
            return f"a release declared to cost epsilon {plain(epsilon)} and delta {plain(delta)}"
        case GDPEvent(limit=mu):
            return f"a release declared to cost mu {plain(mu)}"
        case ZeroConcentratedEvent(rho=rho):
            return f"a release declared to cost rho {plain(rho)}"
        case RenyiEvent(orders=orders):
            return f"a release declared by its Renyi divergences at {_points(orders)}"
        case ProfileEvent(epsilons=epsilons):
            return f"a release declared by its privacy profile at {_points(epsilons)}"
        case _:
            return f"an event of the kind {type(event).__name__}"


def _points(values: Sequence[float]) -> str:
    return "1 point" if len(values) == 1 else f"{len(values):,} points"


def _share(rate: float) -> str:
    return f"{plain(100.0 * rate)} %"
