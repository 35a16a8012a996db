"""A second implementation of the filters: sums, limits and totals, in mpmath (docs/explanation/ledger.md#filters).

A charge has two amounts that add up: its main one (epsilon, its square, mu squared, rho, a divergence) and its delta.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ledgerwood.verification.ledgers.atoms import least_between, mp, mpf
from ledgerwood.verification.ledgers.bounds.divergences import conversion
from ledgerwood.verification.ledgers.bounds.gaussians import gaussian_delta, gaussian_epsilon

SLACK = 1e-9
"""Relative room for a recorded number below the verifier's own lower bound."""

Amounts = tuple[Fraction, Fraction]

ORDERS = (1 + 1e-6, 1 + 1e6)
"""Where divergences are looked at: nearer to 1 no float holds them, and the library itself uses no others."""
_PARAMETER = {"renyi": "order", "whitehouse": "delta_prime"}
_PLAIN = ("basic", "gdp", "zcdp")
_ORDERS = 96


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """A filter as a ledger states it: its name, and the parameter of those that have one."""

    name: str
    parameter: float = math.nan

    def amounts(self, charge: dict[str, Any]) -> Amounts:
        """What one charge adds."""
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
        """What a charge adds if it counts as the larger of itself and the verifier's own bound; None for infinity."""
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
        """Returns whether a total is within (epsilon, delta); `SLACK` where a limit is no rational number."""
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
