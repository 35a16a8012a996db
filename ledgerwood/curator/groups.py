"""Disjoint groups of rows, drawn at random: how a curator carries out a `Parallel`.

docs/explanation/events.md#parallel-words.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.events import Event, Parallel
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.curator.gate import Gate
from ledgerwood.curator.rounds import CuratorRound, Rows
from ledgerwood.errors import RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import Recorded, passes_with_owner

_WORDS = 1 << 64


def group_ends(event: Parallel) -> tuple[int, ...]:
    """Where each group's 64-bit words end: floor(p 2**64) words a group, and none beyond 2**64.

    Raises:
        UnsupportedEvent: not a `Parallel`, or one without probabilities.
    """
    if type(event) is not Parallel:
        raise UnsupportedEvent(f"groups are those of a Parallel, not of {event!r}; a curator's open carries that out")
    if event.probabilities is None:
        raise UnsupportedEvent(
            "Parallel.worst has no probabilities to draw groups by: its groups are made by content, or are known; one "
            "query that reports on all of them is one release of a round"
        )
    ends, end = [], 0
    for probability in event.probabilities:
        # Probabilities may add up to a rounding error more than 1: the last ones give way.
        end = min(end + math.floor(Fraction(probability) * _WORDS), _WORDS)
        ends.append(end)
    return tuple(ends)


@final
class CuratorGroups(Recorded):
    """The `Groups` of the in-process curator. Made by `Curator.open_groups`.

    Rounds may be asked for and used in any order, interleaved, and by several threads. A round that is closed stays
    closed; the other groups' stay open. Closing the groups closes all rounds. Each round keeps one byte a row.

    Args:
        table: the rows.
        assignment: int32 (n_rows,), each row's group; the number of groups for a row in none.
        held: of each group, what its event holds.
        receipt: the draw that paid for all groups.
        source: randomness for noise.
        gate: that the groups end with, if any.
    """

    __slots__ = ("_assignment", "_gate", "_held", "_receipt", "_rounds", "_source", "_table")

    def __init__(
        self,
        table: Rows,
        assignment: NDArray[np.int32],
        held: Sequence[Counter[Event]],
        receipt: Receipt,
        source: RandomSource,
        gate: Gate | None,
    ) -> None:
        super().__init__()
        self._table = table
        self._assignment = assignment
        self._held = held
        self._receipt = receipt
        self._source = source
        self._gate = Gate(gate)
        self._rounds: dict[int, CuratorRound] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __enter__(self) -> "CuratorGroups":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.close()
        for opened in self._rounds.values():  # waits for a release that another thread is in
            opened.__exit__(kind, error, trace)

    @passes_with_owner("group")
    def round(self, group: int) -> CuratorRound:
        """The round over the rows of a group, which holds what is left of the group's event: always the same one.

        Args:
            group: from 0 on, in the order of the event's members.

        Raises:
            InvalidParameter: there is no such group.
            RoundViolation: the groups are closed, or another process's.
        """
        index = _validate.count("group", group, "group's place", minimum=0)
        if index >= len(self._held):
            raise _validate.fail("group", group, f"in 0..{len(self._held) - 1}", "group's place")
        with self._gate.lock:
            if not self._gate.is_open:
                raise RoundViolation(f"group {index}: the groups are closed; open others, with a draw of their own")
            if not self._gate.is_ours:
                raise RoundViolation(
                    f"group {index}: the groups belong to another process; parent and child would each release what "
                    "was drawn once"
                )
            if index not in self._rounds:
                rows = self._assignment == index
                self._rounds[index] = CuratorRound(
                    self._table, rows, Counter(self._held[index]), self._receipt, self._source, self._gate
                )
            return self._rounds[index]
