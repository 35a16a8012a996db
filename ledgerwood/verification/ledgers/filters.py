"""A second implementation of the filters, in mpmath, and the verdict on a grant: confirmed, unconfirmed or refuted.

A charge has two amounts that add up: its main one (epsilon, its square, mu squared, rho, a divergence) and its delta;
docs/explanation/ledger.md#filters. The verdict compares a charge with the verifier's own bounds on its cost;
docs/explanation/ledger.md#verification-verdicts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import least_between, mp, mpf
from ledgerwood.verification.ledgers.bounds.divergences import (
    CostBounds,
    Untaken,
    conversion,
    converted_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    renyi_bounds,
    rho_bounds,
)
from ledgerwood.verification.ledgers.bounds.events import doubt
from ledgerwood.verification.ledgers.bounds.points import point_bounds, pure_bound
from ledgerwood.verification.ledgers.effort import TooMuchWork, counted

SLACK = 1e-9
"""Relative room for a recorded number below the verifier's own lower bound."""

Amounts = tuple[Fraction, Fraction]

ORDERS = (1 + 1e-6, 1 + 1e6)
"""Where divergences are looked at: nearer to 1 no float holds them, and the library itself uses no others."""
_PARAMETER = {"renyi": "order", "whitehouse": "delta_prime"}
_PLAIN = ("basic", "gdp", "zcdp")
_ORDERS = 96
_NEAR_CEILING = Fraction(1, 10**9)  # relative: below it a total is looked at alone


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """A filter as a ledger states it: its name, and the parameter of those that have one."""

    name: str
    parameter: float = math.nan

    def amounts(self, charge: dict[str, Any]) -> Amounts:
        """The amounts that one charge adds."""
        delta = Fraction(charge.get("delta", 0.0))
        match self.name:
            case "basic":
                return Fraction(charge["epsilon"]), delta
            case "whitehouse":
                return Fraction(charge["epsilon"]) ** 2, delta
            case "gdp":
                return Fraction(charge["mu"]) ** 2, delta
            case "zcdp":
                return Fraction(charge["rho"]), delta
        return Fraction(charge["divergence"]), delta

    def counted(self, charge: dict[str, Any], upper: float) -> Amounts | None:
        """The amount of a charge, counted as the larger of itself and the verifier's bound; None for infinity."""
        if math.isinf(upper):
            return None
        main = {"basic": "epsilon", "whitehouse": "epsilon", "gdp": "mu", "zcdp": "rho", "renyi": "divergence"}[
            self.name
        ]
        return self.amounts({**charge, main: max(charge[main], upper)})

    def opens(self, delta: float) -> bool:
        """Returns whether a budget of this delta can have the filter at all."""
        if self.name == "whitehouse":
            return self.parameter <= delta
        return self.name == "basic" or delta > 0

    def fits(self, total: Amounts, epsilon: Fraction, delta: Fraction) -> bool:
        """Returns whether a total is within (epsilon, delta); with `SLACK` if a limit is not a rational number."""
        main, deltas = total
        if self.name == "basic":
            return main <= epsilon and deltas <= delta
        if self.name == "whitehouse" and deltas + Fraction(self.parameter) > delta:
            return False
        if main == 0:
            return True
        with _digits():
            small = _number(main) * (1 - mpf(SLACK)) ** 2
            match self.name:
                case "whitehouse":
                    return bool(_advanced(small, mpf(self.parameter)) <= _number(epsilon))
                case "gdp":
                    mu = mp.sqrt(small)
                    return bool(gaussian_delta(mu, _number(epsilon) / mu - mu / 2) <= _number(delta))
            return bool(self._converted(small, _number(delta)) <= _number(epsilon))

    def added_up(self, total: Amounts, delta: float) -> tuple[float, float]:
        """The total's epsilon and delta, rounded up; `delta` is the budget's."""
        main, deltas = total
        if self.name == "basic":
            return _up(main), _up(deltas)
        if self.name == "whitehouse":
            with _digits():
                epsilon = _above(_advanced(_number(main), mpf(self.parameter)))
            return epsilon, _up(deltas + Fraction(self.parameter))
        if main == 0:
            return 0.0, delta
        with _digits():
            if self.name == "gdp":
                return _above(gaussian_epsilon(_number(main), mpf(delta))), delta
            return _above(max(self._converted(_number(main), mpf(delta)), mpf(0))), delta

    def _converted(self, main: Any, delta: Any) -> Any:
        """Epsilon of a divergence at its order, or of a rho at its best order."""
        if self.name == "renyi":
            return conversion(main, mpf(self.parameter), delta)
        return _least(lambda log: conversion(main * (1 + mp.exp(log)), 1 + mp.exp(log), delta))


