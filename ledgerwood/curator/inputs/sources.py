"""Rows that lie in files, or are made lazily: read in batches, each by the types that its file declares.

What is refused is refused by names and types, of files without a row, before any row is read. The order of rows is
public: files by name, and rows as they lie in each.
"""

import abc
import dataclasses
import functools
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
from ledgerwood.curator.inputs.watching import WatchedFiles
from ledgerwood.errors import FilesChanged, SchemaError
from ledgerwood.libsvm_files import ENDINGS, Lines, libsvm_batches, no_rows
from ledgerwood.schema import Categorical, Feature, Numeric, Schema

BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 22
_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
_KINDS = {"Parquet": _PARQUET, "CSV": _CSV, "LIBSVM": ENDINGS}
_LABEL = "name the label's column: fit(rows, 'label')"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Some consecutive rows as tables in memory are given.

    Args:
        X: data frame or array of the features.
        y: the labels; None of rows for prediction.
        weights, keys: None for rows without.
    """

    X: Any
    y: Any
    weights: Any
    keys: Any = None

    def __len__(self) -> int:
        return int(self.X.shape[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which columns are what.

    Args:
        schema: of the features; other columns than these and the three below are left alone. None: it is to be
            estimated, of all columns without another role.
        label, weight, key: names of columns; None for none.
        named: of a schema with one range for all columns, which ones; None: all that have no other role.
        ignored: columns that are none of those.
    """

    schema: Schema | None
    label: str | None
    weight: str | None
    key: str | None = None
    named: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()

    @property
    def declared(self) -> Schema:
        """The schema of rows whose schema is declared."""
        assert self.schema is not None  # rows without one are not encoded by it
        return self.schema

    @property
    def others(self) -> list[str]:
        """The columns that are read besides the features."""
        return [name for name in (self.label, self.weight, self.key) if name is not None]

    def features(self, columns: Sequence[str], where: str) -> list[str]:
        """The features' names, in the schema's order; of one range for all, all columns without another role.

        Raises:
            SchemaError: a column is not there, is there twice, or has two roles.
        """
        others = self.others
        if self.schema is not None and self.schema.features:
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
            FilesChanged: a file differs from what it was when the source was made, or is gone.
        """

    @abc.abstractmethod
    def batches(self, roles: Roles) -> Iterator[Batch]:
        """All rows, in their public order.

        Raises:
            SchemaError: a file that is damaged.
            FilesChanged: as of `heads`; found out when the file's last row has been read, at the latest.
        """

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """Bytes of the files; None where there are none to look at."""

    @property
    def sparse(self) -> bool:
        """True where batches are sparse tables."""
        return False

    @property
    def cost(self) -> str:
        """What has been paid when the rows are encoded, for errors."""
        return "Nothing was spent"


def source_of(X: Any) -> RowSource | None:
    """The source that an argument names: a path, a folder, a glob, a `pyarrow.dataset`, a LazyFrame; None for a table.

    A source is itself.

    Raises:
        SchemaError: no such file, or files of a kind that is not read.
        ModuleNotFoundError: a package that such files need.
    """
    if isinstance(X, RowSource):
        return X
    if isinstance(X, str | os.PathLike):
        paths = _paths(os.fspath(X))
        match _kind(paths[0]):
            case "CSV":
                return _CsvFiles(paths)
            case "LIBSVM":
                return _LibsvmFiles(paths)
        return _ParquetFiles(paths)
    module = type(X).__module__
    if module.startswith("pyarrow._dataset"):
        return _ArrowDataset(X)
    if module.startswith("polars.") and type(X).__name__ == "LazyFrame":
        return _LazyFrame(X)
    return None


def require_named(given: Any, what: str, example: str) -> None:
    """Refuse weights or keys that are not the name of a column; None is none.

    Raises:
        SchemaError: they are not.
    """
    if given is not None and not isinstance(given, str):
        raise SchemaError(
            f"rows in files have their {what}s beside them, and {example.partition('=')[0]} is a "
            f"{type(given).__name__}: name the {what}s' column: fit(rows, 'label', {example})"
        )


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
        known = " or ".join(f"{kind} ({', '.join(ends)})" for kind, ends in _KINDS.items())
        raise SchemaError(
            f"X={named!r} must be files of one kind, {known}; "
            f"found are {sorted(map(str, kinds - {None}))}, and others: {others}"
        )
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _kind(path: Path) -> str | None:
    return next((kind for kind, ends in _KINDS.items() if path.name.endswith(ends)), None)


def _batch_rows(width: int) -> int:
    return max(1, min(BATCH_ROWS, _BATCH_CELLS // max(1, width)))


def _cut(frame: Any, names: list[str], roles: Roles) -> Batch:
    """A batch of a data frame."""
    narwhal = nw.from_native(frame, eager_only=True)
    return Batch(
        X=narwhal.select(names).to_native(),
        y=None if roles.label is None else narwhal[roles.label].to_native(),
        weights=None if roles.weight is None else narwhal[roles.weight].to_native(),
        keys=None if roles.key is None else narwhal[roles.key].to_native(),
    )


@final
class _ParquetFiles(RowSource):
    __slots__ = ("_files",)

    def __init__(self, paths: list[Path]) -> None:
        self._files = WatchedFiles(paths)

    @property
    def size(self) -> int:
        return self._files.size

    def heads(self, roles: Roles) -> Iterator[Batch]:
        parquet = _arrow("pyarrow.parquet")
        for path in self._files:
            schema = _read(path, parquet.read_schema)
            names = roles.features(schema.names, str(path))
            empty = schema.empty_table().select([*names, *roles.others])
            yield _cut(empty, names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        parquet, arrow = _arrow("pyarrow.parquet"), _arrow("pyarrow")
        for path in self._files:
            # Buffered ahead, all that was read of a file stays in memory until its end.
            with _read(path, functools.partial(parquet.ParquetFile, pre_buffer=False)) as file:
                names = roles.features(file.schema_arrow.names, str(path))
                columns = [*names, *roles.others]
                size = _batch_rows(len(columns))
                found = file.iter_batches(batch_size=size, columns=columns)
                for batch in _shielded(found, str(path), self._files):
                    yield _cut(arrow.Table.from_batches([batch]).select(columns), names, roles)


@final
class _ArrowDataset(RowSource):
    __slots__ = ("_dataset", "_files")

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        paths = [Path(path) for path in getattr(dataset, "files", None) or ()]
        # Of a store elsewhere, or of tables in memory, there is no file to look at.
        self._files = WatchedFiles(paths if all(path.is_file() for path in paths) else [])

    @property
    def size(self) -> int | None:
        return self._files.size or None

    def _options(self) -> dict[str, Any]:
        """Reads batches not far ahead, and of Parquet files without what stays in memory until their end."""
        datasets = _arrow("pyarrow.dataset")
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(getattr(self._dataset, "format", None), datasets.ParquetFileFormat):
            options["fragment_scan_options"] = datasets.ParquetFragmentScanOptions(pre_buffer=False)
        return options

    def heads(self, roles: Roles) -> Iterator[Batch]:
        schema = self._dataset.schema
        names = roles.features(schema.names, "the dataset")
        yield _cut(schema.empty_table().select([*names, *roles.others]), names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        arrow = _arrow("pyarrow")
        names = roles.features(self._dataset.schema.names, "the dataset")
        columns = [*names, *roles.others]
        size = _batch_rows(len(columns))
        self._files.require_same()
        found = self._dataset.to_batches(columns=columns, batch_size=size, **self._options())
        for batch in _shielded(found, "the dataset", self._files):
            if batch.num_rows:
                yield _cut(arrow.Table.from_batches([batch]), names, roles)
        self._files.require_same()


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
        yield _cut(pl.DataFrame(schema=schema).select([*names, *roles.others]), names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        names = roles.features(self._frame.collect_schema().names(), "the lazy frame")
        columns = [*names, *roles.others]
        size = _batch_rows(len(columns))
        found = self._frame.select(columns).collect_batches(chunk_size=size, maintain_order=True)
        for frame in _shielded(iter(found), "the lazy frame"):
            yield _cut(frame, names, roles)


@final
class _CsvFiles(RowSource):
    __slots__ = ("_files",)

    def __init__(self, paths: list[Path]) -> None:
        self._files = WatchedFiles(paths)

    @property
    def size(self) -> int:
        return self._files.size

    def heads(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            yield self._batch(self._columns(path, roles).table([]), roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            columns = self._columns(path, roles)
            for table in csv_batches(path, columns, size=_batch_rows(len(columns.features))):
                yield self._batch(table, roles)

    def _columns(self, path: Path, roles: Roles) -> CsvColumns:
        schema = roles.schema
        if schema is None:
            raise SchemaError(
                f"schema=None: {path} is a CSV file, whose columns have no types, and a schema is estimated by types: "
                "declare a schema, or write the rows to Parquet"
            )
        names = roles.features(csv_header(path), str(path))
        declared: tuple[Feature, ...] = schema.features
        if schema.every is not None:
            declared = tuple(dataclasses.replace(schema.every, name=name) for name in names)
        besides: list[Feature] = []
        if roles.label is not None:
            target = schema.target
            if target is None:
                raise SchemaError(f"{path}: the schema names no target, and training needs one")
            besides.append(dataclasses.replace(target, name=roles.label))
        if roles.weight is not None:
            besides.append(Numeric(roles.weight, 0.0, schema.weight_bound or 1.0))
        if roles.key is not None:  # a text, whatever it spells: no category is another one's
            besides.append(Categorical(roles.key, (roles.key,)))
        return CsvColumns(features=declared, besides=tuple(besides), strict=roles.label is None)

    @staticmethod
    def _batch(table: tuple[NDArray[Any], list[NDArray[Any]]], roles: Roles) -> Batch:
        X, besides = table
        found = dict(zip(roles.others, besides, strict=True))

        def column(name: str | None) -> Any:
            return None if name is None else found[name]

        return Batch(X=X, y=column(roles.label), weights=column(roles.weight), keys=column(roles.key))


@final
class _LibsvmFiles(RowSource):
    __slots__ = ("_files",)

    def __init__(self, paths: list[Path]) -> None:
        self._files = WatchedFiles(paths)

    @property
    def size(self) -> int:
        return self._files.size

    @property
    def sparse(self) -> bool:
        return True

    def heads(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            yield self._batch(no_rows(len(self._schema(path, roles).features)), roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            for lines in libsvm_batches(path, self._schema(path, roles), strict=roles.label is None):
                yield self._batch(lines, roles)

    def _schema(self, path: Path, roles: Roles) -> Schema:
        """Of the features, which a file numbers."""
        if roles.schema is None or not roles.schema.features:
            raise SchemaError(
                f"{path} does not say how many features there are: declare a schema that lists them, as "
                "Schema.uniform(low, high, n_features=...) does"
            )
        if roles.weight is not None or roles.key is not None:
            raise SchemaError(f"{path} has a label and features, and no column {roles.others[-1]!r} besides")
        if roles.label is not None and roles.schema.target is None:
            raise SchemaError(f"{path}: the schema names no target, and training needs one")
        return roles.schema

    @staticmethod
    def _batch(lines: Lines, roles: Roles) -> Batch:
        X, labels = lines
        return Batch(X=X, y=None if roles.label is None else labels, weights=None)


def _arrow(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise _extras.needed("training on Parquet files", missing) from missing


def _shielded(batches: Iterator[Any], where: str, files: WatchedFiles | None = None) -> Iterator[Any]:
    """The same batches; where one cannot be made, an error that shows no value of a row, nor leads to one that does.

    Of files that have changed meanwhile it says that.
    """
    failure = None
    try:
        yield from batches
    except MemoryError:
        raise
    except OSError:  # of files and of the machine
        if files is not None:
            files.require_same()
        raise
    except Exception as error:  # noqa: BLE001  # any that a reader, or a lazy frame's own function, raises of a value
        failure = type(error).__name__
    if failure is not None:  # outside of the block above, or the first error would be this one's context
        if files is not None:
            files.require_same()
        raise SchemaError(
            f"{where} cannot be read by its own types ({failure}): it is damaged, its files differ in the types of "
            "their columns, or a step of it fails on a value"
        )


def _read(path: Path, read: Any) -> Any:
    try:
        return read(path)
    except FileNotFoundError:
        raise FilesChanged(f"{path} was there when its folder was listed, and is gone") from None
    except ValueError as error:  # pyarrow's ArrowInvalid
        raise SchemaError(f"{path} is not a Parquet file: {error}") from error
