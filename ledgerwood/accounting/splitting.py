"""Budget splitters: one budget into named shares, exactly, in the currency that adds up.

docs/explanation/splitting.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final, get_args

from ledgerwood import _directed, _validate
from ledgerwood.accounting import _search, conversion, gdp
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

Currency = Literal["epsilon", "rho", "mu_squared"]
"""epsilon adds up for pure plans, rho for zero-concentrated ones, mu squared for Gaussian ones."""
Rule = Literal["proportional", "per_level", "geometric"]

_GUARD = 1.0 + 2.0**-48  # room for the upward rounding of an event's own mu or epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A named part of a budget.

    Args:
        name: whose share it is.
        currency: what `amount` counts.
        amount: exact; the amounts of one split sum exactly to the whole.
    """

    name: str
    currency: Currency
    amount: Fraction

    @property
    def epsilon(self) -> float:
        """The share in nats, rounded down; only of a split in epsilon.

        Raises:
            InvalidParameter: the share is in another currency.
        """
        if self.currency != "epsilon":
            raise InvalidParameter(
                f"currency={self.currency!r} of share {self.name!r} must be 'epsilon' (unit: currency)"
            )
        return _directed.float_down(self.amount)

    def gaussian_multiplier(self, count: int = 1) -> float:
        """The least noise multiplier of `count` Gaussian releases that together take this share; rounded up.

        Raises:
            UnsupportedEvent: a share in epsilon, which no Gaussian release fits.
        """
        count = _validate.count("count", count, "releases")
        if self.currency == "epsilon":
            raise UnsupportedEvent(f"share {self.name!r} is in pure epsilon, which no Gaussian release fits")
        per_release = self.amount if self.currency == "mu_squared" else 2 * self.amount
        return _GUARD * _directed.root_up(count / per_release)

    def laplace_multiplier(self, count: int = 1) -> float:
        """The least noise multiplier of `count` Laplace releases that together take this share; rounded up.

        A release of multiplier b is 1/b-private, hence 1/(2 b^2)-zero-concentrated (Bun, Steinke 2016, Prop. 3.3).

        Raises:
            UnsupportedEvent: a share in mu squared, which has no Laplace releases here.
        """
        count = _validate.count("count", count, "releases")
        if self.currency == "mu_squared":
            raise UnsupportedEvent(f"share {self.name!r} is in Gaussian mu squared; Laplace noise is no Gaussian pair")
        if self.currency == "rho":
            return _GUARD * _directed.root_up(count / (2 * self.amount))
        return _GUARD * _directed.float_up(count / self.amount)


def split(
    budget: Budget,
    shares: Mapping[str, float] | Sequence[str],
    *,
    currency: Currency | None = None,
    rule: Rule = "proportional",
    ratio: float | None = None,
) -> dict[str, Share]:
    """Split a budget into named shares, exactly.

    Args:
        budget: the whole.
        shares: name to positive weight for "proportional"; names in order for "per_level" and "geometric".
        currency: "epsilon", "rho" or "mu_squared"; may be left out only where delta is 0 (then "epsilon").
            "epsilon" splits epsilon alone: delta stays whole, for the caller's grants to name.
        rule: "proportional" by weight; "per_level" in equal parts; "geometric", each part `ratio` times the last.
        ratio: positive, of "geometric" only.

    Returns:
        The shares by name, in the given order; the last one is the rest, so that they sum exactly to the whole.

    Raises:
        InvalidParameter: no or repeated names, a weight that is not positive, a currency that does not exist or that
            the budget does not have (rho and mu squared at delta 0).
    """
    whole, unit = _whole(budget, currency)
    weights = _weights(shares, rule, ratio)
    total = sum(weights.values(), Fraction())
    result: dict[str, Share] = {}
    rest = whole
    for name, weight in list(weights.items())[:-1]:
        result[name] = Share(name=name, currency=unit, amount=whole * weight / total)
        rest -= result[name].amount
    last = next(reversed(weights))
    result[last] = Share(name=last, currency=unit, amount=rest)
    return result


