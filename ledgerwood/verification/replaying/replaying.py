"""`replay`: fit twice, on neighbouring data, and show that only the exact values below the noise have changed.

The first fit is recorded: every call that reaches a curator or a ledger, with its public fields, the exact value that
its mechanism was handed, and what came out. The second fit, on the neighbour, is given the same outputs again. Then all
public values must be the same, and an exact value may change by no more than its release's event allows: that is the
premise of adaptive composition, call by call. docs/explanation/replay.md#replay-proves: what it proves, and what not.

Calls are recorded at the points that `ledgerwood.recording` marks. The curator's own checks run as always; only a
mechanism's noise is kept back.
"""

import copy
import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.events import (
    Composed,
    Event,
    Parallel,
    PoissonSelection,
    RandomAllocation,
    Repeated,
    RepeatedSelection,
)
from ledgerwood.accounting.ledger import Grant, Ledger, Receipt
from ledgerwood.curator import (
    CorrectSplits,
    Curator,
    FeatureQuantiles,
    GiniSplits,
    GridlessGains,
    KeyCounts,
    KeyTable,
    LabelledSplits,
    LeafLabels,
    Schema,
    SplitGains,
)
from ledgerwood.curator.allocated import AllocatedRounds
from ledgerwood.curator.filtered import FilteredRounds, RunPurse
from ledgerwood.curator.queries.columns.selections import ColumnKeys, ColumnMode
from ledgerwood.curator.rounds import CuratorGroups, CuratorRound
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.errors import ReplayFailed
from ledgerwood.mechanisms import Grid, RandomSource
from ledgerwood.mechanisms.exact.coins import KEY_WORDS
from ledgerwood.recording.opening import Hook, Point, recording
from ledgerwood.verification.replaying.comparison import difference
from ledgerwood.verification.replaying.moves import Handed, choice_move, quantiles_move, sum_move
from ledgerwood.verification.replaying.session import Handled, Replay, ReplayStep, SeenAllocation, Session
from ledgerwood.verification.sensitivity.domains import Neighbour
from ledgerwood.verification.sensitivity.matching import neighbour_of

if TYPE_CHECKING:
    from ledgerwood.trainers.base.trainer import AbstractTrainer

Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
_RANGED = (SplitGains, GridlessGains, GiniSplits, CorrectSplits, LabelledSplits, LeafLabels, ColumnMode)
"""Selections by utilities that a row moves apart."""
_COUNTED = (KeyCounts, KeyTable, ColumnKeys)
"""Selections by numbers of rows, each row in one of them."""


def hooks(session: Session) -> dict[Point, Hook]:
    """What stands at each point for the session."""
    standing: dict[Point, Hook] = {
        "words": _fill,
        "grant": _grant,
        "draw": _draw,
        "open": _open,
        "open_groups": _open_groups,
        "group": _group,
        "open_allocation": _open_allocation,
        "step": _step,
        "search": _search,
        "sample": _sample,
        "assign": _assign,
        "allocate": _allocate,
        "allocated": _allocated,
        "release": _release,
        "select": _select,
        "noise": _noise,
        "evidence": _evidence,
        "choice": _choice,
    }
    return {point: functools.partial(hook, session) for point, hook in standing.items()}


@contextmanager
def _privately(session: Session, step: ReplayStep, *, least: int = 0) -> Iterator[None]:
    """The call draws random words, at least so many, and none that was drawn before."""
    session.private += 1
    session.drawn, session.again = 0, 0
    try:
        yield
    finally:
        session.private -= 1
    session.require_words(step, least)


@contextmanager
def _handled(session: Session, point: Handled, handler: Callable[..., Any]) -> Iterator[None]:
    """What passes the point goes to the handler, until the end of the block."""
    before = session.handlers.get(point)
    session.handlers[point] = handler
    try:
        yield
    finally:
        session.handlers[point] = before


