"""Rows whose schema is not known yet: counts of bins and of categories, and the way to a `Table` once it is."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import Cells, cell_dtype, class_places, key_cells, numeric_cells, scaled_labels
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.typed_columns import TypedColumns, read_columns, read_target
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.queries.registry import UNDECLARED, UNDECLARED_CHOICES
from ledgerwood.curator.tables.rows import AbstractRows
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.views.undeclared_rows import NO_SAMPLE, UndeclaredRows
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Category, Numeric, Schema


@final
class UndeclaredTable(AbstractRows):
    """Rows as typed columns, for one curator. Build it with `from_data`, before a budget moves."""

    __slots__ = ("_columns", "_n_rows", "_target")

    def __init__(
        self, *, columns: list[NDArray[np.float64] | Keys], target: NDArray[np.float64] | Keys, n_rows: int
    ) -> None:
        self._columns = columns
        self._target = target
        self._n_rows = n_rows

    @classmethod
    def from_data(cls, X: Any, y: Any, columns: TypedColumns) -> "UndeclaredTable":
        """Take the rows over. No value is refused; types and shapes are, which costs nothing.

        Raises:
            SchemaError, TypeError: types or shapes that do not fit.
        """
        features = read_columns(X, columns.features)
        target = read_target(y, columns.target)
        n_rows = _length(features[0])
        same_length(n_rows, _length(target), "y")
        return cls(columns=features, target=target, n_rows=n_rows)

    @property
    def n_rows(self) -> int:
        """The number of rows, for the curator alone."""
        return self._n_rows

    @property
    def schema(self) -> Schema:
        """None is known yet.

        Raises:
            SchemaError: always.
        """
        raise SchemaError("the schema has not been estimated yet")

    def reader(self, query: object) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """What counts a column's bins over a sample. For the curator alone; no row is read here.

        Raises:
            RoundViolation: another query, or no numeric column.
        """
        UNDECLARED.evaluation(query).check(query, self._view())
        return lambda sampled: self.statistic(query, sampled)

    def evidence(self, query: object) -> Callable[[NDArray[np.bool_]], dict[Category, int]]:
        """What counts the rows of each category. For the curator alone; no row is read here.

        Raises:
            RoundViolation: another query, or a numeric column.
        """
        UNDECLARED_CHOICES.evaluation(query).check(query, self._view())
        return lambda sampled: self.key_counts(query, sampled)

    def statistic(self, query: object, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps."""
        found: NDArray[np.int64] = UNDECLARED.evaluation(query).evaluate(query, self._view(sampled))
        return found

    def key_counts(self, query: object, sampled: NDArray[np.bool_]) -> dict[Category, int]:
        """The exact number of sampled rows of each category that occurs."""
        found: dict[Category, int] = UNDECLARED_CHOICES.evaluation(query).evaluate(query, self._view(sampled))
        return found

    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> Table:
        """The table under a schema that was bought for these columns. Nothing is refused because of a row.

        A value or label outside its range is clamped, a category that is not listed goes to "other", a missing value to
        its own cell; a row whose label is missing, or of another class, is of no class and contributes 0.
        """
        dtype = cell_dtype(schema.features, bins)
        cells: Cells = np.empty((len(self._columns), self._n_rows), dtype=dtype)
        for row, feature, column in zip(cells, schema.features, self._columns, strict=True):
            match feature, column:
                case Numeric(), np.ndarray():
                    row[:] = numeric_cells(column, feature, bins)
                case Categorical(), Keys():
                    row[:] = key_cells(column, feature)
                case _:
                    raise SchemaError(f"{feature!r} is not of the type of its column")
        match loss, schema.target, self._target:
            case "squared", Numeric() as target, np.ndarray() as labels:
                return Table(schema=schema, cells=cells, targets=scaled_labels(labels, target), bins=bins)
            case "squared" | "logistic", Categorical() as target, Keys() as labels:
                return Table(
                    schema=schema, cells=cells, classes=class_places(target)[key_cells(labels, target)], bins=bins
                )
        raise SchemaError(f"the {loss} loss cannot learn the target {schema.target!r} of these rows")

    def _view(self, sampled: NDArray[np.bool_] = NO_SAMPLE) -> UndeclaredRows:
        return UndeclaredRows(columns=(*self._columns, self._target), sampled=sampled)


def _length(column: NDArray[np.float64] | Keys) -> int:
    return len(column.codes if isinstance(column, Keys) else column)
