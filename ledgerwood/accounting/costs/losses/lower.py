"""A draw's log profile from below: as accurate as the events' own, and never above the truth.

The events round upward. Here each formula is taken at an argument moved by its own rounding error the other way, and
lowered by its guard. docs/explanation/pld.md#lower-profile.
"""

import math

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses.joint import Joint
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.bounded_range import BoundedRangeEvent
from ledgerwood.accounting.events.choices.corners import interpolated_below
from ledgerwood.accounting.events.choices.pure import PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.noise.discrete import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    gaussian_corners,
    laplace_corners,
)
from ledgerwood.accounting.events.noise.gaussian import gaussian_log_profile
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, skellam_corners
from ledgerwood.accounting.events.noise.staircase import StaircaseEvent
from ledgerwood.accounting.events.noise.truncated import TruncatedLaplaceEvent
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.accounting.events.tabulated import ProfileEvent
from ledgerwood.errors import UnsupportedEvent

ULP = renyi.ULP
_MU_SLACK = 64.0 * ULP  # by how much, relative, an event's mu may have been rounded up on the way
_MOST_SLACK = 1e-3  # beyond it the first-order bound of a Gaussian profile's rounding error is not used


def log_profile(event: Event, epsilons: FloatArray, direction: Direction) -> FloatArray:
    """A lower bound on log H at each epsilon >= 0 (nats), shape (k,); -inf says nothing.

    Raises:
        UnsupportedEvent: no lower bound is proven for this kind of event.
    """
    t = epsilons * (1.0 + 2.0 * ULP)
    match event:
        case Repeated(inner, count=1) | Composed((inner,)):
            return log_profile(inner, epsilons, direction)
        case PoissonSampled(inner, sampling_rate=q):
            return log_profile(inner, epsilons, direction) if q == 1.0 else _sampled(inner, q, t, direction)
        case FixedSizeSampled(inner, sample_size=size, population=population):
            if size == population:
                return log_profile(inner, epsilons, direction)
            rate = size / population * (1.0 - 4.0 * ULP)  # a larger sample costs more
            return np.maximum(*(_sampled_up(inner, rate, t, d) for d in (Direction.REMOVE, Direction.ADD)))
        case Parallel(members, probabilities=weights):
            return _mixed(members, weights, epsilons, direction)
        case Joint():
            return event.log_profile_below(epsilons, direction)
        case LaplaceEvent():
            gap = np.minimum(t - (1.0 - 4.0 * ULP) / event.noise_multiplier, 0.0)
            return _lowered(renyi.log1mexp(0.5 * gap), 0.0)
        case PureEvent():
            return _response(event.epsilon, 1.0, t)
        case RandomizedResponseEvent():
            return _response(event.epsilon, event.categories - 1.0, t)
        case StaircaseEvent():
            share = event.log_share()
            return _lowered(renyi.log1mexp(np.minimum(t - event.epsilon, 0.0)) + share, abs(share))
        case TruncatedLaplaceEvent():
            return _truncated(1.0 / event.noise_multiplier, event.bound, epsilons)
        case BoundedRangeEvent():
            whole = float(renyi.log1mexp(np.array(-event.epsilon)))
            return _lowered(2.0 * renyi.log1mexp(0.5 * np.minimum(t - event.epsilon, 0.0)) - whole, 2.0 * abs(whole))
        case ApproximateEvent():
            log_delta = math.log(event.delta)
            mixed = np.logaddexp(log_delta, math.log1p(-event.delta) + _response(event.epsilon, 1.0, t))
            return _lowered(np.where(t >= event.epsilon, log_delta, mixed), 0.0)
        case DiscreteLaplaceEvent():
            return interpolated_below(laplace_corners(event.scale, event.sensitivity), epsilons)
        case DiscreteGaussianEvent():
            return interpolated_below(gaussian_corners(event.scale, event.sensitivity), epsilons)
        case SkellamEvent():
            return interpolated_below(skellam_corners(event.variance, event.sensitivity), epsilons)
        case ProfileEvent():
            return _tabulated(event, t, direction)
    try:
        mu = event.mu()
    except UnsupportedEvent:
        raise UnsupportedEvent(f"no lower bound on the profile is proven for {type(event).__name__}") from None
    return _gaussian(mu * (1.0 - _MU_SLACK), t)


def log_infinite(event: Event, direction: Direction) -> float:
    """log of a lower bound on the profile at every epsilon, which is the probability of an infinite loss."""
    match event:
        case Repeated(inner, count=1) | Composed((inner,)):
            return log_infinite(inner, direction)
        case PoissonSampled(inner, sampling_rate=q) if q == 1.0 or direction is Direction.REMOVE:
            return (log_infinite(inner, direction) + math.log(q)) * (1.0 + 4.0 * ULP)
        case ApproximateEvent() | TruncatedLaplaceEvent() | ProfileEvent():  # constant from some epsilon on
            return float(log_profile(event, np.array([1e300]), direction)[0])
    return -math.inf


