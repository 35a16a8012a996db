"""The verdict on a grant's charge, by the verifier's own bounds: confirmed, unconfirmed or refuted.

docs/explanation/ledger.md#verification-verdicts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp, mpf
from ledgerwood.verification.ledgers.bounds.bounds import CostBounds, Untaken
from ledgerwood.verification.ledgers.bounds.divergences import converted_epsilon, renyi_bounds, rho_bounds
from ledgerwood.verification.ledgers.bounds.points import point_bounds, pure_bound
from ledgerwood.verification.ledgers.bounds.presences import doubt
from ledgerwood.verification.ledgers.effort import TooMuchWork, counted
from ledgerwood.verification.ledgers.filters import ORDERS, SLACK, Rule

Verdict = Literal["refuted", "unconfirmed", "confirmed"]
"""From the worst to the best."""

VERDICTS: tuple[Verdict, ...] = ("refuted", "unconfirmed", "confirmed")
_AGREEMENT = 0.01  # relative: both bounds this near to a charge confirm it
_NEAR = 1e-3  # relative: an upper bound this little above a charge is worth a finer grid
_DIGITS = 60  # every value that is compared is a sum of terms of one sign, so relative digits are enough
_METHODS = ("pure", "profile", "gdp", "unsampled", "pld", "renyi")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantVerdict:
    """The verifier's finding on one grant's charge.

    Args:
        entry: the grant's place in the ledger, from 0.
        verdict: "refuted" where the charge is below `lower`; "confirmed" where it covers `upper`, or where both bounds
            lie within 1 % of it; else "unconfirmed".
        reason: why, in words; which bound is missing, if one is.
        currency: what the charge and both bounds are in, by the filter: "epsilon" (nats, at `delta`; basic,
            whitehouse), "mu" (Gaussian differential privacy; gdp), "rho" (nats, zCDP; zcdp), "divergence" (nats, Renyi
            divergence at the filter's order; renyi).
        charge: the recorded amount, in `currency`.
        delta: the recorded probability; None where the currency has none.
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
            bounds = _within_numbers(lambda: _other_ways(node, epsilon, delta, method, order, before))
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


def _other_ways(
    node: _pairs.Node, epsilon: float, delta: float, method: str, order: float | None, bounds: CostBounds
) -> CostBounds:
    """Upper bounds that are coarser than composed losses, but may be what there is: those that the charge names."""
    found, missing = bounds.upper, bounds.missing
    if method == "unsampled":
        found = min(found, point_bounds(_pairs.unsampled(node), delta).upper)
    if method == "renyi":
        found = min(found, converted_epsilon(node, delta, order).upper)
    if bounds.lower < (1 - _AGREEMENT) * epsilon and epsilon < found < epsilon * (1 + _NEAR):
        found = min(found, point_bounds(node, delta, fine=True).upper)
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
