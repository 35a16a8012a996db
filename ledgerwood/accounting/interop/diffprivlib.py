"""What diffprivlib's BudgetAccountant has recorded, as an event. docs/explanation/interop.md#diffprivlib.

Nothing of diffprivlib is imported: an accountant is known by its class.
"""

from collections import Counter
from typing import Any

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.stated import ApproximateEvent
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_LEAST_EPSILON = 1e-100


def from_diffprivlib(accountant: object, *, adjacency: Adjacency) -> Event:
    """The spends of a `diffprivlib.BudgetAccountant` as one event, each of them stated and not proven here.

    Args:
        accountant: the accountant; its `spent_budget` is read. Its budget and its slack play no part.
        adjacency: the relation under which *all* of its spends hold, by your word. diffprivlib does not name one, and
            its tools differ: a mean is stated for a row that is replaced, a histogram for one that is added or removed.

    Raises:
        InvalidParameter: not a BudgetAccountant, or a spend outside its bounds.
        UnsupportedEvent: nothing was spent, or an infinite epsilon was.
    """
    require_adjacency(adjacency)
    known = any(
        c.__name__ == "BudgetAccountant" and c.__module__ == "diffprivlib.accountant" for c in type(accountant).__mro__
    )
    if not known:
        raise _validate.fail("accountant", accountant, "a diffprivlib.BudgetAccountant", "accountant")
    spends: Any = accountant
    counts = Counter((_number("epsilon", epsilon), _number("delta", delta)) for epsilon, delta in spends.spent_budget)
    parts: list[Event] = []
    for (epsilon, delta), count in counts.items():
        if delta >= 1.0:
            raise UnsupportedEvent(f"a spend of delta={delta!r}: a release without privacy has no finite cost")
        if delta > 0.0:
            event: Event = ApproximateEvent(epsilon=max(epsilon, _LEAST_EPSILON), delta=delta, adjacency=adjacency)
        elif epsilon > 0.0:
            event = PureEvent(epsilon=epsilon, adjacency=adjacency)
        else:
            continue
        parts.append(event if count == 1 else Repeated(event, count=count))
    if not parts:
        raise UnsupportedEvent("the accountant has spent nothing: it has no event")
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def _number(name: str, value: object) -> float:
    try:
        return _validate.non_negative(name, value, "nats" if name == "epsilon" else "probability")
    except InvalidParameter:
        if value == float("inf"):
            raise UnsupportedEvent(f"a spend of {name}=inf: a release without privacy has no finite cost") from None
        raise
