"""Budget splitters: divide one budget into named shares, exactly, in a currency whose amounts are summed.

docs/explanation/splitting.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final, get_args

import numpy as np

from ledgerwood import _directed, _validate
from ledgerwood.accounting import _search
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.costs import conversion, gdp
from ledgerwood.accounting.events import LaplaceEvent, Repeated
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.quotes import Method
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

Currency = Literal["epsilon", "rho", "mu_squared", "renyi"]
"""The amount that is summed: epsilon for pure plans, rho for zCDP, mu squared for Gaussian plans, the Renyi divergence
at one order for all."""
Rule = Literal["proportional", "per_level", "geometric", "minimal_variance"]

_CURRENCIES = "'epsilon', 'rho', 'mu_squared' or 'renyi'"
_LARGEST_ORDER = 1e6
_GUARD = 1.0 + 2.0**-48  # room for the upward rounding of an event's own mu or epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a budget for the rule "minimal_variance": `count` releases of one sensitivity.

    Args:
        sensitivity: > 0, in the statistic's units (L2 for Gaussian noise, L1 for Laplace).
        count: the count of releases, each with fresh noise.
        importance: > 0, the weight of each release's variance in the sum that is minimised.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    sensitivity: float
    count: int = 1
    importance: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("sensitivity", self.sensitivity, "units of the statistic")
        _validate.count("count", self.count, "releases")
        _validate.positive("importance", self.importance, "1 / square units of the statistic")

    def gaussian_weight(self) -> Fraction:
        """Its share of mu squared (or rho, or a Renyi divergence), up to a common factor."""
        return self.count * Fraction(self.sensitivity) * Fraction(math.sqrt(self.importance))

    def laplace_weight(self) -> Fraction:
        """Its share of epsilon, up to a common factor."""
        return self.count * Fraction(math.cbrt(self.importance)) * Fraction(math.cbrt(self.sensitivity)) ** 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A named part of a budget.

    Args:
        name: the part's name.
        currency: the unit of `amount`.
        amount: exact; the amounts of one split sum exactly to the whole.
        order: > 1, of a share in "renyi" (nats at that order), else None.
    """

    name: str
    currency: Currency
    amount: Fraction
    order: float | None = None

    @property
    def epsilon(self) -> float:
        """The share in nats, rounded down; only of a split in epsilon.

        Raises:
            InvalidParameter: the share is in another currency.
        """
        return self.epsilon_each(1)

    def epsilon_each(self, count: int) -> float:
        """Epsilon of each of `count` equal parts of the share, in nats, rounded down; only of a split in epsilon.

        Raises:
            InvalidParameter: the share is in another currency, or a count below 1.
        """
        if self.currency != "epsilon":
            raise InvalidParameter(
                f"currency={self.currency!r} of share {self.name!r} must be 'epsilon' (unit: currency)"
            )
        return _directed.float_down(self.amount / _validate.count("count", count, "parts"))

    def gaussian_multiplier(self, count: int = 1) -> float:
        """The least noise multiplier of `count` Gaussian releases that together take this share; rounded up.

        Raises:
            UnsupportedEvent: a share in epsilon, which no Gaussian release fits.
        """
        count = _validate.count("count", count, "releases")
        if self.currency == "epsilon":
            raise UnsupportedEvent(f"share {self.name!r} is in pure epsilon, which no Gaussian release fits")
        per_release = self.amount if self.currency == "mu_squared" else 2 * self.amount
        if self.order is not None:
            per_release /= Fraction(self.order)
        return _GUARD * _directed.root_up(count / per_release)

    def laplace_multiplier(self, count: int = 1) -> float:
        """The least noise multiplier of `count` Laplace releases that together take this share; rounded up.

        A release of multiplier b is 1/b-private, hence 1/(2 b^2)-zero-concentrated (Bun, Steinke 2016, Prop. 3.3).

        Raises:
            UnsupportedEvent: a share in mu squared, which has no Laplace releases here.
        """
        count = _validate.count("count", count, "releases")
        if self.currency == "mu_squared":
            raise UnsupportedEvent(
                f"share {self.name!r} is in Gaussian mu squared; Laplace noise is not a Gaussian pair"
            )
        if self.currency == "rho":
            return _GUARD * _directed.root_up(count / (2 * self.amount))
        if self.currency == "renyi":
            adjacency = Adjacency.ADD_REMOVE  # a divergence depends on the multiplier alone
            return self.least_multiplier(
                lambda b: Repeated(LaplaceEvent(noise_multiplier=b, adjacency=adjacency), count=count)
            )
        return _GUARD * _directed.float_up(count / self.amount)

    def least_multiplier(self, make_event: Callable[[float], Event]) -> float:
        """The least noise multiplier whose whole event, sampled or not, takes at most this share.

        Args:
            make_event: a noise multiplier in 1e-9..1e12 to the event; a larger multiplier must not cost more.

        Raises:
            UnsupportedEvent: a share in rho, or an event that is not known in the share's currency.
            InvalidParameter: no multiplier fits, or each does.
        """

        def cost(multiplier: float) -> float:
            event = make_event(multiplier)
            match self.currency:
                case "epsilon":
                    return event.pure_epsilon()
                case "mu_squared":
                    return event.mu() ** 2 * (1.0 + 2.0**-52)
                case "renyi":
                    return float(event.renyi(np.array([self.order]))[0])
                case "rho":
                    raise UnsupportedEvent(f"share {self.name!r} is in rho, which is not known of events in general")

        def excess(multiplier: float) -> float:
            ratio = cost(multiplier) / float(self.amount)
            return math.log(ratio) if 0.0 < ratio < math.inf else math.copysign(60.0, ratio - 1.0)

        misfit, fit = _search.bracket_outward(excess, 1e-9, 1e12)
        if misfit is None or fit is None:
            raise InvalidParameter(f"no multiplier in 1e-9..1e12 just takes share {self.name!r} of {self.currency}")
        multiplier = _search.root_from_above(excess, misfit, fit, tolerance=1e-14)[1]
        for _ in range(60):
            if Fraction(cost(multiplier)) <= self.amount:
                return multiplier
            multiplier *= _GUARD
        raise InvalidParameter(f"the cost is not monotone in the multiplier near {multiplier!r}")


