"""The local files that Dask collections read, as far as their expressions tell."""

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DEPTH = 8


def local_files(collection: Any) -> list[Path]:
    """The local files that a collection reads, sorted; empty where its expression names none.

    `read_parquet` states its path, `read_csv` and others of text the opened files. Files that this process does not see
    are left out: they are a store's elsewhere.
    """
    found: set[Path] = set()
    expression = getattr(collection, "expr", None)  # of a frame; an array is a graph
    if expression is None:
        return []
    for node in expression.walk():
        for name, operand in zip(node._parameters, node.operands, strict=False):
            if name == "path":
                for each in operand if isinstance(operand, list | tuple) else [operand]:
                    found.update(_named(each))
            elif isinstance(operand, list | tuple):
                found.update(_opened(operand, _DEPTH))
    return sorted(found)


def _named(path: object) -> Iterator[Path]:
    text = str(path).removeprefix("file://")
    place = Path(text)
    if place.is_dir():
        yield from (each for each in place.rglob("*") if each.is_file() and not each.name.startswith((".", "_")))
    elif place.is_file():
        yield place
    else:
        # Not Path.glob, which takes no pattern with a root.
        yield from (Path(each) for each in glob.glob(text, recursive=True) if Path(each).is_file())  # noqa: PTH207


def _opened(value: Any, depth: int) -> Iterator[Path]:
    """The files that tasks inside of a list open."""
    from dask._task_spec import Task
    from fsspec.core import OpenFile  # type: ignore[import-untyped]

    if isinstance(value, OpenFile):
        place = Path(str(value.path))
        if place.is_file():
            yield place
    elif depth and isinstance(value, Task):
        yield from _opened(value.args, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _opened(each, depth - 1)
