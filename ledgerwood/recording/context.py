"""The recording of the current thread or task, if there is one. For this package alone (an import contract says so)."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, ParamSpec, TypeVar, final

from ledgerwood.errors import ReplayFailed

Point = Literal[
    "words", "grant", "draw", "open", "open_groups", "group", "open_allocation", "step", "search", "sample", "assign",
    "allocate", "allocated", "release", "select", "noise", "evidence", "choice", "structure",
]  # fmt: skip
Hook = Callable[..., Any]
"""Called as hook(body, *arguments): `body` is the method behind the point, which the hook calls, or not."""
P = ParamSpec("P")
R = TypeVar("R")
_UNLOCKED = frozenset({"search", "choice", "grant", "draw"})
"""Points at which no lock is held: behind them a caller's own code may run, which may wait for other threads of the
fit, or they are passed with a ledger's lock held."""


@final
class Recording:
    """One recording: its name, and a hook for each point that it listens at. Made by `opening.recording` alone.

    Args:
        name: what it is, for messages.
        hooks: by point; calls at other points go on as they are.
    """

    __slots__ = ("_hooks", "_lock", "_process", "is_open", "name")

    def __init__(self, name: str, hooks: Mapping[Point, Hook]) -> None:
        self.name = name
        self.is_open = True
        self._hooks = dict(hooks)
        self._process = os.getpid()
        self._lock = threading.RLock()

    def close(self) -> None:
        """Let all calls go on as they are from here on, and let go of what the hooks hold: they have seen rows."""
        self.is_open = False
        self._hooks = {}

    def passing(self, point: Point, body: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """The outcome of a call at a point.

        Raises:
            ReplayFailed: the call is made in a process that was forked while the recording was open: what it releases
                would not be seen.
        """
        if self._process != os.getpid():
            raise ReplayFailed(
                f"a {self.name} is open in another process, which does not see what is released in this one: fit in "
                "the process that opened it"
            )
        hook = self._hooks.get(point)
        if hook is None:
            return body(*arguments, **named)
        # Threads of one fit pass one at a time.
        with nullcontext() if point in _UNLOCKED else self._lock:
            outcome: R = hook(body, *arguments, **named)
        return outcome


CURRENT: ContextVar[Recording | None] = ContextVar("ledgerwood.recording", default=None)


def current() -> Recording | None:
    """The open recording of this thread or task; None if there is no recording, as in every ordinary fit."""
    recording = CURRENT.get()
    # A task or a thread that outlives the recording has a copy of its context.
    return recording if recording is not None and recording.is_open else None


@contextmanager
def joined(recording: Recording) -> Iterator[None]:
    """Make a recording the one of this thread or task, until the end of the block."""
    token = CURRENT.set(recording)
    try:
        yield
    finally:
        CURRENT.reset(token)
