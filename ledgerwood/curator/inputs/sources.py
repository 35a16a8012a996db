"""Rows that lie in files, or are made lazily: read in batches, each by the types that its file declares.

What is refused is refused by names and types, of files without a row, before any row is read. The order of rows is
public: files by name, and rows as they lie in each.
"""

import abc
import dataclasses
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import narwhals as nw
from numpy.typing import NDArray

from ledgerwood import _extras
from ledgerwood.csv_files import CsvColumns, csv_batches, csv_header
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Feature, Numeric, Schema

BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 22
_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
_LABEL = "name the label's column: fit(rows, 'label')"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Some consecutive rows as tables in memory are given.

    Args:
        X: data frame or array of the features.
        y: the labels; None of rows for prediction.
        weights: None for rows without.
    """

    X: Any
    y: Any
    weights: Any


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which columns are what.

    Args:
        schema: of the features; other columns than these and the two below are left alone.
        label, weight: names of columns; None for none.
        named: of a schema with one range for all columns, which ones; None: all that have no other role.
        ignored: columns that are none of those.
    """

    schema: Schema
    label: str | None
    weight: str | None
    named: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()

    def features(self, columns: Sequence[str], where: str) -> list[str]:
        """The features' names, in the schema's order; of one range for all, all columns without another role.

        Raises:
            SchemaError: a column is not there, is there twice, or has two roles.
        """
        others = [name for name in (self.label, self.weight) if name is not None]
        if self.schema.features:
            names = [feature.name for feature in self.schema.features]
        elif self.named is not None:
            names = list(self.named)
        else:
            names = [name for name in columns if name not in others and name not in self.ignored]
        wanted = [*names, *others]
        twice = sorted({name for name in wanted if wanted.count(name) > 1 or list(columns).count(name) > 1})
        absent = [name for name in wanted if name not in columns]
        if twice:
            raise SchemaError(f"{where}: the columns {twice} are there twice, or have two roles")
        if absent:
            raise SchemaError(f"{where} lacks the columns {absent}; it has {sorted(columns)}")
        return names


class RowSource(abc.ABC):
    """Rows outside of memory."""

    __slots__ = ()

    @abc.abstractmethod
    def heads(self, roles: Roles) -> Iterator[Batch]:
        """Batches without rows: names and types, of each file.

        Raises:
            SchemaError: columns that are not there.
        """

    @abc.abstractmethod
    def batches(self, roles: Roles) -> Iterator[Batch]:
        """All rows, in their public order."""

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """Bytes of the files; None where there are none to look at."""


def source_of(X: Any) -> RowSource | None:
    """The source that an argument names: a path, a folder, a glob, a `pyarrow.dataset`, a LazyFrame; None for a table.

    Raises:
        SchemaError: no such file, or files that are neither Parquet nor CSV.
        ModuleNotFoundError: a package that such files need.
    """
    if isinstance(X, str | os.PathLike):
        paths = _paths(os.fspath(X))
        return _CsvFiles(paths) if paths[0].name.endswith(_CSV) else _ParquetFiles(paths)
    module = type(X).__module__
    if module.startswith("pyarrow._dataset"):
        return _ArrowDataset(X)
    if module.startswith("polars.") and type(X).__name__ == "LazyFrame":
        return _LazyFrame(X)
    return None


def require_label(y: Any) -> str:
    """The name of the label's column.

    Raises:
        SchemaError: not a name.
    """
    if not isinstance(y, str) or not y:
        raise SchemaError(f"rows in files have their labels beside them, and y is a {type(y).__name__}: {_LABEL}")
    return y


def _paths(named: str) -> list[Path]:
    path = Path(named)
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.is_file() and not _hidden(each.relative_to(path))]
    elif path.exists():
        found = [path]
    else:
        # Not Path.glob, which takes no pattern with a root.
        found = [Path(each) for each in glob.glob(named, recursive=True) if Path(each).is_file()]  # noqa: PTH207
        if not found:
            raise SchemaError(f"X={named!r} names no file, no folder, and no pattern that a file matches")
    found = sorted(found, key=lambda each: each.parts)
    kinds = {_kind(each) for each in found}
    if len(kinds) != 1 or None in kinds:
        others = sorted(str(each) for each in found if _kind(each) is None)[:3]
        raise SchemaError(
            f"X={named!r} must be files of one kind, Parquet ({', '.join(_PARQUET)}) or CSV ({', '.join(_CSV)}); "
            f"found are {sorted(map(str, kinds - {None}))}, and others: {others}"
        )
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _kind(path: Path) -> str | None:
    if path.name.endswith(_PARQUET):
        return "Parquet"
    return "CSV" if path.name.endswith(_CSV) else None


