"""Basic composition as a filter (docs/explanation/ledger.md#filters)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ledgerwood._directed import float_down, float_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters.charges import Charge, Remaining, Spent, total
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import BudgetExceeded, InvalidParameter


@final
@dataclass(frozen=True, slots=True)
class BasicFilter:
    """Sums of (epsilon_i, delta_i), exact; valid for adaptively chosen grants.

    Source: Rogers, Roth, Ullman, Vadhan 2016 (basic composition is a filter); docs/explanation/ledger.md#filters.
    """

    @property
    def name(self) -> Literal["basic"]:
        """The filter's name in a ledger file."""
        return "basic"

    def check(self, budget: Budget) -> None:
        """Any budget will do."""

    def charge(self, event: Event, spent: Sequence[Charge], budget: Budget, delta: float | None) -> Charge:
        """The event's charge at `delta`. None means 0 for a pure event, and all the delta that remains for any other.

        Raises:
            BudgetExceeded: no delta is left for an event that is not pure.
            InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
        """
        return point_charge(event, self._left(spent, budget), delta)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"epsilon", "delta"}:
            raise InvalidParameter(f"{charge!r} must be in epsilon and delta (unit: currency)")

    def admit(self, spent: Sequence[Charge], new: Charge, budget: Budget) -> None:
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

    def spent(self, charges: Sequence[Charge], budget: Budget) -> Spent:
        """The total epsilon and delta of all grants, rounded up."""
        return Spent(
            epsilon=float_up(total(charges, "epsilon")),
            delta=float_up(total(charges, "delta")),
        )

    def remaining(self, charges: Sequence[Charge], budget: Budget) -> Remaining:
        """The budget less the sums, rounded down."""
        epsilon, delta = self._left(charges, budget)
        return Remaining(epsilon=float_down(epsilon), delta=float_down(delta))

    def _left(self, charges: Sequence[Charge], budget: Budget) -> tuple[Fraction, Fraction]:
        return (
            Fraction(budget.epsilon) - total(charges, "epsilon"),
            Fraction(budget.delta) - total(charges, "delta"),
        )


def point_charge(event: Event, left: tuple[Fraction, Fraction], delta: float | None) -> Charge:
    """The event's privacy cost at `delta`, where `left` is the epsilon and the delta that remain.

    Raises:
        BudgetExceeded: no delta is left for an event that is not pure.
        InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
    """
    if delta is None:
        delta = 0.0 if math.isfinite(event.pure_epsilon()) else float_down(left[1])
        if delta == 0.0 and not math.isfinite(event.pure_epsilon()):
            raise BudgetExceeded(
                "no delta remains (delta remaining: 0, unit: probability) and the event is not pure. A grant without "
                "delta= takes all that is left: name one for each, grant(event, purpose=..., delta=1e-6)",
                requested={"epsilon": math.inf, "delta": 0.0},
                remaining={"epsilon": float_down(left[0]), "delta": 0.0},
            )
    quote = price(event).quote(delta)
    return Charge(epsilon=quote.epsilon, delta=quote.delta, method=quote.method, order=quote.order)
