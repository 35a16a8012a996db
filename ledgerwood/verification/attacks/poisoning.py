"""Bounds for a private learner with poisoned training rows: its accuracy, and its resistance to backdoors.

A few rows, even chosen by an attacker, hardly change a private learner's outputs. So the expectation of any function of
the model with values in [0, 1], such as its accuracy on given test rows, is bounded from below for every poisoned data
set. docs/explanation/poisoning.md proves each bound, and says whom it stops (#attackers).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import chains
from ledgerwood.accounting.costs.chains import Least, Route
from ledgerwood.accounting.events import ApproximateEvent, Event, PureEvent
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.verification.attacks.scores import lower_mean

if TYPE_CHECKING:
    from ledgerwood.trainers.base.privacy import PrivacyStatement

Change = Literal["add-remove", "replace"]
"""The attacker's change of each poisoned row: add or remove it, or replace it by another row."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedAccuracy:
    """Lower bounds on the expected accuracy of a learner whose training rows are poisoned.

    Args:
        rows: numbers of poisoned rows; the following three have one value for each.
        guaranteed: a lower bound on the expected accuracy under every attack, as a fraction; holds with confidence
            1 - alpha, for all numbers of rows simultaneously.
        estimated: the same if the clean accuracy were the mean of the runs: what papers draw, and no guarantee.
        routes: the method of each bound.
        clean: mean accuracy of the runs on clean rows.
        clean_lower: lower confidence bound on its expectation.
        runs: number of fits that were averaged.
        alpha: probability that `clean_lower` is too high.
        change: the attacker's change of each row.
    """

    rows: tuple[int, ...]
    guaranteed: tuple[float, ...]
    estimated: tuple[float, ...]
    routes: tuple[Route, ...]
    clean: float
    clean_lower: float
    runs: int
    alpha: float
    change: Change


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BackdoorBound:
    """Upper bounds on the expected success rate of a backdoor that is planted by poisoned training rows.

    Args:
        rows: numbers of poisoned rows; the following three have one value for each.
        guaranteed: an upper bound on every attack's expected success rate, as a fraction; holds with confidence
            1 - alpha, for all numbers of rows simultaneously.
        estimated: the same if the clean success rate were the mean of the runs: what papers draw, and no guarantee.
        routes: the method of each bound.
        clean: mean success rate of the trigger on models of clean rows.
        clean_upper: upper confidence bound on its expectation.
        runs: number of fits that were averaged.
        alpha: probability that `clean_upper` is too low.
        change: the attacker's change of each row.
    """

    rows: tuple[int, ...]
    guaranteed: tuple[float, ...]
    estimated: tuple[float, ...]
    routes: tuple[Route, ...]
    clean: float
    clean_upper: float
    runs: int
    alpha: float
    change: Change


def least_expectation(
    claim: "Budget | Event | PrivacyStatement",
    expectation: float,
    *,
    rows: ArrayLike,
    change: Change = "add-remove",
) -> FloatArray:
    """The least expectation, after poisoning, of a function of the model with values in [0, 1]; of the shape of `rows`.

    Rounded down. For a pure claim, an (epsilon, delta) and a Gaussian pair no larger bound holds for all learners that
    keep the claim.

    Args:
        claim: the learner's guarantee: a budget, a fitted model's `privacy_`, or an event. The whole event of a plan,
            `plan_.event`, gives the best bound. For the `privacy_` of a model that was fitted with test randomness
            the bound is 0, except for 0 rows. Do not use the plan's event for this model.
        expectation: the expectation of the function on clean rows, in [0, 1].
        rows: numbers of poisoned rows (privacy units), 0 to 10^6, half of that where a row counts twice.
        change: "add-remove" for rows that are added or removed, "replace" for rows that are replaced. A replaced row
            counts twice where one row may be added or removed.

    Raises:
        InvalidParameter: a value outside its bound, or a claim whose privacy cost is an estimate.
        AdjacencyMismatch: added or removed rows under a claim about replaced or nulled rows.

    Source: docs/explanation/poisoning.md#least-expectation.
    """
    counts = _rows(rows)
    found = _least(claim, _fraction("expectation", expectation), counts.ravel(), change)
    return np.array([least.value for least in found]).reshape(counts.shape)


