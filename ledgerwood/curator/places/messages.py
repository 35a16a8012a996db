"""What travels between the curator and the workers that hold its rows: questions, and sums over parts.

A question is public, but for the keys of coins, which are sealed: messages stay in the scheduler's memory, and in the
files of workers that run out of theirs. docs/explanation/places.md#clusters.
"""

import dataclasses
import hashlib
import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.queries.bins import CandidateBins
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure

_SHARED = frozenset({Ensemble, Tree, TreeStructure, SplitTests, CandidateBins})
"""Public values that many questions hold, and that evaluators know again by their identity."""

SPENT = (
    "What the ledger granted to this fit stays spent, and no model was released; nothing was released that the ledger "
    "does not have"
)
UNPAID = "Nothing was spent"
OTHER_VERSION = (
    "a worker has another version of ledgerwood than the process that fits: install the same one on all, and restart "
    "the workers"
)


def _digest_of_files() -> str:
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


_LOADED = _digest_of_files()
"""Taken as the code is loaded: files may be others by the time that somebody asks."""


def code_digest() -> str:
    """Tells two versions of this library's code apart; workers must have the curator's."""
    return _LOADED


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Who takes part, as workers find it out: the coins of one draw, sealed.

    Args:
        number: of the draw, from 1.
        sealed: see `RowCoins.sealed`; empty where no coin is needed.
        rate: of a Poisson sample; None of groups.
        ends: of groups, see `RowCoins.categories`; empty of a sample.
        group: which of them takes part.
        selected, steps: of an allocation, see `RowAllocation`; 0 of any other draw.
        step: which of its steps it is, from 0.
    """

    number: int
    sealed: bytes
    rate: float | None = None
    ends: tuple[int, ...] = ()
    group: int | None = None
    selected: int = 0
    steps: int = 0
    step: int | None = None

    def purpose(self, session: str) -> bytes:
        """What the coins are sealed for."""
        return f"{session} {self.number}".encode()

    def of_group(self, group: int | None) -> "Drawn":
        """The same coins, of one group; None: of all."""
        return dataclasses.replace(self, group=group)

    def of_step(self, step: int | None) -> "Drawn":
        """The same coins, of one step of the allocation; None: of all."""
        return dataclasses.replace(self, step=step)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowCharge:
    """The cost of a release to each row under an individual filter; see `RowBudgets`."""

    costs: NDArray[np.float64]
    weights: tuple[float, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumQuestion:
    """One query to all parts of the rows.

    Args:
        session: the fit that asks.
        number: of the question, from 1.
        packed: the query, see `SharedValues`.
        known: how many shared values came before `news`.
        news: shared values that no earlier question had.
        is_choice: whether the query is a selection's.
        drawn: who takes part; None for all rows.
        charge: of a query under an individual filter.
        n_jobs: threads on each worker; None for as many as the worker has.
    """

    session: str
    number: int
    packed: bytes
    known: int
    news: tuple[bytes, ...]
    is_choice: bool
    drawn: Drawn | None
    charge: RowCharge | None
    n_jobs: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """Sums of a query over some parts.

    Args:
        number: of the question.
        parts: the parts that are in the sums, each once.
        sums: int64.
    """

    number: int
    parts: tuple[int, ...]
    sums: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, repr=False)
class SessionSecret:
    """The secret of a session; logs print what they are handed, and of this they print nothing.

    Args:
        value: 32 bytes.
    """

    value: bytes

    def __repr__(self) -> str:
        return "SessionSecret(<hidden>)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The answer of a worker that was not told of the session, or not of all of its shared values."""

    worker: str


@final
class SharedValues:
    """The shared values of one session, numbered in the order in which questions first hold them."""

    __slots__ = ("_kept", "_numbers", "pickles")

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # an id is a value's own only as long as that lives
        self.pickles: list[bytes] = []

    def packed(self, value: object) -> bytes:
        """The value as bytes, in which shared values are their numbers; new ones go to `pickles`."""
        import cloudpickle

        shared = self

        class Packer(cloudpickle.Pickler):  # type: ignore[misc]
            def persistent_id(self, inner: object) -> int | None:
                return shared._number(inner) if type(inner) in _SHARED and inner is not value else None

        room = io.BytesIO()
        Packer(room, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
        return room.getvalue()

    def _number(self, value: object) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            packed = self.packed(value)  # the values inside of it come first
            number = self._numbers[id(value)] = len(self.pickles)
            self._kept.append(value)
            self.pickles.append(packed)
        return number


@final
class KnownValues:
    """The shared values of a session, as a worker has them."""

    __slots__ = ("_values",)

    def __init__(self, pickles: Sequence[bytes] = ()) -> None:
        self._values: list[object] = []
        self.learn(0, pickles)

    def learn(self, known: int, news: Sequence[bytes]) -> bool:
        """Take over what is new, after the values that came before it; returns whether none of those is missing."""
        if known > len(self._values):
            return False
        for packed in news[len(self._values) - known :]:
            self._values.append(self.unpacked(packed))
        return True

    def unpacked(self, packed: bytes) -> Any:
        """What `SharedValues.packed` made bytes of; equal shared values are the same object each time."""
        values = self._values

        class Unpacker(pickle.Unpickler):
            def persistent_load(self, number: int) -> object:
                return values[number]

        return Unpacker(io.BytesIO(packed)).load()  # from the curator, over the cluster's own connections
