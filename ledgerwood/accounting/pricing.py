"""The privacy cost of an event: its (epsilon, delta) curve, rounded up, with the method that certifies it.

docs/explanation/pricing.md derives each method and its rounding.
"""

import contextlib
import math
from dataclasses import dataclass
from typing import assert_never, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs import conversion, crowds, gdp, renyi
from ledgerwood.accounting.costs.losses import attained, plans
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import ReplaceOneSampled
from ledgerwood.accounting.explaining import explain
from ledgerwood.accounting.quotes import Curve, Method, Quote, Route, short
from ledgerwood.errors import InvalidParameter, PrivacyError, UnsupportedEvent
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.pages.values import Fact

_LARGEST = 1e300
_SLACK = 1e-11  # relative room, on log delta, by which a lower end stays below an upward-rounded profile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price(ShowsItself):
    """The (epsilon, delta) curve of `event` by `method`; made by `price`."""

    event: Event
    method: Curve
    certified: bool

    def epsilon(self, delta: float) -> float:
        """The smallest proven epsilon at `delta` in [0, 1), in nats; rounded up, >= 0, never above the pure sum.

        Raises:
            InvalidParameter: delta outside [0, 1), or 0 if no finite epsilon exists.
            UnsupportedEvent: the method has no finite answer.
        """
        return self.quote(delta).epsilon

    def delta(self, epsilon: float) -> float:
        """The smallest proven delta at `epsilon` >= 0 (nats); rounded up, in [0, 1], positive where the truth is.

        Raises:
            InvalidParameter: epsilon negative or not finite.
        """
        epsilon = _validate.non_negative("epsilon", epsilon, "nats")
        if epsilon >= self.event.pure_epsilon():
            return 0.0
        return conversion.exp_up(max(log_delta(self, epsilon), -_LARGEST))  # where the truth is positive, so is this

    def log_deltas(self, epsilons: ArrayLike) -> FloatArray:
        """log delta at each epsilon (nats, finite, >= 0), shape (k,), rounded up; faster than many calls of `delta`.

        Raises:
            InvalidParameter: an epsilon negative or not finite.
        """
        epsilons = renyi.check_epsilons(epsilons)
        if np.isinf(epsilons).any():  # where an event reveals everything with some probability, delta is not 0 there
            raise _validate.fail("epsilons", math.inf, "finite", "nats")
        pure = self.event.pure_epsilon()
        if self.method in ("profile", "gdp"):
            return np.where(epsilons >= pure, -np.inf, np.minimum(_log_profile(self, epsilons), 0.0))
        if self.method == "pld":
            with contextlib.suppress(UnsupportedEvent):
                values = plans.log_deltas(plans.plan(self.event), epsilons)
                return np.where(epsilons >= pure, -np.inf, values)
        return np.array([log_delta(self, float(epsilon)) for epsilon in epsilons])

    def quote(self, delta: float) -> Quote:
        """The privacy cost at `delta`, with its method and order; errors as in `epsilon`."""
        delta = _probability(delta)
        pure = self.event.pure_epsilon()
        if delta == 0.0:
            if not math.isfinite(pure):
                raise InvalidParameter(
                    f"delta={delta!r} must be > 0 (unit: probability): the event is not purely private; "
                    f"Gaussian noise, for one, has no finite epsilon at delta 0: {short(self.event)}"
                )
            return self._quoted(pure, delta, "pure", None)
        match self.method:
            case "pure":
                return self._quoted(conversion.pure_epsilon_at(pure, delta), delta, "pure", None)
            case "renyi":
                return self._renyi_quote(delta, pure)
            case "pld":
                return self._losses_quote(delta, pure)
            case "profile" | "gdp":
                return self._quoted(self._invert(math.log(delta), pure)[1], delta, self.method, None)
            case _:
                assert_never(self.method)

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        """(lower, upper) around the epsilon, in nats, of the event's *dominating pair* at `delta`.

        The lower end bounds the dominating pair, not the mechanism: a mechanism may be better than its pair.
        It is the exact profile rounded down, or the composed losses from below (pld.md#below). For composed losses the
        lattice is refined here until both ends are near, so that the upper end may be below `epsilon`. Of bounded
        ranges and of replaced rows in a secret sample, whose profiles bound many pairs, it is that of one pair each
        (pld.md#attained). Where neither exists, the lower end is the largest exact epsilon of any one draw; 0 for a
        `ReplaceOneSampled` of which no pair is known. Both ends are proven.
        """
        upper = self.epsilon(delta)
        if delta == 0.0:
            return upper, upper
        lower = 0.0
        if self.method == "pld":
            with contextlib.suppress(UnsupportedEvent):
                low, high = plans.interval(plans.plan(self.event), math.log(delta))
                # Above the price it bounds a profile that is the supremum of several pairs', above that of any of them.
                upper, lower = min(upper, high), low if low <= min(upper, high) else 0.0
        if not (_has_profile(self.event) and _of_one_pair(self.event)):
            lower = max(lower, min(_of_real_pairs(self.event, math.log(delta)), upper))
        parts = [self.event] if _has_profile(self.event) else crowds.some_draws(self.event)
        strict = math.log(delta) + _SLACK * (1.0 - math.log(delta))
        for part in parts if lower == 0.0 else []:
            if strict < 0.0 and _has_profile(part) and _of_one_pair(part):
                exact = Price(event=part, method="profile", certified=True)
                lower = max(lower, exact._invert(strict, part.pure_epsilon())[0])
        return min(lower, upper), upper

    def explain(self, delta: float | None = None) -> str:
        """Explain the event, the method and the result in words; with a `delta`, also epsilon and its error budget.

        Raises:
            InvalidParameter, UnsupportedEvent: as `epsilon`, for a delta that is given.
        """
        return explain(self, delta)

    def _card(self) -> Card:
        """Epsilon at two usual deltas, where there is one."""
        facts: list[tuple[str, Fact]] = [
            ("event", short(self.event)),
            ("adjacency", self.event.adjacency.value),
            ("method", self.method if self.certified else f"{self.method}, not certified"),
        ]
        for delta in (1e-5, 1e-8):
            with contextlib.suppress(InvalidParameter, UnsupportedEvent):
                facts.append((f"epsilon at delta {delta:g}", self.epsilon(delta)))
        if math.isfinite(pure := self.event.pure_epsilon()):
            facts.append(("pure epsilon", pure))
        return Card(title="Privacy cost (nats, proven upper bounds)", facts=tuple(facts))

    def _quoted(self, epsilon: float, delta: float, method: Route, order: float | None) -> Quote:
        return Quote(epsilon=epsilon, delta=delta, method=method, order=order, certified=self.certified)

    def _renyi_quote(self, delta: float, pure: float) -> Quote:
        target = math.log(delta)
        best, least = crowds.least_over_orders(
            self.event, lambda orders, curve: conversion.renyi_epsilons(orders, curve, target)
        )
        if target >= conversion.log_total_variation(least):
            return self._quoted(0.0, delta, "renyi", conversion.LEAST_ORDER)
        routes: list[tuple[float, Route, float | None]] = [(max(best.value, 0.0), "renyi", best.order)]
        if math.isfinite(pure):
            routes.append((conversion.pure_epsilon_at(pure, delta), "pure", None))
        if (whole := _unsampled(self.event)) is not None:
            with contextlib.suppress(UnsupportedEvent):  # above 1e12 nats
                routes.append((whole._invert(target, pure)[1], "unsampled", None))
        epsilon, method, order = min(routes, key=lambda route: route[0])
        return self._quoted(epsilon, delta, method, order)

    def _losses_quote(self, delta: float, pure: float) -> Quote:
        """The composed losses, or whichever of the other certified privacy costs is lower; those win a tie."""
        quotes, refusals = [], []
        try:
            plan = plans.plan(self.event)
            found = plans.epsilon(plan, math.log(delta), above=True)
        except UnsupportedEvent as error:
            refusals.append(error)
        else:
            quotes.append(self._quoted(found, delta, "pld", None))
        try:
            quotes.insert(0, self._renyi_quote(delta, pure))
        except UnsupportedEvent as error:
            refusals.append(error)
        if math.isfinite(pure):
            quotes.insert(0, self._quoted(conversion.pure_epsilon_at(pure, delta), delta, "pure", None))
        best = min(quotes, key=lambda quote: quote.epsilon, default=None)
        if best is None or not math.isfinite(best.epsilon):
            infinite = "a loss is infinite more often than that"  # whatever else has no answer then has it for this
            reasons = infinite if quotes else "; ".join(str(error) for error in refusals)
            raise UnsupportedEvent(f"no finite epsilon was found at delta={delta!r}: {reasons}")
        return best

    def _invert(self, target: float, pure: float) -> tuple[float, float]:
        """The neighbours of the epsilon at which the log profile falls to `target`."""
        bracket = _search.least_fitting(lambda epsilons: _log_profile(self, epsilons) <= target, pure)
        if bracket is None:
            raise UnsupportedEvent(
                f"no epsilon up to 1e12 nats reaches delta={math.exp(target):.6g} (unit: probability): "
                f"{short(self.event)}"
            )
        return bracket


