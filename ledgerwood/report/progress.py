"""Progress of work that takes more than two seconds: a line on standard error, if that is a terminal.

Standard output has results only. Trainings show a bar of their own: `trainers.base.progress`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

SECONDS = 2.0


def seen() -> bool:
    """Returns whether somebody can see progress: whether standard error is a terminal."""
    return Console(stderr=True).is_terminal


@contextmanager
def working(title: str, *, console: Console | None = None, after: float = SECONDS) -> Iterator[Callable[[int], None]]:
    """Show what is being done, and for how long, once it has taken some time; removed at the end.

    Args:
        title: what is being done.
        console: where it is shown; None: standard error.
        after: seconds of silence.

    Yields:
        A function to call with the number of rows, or of other things, that are done.
    """
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield _unseen
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Not redirected: what is printed meanwhile is a result, for another place.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    task = bar.add_task(title, total=None)
    timer = threading.Timer(after, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done: bar.update(task, description=f"{title}: {done:,}")
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _unseen(done: int) -> None:
    """Progress that nobody sees."""
