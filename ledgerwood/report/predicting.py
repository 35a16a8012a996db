"""`ledgerwood predict`: rows in files in, predictions out as CSV or Parquet, beside a column that tells rows apart."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, final

import numpy as np
from sklearn.base import is_regressor

from ledgerwood import _extras, _validate
from ledgerwood.curator import keyed_batches_of
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.models import Model
from ledgerwood.report.printing import Fact
from ledgerwood.report.progress import working


@final
class Predictions:
    """The predictions for rows in Parquet or CSV files, which are read in a stream, some rows at a time.

    Args:
        model: fitted.
        rows: a file, a folder, or a pattern.
        probabilities: whether each class has a column.
        key: a column of the rows that stands before the predictions, as it is; None for none.

    Raises:
        SchemaError: files and schema do not fit.
        InvalidParameter: probabilities of a regressor, or a key of the name that another column has.
    """

    __slots__ = ("_batches", "_model", "_probabilities", "header", "keyed")

    def __init__(self, model: Model, rows: str, *, probabilities: bool, key: str | None = None) -> None:
        if probabilities and is_regressor(model):
            raise InvalidParameter("probabilities=True needs a classifier; this model predicts numbers")
        self._model, self._probabilities = model, probabilities
        self.keyed = key is not None
        self.header = [*(() if key is None else (key,)), "prediction"]
        if probabilities:
            self.header += [f"probability of {category}" for category in model.classes_]
        if len(set(self.header)) < len(self.header):
            raise InvalidParameter(f"key={key!r} is the name of a column of predictions, too: rename it in the rows")
        if key is None:
            self._batches: Iterator[tuple[Any, Any]] = ((X, None) for X in model.batches(rows))
        else:
            names = vars(model).get("feature_names_in_")
            named = None if names is None else _validate.items("feature_names_in_", names, "names")
            self._batches = keyed_batches_of(rows, model.schema_, named, key)

    def columns(self) -> Iterator[list[Any]]:
        """The columns of one batch after another; the first batch has no row."""
        for X, keys in self._batches:
            found = [] if keys is None else [keys]
            found.append(self._model.predict(X))
            if self._probabilities:
                found += list(self._model.predict_proba(X).T)
            yield found

    def lines(self, done: Callable[[int], None]) -> Iterator[list[Fact]]:
        """One line after another.

        Args:
            done: called with the number of rows that were predicted.
        """
        rows = 0
        for columns in self.columns():
            rows += len(columns[-1])
            done(rows)
            yield from (list(line) for line in zip(*map(_plain, columns), strict=True))


def _plain(column: Any) -> list[Fact]:
    """A column's values as CSV and JSON write them: numbers and texts, and other values, such as dates, as texts."""
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()  # of Parquet files
    return [each if isinstance(each, Fact) else str(each) for each in values]


def write_predictions(found: Predictions, out: Path | None) -> None:
    """Write them to a file, Parquet by its name and CSV otherwise, or as CSV to standard output.

    Nothing is left at `out` if the rows cannot be read to their end.
    """
    with working("predicting rows") as done:
        if out is None:
            _write(found.header, found.lines(done), sys.stdout)
            return
        partial = out.with_name(f"{out.name}.part")
        try:
            if out.suffix in (".parquet", ".pq"):
                _write_parquet(found, partial, done)
            else:
                with partial.open("w", newline="", encoding="utf-8") as file:
                    _write(found.header, found.lines(done), file)
            partial.replace(out)
        finally:
            partial.unlink(missing_ok=True)


def _write_parquet(found: Predictions, out: Path, done: Callable[[int], None]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as missing:
        raise _extras.needed("writing Parquet files", missing) from missing

    writer, rows = None, 0
    try:
        for columns in found.columns():
            if found.keyed and isinstance(columns[0], np.ndarray):  # of a CSV file: texts, also where there is no row
                columns[0] = pa.array(columns[0], type=pa.string())
            table = pa.table(dict(zip(found.header, columns, strict=True)))
            if writer is None:
                writer = pq.ParquetWriter(out, table.schema)
            writer.write_table(table)
            rows += table.num_rows
            done(rows)
    finally:
        if writer is not None:
            writer.close()


def _write(header: list[str], lines: Iterable[list[Fact]], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
