"""What a fit releases, as it is released; and, for an audit, another public tree in the place of a random one.

Only what leaves the curator is kept: the same values that the trainer gets. The statistics below the noise are not
looked at.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.curator.groups import CuratorGroups
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import ReplayFailed
from ledgerwood.trainers import federated, privatree, sgbdt

_Groups = dict[int, tuple[object, int]]
"""Of each round of a group the round itself, and which group."""
_DRAWING: tuple[ModuleType, ...] = (sgbdt, federated, privatree)
"""Trainers that draw public trees, each by the `random_tree` that it imported."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """One release or choice of a fit.

    Args:
        query, mechanism: public.
        event: the draw that it belongs to.
        draw: the draw's number in the ledger. Releases of one draw share its sample, unless it is filtered.
        group: of a `Parallel` draw; None otherwise.
        value: of a sum, what was released, float64 of the statistic's shape, in its unit; of a choice, what was chosen.
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
class Recording:
    """What a fit released, in order.

    Args:
        releases: filled while the fit runs.
        trees: how many public trees were drawn (and replaced, where the audit fixed them).
    """

    releases: list[Released] = field(default_factory=list)
    trees: int = 0


@contextmanager
def recorded(structure: TreeStructure | None = None) -> Iterator[Recording]:
    """Keep what is released, until the end of the block; one fit at a time, in one thread.

    Args:
        structure: the tree that stands in for every random one; None leaves the trainer's own.

    Raises:
        ReplayFailed: another fit is being recorded.
    """
    if _ACTIVE:
        raise ReplayFailed("another fit is being recorded for an audit: one at a time")
    recording = Recording()
    groups: _Groups = {}
    with ExitStack() as stack:
        _ACTIVE.append(recording)
        stack.callback(_ACTIVE.clear)
        for owner, name, hook in (
            (CuratorRound, "release", functools.partial(_release, recording, groups)),
            (FilteredRounds, "release", functools.partial(_release, recording, groups)),
            (CuratorRound, "select", functools.partial(_select, recording, groups)),
            (CuratorGroups, "round", functools.partial(_group, groups)),
        ):
            stack.enter_context(_wrapped(owner, name, hook))
        for module in _DRAWING:
            stack.enter_context(_wrapped(module, "random_tree", functools.partial(_tree, recording, structure)))
        yield recording


_ACTIVE: list[Recording] = []


@contextmanager
def _wrapped(owner: type | ModuleType, name: str, hook: Callable[..., Any]) -> Iterator[None]:
    """Calls go to hook(original, ...)."""
    original = vars(owner)[name]

    @functools.wraps(original)
    def called(*arguments: Any, **named: Any) -> Any:
        return hook(original, *arguments, **named)

    setattr(owner, name, called)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _release(
    recording: Recording, groups: _Groups, original: Callable[..., Any], round_: Any, query: Any, mechanism: Any,
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
    recording: Recording, groups: _Groups, original: Callable[..., Any], round_: Any, query: Any, mechanism: Any,
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


def _tree(
    recording: Recording, structure: TreeStructure | None, original: Callable[..., TreeStructure], *arguments: Any,
    **named: Any,
) -> TreeStructure:  # fmt: skip
    # The trainer's own tree is drawn all the same, so that its generator goes on as it would.
    drawn = original(*arguments, **named)
    recording.trees += 1
    return drawn if structure is None else structure