@final
@dataclass(slots=True)
class Ceiling:
    """Totals that are held against one limit, again and again: a few are computed, the others lie below one that fits.

    A filter's condition falls with the total, so whatever is below a total that fits does, too. Each total that is
    above the largest one known to fit is looked at together with a larger one, towards the least that is known not to:
    a million totals take some hundred looks (docs/explanation/ledger.md#verification-linear).

    Args:
        rule: the filter.
        epsilon: nats, of the limit.
        delta: probability, of the limit.
    """

    rule: Rule
    epsilon: Fraction
    delta: Fraction
    _fits: Fraction = Fraction()
    _exceeds: Fraction | None = None

    def holds(self, total: Amounts) -> bool:
        """Returns whether the total is within the limit: what `Rule.fits` says of it."""
        main, deltas = total
        if self.rule.name == "basic":
            return self.rule.fits(total, self.epsilon, self.delta)
        if self.rule.name == "whitehouse" and deltas + Fraction(self.rule.parameter) > self.delta:
            return False
        if main <= self._fits:
            return True
        if self._exceeds is not None and main >= self._exceeds:
            return False
        if self._exceeds is None or self._exceeds - main > main * _NEAR_CEILING:
            probe = 2 * main if self._exceeds is None else (main + self._exceeds) / 2
            if self._alone(probe):
                self._fits = probe
                return True
            self._exceeds = probe
        found = self._alone(main)
        if found:
            self._fits = main
        else:
            self._exceeds = main
        return found

    def _alone(self, main: Fraction) -> bool:
        return self.rule.fits((main, Fraction()), self.epsilon, self.delta)


def rule(record: Any) -> Rule:
    """The filter that an opening states.

    Raises:
        ValueError: an unknown name, or parameters that it does not have.
    """
    if isinstance(record, str) and record in _PLAIN:
        return Rule(record)
    if isinstance(record, dict):
        key = _PARAMETER.get(record.get("name", ""))
        if key is not None and set(record) == {"name", key} and isinstance(record[key], float):
            value = record[key]
            if (ORDERS[0] <= value <= ORDERS[1]) if key == "order" else (0 < value < 1):
                return Rule(record["name"], value)
    raise ValueError(f"unknown filter {record!r}")


def _advanced(squares: Any, delta: Any) -> Any:
    """The epsilon of a sum of squares at the delta that pays for adding up."""
    return squares / 2 + mp.sqrt(-2 * squares * mp.log(delta))


def _least(function: Callable[[Any], Any]) -> Any:
    """The least value over log(order - 1): the best of a grid over twelve decades, then golden sections."""
    step = mp.log(mpf(10)) * 12 / _ORDERS
    grid = [mp.log(mpf(10)) * -6 + step * index for index in range(_ORDERS + 1)]
    best = min(grid, key=function)
    return least_between(function, best - step, best + step, 70)


def _digits() -> Any:
    return mp.workdps(60)  # sums of terms of one sign: relative digits are enough for any delta


def _number(value: Fraction) -> Any:
    return mpf(value.numerator) / mpf(value.denominator)


def _above(value: Any) -> float:
    return math.nextafter(float(value), math.inf) if value > 0 else 0.0


def _up(value: Fraction) -> float:
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


Verdict = Literal["refuted", "unconfirmed", "trusted", "confirmed"]
"""From the worst to the best; "trusted" is of a whole ledger that begins with a checkpoint, and of no grant."""