def _batch_rows(width: int) -> int:
    return max(1, min(BATCH_ROWS, _BATCH_CELLS // max(1, width)))


def _cut(frame: Any, names: list[str], roles: Roles) -> Batch:
    """A batch of a data frame."""
    narwhal = nw.from_native(frame, eager_only=True)
    return Batch(
        X=narwhal.select(names).to_native(),
        y=None if roles.label is None else narwhal[roles.label].to_native(),
        weights=None if roles.weight is None else narwhal[roles.weight].to_native(),
    )


def _others(roles: Roles) -> list[str]:
    return [name for name in (roles.label, roles.weight) if name is not None]


@final
class _ParquetFiles(RowSource):
    __slots__ = ("_paths",)

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self._paths)

    def heads(self, roles: Roles) -> Iterator[Batch]:
        parquet = _arrow("pyarrow.parquet")
        for path in self._paths:
            schema = _read(path, parquet.read_schema)
            names = roles.features(schema.names, str(path))
            empty = schema.empty_table().select([*names, *_others(roles)])
            yield _cut(empty, names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        parquet, arrow = _arrow("pyarrow.parquet"), _arrow("pyarrow")
        for path in self._paths:
            with _read(path, parquet.ParquetFile) as file:
                names = roles.features(file.schema_arrow.names, str(path))
                columns = [*names, *_others(roles)]
                size = _batch_rows(len(columns))
                for batch in _shielded(file.iter_batches(batch_size=size, columns=columns), str(path)):
                    yield _cut(arrow.Table.from_batches([batch]).select(columns), names, roles)


@final
class _ArrowDataset(RowSource):
    __slots__ = ("_dataset",)

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property
    def size(self) -> int | None:
        paths = getattr(self._dataset, "files", None)
        if not paths or not all(Path(path).is_file() for path in paths):
            return None
        return sum(Path(path).stat().st_size for path in paths)

    def heads(self, roles: Roles) -> Iterator[Batch]:
        schema = self._dataset.schema
        names = roles.features(schema.names, "the dataset")
        yield _cut(schema.empty_table().select([*names, *_others(roles)]), names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        arrow = _arrow("pyarrow")
        names = roles.features(self._dataset.schema.names, "the dataset")
        columns = [*names, *_others(roles)]
        size = _batch_rows(len(columns))
        found = self._dataset.to_batches(columns=columns, batch_size=size, batch_readahead=2)
        for batch in _shielded(found, "the dataset"):
            if batch.num_rows:
                yield _cut(arrow.Table.from_batches([batch]), names, roles)


@final
class _LazyFrame(RowSource):
    __slots__ = ("_frame",)

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def size(self) -> None:
        return None

    def heads(self, roles: Roles) -> Iterator[Batch]:
        import polars as pl

        schema = self._frame.collect_schema()
        names = roles.features(schema.names(), "the lazy frame")
        yield _cut(pl.DataFrame(schema=schema).select([*names, *_others(roles)]), names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        names = roles.features(self._frame.collect_schema().names(), "the lazy frame")
        columns = [*names, *_others(roles)]
        size = _batch_rows(len(columns))
        found = self._frame.select(columns).collect_batches(chunk_size=size, maintain_order=True)
        for frame in _shielded(iter(found), "the lazy frame"):
            yield _cut(frame, names, roles)


@final
class _CsvFiles(RowSource):
    __slots__ = ("_paths",)

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self._paths)

    def heads(self, roles: Roles) -> Iterator[Batch]:
        for path in self._paths:
            yield self._batch(self._columns(path, roles).table([]), roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        for path in self._paths:
            columns = self._columns(path, roles)
            for table in csv_batches(path, columns, size=_batch_rows(len(columns.features))):
                yield self._batch(table, roles)

    def _columns(self, path: Path, roles: Roles) -> CsvColumns:
        names = roles.features(csv_header(path), str(path))
        declared: tuple[Feature, ...] = roles.schema.features
        if roles.schema.every is not None:
            declared = tuple(dataclasses.replace(roles.schema.every, name=name) for name in names)
        besides: list[Feature] = []
        if roles.label is not None:
            target = roles.schema.target
            if target is None:
                raise SchemaError(f"{path}: the schema names no target, and training needs one")
            besides.append(dataclasses.replace(target, name=roles.label))
        if roles.weight is not None:
            besides.append(Numeric(roles.weight, 0.0, roles.schema.weight_bound or 1.0))
        return CsvColumns(features=declared, besides=tuple(besides), strict=roles.label is None)

    @staticmethod
    def _batch(table: tuple[NDArray[Any], list[NDArray[Any]]], roles: Roles) -> Batch:
        X, besides = table
        return Batch(
            X=X,
            y=None if roles.label is None else besides[0],
            weights=None if roles.weight is None else besides[-1],
        )


def _arrow(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise _extras.needed("training on Parquet files", missing) from missing


def _shielded(batches: Iterator[Any], where: str) -> Iterator[Any]:
    """The same batches; where one cannot be made, an error that shows no value of a row, nor leads to one that does."""
    failure = None
    try:
        yield from batches
    except (OSError, MemoryError):  # of files and of the machine
        raise
    except Exception as error:  # noqa: BLE001  # any that a reader, or a lazy frame's own function, raises of a value
        failure = type(error).__name__
    if failure is not None:  # outside of the block above, or the first error would be this one's context
        raise SchemaError(
            f"{where} cannot be read by its own types ({failure}): it is damaged, its files differ in the types of "
            "their columns, or a step of it fails on a value"
        )


def _read(path: Path, read: Any) -> Any:
    try:
        return read(path)
    except ValueError as error:  # pyarrow's ArrowInvalid
        raise SchemaError(f"{path} is not a Parquet file: {error}") from error
