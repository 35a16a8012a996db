"""Points that calls pass.

A method that is marked with `passes` hands its call to the recording that is open in this context, and is an ordinary
call where there is none: one look at a context variable. Nothing is ever replaced in a class or a module, so other
threads and other asyncio tasks do not see a recording. docs/explanation/recording.md#recording-context.
"""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from ledgerwood._uncopied import Uncopied
from ledgerwood.errors import ReplayFailed
from ledgerwood.recording.context import CURRENT, Point, current, joined

P = ParamSpec("P")
R = TypeVar("R")


def is_recorded() -> bool:
    """Returns whether a recording is open in this thread or task; fits here are only compared, and not released."""
    return current() is not None


def passes(point: Point) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function or method: its calls pass the point."""

    def marked(body: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(body)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            recording = CURRENT.get()
            if recording is None or not recording.is_open:
                return body(*arguments, **named)
            return recording.passing(point, body, *arguments, **named)

        call.__dict__["point"] = point
        call.__dict__["marker"] = passes
        return call

    return marked


class Recorded(Uncopied):
    """An object of the recording in which it was made, for any thread: curators, groups and rounds.

    A pool of threads inside a fit has its own contexts; what it does with the fit's curator is recorded all the
    same. It is neither copied nor pickled: a copy would count for itself what was released out of one draw.
    """

    __slots__ = ("_recording",)

    def __init__(self) -> None:
        self._recording = current()

    def _uncopied(self) -> str:
        return (
            f"this {type(self).__name__} cannot be copied or pickled, or one draw would pay for the releases of both; "
            "use the object itself, from any thread, or open another one, with a separate draw"
        )


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
                        f"this {type(owner).__name__} of one {own.name} is used inside of another {here.name}: each "
                        "sees one fit, with a curator of its own"
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
    """The point that calls of a function or method pass; None if it is not marked."""
    found: Point | None = getattr(call, "point", None)
    return found


def with_body(call: Callable[..., Any], change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    """Replaces the body behind a point: tests inject faults into the library's code with it.

    Args:
        call: marked or not.
        change: from the body to the one that takes its place.
    """
    point = point_of(call)
    if point is None:
        return change(call)
    wrapper: Any = call
    return wrapper.marker(point)(change(wrapper.__wrapped__))
