"""Poisson samples of any event: exact for rows that are present or absent, bounded for replaced ones.

With r = dP/dQ the sampled pair has the likelihood ratio s = 1 - q + q r, so its profile is that of the event at another
epsilon, and its excess moments are the event's own integral with s in place of r.
docs/explanation/events.md#sampled-profile and #excess-moments.

For a replaced row the profile is bounded by advanced joint convexity, each direction separately, so that no single pair
is sampled: docs/explanation/events.md#replaced-row. Its moments are upper bounds by convexity, on nodes in y = e^t; no
integral is cut off.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event, FloatArray, remembered, require_event
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.errors import UnsupportedEvent

LEAST_RATE = 1e-100


@final
@dataclass(frozen=True, slots=True)
class PoissonSampled(Event):
    """An event on one secret subsample that holds each unit independently with probability `sampling_rate`.

    Everything computed from one subsample is one draw: sample the composition, never compose the samples.

    Args:
        event: the release from the subsample.
        sampling_rate: in [1e-100, 1].

    Raises:
        InvalidParameter: a rate outside its bound, or something that is not an event.
        UnsupportedEvent: a replace-one event.
    """

    event: Event
    _: KW_ONLY
    sampling_rate: float

    def __post_init__(self) -> None:
        require_event(self.event)
        q = _validate.rate("sampling_rate", self.sampling_rate, "probability per unit")
        if q < LEAST_RATE:
            raise _validate.fail("sampling_rate", self.sampling_rate, "in [1e-100, 1]", "probability per unit")
        object.__setattr__(self, "sampling_rate", q)
        if self.event.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"PoissonSampled of a replace-one event ({self.event!r}) has no proven privacy bound: under "
                "replace-one there is a third output distribution, without the row; state the event of the row's "
                "presence too, in a ReplaceOneSampled, or state the event under add-remove or zero-out"
            )

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        q = self.sampling_rate
        if q == 1.0:
            return self.event.log_profile(epsilons, direction=direction)
        t = renyi.check_epsilons(epsilons)
        if direction is Direction.REMOVE:
            inner = self.event.log_profile(remove_epsilon(t, q), direction=direction)
            return renyi.raise_log(math.log(q) + inner, 4)
        log_mass, inner_epsilon = _add_epsilon(t, q)
        reached = np.isfinite(log_mass)
        inner = self.event.log_profile(np.where(reached, inner_epsilon, 0.0), direction=direction)
        return np.where(reached, renyi.raise_log(np.where(reached, log_mass, 0.0) + inner, 4), -np.inf)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        q = self.sampling_rate
        if q == 1.0:
            return self.event.renyi(orders, direction=direction)
        a = renyi.check_orders(orders)
        if direction is None:
            remove = self.renyi(a, direction=Direction.REMOVE)
            return remove if self.removal_dominates() else np.maximum(remove, self.renyi(a, direction=Direction.ADD))
        excess = self.event.log_excess_moments(renyi.powers_of(a, direction), sampling_rate=q)
        return renyi.guarded(excess, a)

    def pure_epsilon(self) -> float:
        return sampled_epsilon(self.event.pure_epsilon(), self.sampling_rate)

    def mu(self) -> float:
        if self.sampling_rate == 1.0:
            return self.event.mu()
        raise UnsupportedEvent(
            f"{self!r} has no exact Gaussian-DP parameter: a mixture of two Gaussians is not Gaussian"
        )

    def symmetric(self) -> bool:
        return self.sampling_rate == 1.0 and self.event.symmetric()

    def removal_dominates(self) -> bool:
        # A reflection that exchanges P and Q makes "remove" the larger direction at every order and rate.
        return self.event.symmetric()

    def unsampled(self) -> Event:
        return self.event.unsampled()

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        # A moment grows with the rate, so the least rate that the integrals are made for bounds a lesser one.
        rate = max(self.sampling_rate * sampling_rate, LEAST_RATE)
        return self.event.log_excess_moments(powers, sampling_rate=rate)


def sampled_epsilon(epsilon: float, sampling_rate: float) -> float:
    """log(1 + q (e^eps - 1)), rounded up, in nats (Balle, Barthe and Gaboardi 2018, Theorem 8)."""
    if sampling_rate == 1.0 or math.isinf(epsilon):
        return epsilon
    if epsilon < 700.0:
        amplified = math.log1p(sampling_rate * math.expm1(epsilon))
    else:  # e^eps would overflow; the logarithm is at least -231, so the two terms do not cancel
        amplified = epsilon + math.log(sampling_rate + (1.0 - sampling_rate) * math.exp(-epsilon))
    return min(math.nextafter(amplified * (1.0 + 8 * renyi.ULP), math.inf), epsilon)


def remove_epsilon(t: FloatArray, q: float) -> FloatArray:
    """log(1 + (e^t - 1) / q), lowered by its rounding error; never overflows."""
    small = np.log1p(np.expm1(np.minimum(t, 1.0)) / q)
    large = (t - math.log(q)) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(t, 1.0)))
    inner = np.where(t <= 1.0, small, large)
    with np.errstate(invalid="ignore"):
        return np.maximum(inner * (1.0 - 8 * renyi.ULP), t)


def _add_epsilon(t: FloatArray, q: float) -> tuple[FloatArray, FloatArray]:
    """log(1 - e^t (1 - q)) and log(e^t q / (1 - e^t (1 - q))); (-inf, inf) where e^t (1 - q) >= 1.

    t is lowered by a few units in its last place first: the profile decreases, so the result is an upper bound.
    """
    t = t * (1.0 - 4 * renyi.ULP)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        grown = (1.0 - q) / q * np.expm1(np.minimum(t, 700.0))
        log_left = np.where(grown < 1.0, np.log1p(-np.minimum(grown, 1.0)), -np.inf)
        return math.log(q) + log_left, np.maximum((t - log_left) * (1.0 - 4 * renyi.ULP), 0.0)


_NODES = 2500
_LOG_LAST = -600.0  # of the profile, at the last node
_LEAST = 1e-110  # nats, below the range of any event's losses
_FARTHEST = 650.0  # nats, so that e^t is a number
_GUARD = 1e-9  # relative, per unit of 1 + |log H|: more than any profile is above the truth (events.md#guard)
_ROUNDING = 1e-11  # relative, of a difference of moments
_ENTRIES = 1 << 19


def log_profile_of(event: Event, epsilons: FloatArray) -> FloatArray:
    """The log profile that counts, shape of `epsilons`: a present row against its absence, or either replaced row."""
    remove = event.log_profile(epsilons, direction=Direction.REMOVE)
    if event.symmetric() or event.adjacency is not Adjacency.REPLACE_ONE:
        return remove
    return np.maximum(remove, event.log_profile(epsilons, direction=Direction.ADD))


def log_amplified(t: FloatArray, q: float, replaced: Event, present: Event | None) -> FloatArray:
    """log of q [(1 - b) H_present(t') + b H_replaced(t')], t' = log(1 + (e^t - 1) / q), b = e^{t - t'}; shape of `t`.

    Never above q H_replaced(t). Without `present` (a row that is not drawn is another row) both profiles are that of
    `replaced`.
    """
    inner = remove_epsilon(t, q)
    value = log_profile_of(replaced, inner)
    if present is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.where(np.isfinite(t), np.minimum(t - inner, 0.0), math.log(q))
            value = np.logaddexp(renyi.log1mexp(gap) + log_profile_of(present, inner), gap + value)
        value = np.minimum(value, log_profile_of(replaced, t))
    return renyi.raise_log(math.log(q) + value, 16)


@dataclass(frozen=True, slots=True)
class Profile:
    """A log profile seen at nodes: t (n,) from 0 on, the values there, and values from below between nodes.

    Args:
        nodes: t, in nats, shape (n,).
        log_values: log H there, rounded up, shape (n,).
        log_above: log H at the middle of each cell in y = e^t, rounded down, shape (n - 1,).
        log_below: log of E_Q (v - r)+ at the middle of each cell in v = e^{-t}, rounded down, shape (n - 1,).
    """

    nodes: FloatArray
    log_values: FloatArray
    log_above: FloatArray
    log_below: FloatArray


@remembered(64)
def nodes_of(event: Event) -> FloatArray:
    """Nodes t from 0 to where the event's profile ends or is below e^-600, dense near 0; shape (n,)."""
    high = min(event.pure_epsilon(), _FARTHEST)
    if log_profile_of(event, np.array([high]))[0] < _LOG_LAST:
        low = 1e-6 * _LEAST  # bisection of the logarithm: the noise may be of any size
        for _ in range(64):
            middle = math.sqrt(low) * math.sqrt(high)
            if log_profile_of(event, np.array([middle]))[0] < _LOG_LAST:
                high = middle
            else:
                low = middle
    return np.asarray(high * np.linspace(0.0, 1.0, _NODES) ** 2)


