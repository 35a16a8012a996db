"""The effect of several neighbouring steps on an expectation: the least value of a bounded function of the outputs.

docs/explanation/poisoning.md derives each bound. A function of the outputs, in [0, 1], has expectation p on one data
set; on any other that is some neighbouring steps away it has at least the value found here.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood.accounting import risk
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.group import grouped
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import PrivacyError, UnsupportedEvent

Route = Literal["clean", "stated", "gaussian", "renyi", "group", "chain"]
"""How a least expectation was got: no step, an (epsilon, delta) in closed form, a Gaussian pair in closed form, the
group's Renyi divergences, the group's own trade-off curve, or one step's curve again and again."""

MOST_STEPS = 10**6
_LONGEST = 10_000  # steps that are walked one by one; what they leave after that is 0
_RATES = 33
_LEAST = 1e-290  # below it, where the spacing of numbers becomes absolute, nothing is claimed
_ULP = 2.0**-52
_TAIL = 2.0**-40  # relative, of a Gaussian tail and of its quantile
_ORDERS = 1.0 + np.exp(np.linspace(math.log(1e-3), math.log(1e4), 141))
_HALVINGS = 100


class Least(NamedTuple):
    """A lower bound on an expectation, and the route that gave it."""

    value: float
    route: Route


def least_expectations(event: Event, expectation: float, steps: NDArray[np.int64]) -> list[Least]:
    """The least expectation after each number of steps, rounded down; what holds after more steps holds after fewer.

    Args:
        event: a guarantee, or a release that is known in full.
        expectation: before any step, in [0, 1].
        steps: each in 0..MOST_STEPS, shape (k,).

    Source: docs/explanation/poisoning.md#routes.
    """
    found: dict[int, Least] = {}
    best = Least(0.0, "chain")
    for count in sorted({int(count) for count in steps}, reverse=True):
        best = max((best, *_routes(event, expectation, count)), key=lambda least: least.value)
        found[count] = best
    for count, value in _walked(event, expectation, found):
        found[count] = max(found[count], value, key=lambda least: least.value)
    return [found[int(count)] if found[int(count)].value >= _LEAST else Least(0.0, "chain") for count in steps]


def after_stated(epsilon: float, delta: float, expectation: float, steps: int) -> float:
    """The least expectation after `steps` steps of an (epsilon, delta) guarantee; attained by some mechanism.

    First 1 - p grows by e^epsilon a step, then p falls by e^-epsilon; where the one becomes the other any choice is
    valid, so two neighbours of the best one are tried beside the ends. Rounded down.

    Source: docs/explanation/poisoning.md#stated-steps.
    """
    p, q = expectation, _complement(expectation)
    if q == 0.0 and delta == 0.0:
        return 1.0
    if epsilon > 700.0:
        return 0.0
    rise = math.expm1(epsilon)  # sum of e^{j epsilon}, j < k, is expm1(k epsilon) / rise
    turn = math.exp(-epsilon) * (1.0 - delta) / (1.0 + math.exp(-epsilon))  # of q, from which on p falls by a factor
    if rise == 0.0:
        return max(p - steps * delta * (1.0 + 8.0 * _ULP) - 8.0 * _ULP * p, 0.0)
    until = math.log1p((turn - q) / (q + delta / rise)) / epsilon if q < turn else 0.0
    near = math.floor(min(until, float(steps)))
    least = 0.0
    for count in {0, near, min(near + 1, steps), steps}:
        if count * epsilon > 700.0:
            continue
        grown = math.exp(count * epsilon) * q + delta * math.expm1(count * epsilon) / rise
        reached = p if count == 0 else 1.0 - grown * (1.0 + (16.0 + 4.0 * count * epsilon) * _ULP) - _ULP
        rest = (steps - count) * epsilon
        lost = -delta * math.expm1(-rest) / rise
        fallen = math.exp(-rest) * reached * (1.0 - (16.0 + 4.0 * rest) * _ULP) - lost * (1.0 + 16.0 * _ULP)
        least = max(least, fallen - _ULP * lost)
    return least


def after_gaussian(mu: float, expectation: float) -> float:
    """The least expectation across a Gaussian pair N(0, 1), N(mu, 1): Phi(Phi^-1(p) - mu), rounded down.

    Source: the trade-off function of the pair (Dong, Roth and Su 2019, Equation 6);
    docs/explanation/poisoning.md#gaussian-steps.
    """
    if expectation in (0.0, 1.0):
        return expectation
    quantile = special.ndtri(expectation) if expectation < 0.5 else -special.ndtri(1.0 - expectation)
    lowered = quantile - _TAIL * (1.0 + abs(quantile) + mu)
    return float(special.ndtr(lowered - mu)) * (1.0 - _TAIL)


