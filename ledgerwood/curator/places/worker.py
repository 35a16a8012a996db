"""A worker's side: encodes parts of the rows, keeps them, and answers questions with sums over them.

All functions here are run by Dask on a worker. Answers are functions of rows and question alone: asked again, after a
loss or by a second copy of a task, they are the same. What is kept beside the rows is only a shorter way to them.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.typed_columns import TypedColumns
from ledgerwood.curator.places.messages import (
    OTHER_VERSION,
    Absent,
    Answer,
    Drawn,
    KnownValues,
    SessionSecret,
    SumQuestion,
    code_digest,
)
from ledgerwood.curator.places.tags import row_tag
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES, PartSums
from ledgerwood.curator.tables.parts import EVERYBODY, EncodedRows, RowPart
from ledgerwood.curator.tables.undeclared_files import ColumnQuery, length_of, no_counts, typed_view
from ledgerwood.curator.views.tree_rows import NO_FILTER, Mask, RowBudgets, TreeShape
from ledgerwood.errors import PrivacyError, RoundViolation, WorkersLost
from ledgerwood.mechanisms.exact.allocations import RowAllocation
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.schema import Schema
from ledgerwood.sparse_cells import SparseCells
from ledgerwood.threads import threads

_MOST_SESSIONS = 64
_MERGED_ROWS = 1 << 20
"""Neighbouring partitions are put together up to this many rows: a part has its own sums for each query."""
_CHANGED = "lost rows cannot be computed again: their source has changed, or computes other rows each time"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartEncoding:
    """What is public of the encoding of rows.

    Args:
        schema: as declared.
        loss, bins: as in `Table.from_data`.
        digest: of the curator's code.
    """

    schema: Schema
    loss: Loss
    bins: int
    digest: str


def encoded(encoding: PartEncoding, X: Any, y: Any, sample_weight: Any) -> EncodedRows:
    """The rows of one partition as a table keeps them; errors as in `Table.from_data`."""
    require_version(encoding.digest)
    return EncodedRows.of(X, y, encoding.schema, loss=encoding.loss, bins=encoding.bins, sample_weight=sample_weight)


def counted(
    columns: TypedColumns, queries: Sequence[ColumnQuery], digest: str, X: Any, y: Any, _: Any
) -> tuple[int, tuple[Any, ...]]:
    """The number of rows of a partition, and its counts for each query of an estimated schema."""
    require_version(digest)
    view = typed_view(X, y, columns)
    counts = no_counts(queries, view)
    return length_of(view), tuple(counts[query] for query in queries)


def encoded_columns(encoding: PartEncoding, columns: TypedColumns, X: Any, y: Any, _: Any) -> EncodedRows:
    """The rows of one partition under a schema that was estimated for its columns."""
    require_version(encoding.digest)
    typed = typed_view(X, y, columns).columns
    return EncodedRows.of_columns(typed[:-1], typed[-1], encoding.schema, loss=encoding.loss, bins=encoding.bins)


def require_version(digest: str) -> None:
    """Refuse to work for a curator with other code.

    Raises:
        PrivacyError: so it is.
    """
    if digest != code_digest():
        raise PrivacyError(OTHER_VERSION)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A partition as it was when the fit began.

    Args:
        number: of the partition.
        n_rows: of it.
        tag: see `row_tag`.
    """

    number: int
    n_rows: int
    tag: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Stretch:
    """Consecutive rows of a table.

    Args:
        rows: encoded.
        offset: the place of the first one.
        measured: the partitions that they are, in their order.
    """

    rows: EncodedRows
    offset: int
    measured: tuple[Measured, ...]

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers of the partitions."""
        return tuple(each.number for each in self.measured)

    def require_same(self, secret: bytes) -> None:
        """Refuse rows that were computed again and are others.

        Raises:
            WorkersLost: so they are.
        """
        begin = 0
        for each in self.measured:
            if row_tag(secret, each.number, self.rows, begin, begin + each.n_rows) != each.tag:
                raise WorkersLost(_CHANGED)
            begin += each.n_rows


@final
class Block:
    """The rows that a worker looks at together: stretches of the table, with what is public of it."""

    __slots__ = ("__weakref__", "shape", "stretches")

    def __init__(self, shape: TreeShape, stretches: tuple[Stretch, ...]) -> None:
        self.shape, self.stretches = shape, stretches

    def __repr__(self) -> str:
        return "Block(<rows>)"

    def __sizeof__(self) -> int:
        arrays: list[NDArray[Any] | None] = []
        for stretch in self.stretches:
            rows = stretch.rows
            cells = rows.cells
            arrays += [cells.rows, cells.cells] if isinstance(cells, SparseCells) else [cells]
            arrays += [rows.targets, rows.classes, rows.weights, rows.left_out]
        return sum(each.nbytes for each in arrays if each is not None)


def block(shape: TreeShape, partitions: Sequence[EncodedRows], places: Sequence[tuple[int, Measured]]) -> Block:
    """Puts partitions of one worker together.

    Args:
        shape: that of the table.
        partitions: encoded.
        places: the first row of each, rising, and what it was when the fit began.

    Raises:
        WorkersLost: a partition has another number of rows than when the fit began.
    """
    stretches: list[Stretch] = []
    run: list[tuple[EncodedRows, int, Measured]] = []
    for rows, (offset, measured) in zip(partitions, places, strict=True):
        if rows.n_rows != measured.n_rows:
            raise WorkersLost(_CHANGED)
        if run:
            last, before, _ = run[-1]
            total = sum(each.n_rows for each, _, _ in run) + rows.n_rows
            whole = isinstance(last.cells, SparseCells) or isinstance(rows.cells, SparseCells)
            if whole or before + last.n_rows != offset or total > _MERGED_ROWS:
                stretches.append(_stretch(run))
                run = []
        run.append((rows, offset, measured))
    return Block(shape, (*stretches, _stretch(run)) if run else tuple(stretches))


def _stretch(run: list[tuple[EncodedRows, int, Measured]]) -> Stretch:
    rows = [each for each, _, _ in run]
    first = rows[0]
    if len(rows) > 1:
        first = EncodedRows(
            cells=np.concatenate([np.asarray(each.cells) for each in rows], axis=1),
            targets=None if first.targets is None else np.concatenate([each.targets for each in rows]),
            classes=None if first.classes is None else np.concatenate([each.classes for each in rows]),
            weights=np.concatenate([each.weights for each in rows]),
            left_out=np.concatenate([each.left_out for each in rows]),
        )
    return Stretch(rows=first, offset=run[0][1], measured=tuple(measured for _, _, measured in run))


def measured(session: str, number: int, rows: EncodedRows) -> Measured | Absent:
    """The number of rows of a partition, and their tag."""
    told = _told(session)
    if told is None:
        return Absent(worker=_address())
    return Measured(number=number, n_rows=rows.n_rows, tag=row_tag(told.secret, number, rows, 0, rows.n_rows))


@final
class _State:
    """What a worker keeps beside a block: scores and leaves of its rows, and who is drawn."""

    __slots__ = ("allocated", "allocations", "drawn", "lock", "masks", "parts")

    def __init__(self, block: Block) -> None:
        self.lock = threading.Lock()
        self.allocated: tuple[str, Drawn] | None = None
        self.allocations: list[RowAllocation] = []
        self.parts = [_part(block.shape, stretch) for stretch in block.stretches]
        self.drawn: tuple[str, Drawn] | None = None
        self.masks: list[NDArray[Any]] = []

    def sampled(self, drawn: Drawn | None, session: "_Told", name: str) -> list[Mask]:
        """Who takes part, of each stretch."""
        if drawn is None:
            return [EVERYBODY] * len(self.parts)
        own = (name, drawn.of_group(None))  # the coins themselves, not their number alone
        if self.drawn != own:
            self.drawn = None
            if drawn.step is None:
                self.masks = _tossed(drawn, session.secret, name, self.parts)
            else:
                self.masks = [each.members(drawn.step) for each in self._allocated(drawn, session.secret, name)]
            self.drawn = own
        return self.masks if drawn.group is None else [mask == drawn.group for mask in self.masks]

    def _allocated(self, drawn: Drawn, secret: bytes, name: str) -> list[RowAllocation]:
        """The allocation of each stretch; a worker that does not have it yet follows it from its first step on."""
        whole = (name, drawn.of_step(None))
        if self.allocated != whole:
            self.allocated = None
            coins = RowCoins.unsealed(drawn.sealed, secret, drawn.purpose(name))
            self.allocations = [
                RowAllocation(coins, selected=drawn.selected, steps=drawn.steps, start=part.offset, n_rows=part.n_rows)
                for part in self.parts
            ]
            self.allocated = whole
        return self.allocations


def _part(shape: TreeShape, stretch: Stretch) -> RowPart:
    rows = stretch.rows
    part = RowPart(
        shape=shape,
        cells=rows.cells,
        targets=rows.targets,
        classes=rows.classes,
        weights=rows.weights,
        offset=stretch.offset,
    )
    part.leave_out(rows.left_out)
    return part


def _tossed(drawn: Drawn, secret: bytes, session: str, parts: Sequence[RowPart]) -> list[NDArray[Any]]:
    kind = np.min_scalar_type(len(drawn.ends))
    if not drawn.sealed:
        return [np.zeros(part.n_rows, dtype=kind) for part in parts]
    coins = RowCoins.unsealed(drawn.sealed, secret, drawn.purpose(session))
    if drawn.rate is not None:
        return [coins.bernoulli(drawn.rate, part.offset, part.n_rows) for part in parts]
    return [coins.categories(drawn.ends, part.offset, part.n_rows).astype(kind) for part in parts]


@final
class _Told:
    """What a worker knows of a fit: the secret that opens its coins, and its shared values."""

    __slots__ = ("known", "lock", "secret")

    def __init__(self, secret: bytes, pickles: Sequence[bytes]) -> None:
        self.lock = threading.Lock()
        self.secret, self.known = secret, KnownValues(pickles)


_SESSIONS: OrderedDict[str, _Told] = OrderedDict()
_STATES: WeakKeyDictionary[Block, _State] = WeakKeyDictionary()
_LOCK = threading.Lock()


def open_session(session: str, secret: SessionSecret, digest: str, pickles: Sequence[bytes]) -> str:
    """Tell this worker of a fit; returns why it cannot take part, or "". What fails on a worker is logged there."""
    if digest != code_digest():
        return OTHER_VERSION
    known = _told(session)
    if known is not None and known.secret == secret.value:
        with known.lock:  # what evaluators know again by its identity stays what it is
            known.known.learn(0, pickles)
        return ""
    with _LOCK:
        _SESSIONS[session] = _Told(secret.value, pickles)
        while len(_SESSIONS) > _MOST_SESSIONS:  # of curators that were killed
            _SESSIONS.popitem(last=False)
    return ""


def _told(session: str) -> _Told | None:
    with _LOCK:
        return _SESSIONS.get(session)


def close_session(session: str) -> None:
    """Forget a fit."""
    with _LOCK:
        _SESSIONS.pop(session, None)


def answered(block: Block, question: SumQuestion) -> Answer | Absent:
    """The sums of the question's query over the block's rows."""
    return _answered(block, question, None)


Left = tuple[NDArray[np.int64], ...]
"""What each row of each stretch of a block has left, in units of `accounting.individuals`."""


def charged(block: Block, left: Left | Absent | None, question: SumQuestion) -> tuple[Answer | Absent, Left | Absent]:
    """As `answered`, under an individual filter; with what is left of the rows' limits afterwards.

    Args:
        block: the rows.
        left: before the question; None: the whole limit; `Absent` where an earlier question was not answered.
        question: with a charge.
    """
    if isinstance(left, Absent):
        return left, left
    if left is None:
        left = tuple(np.full(stretch.rows.n_rows, FULL, dtype=np.int64) for stretch in block.stretches)
    after = tuple(each.copy() for each in left)  # the task may be run again, on the same values
    answer = _answered(block, question, after)
    return answer, answer if isinstance(answer, Absent) else after


def answer_of(found: tuple[Answer | Absent, object]) -> Answer | Absent:
    """The first half of what `charged` returns."""
    return found[0]


def accounts_of(found: tuple[object, Left | Absent]) -> Left | Absent:
    """The second half of what `charged` returns."""
    return found[1]


def merged(answers: Sequence[Answer | Absent]) -> Answer | Absent:
    """The sum of several workers' sums."""
    found: list[Answer] = []
    for each in answers:
        if isinstance(each, Absent):
            return each
        found.append(each)
    numbers = {each.number for each in found}
    if len(numbers) != 1:
        raise RoundViolation(f"answers to the questions {sorted(numbers)} were to be added up")
    parts = tuple(part for each in found for part in each.parts)
    sums = PartSums(parts)
    for each in found:
        sums.add(each.parts, each.sums)
    return Answer(number=numbers.pop(), parts=parts, sums=sums.total())


