"""Privacy filters: what adds up over plans chosen adaptively on one ledger (docs/explanation/ledger.md#filters).

A filter is a frozen value. It turns an event into a charge in its own currency, once, and says whether the charges
made so far and a new one stay within the budget. One (epsilon, delta) point is never turned into mu.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up, root_down, root_up
from ledgerwood.accounting import gdp
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import Route, price
from ledgerwood.errors import BudgetExceeded, InvalidParameter, UnsupportedEvent


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one grant costs, in the currency of the ledger's filter; the other currency's fields are None.

    Args:
        epsilon: nats; of `BasicFilter`.
        delta: probability; of `BasicFilter`.
        mu: of `GDPFilter`.
        method: what produced the number.
        order: the Renyi order, > 1, where the method has one.
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    method: Route
    order: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a ledger's grants add up to, rounded up.

    Args:
        epsilon: nats, at `delta`.
        delta: probability; for `GDPFilter` the budget's delta, at which `epsilon` is stated.
        mu: of `GDPFilter`, else None.
    """

    epsilon: float
    delta: float
    mu: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What a ledger can still grant, rounded down; the fields of the other currency are None."""

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None


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
        """The event's price at `delta`: None means all that remains for an event that is not pure, 0 for a pure one.

        Raises:
            BudgetExceeded: no delta is left for an event that is not pure.
            InvalidParameter: delta outside [0, 1), or 0 for an event that is not pure.
        """
        if delta is None:
            delta = 0.0 if math.isfinite(event.pure_epsilon()) else float_down(self._left(spent, budget)[1])
            if delta == 0.0 and not math.isfinite(event.pure_epsilon()):
                raise BudgetExceeded(
                    "no delta remains (delta remaining: 0, unit: probability) and the event is not pure",
                    requested={"epsilon": math.inf, "delta": 0.0},
                    remaining={"epsilon": float_down(self._left(spent, budget)[0]), "delta": 0.0},
                )
        quote = price(event).quote(delta)
        return Charge(epsilon=quote.epsilon, delta=quote.delta, method=quote.method, order=quote.order)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in mu."""
        if charge.epsilon is None or charge.delta is None or charge.mu is not None:
            raise InvalidParameter(f"{charge!r} must be in epsilon and delta (unit: currency)")

    def admit(self, spent: Sequence[Charge], new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sums, the new charge included, are within the budget."""
        epsilon, delta = self._left(spent, budget)
        asked = (Fraction(new.epsilon or 0.0), Fraction(new.delta or 0.0))
        if asked[0] <= epsilon and asked[1] <= delta:
            return
        hint = "; a pure plan is priced at delta 0 unless delta= is given" if new.delta == 0.0 < delta else ""
        raise BudgetExceeded(
            f"the plan costs epsilon={new.epsilon!r} nats at delta={new.delta!r} (probability), by {new.method}; "
            f"the ledger has epsilon={float_down(epsilon)!r}, delta={float_down(delta)!r} left "
            f"of epsilon={budget.epsilon!r}, delta={budget.delta!r}{hint}",
            requested={"epsilon": new.epsilon or 0.0, "delta": new.delta or 0.0},
            remaining={"epsilon": float_down(epsilon), "delta": float_down(delta)},
        )

    def spent(self, charges: Sequence[Charge], budget: Budget) -> Spent:
        """The sums, rounded up."""
        return Spent(
            epsilon=float_up(sum((Fraction(c.epsilon or 0.0) for c in charges), Fraction())),
            delta=float_up(sum((Fraction(c.delta or 0.0) for c in charges), Fraction())),
        )

    def remaining(self, charges: Sequence[Charge], budget: Budget) -> Remaining:
        """The budget less the sums, rounded down."""
        epsilon, delta = self._left(charges, budget)
        return Remaining(epsilon=float_down(epsilon), delta=float_down(delta))

    def _left(self, charges: Sequence[Charge], budget: Budget) -> tuple[Fraction, Fraction]:
        return (
            Fraction(budget.epsilon) - sum((Fraction(c.epsilon or 0.0) for c in charges), Fraction()),
            Fraction(budget.delta) - sum((Fraction(c.delta or 0.0) for c in charges), Fraction()),
        )


@final
@dataclass(frozen=True, slots=True)
class GDPFilter:
    """The sum of mu_i squared, against the largest mu whose curve passes under the budget's point.

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
        """Refuse a charge in epsilon and delta."""
        if charge.mu is None or charge.epsilon is not None or charge.delta is not None:
            raise InvalidParameter(f"{charge!r} must be in mu (unit: currency)")

    def admit(self, spent: Sequence[Charge], new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sum of squares, the new charge included, is within the budget."""
        limit = gdp.mu(budget.epsilon, budget.delta)
        if self._squares([*spent, new]) <= Fraction(limit) ** 2:
            return
        left = self.remaining(spent, budget).mu or 0.0
        raise BudgetExceeded(
            f"the plan costs mu={new.mu!r}; the ledger has mu={left!r} left of mu={limit!r} "
            f"(unit: Gaussian-DP mu; the squares add up)",
            requested={"mu": new.mu or 0.0},
            remaining={"mu": left},
        )

    def spent(self, charges: Sequence[Charge], budget: Budget) -> Spent:
        """The root of the sum of squares, and its epsilon at the budget's delta; rounded up."""
        mu = root_up(self._squares(charges))
        return Spent(epsilon=gdp.epsilon(mu, budget.delta), delta=budget.delta if charges else 0.0, mu=mu)

    def remaining(self, charges: Sequence[Charge], budget: Budget) -> Remaining:
        """The mu that one more grant may have, rounded down."""
        left = Fraction(gdp.mu(budget.epsilon, budget.delta)) ** 2 - self._squares(charges)
        return Remaining(mu=root_down(max(left, Fraction())))

    def _squares(self, charges: Sequence[Charge]) -> Fraction:
        return sum((Fraction(c.mu or 0.0) ** 2 for c in charges), Fraction())


Filter = BasicFilter | GDPFilter
"""The closed set of filters."""


def filter_named(name: str) -> Filter:
    """The filter that a ledger file names."""
    for candidate in (BasicFilter(), GDPFilter()):
        if candidate.name == name:
            return candidate
    raise InvalidParameter(f"filter={name!r} must be one of 'basic', 'gdp' (unit: name)")