def after_renyi(orders: FloatArray, divergences: FloatArray, expectation: float) -> float:
    """The least expectation whose coin is within these Renyi divergences of the first one's, both ways; rounded down.

    Args:
        orders: real, > 1, shape (k,); any of them give a bound.
        divergences: bounds in nats, in both directions, shape (k,).
        expectation: the expectation of the first coin, in [0, 1].

    Source: docs/explanation/poisoning.md#renyi-steps.
    """
    p, q = expectation, _complement(expectation)
    if p == 0.0 or not np.isfinite(divergences).any():
        return 0.0
    kept = np.isfinite(divergences)
    orders, divergences = orders[kept], divergences[kept]
    low, high = 0.0, p  # low is refused, or 0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _coins_differ(p, q, middle, orders, divergences):
            low = middle
        else:
            high = middle
    return low


def _coins_differ(p: float, q: float, other: float, orders: FloatArray, divergences: FloatArray) -> bool:
    """Returns whether some divergence between the coins p and `other` is surely above its bound."""
    with np.errstate(divide="ignore"):
        log_p, log_q, log_one, log_rest = np.log([p, q, other, 1.0 - other])
    gap = orders - 1.0
    for (one, rest), (to_one, to_rest) in (
        ((log_p, log_q), (log_one, log_rest)),
        ((log_one, log_rest), (log_p, log_q)),
    ):
        if math.isinf(to_rest) and math.isfinite(rest):  # the first coin never fails, the other does
            return True
        first = orders * one - gap * to_one
        second = orders * rest - gap * to_rest if math.isfinite(rest) else np.full_like(orders, -np.inf)
        sizes = orders * (2.0 + abs(one) + abs(to_one) + (abs(rest) + abs(to_rest) if math.isfinite(rest) else 0.0))
        if (np.logaddexp(first, second) - 8.0 * _ULP * sizes > gap * divergences * (1.0 + 8.0 * _ULP)).any():
            return True
    return False


def _routes(event: Event, expectation: float, steps: int) -> list[Least]:
    """Bounds that need no walk: the closed forms, and the curves of the group."""
    if steps == 0:
        return [Least(expectation, "clean")]
    if isinstance(event, ApproximateEvent):
        return [Least(after_stated(event.epsilon, event.delta, expectation, steps), "stated")]
    pure = event.pure_epsilon()
    found = [Least(after_stated(pure, 0.0, expectation, steps), "stated")] if math.isfinite(pure) else []
    if isinstance(event, PureEvent):
        return found
    try:
        group = grouped(event.unsampled(), size=steps)
    except PrivacyError:  # no group's law is known, or nothing is left of it
        return found
    try:
        return [*found, Least(after_gaussian(group.mu(), expectation), "gaussian")]
    except UnsupportedEvent:
        return [*found, *_of_group(group, expectation)]


def _of_group(group: Event, expectation: float) -> list[Least]:
    """The bound of a group's event that is no Gaussian pair; none where it has no privacy cost."""
    try:
        priced = price(group)
        if priced.method == "renyi":
            return [Least(after_renyi(_ORDERS, group.renyi(_ORDERS), expectation), "renyi")]
        return [Least(float(risk.trade_off(priced, np.array([_complement(expectation)]))[0]), "group")]
    except UnsupportedEvent:
        return []


def _walked(event: Event, expectation: float, found: dict[int, Least]) -> list[tuple[int, Least]]:
    """One step's own curve, again and again, where the group's distribution is not that of the event."""
    wanted = [count for count in found if 0 < count <= _LONGEST]
    if not wanted or isinstance(event, PureEvent | ApproximateEvent) or _has_group(event):
        return []
    try:
        priced = price(event)
    except UnsupportedEvent:
        return []
    rates = np.linspace(_complement(expectation), 1.0, _RATES)[:-1]
    if not rates.size or expectation == 0.0:
        return []
    epsilons, deltas = risk.points(priced, rates)
    values, value = [], expectation
    for count in range(1, max(wanted) + 1):
        value = float(risk.type_two(epsilons, deltas, np.array([_complement(value)]))[0])
        if value == 0.0:
            break
        if count in found:
            values.append((count, Least(value, "chain")))
    return values


def _has_group(event: Event) -> bool:
    try:
        grouped(event, size=2)
    except UnsupportedEvent:
        return False
    except PrivacyError:  # it has one, of which two units leave nothing
        return True
    return True


def _complement(expectation: float) -> float:
    """1 - p, rounded up."""
    rest = 1.0 - expectation
    return rest if expectation >= 0.5 else min(math.nextafter(rest, 2.0), 1.0)