VERDICTS: tuple[Verdict, ...] = ("refuted", "unconfirmed", "trusted", "confirmed")
_AGREEMENT = 0.01  # relative: both bounds this near to a charge confirm it
_NEAR = 1e-3  # relative: an upper bound this little above a charge confirms it, whatever the lower one is
_DIGITS = 60  # every value that is compared is a sum of terms of one sign, so relative digits are enough
_METHODS = ("pure", "profile", "gdp", "unsampled", "pld", "renyi")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantVerdict:
    """The verifier's finding on one grant's charge.

    Args:
        entry: the grant's place in the ledger, from 0.
        verdict: "refuted" where the charge is below `lower`; "confirmed" where it covers `upper`, or where both bounds
            lie within 1 % of it, or where `upper` is at most .1 % above it; else "unconfirmed".
        reason: why, in words; which bound is missing, if one is.
        currency: what the charge and both bounds are in, by the filter: "epsilon" (nats, at `delta`; basic,
            whitehouse), "mu" (Gaussian differential privacy; gdp), "rho" (nats, zCDP; zcdp), "divergence" (nats, Renyi
            divergence at the filter's order; renyi).
        charge: the recorded amount, in `currency`.
        delta: the recorded probability; None if the currency has none.
        lower: the plan costs at least this much, in `currency`.
        upper: the plan costs at most this much, in `currency`; infinite where the verifier has no bound.
    """

    entry: int
    verdict: Verdict
    reason: str
    currency: Literal["epsilon", "mu", "rho", "divergence"]
    charge: float
    delta: float | None
    lower: float
    upper: float


def judged(entry: int, rule: Rule, node: _pairs.Node, charge: dict[str, Any]) -> GrantVerdict:
    """Compare one charge with the verifier's own bounds.

    Raises:
        ValueError: a charge that is not in the filter's currency, or a plan that the filter does not take.
    """
    with mp.workdps(_DIGITS):
        doubted = _within_numbers(lambda: CostBounds(0.0, math.inf if doubt(node) else 0.0, doubt(node)))
        if math.isinf(doubted.upper):  # what it costs then is not known
            return _doubted(entry, rule, charge, doubted)
        match rule.name:
            case "gdp":
                return _gdp(entry, node, charge)
            case "zcdp":
                return _zcdp(entry, node, charge)
            case "renyi":
                return _renyi(entry, node, charge, rule.parameter)
    return _point(entry, node, charge)


def _doubted(entry: int, rule: Rule, charge: dict[str, Any], bounds: CostBounds) -> GrantVerdict:
    """A plan that holds a statement which cannot be, or cannot be checked: nothing bounds it."""
    currencies: dict[str, Literal["epsilon", "mu", "rho", "divergence"]] = {
        "gdp": "mu", "zcdp": "rho", "renyi": "divergence",
    }  # fmt: skip
    currency = currencies.get(rule.name, "epsilon")
    delta = charge.get("delta")
    _require(delta is None or (is_number(delta) and 0 <= delta < 1), f"delta {delta!r}")
    return _verdict(entry, currency, _amount(charge, currency), delta, bounds)


def _gdp(entry: int, node: _pairs.Node, charge: dict[str, Any]) -> GrantVerdict:
    _require(set(charge) == {"mu", "method"} and charge["method"] == "gdp", "fields of the charge")
    mu = _amount(charge, "mu")
    square = _pairs.mu_squared(node)
    _require(square is not None, "the plan is no Gaussian pair")

    def exact() -> CostBounds:
        own = float(mp.sqrt(square))
        return CostBounds(own, own, "")

    return _verdict(entry, "mu", mu, None, _within_numbers(exact))


def _zcdp(entry: int, node: _pairs.Node, charge: dict[str, Any]) -> GrantVerdict:
    _require(set(charge) == {"rho", "method"} and charge["method"] == "zcdp", "fields of the charge")
    return _verdict(entry, "rho", _amount(charge, "rho"), None, _within_numbers(lambda: rho_bounds(node)))


def _renyi(entry: int, node: _pairs.Node, charge: dict[str, Any], order: float) -> GrantVerdict:
    _require(set(charge) == {"divergence", "method", "order"} and charge["method"] == "renyi", "fields of the charge")
    found = _amount(charge, "divergence")
    _require(charge["order"] == order, f"order {charge['order']!r} is not the filter's")
    return _verdict(entry, "divergence", found, None, _within_numbers(lambda: renyi_bounds(node, order)))


