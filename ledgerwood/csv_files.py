"""Tables in CSV files, read by the names and types of a public schema.

Rows for training are read one by one, each line by itself, and nothing is refused because of one: what cannot be read
stays what it is, for the curator to leave out and for `Schema.check` to show. Rows for prediction are refused by line.
"""

import csv
import gzip
import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Date, Feature, Numeric, Schema, iso_days

_ANY_LENGTH = 2**31 - 1
"""Of a cell: a long one is no reason to refuse the others."""


def read_rows(path: Path, *, strict: bool = True) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of a CSV file in UTF-8, packed by gzip where its name ends in .gz.

    Args:
        path: the file.
        strict: True refuses a line with another number of cells than the header, or with bytes that are not UTF-8;
            otherwise the line is read, such bytes as lone surrogates, and each line of the file is a row: a line
            with an open quote is one cell, and does not continue on the next line.

    Raises:
        SchemaError: not a CSV file, an empty file, or a cell that is refused strictly.
    """
    lines = list(_lines(path, strict=strict))
    if not lines:
        raise SchemaError(f"{path} is empty: it needs a header line and rows")
    header, *rows = lines
    return header, rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumns:
    """Which columns of a CSV file are read, and how.

    Args:
        features: that make the table, in this order.
        besides: read as columns of their own: labels, weights.
        strict: as in `read_rows`.
    """

    features: tuple[Feature, ...]
    besides: tuple[Feature, ...]
    strict: bool

    def table(
        self, rows: list[list[str]], header: list[str] | None = None, path: Path | None = None
    ) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """X (n_rows, n_features) and the other columns, objects (n_rows,), of some rows of a file."""
        if header is None:
            header = [feature.name for feature in (*self.features, *self.besides)]
        where = path or Path("rows")
        columns = [_column(where, header, rows, feature, strict=self.strict) for feature in self.features]
        # Of labels numpy would choose a type by a look at each: one that is not a number must not change the others.
        others = [_column(where, header, rows, feature, strict=False) for feature in self.besides]
        return typed_table(columns, self.features), [
            np.fromiter(each, dtype=object, count=len(each)) for each in others
        ]


def csv_header(path: Path) -> list[str]:
    """The names of a CSV file's columns.

    Raises:
        SchemaError: an empty file, or not a CSV file in UTF-8.
    """
    for line in _lines(path, strict=False):
        return line
    raise SchemaError(f"{path} is empty: it needs a header line and rows")


def header_in(lines: Iterable[str], where: str) -> list[str]:
    """The names of the columns, from the first line; no further line is asked for.

    Raises:
        SchemaError: no line, or an empty one.
    """
    for line in lines:
        if names := _cells_of_line(line.removeprefix("\ufeff")):
            return names
        break
    raise SchemaError(f"{where} is empty: a CSV file begins with a line of column names")


def csv_batches(path: Path, columns: CsvColumns, *, size: int) -> Iterator[tuple[NDArray[Any], list[NDArray[Any]]]]:
    """The rows of a CSV file, some at a time, as `read_csv` reads them.

    Args:
        path: a CSV file with a header line.
        columns: that are there.
        size: rows at a time.

    Raises:
        SchemaError: as in `read_rows` and `read_csv`.
    """
    lines = _lines(path, strict=columns.strict)
    header = next(lines, None)
    if header is None:
        raise SchemaError(f"{path} is empty: it needs a header line and rows")
    while rows := list(itertools.islice(lines, size)):
        yield columns.table(rows, header, path)


def _lines(path: Path, *, strict: bool) -> Iterator[list[str]]:
    """The lines of a CSV file that are not empty, as cells; the header is the first one. Errors as in `read_rows`."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    errors = "strict" if strict else "surrogateescape"
    width, number = None, 0
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors=errors, newline="") as file:
            for line in csv.reader(file) if strict else map(_cells_of_line, file):
                if not line:
                    continue
                number += 1
                width = len(line) if width is None else width
                if strict and len(line) != width:
                    raise SchemaError(
                        f"{path}, line {number}: {len(line)} cells where the header has {width} (unit: columns)"
                    )
                yield line
    except (UnicodeDecodeError, csv.Error) as error:  # of strict reading, which is for the owner of the rows
        raise SchemaError(f"{path} is not a CSV file in UTF-8: {error}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error):
        damaged = True
    else:
        damaged = False
    if damaged:  # outside of the block above, whose error tells a checksum of the rows
        raise SchemaError(f"{path} is not a CSV file in UTF-8: it is not packed by gzip, or is damaged")


def _cells_of_line(line: str) -> list[str]:
    """The cells of one line; one cell of all of it where it may be a part of a cell that has line breaks."""
    longest = csv.field_size_limit(_ANY_LENGTH)
    try:
        reader = csv.reader((line, "\n"))
        cells = next(reader)
    finally:
        csv.field_size_limit(longest)
    return cells if reader.line_num == 1 and line.count('"') % 2 == 0 else [line]


def read_csv(path: Path, schema: Schema, *, with_target: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Columns by the schema's names, in the schema's order; other columns are left alone.

    An empty cell is a missing value. A schema of one range for every column takes all columns but the target.

    Args:
        path: a CSV file with a header line.
        schema: names, types and the target.
        with_target: whether the rows are for training: the target's column is read too, and no line is refused.

    Returns:
        X (n_rows, n_features), float64 where every cell is a number, else object; y (n_rows,), or None. Of a line of
        another length than the header's, each cell is the whole line: a tuple, which is of no declared type.

    Raises:
        SchemaError: a column is not there; in rows for prediction, a cell of a numeric column is not a number.
    """
    header, rows = read_rows(path, strict=not with_target)
    target = schema.target
    if with_target and target is None:
        raise SchemaError(f"{path}: the schema names no target, and training needs one")
    if schema.every is not None:
        every = schema.every
        names = [name for name in header if target is None or name != target.name]
        features: tuple[Feature, ...] = tuple(Numeric(name, every.low, every.high, every.missing) for name in names)
    else:
        features = schema.features
    columns = [_column(path, header, rows, feature, strict=not with_target) for feature in features]
    if not with_target or target is None:
        return typed_table(columns, features), None
    # Of labels numpy would choose a type by a look at each, and one that is not a number must not change the others.
    labels = _column(path, header, rows, target, strict=False)
    return typed_table(columns, features), np.fromiter(labels, dtype=object, count=len(labels))


def typed_table(columns: Sequence[Sequence[Any]], features: Sequence[Feature]) -> NDArray[Any]:
    """Columns side by side, shape (n_rows, n_features): float64 where every feature is a number, else object."""
    numeric = all(isinstance(feature, Numeric) for feature in features) and all(
        type(value) is float for column in columns for value in column
    )
    table = np.empty((len(columns[0]), len(columns)), dtype=np.float64 if numeric else object)
    for j, column in enumerate(columns):
        table[:, j] = np.fromiter(column, dtype=object, count=len(column))
    return table


def parse_column(cells: Sequence[str], feature: Feature, *, strict: bool = True) -> list[Any]:
    """The typed values of one column; an empty cell becomes NaN in a numeric column and None in another one.

    Args:
        cells: as text.
        feature: the column's declaration.
        strict: True refuses a cell of a numeric column that is not a number, or of a column of dates that is not one;
            otherwise it stays a text.

    Raises:
        ValueError: such a cell.
    """
    match feature:
        case Numeric():
            return [_number(cell, strict) if cell else math.nan for cell in cells]
        case Date():
            return [_date(cell, feature, strict) if cell else None for cell in cells]
        case Categorical():
            spelled = {str(category): category for category in feature.categories}
            return [spelled.get(cell, cell) if cell else None for cell in cells]


def _date(cell: str, feature: Date, strict: bool) -> str:
    if strict and iso_days(cell, zoned=feature.zoned) is None:
        zone = ", with a time zone" if feature.zoned else ", without a time zone"
        raise ValueError(f"{cell!r} is no date in ISO form{zone}")
    return cell


def _number(cell: str, strict: bool) -> float | str:
    try:
        return float(cell)
    except ValueError:
        if strict:
            raise
        return cell


def _column(path: Path, header: list[str], rows: list[list[str]], feature: Feature, *, strict: bool) -> list[Any]:
    places = [j for j, name in enumerate(header) if name == feature.name]
    if len(places) != 1:
        raise SchemaError(
            f"{path} has {len(places)} columns named {feature.name!r}, the schema wants exactly 1; "
            f"its columns are {', '.join(header)}"
        )
    whole = [len(row) == len(header) for row in rows]
    cells = [row[places[0]].strip() for row, fits in zip(rows, whole, strict=True) if fits]
    try:
        values = iter(parse_column(cells, feature, strict=strict))
    except ValueError as error:
        kind = "date" if isinstance(feature, Date) else "number"
        raise SchemaError(f"{path}, column {feature.name!r}: {error}; the schema says it is a {kind}") from error
    return [next(values) if fits else tuple(row) for row, fits in zip(rows, whole, strict=True)]
