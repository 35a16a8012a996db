"""Privacy filters by basic and by advanced composition, and the charge of a grant, which every filter sums.

A charge, a total and a remaining budget are in the filter's currency.
docs/explanation/ledger.md#filters, docs/explanation/ledger.md#whitehouse-filter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, final, get_args

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up, root_down, root_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.accounting.quotes import Route
from ledgerwood.errors import BudgetExceeded, InvalidParameter

ChargeMethod = Route | Literal["zcdp"]
"""How a charge was got; a name is never removed and never changes its meaning."""

Amount = Literal["epsilon", "delta", "mu", "rho", "divergence"]
"""The amounts that a charge may state."""

AMOUNTS: tuple[Amount, ...] = get_args(Amount)
_NOTHING = Fraction()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The privacy cost of one grant, in the currency of the ledger's filter; the other currencies' fields are None.

    Args:
        epsilon: nats; of `BasicFilter` and `AdvancedCompositionFilter`.
        delta: probability; of `BasicFilter` and `AdvancedCompositionFilter`.
        mu: the mu of `GDPFilter`.
        rho: nats; of `ZCDPFilter`.
        divergence: nats, at `order`; of `RenyiFilter`.
        method: the accounting method that gave the number.
        order: the Renyi order, > 1, where the method has one.

    Raises:
        InvalidParameter: an amount that is negative or not finite.
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    divergence: float | None = None
    method: ChargeMethod
    order: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.amounts().items():
            if value is not None:  # a negative charge would pay into the budget
                _validate.non_negative(name, value, "charge")

    def amounts(self) -> dict[str, float | None]:
        """Every currency by its name."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "rho": self.rho,
            "divergence": self.divergence,
        }

    def currency(self) -> frozenset[str]:
        """The names of the amounts that it states."""
        return frozenset(name for name, value in self.amounts().items() if value is not None)


@final
class Charges:
    """How many charges there were, and their exact sums. No charge is kept, so that its size does not grow with them.

    A sum of floats is a fraction whose denominator is a power of 2, of at most 2,148 bits, however many are added.

    Args:
        count: number of charges.
        sums: the sum of each amount that they state, and of its square, by (amount, power).
    """

    __slots__ = ("_count", "_sums")

    def __init__(self, count: int = 0, sums: Mapping[tuple[Amount, int], Fraction] = MappingProxyType({})) -> None:
        self._count, self._sums = count, dict(sums)

    def append(self, charge: Charge) -> None:
        """Add the next one."""
        stated = charge.amounts()
        for amount in AMOUNTS:
            value = stated[amount]
            if value is not None:
                exact = Fraction(value)
                for power, term in ((1, exact), (2, exact * exact)):
                    self._sums[amount, power] = self._sums.get((amount, power), _NOTHING) + term
        self._count += 1

    def total(self, amount: Amount, power: int) -> Fraction:
        """The sum as in `total`, for powers 1 and 2."""
        return self._sums.get((amount, power), _NOTHING)

    def copy(self) -> "Charges":
        """The same sums, to add others to."""
        return Charges(self._count, self._sums)

    def __len__(self) -> int:
        return self._count


Spending = Sequence[Charge] | Charges
"""The charges of a ledger, one by one or as their sums."""


def total(charges: Spending, amount: Amount, power: int = 1) -> Fraction:
    """The exact sum of one amount, or of its squares (power 2), over charges that state it; 0 for those that do not."""
    if isinstance(charges, Charges):
        return charges.total(amount, power)
    return sum((Fraction(charge.amounts()[amount] or 0.0) ** power for charge in charges), Fraction())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The total of a ledger's grants, rounded up.

    Args:
        epsilon: nats, at `delta`.
        delta: probability; the budget's where the currency holds at every delta (`GDPFilter`, `ZCDPFilter`,
            `RenyiFilter`).
        mu: the mu of `GDPFilter`, else None.
        rho: nats; of `ZCDPFilter`, else None.
        divergence: nats; of `RenyiFilter`, else None.
    """

    epsilon: float
    delta: float
    mu: float | None = None
    rho: float | None = None
    divergence: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The amount that a ledger can still grant, rounded down; the fields of the other currencies are None."""

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    divergence: float | None = None

    def at_most(self, other: "Remaining") -> "Remaining":
        """The smaller of each field; both are of one filter."""
        return Remaining(
            epsilon=_least(self.epsilon, other.epsilon), delta=_least(self.delta, other.delta),
            mu=_least(self.mu, other.mu), rho=_least(self.rho, other.rho),
            divergence=_least(self.divergence, other.divergence),
        )  # fmt: skip