def _point(entry: int, node: _pairs.Node, charge: dict[str, Any]) -> GrantVerdict:
    method: Any = charge.get("method")
    _require(set(charge) == {"epsilon", "delta", "method"} | ({"order"} if method == "renyi" else set()),
             "fields of the charge")  # fmt: skip
    _require(method in _METHODS, f"unknown method {method!r}")
    epsilon, delta = _amount(charge, "epsilon"), charge["delta"]
    _require(is_number(delta) and 0 <= delta < 1, f"delta {delta!r}")
    _require(delta > 0 or method == "pure", "delta is 0, where only a pure charge holds")
    order: Any = charge.get("order")
    _require(
        method != "renyi" or (is_number(order) and ORDERS[0] <= order <= ORDERS[1]),
        f"order {order!r}",
    )
    with mp.workdps(_DIGITS):
        bounds = _within_numbers(lambda: point_bounds(node, delta))
        if delta > 0 and epsilon * (1 + SLACK) < bounds.upper and bounds.lower <= epsilon * (1 + SLACK):
            before = bounds
            bounds = _within_numbers(lambda: _other_ways(node, delta, method, order, before))
            bounds = CostBounds(max(bounds.lower, before.lower), min(bounds.upper, before.upper), bounds.missing)
        if math.isinf(bounds.upper) and delta > 0:
            with counted(None):  # a few operations more
                above = _within_numbers(lambda: pure_bound(node, delta)).upper
            bounds = CostBounds(min(bounds.lower, above), above, bounds.missing)
    return _verdict(entry, "epsilon", epsilon, delta, bounds)


def _within_numbers(bounds: Callable[[], CostBounds]) -> CostBounds:
    """What is found, or nothing where the verifier cannot compute it: that is not the ledger's fault.

    Whatever goes wrong in a bound says nothing of the plan, so it neither confirms nor refutes anything.
    """
    try:
        found = bounds()
    except Untaken:
        raise
    except TooMuchWork as error:
        return CostBounds(0.0, math.inf, str(error))
    except Exception as error:  # noqa: BLE001 - a verifier that crashes has not looked, and must say so
        return CostBounds(0.0, math.inf, f"the verifier's numbers do not hold it ({type(error).__name__}: {error})")
    if math.isnan(found.lower) or math.isnan(found.upper):
        return CostBounds(0.0, math.inf, "the verifier's numbers do not hold it (not a number)")
    return found


def _other_ways(node: _pairs.Node, delta: float, method: str, order: float | None, bounds: CostBounds) -> CostBounds:
    """Upper bounds that are coarser than composed losses, but may be what there is: those that the charge names."""
    found, missing = bounds.upper, bounds.missing
    if method == "unsampled":
        found = min(found, point_bounds(_pairs.unsampled(node), delta).upper)
    if method == "renyi":
        found = min(found, converted_epsilon(node, delta, order).upper)
    if math.isinf(found):
        found = converted_epsilon(node, delta, None).upper
    return CostBounds(min(bounds.lower, found), found, missing)


def _verdict(
    entry: int,
    currency: Literal["epsilon", "mu", "rho", "divergence"],
    charge: float,
    delta: float | None,
    bounds: CostBounds,
) -> GrantVerdict:
    lower, upper = bounds.lower, bounds.upper
    at = "" if delta is None else f" at delta {delta!r}"
    room = mpf(charge) * (1 + mpf(SLACK))
    verdict: Verdict
    if room < lower:
        verdict = "refuted"
        reason = f"the recorded {currency} {charge!r} is below what the plan costs, at least {lower!r}{at}"
    elif room >= upper:
        verdict, reason = "confirmed", f"the plan costs at most {upper!r}{at}"
    elif upper <= (1 + _NEAR) * charge:
        verdict, reason = "confirmed", f"the plan costs at most {upper!r}{at}, within .1 % of the charge"
    elif lower >= (1 - _AGREEMENT) * charge and upper <= (1 + _AGREEMENT) * charge:
        verdict, reason = "confirmed", f"the plan costs from {lower!r} to {upper!r}{at}, within 1 % of the charge"
    else:
        verdict = "unconfirmed"
        why = f": {bounds.missing}" if bounds.missing else ""
        most = f"the verifier's upper bound is {upper!r}" if math.isfinite(upper) else "the verifier has no upper bound"
        reason = f"the plan costs at least {lower!r}{at}, and {most}{why}"
    return GrantVerdict(
        entry=entry, verdict=verdict, reason=reason, currency=currency, charge=charge, delta=delta, lower=lower,
        upper=upper,
    )  # fmt: skip


def worst(verdicts: tuple[GrantVerdict, ...]) -> Verdict:
    """The worst of all verdicts; "confirmed" if nothing was granted."""
    return min((found.verdict for found in verdicts), key=VERDICTS.index, default="confirmed")


def is_number(value: object) -> bool:
    """Returns whether a JSON value is a finite float."""
    return isinstance(value, float) and math.isfinite(value)


def _amount(charge: dict[str, Any], name: str) -> float:
    value: Any = charge[name]
    _require(is_number(value) and value >= 0, f"{name} {value!r}")
    return float(value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
