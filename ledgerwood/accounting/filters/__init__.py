"""Privacy filters: composition of adaptively chosen plans on one ledger (docs/explanation/ledger.md#filters).

A filter is a frozen value. It turns an event into a charge in its own currency, once, and says whether the charges
made so far and a new one stay within the budget. One (epsilon, delta) point is never turned into mu, rho or a
divergence.
"""

from ledgerwood.accounting.filters.basic import AdvancedCompositionFilter as AdvancedCompositionFilter
from ledgerwood.accounting.filters.basic import Amount as Amount
from ledgerwood.accounting.filters.basic import BasicFilter as BasicFilter
from ledgerwood.accounting.filters.basic import Charge as Charge
from ledgerwood.accounting.filters.basic import ChargeMethod as ChargeMethod
from ledgerwood.accounting.filters.basic import Charges as Charges
from ledgerwood.accounting.filters.basic import Remaining as Remaining
from ledgerwood.accounting.filters.basic import Spending as Spending
from ledgerwood.accounting.filters.basic import Spent as Spent
from ledgerwood.accounting.filters.renyi import GDPFilter as GDPFilter
from ledgerwood.accounting.filters.renyi import RenyiFilter as RenyiFilter
from ledgerwood.accounting.filters.renyi import ZCDPFilter as ZCDPFilter
from ledgerwood.errors import InvalidParameter

Filter = BasicFilter | ZCDPFilter | GDPFilter | RenyiFilter | AdvancedCompositionFilter
"""The closed set of filters."""

_PLAIN: tuple[Filter, ...] = (BasicFilter(), ZCDPFilter(), GDPFilter())


def filter_record(value: Filter) -> str | dict[str, object]:
    """Returns a filter's record in a ledger file: its name, or its name with its parameters."""
    match value:
        case RenyiFilter():
            return {"name": value.name, "order": value.order}
        case AdvancedCompositionFilter():
            return {"name": value.name, "delta_prime": value.delta_prime}
    return value.name


def filter_from(record: object) -> Filter:
    """The filter that a ledger file states.

    Raises:
        InvalidParameter: it is not a known filter, or has other parameters.
    """
    for candidate in _PLAIN:
        if record == candidate.name:
            return candidate
    match record:
        case {"name": "renyi", "order": float(order), **rest} if not rest:
            return RenyiFilter(order=order)
        case {"name": "whitehouse", "delta_prime": float(delta_prime), **rest} if not rest:
            return AdvancedCompositionFilter(delta_prime=delta_prime)
    raise InvalidParameter(
        f"filter={record!r} must be 'basic', 'gdp', 'zcdp', or the record of 'renyi' with its order or of 'whitehouse' "
        "with its delta_prime (unit: filter)"
    )


def sums_of(value: Filter) -> tuple[tuple[str, Amount, int], ...]:
    """The sums that a filter decides by: the name of each in a checkpoint, and the amount and power that are added."""
    match value:
        case BasicFilter():
            return ("epsilon", "epsilon", 1), ("delta", "delta", 1)
        case AdvancedCompositionFilter():
            return ("epsilon_squared", "epsilon", 2), ("delta", "delta", 1)
        case GDPFilter():
            return (("mu_squared", "mu", 2),)
        case ZCDPFilter():
            return (("rho", "rho", 1),)
        case RenyiFilter():
            return (("divergence", "divergence", 1),)


def nothing_of(value: Filter) -> Charge:
    """A charge of nothing, in a filter's currency."""
    match value:
        case BasicFilter() | AdvancedCompositionFilter():
            return Charge(epsilon=0.0, delta=0.0, method="pure")
        case GDPFilter():
            return Charge(mu=0.0, method="gdp")
        case ZCDPFilter():
            return Charge(rho=0.0, method="zcdp")
        case RenyiFilter():
            return Charge(divergence=0.0, method="renyi", order=value.order)
