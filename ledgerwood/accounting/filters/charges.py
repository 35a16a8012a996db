"""What grants cost, what they add up to and what is left, in the currencies of the filters."""

from dataclasses import dataclass
from typing import Literal, final

from ledgerwood.accounting.pricing import Route

ChargeMethod = Route | Literal["zcdp"]
"""How a charge was got; a name is never removed and never changes its meaning."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one grant costs, in the currency of the ledger's filter; the other currencies' fields are None.

    Args:
        epsilon: nats; of `BasicFilter` and `WhitehouseFilter`.
        delta: probability; of `BasicFilter` and `WhitehouseFilter`.
        mu: of `GDPFilter`.
        rho: nats; of `ZCDPFilter`.
        divergence: nats, at `order`; of `RenyiFilter`.
        method: what produced the number.
        order: the Renyi order, > 1, where the method has one.
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    divergence: float | None = None
    method: ChargeMethod
    order: float | None = None

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
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a ledger's grants add up to, rounded up.

    Args:
        epsilon: nats, at `delta`.
        delta: probability; the budget's where the currency holds at every delta (`GDPFilter`, `ZCDPFilter`,
            `RenyiFilter`).
        mu: of `GDPFilter`, else None.
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
    """What a ledger can still grant, rounded down; the fields of the other currencies are None."""

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    divergence: float | None = None
