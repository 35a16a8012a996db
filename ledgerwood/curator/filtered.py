"""Rounds under an individual privacy filter, and the purses that rounds are paid from.

Under the filter each row is charged for its own contribution, and stops when its budget is used up. A purse is a
ledger's grant, or that of one run of a selection which the ledger charged as a whole.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up
from ledgerwood._uncopied import Uncopied
from ledgerwood.accounting.events import Event, FilteredEvent, GaussianEvent, PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.base import require_event
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.accounting.ledger.entries import Randomness
from ledgerwood.curator.queries.registry import TREES, Query, SelectionQuery, name_of
from ledgerwood.curator.release import Gate, Release, Selected
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.curator.views.tree_rows import RowBudgets
from ledgerwood.errors import AdjacencyMismatch, DrawRefused, RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, Grid, Mechanism, RandomSource
from ledgerwood.recording.points import Recorded, passes, passes_with_owner

S = TypeVar("S")
M = TypeVar("M")
R = TypeVar("R")


@final
class FilteredRounds(Recorded):
    """A `Round` in which every release is its own round: a fresh sample, and each row charged before it is read.

    A row whose next cost does not fit what it has left contributes 0 to that release, and is not charged; every other
    row is charged, drawn or not. How many rows are left shows nowhere, and nothing depends on it. Made by
    `Curator.open`; the proof is in docs/explanation/individuals.md#individual-filter.

    Args:
        table: the rows.
        event: one round, and the limit of each row.
        costs: `row_costs` of the event, made before the draw: what that refuses has cost nothing.
        receipt: the draw that covers all rounds.
        source: randomness for samples and noise.
        left: int64 (n_rows,), what each row has left, in units of `accounting.row_costs`; changed in place. None: a
            whole limit each.
        gate: that the rounds end with, if any.
    """

    __slots__ = ("_costs", "_event", "_gate", "_left", "_receipt", "_source", "_table")

    def __init__(
        self,
        table: TreeTable,
        event: FilteredEvent,
        costs: NDArray[np.float64],
        receipt: Receipt,
        source: RandomSource,
        left: NDArray[np.int64] | None = None,
        *,
        gate: Gate | None = None,
    ) -> None:
        super().__init__()
        self._table = table
        self._event = event
        self._receipt = receipt
        self._source = source
        self._gate = Gate(gate)
        self._costs = costs
        self._left = table.full_accounts() if left is None else left

    def __enter__(self) -> "FilteredRounds":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.close()

    @passes_with_owner("release")
    def release(
        self, query: Query[S], mechanism: Mechanism[S, NDArray[np.int64]], *, purpose: str
    ) -> Release[NDArray[np.int64]]:
        """One round: draw a sample, charge the rows, evaluate the query over those that can pay, add noise.

        Raises:
            RoundViolation: the round is closed or another process's; the release is not the filtered event's; or the
                query is not a sum over rows, or the noise not Gaussian.
        """
        if not TREES.evaluation(query).filtered(query):
            raise RoundViolation(
                f"{name_of(query)} is not a sum over rows: the effect of one row depends on the other rows, "
                "so the cost of a row cannot be computed from it alone"
            )
        self._table.reader(query)  # refuses what the table does not have, before anybody is charged
        _stddevs(mechanism, query.grid)  # refuses other noise
        event = mechanism.event(query.sensitivity(self._receipt.adjacency), self._receipt.adjacency)
        if event != self._event.release:
            raise RoundViolation(f"release {purpose!r} is {event!r}; this draw filters {self._event.release!r}")
        mechanism.require_fit(query.grid)  # public, and refused before anybody is charged
        with self._gate.lock:
            self._gate.require(purpose)
            budgets = RowBudgets(self._left, self._costs, charge_weights(mechanism, query.grid, event))
            sampled = self._table.sample(self._event.sampling_rate, self._source)
            statistic = self._table.statistic(query, sampled, budgets, mechanism)
            noisy = mechanism.randomise(statistic, query.grid, self._source)
        return Release(value=noisy, grid=query.grid, receipt=self._receipt, randomness=self._source.kind)

    @passes_with_owner("select")
    def select(self, query: SelectionQuery[M, R], mechanism: M, *, purpose: str) -> Selected[R]:
        """Refused: a selection has no cost of a row's own.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation(
            f"{purpose!r}: a selection costs every row alike, regardless of its contribution, so it is not filtered"
        )


