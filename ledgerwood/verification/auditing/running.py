"""The state of an audit that goes on for as long as a service runs; valid whenever somebody looks.

One claim, one event, one record. Outputs of both data sets arrive in any numbers; they are matched into blocks in the
order in which they came, and those that have no partner yet wait. docs/explanation/auditing.md#audits-over-time.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.references import Cited
from ledgerwood.verification.auditing.result import LowerBound, level
from ledgerwood.verification.auditing.sequential import bisected, log_wealth_of, refused_from_zero

Ways = Literal["first", "both"]
Block = tuple[int, int]
Table = tuple[tuple[int, ...], ...]
_VERSION = 1
_MOST_IN_BLOCK = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAudit(Cited):
    """An audit so far: what is claimed, what was counted, and what follows. Frozen; `update` gives the next state.

    Args:
        claim: the budget that the mechanism claims.
        alpha: the probability that a true claim is ever refuted, and that `epsilon_lower` is ever above the truth.
        event: the outputs that are counted, in words; fixed before the first run, for the whole audit.
        block: how many runs with the row, and how many without it, make a block.
        ways: "first" tests P(event with the row) <= e^epsilon P(event without) + delta; "both" the other direction
            too, for log 2 of evidence.
        counts: blocks by their number of events with the row (first index) and without it (second).
        waiting_with, waiting_without: outputs without a block yet, in order; "1" is in the event.
        epsilon_lower: the largest lower bound on epsilon at the claim's delta so far, nats.
        evidence: the largest logarithm of the e-value against the claim so far.
        updates: how many times outputs came in.
        previous: the digest of the state before; "" for the first.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    claim: Budget
    alpha: float
    event: str
    block: Block = (1, 1)
    ways: Ways = "first"
    counts: Table = ()
    waiting_with: str = ""
    waiting_without: str = ""
    epsilon_lower: float = 0.0
    evidence: float = 0.0
    updates: int = 0
    previous: str = ""

    def cited(self) -> tuple[object, ...]:
        """Nothing, for `ledgerwood.cite`: the test is derived in docs/explanation/auditing.md#audits-over-time."""
        return ()

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Budget):
            raise _validate.fail("claim", self.claim, "a Budget", "claim")
        object.__setattr__(self, "alpha", level(self.alpha))
        if not str(self.event).strip():
            raise _validate.fail("event", self.event, "words that say what is counted", "event")
        if self.ways not in get_args(Ways):
            raise _validate.fail("ways", self.ways, f"one of {get_args(Ways)}", "mode")
        sizes = _validate.items("block", self.block, "runs")
        if len(sizes) != 2:
            raise _validate.fail("block", self.block, "two numbers of runs", "runs")
        for size in sizes:
            if _validate.count("block", size, "runs", minimum=1) > _MOST_IN_BLOCK:
                raise _validate.fail("block", self.block, f"at most {_MOST_IN_BLOCK} of each", "runs")
        shape = (sizes[0] + 1, sizes[1] + 1)
        rows = _validate.items("counts", self.counts, "blocks") or ((0,) * shape[1],) * shape[0]
        table = tuple(_validate.items("counts", row, "blocks") for row in rows)
        if len(table) != shape[0] or any(len(row) != shape[1] for row in table):
            raise _validate.fail("counts", self.counts, f"a table of shape {shape}", "blocks")
        for row in table:
            for cell in row:
                _validate.count("counts", cell, "blocks", minimum=0)
        object.__setattr__(self, "block", sizes)
        object.__setattr__(self, "counts", table)
        for name, waiting in (("waiting_with", self.waiting_with), ("waiting_without", self.waiting_without)):
            if str(waiting).strip("01"):
                raise _validate.fail(name, waiting, "zeros and ones", "outputs")

    def update(self, *, with_row: ArrayLike = (), without: ArrayLike = ()) -> "RunningAudit":
        """The state after more outputs: whether each was in the event, shape (n,) and (m,); either may be empty.

        Count every run, in order, however many there are of each kind: how many to draw next may depend on all that
        was seen, which of them are counted may not.

        Raises:
            InvalidParameter: values that are not True or False (or 1 and 0).
        """
        first = self.waiting_with + _marks("with_row", with_row)
        second = self.waiting_without + _marks("without", without)
        size_one, size_two = self.block
        blocks = min(len(first) // size_one, len(second) // size_two)
        table = np.array(self.counts, np.int64)
        if blocks:
            ones = _in_blocks(first, blocks, size_one)
            np.add.at(table, (ones, _in_blocks(second, blocks, size_two)), 1)
        after = replace(
            self,
            counts=tuple(tuple(row) for row in table.tolist()),
            waiting_with=first[blocks * size_one :],
            waiting_without=second[blocks * size_two :],
            updates=self.updates + 1,
            previous=self.digest,
        )
        return after._judged() if blocks else after

    def _judged(self) -> "RunningAudit":
        return replace(
            self,
            epsilon_lower=max(self.epsilon_lower, self._bound()),
            evidence=max(self.evidence, float(self._log_wealth(np.array([self.claim.epsilon]))[0])),
        )

    def _bound(self) -> float:
        target = -math.log(self.alpha)
        if self.claim.delta == 0.0:
            return bisected(lambda epsilon: bool(self._log_wealth(np.array([epsilon]))[0] >= target))
        return refused_from_zero(self._log_wealth, target, falling=False)

    def _log_wealth(self, epsilons: FloatArray) -> FloatArray:
        """log of the e-process at each epsilon, shape (k,), rounded down."""
        table, (one, two), delta = np.array(self.counts, np.float64), self.block, self.claim.delta
        forward = _log_wealth(table, one, two, epsilons, delta)
        if self.ways == "first":
            return forward
        other: FloatArray = np.logaddexp(forward, _log_wealth(table.T, two, one, epsilons, delta)) - math.log(2.0)
        return other

    @property
    def rejected(self) -> bool:
        """Whether the claim was ever refuted: once refuted, it stays so."""
        return self.evidence >= -math.log(self.alpha)

    @property
    def runs(self) -> int:
        """All outputs that came in, those that wait included."""
        blocks = sum(map(sum, self.counts))
        return blocks * sum(self.block) + len(self.waiting_with) + len(self.waiting_without)

    def bound(self) -> LowerBound:
        """The lower bound on epsilon, with what it rests on."""
        return LowerBound(
            value=self.epsilon_lower, delta=self.claim.delta, alpha=self.alpha, assumption="none", event=self.event,
            samples=self.runs, statistic="e-process of blocks",
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """SHA-256 of this state and, by `previous`, of all states before it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def same_audit(self, other: "RunningAudit") -> bool:
        """Whether both have the same claim, level, event, block and directions."""
        return all(
            mine == its
            for mine, its in (
                (self.claim, other.claim), (self.alpha, other.alpha), (self.event, other.event),
                (self.block, other.block), (self.ways, other.ways),
            )
        )  # fmt: skip

    def to_json(self) -> str:
        """One line of JSON, the same for equal states."""
        values = {
            "version": _VERSION,
            "claim": [self.claim.epsilon, self.claim.delta, self.claim.adjacency.value],
            "alpha": self.alpha, "event": self.event, "block": list(self.block), "ways": self.ways,
            "counts": [list(row) for row in self.counts], "waiting_with": self.waiting_with,
            "waiting_without": self.waiting_without, "epsilon_lower": self.epsilon_lower, "evidence": self.evidence,
            "updates": self.updates, "previous": self.previous,
        }  # fmt: skip
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "RunningAudit":
        """The state that `to_json` wrote.

        Raises:
            AuditFailed: not such a state.
        """
        try:
            return cls._of(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise AuditFailed(f"not the state of a running audit ({type(error).__name__}: {error})") from error

    def require_own_figures(self) -> None:
        """Refuse a bound or evidence that is less than what the counts show; earlier counts may have shown more.

        Raises:
            AuditFailed: a figure is smaller.
        """
        judged = self._judged()
        if judged.epsilon_lower > self.epsilon_lower + 1e-9 or judged.evidence > self.evidence + 1e-9:
            raise AuditFailed(
                f"the state says epsilon >= {self.epsilon_lower!r} and evidence {self.evidence!r}, and its counts "
                f"show {judged.epsilon_lower!r} and {judged.evidence!r}: it was changed"
            )

    @classmethod
    def _of(cls, values: dict[str, Any]) -> "RunningAudit":
        if values.pop("version") != _VERSION:
            raise InvalidParameter(f"version must be {_VERSION} (unit: format)")
        epsilon, delta, adjacency = values.pop("claim")
        return cls(
            claim=Budget(epsilon=epsilon, delta=delta, adjacency=Adjacency(adjacency)),
            alpha=values["alpha"], event=values["event"], block=tuple(values["block"]), ways=values["ways"],
            counts=tuple(tuple(row) for row in values["counts"]), waiting_with=values["waiting_with"],
            waiting_without=values["waiting_without"],
            epsilon_lower=_validate.non_negative("epsilon_lower", values["epsilon_lower"], "nats"),
            evidence=_validate.non_negative("evidence", values["evidence"], "nats"),
            updates=_validate.count("updates", values["updates"], "updates", minimum=0), previous=values["previous"],
        )  # fmt: skip

    def __str__(self) -> str:
        verdict = "refuted" if self.rejected else "not refuted"
        waiting = len(self.waiting_with) + len(self.waiting_without)
        wait = f", {waiting} of them waiting for a partner" if waiting else ""
        return f"{self.bound()}; claim {verdict} after {self.updates} updates{wait}"


def _marks(name: str, values: ArrayLike) -> str:
    """Zeros and ones of a column of truth values."""
    column = np.asarray(values)
    if not column.size:
        return ""
    if column.ndim != 1 or column.dtype.kind not in "biu" or not bool(np.isin(column, (0, 1)).all()):
        raise InvalidParameter(f"{name} must be one truth value an output, in one dimension (unit: outputs)")
    return (column.astype(np.uint8) + np.uint8(ord("0"))).tobytes().decode()


def _in_blocks(marks: str, blocks: int, size: int) -> np.ndarray:
    """Events in each of the first blocks, shape (blocks,)."""
    bits = np.frombuffer(marks[: blocks * size].encode(), np.uint8) - np.uint8(ord("0"))
    return np.asarray(bits.reshape(blocks, size).sum(axis=1, dtype=np.int64))


def _log_wealth(table: FloatArray, one: int, two: int, epsilons: FloatArray, delta: float) -> FloatArray:
    """Of payoffs i / one - e^epsilon j / two - delta, a block with i and j events."""
    i, j = np.nonzero(table)
    factors = np.exp(np.minimum(epsilons, 700.0))[:, None]
    payoffs = (i / one)[None, :] - factors * (j / two)[None, :] - delta
    return log_wealth_of(payoffs / (factors + delta), table[i, j])
