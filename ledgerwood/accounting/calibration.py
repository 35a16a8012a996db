"""Calibration: the parameter at which a plan just fits a budget, rounded towards more privacy.

docs/explanation/pricing.md#calibration.
"""

import math
from collections.abc import Callable
from typing import Literal, overload

from ledgerwood import _validate
from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.plan_costs import Excess, PlanCost
from ledgerwood.accounting.quotes import Method
from ledgerwood.errors import CalibrationFailed

_BOUNDS = (1e-9, 1e12)
_WHOLE_BOUNDS = (1, 2**53)


@overload
def calibrate(
    make_event: Callable[[float], Event],
    budget: Budget,
    *,
    method: Method = "tightest",
    integer: Literal[False] = False,
    bounds: tuple[float, float] | None = None,
) -> float: ...


@overload
def calibrate(
    make_event: Callable[[int], Event],
    budget: Budget,
    *,
    method: Method = "tightest",
    integer: Literal[True],
    bounds: tuple[int, int] | None = None,
) -> int: ...


def calibrate(
    make_event: Callable[[float], Event] | Callable[[int], Event],
    budget: Budget,
    *,
    method: Method = "tightest",
    integer: bool = False,
    bounds: tuple[float, float] | None = None,
) -> float:
    """Find the value at which an event just fits `budget`. The event at the returned value always fits.

    If the privacy cost falls with the value (a noise multiplier), the result is the smallest value that fits. If it
    rises (a sampling rate, a count, an epsilon per query), the result is the largest. The search detects the direction.

    Args:
        make_event: a function from a value > 0 to the whole plan, which follows from the value alone: it is called many
            times, so it must not use up an iterator. The plan's privacy cost must be monotone in the value. Values at
            which it raises ValueError or ArithmeticError (as events do outside their bounds) are outside its domain,
            which must be an interval.
        budget: the limit, under the event's adjacency.
        method: the accounting method, as in `price`.
        integer: search whole numbers only; make_event gets an int.
        bounds: the smallest and the largest value to try; (1e-9, 1e12) by default, or (1, 2**53) for whole numbers.
            If given and every value within it fits, the result is one of its ends.

    Returns:
        The value. A whole number fits and its costlier neighbour does not. A real number is within 3e-12 (relative) of
        the last one that fits by this method, or within 3e-5 if the method composes privacy losses ("pld").

    Raises:
        AdjacencyMismatch: the event's adjacency, at any value that is tried, is not the budget's.
        InvalidParameter: bounds that are not an interval above 0.
        UnsupportedEvent: the plan has no privacy cost by this method.
        CalibrationFailed: no value fits, or every value fits and no bounds were given, or the privacy cost does not
            depend on the value or is not monotone in it, or `make_event` gave two plans for one value. The message says
            which.
    """
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    low, high = _limits(bounds, whole=integer)
    cost = PlanCost(make_event, budget, method, integer, low, high)  # type: ignore[arg-type]
    start = cost.start()
    cost.check(start)
    near = cost.compare(start) if budget.delta > 0.0 else start
    try:
        return _last(cost, near, bounded=bounds is not None)
    except CalibrationFailed:
        if not cost.guided:
            raise
    cost.take_no_guide()
    return _last(cost, start, bounded=bounds is not None)


def _last(cost: PlanCost, start: float, *, bounded: bool) -> float:
    """The last value that fits, on a search from `start`."""
    integer, limits = cost.whole, (cost.low, cost.high)
    excess: Excess = cost.rough
    found = cost.straddled() or _search.bracket(excess, cost.accepts, start, limits, whole=integer)
    if _open(found) and cost.composes and (cost.exact(found.last) > 0.0) is (found.misfit is None):
        excess = cost.exact  # the estimate led astray
        found = _search.bracket(excess, cost.accepts, start, limits, whole=integer)
    if found.misfit is None or found.fit is None:
        if found.fit is not None and bounded and found.falling is not None and cost.fits(found.fit):
            return int(found.fit) if integer else found.fit
        cost.require_monotone(falling=found.falling is True)
        raise CalibrationFailed(cost.reason(found))
    cost.require_monotone(falling=found.falling is True)
    if not integer and not cost.composes:
        return cost.last_exact(found.misfit, found.fit)
    last = cost.last_whole if integer else cost.last_composed
    value = last(excess, found.misfit, found.fit)
    if cost.composes and cost.undercut(value):
        cost.take_the_whole_price()
        value = last(excess, found.misfit, found.fit)
    return value


def _open(found: _search.Bracket) -> bool:
    return found.misfit is None or found.fit is None


def _limits(bounds: tuple[float, float] | None, *, whole: bool) -> tuple[float, float]:
    if bounds is None:
        return _WHOLE_BOUNDS if whole else _BOUNDS
    if len(bounds) != 2:
        raise _validate.fail("bounds", bounds, "a pair (low, high)", "parameter")
    if whole:
        low, high = (float(_validate.count("bounds", end, "parameter")) for end in bounds)
    else:
        low, high = (_validate.positive("bounds", end, "parameter") for end in bounds)
    if not low < high <= (_WHOLE_BOUNDS[1] if whole else math.inf):
        raise _validate.fail("bounds", bounds, "a pair low < high" + (" <= 2**53" if whole else ""), "parameter")
    return low, high
