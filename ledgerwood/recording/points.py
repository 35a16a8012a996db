"""Points that calls pass, and the recording of the current thread or task, if there is one.

A method that is marked with `passes` hands its call to the recording that is open in this context, and is an ordinary
call where there is none: one look at a context variable. Nothing is ever replaced in a class or a module, so other
threads and other asyncio tasks do not see a recording. docs/explanation/recording.md#recording-context.
"""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, final

from ledgerwood.errors import ReplayFailed

Point = Literal[
    "words", "grant", "draw", "open", "open_groups", "group", "search", "sample", "assign", "release", "select",
    "noise", "evidence", "choice", "structure",
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


_CURRENT: ContextVar[Recording | None] = ContextVar("ledgerwood.recording", default=None)


def current() -> Recording | None:
    """The open recording of this thread or task; None where nobody records, as in every ordinary fit."""
    recording = _CURRENT.get()
    # A task or a thread that outlives the recording has a copy of its context.
    return recording if recording is not None and recording.is_open else None


@contextmanager
def joined(recording: Recording) -> Iterator[None]:
    """Make a recording the one of this thread or task, until the end of the block."""
    token = _CURRENT.set(recording)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def passes(point: Point) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function or method: its calls pass the point."""

    def marked(body: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(body)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            recording = _CURRENT.get()
            if recording is None or not recording.is_open:
                return body(*arguments, **named)
            return recording.passing(point, body, *arguments, **named)

        call.__dict__["point"] = point
        call.__dict__["marker"] = passes
        return call

    return marked


class Recorded:
    """What belongs to the recording in which it was made, whichever thread uses it: curators, groups and rounds.

    A pool of threads inside a fit has contexts of its own; what it does with the fit's curator is recorded all the
    same.
    """

    __slots__ = ("_recording",)

    def __init__(self) -> None:
        self._recording = current()


O = TypeVar("O", bound=Recorded)


def passes_with_owner(
    point: Point,
) -> Callable[[Callable[Concatenate[O, P], R]], Callable[Concatenate[O, P], R]]:
    """Mark a method of a `Recorded`: its calls pass the point of this thread's recording, or else of the object's own.

    Calls raise ReplayFailed where a recording is open here, and the object belongs to another one.
    """

    def marked(body: Callable[Concatenate[O, P], R]) -> Callable[Concatenate[O, P], R]:
        @functools.wraps(body)
        def call(owner: O, /, *arguments: P.args, **named: P.kwargs) -> R:
            here, own = current(), owner._recording
            if own is not None and own is not here and own.is_open:
                if here is not None:
                    raise ReplayFailed(
                        f"a {type(owner).__name__} of one {own.name} is used inside of another {here.name}: each sees "
                        "one fit, with a curator of its own"
                    )
                with joined(own):
                    return own.passing(point, body, owner, *arguments, **named)
            if here is None:
                return body(owner, *arguments, **named)
            return here.passing(point, body, owner, *arguments, **named)

        call.__dict__["point"] = point
        call.__dict__["marker"] = passes_with_owner
        return call

    return marked


def point_of(call: object) -> Point | None:
    """The point that calls of a function or method pass; None where it is not marked."""
    found: Point | None = getattr(call, "point", None)
    return found


def with_body(call: Callable[..., Any], change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    """The same point in front of another body: how a test puts a fault into the library's code.

    Args:
        call: marked or not.
        change: from the body to the one that takes its place.
    """
    point = point_of(call)
    if point is None:
        return change(call)
    wrapper: Any = call
    return wrapper.marker(point)(change(wrapper.__wrapped__))
