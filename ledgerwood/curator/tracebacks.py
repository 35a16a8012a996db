"""A fit that fails leaves no rows behind: what a traceback holds is shown by debuggers, crash reports and logs."""

import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

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