def _stddevs(mechanism: object, grid: Grid) -> tuple[float, float]:
    """Of the first column's noise, and of the noise of all others, which is alike."""
    others = grid.exponents[1:]
    if others and len(set(others)) == 1:
        # The very classes: a subclass could add other noise than it states.
        if type(mechanism) is GaussianMechanism:
            return mechanism.stddev, mechanism.stddev
        if type(mechanism) is EllipticalGaussianMechanism and len(mechanism.stddevs) == 1 + len(others):
            weight, *gradients = mechanism.stddevs
            if len(set(gradients)) == 1:
                return weight, gradients[0]
    raise RoundViolation(
        f"{type(mechanism).__name__} is not Gaussian noise on two columns, or on one and alike on all others, as a "
        "filtered round requires"
    )


def charge_weights(mechanism: object, grid: Grid, release: Event) -> tuple[float, float]:
    """Of the first column and of all others, (step / stddev)**2 / mu**2.

    That is the share of the largest squared norm that one squared step has.

    Args:
        mechanism: Gaussian noise on two columns, or on more that are all alike but the first.
        grid: of the query.
        release: the event of the query with this noise, whose mu is that of a row of the largest norm.

    Raises:
        RoundViolation: other noise.
    """
    mu = Fraction(release.mu())
    first, second = (
        float_up((Fraction(2) ** exponent / Fraction(stddev) / mu) ** 2)
        for stddev, exponent in zip(_stddevs(mechanism, grid), grid.exponents[:2], strict=True)
    )
    return first, second


class Purse(Protocol):
    """Planned events, each of which can be drawn once. A ledger's `Grant` is one."""

    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Take one planned event out, before any row is read."""


@final
class RunPurse(Uncopied):
    """One run's plan, covered by the draw of the whole selection; nothing that is taken out is written down.

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

    def _uncopied(self) -> str:
        return "a RunPurse cannot be copied or pickled, or one run would draw its plan twice; use the object itself"


@final
class PlanPurse(Uncopied):
    """One plan's draws out of a grant, which may hold those of other plans too.

    Args:
        plan: what may be drawn, each event as often as the plan has it.
        grant: what pays.
    """

    __slots__ = ("_grant", "_left", "_lock")

    def __init__(self, plan: Event, grant: Purse) -> None:
        self._left: Counter[Event] = Counter()
        for part, count in plan.draws():
            self._left[part] += count
        self._grant = grant
        self._lock = threading.Lock()

    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Take one planned event out of the grant.

        Raises:
            DrawRefused: the plan has no such event, or none left, or the grant refuses; nothing changed.
            LedgerError: as of the grant.
        """
        with self._lock:
            if self._left[event] < 1:
                raise DrawRefused(f"{purpose!r}: the plan has no {event!r} left")
            receipt = self._grant.draw(event, purpose=purpose, randomness=randomness)
            self._left[event] -= 1
        return receipt

    def _uncopied(self) -> str:
        return "a PlanPurse cannot be copied or pickled, or a plan would be drawn twice; use the object itself"


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
            raise AdjacencyMismatch(f"the run's adjacency is {run.adjacency.value}, the plan's {plan.adjacency.value}")
        if not isinstance(run, GaussianEvent):
            raise UnsupportedEvent(f"a plan other than the run itself needs a run that is a GaussianEvent, not {run!r}")
        most = float_down(1 / Fraction(run.noise_multiplier))
        if plan.mu() > most:
            raise _validate.fail("mu", plan.mu(), f"at most the run's {most!r}", "Gaussian-DP mu")
