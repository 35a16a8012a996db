"""A table of columns, for questions that no tree asks. Nothing with a row axis leaves the curator."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.encoding import encode_column, encode_columns, encode_keys
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.columns.selections import (
    AnySelection,
    ColumnBounds,
    ColumnKeys,
    ColumnMode,
    ColumnQuantile,
    ColumnQuantiles,
    known_selection,
    positions,
)
from ledgerwood.curator.queries.columns.statistics import (
    ColumnCount,
    ColumnHistogram,
    ColumnMoments,
    ColumnQuery,
    ColumnSum,
    RowCount,
    known_statistic,
)
from ledgerwood.curator.tables.rows import AbstractRows
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Feature, Schema, require_name

Sample = NDArray[np.bool_]
MOST_BLOCKS = 64
"""Histograms are summed in at most so many parts: a part has as many numbers as there are cells."""


@final
class ColumnTable(AbstractRows):
    """Checked columns of rows, for one curator. Build it with `from_data`, before a budget moves."""

    __slots__ = ("_columns", "_features", "_keys", "_rows", "schema")

    def __init__(
        self,
        *,
        schema: Schema,
        columns: Mapping[str, NDArray[Any]],
        keys: Mapping[str, tuple[NDArray[np.int64], tuple[str, ...]]],
        rows: int,
    ) -> None:
        self.schema = schema
        self._features = {feature.name: feature for feature in schema.columns if feature.name in columns}
        self._columns = dict(columns)
        self._keys = dict(keys)
        self._rows = rows

    @classmethod
    def from_data(
        cls, X: Any, schema: Schema, *, y: Any = None, keys: Mapping[str, Any] | None = None
    ) -> "ColumnTable":
        """Take the rows over. What it refuses, by names, types and shapes, costs nothing; no value is refused.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            schema: features, and the target where y is given. Values outside a range are clamped to it, categories that
                are not on the list are "other".
            y: array-like, shape (n_rows,): the target's column, under the target's name. May be left out.
            keys: by name, columns whose categories are not public (`ColumnKeys`): array-like of strings, shape
                (n_rows,); what is not a string is no key.

        A value that is missing, or that is not of its column's kind, counts as missing, declared or not.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's. `Schema.check` tells the owner of values.
        """
        values = encode_columns(X, schema)
        rows = len(values[0])
        resolved = schema.resolved(len(values))
        columns = {feature.name: column for feature, column in zip(resolved.features, values, strict=True)}
        if y is not None:
            if resolved.target is None:
                raise SchemaError("y is given, but the schema declares no target")
            _new(resolved.target.name, columns)
            columns[resolved.target.name] = _rows("y", encode_column(y, resolved.target), rows)
        coded = {}
        for name, column in (keys or {}).items():
            _new(name, columns)
            codes, known = encode_keys(column, name)
            coded[name] = (_rows(f"keys {name!r}", codes, rows), known)
        return cls(schema=resolved, columns=columns, keys=coded, rows=rows)

    @property
    def n_rows(self) -> int:
        """The number of rows, for the curator alone."""
        return self._rows

    def reader(self, query: object) -> Callable[[Sample], NDArray[np.int64]]:
        """What evaluates the query over a sample, int64 in grid steps. For the curator alone; no row is read here.

        Raises:
            RoundViolation: a foreign query.
            SchemaError: a column that the table does not have, or has as another kind.
        """
        known = known_statistic(query)
        if not isinstance(known, RowCount):
            self._require(known.column)
        return lambda sampled: self.statistic(known, sampled)

    def statistic(self, query: ColumnQuery, sampled: Sample) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps. For the curator alone."""
        match query:
            case RowCount():
                return np.array([np.count_nonzero(sampled) if sampled.size else self._rows], dtype=np.int64)
            case ColumnCount(column=Categorical() as column):
                return kernels.total(self._histogram(ColumnHistogram(column=column), sampled)[: column.missing_cell])
            case ColumnCount():
                return np.array([np.count_nonzero(self._here(query.column, sampled))], dtype=np.int64)
            case ColumnMoments():
                return self._moments(query, sampled)
            case ColumnSum():
                return self._moments(query, sampled)[1:]
            case ColumnHistogram():
                return self._histogram(query, sampled)

    def evidence(self, query: object) -> Callable[[Sample], Any]:
        """What reads a sample for a selection: see `selections`. For the curator alone; no row is read here.

        Raises:
            RoundViolation: a foreign query.
            SchemaError: a column that the table does not have, or has as another kind.
        """
        known = known_selection(query)
        if isinstance(known, ColumnKeys):
            if known.name not in self._keys:
                raise SchemaError(f"the table has no keys {known.name!r}; it has {sorted(self._keys)}")
        else:
            self._require(known.histogram.column if isinstance(known, ColumnMode) else known.column)
        return lambda sampled: self.read(known, sampled)

    def read(self, query: AnySelection, sampled: Sample) -> Any:
        """What the selection's mechanism sees of the sampled rows. For the curator alone."""
        match query:
            case ColumnMode():
                return self._histogram(query.histogram, sampled)[: query.histogram.values, 0]
            case ColumnQuantile() | ColumnQuantiles():
                return positions(query, self._present(query.column, sampled))
            case ColumnBounds():
                return self._present(query.column, sampled)
            case ColumnKeys():
                codes, known = self._keys[query.name]
                codes = codes[sampled] if sampled.size else codes
                counts = np.bincount(codes[codes >= 0], minlength=len(known))
                return dict(zip(known, counts.tolist(), strict=True))

    def _require(self, column: Feature) -> None:
        held = self._features.get(column.name)
        if held is None:
            raise SchemaError(f"the table has no column {column.name!r}; it has {sorted(self._features)}")
        if type(held) is not type(column):
            raise SchemaError(f"column {column.name!r} is {held!r} in the table, and {column!r} in the question")
        # Codes are places in the list of categories: they mean something in that list only.
        if isinstance(held, Categorical) and isinstance(column, Categorical) and held.categories != column.categories:
            raise SchemaError(
                f"column {column.name!r} has the categories {held.categories}, not {column.categories}, in the table"
            )

    def _here(self, column: Feature, sampled: Sample) -> Sample:
        """Which rows are in the sample and have a value."""
        finite: Sample = np.isfinite(self._columns[column.name])
        return finite & sampled if sampled.size else finite

    def _present(self, column: Feature, sampled: Sample) -> NDArray[np.float64]:
        present: NDArray[np.float64] = self._columns[column.name][self._here(column, sampled)]
        return present

    def _moments(self, query: ColumnMoments | ColumnSum, sampled: Sample) -> NDArray[np.int64]:
        steps = query.steps
        partial = np.zeros((kernels.n_chunks(self._rows), 2), dtype=np.int64)
        kernels.column_moments(
            self._rows, self._columns[query.column.name], sampled, steps.low, steps.high, steps.origin,
            2.0**-steps.exponent, steps.least, steps.most, partial,
        )  # fmt: skip
        return kernels.total(partial)

    def _histogram(self, query: ColumnHistogram, sampled: Sample) -> NDArray[np.int64]:
        column = self._columns[query.column.name]
        if query.edges is None:
            partial = np.zeros((min(kernels.n_chunks(self._rows), MOST_BLOCKS), query.cells), dtype=np.int64)
            kernels.code_histogram(self._rows, column, sampled, partial)
            return kernels.total(partial)[:, np.newaxis]
        # numpy sorts block by block, faster than a search for each row; the outermost cells take what is outside.
        edges = np.array([-np.inf, *query.edges[1:-1], np.inf])
        counts, _ = np.histogram(self._present(query.column, sampled), bins=edges)
        missing = np.count_nonzero(np.isnan(column[sampled] if sampled.size else column))
        return np.append(counts, missing).astype(np.int64)[:, np.newaxis]


def _new(name: str, columns: Mapping[str, object]) -> None:
    require_name(name)
    if name in columns:
        raise SchemaError(f"column names must be distinct: {name!r} is one of the features {sorted(columns)} already")


def _rows(name: str, column: NDArray[Any], rows: int) -> NDArray[Any]:
    same_length(rows, len(column), name)
    return column
