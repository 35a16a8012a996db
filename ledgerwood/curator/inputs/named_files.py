"""The files that a path names: one file, a folder, or a pattern, of one kind by the ends of their names."""

import glob
from pathlib import Path

from ledgerwood.errors import SchemaError
from ledgerwood.libsvm_files import ENDINGS

_KINDS = {"Parquet": (".parquet", ".pq"), "CSV": (".csv", ".csv.gz"), "LIBSVM": ENDINGS}


def named_files(named: str) -> tuple[str, list[Path]]:
    """The kind of the files, and their paths in the public order of the rows: by name.

    Args:
        named: a file, a folder, all of whose files are meant but for names that begin with "_" or ".", or a pattern.

    Raises:
        SchemaError: no such file, or files that are not of one kind.
    """
    path = Path(named)
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.is_file() and not _hidden(each.relative_to(path))]
        nothing = f"X={named!r} is a folder without files"
    else:
        # Not Path.glob, which takes no pattern with a root.
        names = [named] if path.exists() else glob.glob(named, recursive=True)  # noqa: PTH207
        found = [Path(each) for each in names if Path(each).is_file()]
        nothing = f"X={named!r} names no file, no folder, and no pattern that a file matches"
    known = " or ".join(f"{kind} ({', '.join(ends)})" for kind, ends in _KINDS.items())
    if not found:
        raise SchemaError(f"{nothing}: rows are read from files of {known}")
    kinds = {_kind(each) for each in found}
    kind, *more = kinds
    if more or kind is None:
        others = sorted(str(each) for each in found if _kind(each) is None)[:3]
        raise SchemaError(
            f"X={named!r} must be files of one kind, {known}; "
            f"found are {sorted(map(str, kinds - {None}))}, and others: {others}"
        )
    return kind, sorted(found, key=lambda each: each.parts)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for kind, ends in _KINDS.items() if name.endswith(ends)), None)
