"""Rows that lie in files, or are made lazily: read in batches, each by the types that its file declares.

What is refused is refused by names and types, of files without a row, before any row is read. The order of rows is
public: files by name, and rows as they lie in each.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, final

import narwhals as nw

from ledgerwood import _extras, _validate
from ledgerwood.csv_files import csv_header
from ledgerwood.curator.inputs.batches import Batch, Roles, RowSource, batch_rows
from ledgerwood.curator.inputs.csv_sources import CsvFiles, CsvTypes
from ledgerwood.curator.inputs.named_files import named_files
from ledgerwood.curator.inputs.reading import column_names
from ledgerwood.curator.inputs.typed_columns import LabelKind, label_kind
from ledgerwood.curator.inputs.watching import WatchedFiles
from ledgerwood.errors import FilesChanged, SchemaError
from ledgerwood.libsvm_files import Lines, libsvm_batches, no_rows
from ledgerwood.schema import Schema

_LABEL = "name the label's column: fit(rows, 'label')"


def source_of(X: Any) -> RowSource | None:
    """The source that an argument names: a path, a folder, a glob, a `pyarrow.dataset`, a LazyFrame; None for a table.

    A source is itself.

    Raises:
        SchemaError: no such file, files of a kind that is not read, or a scanner of a dataset.
        ModuleNotFoundError: a package that such files need.
    """
    if isinstance(X, RowSource):
        return X
    if isinstance(X, str | os.PathLike):
        kind, paths = named_files(os.fsdecode(X))
        match kind:
            case "CSV":
                return CsvFiles(paths)
            case "LIBSVM":
                return _LibsvmFiles(paths)
        return _ParquetFiles(paths)
    module = type(X).__module__
    if module.startswith("pyarrow._dataset"):
        if not isinstance(X, pyarrow_module("pyarrow.dataset").Dataset):
            raise SchemaError(f"X is a pyarrow {type(X).__name__}, which may be read once only: give its dataset")
        return _ArrowDataset(X)
    if module.startswith("polars.") and type(X).__name__ == "LazyFrame":
        return _LazyFrame(X)
    return None


def row_files(
    named: str | os.PathLike[str],
    *,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> RowSource:
    """Rows in Parquet or CSV files, for a fit that estimates its schema: `model.fit(row_files(...), "label")`.

    Args:
        named: a file, a folder or a pattern.
        numeric: columns of a CSV file that hold numbers, by name or by a pattern such as "lab_*", the label's included.
            Cells that are no numbers count as missing.
        categorical: columns of a CSV file that hold categories. They are texts, whatever they spell.
        ignore: columns that are no features, by name or pattern. All other columns but the label's are.

    Raises:
        SchemaError: files of another kind, types for Parquet files, which have them, or names that are no columns.
    """
    for name, given in (("numeric", numeric), ("categorical", categorical), ("ignore", ignore)):
        if isinstance(given, str):
            raise SchemaError(f"{name}={given!r} must be a sequence of names: [{given!r}]")
    kind, paths = named_files(os.fsdecode(named))
    told = (*numeric, *categorical)
    match kind:
        case "CSV":
            columns = csv_header(paths[0])
            _require_columns(columns, told, str(paths[0]))
            types = CsvTypes(numeric=tuple(numeric), categorical=tuple(categorical))
            return CsvFiles(paths, types, _ignored(columns, ignore, str(paths[0])))
        case "LIBSVM":
            raise SchemaError(f"{named} does not say how many features there are: declare a schema that lists them")
    if told:
        raise SchemaError(
            f"the types of {sorted(told)} are in {named}, a Parquet file: leave out numeric and categorical, and "
            "convert a column in the file if it is to have another type"
        )
    columns = _read(paths[0], pyarrow_module("pyarrow.parquet").read_schema).names
    return _ParquetFiles(paths, _ignored(columns, ignore, str(paths[0])))


def label_kind_of(rows: RowSource, label: str) -> LabelKind:
    """The kind of a label's type, from a file without its rows; "untyped" of CSV files.

    Raises:
        SchemaError: no such column, or a column that is a feature and has no name.
    """
    if isinstance(rows, CsvFiles):
        return "untyped"
    head = next(rows.heads(Roles(schema=None, label=label, weight=None)))
    return label_kind(head.y)[0]


def _ignored(columns: Sequence[str], names: Sequence[str], where: str) -> tuple[str, ...]:
    _require_columns(columns, names, where)
    return tuple(each for each in columns if any(each == name or fnmatchcase(each, name) for name in names))


def _require_columns(columns: Sequence[str], named: Sequence[str], where: str) -> None:
    """Refuse a name, or a pattern, that no column has: a slip of the pen would change what is a feature."""
    absent = sorted({name for name in named if not any(name == each or fnmatchcase(each, name) for each in columns)})
    if absent:
        raise SchemaError(f"{where} has no columns {absent}; it has {sorted(columns)}")


def settled(source: RowSource, roles: Roles) -> tuple[Roles, Batch]:
    """The roles, and a batch without rows. Where no columns are named, those of the first file are.

    Later files may have them in another order; they are found by name.
    """
    head = next(source.heads(roles))
    names = column_names(head.X)
    if names is None or roles.named is not None or (roles.schema is not None and roles.schema.features):
        return roles, head
    return dataclasses.replace(roles, named=names, whole=True), head


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


def require_labels_given(X: Any, y: Any) -> None:
    """Refuse the name of a label's column where X is no rows in files.

    Raises:
        SchemaError: y is a name.
    """
    if isinstance(y, str):
        raise SchemaError(
            f"y is a str, as of rows in files, and X is {_validate.kind_of(X)}. Files are a path, a folder, a pattern, "
            "a pyarrow.dataset (of several files, pyarrow.dataset.dataset([...])) or a polars LazyFrame; of a table in "
            "memory give the labels, fit(X, y)"
        )


def require_label(y: Any) -> str:
    """The name of the label's column.

    Raises:
        SchemaError: not a name.
    """
    if not isinstance(y, str) or not y:
        raise SchemaError(f"rows in files have their labels beside them, and y is {_validate.kind_of(y)}: {_LABEL}")
    return y


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
    __slots__ = ("_files", "_ignored")

    def __init__(self, paths: list[Path], ignored: tuple[str, ...] = ()) -> None:
        self._files, self._ignored = WatchedFiles(paths), ignored

    @property
    def size(self) -> int:
        return self._files.size

    def heads(self, roles: Roles) -> Iterator[Batch]:
        parquet = pyarrow_module("pyarrow.parquet")
        for path in self._files:
            schema = _read(path, parquet.read_schema)
            names = roles.without(self._ignored).features(schema.names, str(path))
            empty = schema.empty_table().select([*names, *roles.others])
            yield _cut(empty, names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        parquet, arrow = pyarrow_module("pyarrow.parquet"), pyarrow_module("pyarrow")
        for path in self._files:
            # Buffered ahead, all that was read of a file stays in memory until its end.
            with _read(path, functools.partial(parquet.ParquetFile, pre_buffer=False)) as file:
                names = roles.without(self._ignored).features(file.schema_arrow.names, str(path))
                columns = [*names, *roles.others]
                size = batch_rows(len(columns))
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
        datasets = pyarrow_module("pyarrow.dataset")
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(getattr(self._dataset, "format", None), datasets.ParquetFileFormat):
            options["fragment_scan_options"] = datasets.ParquetFragmentScanOptions(pre_buffer=False)
        return options

    def heads(self, roles: Roles) -> Iterator[Batch]:
        schema = self._dataset.schema
        names = roles.features(schema.names, "the dataset")
        yield _cut(schema.empty_table().select([*names, *roles.others]), names, roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        arrow = pyarrow_module("pyarrow")
        names = roles.features(self._dataset.schema.names, "the dataset")
        columns = [*names, *roles.others]
        size = batch_rows(len(columns))
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
        size = batch_rows(len(columns))
        found = self._frame.select(columns).collect_batches(chunk_size=size, maintain_order=True)
        for frame in _shielded(iter(found), "the lazy frame"):
            yield _cut(frame, names, roles)


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


def pyarrow_module(name: str) -> Any:
    """A module of pyarrow, which an extra brings."""
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
