"""Rows in files whose schema is not known yet: counted in one pass, encoded under the estimated schema in a second one.

What will be asked is known before a row is read: bins and categories of columns, which are sums over rows. The counts
of one batch after another are added up, and no row is kept. docs/explanation/places.md#two-passes.
"""

import abc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.batches import Roles, RowSource
from ledgerwood.curator.inputs.encoding import cell_dtype
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.typed_columns import TypedColumns, read_columns, read_target, without_draft
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.queries.columns.selections import KeyCounts, ListedCounts, ValueCounts
from ledgerwood.curator.queries.registry import UNDECLARED, UNDECLARED_CHOICES
from ledgerwood.curator.tables.chunks import largest_row_bytes, written
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.curator.tables.scratch import Scratch
from ledgerwood.curator.tables.trees import Table, TreeTable
from ledgerwood.curator.views.column_rows import NO_SAMPLE, UndeclaredRows
from ledgerwood.errors import FilesChanged, RoundViolation, SchemaError, ScratchFull
from ledgerwood.schema import Category, Schema

ColumnQuery = ValueCounts | ListedCounts | KeyCounts
_SPENT = "what was granted for this fit is spent"


class CountedColumns(AbstractRows):
    """Typed columns whose counts are known, and whose rows are read again once there is a schema; for one curator.

    Args:
        columns: the types of the columns.
        counts: the exact value of each query that will be asked.
        shape: the columns without a row.
        n_rows: their number.
    """

    __slots__ = ("_columns", "_counts", "_n_rows", "_shape")

    def __init__(
        self, columns: TypedColumns, counts: Mapping[ColumnQuery, Any], shape: UndeclaredRows, n_rows: int
    ) -> None:
        self._columns, self._counts, self._shape, self._n_rows = columns, dict(counts), shape, n_rows

    @abc.abstractmethod
    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> TreeTable:
        """The table under the schema that was estimated for these columns."""

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
        """As of `UndeclaredTable`; of a query that was not announced too it is refused."""
        UNDECLARED.evaluation(query).check(query, self._shape)
        return lambda sampled: self.statistic(query, sampled)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], dict[Category, int]]:
        """As of `UndeclaredTable`."""
        UNDECLARED_CHOICES.evaluation(query).check(query, self._shape)
        return lambda sampled: self.key_counts(query, sampled)

    def statistic(self, query: object, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The query's exact value over all rows, int64 in grid steps."""
        found: NDArray[np.int64] = self._counted(query, sampled)
        return found.copy()

    def key_counts(self, query: object, sampled: NDArray[np.bool_]) -> dict[Category, int]:
        """The exact number of rows of each category that occurs."""
        return dict(self._counted(query, sampled))

    def _counted(self, query: object, sampled: NDArray[np.bool_]) -> Any:
        if sampled.size:
            raise RoundViolation("rows without a schema are counted once, all of them: here they have no samples")
        if not isinstance(query, ColumnQuery) or query not in self._counts:
            raise RoundViolation(f"{query!r} was not announced before the rows were read")
        return self._counts[query]


@final
class UndeclaredFiles(CountedColumns):
    """Typed columns in files, for one curator. Build it with `counted`, before a budget moves."""

    __slots__ = ("_roles", "_scratch", "_source")

    def __init__(
        self,
        source: RowSource,
        roles: Roles,
        columns: TypedColumns,
        counts: dict[ColumnQuery, Any],
        shape: UndeclaredRows,
        n_rows: int,
        scratch: Scratch,
    ) -> None:
        super().__init__(columns, counts, shape, n_rows)
        self._source, self._roles, self._scratch = source, roles, scratch

    @classmethod
    def counted(
        cls,
        source: RowSource,
        roles: Roles,
        columns: TypedColumns,
        queries: Sequence[ColumnQuery],
        scratch: Scratch,
        *,
        most_classes: int,
    ) -> "UndeclaredFiles":
        """Read all rows once, and keep the exact counts of these queries.

        Args:
            source: of the rows.
            roles: which columns are what; without a schema.
            columns: the types of the first file's columns.
            queries: all that will be asked.
            scratch: where the rows will be encoded; its room is tried before anything is paid.
            most_classes: that the target may have.

        Raises:
            SchemaError: files whose columns differ in type. Nothing was spent.
            FilesChanged: a file changed while it was read. Nothing was spent.
            ScratchFull: no room for the rows that were counted, whatever schema is found. Nothing was spent.
        """
        shape = None
        for head in source.heads(roles):  # of every file, before a row of the first one is read
            found = TypedColumns.of(head.X, head.y, numeric_target=columns.target.kind == "numeric")
            if found != without_draft(columns):
                ours = [
                    str(one)
                    for one, other in zip(_all(without_draft(columns)), _all(found), strict=True)
                    if one != other
                ]
                raise SchemaError(f"schema=None, and the files differ in the types of their columns: {ours}")
            shape = typed_view(head.X, head.y, columns)
        assert shape is not None  # a source has a head
        counts = no_counts(queries, shape)
        n_rows = 0
        for batch in source.batches(roles):
            view = typed_view(batch.X, batch.y, columns)
            n_rows += length_of(view)
            add_counts(counts, view)
        scratch.try_room(n_rows * largest_row_bytes(len(columns.features), most_classes))
        return cls(source, roles, columns, counts, shape, n_rows, scratch)

    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> Table:
        """The table under the schema that was estimated for these columns: the second pass.

        Raises:
            FilesChanged: a file changed after it was counted, or the source has other rows now. The grant is spent.
            ScratchFull: others have filled the disk meanwhile. The grant is spent.
        """
        batches = (
            EncodedRows.of_columns(typed[:-1], typed[-1], schema, loss=loss, bins=bins)
            for typed in (
                typed_view(each.X, each.y, self._columns).columns for each in self._source.batches(self._roles)
            )
        )
        try:
            dtype = cell_dtype(schema.features, bins)
            table = written(batches, schema, weighted=False, bins=bins, dtype=dtype, scratch=self._scratch)
        except FilesChanged as error:
            raise FilesChanged(f"{error}. Its schema had been estimated: {_SPENT}") from None
        except ScratchFull as error:
            raise ScratchFull(f"{self._scratch.folder.parent} has been filled by others: {_SPENT}") from error
        if table.n_rows != self._n_rows:
            raise FilesChanged(f"the source has other rows than when its schema was estimated: {_SPENT}")
        return table


def _all(columns: TypedColumns) -> tuple[object, ...]:
    return (*columns.features, columns.target)


def typed_view(X: Any, y: Any, columns: TypedColumns) -> UndeclaredRows:
    """Some rows as columns of these types, the target last."""
    features, target = read_columns(X, columns.features), read_target(y, columns.target)
    view = UndeclaredRows(columns=(*features, target), sampled=NO_SAMPLE)
    same_length(_length(features[0]), length_of(view), "y")
    return view


def length_of(view: UndeclaredRows) -> int:
    """The number of rows."""
    return _length(view.columns[-1])


def no_counts(queries: Sequence[ColumnQuery], shape: UndeclaredRows) -> dict[ColumnQuery, Any]:
    """The value of each query over no rows.

    Args:
        queries: all that will be asked.
        shape: the columns without a row.

    Raises:
        RoundViolation: a query that these columns do not allow.
    """
    for query in queries:
        _evaluation(query).check(query, shape)
    return {query: _over(query, shape) for query in queries}


def add_counts(counts: dict[ColumnQuery, Any], view: UndeclaredRows) -> None:
    """Add the counts over some rows, in place."""
    for query, total in counts.items():
        total += _over(query, view)  # noqa: PLW2901  # in place: an array, or a Counter


def _evaluation(query: ColumnQuery) -> Any:
    return (UNDECLARED if query in UNDECLARED else UNDECLARED_CHOICES).evaluation(query)


def _over(query: ColumnQuery, view: UndeclaredRows) -> Any:
    """The query's counts over some rows: an array, or a Counter."""
    found = _evaluation(query).over(query, [view], 1, view)
    return Counter(found) if isinstance(found, dict) else found


def _length(column: NDArray[np.float64] | Keys) -> int:
    return len(column.codes if isinstance(column, Keys) else column)