def _lowered(logs: FloatArray, size: float) -> FloatArray:
    """Logarithms made of terms no larger than themselves or `size`, lowered by their rounding error."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(logs), -np.inf, logs - 16.0 * ULP * (1.0 + size + np.abs(logs)))


def _response(epsilon: float, others: float, t: FloatArray) -> FloatArray:
    """Randomised response: (e^eps - e^t)+ / (e^eps + others)."""
    total = math.log1p(others * math.exp(-epsilon))
    return _lowered(renyi.log1mexp(np.minimum(t - epsilon, 0.0)) - total, total)


def _gaussian(mu: float, t: FloatArray) -> FloatArray:
    """What `gaussian_log_profile` rounds up, taken off again: a guard of its own size, and its lowering of a."""
    logs = gaussian_log_profile(mu, t)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = t / mu - 0.5 * mu, t / mu + 0.5 * mu
        slope = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - logs)  # normal density over profile
        slack = 64.0 * ULP * (1.0 + np.abs(logs) + b * slope)
        return np.where(slack <= _MOST_SLACK, logs - slack, -np.inf)


def _sampled(inner: Event, q: float, t: FloatArray, direction: Direction) -> FloatArray:
    """events.md#sampled-profile, with the inner epsilon raised and the mass lowered."""
    if direction is Direction.REMOVE:
        return _sampled_up(inner, q, t, direction)
    with np.errstate(divide="ignore", over="ignore"):
        grown = (1.0 - q) / q * np.expm1(np.minimum(t, 700.0)) * (1.0 + 16.0 * ULP)
        reached = grown < 1.0
        log_left = np.log1p(-np.where(reached, grown, 0.0))
    values = log_profile(inner, (t - log_left) * (1.0 + 8.0 * ULP), direction)
    return np.where(reached, _lowered(math.log(q) + log_left + values, 2.0 * abs(math.log(q))), -np.inf)


def _sampled_up(inner: Event, q: float, t: FloatArray, direction: Direction) -> FloatArray:
    """log of q H(log(1 + (e^t - 1) / q))."""
    near = np.log1p(np.expm1(np.minimum(t, 1.0)) / q)
    far = (t - math.log(q)) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(t, 1.0)))
    return _lowered(
        math.log(q) + log_profile(inner, np.where(t <= 1.0, near, far) * (1.0 + 16.0 * ULP), direction),
        abs(math.log(q)),
    )


def _truncated(rate: float, bound: float, epsilons: FloatArray) -> FloatArray:
    """events.md#truncated-laplace with every part moved down: it falls in t but for the mass beyond, which rises."""
    least, most = rate * (1.0 - 2.0 * ULP), rate * (1.0 + 2.0 * ULP)
    last = most * min(2.0 * bound - 1.0, 1.0) * (1.0 + 4.0 * ULP)
    late, early = np.minimum(epsilons, last) * (1.0 + 2.0 * ULP), np.minimum(epsilons, last) * (1.0 - 8.0 * ULP)
    inside = renyi.log1mexp(0.5 * np.minimum(late - least, 0.0))
    left = (early - most) - (bound - 1.0) * most - 8.0 * ULP * (1.0 + bound) * most
    outside = left + renyi.log1mexp(-early) - math.log(2.0)
    kept = float(renyi.log1mexp(np.asarray(-bound * most * (1.0 + 4.0 * ULP))))
    return _lowered(np.logaddexp(inside, outside) - kept, abs(kept))


def _tabulated(event: ProfileEvent, t: FloatArray, direction: Direction) -> FloatArray:
    """The event's chords less their rounding: shares of exponents up to its last epsilon, and corners left out wrongly.

    A comparison of slopes errs by units of the logarithms that they are made of, and each corner may be one too many.
    """
    logs = event.log_profile(t, direction=direction)
    size = event.epsilons[-1] + max((-math.log(delta) for delta in event.deltas if delta > 0.0), default=0.0) + 4.0
    slack = 16.0 * ULP * (4.0 * (1.0 + np.abs(logs)) + size * (1.0 + len(event.deltas)))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(logs), -np.inf, logs - slack)


def _mixed(
    members: tuple[Event, ...], weights: tuple[float, ...] | None, epsilons: FloatArray, direction: Direction
) -> FloatArray:
    taken = [(e, p) for e, p in zip(members, weights or (1.0,) * len(members), strict=True) if p > 0.0]
    logs = np.stack([log_profile(e, epsilons, direction) for e, _ in taken])
    if weights is None:
        return np.asarray(logs.max(axis=0))
    shares = np.log([p for _, p in taken])[:, None]
    total = np.logaddexp.reduce(logs + shares, axis=0)
    total = np.minimum(total, 0.0)  # probabilities may add up to a rounding error more than 1
    return _lowered(np.asarray(total), float(np.abs(shares).max()) + len(taken))