def split(
    budget: Budget,
    shares: Mapping[str, float] | Mapping[str, Part] | Sequence[str],
    *,
    currency: Currency | None = None,
    rule: Rule = "proportional",
    ratio: float | None = None,
    order: float | None = None,
) -> dict[str, Share]:
    """Split a budget into named shares, exactly.

    Args:
        budget: the whole.
        shares: name to positive weight for "proportional", to `Part` for "minimal_variance"; names in order for
            "per_level" and "geometric".
        currency: "epsilon", "rho", "mu_squared" or "renyi"; may be left out only where delta is 0 (then "epsilon").
            "epsilon" splits epsilon alone: delta stays whole, for the caller's grants to name.
        rule: "proportional" by weight; "per_level" in equal parts; "geometric", each part `ratio` times the last;
            "minimal_variance", so that the weighted sum of all releases' variances is least, with Laplace noise for
            "epsilon" and Gaussian noise else (splitting.md#minimal-variance).
        ratio: positive, of "geometric" only.
        order: real, > 1, of "renyi" only.

    Returns:
        The shares by name, in the given order; the last one is the rest, so that they sum exactly to the whole.

    Raises:
        InvalidParameter: no or repeated names, a weight that is not positive, a currency that does not exist or that
            the budget does not have (all but epsilon at delta 0; an order at which the conversion takes it all).
    """
    whole, unit = _whole(budget, currency, order)
    weights = _weights(shares, rule, ratio, unit)
    total = sum(weights.values(), Fraction())
    result: dict[str, Share] = {}
    rest = whole
    for name, weight in list(weights.items())[:-1]:
        result[name] = Share(name=name, currency=unit, amount=whole * weight / total, order=order)
        rest -= result[name].amount
    last = next(reversed(weights))
    result[last] = Share(name=last, currency=unit, amount=rest, order=order)
    return result


def relative_multipliers(parts: Mapping[str, tuple[float, int]] | Mapping[str, Part]) -> dict[str, float]:
    """Noise multipliers of the parts of a Gaussian plan, relative to one common scale.

    With scale s, part i has `count_i` releases of multiplier s times its relative one; it then takes its share
    weight_i / sum(weights) of mu squared = 1 / s^2. Calibrate the plan over s (`common_scale`).

    Args:
        parts: name to (positive weight, count of releases), or to a `Part`, whose weight is that of minimal
            variance.

    Raises:
        InvalidParameter: no parts, a weight that is not positive, a count below 1.
    """
    if not parts:
        raise _validate.fail("parts", parts, "at least one name", "parts")
    weights: dict[str, Fraction] = {}
    counts: dict[str, int] = {}
    for name, part in parts.items():
        if isinstance(part, Part):
            weights[name], counts[name] = part.gaussian_weight(), part.count
        else:
            weights[name] = Fraction(_validate.positive(f"weight of {name!r}", part[0], "1"))
            counts[name] = _validate.count(f"count of {name!r}", part[1], "releases")
    total = sum(weights.values(), Fraction())
    return {name: _GUARD * _directed.root_up(counts[name] * total / weight) for name, weight in weights.items()}


