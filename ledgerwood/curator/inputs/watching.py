"""Files that must not change between their first look and their last row: size, time of change, and which file it is.

Nothing of their content is kept, no hash either: what is remembered is what a listing of the folder shows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

from ledgerwood.errors import FilesChanged

_Facts = tuple[int, int, int, int]


@final
class WatchedFiles:
    """Files as they were when a fit, or a prediction, began.

    A change that keeps size and time of change, to the file system's resolution, is not seen.

    Args:
        paths: of local files.

    Raises:
        FilesChanged: one is gone.
    """

    __slots__ = ("_facts",)

    def __init__(self, paths: Sequence[Path]) -> None:
        self._facts = {path: _facts(path) for path in paths}

    @property
    def size(self) -> int:
        """Bytes of all files, when they were first looked at."""
        return sum(size for _, _, size, _ in self._facts.values())

    def __iter__(self) -> Iterator[Path]:
        """The files, each compared before it is read, and again when the next one is asked for.

        Raises:
            FilesChanged: one differs, or is gone.
        """
        for path in self._facts:
            self.require_same(path)
            yield path
            self.require_same(path)

    def require_same(self, path: Path | None = None) -> None:
        """Compare a file with what it was; None: all of them.

        Raises:
            FilesChanged: one differs, or is gone.
        """
        for each in self._facts if path is None else (path,):
            if _facts(each) != self._facts[each]:
                raise FilesChanged(
                    f"{each} has changed since it was first looked at (its size, its time of change, or which file "
                    "has that name), so that its rows may be a mixture of two versions; read it while nobody writes"
                )


def _facts(path: Path) -> _Facts:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise FilesChanged(f"{path} was there when its folder was listed, and is gone") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
