"""Privacy filters in three currencies: zero-concentrated privacy, one order of Renyi divergence, Gaussian privacy.

docs/explanation/ledger.md#filters.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up, root_down, root_up
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.costs import concentrated, conversion, gdp
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters.basic import Charge, Remaining, Spending, Spent, total
from ledgerwood.errors import BudgetExceeded, InvalidParameter, UnsupportedEvent


@final
@dataclass(frozen=True, slots=True)
class ZCDPFilter:
    """Sum zCDP's rho over grants; the limit is the largest rho whose epsilon at the budget's delta fits.

    Source: Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1; our proof, from the filter of each single order
    (Feldman, Zrnic 2021, Theorem 4.3), in docs/explanation/ledger.md#zcdp-filter.
    """

    @property
    def name(self) -> Literal["zcdp"]:
        """The filter's name in a ledger file."""
        return "zcdp"

    def check(self, budget: Budget) -> None:
        """Some rho must fit.

        Raises:
            InvalidParameter: delta is 0, or the budget too small for any.
        """
        concentrated.largest_rho(budget.epsilon, budget.delta)

    def charge(self, event: Event, spent: Spending, budget: Budget, delta: float | None) -> Charge:
        """The event's rho, rounded up.

        Raises:
            UnsupportedEvent: no rho is proven for the event.
            InvalidParameter: a delta was given; rho needs none.
        """
        _refuse_delta(delta, "ZCDPFilter charges rho")
        try:
            return Charge(rho=concentrated.rho(event), method="zcdp")
        except UnsupportedEvent as error:
            raise UnsupportedEvent(f"ZCDPFilter accepts only events with a proven rho: {error}") from error

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"rho"}:
            raise InvalidParameter(f"{charge!r} must be in rho (unit: currency)")

    def admit(self, spent: Spending, new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sum of rho, the new charge included, is within the budget."""
        limit = concentrated.largest_rho(budget.epsilon, budget.delta)
        if total(spent, "rho") + Fraction(new.rho or 0.0) <= Fraction(limit):
            return
        left = self.remaining(spent, budget).rho or 0.0
        raise BudgetExceeded(
            f"the plan costs rho={new.rho!r}; the ledger has rho={left!r} left of rho={limit!r} (unit: nats, zCDP)",
            requested={"rho": new.rho or 0.0},
            remaining={"rho": left},
        )

    def spent(self, charges: Spending, budget: Budget) -> Spent:
        """The sum, and its epsilon at the budget's delta; rounded up."""
        rhos = total(charges, "rho")
        rho = float_up(rhos)
        epsilon = concentrated.epsilon(rho, budget.delta)
        if rhos <= Fraction(concentrated.largest_rho(budget.epsilon, budget.delta)):
            epsilon = min(epsilon, budget.epsilon)
        return Spent(epsilon=epsilon, delta=budget.delta if charges else 0.0, rho=rho)

    def remaining(self, charges: Spending, budget: Budget) -> Remaining:
        """The rho that one more grant may have, rounded down."""
        left = Fraction(concentrated.largest_rho(budget.epsilon, budget.delta)) - total(charges, "rho")
        return Remaining(rho=float_down(max(left, Fraction())))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiFilter:
    """Sum Renyi divergences of one order, fixed at the opening; the limit is the largest sum that fits the budget.

    Source: Feldman, Zrnic 2021, Theorem 4.3; our proof in docs/explanation/ledger.md#renyi-filter.

    Args:
        order: in [1 + 1e-6, 1 + 1e6]; a public choice, before any output is seen.

    Raises:
        InvalidParameter: an order outside its bound.
    """

    order: float

    def __post_init__(self) -> None:
        order = _validate.real("order", self.order, "Renyi order")
        if not conversion.LEAST_ORDER <= order <= conversion.LARGEST_ORDER:
            bound = f"in [{conversion.LEAST_ORDER!r}, {conversion.LARGEST_ORDER!r}]"
            raise _validate.fail("order", self.order, bound, "Renyi order")
        object.__setattr__(self, "order", order)

    @property
    def name(self) -> Literal["renyi"]:
        """The filter's name in a ledger file."""
        return "renyi"

    def check(self, budget: Budget) -> None:
        """Some divergence must fit at this order.

        Raises:
            InvalidParameter: delta is 0, or none fits.
        """
        self._limit(budget)

    def charge(self, event: Event, spent: Spending, budget: Budget, delta: float | None) -> Charge:
        """The event's divergence, the larger direction, rounded up.

        Raises:
            UnsupportedEvent: the divergence is infinite.
            InvalidParameter: a delta was given; a divergence needs none.
        """
        _refuse_delta(delta, "RenyiFilter charges a divergence")
        divergence = float(event.renyi(np.array([self.order]))[0])
        if not math.isfinite(divergence):
            raise UnsupportedEvent(f"{event!r} has an infinite Renyi divergence of order {self.order!r}")
        return Charge(divergence=max(divergence, 0.0), method="renyi", order=self.order)

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency, or of another order."""
        if charge.currency() != {"divergence"} or charge.order != self.order:
            raise InvalidParameter(f"{charge!r} must be a divergence of order {self.order!r} (unit: currency)")

    def admit(self, spent: Spending, new: Charge, budget: Budget) -> None:
        """Raise BudgetExceeded unless the sum of divergences, the new charge included, is within the budget."""
        limit = self._limit(budget)
        if total(spent, "divergence") + Fraction(new.divergence or 0.0) <= Fraction(limit):
            return
        left = self.remaining(spent, budget).divergence or 0.0
        raise BudgetExceeded(
            f"the plan costs a divergence of {new.divergence!r}; the ledger has {left!r} left of {limit!r} "
            f"(unit: nats, Renyi divergence of order {self.order!r})",
            requested={"divergence": new.divergence or 0.0},
            remaining={"divergence": left},
        )

    def spent(self, charges: Spending, budget: Budget) -> Spent:
        """The sum, and its epsilon at the budget's delta; rounded up."""
        divergences = total(charges, "divergence")
        if divergences == 0:
            return Spent(epsilon=0.0, delta=budget.delta if charges else 0.0, divergence=0.0)
        divergence = float_up(divergences)
        found = conversion.renyi_epsilons(np.array([self.order]), np.array([divergence]), math.log(budget.delta))
        epsilon = max(float(found[0]), 0.0)
        if divergences <= Fraction(self._limit(budget)):
            epsilon = min(epsilon, budget.epsilon)
        return Spent(epsilon=epsilon, delta=budget.delta, divergence=divergence)

    def remaining(self, charges: Spending, budget: Budget) -> Remaining:
        """The divergence that one more grant may have, rounded down."""
        left = Fraction(self._limit(budget)) - total(charges, "divergence")
        return Remaining(divergence=float_down(max(left, Fraction())))

    def _limit(self, budget: Budget) -> float:
        if budget.delta == 0.0:
            raise _validate.fail("delta", budget.delta, "> 0: no divergence has a finite epsilon there", "probability")
        order = np.array([self.order])
        limit = float(conversion.renyi_divergences(order, budget.epsilon, math.log(budget.delta))[0])
        if limit <= 0.0:
            raise InvalidParameter(
                f"order={self.order!r} must be larger: there no divergence above 0 has epsilon={budget.epsilon!r} nats "
                f"at delta={budget.delta!r} (unit: Renyi order)"
            )
        return limit


def _refuse_delta(delta: float | None, what: str) -> None:
    if delta is not None:
        raise InvalidParameter(f"delta={delta!r} must be None: {what}, which needs none")


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

    def charge(self, event: Event, spent: Spending, budget: Budget, delta: float | None) -> Charge:
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
            raise UnsupportedEvent(f"GDPFilter accepts only events that are Gaussian pairs: {error}") from error

    def require_currency(self, charge: Charge) -> None:
        """Refuse a charge in another currency."""
        if charge.currency() != {"mu"}:
            raise InvalidParameter(f"{charge!r} must be in mu (unit: currency)")

    def admit(self, spent: Spending, new: Charge, budget: Budget) -> None:
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

    def spent(self, charges: Spending, budget: Budget) -> Spent:
        """The root of the sum of squares, and its epsilon at the budget's delta; rounded up."""
        mu = root_up(total(charges, "mu", 2))
        return Spent(epsilon=gdp.epsilon(mu, budget.delta), delta=budget.delta if charges else 0.0, mu=mu)

    def remaining(self, charges: Spending, budget: Budget) -> Remaining:
        """The mu that one more grant may have, rounded down."""
        left = Fraction(_largest_mu(budget)) ** 2 - total(charges, "mu", 2)
        return Remaining(mu=root_down(max(left, Fraction())))


@functools.lru_cache(maxsize=64)
def _largest_mu(budget: Budget) -> float:
    """What every grant of a ledger is held against; a search of a millisecond."""
    return gdp.mu(budget.epsilon, budget.delta)