def common_scale(
    make_plan: Callable[[Mapping[str, float]], Event],
    relative: Mapping[str, float],
    budget: Budget,
    *,
    method: Method = "tightest",
) -> dict[str, float]:
    """The noise multipliers of a plan of mixed kinds: relative ones, times the least common scale that fits.

    Args:
        make_plan: name to noise multiplier, to the whole plan, sampled or not, of any kinds of noise.
        relative: name to positive multiplier at scale 1, as `relative_multipliers` gives for a Gaussian plan.
        budget: the limit of the whole plan.
        method: as in `price`.

    Returns:
        Name to multiplier; the plan at these multipliers fits the budget.

    Raises:
        InvalidParameter: no names, or a multiplier that is not positive.
        CalibrationFailed, AdjacencyMismatch, UnsupportedEvent: as `calibrate`.
    """
    if not relative:
        raise _validate.fail("relative", relative, "at least one name", "multipliers")
    parts = {name: _validate.positive(f"multiplier of {name!r}", value, "1") for name, value in relative.items()}

    def at(scale: float) -> dict[str, float]:
        return {name: scale * value for name, value in parts.items()}

    return at(calibrate(lambda scale: make_plan(at(scale)), budget, method=method))


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


def _renyi(epsilon: float, delta: float, order: float) -> float:
    """The largest Renyi divergence at `order` that converts to (epsilon, delta), in nats, rounded down; may be < 0."""
    orders = np.array([order])
    least = float(conversion.renyi_epsilons(orders, np.zeros(1), math.log(delta))[0])
    found = epsilon - least
    while found > 0.0 and conversion.renyi_epsilons(orders, np.array([found]), math.log(delta))[0] > epsilon:
        found = math.nextafter(found * (1.0 - 2.0**-52), -math.inf)
    return found


def _whole(budget: Budget, currency: Currency | None, order: float | None) -> tuple[Fraction, Currency]:
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    if currency is None:
        if budget.delta > 0.0:
            raise _validate.fail("currency", currency, f"{_CURRENCIES} where delta > 0", "currency")
        currency = "epsilon"
    if currency not in get_args(Currency):
        raise _validate.fail("currency", currency, _CURRENCIES, "currency")
    if (order is not None) != (currency == "renyi"):
        raise _validate.fail("order", order, "given only with currency='renyi'", "Renyi order")
    if currency == "epsilon":
        return Fraction(budget.epsilon), currency
    if budget.delta == 0.0:
        raise _validate.fail("delta", budget.delta, f"> 0 for a split in {currency}", "probability")
    if order is not None:
        if not 1.0 < _validate.real("order", order, "Renyi order") <= _LARGEST_ORDER:
            raise _validate.fail("order", order, "> 1 and at most 1e6", "Renyi order")
        left = _renyi(budget.epsilon, budget.delta, float(order))
        if left <= 0.0:
            raise InvalidParameter(
                f"order={order!r} leaves nothing to split: its conversion takes {budget.epsilon - left:.6g} of "
                f"epsilon={budget.epsilon!r} nats at delta={budget.delta!r}; take a larger order (unit: Renyi order)"
            )
        return Fraction(left), currency
    if currency == "rho":
        return Fraction(rho(budget.epsilon, budget.delta)), currency
    return Fraction(gdp.mu(budget.epsilon, budget.delta)) ** 2, currency


def _weights(
    shares: Mapping[str, float] | Mapping[str, Part] | Sequence[str],
    rule: Rule,
    ratio: float | None,
    currency: Currency,
) -> dict[str, Fraction]:
    if rule not in get_args(Rule):
        raise _validate.fail("rule", rule, "one of " + ", ".join(map(repr, get_args(Rule))), "rule")
    if (ratio is not None) != (rule == "geometric"):
        raise _validate.fail("ratio", ratio, "given only with rule='geometric'", "1")
    if isinstance(shares, str) or not shares:
        raise _validate.fail("shares", shares, "at least one name", "shares")
    if rule in ("proportional", "minimal_variance"):
        if not isinstance(shares, Mapping):
            what = "weight" if rule == "proportional" else "Part"
            raise _validate.fail("shares", shares, f"a mapping of name to {what} for rule={rule!r}", "shares")
        return {name: _weight(name, given, rule, currency) for name, given in shares.items()}
    if isinstance(shares, Mapping):
        raise _validate.fail("shares", shares, f"a sequence of names for rule={rule!r}", "shares")
    names = list(shares)
    if len(set(names)) != len(names):
        raise _validate.fail("shares", shares, "names that differ", "shares")
    step = Fraction(1 if ratio is None else _validate.positive("ratio", ratio, "1"))
    return {name: step**place for place, name in enumerate(names)}


def _weight(name: str, given: float | Part, rule: Rule, currency: Currency) -> Fraction:
    if rule == "proportional":
        return Fraction(_validate.positive(f"weight of {name!r}", given, "1"))
    if not isinstance(given, Part):
        raise _validate.fail(f"share {name!r}", given, "a Part for rule='minimal_variance'", "part")
    return given.laplace_weight() if currency == "epsilon" else given.gaussian_weight()