def _handle(session: Session, point: Handled, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Only the outermost call of a release goes to its handler: what that one is made of is its own."""
    handler = session.handlers.get(point)
    if handler is None:
        return original(*arguments, **named)
    session.handlers[point] = None
    try:
        return handler(original, *arguments, **named)
    finally:
        session.handlers[point] = handler


def _noise(session: Session, original: Callable[..., Any], *arguments: Any) -> Any:
    return _handle(session, "noise", original, *arguments)


def _evidence(session: Session, original: Callable[..., Any], *arguments: Any) -> Any:
    return _handle(session, "evidence", original, *arguments)


def _choice(session: Session, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return _handle(session, "choice", original, *arguments, **named)


def _fill(session: Session, original: Callable[..., Words], source: RandomSource, n: int) -> Words:
    """Words of samples and noise are drawn; all others are the same in both fits."""
    if session.private:
        words = original(source, n)
        session.draws(words.tolist())
        return words
    step = session.step("words", "", {"words": n, "source": source.kind})
    if not session.replaying:
        step.output = original(source, n)
        session.draws(step.output.tolist())
    return np.array(step.output)


def _grant(
    session: Session, original: Callable[..., Grant], ledger: Ledger, event: Event, *, purpose: str,
    delta: float | None = None,
) -> Grant:  # fmt: skip
    grant = original(ledger, event, purpose=purpose, delta=delta)
    session.step("grant", purpose, {"event": event, "delta": delta, "charge": grant.charge})
    return grant


def _draw(
    session: Session, original: Callable[..., Receipt], purse: Grant | RunPurse, event: Event, *, purpose: str,
    randomness: str = "secure",
) -> Receipt:  # fmt: skip
    receipt = original(purse, event, purpose=purpose, randomness=randomness)
    step = session.step("draw", purpose, {"event": event, "randomness": randomness})
    session.pays(step, event, purse, receipt)
    return receipt


def _open(session: Session, original: Callable[..., Any], curator: Any, event: Event, *, purpose: str) -> Any:
    step = session.step("open", purpose, {"event": event})
    session.before_draw()
    opened = original(curator, event, purpose=purpose)
    if isinstance(curator, Curator):  # the later calls of a stream draw nothing
        # The grant holds the parts of a composition: each is a draw of its own.
        apart = type(event) in (Composed, Repeated)
        session.require_paid(step, [part for part, count in event.draws() for _ in range(count)] if apart else (event,))
    if session.in_sample is not None:
        session.joins(opened, event, held=session.in_sample)
    return opened


def _open_groups(
    session: Session, original: Callable[..., CuratorGroups], curator: Any, event: Parallel, *, purpose: str
) -> CuratorGroups:
    step = session.step("open_groups", purpose, {"event": event})
    session.before_draw()
    groups = original(curator, event, purpose=purpose)
    session.require_paid(step, (event,))
    if session.in_group is not None:
        session.joins_group(groups, event, session.in_group)
    return groups


def _group(session: Session, original: Callable[..., CuratorRound], groups: CuratorGroups, group: int) -> CuratorRound:
    session.step("group", "", {"group": group})
    opened = original(groups, group)
    session.opens_group(groups, group, opened)
    return opened


def _open_allocation(
    session: Session, original: Callable[..., AllocatedRounds], curator: Any, event: RandomAllocation, *, purpose: str
) -> AllocatedRounds:
    step = session.step("open_allocation", purpose, {"event": event})
    session.before_draw()
    opened = original(curator, event, purpose=purpose)
    session.require_paid(step, (event,))
    return opened


def _step(session: Session, original: Callable[..., CuratorRound], rounds: AllocatedRounds) -> CuratorRound:
    session.step("step", "", {})
    session.before_draw()
    opened = original(rounds)
    if session.in_sample is not None:
        session.joins(opened, rounds._event.event, held=session.in_sample)
    return opened


def _search(
    session: Session, original: Callable[..., Any], curator: Curator, event: RepeatedSelection | PoissonSelection,
    plans: Any, run: Any, *, purpose: str,
) -> Any:  # fmt: skip
    plans = tuple(plans)
    session.step("search", purpose, {"event": event, "plans": plans})
    # How many runs, and which, is secret; for each outcome of that, the runs are calls like any others.
    return original(curator, event, plans, run, purpose=purpose)


def _sample(
    session: Session, original: Callable[..., Mask], table: AbstractRows, sampling_rate: float, source: RandomSource
) -> Mask:
    """A sample of the first fit, with the changed row where it is wanted; the same rows again in the second one."""
    step = session.step("sample", "", {"sampling_rate": sampling_rate})
    differ = session.neighbour.change != "permuted"
    session.in_sample = differ and (sampling_rate == 1.0 or session.sampled)
    if sampling_rate == 1.0:
        return original(table, sampling_rate, source)
    if not session.replaying:
        with _privately(session, step, least=KEY_WORDS):
            step.output = original(table, sampling_rate, source)
    return _coupled(session, step.output, table.n_rows, session.sampled)


def _assign(
    session: Session, original: Callable[..., NDArray[np.int32]], table: AbstractRows, ends: Sequence[int],
    source: RandomSource,
) -> NDArray[np.int32]:  # fmt: skip
    """As `_sample`, of groups."""
    step = session.step("assign", "", {"ends": tuple(ends)})
    nowhere = len(ends)
    group = session.group % len(ends) if session.sampled else nowhere
    session.in_group = group if session.neighbour.change != "permuted" else nowhere
    if not session.replaying:
        # A first group that has everybody takes no word.
        with _privately(session, step, least=0 if ends[0] == 1 << 64 else KEY_WORDS):
            step.output = original(table, ends, source)
    return _coupled(session, step.output, table.n_rows, group)


def _allocate(
    session: Session, original: Callable[..., Any], table: AbstractRows, selected: int, steps: int, source: RandomSource
) -> SeenAllocation:
    """An allocation of the first fit; a stand-in for it in the second one."""
    step = session.step("allocate", "", {"selected": selected, "steps": steps})
    made = None
    if not session.replaying:
        with _privately(session, step, least=KEY_WORDS):
            made = original(table, selected, steps, source)
    return SeenAllocation(call=step.call, made=made, selected=selected, steps=steps)


def _allocated(
    session: Session, original: Callable[..., Mask], table: AbstractRows, allocation: SeenAllocation, number: int
) -> Mask:
    """As `_sample`, of a step; the changed row is in every step where it is wanted, or in none."""
    step = session.step("allocated", "", {"allocation": allocation.call.number, "step": number})
    session.in_sample = session.neighbour.change != "permuted" and session.sampled
    if not session.replaying:
        step.output = original(table, allocation.made, number)
        fault = allocation.fault(number, step.output)
        if fault is not None:
            session.violated(str(step.call), *fault)
    return _coupled(session, step.output, table.n_rows, session.sampled)


def _coupled(session: Session, first: NDArray[Any], n_rows: int, changed: Any) -> NDArray[Any]:
    """One value a row of the fit that is going on: as in the first fit for the rows of both, and `changed`."""
    neighbour = session.neighbour
    expected = len(neighbour.origin) if session.replaying else neighbour.rows
    if n_rows != expected:
        session.fail(
            ReplayFailed(
                f"the fit samples a table of {n_rows} rows, of data with {expected}: they are not the same rows, so "
                "that two samples cannot be coupled"
            )
        )
    values = first[list(neighbour.origin)] if session.replaying else first.copy()
    if session.changed_place is not None:
        values[session.changed_place] = changed
    return values


def _release(
    session: Session, original: Callable[..., Any], round_: CuratorRound | FilteredRounds, query: Any, mechanism: Any,
    *, purpose: str,
) -> Any:  # fmt: skip
    made = []

    def randomise(noise: Callable[..., Any], used: Any, statistic: NDArray[np.int64], grid: Grid, source: Any) -> Any:
        # What draws counts, not what was asked for: a curator may hand on another mechanism.
        receipt = round_._receipt
        session.require(receipt.adjacency)
        sensitivity = query.sensitivity(receipt.adjacency)
        event = used.event(sensitivity, receipt.adjacency)
        step = session.step(
            "release",
            purpose,
            {
                "query": query,
                "mechanism": used,
                "sensitivity": sensitivity,
                "grid": grid,
                "event": event,
                "draw": receipt.event,
            },
        )
        made.append(step)
        session.require_mechanism(step, mechanism, used)
        if isinstance(round_, FilteredRounds) and session.in_sample is not None:
            session.joins(round_, round_._event.release, held=session.in_sample)  # each release draws its own
        changed = session.releases(round_, event, step)
        if not session.replaying:
            step.evidence = statistic.copy()
            with _privately(session, step, least=statistic.size):
                step.output = noise(used, statistic, grid, source)
            return step.output.copy()
        try:
            move = sum_move(
                step.evidence, statistic, grid=grid, sensitivity=sensitivity, mechanism=used, event=event,
                adjacency=receipt.adjacency, changed=changed,
            )  # fmt: skip
        except ReplayFailed as error:
            session.fail(error)
        session.moved(step, move)
        if isinstance(round_, FilteredRounds):
            session.lost(receipt.index, round_._event, move.norm)
        return step.output.copy()

    if isinstance(round_, FilteredRounds):
        session.before_draw()
    with _handled(session, "noise", randomise):
        release = original(round_, query, mechanism, purpose=purpose)
    if len(made) != 1:
        session.fail(ReplayFailed(f"release {purpose!r} is made of {len(made)} draws of noise, not of one"))
    return release


def _select(
    session: Session, original: Callable[..., Any], round_: CuratorRound, query: Any, mechanism: Any, *, purpose: str
) -> Any:
    made = []

    def select(whole: Callable[..., Any], asked: Any, used: Any, evidence: Any, source: RandomSource) -> Any:
        receipt = round_._receipt
        session.require(receipt.adjacency)
        if not isinstance(query, (*_RANGED, *_COUNTED, FeatureQuantiles)):
            session.fail(ReplayFailed(f"{type(query).__name__} is a selection that a replay does not know"))
        sensitivity = query.sensitivity(receipt.adjacency) if isinstance(query, _RANGED) else None
        event = query.event(used, receipt.adjacency)
        step = session.step(
            "select",
            purpose,
            {"query": query, "mechanism": used, "sensitivity": sensitivity, "event": event, "draw": receipt.event},
        )
        made.append(step)
        session.require_mechanism(step, mechanism, used)
        changed = session.releases(round_, event, step)
        handed, outputs = [], deque(step.output or ())

        def choose(choice: Callable[..., Any], chooser: Any, given: Any, *rest: Any, **named: Any) -> Any:
            session.require_mechanism(step, used, chooser)
            handed.append(Handed(evidence=copy.deepcopy(given), grid=rest[0] if isinstance(rest[0], Grid) else None))
            if session.replaying:
                if not outputs:
                    session.violated(str(step.call), f"{len(step.output)} choices", "one more")
                    session.stop()
                return outputs.popleft()
            with _privately(session, step):
                outputs.append(choice(chooser, given, *rest, **named))
            return outputs[-1]

        with _handled(session, "choice", choose):
            value = whole(asked, used, evidence, source)
        if not session.replaying:
            step.evidence, step.output, step.value = handed, tuple(outputs), value
            return value
        try:
            if isinstance(query, FeatureQuantiles):
                move = quantiles_move(
                    step.evidence, handed, mechanism=used, event=event, adjacency=receipt.adjacency,
                    changed=changed,
                )  # fmt: skip
            else:
                move = choice_move(
                    step.evidence, handed, sensitivity=sensitivity, mechanism=used, event=event,
                    adjacency=receipt.adjacency, changed=changed,
                )  # fmt: skip
            # From the same choices the same value: nothing of the evidence goes past the mechanism.
            leak = difference(step.value, value, "value")
        except ReplayFailed as error:
            session.fail(error)
        session.moved(step, move)
        if leak is not None:
            session.violated(f"{step.call}: {leak[0]}", leak[1], leak[2])
        return step.value

    with _handled(session, "evidence", select):
        selected = original(round_, query, mechanism, purpose=purpose)
    if len(made) != 1:
        session.fail(ReplayFailed(f"selection {purpose!r} was made {len(made)} times, not once"))
    return selected


D = TypeVar("D")


def _fit_of(trainer: object, schema: Schema | None) -> Callable[[Any], object]:
    from sklearn.base import clone

    from ledgerwood.trainers.base.systems import trainer_of
    from ledgerwood.trainers.base.trainer import AbstractTrainer

    estimator = trainer_of(trainer, schema)
    if not isinstance(estimator, AbstractTrainer):
        raise _validate.fail("fit", trainer, "a function, an estimator of this library, or a system's name", "fit")

    def fit(data: Any) -> object:
        X, y, *weights = data
        return clone(estimator).fit(X, y, **({"sample_weight": weights[0]} if weights else {}))

    return fit


def replay(
    fit: "Callable[[D], object] | AbstractTrainer | str",
    data: D,
    neighbour: Neighbour[D] | D,
    *,
    sampled: bool = True,
    group: int = 0,
    schema: Schema | None = None,
) -> Replay:
    """Fit on `data`, then on the neighbour with the outputs frozen, and compare.

    The samples of the two fits are coupled: a row of both is in both or in neither, and in the same group.

    Other threads and asyncio tasks do not see the replay. Threads that the fit itself starts are seen where they use
    the fit's curator and rounds, or run in a copy of its context (`contextvars.copy_context().run`), if their calls
    come in the same order in both fits. docs/explanation/recording.md#recording-context.

    Args:
        fit: a function from the data to the released result: a model, or anything that can be compared. All its
            randomness must come from a `RandomSource`, or from a generator that is seeded by one. Or an estimator of
            this library, of which copies are fitted to (X, y) or (X, y, weights); or the name of a system, as its entry
            point has it.
        data: of the first fit.
        neighbour: of the second one, as `added`, `removed`, `replaced` and the like make it; or a plain data set, such
            as (X, y), whose rows are matched by their values (`neighbour_of`).
        sampled: whether the changed row is in every sample, and in every step of an allocation, the worst case. If not,
            and in no group, no release from a sample may change at all.
        group: which group the changed row is assigned to, from 0, modulo the number of groups.
        schema: of the rows, where `fit` is the name of a system.

    Raises:
        ReplayFailed: a call, query or model that cannot be compared, data whose rows the fit does not hand over as
            they are, or another recording that is open in this thread or task; nothing is shown.
        InvalidParameter: data that are no neighbours under the fit's adjacency, or that differ in several rows.
    """
    neighbour = neighbour if isinstance(neighbour, Neighbour) else neighbour_of(data, neighbour)
    session = Session(neighbour, sampled=sampled, group=group)
    fit = fit if callable(fit) else _fit_of(fit, schema)
    with recording("replay", hooks(session)):
        first = session.run(fit, data)
        session.replaying = True
        second = session.run(fit, neighbour.data)
    return session.outcome(first, second)
