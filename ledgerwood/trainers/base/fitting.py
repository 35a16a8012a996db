"""Calibration of a plan's epsilon per tree to a budget; and suggestions if the budget is too small for the plan."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, TypeVar

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter, UnsupportedEvent
from ledgerwood.trainers.base.schema_purchase import SchemaPurchase
from ledgerwood.trainers.parts.initial_scores import InitialScore, InitialScoreKind

_DOUBLINGS = 60
_HALVINGS = 6
_GENEROUS, _LEAST = 1e4, 1e-9
"""Nats, or times as many; and the nats from which a search for more begins."""
_ALWAYS = frozenset({"epsilon", "delta", "adjacency", "schema"})


class TreesPlan(Protocol):
    """A plan with one scale, the epsilon of each of its trees: a frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __hash__(self) -> int:
        """By its values."""

    @property
    def n_estimators(self) -> int:
        """T, number of trees."""

    @property
    def trees_at_once(self) -> int:
        """By how many trees it may be made shorter."""

    @property
    def max_depth(self) -> int:
        """Levels of splits."""

    @property
    def least_tree_epsilon(self) -> float:
        """The epsilon per tree below which leaves are only noise."""

    @property
    def initial(self) -> InitialScore:
        """The initial score."""

    @property
    def initial_score(self) -> InitialScoreKind:
        """Its kind."""

    @property
    def purchase(self) -> SchemaPurchase | None:
        """What is bought of the schema first."""

    @property
    def event(self) -> Event:
        """The whole plan."""

    def prepared(self, budget: Budget) -> Self:
        """With what is drawn before the trees at its share of the budget."""

    def require_fit(self) -> None:
        """Refuse noise of the trees that cannot be drawn.

        Raises:
            InvalidParameter: it is too large for a statistic's grid.
        """


NO_GRID = "the noise would be too large for the grids that sums are released on"
"""Why a plan of Gaussian noise does not fit."""

P = TypeVar("P", bound=TreesPlan)


def fitted(plan: P, budget: Budget) -> P:
    """The plan with the largest `tree_epsilon` that fits the budget.

    Raises:
        CalibrationFailed: the budget is too small for the plan.
        AdjacencyMismatch, UnsupportedEvent, InvalidParameter: as `ledgerwood.calibrate` and `split`.
    """
    found: P = _found(plan, budget)
    return found


@functools.lru_cache(maxsize=64)  # a search of seconds, and the folds of a validation all ask for the same plan
def _found(plan: Any, budget: Budget) -> Any:
    start = plan.prepared(budget)
    if not fits_least(start, budget):
        what = f"{plan.n_estimators} trees of depth {plan.max_depth}"
        raise CalibrationFailed(too_small(what, budget, "their leaves would be nothing but noise"))
    found = _scaled(start, calibrate(lambda epsilon: _scaled(start, epsilon).event, budget))
    _require_first_fit(found)
    found.require_fit()
    return found


def fitted_without_delta(plan: P, budget: Budget) -> P:
    """The same trees under pure privacy, with epsilons summed: the plan without the budget's delta.

    A schema that is bought is left out, and a Gaussian initial score is a Laplace one.

    Raises:
        CalibrationFailed, AdjacencyMismatch, InvalidParameter: as `fitted`.
    """
    pure = Budget(epsilon=budget.epsilon, delta=0.0, adjacency=budget.adjacency)
    first = "laplace" if plan.initial_score == "moments" else plan.initial_score
    return fitted(dataclasses.replace(plan, purchase=None, initial_score=first), pure)


def _scaled(plan: P, tree_epsilon: float) -> P:
    return dataclasses.replace(plan, tree_epsilon=tree_epsilon)


def _require_first_fit(plan: TreesPlan) -> None:
    if plan.purchase is not None:
        plan.purchase.require_fit()
    plan.initial.require_fit()


def fits_least(plan: TreesPlan, budget: Budget) -> bool:
    """Returns whether a prepared plan fits the budget at the least epsilon that a tree can do anything with."""
    try:
        _require_first_fit(plan)
    except InvalidParameter:
        return False
    try:
        return price(_scaled(plan, plan.least_tree_epsilon).event).epsilon(budget.delta) <= budget.epsilon
    except (UnsupportedEvent, InvalidParameter):  # no price at this delta: `calibrate` knows why
        return True


def too_small(plan: str, budget: Budget, why: str) -> str:
    """The message of a budget that is too small for a plan."""
    return f"epsilon={budget.epsilon!r} nats at delta={budget.delta!r} is too small for {plan}: {why}"


def require_gaussian_delta(budget: Budget) -> None:
    """Refuse a budget of pure privacy for a plan of Gaussian noise.

    Raises:
        CalibrationFailed: delta is 0.
    """
    if budget.delta == 0.0:
        raise CalibrationFailed("delta=0.0 must be > 0: the noise is Gaussian (unit: probability)")


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
        which the plan fits; or the error itself.
    """
    budget, named = estimator.budget, _named(estimator)

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
    trees: int = named.get("n_estimators") or (0 if plan is None else plan.n_estimators)
    if "n_estimators" in _defaults(estimator) and trees:
        fewer = most_that_fits(lambda n: fits("n_estimators", n), trees)
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
