"""Consistency of a stated replace-one event with the stated event of a row's presence.

Replacing a row removes one and adds another, so the replaced row's profile is bounded by the two presences' profiles,
at every threshold: docs/explanation/events.md#two-presences has the exact condition, and why it is exact.
"""

import contextlib
import math
from itertools import starmap

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import tree
from ledgerwood.accounting.events.base import Derived, Event, FloatArray, ReplacedRowSample, remembered
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.group import grouped
from ledgerwood.accounting.events.sampled import replaced
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import PrivacyError, UnsupportedEvent

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
        present: what the presence of a row costs, under add-remove or zero-out.
    """
    if any(isinstance(part, Derived) for root in (event, present) for part in tree.walk(root)):
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
    reach = float(replaced.nodes_of(event)[-1])
    thresholds: FloatArray = np.asarray(reach * _THRESHOLDS, np.float64)
    stated = replaced.log_profile_of(event, thresholds)
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
    """The log profile of the presence's own group of two, as the library states it; -inf where it states none."""
    try:
        return grouped(present, size=2).log_profile(thresholds, direction=Direction.REMOVE)
    except PrivacyError:
        return np.full(thresholds.shape, -np.inf)


def two_presences(present: Event, thresholds: FloatArray, reach: float) -> FloatArray:
    """log of the least of h(s) + e^s g(t - s) over all real s, at each threshold t >= 0 (k,); from above.

    h and g are the profiles of removing and adding a row, at negative arguments too. The sum is convex in e^s.

    Args:
        present: what the presence of a row costs.
        thresholds: t, in nats, shape (k,).
        reach: of the losses that matter, in nats.

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
        return "neither its profile nor its Renyi divergences are known, so that nothing shows that it can be"
    with np.errstate(invalid="ignore"):
        excess = np.where(stated > allowed * (1.0 + _SLACK), stated - allowed, -np.inf)
    place = int(np.argmax(excess))
    if not excess[place] > 0.0:
        return None
    return (
        f"its Renyi divergence of order {_ORDERS[place]:g} is {stated[place]:.6g}, "
        f"two presences have at most {allowed[place]:.6g} (unit: nats)"
    )
