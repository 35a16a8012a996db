"""Gaussian differential privacy as a filter (docs/explanation/ledger.md#filters)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ledgerwood import _validate
from ledgerwood._directed import root_down, root_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters.charges import Charge, Remaining, Spent, total
from ledgerwood.errors import BudgetExceeded, InvalidParameter, UnsupportedEvent


@final
@dataclass(frozen=True, slots=True)
class GDPFilter:
    """Sum mu squared (Gaussian DP) over grants; the limit is the largest mu whose delta at the budget's epsilon fits.

    Source: Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023; proof in docs/explanation/ledger.md#filters.
    """

    @property
    def name(self) -> Literal["gdp"]:
        """The filter's name in a ledger file."""
        return "gdp"

    def check(self, budget: Budget) -> None:
        """The budget must have delta > 0.

        Raises:
            InvalidParameter: delta is 0.
        """
        if budget.delta == 0.0:
            raise _validate.fail("delta", budget.delta, "> 0: no mu > 0 has a finite epsilon at delta 0", "probability")

    def charge(self, event: Event, spent: Sequence[Charge], budget: Budget, delta: float | None) -> Charge:
        """The event's mu, rounded up.

        Raises:
            UnsupportedEvent: no mu whose trade-off curve dominates the event is known.
            InvalidParameter: a delta was given; mu needs none.
        """
        if delta is not None:
            raise InvalidParameter(f"delta={delta!r} must be None: GDPFilter charges mu, which holds at every delta")
        try:
            return Charge(mu=event.mu(), method="gdp")
        except UnsupportedEvent as error:
            raise UnsupportedEvent(f"GDPFilter takes events that are Gaussian pairs only: {error}") from error

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"mu"}:
            raise InvalidParameter(f"{charge!r} must be in mu (unit: currency)")

    def admit(self, spent: Sequence[Charge], new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sum of squares, the new charge included, is within the budget."""
        limit = _largest_mu(budget)
        if total(spent, "mu", 2) + Fraction(new.mu or 0.0) ** 2 <= Fraction(limit) ** 2:
            return
        left = self.remaining(spent, budget).mu or 0.0
        raise BudgetExceeded(
            f"the plan costs mu={new.mu!r}; the ledger has mu={left!r} left of mu={limit!r} "
            f"(unit: Gaussian-DP mu; squares of mu are summed)",
            requested={"mu": new.mu or 0.0},
            remaining={"mu": left},
        )

    def spent(self, charges: Sequence[Charge], budget: Budget) -> Spent:
        """The root of the sum of squares, and its epsilon at the budget's delta; rounded up."""
        mu = root_up(total(charges, "mu", 2))
        return Spent(epsilon=gdp.epsilon(mu, budget.delta), delta=budget.delta if charges else 0.0, mu=mu)

    def remaining(self, charges: Sequence[Charge], budget: Budget) -> Remaining:
        """The mu that one more grant may have, rounded down."""
        left = Fraction(_largest_mu(budget)) ** 2 - total(charges, "mu", 2)
        return Remaining(mu=root_down(max(left, Fraction())))


@functools.lru_cache(maxsize=64)
def _largest_mu(budget: Budget) -> float:
    """What every grant of a ledger is held against; a search of a millisecond."""
    return gdp.mu(budget.epsilon, budget.delta)