def guaranteed_accuracy(
    accuracies: ArrayLike,
    claim: "Budget | Event | PrivacyStatement",
    *,
    rows: ArrayLike,
    alpha: float = 0.05,
    change: Change = "add-remove",
) -> GuaranteedAccuracy:
    """Bound the expected accuracy from below, for any choice of the poisoned rows.

    Args:
        accuracies: the accuracies of independent fits to the clean rows, each of fresh noise (and, if so, of a fresh
            independent split), as fractions in [0, 1], shape (runs,). Folds that share rows are not independent: for
            them only `estimated` has a meaning. Their number was not chosen by looking at them.
        claim, rows, change: as in `least_expectation`; `rows` a number or shape (k,). Test randomness guarantees 0.
        alpha: probability, over the fits, that the guarantee is too high; in (0, 1).

    Raises:
        InvalidParameter, AdjacencyMismatch: as `least_expectation`.

    Source: docs/explanation/poisoning.md#accuracy; above Vos et al. 2023, Corollary 2, everywhere.
    """
    values, counts = _fractions("accuracies", accuracies), np.atleast_1d(_rows(rows)).ravel()
    level = _level(alpha)
    clean, lower = _mean_down(values), lower_mean(values, level)
    sure = _least(claim, lower, counts, change)
    return GuaranteedAccuracy(
        rows=tuple(counts.tolist()),
        guaranteed=tuple(least.value for least in sure),
        estimated=tuple(least.value for least in _least(claim, clean, counts, change)),
        routes=tuple(least.route for least in sure),
        clean=clean,
        clean_lower=lower,
        runs=len(values),
        alpha=level,
        change=change,
    )


def backdoor_bound(
    success_rates: ArrayLike,
    claim: "Budget | Event | PrivacyStatement",
    *,
    rows: ArrayLike,
    alpha: float = 0.05,
    change: Change = "add-remove",
) -> BackdoorBound:
    """Bound the expected success rate of a backdoor from above, for any choice of the poisoned rows.

    Args:
        success_rates: the success rates of the trigger on independent models of the *clean* rows, as fractions in [0,
            1], shape (runs,): how often a test row with the trigger gets the attacker's label. Otherwise as in
            `guaranteed_accuracy`.
        claim, rows, change: as in `least_expectation`; `rows` a number or shape (k,). Test randomness: 1.
        alpha: probability, over the fits, that the bound is too low; in (0, 1).

    Raises:
        InvalidParameter, AdjacencyMismatch: as `least_expectation`.

    Source: docs/explanation/poisoning.md#backdoors; below Vos et al. 2023, Corollary 3, everywhere.
    """
    rates, counts = _fractions("success_rates", success_rates), np.atleast_1d(_rows(rows)).ravel()
    level = _level(alpha)
    resisted = np.where(rates == 0.0, 1.0, np.nextafter(1.0 - rates, 0.0))
    clean, lower = _mean_down(resisted), lower_mean(resisted, level)
    sure = _least(claim, lower, counts, change)
    return BackdoorBound(
        rows=tuple(counts.tolist()),
        guaranteed=tuple(_rest_up(least.value) for least in sure),
        estimated=tuple(_rest_up(least.value) for least in _least(claim, clean, counts, change)),
        routes=tuple(least.route for least in sure),
        clean=_rest_up(clean),
        clean_upper=_rest_up(lower),
        runs=len(rates),
        alpha=level,
        change=change,
    )


def _least(
    claim: "Budget | Event | PrivacyStatement", expectation: float, counts: NDArray[np.int64], change: Change
) -> list[Least]:
    event, adjacency = _event(claim)
    steps = counts * _steps_a_row(adjacency, change)
    if steps.size and int(steps.max()) > chains.MOST_STEPS:
        raise InvalidParameter(
            f"rows={int(counts.max())!r} is too many: at most {chains.MOST_STEPS} neighbouring steps, and a row that "
            f"is changed by {change!r} takes {_steps_a_row(adjacency, change)} (unit: rows)"
        )
    if event == "everything":
        return [Least(expectation if count == 0 else 0.0, "clean" if count == 0 else "stated") for count in counts]
    if event == "nothing":
        return [Least(expectation, "clean") for _ in counts]
    return chains.least_expectations(event, expectation, steps)


