"""Which plans a federation carries out. Everything else is refused before anybody pays.

docs/explanation/federation.md#federation-rounds.
"""

from collections import Counter

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FilteredEvent,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PureEvent,
    RandomAllocation,
    Repeated,
    RepeatedSelection,
    SkellamEvent,
    SkellamVectorEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.base import children
from ledgerwood.errors import RoundViolation

DRAWS: tuple[type[Event], ...] = (PoissonSampled, Parallel, FilteredEvent)
"""Draws that owners make of their rows; what is released from a draw is inside. Any other draw is of all rows."""
RELEASES = frozenset({
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
    SkellamVectorEvent,
    ZeroConcentratedEvent,
})  # fmt: skip
"""Releases of sums over rows: those of the mechanisms for sums, and of private choices among them."""
OF_ALL_ROWS = frozenset({ApproximateEvent})
"""Releases that are of no draw: what a choice of categories costs in delta, where the schema is estimated."""
MOST_DRAWS = 100_000
"""Of a plan: an owner writes each of them to its ledger, and 10**12 draws that cost nothing would never end."""
NO_ALLOCATION = (
    "a federation's owners allocate no rows to steps: set sampling='poisson', whose coins each owner tosses alone"
)
_INSTEAD = {
    PoissonSelection: ": a private search needs rows in one place",
    RepeatedSelection: ": a private search needs rows in one place",
    RandomAllocation: f": {NO_ALLOCATION}",
}


def require_plain(event: Event) -> None:
    """Refuse a plan with a draw or a release that a federation does not carry out, or with too many draws.

    Raises:
        RoundViolation: it names the first such event, or the number of draws.
    """
    draws = sum(count for _, count in event.draws())
    if draws > MOST_DRAWS:
        raise RoundViolation(
            f"the plan has {draws} draws, and a federation carries out at most {MOST_DRAWS}: each owner writes each of "
            "them to its ledger. Nothing was spent"
        )
    for draw, _ in event.draws():
        for inside in _insides(draw):
            for each, _ in inside.draws():
                allowed = RELEASES if type(draw) in DRAWS else RELEASES | OF_ALL_ROWS
                if type(each) not in allowed:
                    within = f" within {type(draw).__name__}" if type(draw) in DRAWS else ""
                    raise RoundViolation(
                        f"a federation does not carry out {type(each).__name__}{within}"
                        f"{_INSTEAD.get(type(each), '')}. Nothing was spent"
                    )


def _insides(draw: Event) -> tuple[Event, ...]:
    """What is released from a draw."""
    if type(draw) is FilteredEvent:
        return (draw.release,)  # of each round's own sample; the limit is no release
    return children(draw) if type(draw) in DRAWS else (draw,)


def require_planned(plan: Event, drawn: Event) -> None:
    """Refuse an event with draws that the plan does not have, before anything is counted out one by one.

    Raises:
        RoundViolation: it names the first such draw.
    """
    left = Counter[Event]()
    for part, count in plan.draws():
        left[part] += count
    for part, count in drawn.draws():
        left[part] -= count
        if left[part] < 0:
            raise RoundViolation(f"the plan does not have as many draws of {part!r} as are asked for")


def require_whole(event: Event) -> None:
    """Refuse a plan that does not protect a client's whole contribution at the cost of a row's.

    Raises:
        RoundViolation: replaced clients, or a release whose cost is not by an L2 norm alone; it names the first one.
    """
    if event.adjacency is Adjacency.REPLACE_ONE:
        raise RoundViolation(
            "unit=PrivacyUnit.USER is for adjacency 'add-remove' or 'zero-out', not 'replace-one': the contributions "
            "of two clients differ by more than those of two rows"
        )
    waiting = [event]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Composed | Repeated):
            waiting.extend(reversed(children(each)))
        elif not isinstance(each, GaussianEvent | EllipticalGaussianEvent | SkellamVectorEvent):
            raise RoundViolation(
                f"unit=PrivacyUnit.USER needs Gaussian or Skellam noise on sums over all rows, and the plan has "
                f"{each!r}: use S-GBDT without subsample, or the federated framework with public candidates. A client "
                "of many rows is in every sample of rows, so that samples and groups do not make it cost less"
            )
