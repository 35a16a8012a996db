"""The least noise multiplier whose plan fits a budget, from the private side.

docs/explanation/pricing.md#calibration.
"""

import functools
import math
from collections.abc import Callable

from ledgerwood import _validate
from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import Method, log_delta, price
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter

_LOWEST, _HIGHEST = 1e-9, 1e12
_TOLERANCE = 1e-12
_MARGIN = 1e-12  # so that the plan also fits a limit that another currency states, rounded on its own
_FAR = 60.0  # where the search's excess is cut off


def calibrate(make_event: Callable[[float], Event], budget: Budget, *, method: Method = "tightest") -> float:
    """The least noise multiplier whose event fits `budget`; the event at the returned value really fits.

    Args:
        make_event: a noise multiplier, > 0, to the whole plan; a larger multiplier must not cost more.
        budget: the limit.
        method: as in `price`.

    Returns:
        The multiplier, at most 3e-12 (relative) above the least one that fits by this method.

    Raises:
        AdjacencyMismatch: the event's adjacency is not the budget's.
        InvalidParameter: method "pld", which is not certified yet.
        CalibrationFailed: nothing in 1e-9..1e12 fits, or everything does; the message has the reason.
    """
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")

    if method == "pld":
        raise InvalidParameter("method='pld' is not certified yet, and a calibration returns what is proven to fit")

    @functools.cache
    def excess(multiplier: float) -> float:
        return _excess(make_event(multiplier), budget, method)

    def fits(multiplier: float) -> bool:
        return price(make_event(multiplier), method=method).epsilon(budget.delta) <= budget.epsilon

    first = make_event(1.0)
    if first.adjacency is not budget.adjacency:
        raise AdjacencyMismatch(
            f"the event is stated under {first.adjacency.value}, the budget under {budget.adjacency.value}"
        )
    if budget.delta == 0.0 and not math.isfinite(first.pure_epsilon()):
        raise CalibrationFailed(
            "delta=0.0 (unit: probability) asks for pure differential privacy, and the plan is not pure at any noise "
            "multiplier; Gaussian noise has no finite epsilon at delta 0: give delta > 0, or use Laplace noise"
        )
    misfit, fit = _search.bracket_outward(excess, _LOWEST, _HIGHEST)
    if misfit is None or fit is None:
        end = _HIGHEST if fit is None else _LOWEST
        raise CalibrationFailed(_reason(fit is None, make_event(end), end, budget, method))
    found = _search.root_from_above(excess, misfit, fit, tolerance=_TOLERANCE)[1] * (1.0 + _MARGIN)
    for _ in range(60):
        if fits(found):
            return found
        found *= 1.0 + _MARGIN
    raise CalibrationFailed(f"the price is not monotone in the noise multiplier near {found!r}")


def _excess(event: Event, budget: Budget, method: Method) -> float:
    """Positive where the event costs too much; smooth and roughly linear in the logarithm of the multiplier."""
    priced = price(event, method=method)
    if budget.delta == 0.0:
        ratio = event.pure_epsilon() / budget.epsilon
        return math.log(ratio) if 0.0 < ratio < math.inf else math.copysign(_FAR, ratio - 1.0)
    return _search.log_ratio(math.log(budget.delta), log_delta(priced, budget.epsilon))


def _reason(upward: bool, event: Event, multiplier: float, budget: Budget, method: Method) -> str:
    cost = price(event, method=method).epsilon(budget.delta)
    limit = f"epsilon={budget.epsilon!r} nats at delta={budget.delta!r}"
    if upward:
        return (
            f"even at noise multiplier {multiplier:g} the plan costs epsilon={cost!r}, above the budget of {limit}: "
            "its other parts do not fit"
        )
    return (
        f"even at noise multiplier {multiplier:g} the plan costs only epsilon={cost!r}; the budget {limit} never binds"
    )
