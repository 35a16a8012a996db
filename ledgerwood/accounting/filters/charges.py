"""Charges of grants, their totals and the remaining budget, in the currencies of the filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final, overload

from ledgerwood.accounting.quotes import Route

ChargeMethod = Route | Literal["zcdp"]
"""How a charge was got; a name is never removed and never changes its meaning."""

Amount = Literal["epsilon", "delta", "mu", "rho", "divergence"]
"""The amounts that a charge may state."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The privacy cost of one grant, in the currency of the ledger's filter; the other currencies' fields are None.

    Args:
        epsilon: nats; of `BasicFilter` and `AdvancedCompositionFilter`.
        delta: probability; of `BasicFilter` and `AdvancedCompositionFilter`.
        mu: of `GDPFilter`.
        rho: nats; of `ZCDPFilter`.
        divergence: nats, at `order`; of `RenyiFilter`.
        method: the accounting method that gave the number.
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
class Charges(Sequence[Charge]):
    """Charges in the order in which they were made; each sum that was asked for is kept, exactly, and goes on."""

    __slots__ = ("_charges", "_sums")

    def __init__(self) -> None:
        self._charges: list[Charge] = []
        self._sums: dict[tuple[Amount, int], tuple[int, Fraction]] = {}  # how many were added up, and their sum

    def append(self, charge: Charge) -> None:
        """Add the next one."""
        self._charges.append(charge)

    def total(self, amount: Amount, power: int) -> Fraction:
        """The sum as in `total`; only the charges since the last call are added."""
        done, before = self._sums.get((amount, power), (0, Fraction()))
        upto = len(self._charges)  # before they are read: another thread may append
        found = before + total(self._charges[done:upto], amount, power)
        self._sums[amount, power] = (upto, found)
        return found

    def __len__(self) -> int:
        return len(self._charges)

    @overload
    def __getitem__(self, place: int) -> Charge: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Charge]: ...
    def __getitem__(self, place: int | slice) -> Charge | Sequence[Charge]:
        return self._charges[place]


def total(charges: Sequence[Charge], amount: Amount, power: int = 1) -> Fraction:
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
