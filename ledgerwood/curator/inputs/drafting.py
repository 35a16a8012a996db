"""Drafts of a schema, from the names and the types of columns alone: no value, no statistic and no dictionary is read.

A categorical type's list of categories is made from the rows, and an enumeration's may be: neither is copied.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw

from ledgerwood import _validate
from ledgerwood.csv_files import csv_header, header_in
from ledgerwood.curator.inputs.dates import with_known_dates
from ledgerwood.curator.inputs.named_files import named_files
from ledgerwood.curator.inputs.reading import frame_or_none
from ledgerwood.curator.inputs.sources import pyarrow_module
from ledgerwood.curator.inputs.typed_columns import ColumnKind, dtype_kind, series_kind
from ledgerwood.errors import SchemaError
from ledgerwood.schema import (
    Categorical,
    Feature,
    Open,
    OpenCategorical,
    OpenColumn,
    OpenDate,
    OpenNumeric,
    Schema,
    SchemaDraft,
    require_target,
)

_GIVE = (
    "give a data frame (pandas, polars, pyarrow, Dask, narwhals), a pyarrow.dataset, or the path of a Parquet or CSV "
    "file; the columns of an array have neither names nor ranges, see Schema.uniform(low, high, target=...)"
)
Named = tuple[str, ColumnKind | None]
"""A column's name, and the kind that its type has; None of a file without types."""


def draft_of(frame: Any, *, target: str | None, ignore: Sequence[str]) -> Schema | SchemaDraft:
    """The draft; arguments and errors as of `Schema.draft`."""
    ignored = _validate.items("ignore", ignore, "columns")
    return _draft(_columns(frame, ignored), target, ignored)


def draft_of_header(line: str, *, target: str | None, ignore: Sequence[str]) -> Schema | SchemaDraft:
    """The draft of the columns that the first line of a CSV file names; errors as of `Schema.draft`."""
    return _draft([(name, None) for name in header_in(io.StringIO(line), "the header")], target, tuple(ignore))


def _draft(found: Sequence[Named], target: str | None, ignored: tuple[str, ...]) -> Schema | SchemaDraft:
    names = [name for name, _ in found]
    _require_names(names)
    absent = [name for name in (*ignored, *(() if target is None else (target,))) if name not in names]
    if absent:
        raise SchemaError(f"there are no columns {absent}; there are {names}")
    if target in ignored:
        raise SchemaError(f"target={target!r} is among the columns to ignore, {list(ignored)}")
    columns = {name: _column(name, kind, missing=name != target) for name, kind in found if name not in ignored}
    if len(columns) != len(names) - len(set(ignored)):
        raise SchemaError(f"column names must be distinct, and they are {names}")
    of_target = None if target is None else columns.pop(target)
    known = of_target if isinstance(of_target, Open) else require_target(of_target)
    draft = SchemaDraft(features=tuple(columns.values()), target=known)
    return draft.filled({})  # a schema, if nothing is open


def _require_names(names: Sequence[object]) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise SchemaError(f"the column name {name!r} must be a non-empty text: a schema finds columns by name")


def _column(name: str, kind: ColumnKind | None, *, missing: bool) -> Feature | Open:
    match kind:
        case "numeric":
            return OpenNumeric(name, missing=missing)
        case "dates" | "instants":
            return OpenDate(name, missing=missing, zoned=kind == "instants")
        case "boolean":
            return Categorical(name, (False, True), missing=missing)
        case "text" | "codes":
            return OpenCategorical(name, missing=missing)
        case None:
            return OpenColumn(name, missing=missing)


def _columns(frame: Any, ignored: tuple[str, ...]) -> list[Named]:
    """The names and kinds of the columns; the types of those to ignore are not looked at."""
    if isinstance(frame, str | os.PathLike):
        kind, paths = named_files(os.fsdecode(frame))
        match kind:
            case "CSV":
                return [(name, None) for name in csv_header(paths[0])]
            case "Parquet":
                return _of_arrow(_footer(paths[0]), ignored)
        raise SchemaError(f"{frame} is a LIBSVM file, which names no columns: {_GIVE}")
    module = type(frame).__module__.partition(".")[0]
    if module in ("dask", "dask_expr"):
        frame = getattr(frame, "_meta", frame)  # a frame of pandas without rows
    elif module == "pyarrow" and isinstance(getattr(frame, "schema", None), pyarrow_module("pyarrow").Schema):
        return _of_arrow(frame.schema, ignored)  # of a table, a batch, a dataset or a reader
    elif module == "pyarrow" and isinstance(frame, pyarrow_module("pyarrow").Schema):
        return _of_arrow(frame, ignored)
    lazy = nw.from_native(frame, pass_through=True)
    if isinstance(lazy, nw.LazyFrame):
        types = lazy.collect_schema()
        return [(name, None if name in ignored else dtype_kind(dtype, name)) for name, dtype in types.items()]
    eager = frame_or_none(frame)
    if eager is None:
        raise SchemaError(f"a schema cannot be drafted of {_validate.kind_of(frame)}: {_GIVE}")
    _require_names(eager.columns)  # of pandas they may be anything
    return [(name, None if name in ignored else series_kind(eager[name], name)) for name in eager.columns]


def _footer(path: Path) -> Any:
    """The Arrow schema in a Parquet file's footer."""
    try:
        return pyarrow_module("pyarrow.parquet").read_schema(path)
    except ValueError as error:  # pyarrow's ArrowInvalid
        raise SchemaError(f"{path} is not a Parquet file: {error}") from error


def _of_arrow(schema: Any, ignored: tuple[str, ...]) -> list[Named]:
    kept = [field for field in schema if field.name not in ignored]
    empty = with_known_dates(pyarrow_module("pyarrow").schema(kept).empty_table())
    typed = nw.from_native(empty, eager_only=True)
    kinds = {name: series_kind(typed[name], name) for name in typed.columns}
    return [(name, kinds.get(name)) for name in schema.names]
