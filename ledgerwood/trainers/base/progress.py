"""Progress of a fit, on standard error: trees done, of trees in all. It says nothing of the rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[int, int], None]
"""Called with (trees done, trees in all)."""


def say_scratch(folder: Path, need: int | None, verbose: int) -> None:
    """Say where encoded rows will lie, and about how much room they take; nothing where `verbose` is 0.

    Args:
        folder: of the fit's own.
        need: bytes, by the files' sizes or the expected rows; None where neither is known.
        verbose: level of detail.
    """
    if verbose:
        from rich.console import Console

        size = "" if need is None else f", about {need / 2**20:,.0f} MiB by what is public of the rows"
        Console(stderr=True, soft_wrap=True).print(f"encoded rows lie in {folder}{size}", markup=False, highlight=False)


@contextmanager
def progress_bar(title: str, verbose: int) -> Iterator[Progress]:
    """A bar on standard error, or nothing where `verbose` is 0."""
    if not verbose:
        yield unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def unseen(done: int, total: int) -> None:
    """Progress that is shown to nobody."""
