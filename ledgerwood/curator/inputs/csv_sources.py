"""Rows in CSV files, whose columns have the types that a schema, or their owner, declares: a CSV file has none."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.csv_files import CsvColumns, csv_batches, csv_header
from ledgerwood.curator.inputs.batches import Batch, Roles, RowSource, batch_rows
from ledgerwood.curator.inputs.reading import NamedArray
from ledgerwood.curator.inputs.watching import WatchedFiles
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Feature, Numeric

CsvKind = Literal["numeric", "text"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTypes:
    """The types of a CSV file's columns, as their owner says.

    Args:
        numeric: columns of numbers, by name, or by a pattern such as "lab_*"; a name goes before a pattern.
        categorical: columns of categories, which are texts, whatever they spell.
    """

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]

    def require_told(self, names: Sequence[str], where: str) -> None:
        """Refuse columns whose type was not said, or said twice.

        Raises:
            SchemaError: such columns; the message names them.
        """
        untold = [name for name in names if self.kind(name, where) is None]
        if untold:
            shown = ", ".join(map(repr, untold[:10])) + (f" and {len(untold) - 10} more" if len(untold) > 10 else "")
            raise SchemaError(
                f"{where} is a CSV file, whose columns have no types: say of {shown} whether they hold numbers "
                "(numeric=...) or categories (categorical=...), or leave them out (ignore=...)"
            )

    def kind(self, name: str, where: str) -> CsvKind | None:
        """The type of a column; None if nobody said it.

        Raises:
            SchemaError: it was said twice.
        """
        for found in ([name in self.numeric, name in self.categorical], [self._like(self.numeric, name),
                      self._like(self.categorical, name)]):  # fmt: skip
            if all(found):
                raise SchemaError(f"{where}: column {name!r} is said to hold numbers and to hold categories; say one")
            if any(found):
                return "numeric" if found[0] else "text"
        return None

    @staticmethod
    def _like(patterns: Sequence[str], name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def feature(self, name: str, where: str) -> Feature:
        """How the cells of a column are read. Its bounds and categories are not looked at."""
        if self.kind(name, where) == "numeric":
            return Numeric(name, 0.0, 1.0, missing=True)
        return Categorical(name, (name,), missing=True)


@final
class CsvFiles(RowSource):
    """Rows in CSV files.

    Args:
        paths: in the order of the rows.
        types: of the columns, for rows whose schema is to be estimated; None: a schema declares them.
        ignored: columns that are neither features nor have another role.
    """

    __slots__ = ("_files", "_ignored", "_types")

    def __init__(self, paths: list[Path], types: CsvTypes | None = None, ignored: tuple[str, ...] = ()) -> None:
        self._files, self._types, self._ignored = WatchedFiles(paths), types, ignored

    @property
    def size(self) -> int:
        return self._files.size

    def heads(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            columns = self._columns(path, roles)
            yield self._batch(columns, columns.table([]), roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        for path in self._files:
            columns = self._columns(path, roles)
            for table in csv_batches(path, columns, size=batch_rows(len(columns.features))):
                yield self._batch(columns, table, roles)

    def _columns(self, path: Path, roles: Roles) -> CsvColumns:
        schema, roles = roles.schema, roles.without(self._ignored)
        if schema is None:
            return self._typed(path, roles)
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

    def _typed(self, path: Path, roles: Roles) -> CsvColumns:
        """Columns that nobody has declared, by the types that their owner says."""
        where = str(path)
        if self._types is None:
            raise SchemaError(
                f"schema=None: {path} is a CSV file, whose columns have no types, and a schema is estimated by types: "
                "say them, ledgerwood.curator.row_files(path, numeric=[...], categorical=[...]), declare a schema, or "
                "write the rows to Parquet"
            )
        names = roles.features(csv_header(path), where)
        self._types.require_told([*names, *roles.others], where)
        features, others = ([self._types.feature(name, where) for name in each] for each in (names, roles.others))
        return CsvColumns(features=tuple(features), besides=tuple(others), strict=False)

    def _batch(self, columns: CsvColumns, table: tuple[NDArray[Any], list[NDArray[Any]]], roles: Roles) -> Batch:
        X, besides = table[0].view(NamedArray), table[1]
        X.names = tuple(feature.name for feature in columns.features)
        if roles.schema is None:
            X.kinds = tuple("numeric" if isinstance(each, Numeric) else "text" for each in columns.features)
        if roles.schema is None:  # a label has the type that was said, whatever the cells spell
            besides = [
                _numbers(values) if isinstance(each, Numeric) else values
                for each, values in zip(columns.besides, besides, strict=True)
            ]
        found = dict(zip(roles.others, besides, strict=True))

        def column(name: str | None) -> Any:
            return None if name is None else found[name]

        return Batch(X=X, y=column(roles.label), weights=column(roles.weight), keys=column(roles.key))


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """float64 (n_rows,); what is no number is missing."""
    return np.fromiter((value if type(value) is float else math.nan for value in values), np.float64, len(values))