def relative_multipliers(parts: Mapping[str, tuple[float, int]]) -> dict[str, float]:
    """Noise multipliers of the parts of a Gaussian plan, relative to one common scale.

    With scale s, part i has `count_i` releases of multiplier s times its relative one; it then takes its share
    weight_i / sum(weights) of mu squared = 1 / s^2. Calibrate the plan over s.

    Args:
        parts: name to (positive weight, count of releases).

    Raises:
        InvalidParameter: no parts, a weight that is not positive, a count below 1.
    """
    if not parts:
        raise _validate.fail("parts", parts, "at least one name", "parts")
    weights = {
        name: Fraction(_validate.positive(f"weight of {name!r}", weight, "1")) for name, (weight, _) in parts.items()
    }
    total = sum(weights.values(), Fraction())
    return {
        name: _GUARD
        * _directed.root_up(_validate.count(f"count of {name!r}", count, "releases") * total / weights[name])
        for name, (_, count) in parts.items()
    }


def rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy gives (epsilon, delta), in nats, rounded down.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12, at Renyi divergence rho * order, over all real orders.
    """
    epsilon = _validate.positive("epsilon", epsilon, "nats")
    if not 0.0 < _validate.rate("delta", delta, "probability") < 1.0:
        raise _validate.fail("delta", delta, "in (0, 1)", "probability")
    target = math.log(delta)

    def excess(inverse: float) -> float:
        return _search.log_ratio(target, min(_log_delta_of(1.0 / inverse, epsilon), 0.0))

    misfit, fit = _search.bracket_outward(excess, 1e-12, 1e12)
    if misfit is None or fit is None:
        raise InvalidParameter(f"no rho in 1e-12..1e12 gives epsilon={epsilon!r} nats at delta={delta!r}")
    inverse = _search.root_from_above(excess, misfit, fit, tolerance=1e-14)[1]
    while _log_delta_of(1.0 / inverse, epsilon) > target:
        inverse *= 1.0 + 2.0**-48
    return math.nextafter(1.0 / inverse, 0.0)


def _log_delta_of(value: float, epsilon: float) -> float:
    return conversion.least_over_orders(
        lambda orders: value * orders, lambda orders, curve: conversion.renyi_log_deltas(orders, curve, epsilon)
    ).value


def _whole(budget: Budget, currency: Currency | None) -> tuple[Fraction, Currency]:
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    if currency is None:
        if budget.delta > 0.0:
            raise _validate.fail("currency", currency, "'epsilon', 'rho' or 'mu_squared' where delta > 0", "currency")
        currency = "epsilon"
    if currency not in get_args(Currency):
        raise _validate.fail("currency", currency, "'epsilon', 'rho' or 'mu_squared'", "currency")
    if currency == "epsilon":
        return Fraction(budget.epsilon), currency
    if budget.delta == 0.0:
        raise _validate.fail("delta", budget.delta, f"> 0 for a split in {currency}", "probability")
    if currency == "rho":
        return Fraction(rho(budget.epsilon, budget.delta)), currency
    return Fraction(gdp.mu(budget.epsilon, budget.delta)) ** 2, currency


def _weights(shares: Mapping[str, float] | Sequence[str], rule: Rule, ratio: float | None) -> dict[str, Fraction]:
    if rule not in get_args(Rule):
        raise _validate.fail("rule", rule, "'proportional', 'per_level' or 'geometric'", "rule")
    if (ratio is not None) != (rule == "geometric"):
        raise _validate.fail("ratio", ratio, "given with rule='geometric', and with no other", "1")
    if isinstance(shares, str) or not shares:
        raise _validate.fail("shares", shares, "at least one name", "shares")
    if isinstance(shares, Mapping):
        if rule != "proportional":
            raise _validate.fail("shares", shares, f"a sequence of names for rule={rule!r}", "shares")
        return {name: Fraction(_validate.positive(f"weight of {name!r}", w, "1")) for name, w in shares.items()}
    if rule == "proportional":
        raise _validate.fail("shares", shares, "a mapping of name to weight for rule='proportional'", "shares")
    names = list(shares)
    if len(set(names)) != len(names):
        raise _validate.fail("shares", shares, "names that differ", "shares")
    step = Fraction(1 if ratio is None else _validate.positive("ratio", ratio, "1"))
    return {name: step**place for place, name in enumerate(names)}
