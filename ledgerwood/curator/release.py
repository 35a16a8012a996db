"""Releases, the values that leave the curator: a noisy value or a private choice, with the receipt of its draw.

A round may release while it is open, in the process that opened it, one release at a time. A fit that fails leaves no
rows behind: what a traceback holds is shown by debuggers, crash reports and logs.
"""

import functools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, ParamSpec, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood._uncopied import Uncopied
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import Grid

R_co = TypeVar("R_co", covariant=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release(Generic[R_co]):
    """A noisy value with the receipt of its draw. Everything computed from it is post-processing.

    Args:
        value: integers on `grid`, noise included.
        grid: the steps of the last axis.
        receipt: the draw that covers it.
        randomness: "test" if the noise is reproducible, and protects nobody.
        caveat: who declares the sensitivity that the noise was priced with, where it is not proven; else empty.
    """

    value: R_co
    grid: Grid
    receipt: Receipt
    randomness: Literal["secure", "test"]
    caveat: str = ""

    @property
    def real(self: "Release[NDArray[np.int64]]") -> NDArray[np.float64]:
        """The value in real units, float64, its shape."""
        return self.grid.to_real(self.value)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selected(Generic[R_co]):
    """A private choice with the receipt of its draw.

    Args:
        value: an index, or what the query says, in the column's unit.
        receipt, randomness: as of `Release`.
    """

    value: R_co
    receipt: Receipt
    randomness: Literal["secure", "test"]


Whole: TypeAlias = Literal["round", "groups", "allocation"]
"""What a gate is of."""


@final
class Gate(Uncopied):
    """The state that every kind of round shares.

    Args:
        outer: the run of a selection that the round ends with, if it is opened in one.
    """

    __slots__ = ("_open", "_outer", "_owner", "lock")

    def __init__(self, outer: "Gate | None" = None) -> None:
        self._open = True
        self._outer = outer
        self._owner = os.getpid()
        self.lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """True if neither it nor what is around it was closed."""
        return self._open and (self._outer is None or self._outer.is_open)

    @property
    def is_ours(self) -> bool:
        """True if this is the process that it was made in."""
        return self._owner == os.getpid()

    def close(self) -> None:
        """No release after this one."""
        with self.lock:
            self._open = False

    def require(self, purpose: str) -> None:
        """Refuse a release of a closed round, or in another process. Called with the lock held.

        Raises:
            RoundViolation: the round is closed, or another process's.
        """
        self.require_of("round", f"release {purpose!r}")

    def require_of(self, whole: "Whole", asked: str) -> None:
        """Refuse what is asked of a whole that is closed, or in another process. Called with the lock held.

        Args:
            whole: what the gate is of.
            asked: its name in the error.

        Raises:
            RoundViolation: it is closed, or another process's.
        """
        several = whole == "groups"
        if not self.is_open:
            raise RoundViolation(
                f"{asked}: the {whole} {'are' if several else 'is'} closed; "
                f"open {'new ones' if several else 'another one'}, with a separate draw"
            )
        if not self.is_ours:
            raise RoundViolation(
                f"{asked}: the {whole} {'belong' if several else 'belongs'} to another process; parent and child "
                "process would both use one draw"
            )

    def _uncopied(self) -> str:
        return "a Gate cannot be copied or pickled, or a round would stay open after its end; use the object itself"


P = ParamSpec("P")
T = TypeVar("T")


def keeps_no_rows(method: Callable[P, T]) -> Callable[P, T]:
    """A function that is handed rows, whose exceptions do not hold them.

    The frames between the exception and the caller lose their local variables; type, text and line numbers stay.
    """

    @functools.wraps(method)
    def guarded(*arguments: P.args, **named: P.kwargs) -> T:
        outer = sys.exc_info()[1]
        try:
            return method(*arguments, **named)
        except BaseException as error:
            # This frame is on the traceback itself, and lives on.
            del arguments, named
            for each in _chain(error, outer):
                traceback.clear_frames(each.__traceback__)
                if isinstance(each, AttributeError):
                    each.obj = None  # the object that was asked: it may be a row
            raise

    return guarded


def _chain(error: BaseException, outer: BaseException | None) -> Iterator[BaseException]:
    """The exception, and all that were raised on the way to it; not the one that the caller was handling already."""
    waiting, seen = [error], set() if outer is None else {id(outer)}
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
