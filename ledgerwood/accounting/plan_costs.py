"""The privacy cost of a plan as a function of one value, which calibration brings to a budget.

docs/explanation/pricing.md#calibration.
"""

import contextlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.costs.losses import plans, quick
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.pricing import Price, log_delta, price
from ledgerwood.accounting.quotes import Method
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, PrivacyError, UnsupportedEvent

Excess = Callable[[float], float]

_TOLERANCE = 1e-12
_MARGIN = 1e-12  # so that the plan also fits a limit that another currency states, rounded on its own
_FAR = 60.0  # where the search's excess is cut off
_CLEAR = 20.0  # an excess within it says how far the root is
_FIRST = 2e-2  # an excess by a quick cost that is near enough
_TURNS, _STEP = 12, 5.0  # secants that lead there, and the largest step of one, in log value
_NEAR = 1e-4  # relative width to which their estimate is followed
_STRIDE = 1e-3  # relative distance at which the price is first tried around an estimated whole number
_CLOSE = 1e-5  # relative distance from their root at which the search ends
_ROUGHNESS = {True: 1e-2, False: 1e-6}  # by how much an estimate, and an exact excess, may turn back


@final
@dataclass(slots=True)
class PlanCost:
    """The plan's privacy cost at each value, less the budget: positive where the plan does not fit.

    `rough` may be an estimate; `exact` decides: the cost itself or, until another method is found to be lower, the
    composed losses alone. Both are nearly linear in the logarithm of the value, and both are remembered.

    Where compositions inside samples are composed first, so that an estimate costs as much as what it estimates, it is
    a quick cost instead, moved to meet the exact one at the start.
    """

    make_event: Callable[[float], Event]
    budget: Budget
    method: Method
    whole: bool
    low: float
    high: float
    composes: bool = False
    losses_alone: bool = True
    _seen: dict[float, float] = field(default_factory=dict)
    _priced: dict[float, float] = field(default_factory=dict)
    _quicks: dict[float, float] = field(default_factory=dict)
    _by_renyi: bool = False
    _anchor: float | None = None
    _first: tuple[float, Event] | None = None

    def event(self, value: float) -> Event:
        """The plan at a value.

        Raises:
            AdjacencyMismatch: it is stated under another relation than the budget.
            CalibrationFailed: it is another one than before: `make_event` keeps something from call to call.
        """
        return self._required(self._made(value), value)

    def _made(self, value: float) -> Event:
        return self.make_event(int(value) if self.whole else value)

    def _required(self, event: Event, value: float) -> Event:
        require_event(event)
        if event.adjacency is not self.budget.adjacency:
            raise AdjacencyMismatch(
                f"the event at {value:g} is stated under {event.adjacency.value}, the budget under "
                f"{self.budget.adjacency.value}"
            )
        if self._first is None:
            self._first = value, event
        elif value == self._first[0] and event != self._first[1]:
            raise CalibrationFailed(
                f"make_event gave two different plans for {value:g}: what it returns must follow from the value alone "
                "(an iterator that it reads is used up by its first call: make it a tuple before)"
            )
        return event

    def accepts(self, value: float) -> bool:
        return self.low <= value <= self.high and self._refusal(value) is None

    def _refusal(self, value: float) -> Exception | None:
        try:
            event = self._made(value)
        except (UnsupportedEvent, AdjacencyMismatch):
            raise
        except (ValueError, ArithmeticError) as refusal:
            return refusal
        self._required(event, value)
        return None

    def start(self) -> float:
        """The value of the domain nearest to 1 among the decades within the limits, or the limits' middle."""
        decades = sorted(range(-9, 13), key=lambda power: (abs(power), power))
        middle = math.sqrt(self.low) * math.sqrt(self.high)
        values = [min(max(10.0**power, self.low), self.high) for power in decades]
        refusals = []
        for value in (*values, math.floor(middle) if self.whole else middle):
            if self.accepts(value):
                return value
            refusals.append(self._refusal(value))
        first = refusals[0]
        if first is not None and {str(refusal) for refusal in refusals} == {str(first)}:
            raise first  # the value is not what is wrong
        hint = "" if self.whole else " (a whole number is found with integer=True)"
        raise CalibrationFailed(
            f"make_event refuses every value that was tried in {self.low:g}..{self.high:g}, the last one with: "
            f"{self._refusal(value)}{hint}"
        )

    def check(self, start: float) -> None:
        """Refuse plans that no value can make fit."""
        first, budget = self.event(start), self.budget
        if budget.delta == 0.0 and not math.isfinite(first.pure_epsilon()):
            raise CalibrationFailed(
                "delta=0.0 (unit: probability) asks for pure differential privacy, and the plan is not pure at any "
                "noise multiplier; Gaussian noise has no finite epsilon at delta 0: give delta > 0, or use "
                "Laplace noise"
            )

    def compare(self, start: float) -> float:
        """Find out which method applies to the plan, from the start that is returned: near the root, if that is known.

        Returns:
            Where a quick cost meets the budget, of a plan whose losses take long to compose; else `start` itself.
        """
        slow = not self.whole and self.method in ("tightest", "pld") and quick.composes_inside(self.event(start))
        near = self._quick_root(start) if slow else None
        start = start if near is None else near
        priced = price(self.event(start), method=self.method)
        beside = (value for value in (0.5 * start, 2.0 * start) if not self.whole or value.is_integer())
        others = (self._price(value) for value in beside if self.accepts(value))
        self.composes = any(each is not None and each.method == "pld" for each in itertools.chain((priced,), others))
        if self.composes and near is not None:
            if self._by_renyi and self._quick(start) < self.exact(start):
                self.take_the_whole_price()
            if abs(over := self.exact(start)) < _CLEAR:
                self._anchor = over - self._quick(start)
        return start

    def _quick_root(self, start: float) -> float | None:
        """A value near which the quick cost meets the budget, by secants; None if that leads nowhere."""
        with contextlib.suppress(UnsupportedEvent):
            last, value = start, 0.5 * start if self.accepts(0.5 * start) else 2.0 * start
            for _ in range(_TURNS):
                if not self.accepts(value):
                    return None
                before, over = self._quick(last), self._quick(value)
                if abs(over) < _FIRST:
                    return value
                slope = (over - before) / math.log(value / last)
                if not 0.1 < abs(slope) < 10.0 or max(abs(over), abs(before)) >= _CLEAR:
                    return None
                last, value = value, value * math.exp(min(max(-over / slope, -_STEP), _STEP))
        return None

    def _quick(self, value: float) -> float:
        """The excess of another epsilon, which needs no composition, and is remembered: by Rényi divergences, if any.

        Raises:
            UnsupportedEvent: there is none.
        """
        if value not in self._quicks:
            event, delta = self.event(value), self.budget.delta
            try:
                if quick.has_quick_losses(event):
                    epsilon = quick.quick_epsilon(event, math.log(delta))
                else:
                    epsilon = price(event, method="renyi").epsilon(delta)
                    self._by_renyi = True
            except UnsupportedEvent:
                epsilon = quick.quick_epsilon(event, math.log(delta))
            self._quicks[value] = self._ratio(epsilon, self.budget.epsilon)
        return self._quicks[value]

    @property
    def guided(self) -> bool:
        """True if a quick cost stands for the estimate."""
        return self._anchor is not None

    def take_no_guide(self) -> None:
        """Leave the quick cost, which led nowhere."""
        self._anchor = None
        self._seen.clear()

    def straddled(self) -> _search.Bracket | None:
        """The neighbours among the values with a quick cost between which `rough` changes its sign."""
        if self._anchor is None:
            return None
        tried = sorted(self._quicks)
        for one, other in itertools.pairwise(tried):
            first, second = self.rough(one) > 0.0, self.rough(other) > 0.0
            if first is not second:
                return _search.Bracket(*((one, other) if first else (other, one)), falling=first, last=other)
        return None

    def _price(self, value: float) -> Price | None:
        """The privacy cost, or None if the plan has none by this method at this value."""
        try:
            return price(self.event(value), method=self.method)
        except UnsupportedEvent:
            return None

    def rough(self, value: float) -> float:
        if value not in self._seen:
            self._seen[value] = self._estimate(value) if self.composes else self.exact(value)
        return self._seen[value]

    def exact(self, value: float) -> float:
        if value not in self._priced:
            self._priced[value] = self._over(value) if self.composes else self._over_delta(value)
        return self._priced[value]

    def _estimate(self, value: float) -> float:
        if self._anchor is not None:
            return self._quick(value) + self._anchor
        priced = self._price(value)
        if priced is None or priced.method != "pld":
            return self.exact(value)
        try:
            epsilon = plans.estimated_epsilon(plans.plan(priced.event), math.log(self.budget.delta))
        except UnsupportedEvent:
            return self.exact(value)
        return self._ratio(epsilon, self.budget.epsilon)

    def _over(self, value: float) -> float:
        """The excess of epsilon at the budget's delta."""
        try:
            epsilon = self._epsilon(price(self.event(value), method=self.method))
        except UnsupportedEvent:
            return _FAR
        over = self._ratio(epsilon, self.budget.epsilon)
        return max(over, 1e-16) if epsilon > self.budget.epsilon else min(over, 0.0)

    def _epsilon(self, priced: Price) -> float:
        if priced.method == "pld" and self.losses_alone:
            with contextlib.suppress(UnsupportedEvent):
                return plans.epsilon(plans.plan(priced.event), math.log(self.budget.delta), above=True)
        return priced.epsilon(self.budget.delta)

    def undercut(self, value: float) -> bool:
        """Returns whether at `value`, found by the losses alone, another method may have a lower privacy cost."""
        priced = self._price(value)
        if priced is None or priced.method != "pld" or not self.losses_alone:
            return False
        try:
            other = price(priced.event, method="renyi").epsilon(self.budget.delta)
        except UnsupportedEvent:
            return math.isfinite(priced.event.pure_epsilon())
        return other < self.budget.epsilon

    def take_the_whole_price(self) -> None:
        self.losses_alone = False
        self._priced.clear()

    def _over_delta(self, value: float) -> float:
        """The excess of delta at the budget's epsilon, which needs no inversion."""
        if self.budget.delta == 0.0:
            return self._ratio(self.event(value).pure_epsilon(), self.budget.epsilon)
        priced = self._price(value)
        if priced is None:
            return _FAR
        return _search.log_ratio(math.log(self.budget.delta), log_delta(priced, self.budget.epsilon))

    @staticmethod
    def _ratio(epsilon: float, limit: float) -> float:
        ratio = epsilon / limit
        return max(min(math.log(ratio), _FAR), -_FAR) if 0.0 < ratio < math.inf else math.copysign(_FAR, ratio - 1.0)

    def fits(self, value: float) -> bool:
        try:
            return price(self.event(value), method=self.method).epsilon(self.budget.delta) <= self.budget.epsilon
        except UnsupportedEvent:
            return False

    def require_monotone(self, *, falling: bool) -> None:
        """Refuse a cost that turned back among the values tried."""
        tried = sorted(self._seen.items())
        for (one, before), (other, after) in itertools.pairwise(tried):
            rise = after - before if falling else before - after
            if rise > _ROUGHNESS[self.composes] and max(before, after) > -20.0 and min(before, after) < 20.0:
                at = ", ".join(f"{self._shown(value)} at {value:g}" for value, _ in (tried[0], tried[-1]))
                raise CalibrationFailed(
                    f"the cost is not monotone: {self._shown(one)} at {one:g} and "
                    f"{self._shown(other)} at {other:g}, but {at}; give bounds=(low, high) within which it is"
                )

    def last_exact(self, misfit: float, fit: float) -> float:
        """The end of a smooth privacy cost, moved by the margin until it fits."""
        found = self._root(self.exact, misfit, fit, _TOLERANCE)[1]
        for _ in range(60):
            found = found * (1.0 + _MARGIN) if misfit < fit else found / (1.0 + _MARGIN)
            if self.fits(found):
                return found
        raise CalibrationFailed(f"the privacy cost is not monotone in the value near {found!r}")

    def last_composed(self, excess: Excess, misfit: float, fit: float) -> float:
        """The last value that fits, for composed losses: near it by `excess`, then by few of the costs themselves."""
        high = self._root(excess, misfit, fit, _NEAR if self._anchor is None else _STRIDE)[1]
        beside = 1.01 * high if self.accepts(1.01 * high) else high / 1.01
        slope = abs((excess(beside) - excess(high)) / math.log(beside / high))
        found = _search.close_fit(
            self.exact, self.accepts, high, falling=misfit < fit, slope=min(max(slope, 0.1), 10.0), close=_CLOSE
        )
        astray = found is not None and self.guided and self.exact(found) < -_STRIDE
        if found is None or astray:
            raise CalibrationFailed(
                f"no value near {high!r} fits, although the estimated privacy cost meets the budget there; raise the "
                "budget's epsilon, or add noise to the parts of the plan that do not depend on the value"
            )
        return found

    def last_whole(self, excess: Excess, misfit: float, fit: float) -> int:
        """The last whole number that fits, next to one that does not."""
        misfit, fit = _search.whole_root(excess, misfit, fit)
        step = fit - misfit  # +1 or -1
        if self.composes:
            misfit, fit = self._enclosed(misfit, fit)
            return int(fit if misfit == fit else _search.whole_root(self.exact, misfit, fit)[1])
        for _ in range(60):  # the excess above is in delta, and rounded on its own
            if not self.fits(fit):
                fit += step
            elif self.accepts(fit - step) and self.fits(fit - step):
                fit -= step
            else:
                return int(fit)
        raise CalibrationFailed(f"the privacy cost is not monotone in the value near {fit!r}")

    def _enclosed(self, misfit: float, fit: float) -> tuple[float, float]:
        """Whole numbers near an estimated pair, with the budget between their costs; equal at an end that fits."""
        step = stride = (fit - misfit) * max(1.0, math.floor(_STRIDE * fit))
        while self.exact(fit) > 0.0:
            if not self.accepts(fit + math.copysign(1.0, step)):
                raise CalibrationFailed(self.reason(_search.Bracket(fit, None, step > 0.0, fit)))
            misfit, fit, stride = fit, self._moved(fit, stride), 4.0 * stride
        stride = -step
        while self.exact(misfit) <= 0.0:
            if not self.accepts(misfit - math.copysign(1.0, step)):
                return misfit, misfit
            misfit, fit, stride = self._moved(misfit, stride), misfit, 4.0 * stride
        return misfit, fit

    def _moved(self, value: float, stride: float) -> float:
        """A whole number of the domain, at most `stride` further."""
        far = min(max(value + stride, self.low), self.high)
        return far if self.accepts(far) else _search.last_inside(self.accepts, value, far, whole=True)

    def _root(self, excess: Excess, misfit: float, fit: float, tolerance: float) -> tuple[float, float]:
        """Both sides of the root of a monotone excess, `tolerance` (relative) apart."""
        while max(misfit, fit) > 2.0 * min(misfit, fit):
            middle = math.sqrt(misfit) * math.sqrt(fit)
            misfit, fit = (middle, fit) if excess(middle) > 0.0 else (misfit, middle)
        if misfit < fit:
            return _search.root_from_above(excess, misfit, fit, tolerance=tolerance)
        low, high = _search.root_from_above(lambda x: excess(1.0 / x), 1.0 / misfit, 1.0 / fit, tolerance=tolerance)
        return 1.0 / low, 1.0 / high

    def reason(self, found: _search.Bracket) -> str:
        """Why there is no bracket."""
        limit = f"epsilon={self.budget.epsilon!r} nats at delta={self.budget.delta!r}"
        cost = f"even at {found.last:g} the plan costs"
        if found.falling is None:
            cost = f"at {found.last:g}, as at every other value that was tried, the plan costs"
        if found.fit is None:
            return f"{cost} {self._shown(found.last)}, above the budget of {limit}: the rest alone does not fit"
        return f"{cost} only {self._shown(found.last)}; no value reaches the budget {limit}"

    def _shown(self, value: float) -> str:
        try:
            epsilon = price(self.event(value), method=self.method).epsilon(self.budget.delta)
        except PrivacyError:
            return "no finite epsilon"
        return f"epsilon={epsilon!r} nats"