def price(event: Event, *, method: Method = "tightest") -> Price:
    """Compute the privacy cost of an event: a curve that gives epsilon at a delta, or delta at an epsilon.

    Args:
        event: the release, or the whole plan of releases.
        method: how to compute the bound.

            * "tightest" (the default): "profile" if it exists, else "pld", else the smaller of "renyi" and "pure".
              No other method is lower, except by the width of a "pld" lattice.
            * "profile": inverts the event's exact privacy profile.
            * "pld": composes the privacy loss distributions of the draws, or takes "renyi" or "pure" where one of
              them is lower. Above 64 kinds of draw, similar kinds are grouped and rounded up: the bound is still
              proven, and slightly larger (docs/explanation/pricing.md#tightest).
            * "renyi": converts the exact Renyi divergences at the best real order.
            * "gdp": uses the event's mu (Gaussian DP).
            * "pure": uses the event's pure epsilon.

    Raises:
        InvalidParameter: not an event, or not one of these methods.
        UnsupportedEvent: this method cannot bound the event.
    """
    require_event(event)
    if method not in get_args(Method):
        raise _validate.fail("method", method, f"one of {', '.join(get_args(Method))}", "name")
    route = _tightest(event) if method == "tightest" else method
    if route == "profile":
        event.log_profile(np.zeros(1), direction=Direction.REMOVE)
    elif route == "renyi":
        crowds.require_renyi(event)
    elif route == "gdp":
        event.mu()
    elif route == "pld":
        plans.plan(event)
    elif not math.isfinite(event.pure_epsilon()):
        raise UnsupportedEvent(f"the event has no finite pure epsilon: {short(event)}")
    return Price(event=event, method=route, certified=True)


