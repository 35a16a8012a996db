"""Advanced composition as a filter (docs/explanation/ledger.md#whitehouse-filter)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up, root_down, root_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters.basic import point_charge
from ledgerwood.accounting.filters.charges import Charge, Remaining, Spent, total
from ledgerwood.errors import BudgetExceeded, InvalidParameter

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

    def charge(self, event: Event, spent: Sequence[Charge], budget: Budget, delta: float | None) -> Charge:
        """The event's charge at `delta`. None means 0 for a pure event, and all the delta that remains for any other.

        Raises:
            BudgetExceeded: no delta is left for an event that is not pure.
            InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
        """
        squares, left = self._left(spent, budget)
        return point_charge(event, (Fraction(root_down(squares)), left), delta)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"epsilon", "delta"}:
            raise InvalidParameter(f"{charge!r} must be in epsilon and delta (unit: currency)")

    def admit(self, spent: Sequence[Charge], new: Charge, budget: Budget) -> None:
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

    def spent(self, charges: Sequence[Charge], budget: Budget) -> Spent:
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

    def remaining(self, charges: Sequence[Charge], budget: Budget) -> Remaining:
        """The epsilon and the delta that one more grant may have, rounded down."""
        squares, delta = self._left(charges, budget)
        return Remaining(epsilon=root_down(squares), delta=float_down(delta))

    def _left(self, charges: Sequence[Charge], budget: Budget) -> tuple[Fraction, Fraction]:
        """The square of epsilon, and the delta, that one more grant may have."""
        deltas = Fraction(self.delta_prime) + total(charges, "delta")
        return max(self._limit(budget) - total(charges, "epsilon", 2), Fraction()), Fraction(budget.delta) - deltas

    def _limit(self, budget: Budget) -> Fraction:
        """The largest sum of squares: its root solves root**2 / 2 + root sqrt(2 log(1 / delta_prime)) = epsilon."""
        tail = -2.0 * math.log(self.delta_prime)
        root = 2.0 * budget.epsilon / (math.sqrt(tail + 2.0 * budget.epsilon) + math.sqrt(tail))
        return Fraction(root * _DOWN) ** 2
