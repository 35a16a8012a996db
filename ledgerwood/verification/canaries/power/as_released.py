"""The privacy of what was released, by its own noise, where that is more than the plan's event states.

docs/explanation/canaries.md#canary-ceilings.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    Composed,
    Event,
    FilteredEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    RandomAllocation,
    Repeated,
)
from ledgerwood.mechanisms import BoxShifts, LaplaceMechanism
from ledgerwood.mechanisms.sensitivity import quotient_down
from ledgerwood.verification.canaries.recorder import Released


def event_as_released(releases: Sequence[Released]) -> Event | None:
    """Composes the releases of a fit, with every column of a sum with Laplace noise as a release by itself.

    A plan prices a sum of several columns by its L1 sensitivity, as one Laplace mechanism, which tells more.

    Args:
        releases: of one fit, with the plan's own events and mechanisms.

    Returns:
        The event of all draws; None if no sum has several columns with Laplace noise, or a draw is allocated,
        filtered or parallel, so that nothing better than the plan's event is known here.
    """
    draws: defaultdict[int, list[Released]] = defaultdict(list)
    for released in releases:
        draws[released.draw].append(released)
    found: Counter[Event] = Counter()
    columns = 1
    for draw in draws.values():
        event = draw[0].event
        if isinstance(event, Parallel) and len(event.events) == 1:
            event = event.events[0]  # all rows are in its only part
        if isinstance(event, Parallel | RandomAllocation | FilteredEvent):
            return None
        parts = [_columns(released, event.adjacency) for released in draw]
        columns = max(columns, *map(len, parts))
        whole: Event = Composed(tuple(part for own in parts for part in own))
        if isinstance(event, PoissonSampled):
            whole = PoissonSampled(whole, sampling_rate=event.sampling_rate)
        found[whole] += 1
    if columns == 1:
        return None
    return Composed(tuple(Repeated(event, count=count) for event, count in found.items()))


def _columns(released: Released, adjacency: Adjacency) -> list[Event]:
    """The events of one release: one of each column, where a row moves all columns of one leaf by at most a box.

    Columns have independent noise, and Laplace noise tells more the further it is shifted, so that the pair of the
    largest shift of every column dominates all others.
    """
    if released.chosen:
        return [released.query.event(released.mechanism, adjacency)]
    mechanism, sensitivity = released.mechanism, released.query.sensitivity(adjacency)
    single = isinstance(sensitivity, BoxShifts) and len(sensitivity.boxes) == 1
    if not (isinstance(mechanism, LaplaceMechanism) and single and sensitivity.l1_boxes == sensitivity.boxes):
        return [mechanism.event(sensitivity, adjacency)]
    return [
        LaplaceEvent(noise_multiplier=quotient_down(scale, bound), adjacency=adjacency)
        for scale, bound in zip(mechanism.scales, sensitivity.boxes[0], strict=True)
        if bound > 0.0
    ]