def _answered(block: Block, question: SumQuestion, left: Left | None) -> Answer | Absent:
    session = _told(question.session)
    if session is None:
        return Absent(worker=_address())
    state = _state(block, session.secret)
    with session.lock:
        if not session.known.learn(question.known, question.news):
            return Absent(worker=_address())
        query = session.known.unpacked(question.packed)
    evaluation = (TREE_CHOICES if question.is_choice else TREES).evaluation(query)
    parts = tuple(number for stretch in block.stretches for number in stretch.parts)
    sums = PartSums(parts)
    with state.lock, threads(_team(question)):
        sampled = state.sampled(question.drawn, session, question.session)
        for place, (part, stretch) in enumerate(zip(state.parts, block.stretches, strict=True)):
            budgets = NO_FILTER
            if left is not None:
                assert question.charge is not None  # `charged`
                budgets = RowBudgets(left[place], question.charge.costs, question.charge.weights)
            sums.add(stretch.parts, evaluation.evaluate(query, part.seen(sampled[place], budgets)))
        total = sums.total()
    # An evaluator may go on with the array that it returned, while Dask still holds this one.
    return Answer(number=question.number, parts=parts, sums=total.copy())


def _state(block: Block, secret: bytes) -> _State:
    """What is kept beside a block; made anew of a block that was computed again, or came back from a disk."""
    with _LOCK:
        state = _STATES.get(block)
        if state is None:
            for stretch in block.stretches:
                stretch.require_same(secret)
            state = _STATES[block] = _State(block)
        return state


def _team(question: SumQuestion) -> int:
    """The threads of a loop: as the estimator says, or as many as this worker has."""
    if question.n_jobs is not None:
        return question.n_jobs
    from distributed import get_worker

    return max(1, get_worker().state.nthreads)


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)