@remembered(64)
def seen(event: Event, other: Event | None) -> Profile:
    """The event's profile at its own nodes, or at those of `other`."""
    t = nodes_of(event if other is None else other)
    gap = np.diff(t)
    above = t[:-1] + np.log1p(0.5 * np.expm1(gap))  # log of the mean of e^t
    below = t[:-1] - np.log1p(0.5 * np.expm1(-gap))  # minus the log of the mean of e^-t
    return Profile(
        t,
        log_profile_of(event, t),
        _lowered(log_profile_of(event, above)),
        _lowered(log_profile_of(event, below)) - below,
    )


def _lowered(log_values: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        lowered = log_values - _GUARD * (1.0 - log_values)
    return np.where(np.isneginf(log_values), -np.inf, lowered)


def log_moment(orders: FloatArray, q: float, replaced: Event, present: Event | None) -> FloatArray:
    """log of e^{(a-1) D_a} - 1 for the pair with the profile of a replaced row in both directions; shape (k,).

    Args:
        orders: a > 1, shape (k,).
        q: the probability that the row is in the sample, in (0, 1).
        replaced: the event of one replaced row within the sample.
        present: the event of a row's presence; None if a row that is not drawn is another row.
    """
    rows = max(1, _ENTRIES // _NODES)
    parts = [_log_moment(orders[i : i + rows], q, replaced, present) for i in range(0, orders.size, rows)]
    return np.concatenate(parts)


def _log_moment(a: FloatArray, q: float, replaced: Event, present: Event | None) -> FloatArray:
    nodes = nodes_of(replaced if present is None or _reach(replaced) >= _reach(present) else present)
    source = replaced if np.array_equal(nodes, nodes_of(replaced)) else present
    both = [seen(event, source) for event in (replaced, present) if event is not None]
    log_s = _log_sampled(nodes, q)
    share = np.exp(log_s - nodes)  # b = s / y
    values = both[0].log_values
    if present is not None:
        with np.errstate(divide="ignore"):
            values = np.logaddexp(np.log1p(-share) + both[1].log_values, np.log(share) + values)
        values = np.minimum(values, log_profile_of(replaced, np.maximum(log_s, 0.0)))  # rounding may go below 0
    values = np.minimum.accumulate(values)
    scale = np.log(a) + np.log(a - 1.0) + 2.0 * math.log(q)
    if present is None and _is_pair(replaced):
        inside = _above_one(a, q, replaced, both[0], scale)
    else:
        inside = _cells(a, nodes, log_s, values, scale)
        # beyond the last node: what the cells leave of each moment, b being at most its value there and at least q
        weights = [1.0] if present is None else [float(share[-1]), 1.0 - q]
        for event, profile, weight in zip((replaced, present), both, weights, strict=False):
            if event is not None and profile.log_values[-1] > -np.inf:
                rest = np.full(a.shape, np.inf)  # of a supremum over several pairs nothing is known there
                if _is_pair(event):
                    rest = _less(
                        _above_one(a, q, event, profile, scale), _cells_from_below(a, nodes, log_s, profile, scale)
                    )
                inside = np.logaddexp(inside, math.log(weight) + rest)
    return np.logaddexp(inside, _beneath_one(a, nodes, log_s, values, scale)) + 64.0 * renyi.ULP * (2.0 + np.log(a))


def _is_pair(event: Event) -> bool:
    """Returns whether profile and moments are those of one pair, not suprema over several."""
    match event:
        case Parallel():
            return event.probabilities is not None and all(map(_is_pair, event.events))
        case Composed():
            return all(map(_is_pair, event.events))
        case Repeated() | PoissonSampled():
            return event.symmetric() and _is_pair(event.event)
        case _:  # what is made of others in another way may be a supremum over several of their pairs
            return event.symmetric() and not base.children(event)


def _reach(event: Event) -> float:
    return float(nodes_of(event)[-1])


def _log_sampled(t: FloatArray, q: float) -> FloatArray:
    """log(1 - q + q e^t)."""
    return np.asarray(np.logaddexp(math.log1p(-q), math.log(q) + t))


def _less(log_whole: FloatArray, log_part: FloatArray) -> FloatArray:
    """log(whole - part), at least `_ROUNDING` of the whole, shape (k,)."""
    left = renyi.log1mexp(np.minimum(log_part - log_whole, -_ROUNDING))
    return log_whole + np.logaddexp(left, math.log(2.0 * _ROUNDING))


def _above_one(a: FloatArray, q: float, event: Event, profile: Profile, scale: FloatArray) -> FloatArray:
    """log of E_Q[s^a - 1 - a (s - 1); s > 1] from above: the whole moment less what lies at s < 1, shape (k,)."""
    whole = event.log_excess_moments(a, sampling_rate=q)
    t = profile.nodes
    log_s = np.logaddexp(math.log1p(-q), math.log(q) - t)
    widths = -t[:-1] + np.log(-np.expm1(-np.diff(t)))
    ends = profile.log_values - t
    part = _integral_from_below(a, log_s, widths, profile.log_below, ends)
    return _less(whole, scale + part)


def _cells(a: FloatArray, t: FloatArray, log_s: FloatArray, values: FloatArray, scale: FloatArray) -> FloatArray:
    """log of a (a-1) q^2 times the integral of s^{a-2} H dy over the cells, H by its chords; from above, shape (k,)."""
    widths = t[:-1] + np.log(np.expm1(np.diff(t)))
    heights = np.logaddexp(values[:-1], values[1:]) - math.log(2.0)
    means = _log_mean_weight(a, log_s)
    # s^{a-2} falls below order 2: then the product of two convex falling functions, by its own chord
    with np.errstate(invalid="ignore"):
        product = (a[:, None] - 2.0) * log_s[None, :] + values[None, :]
        chord = np.logaddexp(product[:, :-1], product[:, 1:]) - math.log(2.0)
    terms = widths[None, :] + np.where(a[:, None] >= 2.0, means + heights[None, :], chord)
    return scale + _log_sum(terms)


def _cells_from_below(
    a: FloatArray, t: FloatArray, log_s: FloatArray, profile: Profile, scale: FloatArray
) -> FloatArray:
    widths = t[:-1] + np.log(np.expm1(np.diff(t)))
    return scale + _integral_from_below(a, log_s, widths, profile.log_above, profile.log_values)


def _integral_from_below(
    a: FloatArray, log_s: FloatArray, log_widths: FloatArray, log_middles: FloatArray, log_ends: FloatArray
) -> FloatArray:
    """log of the integral of s^{a-2} k for a convex k, from below: mean times middle, less Gruess's bound; shape (k,).

    docs/explanation/events.md#replaced-moments.
    """
    mean = _log_mean_weight(a, log_s)
    ends = (a[:, None] - 2.0) * log_s[None, :]
    top = np.maximum(ends[:, :-1], ends[:, 1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = top + np.log(-np.expm1(-np.abs(np.diff(ends, axis=1))))
        high = np.maximum(log_ends[:-1], log_ends[1:])
        swing = high + np.log(-np.expm1(np.minimum(log_ends[:-1], log_ends[1:]) - high)) + 4.0 * _GUARD
        lost = spread + swing[None, :] - math.log(4.0) - (mean + log_middles[None, :])
        kept = np.where(lost < 0.0, mean + log_middles[None, :] + renyi.log1mexp(np.minimum(lost, 0.0)), -np.inf)
    kept = np.where(np.isnan(kept), -np.inf, kept)
    return _log_sum(log_widths[None, :] + kept) - _GUARD


def _log_mean_weight(a: FloatArray, log_s: FloatArray) -> FloatArray:
    """log of the mean of s^{a-2} over each cell in s: (s1^{a-1} - s0^{a-1}) / ((a - 1)(s1 - s0)), shape (k, n - 1)."""
    low = np.minimum(log_s[:-1], log_s[1:])[None, :]
    rise = np.maximum(np.abs(np.diff(log_s)), 1e-300)[None, :]
    power = (a - 1.0)[:, None]
    return np.asarray((power - 1.0) * low + renyi.log_expm1(power * rise) - np.log(power) - renyi.log_expm1(rise))


def _beneath_one(a: FloatArray, t: FloatArray, log_s: FloatArray, values: FloatArray, scale: FloatArray) -> FloatArray:
    """log of a (a-1) q^2 times the integral of s^{-a-1} H dy from y = 1 on, from above, shape (k,)."""
    widths = t[:-1] + np.log(np.expm1(np.diff(t)))
    product = -(a[:, None] + 1.0) * log_s[None, :] + values[None, :]
    terms = widths[None, :] + np.logaddexp(product[:, :-1], product[:, 1:]) - math.log(2.0)
    # the rest: H at the last node, and s^{-a} / (a q), q being s' = ds / dy
    log_q = 0.5 * (scale - np.log(a) - np.log(a - 1.0))
    rest = values[-1] - a * log_s[-1] - np.log(a) - log_q
    return np.asarray(scale + np.logaddexp(_log_sum(terms), rest))


def _log_sum(terms: FloatArray) -> FloatArray:
    """log of the sum of e^terms over the last axis, shape (k,)."""
    top = np.max(terms, axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = safe + np.log(np.sum(np.exp(terms - safe[:, None]), axis=1))
    return np.asarray(np.where(np.isfinite(top), total, top))
