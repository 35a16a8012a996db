"""Tables in CSV files, read by the names and types of a public schema.

Reading is the owner's side: a message may name a line of the file, and its outcome is not private.
"""

import csv
import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.schema import Categorical, Feature, Numeric, Schema
from ledgerwood.errors import SchemaError


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of a CSV file in UTF-8, packed by gzip where its name ends in .gz.

    Raises:
        SchemaError: not such a file, an empty one, or a line of another length than the header's.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error, EOFError, zlib.error) as error:
        raise SchemaError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not lines:
        raise SchemaError(f"{path} is empty: it needs a header line and rows")
    header, *rows = lines
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise SchemaError(
                f"{path}, line {number}: {len(row)} cells where the header has {len(header)} (unit: columns)"
            )
    return header, rows


def read_csv(path: Path, schema: Schema, *, with_target: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Columns by the schema's names, in the schema's order; other columns are left alone.

    An empty cell is a missing value. A schema of one range for every column takes all columns but the target.

    Args:
        path: a CSV file with a header line.
        schema: names, types and the target.
        with_target: whether to read the target's column too.

    Returns:
        X (n_rows, n_features), float64 where every feature is numeric, else object; y (n_rows,), or None.

    Raises:
        SchemaError: a column is not there, or a cell of a numeric column is no number.
    """
    header, rows = read_rows(path)
    target = schema.target
    if with_target and target is None:
        raise SchemaError(f"{path}: the schema names no target, and training needs one")
    if schema.every is not None:
        every = schema.every
        names = [name for name in header if target is None or name != target.name]
        features: tuple[Feature, ...] = tuple(Numeric(name, every.low, every.high, every.missing) for name in names)
    else:
        features = schema.features
    columns = [_column(path, header, rows, feature) for feature in features]
    y = None
    if with_target and target is not None:
        y = np.array(_column(path, header, rows, target), dtype=_dtype(target))
    return typed_table(columns, features), y


def _dtype(column: Feature) -> type[np.float64] | type[object]:
    """The type of a column's array, by its declaration: of labels numpy would choose one by a look at each."""
    return np.float64 if isinstance(column, Numeric) else object


def typed_table(columns: Sequence[Sequence[Any]], features: Sequence[Feature]) -> NDArray[Any]:
    """Columns side by side, shape (n_rows, n_features): float64 where every feature is numeric, else object."""
    numeric = all(isinstance(feature, Numeric) for feature in features)
    table = np.empty((len(columns[0]), len(columns)), dtype=np.float64 if numeric else object)
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def parse_column(cells: Sequence[str], feature: Feature) -> list[Any]:
    """The typed values of one column; an empty cell becomes NaN in a numeric column and None in a categorical one.

    Raises:
        ValueError: a cell of a numeric column is no number.
    """
    match feature:
        case Numeric():
            return [float(cell) if cell else math.nan for cell in cells]
        case Categorical():
            spelled = {str(category): category for category in feature.categories}
            return [spelled.get(cell, cell) if cell else None for cell in cells]


def _column(path: Path, header: list[str], rows: list[list[str]], feature: Feature) -> list[Any]:
    places = [j for j, name in enumerate(header) if name == feature.name]
    if len(places) != 1:
        raise SchemaError(
            f"{path} has {len(places)} columns named {feature.name!r}, the schema wants exactly 1; "
            f"its columns are {', '.join(header)}"
        )
    cells = [row[places[0]].strip() for row in rows]
    try:
        return parse_column(cells, feature)
    except ValueError as error:
        raise SchemaError(f"{path}, column {feature.name!r}: {error}; the schema says it is a number") from error
