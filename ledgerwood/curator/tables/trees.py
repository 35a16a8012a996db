"""Rows encoded for trees, with the state of each row; and rows whose schema is not known yet.

The latter count bins and categories, and become a `TreeTable` once the schema is estimated. Nothing with a row axis
leaves the curator.
"""

import abc
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import Flags
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.typed_columns import TypedColumns, read_columns, read_target
from ledgerwood.curator.inputs.values import ALL_WHOLE, Keys, Weights
from ledgerwood.curator.queries.registry import (
    TREE_CHOICES,
    TREES,
    UNDECLARED,
    UNDECLARED_CHOICES,
    Evaluation,
    Integers,
)
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.curator.tables.parts import EncodedRows, RowPart
from ledgerwood.curator.views.column_rows import NO_SAMPLE, UndeclaredRows
from ledgerwood.curator.views.tree_rows import NO_FILTER, Mask, RowBudgets, TreeRows, TreeShape
from ledgerwood.errors import SchemaError
from ledgerwood.mechanisms.exact.coins import MOST_ROWS
from ledgerwood.schema import Categorical, Category, Schema
from ledgerwood.sparse_cells import AnyCells, of_rows


class TreeTable(AbstractRows):
    """Encoded rows of one curator that trees are learned from, wherever they lie."""

    __slots__ = ("_shape", "schema")

    schema: Schema
    _shape: TreeShape

    def reader(self, query: object, mechanism: object = None) -> Callable[[Mask], NDArray[np.int64]]:
        """Makes the evaluator of the query over a sample. Curator only; no row is read here.

        Raises:
            RoundViolation: a query that the registry does not have, or that the table's public shape or place does not
                allow.
        """
        self._require(TREES.evaluation(query), query)
        return lambda sampled: self.statistic(query, sampled)

    def caveat(self, query: object) -> str:
        """The ledger's caveat for a query whose sensitivity is not proven; empty for all others."""
        return TREES.evaluation(query).caveat(query)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[Mask], Any]:
        """Makes the reader of a sample for a selection: exact gains, or counts. Curator only; no row is read here.

        Raises:
            RoundViolation: as of `reader`.
        """
        self._require(TREE_CHOICES.evaluation(query), query)
        return lambda sampled: self.utilities(query, sampled)

    def statistic(
        self, query: object, sampled: Mask, budgets: RowBudgets | None = None, mechanism: object = None
    ) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps. Curator only.

        Args:
            query: the query to sum.
            sampled: see `sample`.
            budgets: what each row has left, of a query that is `filtered`; a row that cannot pay contributes 0, the
                others are charged.
            mechanism: the noise of the release, from which owners of rows derive the charge themselves.

        Raises:
            RoundViolation: as of `reader`.
        """
        evaluation = TREES.evaluation(query)
        self._require(evaluation, query)
        found: NDArray[np.int64] = self._evaluated(
            evaluation, query, sampled, NO_FILTER if budgets is None else budgets
        )
        return found

    def utilities(self, query: object, sampled: Mask) -> Any:
        """The exact utilities of a selection. Curator only.

        Raises:
            RoundViolation: as of `evidence`.
        """
        evaluation = TREE_CHOICES.evaluation(query)
        self._require(evaluation, query)
        return self._evaluated(evaluation, query, sampled, NO_FILTER)

    def full_accounts(self) -> Any:
        """The `left` of `RowBudgets` at the start: each row has its whole limit."""
        return np.full(self.n_rows, FULL, dtype=np.int64)

    def _require(self, evaluation: Evaluation[TreeShape, TreeRows], query: object) -> None:
        """Refuse a query by the table's public shape, and by where its rows lie."""
        evaluation.check(query, self._shape)

    @abc.abstractmethod
    def _evaluated(
        self, evaluation: Evaluation[TreeShape, TreeRows], query: object, sampled: Mask, budgets: RowBudgets
    ) -> Any:
        """The value of a query that `_require` has seen."""


