"""Where ledgers are: files, folders of files, and databases, each ledger under an opaque id.

A request names a ledger by its id only, and an id is looked up among those that the sources list. No path and no label
of a request ever reaches the file system or a query.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final
from urllib.parse import urlsplit

from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError

SUFFIX = ".ledger.jsonl"
_LARGEST = 1 << 28
"""Bytes of a ledger file that is read."""
_MOST = 10_000
"""Ledgers of one folder or database that are listed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a source read of a ledger.

    Args:
        lines: entries from the one that was asked for.
        end: how many entries the ledger has, and its last hash, where the source keeps them apart from the lines.
        stamp: changes when the ledger does.
        unfinished: whether a last line without its newline was left out.
    """

    lines: list[str]
    end: tuple[int, str] | None
    stamp: str
    unfinished: bool = False


class Source(ABC):
    """A place on the command line, with the ledgers in it.

    Args:
        name: what pages call it: no folders, users or passwords.
        identity: its full path or URL, without a password.
    """

    name: str
    identity: str

    @abstractmethod
    def ledgers(self) -> dict[str, str]:
        """The stamps of all ledgers by their keys; a stamp that has not changed says that nothing was appended.

        Raises:
            LedgerError: the place cannot be read.
        """

    @abstractmethod
    def read(self, key: str, start: int) -> Content:
        """The entries of a ledger from `start` on; a file gives all of them, whatever `start` is.

        Raises:
            LedgerError: it cannot be read.
            LedgerCorrupted: it holds something else than lines of text.
        """

    @abstractmethod
    def place_of(self, key: str) -> str:
        """Where the ledger is, without folders, users and passwords."""

    @abstractmethod
    def location(self, key: str) -> tuple[str, str | None]:
        """Path or URL, and the data set's label in a database: for this process, and never shown."""

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Whether `read` gives every entry each time."""

    def close(self) -> None:  # noqa: B027
        """Let go of it; there is nothing to let go of in a folder."""

    def id_of(self, key: str) -> str:
        """The opaque id of a ledger: the same in every run; no password takes part in it."""
        text = f"ledger\0{self.identity}\0{key}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:20]


@final
class FolderSource(Source):
    """The regular files *.ledger.jsonl directly in a folder, symbolic links not followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.name, self.identity = self.folder.name, str(self.folder)

    @property
    def whole(self) -> bool:
        return True

    def ledgers(self) -> dict[str, str]:
        try:
            with os.scandir(self.folder) as found:
                files = [entry for entry in found if entry.name.endswith(SUFFIX)]
                stamps = {
                    entry.name: _stamp(entry.stat(follow_symlinks=False))
                    for entry in files
                    if entry.is_file(follow_symlinks=False)
                }
        except OSError as error:
            raise LedgerError(f"the folder {self.name} cannot be read: {error.strerror}") from error
        return {name: stamps[name] for name in sorted(stamps)[:_MOST]}

    def read(self, key: str, start: int) -> Content:
        if (self.folder / key).is_symlink():
            raise LedgerError(f"the ledger file {key} has become a symbolic link, which is not followed")
        return _read_file(self.folder / key)

    def place_of(self, key: str) -> str:
        return key

    def location(self, key: str) -> tuple[str, str | None]:
        return str(self.folder / key), None


@final
class FileSource(Source):
    """One ledger file that was named on the command line."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.name, self.identity = path.name, str(self.path)

    @property
    def whole(self) -> bool:
        return True

    def ledgers(self) -> dict[str, str]:
        try:
            return {self.name: _stamp(self.path.stat())}
        except OSError:  # it is shown with what failed
            return {self.name: "absent"}

    def read(self, key: str, start: int) -> Content:
        return _read_file(self.path)

    def place_of(self, key: str) -> str:
        return self.name

    def location(self, key: str) -> tuple[str, str | None]:
        return str(self.path), None


@final
class DatabaseSource(Source):
    """All ledgers of a database, which is opened read-only."""

    def __init__(self, url: str) -> None:
        try:
            from ledgerwood.accounting.ledger.watching import DatabaseReader
        except ModuleNotFoundError as missing:
            raise ImportError(
                f"a ledger in a database needs {missing.name}: pip install 'ledgerwood[sql]'", name=missing.name
            ) from missing
        self.url, self._reader = url, DatabaseReader(url)
        parts = urlsplit(url)
        self.name, self.identity = f"{parts.scheme.partition('+')[0]} {Path(parts.path).name}", self._reader.identity

    @property
    def whole(self) -> bool:
        return False

    def ledgers(self) -> dict[str, str]:
        heads = self._reader.heads()
        return {label: f"{heads[label].entries}-{heads[label].hash}" for label in list(heads)[:_MOST]}

    def read(self, key: str, start: int) -> Content:
        lines, head = self._reader.lines(key, start)
        if len(lines) != max(0, head.entries - start):
            raise LedgerCorrupted(f"entry {start + len(lines)}: missing from the database")
        return Content(lines=lines, end=(head.entries, head.hash), stamp=f"{head.entries}-{head.hash}")

    def place_of(self, key: str) -> str:
        return self.name

    def location(self, key: str) -> tuple[str, str | None]:
        return self.url, key

    def close(self) -> None:
        self._reader.close()


def sources_at(places: Sequence[str]) -> tuple[Source, ...]:
    """The sources that the command line names, each once.

    Raises:
        InvalidParameter: none, the same one twice, or a path that does not exist.
        ImportError: a database, without the extra.
    """
    if not places:
        raise InvalidParameter("name a ledger file, a folder of *.ledger.jsonl files, or the URL of a database")
    found: dict[str, Source] = {}
    for place in places:
        source = _source_at(place)
        if source.identity in found:
            raise InvalidParameter(f"the place {source.name!r} is named twice (unit: path or URL)")
        found[source.identity] = source
    return tuple(found.values())


def _source_at(place: str) -> Source:
    if "://" in place:
        return DatabaseSource(place)
    path = Path(place)
    if path.is_dir():
        return FolderSource(path)
    if path.is_file():
        return FileSource(path)
    raise InvalidParameter(
        f"there is no file or folder {place!r}; name a ledger file, a folder of *{SUFFIX} files, or a database as "
        "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    )


def _stamp(stat: os.stat_result) -> str:
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def _read_file(path: Path) -> Content:
    try:
        with path.open("rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise LedgerError(f"the ledger file {path.name} cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise LedgerError(f"the ledger file {path.name} has more than {_LARGEST:,} bytes, the most that is read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LedgerCorrupted(f"the ledger file {path.name} is not text in UTF-8: byte {error.start}") from error
    *lines, rest = text.split("\n")
    return Content(lines=lines, end=None, stamp=stamp, unfinished=bool(rest))
