"""Progress of a fit: trees done, of trees in all. It says nothing of the rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with (trees done, trees in all)."""


@contextmanager
def progress_bar(title: str, verbose: int) -> Iterator[Progress]:
    """A bar on the terminal, or nothing where `verbose` is 0."""
    if not verbose:
        yield unseen
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def unseen(done: int, total: int) -> None:
    """Progress that is shown to nobody."""