def log_delta(priced: Price, epsilon: float) -> float:
    """log delta at `epsilon` (nats, >= 0), rounded up; -inf from the pure epsilon on."""
    event, pure = priced.event, priced.event.pure_epsilon()
    if epsilon >= pure:
        return -math.inf
    match priced.method:
        case "pure":
            return conversion.pure_log_delta(pure, epsilon)
        case "renyi":
            best, least = crowds.least_over_orders(
                event, lambda orders, curve: conversion.renyi_log_deltas(orders, curve, epsilon)
            )
            cap = conversion.pure_log_delta(pure, epsilon) if math.isfinite(pure) else 0.0
            if (whole := _unsampled(event)) is not None:
                cap = min(cap, log_delta(whole, epsilon))
            return min(best.value, conversion.log_total_variation(least), cap, 0.0)
        case "pld":
            values = [conversion.pure_log_delta(pure, epsilon)] if math.isfinite(pure) else [0.0]
            plan = plans.plan(event)
            with contextlib.suppress(UnsupportedEvent):
                values.append(plans.log_delta(plan, epsilon, above=True))
            with contextlib.suppress(UnsupportedEvent):
                values.append(log_delta(Price(event=event, method="renyi", certified=True), epsilon))
            return min(*values, 0.0)
        case "profile" | "gdp":
            return min(float(_log_profile(priced, np.array([epsilon]))[0]), 0.0)
        case _:
            assert_never(priced.method)


def _log_profile(priced: Price, epsilons: FloatArray) -> FloatArray:
    """The larger direction of the log profile, shape (k,)."""
    if priced.method == "gdp":
        return gdp.log_delta(priced.event.mu(), epsilons)
    values = np.maximum(
        priced.event.log_profile(epsilons, direction=Direction.REMOVE),
        priced.event.log_profile(epsilons, direction=Direction.ADD),
    )
    if np.isnan(values).any():
        raise PrivacyError(f"the log profile of {short(priced.event)} is not a number")
    return values


def _tightest(event: Event) -> Curve:
    if _has_profile(event):
        return "profile"
    try:
        plans.plan(event)
    except UnsupportedEvent:
        pass
    else:
        return "pld"
    try:
        crowds.require_renyi(event)
    except UnsupportedEvent:
        if math.isfinite(event.pure_epsilon()):
            return "pure"
        raise
    return "renyi"


def _unsampled(event: Event) -> Price | None:
    """The exact privacy cost of the plan with every unit in every sample, where there is one."""
    whole = event.unsampled()
    return Price(event=whole, method="profile", certified=True) if whole != event and _has_profile(whole) else None


def _has_profile(event: Event) -> bool:
    """Returns whether the event's profile is known, and not only bounded from both sides."""
    with contextlib.suppress(UnsupportedEvent):  # of a class from outside, which has a profile if it says so
        if base.holds(event, RandomAllocation):
            return False
    try:
        event.log_profile(np.zeros(1), direction=Direction.REMOVE)
    except UnsupportedEvent:
        return False
    return True


def _of_real_pairs(event: Event, log_delta: float) -> float:
    """An epsilon that the event costs at least, by a pair of each bounded range and of each replaced row's sample.

    0 where none is known. Of bounded ranges several pairs are tried.
    """
    best = 0.0
    with contextlib.suppress(UnsupportedEvent):
        ranges = base.holds(event, BoundedRangeEvent)
        if ranges or base.holds(event, ReplaceOneSampled):
            for share in attained.SHARES if ranges else attained.SHARES[:1]:
                found = plans.plan(attained.with_pairs(event, share))
                best = max(best, plans.epsilon(found, log_delta, above=False))
    return best


def _of_one_pair(event: Event) -> bool:
    """Returns whether the event's profile is that of a pair, and no bound on several."""
    try:
        return not base.holds(event, ReplaceOneSampled)
    except UnsupportedEvent:  # nobody knows
        return False


def _probability(delta: float) -> float:
    value = _validate.non_negative("delta", delta, "probability")
    if value >= 1.0:
        raise _validate.fail("delta", delta, "in [0, 1)", "probability")
    return value
