"""What rounds are paid from: a ledger's grant, or the purse of one run of a selection that the ledger paid whole."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import Protocol, final

from ledgerwood import _validate
from ledgerwood._directed import float_down
from ledgerwood.accounting.events import Event, GaussianEvent, PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.base import require_event
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.accounting.ledger.entries import Randomness
from ledgerwood.curator.gate import Gate
from ledgerwood.errors import AdjacencyMismatch, DrawRefused, UnsupportedEvent
from ledgerwood.recording.points import passes


class Purse(Protocol):
    """Planned events, each of which can be drawn once. A ledger's `Grant` is one."""

    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Take one planned event out, before any row is read."""


@final
class RunPurse:
    """One run's plan, paid by the draw of the whole selection; nothing that is taken out is written down.

    It ends with the run, and so does every round behind its `gate`, so that a run that lost can release nothing later.

    Args:
        plan: what the run may draw.
        receipt: the draw of the selection.
    """

    __slots__ = ("_left", "_receipt", "gate")

    def __init__(self, plan: Event, receipt: Receipt) -> None:
        self._left: Counter[Event] = Counter()
        for part, count in plan.draws():
            self._left[part] += count
        self._receipt = receipt
        self.gate = Gate()

    @passes("draw")
    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Take one planned event out; the receipt is the selection's.

        Raises:
            DrawRefused: the plan has no such event, or none left, or the run has ended, or is another process's.
            LedgerError: an event of a foreign class.
        """
        with self.gate.lock:
            if not self.gate.is_open or not self.gate.is_ours:
                raise DrawRefused(f"{purpose!r}: the run has ended, or belongs to another process")
            if self._left[event] < 1:
                raise DrawRefused(f"{purpose!r}: the run's plan has no {event!r} left")
            to_json(event)  # as a ledger does: an event of a foreign class can be equal to any other
            self._left[event] -= 1
        return self._receipt

    def __enter__(self) -> "RunPurse":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.close()


def require_within(plans: Sequence[Event], selection: RepeatedSelection | PoissonSelection) -> None:
    """Refuse plans that one run of the selection does not cover.

    A plan is covered if it is that run's event, or if both are Gaussian pairs and the plan's mu is not the larger one:
    a wider shift can be turned into a narrower one afterwards.

    Raises:
        InvalidParameter: no plan, or not events, or a plan that costs more than a run.
        AdjacencyMismatch: a plan under another relation.
        UnsupportedEvent: a plan that is not a Gaussian pair, or a run that is not stated as a `GaussianEvent`.
        LedgerError: a plan of a foreign class.
    """
    if not isinstance(selection, RepeatedSelection | PoissonSelection):
        raise _validate.fail("event", selection, "a RepeatedSelection or a PoissonSelection", "event")
    run = selection.event
    if not plans:
        raise _validate.fail("plans", plans, "at least one", "plans")
    for plan in plans:
        require_event(plan)
        to_json(plan)  # what no ledger could write down could state any mu
        if plan == run:
            continue
        if plan.adjacency is not run.adjacency:
            raise AdjacencyMismatch(f"a run is under {run.adjacency.value}, a plan under {plan.adjacency.value}")
        if not isinstance(run, GaussianEvent):
            raise UnsupportedEvent(f"a plan other than the run itself needs a run that is a GaussianEvent, not {run!r}")
        most = float_down(1 / Fraction(run.noise_multiplier))
        if plan.mu() > most:
            raise _validate.fail("mu", plan.mu(), f"at most the run's {most!r}", "Gaussian-DP mu")