@final
class Table(TreeTable):
    """Checked and encoded rows in this process. Build it with `from_data`, before a budget moves."""

    __slots__ = ("_lock", "_n_rows", "_parts")

    def __init__(
        self,
        *,
        schema: Schema,
        cells: AnyCells,
        targets: NDArray[np.float64] | None = None,
        classes: NDArray[np.int32] | None = None,
        weights: Weights = ALL_WHOLE,
        left_out: Flags | None = None,
        bins: int | None = None,
    ) -> None:
        """Make a table, of one part, of rows that were already read.

        Args:
            schema: resolved.
            cells: uint8 or uint16 (n_features, n_rows); in an array, or sparse.
            targets: float64 (n_rows,) in [-1, 1]; None for those of two classes, +1 for the second one.
            classes: int32 (n_rows,), the place of each row's class among the sorted ones, -1 for none; None if the
                target is a number.
            weights: see `encode_weights`.
            left_out: bool (n_rows,), rows that no query reads: see `encode_rows`. None: no row.
            bins: as in `from_data`, if the cells are its even steps.
        """
        # Without rows by the schema: what is refused of weights must not depend on whether there is a row.
        weighted = len(weights) > 0 or (schema.weighted and cells.shape[1] == 0)
        shape = table_shape(schema, n_features=len(cells), classes=classes is not None, weighted=weighted, bins=bins)
        part = RowPart(shape=shape, cells=cells, targets=targets, classes=classes, weights=weights)
        if left_out is not None:
            part.leave_out(left_out)
        self._hold(shape, (part,))

    def _hold(self, shape: TreeShape, parts: tuple[RowPart, ...]) -> None:
        self.schema = shape.schema
        self._lock = threading.Lock()
        self._shape = shape
        self._parts = parts
        self._n_rows = sum(part.n_rows for part in parts)

    @classmethod
    def of_parts(cls, shape: TreeShape, parts: Sequence[RowPart]) -> "Table":
        """A table of rows that lie in several parts.

        Args:
            shape: that of each part.
            parts: at least one, in the order of their offsets, without a gap.

        Raises:
            SchemaError: 2**35 rows or more, whose sums could wrap around.
        """
        ends = [0, *(part.offset + part.n_rows for part in parts)]
        if not parts or [part.offset for part in parts] != ends[:-1]:
            raise SchemaError("the parts of a table are consecutive rows of its source, from the first one on")
        if ends[-1] >= MOST_ROWS:
            raise SchemaError("a table has fewer than 2**35 rows: docs/explanation/queries.md#leaf-ratios")
        table = cls.__new__(cls)
        table._hold(shape, tuple(parts))
        return table

    def parted(self, sizes: Sequence[int]) -> "Table":
        """A table of the same rows in parts of these sizes, none of which was asked anything; for tests and tools."""
        (whole,) = self._parts
        rows, parts, begin = whole.rows, [], 0
        for size in sizes:
            own = slice(begin, begin + size)
            part = RowPart(
                shape=self._shape,
                cells=of_rows(rows.cells, begin, begin + size),
                targets=rows.targets[own].copy(),
                classes=None if rows.classes is None else rows.classes[own].copy(),
                weights=rows.weights[own].copy(),
                offset=begin,
            )
            if whole.present.size:
                part.leave_out(~whole.present[own])
            parts.append(part)
            begin += size
        if begin != self._n_rows:
            raise SchemaError("the parts' sizes do not add up to the rows of the table")
        return Table.of_parts(self._shape, parts)

    def leave_out(self, rows: Flags) -> None:
        """Let these rows contribute 0 to every query; called before the first query. Curator only.

        Args:
            rows: bool (n_rows,).
        """
        for part in self._parts:
            part.leave_out(rows[part.offset : part.offset + part.n_rows])

    @classmethod
    def from_data(cls, X: Any, y: Any, schema: Schema, *, loss: Loss, bins: int, sample_weight: Any = None) -> "Table":
        """Encode the rows by the schema. What it refuses, by names, types and shapes, costs nothing.

        No value is refused: one outside its range is clamped, a category that is not listed is "other", a row whose
        label is missing or of no class, or with a cell that cannot be read, contributes 0.

        Args:
            X: array-like, data frame, or sparse table of format CSR or CSC, shape (n_rows, n_features).
            y: array-like, shape (n_rows,).
            schema: features and target.
            loss: logistic wants a categorical target; squared takes it, too, or a numeric target, whose range becomes
                [-1, 1]. Of two classes the second one is 1 and the first one -1; of several, a query names one.
            bins: even steps of a numeric feature's range.
            sample_weight: see `encode_weights`.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's. `Schema.check` tells the owner of values.
        """
        rows = EncodedRows.of(X, y, schema, loss=loss, bins=bins, sample_weight=sample_weight)
        return cls(
            schema=schema.resolved(len(rows.cells)), cells=rows.cells, targets=rows.targets, classes=rows.classes,
            weights=rows.weights, left_out=rows.left_out, bins=bins,
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """The number of rows, curator only."""
        return self._n_rows

    def sums(self, query: object, sampled: Mask, *, is_choice: bool, budgets: RowBudgets = NO_FILTER) -> Integers:
        """The exact sums of which the query's value, or a selection's utilities, are made: of an owner in a federation.

        Args:
            query: that is more than a sum over rows neither by parts nor by ratios.
            sampled: see `sample`.
            is_choice: whether the query is a selection's.
            budgets: see `statistic`.

        Raises:
            RoundViolation: as of `reader`, or another query.
        """
        evaluation = (TREE_CHOICES if is_choice else TREES).evaluation(query)
        evaluation.check(query, self._shape)
        evaluation.require_sums(query)
        with self._lock:
            return evaluation.summed(query, self._views(sampled, budgets), len(self._parts))

    def _require(self, evaluation: Evaluation[TreeShape, TreeRows], query: object) -> None:
        super()._require(evaluation, query)
        evaluation.require_parts(query, len(self._parts))

    def _evaluated(
        self, evaluation: Evaluation[TreeShape, TreeRows], query: object, sampled: Mask, budgets: RowBudgets
    ) -> Any:
        # Two rounds of one curator share the row state.
        with self._lock:
            return evaluation.over(query, self._views(sampled, budgets), len(self._parts), self._shape)

    def _views(self, sampled: Mask, budgets: RowBudgets) -> Iterator[TreeRows]:
        for part in self._parts:
            yield part.view(sampled, budgets)
            part.rest()


def table_shape(schema: Schema, *, n_features: int, classes: bool, weighted: bool, bins: int | None) -> TreeShape:
    """The public shape of a table.

    Args:
        schema: resolved.
        n_features: columns.
        classes: whether the rows' classes are kept.
        weighted: whether rows have their own weights.
        bins: even steps of a numeric feature's range.
    """
    n_classes = 0
    if classes:
        assert isinstance(schema.target, Categorical)  # classes are places among its categories
        n_classes = len(schema.target.categories)
    return TreeShape(schema=schema, n_features=n_features, n_classes=n_classes, weighted=weighted, bins=bins)


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
        """The number of rows, curator only."""
        return self._n_rows

    @property
    def schema(self) -> Schema:
        """None is known yet.

        Raises:
            SchemaError: always.
        """
        raise SchemaError("the schema has not been estimated yet")

    def reader(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """Makes the counter of a column's bins over a sample. Curator only; no row is read here.

        Raises:
            RoundViolation: another query, or no numeric column.
        """
        UNDECLARED.evaluation(query).check(query, self._view())
        return lambda sampled: self.statistic(query, sampled)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], dict[Category, int]]:
        """Makes the counter of the rows of each category. Curator only; no row is read here.

        Raises:
            RoundViolation: another query, or a numeric column.
        """
        UNDECLARED_CHOICES.evaluation(query).check(query, self._view())
        return lambda sampled: self.key_counts(query, sampled)

    def statistic(self, query: object, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps."""
        found: NDArray[np.int64] = _whole(UNDECLARED.evaluation(query), query, self._view(sampled))
        return found

    def key_counts(self, query: object, sampled: NDArray[np.bool_]) -> dict[Category, int]:
        """The exact number of sampled rows of each category that occurs."""
        found: dict[Category, int] = _whole(UNDECLARED_CHOICES.evaluation(query), query, self._view(sampled))
        return found

    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> Table:
        """The table under the schema that was estimated for these columns: see `EncodedRows.of_columns`."""
        rows = EncodedRows.of_columns(self._columns, self._target, schema, loss=loss, bins=bins)
        return Table(
            schema=schema, cells=rows.cells, targets=rows.targets, classes=rows.classes, left_out=rows.left_out,
            bins=bins,
        )  # fmt: skip

    def _view(self, sampled: NDArray[np.bool_] = NO_SAMPLE) -> UndeclaredRows:
        return UndeclaredRows(columns=(*self._columns, self._target), sampled=sampled)


def _whole(evaluation: Evaluation[UndeclaredRows, UndeclaredRows], query: object, view: UndeclaredRows) -> Any:
    return evaluation.over(query, [view], 1, view)


def _length(column: NDArray[np.float64] | Keys) -> int:
    return len(column.codes if isinstance(column, Keys) else column)
