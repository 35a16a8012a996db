"""Rounds of a random allocation: how a curator carries out a `RandomAllocation`. One draw pays for all of its steps.

docs/explanation/allocation.md#allocation-rounds.
"""

from collections import Counter
from types import TracebackType
from typing import Any, final

from ledgerwood.accounting.events import Event, RandomAllocation
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.curator.release import Gate
from ledgerwood.curator.rounds import CuratorRound, Rows
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import Recorded, passes_with_owner


@final
class AllocatedRounds(Recorded):
    """The `Allocation` of the in-process curator. Made by `Curator.open_allocation`.

    Steps come one after another: the round of a step is closed when the next one begins, and none is carried out twice.

    Args:
        table: the rows.
        allocation: what the table's `allocate` returned.
        event: the allocation that was drawn.
        held: the releases of one step.
        receipt: of the draw that covers all steps.
        source: randomness for noise.
        gate: that the rounds end with, if any.
    """

    __slots__ = ("_allocation", "_done", "_event", "_gate", "_held", "_receipt", "_round", "_source", "_table")

    def __init__(
        self,
        table: Rows,
        allocation: Any,
        event: RandomAllocation,
        held: Counter[Event],
        receipt: Receipt,
        source: RandomSource,
        gate: Gate | None,
    ) -> None:
        super().__init__()
        self._table = table
        self._allocation = allocation
        self._event = event
        self._held = held
        self._receipt = receipt
        self._source = source
        self._gate = Gate(gate)
        self._round: CuratorRound | None = None
        self._done = 0

    def __len__(self) -> int:
        return self._event.steps

    def __enter__(self) -> "AllocatedRounds":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.close()
        if self._round is not None:  # waits for a release that another thread is in
            self._round.__exit__(kind, error, trace)
        self._allocation = None  # nobody can find out any more who was in which step

    @passes_with_owner("step")
    def step(self) -> CuratorRound:
        """The round of the next step, over the rows that are in it; it holds what one step releases.

        Raises:
            RoundViolation: all steps have been carried out, or the allocation is closed, or another process's.
        """
        with self._gate.lock:
            name = f"step {self._done + 1}"
            self._gate.require_of("allocation", name)
            if self._done == self._event.steps:
                raise RoundViolation(
                    f"{name}: the draw is of {self._event.steps} steps, and all of them have been carried out; open "
                    "another allocation, with a separate draw"
                )
            if self._round is not None:
                self._round.__exit__(None, None, None)
            # Counted before rows are looked at: an error below loses the step.
            self._done += 1
            sampled = self._table.allocated(self._allocation, self._done - 1)
            self._round = CuratorRound(
                self._table, sampled, Counter(self._held), self._receipt, self._source, self._gate
            )
            return self._round
