"""Limits on a membership attack that follow from a privacy cost: error rates, advantage, posterior belief.

docs/explanation/risk.md states the game. The attacker knows all other units, and sees the outputs. Under add-remove and
zero-out they guess whether the unit was in the data; under replace-one, which of two units was. Each function bounds
every attacker: power (true positive rate) is rounded up, error rates are rounded down. `in_words` says it in
words.
"""

import decimal
import math
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

if TYPE_CHECKING:  # a privacy cost explains itself by `in_words`
    from ledgerwood.accounting.pricing import Price

_ULP = 2.0**-52
_TINY = 5e-324
_QUICK = ("profile", "gdp", "pure")  # whose deltas come by the thousand
_MANY, _FEW, _ROUNDS = 1025, 33, 3
_LEAST_RATE = 1e-12  # an error below it is read at the epsilons that are best at it
_BLOCK = 1 << 21


def trade_off(priced: "Price", type_one: ArrayLike) -> FloatArray:
    """A lower bound on an attacker's type II error at each type I error, of the shape of `type_one`.

    sup over epsilon >= 0 of 1 - delta - e^epsilon a and e^-epsilon (1 - delta - a), at least 0; any epsilons give a
    bound. Valid with either hypothesis as the null, since delta is the larger of both directions.

    Args:
        priced: the privacy cost to read.
        type_one: probabilities of a false positive, in [0, 1].

    Raises:
        InvalidParameter: a probability outside its bound.

    Source: Wasserman and Zhou 2010; Dong, Roth and Su 2019, Proposition 2.5;
    docs/explanation/risk.md#trade-off.
    """
    rates = np.asarray(type_one)
    if rates.dtype.kind not in "iuf" or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise InvalidParameter(f"type_one={type_one!r} must be in [0, 1] (unit: probability)")
    flat = np.atleast_1d(rates).ravel().astype(np.float64)
    if not flat.size:
        return np.empty(rates.shape)
    epsilons, deltas = points(priced, flat)
    errors = np.empty_like(flat)
    step = max(1, _BLOCK // len(epsilons))
    for start in range(0, len(flat), step):
        errors[start : start + step] = type_two(epsilons, deltas, flat[start : start + step])
    return errors.reshape(rates.shape)


def true_positive_rate(priced: "Price", false_positive_rate: float) -> float:
    """The largest true positive rate of any attacker with the given false positive rate; rounded up.

    Raises:
        InvalidParameter: a probability outside [0, 1].

    Source: docs/explanation/risk.md#trade-off.
    """
    rate = _rate(false_positive_rate)
    return float(_power(*points(priced, rate), rate).min())


def advantage(priced: "Price") -> float:
    """The largest true minus false positive rate of any attacker: the total variation distance delta(0); rounded up.

    Source: Kulynych et al. 2024, section 3.1; docs/explanation/risk.md#advantage.
    """
    return priced.delta(0.0)


def success(priced: "Price", prior: float) -> float:
    """The largest probability of a correct guess if the unit was in the data with probability `prior`; rounded up.

    Raises:
        InvalidParameter: a prior outside (0, 1).

    Source: docs/explanation/risk.md#success.
    """
    prior = _prior(prior)
    likely, other = max(prior, 1.0 - prior), min(prior, 1.0 - prior)
    epsilon = math.log(likely / other) * (1.0 - 4.0 * _ULP)
    return min((likely + other * priced.delta(max(epsilon - 4.0 * _ULP, 0.0))) * (1.0 + 4.0 * _ULP), 1.0)


def belief(priced: "Price", prior: float, false_positive_rate: float) -> float:
    """The largest probability that an attacker's positive guess is correct (its precision); rounded up.

    The attacker has the given false positive rate, and the unit was in the data with probability `prior`. The posterior
    odds after a positive guess are the prior odds times the ratio of the true to the false positive rate.

    Raises:
        InvalidParameter: a prior outside (0, 1), a rate outside [0, 1].

    Source: docs/explanation/risk.md#belief.
    """
    prior = _prior(prior)
    rate = float(_rate(false_positive_rate)[0])
    log_ratio = priced.event.pure_epsilon()
    if rate > 0.0:
        log_ratio = min(log_ratio, math.log(true_positive_rate(priced, rate)) - math.log(rate))
    if log_ratio == math.inf:
        return 1.0
    log_odds = math.log(prior) - math.log1p(-prior) + log_ratio
    value = 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else math.exp(log_odds)
    return min(value * (1.0 + 16.0 * _ULP * (1.0 + abs(log_odds) + abs(log_ratio))), 1.0)


def in_words(
    privacy: "Price | Budget | float",
    delta: float | None = None,
    *,
    adjacency: Adjacency | None = None,
    unit: PrivacyUnit = PrivacyUnit.ROW,
    false_positive_rate: float = 0.01,
) -> str:
    """Say in two sentences what a privacy guarantee leaves to an attacker who knows all other units.

    The first sentence bounds how often such an attacker guesses right where a coin decides; the second one bounds the
    true positive rate at a small false positive rate. Percentages are rounded up.

    Args:
        privacy: what is explained.

            * a `Price`: its whole curve is used, which is the tightest bound, and tighter than that of its epsilon at
              one delta;
            * a `Budget`, or an epsilon in nats: all that follows from (epsilon, delta) alone. An infinite epsilon, as a
              seeded model states, is said to be no guarantee.
        delta: needed with an epsilon, and 0 for pure differential privacy. With a `Price`, its epsilon there is named
            first.
        adjacency: the relation of an epsilon; without it, the sentences speak of two neighbouring data sets. A `Price`
            and a `Budget` have theirs.
        unit: the kind of record that is protected.
        false_positive_rate: the second sentence's, in (0, 1).

    Raises:
        InvalidParameter: a value outside its bound, an epsilon without a delta, a `Budget` with one, or an adjacency
            beside a `Price` or a `Budget`.

    Source: docs/explanation/risk.md#in-words.
    """
    rate = _rate(false_positive_rate)
    if not 0.0 < rate[0] < 1.0:
        raise _validate.fail("false_positive_rate", false_positive_rate, "in (0, 1)", "probability")
    if isinstance(privacy, float | int | Real):
        if delta is None:
            raise InvalidParameter(f"epsilon={privacy!r} needs its delta: give delta=0.0 for pure differential privacy")
        if privacy != math.inf:
            privacy = _validate.non_negative("epsilon", privacy, "nats")
        delta = _validate.non_negative("delta", delta, "probability")
        if delta > 1.0:
            raise _validate.fail("delta", delta, "in [0, 1]", "probability")
        return _said(*_at_point(float(privacy), delta, rate), rate, adjacency, unit, _named(float(privacy), delta))
    if adjacency is not None:
        raise InvalidParameter(f"adjacency={adjacency!r} goes with an epsilon: {type(privacy).__name__} has its own")
    if isinstance(privacy, Budget):
        if delta is not None:
            raise InvalidParameter(f"delta={delta!r} goes with an epsilon or a Price: the budget has its own")
        epsilon, delta = privacy.epsilon, privacy.delta
        return _said(*_at_point(epsilon, delta, rate), rate, privacy.adjacency, unit, _named(epsilon, delta))
    named = "" if delta is None else _named(privacy.epsilon(delta), delta, "by the whole curve of the plan")
    power = float(_power(*points(privacy, rate), rate).min())
    return _said(success(privacy, 0.5), power, rate, privacy.event.adjacency, unit, named)


def total_in_words(
    epsilon: float, delta: float, *, adjacency: Adjacency, unit: PrivacyUnit, grants: int, reproducible: bool
) -> str:
    """Say what a ledger's total leaves to an attacker; errors as `in_words`.

    Args:
        epsilon, delta: the total of its grants.
        adjacency, unit: of the ledger.
        grants: how many plans were granted.
        reproducible: whether any draw used reproducible randomness.
    """
    if not grants:
        return "Nothing was granted, so nothing can have been learned from this ledger's releases."
    if reproducible:
        return "Draws used reproducible noise, which can be taken away again: this is no guarantee."
    return in_words(epsilon, delta, adjacency=adjacency, unit=unit)


def _at_point(epsilon: float, delta: float, rate: FloatArray) -> tuple[float, float]:
    """Success at even odds and the true positive rate at `rate`, of (epsilon, delta) alone; rounded up."""
    shrink = math.exp(-epsilon)
    advantage = (-math.expm1(-epsilon) + 2.0 * delta * shrink) / (1.0 + shrink)
    right = min(0.5 * (1.0 + advantage) * (1.0 + 8.0 * _ULP), 1.0)
    return right, float(_power(np.array([epsilon]), np.array([min(delta, 1.0)]), rate)[0, 0])


_GAMES = {
    Adjacency.ADD_REMOVE: "whether any one {unit} was in the data",
    Adjacency.ZERO_OUT: "whether any one {unit} was in the data or a null record in its place",
    Adjacency.REPLACE_ONE: "which of any two {unit}s was in the data",
    None: "which of two data sets that differ in one {unit} was used",
}


def _said(
    right: float, power: float, rate: FloatArray, adjacency: Adjacency | None, unit: PrivacyUnit, named: str
) -> str:
    game = _GAMES[adjacency].format(unit=unit.value)
    attacker = f"{named}an attacker who knows all other {unit.value}s and sees all results"
    if right >= 1.0:
        text = f"{attacker} may always be right about {game}: this is no guarantee."
    else:
        text = (
            f"{attacker} is right about {game} at most {_percent(right)} of the time, where a coin is right 50%. "
            f"At a false positive rate of {100.0 * float(rate[0]):.6g}%, the true positive rate is at most "
            f"{_percent(power)}."
        )
    return text[0].upper() + text[1:] if not named else text


def _named(epsilon: float, delta: float, by: str = "") -> str:
    if epsilon == math.inf:
        return "an infinite epsilon means: "
    return f"epsilon {_digits_up(epsilon)}{f' at delta {_digits_up(delta)}' if delta else ''} means{by and ', '}{by}: "


def _digits_up(value: float) -> str:
    """The value with four digits, rounded up."""
    exact = decimal.Decimal(repr(value)).normalize(decimal.Context(prec=4, rounding=decimal.ROUND_CEILING))
    return f"{float(exact):.4g}"


def _percent(probability: float) -> str:
    """A probability in percent, rounded up: to the first decimal, or to two digits where that is finer.

    The probability was rounded up before; its last bits are taken back, so that a half is 50%, and not 50.1%.
    """
    exact = Fraction(probability * (1.0 - 16.0 * _ULP)) * 100
    digits = max(1, 1 - math.floor(math.log10(exact)))
    return f"{math.ceil(exact * 10**digits) / 10**digits:.{digits}f}".rstrip("0").rstrip(".") + "%"


def _prior(prior: float) -> float:
    value = _validate.real("prior", prior, "probability")
    if not 0.0 < value < 1.0:
        raise _validate.fail("prior", prior, "in (0, 1)", "probability")
    return value


def _rate(value: float) -> FloatArray:
    rate = _validate.non_negative("false_positive_rate", value, "probability")
    if rate > 1.0:
        raise _validate.fail("false_positive_rate", value, "in [0, 1]", "probability")
    return np.array([rate])


def points(priced: "Price", rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilons and their deltas, shapes (m,), dense where some type I error of shape (k,) has its best epsilon."""
    quick = priced.method in _QUICK
    epsilons = np.linspace(0.0, _top(priced, rates), _MANY if quick else _FEW)
    if math.isfinite(pure := priced.event.pure_epsilon()):
        epsilons = np.union1d(epsilons, [pure])  # where delta ends is often best
    deltas = _deltas(priced, epsilons)
    wanted = np.unique(rates)[:: max(1, len(np.unique(rates)) // (_MANY if quick else _FEW))]
    for _ in range(_ROUNDS):
        best = np.unique(np.argmin(_power(epsilons, deltas, wanted), axis=1))
        middles = 0.5 * (epsilons[:-1] + epsilons[1:])
        fresh = middles[np.unique(np.clip(np.concatenate((best - 1, best)), 0, len(middles) - 1))]
        fresh = np.setdiff1d(fresh, epsilons)
        epsilons, deltas = np.concatenate((epsilons, fresh)), np.concatenate((deltas, _deltas(priced, fresh)))
        order = np.argsort(epsilons)
        epsilons, deltas = epsilons[order], deltas[order]
    return epsilons, deltas


def _top(priced: "Price", rates: FloatArray) -> float:
    """An epsilon beyond which no other is better: its delta is far below every error in question."""
    errors = np.concatenate((rates, 1.0 - rates))
    least = max(float(errors.min()), _LEAST_RATE)
    try:
        return priced.epsilon(1e-3 * least)
    except UnsupportedEvent:
        return -math.log(least)


def _deltas(priced: "Price", epsilons: FloatArray) -> FloatArray:
    logs = priced.log_deltas(epsilons)
    with np.errstate(invalid="ignore"):
        raised = np.exp(logs) * (1.0 + (np.abs(logs) + 4.0) * _ULP) + _TINY
    return np.where(np.isneginf(logs), 0.0, np.minimum(raised, 1.0))


def _power(epsilons: FloatArray, deltas: FloatArray, rates: FloatArray) -> FloatArray:
    """Bounds on the true positive rate at each rate (k,) from each epsilon (m,), shape (k, m); rounded up."""
    a = rates[:, None]
    shrink = np.exp(-epsilons)
    with np.errstate(over="ignore", invalid="ignore"):
        one = np.where(a > 0.0, deltas + np.exp(epsilons) * a, deltas)
    other = -np.expm1(-epsilons) + shrink * (deltas + a)
    power: FloatArray = np.minimum(np.minimum(one, other) * (1.0 + 8.0 * _ULP), 1.0)
    return power


def type_two(epsilons: FloatArray, deltas: FloatArray, rates: FloatArray) -> FloatArray:
    """The largest of the points' bounds on the type II error at each type I error (k,), shape (k,); rounded down."""
    a = rates[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.where(a > 0.0, np.exp(epsilons) * a, 0.0)
    one = 1.0 - (deltas + grown) * (1.0 + 8.0 * _ULP) - _ULP
    other = np.exp(-epsilons) * ((1.0 - a) * (1.0 - 8.0 * _ULP) - deltas)
    errors: FloatArray = np.maximum(np.maximum(one, other).max(axis=1), 0.0)
    return errors