def _least(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else min(a, b)


@final
@dataclass(frozen=True, slots=True)
class BasicFilter:
    """Sums of (epsilon_i, delta_i), exact; valid for adaptively chosen grants.

    Source: Rogers, Roth, Ullman, Vadhan 2016, Lemma 3.5; proof in docs/explanation/ledger.md#filters.
    """

    @property
    def name(self) -> Literal["basic"]:
        """The filter's name in a ledger file."""
        return "basic"

    def check(self, budget: Budget) -> None:
        """Any budget will do."""

    def charge(self, event: Event, spent: Spending, budget: Budget, delta: float | None) -> Charge:
        """The event's charge at `delta`. None means 0 for a pure event, and all the delta that remains for any other.

        Raises:
            BudgetExceeded: no delta remains for an event that is not pure.
            InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
        """
        return point_charge(event, self._left(spent, budget), delta)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"epsilon", "delta"}:
            raise InvalidParameter(f"{charge!r} must be in epsilon and delta (unit: currency)")

    def admit(self, spent: Spending, new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sums, the new charge included, are within the budget."""
        epsilon, delta = self._left(spent, budget)
        asked = (Fraction(new.epsilon or 0.0), Fraction(new.delta or 0.0))
        if asked[0] <= epsilon and asked[1] <= delta:
            return
        hint = "; a pure plan is charged at delta 0 unless delta= is given" if new.delta == 0.0 < delta else ""
        raise BudgetExceeded(
            f"the plan costs epsilon={new.epsilon!r} nats at delta={new.delta!r} (probability), by {new.method}; "
            f"the ledger has epsilon={float_down(epsilon)!r}, delta={float_down(delta)!r} left "
            f"of epsilon={budget.epsilon!r}, delta={budget.delta!r}{hint}",
            requested={"epsilon": new.epsilon or 0.0, "delta": new.delta or 0.0},
            remaining={"epsilon": float_down(epsilon), "delta": float_down(delta)},
        )

    def spent(self, charges: Spending, budget: Budget) -> Spent:
        """The total epsilon and delta of all grants, rounded up."""
        return Spent(
            epsilon=float_up(total(charges, "epsilon")),
            delta=float_up(total(charges, "delta")),
        )

    def remaining(self, charges: Spending, budget: Budget) -> Remaining:
        """The budget less the sums, rounded down."""
        epsilon, delta = self._left(charges, budget)
        return Remaining(epsilon=float_down(epsilon), delta=float_down(delta))

    def _left(self, charges: Spending, budget: Budget) -> tuple[Fraction, Fraction]:
        return (
            Fraction(budget.epsilon) - total(charges, "epsilon"),
            Fraction(budget.delta) - total(charges, "delta"),
        )


def point_charge(event: Event, left: tuple[Fraction, Fraction], delta: float | None) -> Charge:
    """The event's privacy cost at `delta`, where `left` is the epsilon and the delta that remain.

    Raises:
        BudgetExceeded: no delta remains for an event that is not pure.
        InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
    """
    if delta is None:
        delta = 0.0 if math.isfinite(event.pure_epsilon()) else float_down(left[1])
        if delta == 0.0 and not math.isfinite(event.pure_epsilon()):
            raise BudgetExceeded(
                "no delta remains (delta remaining: 0, unit: probability) and the event is not pure. A "
                "grant without delta= takes all the remaining delta: state a delta for each, grant(event, "
                "purpose=..., delta=1e-6)",
                requested={"epsilon": math.inf, "delta": 0.0},
                remaining={"epsilon": float_down(left[0]), "delta": 0.0},
            )
    quote = price(event).quote(delta)
    return Charge(epsilon=quote.epsilon, delta=quote.delta, method=quote.method, order=quote.order)


_DOWN, _UP = 1.0 - 2.0**-48, 1.0 + 2.0**-48  # more than the few roundings of a closed form without cancellation

_LARGEST = 1e150  # nats: its square is a float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdvancedCompositionFilter:
    """Adaptively chosen (epsilon_i, delta_i): with S the sum of epsilon_i squared, advanced composition without loss.

    Grants go on while sqrt(2 S log(1 / delta_prime)) + S / 2 <= epsilon and the sum of delta_i is at most
    delta - delta_prime.

    Source: Whitehouse, Ramdas, Rogers, Wu 2023; our proof, for (epsilon_i, delta_i) as they are, in
    docs/explanation/ledger.md#whitehouse-filter.

    Args:
        delta_prime: probability in (0, 1): the part of the budget's delta that advanced composition uses; the rest is
            for the grants.

    Raises:
        InvalidParameter: delta_prime outside its bound.
    """

    delta_prime: float

    def __post_init__(self) -> None:
        value = _validate.positive("delta_prime", self.delta_prime, "probability")
        if value >= 1.0:
            raise _validate.fail("delta_prime", self.delta_prime, "in (0, 1)", "probability")
        object.__setattr__(self, "delta_prime", value)

    @property
    def name(self) -> Literal["whitehouse"]:
        """The filter's name in a ledger file."""
        return "whitehouse"

    def check(self, budget: Budget) -> None:
        """The budget's delta must cover delta_prime.

        Raises:
            InvalidParameter: delta_prime is above the budget's delta, or the square of its epsilon is beyond floats.
        """
        if budget.epsilon > _LARGEST:
            raise _validate.fail("epsilon", budget.epsilon, f"at most {_LARGEST:g} under this filter", "nats")
        if self.delta_prime > budget.delta:
            raise _validate.fail("delta_prime", self.delta_prime, f"at most delta={budget.delta!r}", "probability")

    def charge(self, event: Event, spent: Spending, budget: Budget, delta: float | None) -> Charge:
        """The event's charge at `delta`. None means 0 for a pure event, and all the delta that remains for any other.

        Raises:
            BudgetExceeded: no delta remains for an event that is not pure.
            InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
        """
        squares, left = self._left(spent, budget)
        return point_charge(event, (Fraction(root_down(squares)), left), delta)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"epsilon", "delta"}:
            raise InvalidParameter(f"{charge!r} must be in epsilon and delta (unit: currency)")

    def admit(self, spent: Spending, new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sums, the new charge included, are within the budget."""
        squares, delta = self._left(spent, budget)
        asked = (Fraction(new.epsilon or 0.0) ** 2, Fraction(new.delta or 0.0))
        if asked[0] <= squares and asked[1] <= delta:
            return
        left = {"epsilon": root_down(squares), "delta": float_down(delta)}
        raise BudgetExceeded(
            f"the plan costs epsilon={new.epsilon!r} nats at delta={new.delta!r} (probability), by {new.method}; "
            f"one more grant may have epsilon={left['epsilon']!r}, delta={left['delta']!r} "
            f"(squares of epsilon are summed, and deltas)",
            requested={"epsilon": new.epsilon or 0.0, "delta": new.delta or 0.0},
            remaining=left,
        )

    def spent(self, charges: Spending, budget: Budget) -> Spent:
        """Epsilon of the sum of squares, and delta_prime more than the sum of the deltas; rounded up."""
        if not charges:
            return Spent(epsilon=0.0, delta=0.0)
        squares = total(charges, "epsilon", 2)
        root = root_up(squares)
        epsilon = (0.5 * root * root + root * math.sqrt(-2.0 * math.log(self.delta_prime))) * _UP
        if squares <= self._limit(budget):
            epsilon = min(epsilon, budget.epsilon)
        deltas = Fraction(self.delta_prime) + total(charges, "delta")
        return Spent(epsilon=epsilon, delta=float_up(deltas))

    def remaining(self, charges: Spending, budget: Budget) -> Remaining:
        """The epsilon and the delta that one more grant may have, rounded down."""
        squares, delta = self._left(charges, budget)
        return Remaining(epsilon=root_down(squares), delta=float_down(delta))

    def _left(self, charges: Spending, budget: Budget) -> tuple[Fraction, Fraction]:
        """The square of epsilon, and the delta, that one more grant may have."""
        deltas = Fraction(self.delta_prime) + total(charges, "delta")
        return max(self._limit(budget) - total(charges, "epsilon", 2), Fraction()), Fraction(budget.delta) - deltas

    def _limit(self, budget: Budget) -> Fraction:
        """The largest sum of squares: its root solves root**2 / 2 + root sqrt(2 log(1 / delta_prime)) = epsilon."""
        tail = -2.0 * math.log(self.delta_prime)
        root = 2.0 * budget.epsilon / (math.sqrt(tail + 2.0 * budget.epsilon) + math.sqrt(tail))
        return Fraction(root * _DOWN) ** 2
