"""What would fit, where a budget is too small for a plan."""

import inspect
import math
from collections.abc import Callable
from typing import Any, Protocol

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter, UnsupportedEvent
from ledgerwood.trainers.base.plan import too_small

_DOUBLINGS = 60
_HALVINGS = 6
_GENEROUS, _LEAST = 1e4, 1e-9
"""Nats, or times as many; and the nats from which a search for more begins."""
_ALWAYS = frozenset({"epsilon", "delta", "adjacency", "schema"})


class Suggesting(Protocol):
    """An estimator, whose parameters can be tried out without data."""

    @property
    def budget(self) -> Budget:
        """The budget that the parameters state."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters."""

    def _uncalibrated_plan(self, schema: Any) -> Any:
        """The plan of these parameters."""


def says_parameter(estimator: Suggesting, error: Exception) -> bool:
    """Returns whether an error tells the user all: it names a parameter that he set, or is not of one value at all."""
    if not isinstance(error, InvalidParameter):
        return False
    if error.parameter is None:
        return True
    return error.parameter in _named(estimator) or error.parameter in _ALWAYS


def suggestion(estimator: Suggesting, schema: Any, plan: Any, error: CalibrationFailed | InvalidParameter) -> Exception:
    """Returns the error of a plan that does not fit its budget, with values that would fit; each value was tried.

    Args:
        estimator: with such a plan.
        schema: resolved, or columns.
        plan: that plan; None where not even it could be made.
        error: why.

    Returns:
        An error of the same class: with an epsilon and a number of trees that fit; or with the one parameter without
        which the plan fits; or the error itself, also where it asks for a delta: no epsilon takes its place.
    """
    budget, named = estimator.budget, _named(estimator)
    if budget.delta == 0.0 and isinstance(error, InvalidParameter) and error.parameter == "delta":
        return error

    def fits(name: str, value: object) -> bool:
        other = type(estimator)(**{**estimator.get_params(deep=False), name: value})
        try:
            return bool(other._uncalibrated_plan(schema).has_room(other.budget))
        except (InvalidParameter, CalibrationFailed, UnsupportedEvent, AdjacencyMismatch):
            return False

    message = str(error)
    if not message.startswith("epsilon="):
        message = too_small("this plan", budget, message)
    for name, default in _defaults(estimator).items():
        # The budget itself is not to blame where the plan fits but for one parameter.
        if name in named and name not in {*_ALWAYS, "n_estimators", "preset"} and fits(name, default):
            return type(error)(f"{name}={_validate.shown(named[name])} does not fit: {message}; set {name}={default!r}")
    found = []
    # Where not even that is enough the reason is another one, and the error says it.
    if fits("epsilon", max(_GENEROUS, _GENEROUS * budget.epsilon)):
        start = Budget(epsilon=max(budget.epsilon, _LEAST), delta=budget.delta, adjacency=budget.adjacency)
        enough = enough_epsilon(lambda other: fits("epsilon", other.epsilon), start)
        if enough is not None and fits("epsilon", enough):
            found.append(f"epsilon={enough!r}")
    if "n_estimators" in _defaults(estimator):
        trees: int = named.get("n_estimators") or (0 if plan is None else plan.n_estimators)
        fewer = most_that_fits(lambda n: fits("n_estimators", n), trees) if trees else 0
        if fewer:
            found.append(f"n_estimators={fewer}")
    return type(error)(f"{message}; what would fit: {' or '.join(found)}") if found else error


def _defaults(estimator: Suggesting) -> dict[str, object]:
    parameters = inspect.signature(type(estimator)).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def _named(estimator: Suggesting) -> dict[str, Any]:
    """The parameters that are not at their defaults."""
    defaults = _defaults(estimator)
    return {name: value for name, value in estimator.get_params(deep=False).items() if value is not defaults.get(name)}


def enough_epsilon(fits: Callable[[Budget], bool], budget: Budget) -> float | None:
    """An epsilon at which the plan fits, two digits long and within 3 % of the least; None where none was found.

    Args:
        fits: whether the plan fits a budget; true of every larger epsilon too.
        budget: one that it does not fit; its delta stays.
    """

    def at(epsilon: float) -> bool:
        return fits(Budget(epsilon=epsilon, delta=budget.delta, adjacency=budget.adjacency))

    low = budget.epsilon
    high = next((e for e in (low * 2.0**k for k in range(1, _DOUBLINGS)) if at(e)), None)
    if high is None:
        return None
    low = high / 2.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return float(f"{(math.floor(high / digit) + 1) * digit:.2g}")


def most_that_fits(fits: Callable[[int], bool], too_many: int) -> int:
    """The largest whole number below `too_many` for which `fits` holds, or 0; `fits` holds of every smaller one too."""
    low, high = 0, too_many
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
