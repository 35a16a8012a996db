"""A recorder of what a fit releases; for an audit it puts another public tree in the place of a random one.

Only what leaves the curator is kept: the same values that the trainer gets. The statistics below the noise are not
looked at.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator.allocated import AllocatedRounds
from ledgerwood.curator.rounds import CuratorGroups
from ledgerwood.ensemble import TreeStructure
from ledgerwood.recording.opening import recording

_Groups = dict[int, tuple[object, int]]
"""Of each round of a group or step the round itself, and which group or step."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """One release or choice of a fit.

    Args:
        query, mechanism: public.
        event: the draw that it belongs to.
        draw: the draw's number in the ledger. Releases of one draw share its sample, unless it is filtered.
        group: the group of a `Parallel` draw, or the step of a `RandomAllocation`, from 0; None otherwise.
        value: the value of a sum, what was released, float64 of the statistic's shape, in its unit; of a choice, what
            was chosen.
        chosen: whether it is a choice.
    """

    query: Any
    mechanism: Any
    event: Event
    draw: int
    group: int | None
    value: Any
    chosen: bool


@final
@dataclass(slots=True, eq=False)
class ReleaseRecording:
    """The releases of a fit, in order.

    Args:
        releases: filled while the fit runs.
        trees: number of public trees that were drawn (and replaced, where the audit fixed them).
    """

    releases: list[Released] = field(default_factory=list)
    trees: int = 0


@contextmanager
def recorded(structure: TreeStructure | None = None) -> Iterator[ReleaseRecording]:
    """Keep what is released in this thread or task, until the end of the block.

    Args:
        structure: the tree that stands in for every random one; None leaves the trainer's own.

    Raises:
        ReplayFailed: another recording is open here.
    """
    record = ReleaseRecording()
    groups: _Groups = {}
    steps: _Groups = {}
    with recording(
        "record of an audited fit",
        {
            "release": functools.partial(_release, record, groups),
            "select": functools.partial(_select, record, groups),
            "group": functools.partial(_group, groups),
            "step": functools.partial(_step, groups, steps),
            "structure": functools.partial(_tree, record, structure),
        },
    ):
        yield record


def _release(
    recording: ReleaseRecording, groups: _Groups, original: Callable[..., Any], round_: Any, query: Any, mechanism: Any,
    *, purpose: str,
) -> Any:  # fmt: skip
    release = original(round_, query, mechanism, purpose=purpose)
    receipt = release.receipt
    value: NDArray[np.float64] = release.grid.to_real(release.value)
    recording.releases.append(
        Released(
            query=query,
            mechanism=mechanism,
            event=receipt.event,
            draw=receipt.index,
            group=_group_of(groups, round_),
            value=value,
            chosen=False,
        )
    )
    return release


def _select(
    recording: ReleaseRecording, groups: _Groups, original: Callable[..., Any], round_: Any, query: Any, mechanism: Any,
    *, purpose: str,
) -> Any:  # fmt: skip
    selected = original(round_, query, mechanism, purpose=purpose)
    receipt = selected.receipt
    recording.releases.append(
        Released(
            query=query,
            mechanism=mechanism,
            event=receipt.event,
            draw=receipt.index,
            group=_group_of(groups, round_),
            value=selected.value,
            chosen=True,
        )
    )
    return selected


def _group_of(groups: _Groups, round_: object) -> int | None:
    found = groups.get(id(round_))
    return None if found is None else found[1]


def _group(groups: _Groups, original: Callable[..., Any], opened: CuratorGroups, group: int) -> Any:
    round_ = original(opened, group)
    groups[id(round_)] = (round_, group)  # kept, so that no other round gets its number
    return round_


def _step(groups: _Groups, steps: _Groups, original: Callable[..., Any], opened: AllocatedRounds) -> Any:
    round_ = original(opened)
    _, number = steps.get(id(opened), (opened, 0))
    groups[id(round_)] = (round_, number)
    steps[id(opened)] = (opened, number + 1)
    return round_


def _tree(
    recording: ReleaseRecording, structure: TreeStructure | None, original: Callable[..., TreeStructure],
    *arguments: Any, **named: Any,
) -> TreeStructure:  # fmt: skip
    # The trainer's own tree is drawn all the same, so that its generator goes on as it would.
    drawn = original(*arguments, **named)
    recording.trees += 1
    return drawn if structure is None else structure