def _event(claim: object) -> tuple[Event | Literal["everything", "nothing"], Adjacency]:
    """A claim as an event, or whether it reveals everything or nothing; and its adjacency."""
    match claim:
        case Event():
            return claim, claim.adjacency
        case Budget():
            return _stated(claim.epsilon, claim.delta, claim.adjacency), claim.adjacency
    from ledgerwood.trainers.base.privacy import PrivacyStatement  # the only claim that needs the trainers

    if not isinstance(claim, PrivacyStatement):
        raise InvalidParameter(
            f"claim={claim!r} must be a Budget, an event, or the privacy_ of a fitted model (unit: claim)"
        )
    if claim.randomness == "test" or math.isinf(claim.epsilon):
        return "everything", claim.adjacency
    if not claim.certified:
        raise InvalidParameter(
            f"claim={claim!r} has an estimated privacy cost (method {claim.method!r}), which proves nothing; give "
            "the plan's event, or use a certified method"
        )
    return _stated(claim.epsilon, claim.delta, claim.adjacency), claim.adjacency


def _stated(epsilon: float, delta: float, adjacency: Adjacency) -> Event | Literal["nothing"]:
    if epsilon == 0.0 and delta == 0.0:
        return "nothing"
    epsilon = max(epsilon, 1e-100)  # the least that an event knows
    if delta == 0.0:
        return PureEvent(epsilon=epsilon, adjacency=adjacency)
    return ApproximateEvent(epsilon=epsilon, delta=delta, adjacency=adjacency)


def _steps_a_row(adjacency: Adjacency, change: str) -> int:
    """How many neighbouring steps one row is."""
    if change not in get_args(Change):
        raise _validate.fail("change", change, f"one of {', '.join(map(repr, get_args(Change)))}", "name")
    match adjacency, change:
        case (Adjacency.ADD_REMOVE, "add-remove") | (Adjacency.REPLACE_ONE, "replace"):
            return 1
        case (Adjacency.ADD_REMOVE | Adjacency.ZERO_OUT, "replace"):
            return 2
    raise AdjacencyMismatch(
        f"a claim under {adjacency.value} does not cover added or removed rows, which change the number of rows; "
        "ask for change='replace', or state the claim under add-remove"
    )


def _rows(rows: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(rows)
    if given.dtype.kind not in "iu" or (given < 0).any() or (given > chains.MOST_STEPS).any():
        raise _validate.fail("rows", rows, f"whole numbers in 0..{chains.MOST_STEPS}", "poisoned rows")
    return given.astype(np.int64)


def _fraction(name: str, value: object) -> float:
    number = _validate.non_negative(name, value, "fraction")
    if number > 1.0:
        raise _validate.fail(name, value, "in [0, 1]", "fraction")
    return number


def _fractions(name: str, values: ArrayLike | Sequence[float]) -> FloatArray:
    given = np.asarray(values)
    if given.dtype.kind not in "iuf" or given.ndim != 1 or not given.size:
        raise _validate.fail(name, values, "numbers of shape (runs,), runs >= 1", "fraction")
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise _validate.fail(name, values, "all in [0, 1]", "fraction")
    return given.astype(np.float64)


def _level(alpha: float) -> float:
    level = _validate.positive("alpha", alpha, "probability")
    if level >= 1.0:
        raise _validate.fail("alpha", alpha, "in (0, 1)", "probability")
    return level


def _mean_down(values: FloatArray) -> float:
    """The mean, rounded down, except for the numbers 0 and 1."""
    mean = math.fsum(values) / len(values)
    return mean if mean in (0.0, 1.0) and float(values.min()) == mean else math.nextafter(min(mean, 1.0), 0.0)


def _rest_up(value: float) -> float:
    """1 - value, rounded up."""
    rest = 1.0 - value
    return rest if value >= 0.5 or value == 0.0 else math.nextafter(rest, 2.0)
