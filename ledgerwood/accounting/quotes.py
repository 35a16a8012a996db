"""The parts of a privacy cost: the methods by name, the source of each, and one point of a curve."""

from dataclasses import dataclass
from typing import Literal, final

from ledgerwood.accounting.events.base import Event

Route = Literal["profile", "renyi", "gdp", "pure", "unsampled", "pld"]
"""How a number was got, as ledgers store it: a name is never removed and never changes its meaning."""
Curve = Literal["profile", "renyi", "gdp", "pure", "pld"]
"""How a whole curve is got; single points of it may be cut off by another route."""
Method = Literal["tightest", "profile", "renyi", "gdp", "pure", "pld"]
"""What one may ask for."""

SOURCES: dict[Route, str] = {
    "profile": "exact inversion of the event's own privacy profile in both directions, the larger one at the end",
    "renyi": "exact Renyi divergences, the best real order, Canonne-Kamath-Steinke 2020, Proposition 12",
    "gdp": "the profile of the Gaussian pair of the event's mu, Dong-Roth-Su 2019, Corollary 2.13",
    "pld": "the privacy losses of all draws on a lattice, composed; connect the dots, Doroshenko et al. 2022",
    "unsampled": "the exact profile of the same plan with every unit in every sample, which dominates it",
    "pure": "the sum of pure epsilons; at delta > 0 the randomised-response pair, Kairouz-Oh-Viswanath 2015",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One point of a privacy cost, as a ledger stores it.

    Args:
        epsilon: in nats, rounded up, >= 0.
        delta: the probability that it was asked at.
        method: the method that gave this number. A bound by Renyi divergences is replaced by the pure sum, or by the
            bound of the unsampled plan, if that is lower; this field then names it.
        order: the Renyi order, > 1, where the method has one.
        certified: whether the number is a proven upper bound.
    """

    epsilon: float
    delta: float
    method: Route
    order: float | None
    certified: bool


def short(event: Event) -> str:
    """The event in at most 200 characters."""
    text = repr(event)
    return text if len(text) <= 200 else text[:197] + "..."
