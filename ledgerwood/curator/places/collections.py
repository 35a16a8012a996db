"""Rows as Dask collections: frames and arrays whose partitions are computed where they lie.

What is public of them, names and types, is looked at in their meta: tables without rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import column_count
from ledgerwood.curator.inputs.typed_columns import TypedColumns
from ledgerwood.curator.inputs.watching import WatchedFiles
from ledgerwood.curator.places import worker
from ledgerwood.curator.places.cluster import ClusterSession
from ledgerwood.curator.places.cluster_rows import ClusterTable
from ledgerwood.curator.places.messages import code_digest
from ledgerwood.curator.places.origins import local_files
from ledgerwood.curator.places.worker import PartEncoding, encoded
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.curator.tables.trees import table_shape
from ledgerwood.curator.tables.undeclared_files import (
    ColumnQuery,
    CountedColumns,
    no_counts,
    typed_view,
)
from ledgerwood.curator.views.column_rows import UndeclaredRows
from ledgerwood.curator.views.tree_rows import TreeShape
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Schema


def is_collection(value: object) -> bool:
    """Returns whether the value is a Dask frame, series or array; nothing of Dask is imported for others."""
    if type(value).__module__.partition(".")[0] not in ("dask", "dask_expr"):
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(value))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Collections:
    """The rows of a fit as collections with the same partitions. Made by `collections_of`.

    Args:
        X, y, sample_weight: Dask collections; the last one may be None.
        files: that they are read from, as far as is known, as they were when the fit began.
    """

    X: Any
    y: Any
    sample_weight: Any
    files: WatchedFiles

    @property
    def heads(self) -> tuple[Any, Any, Any]:
        """X, y and weights without a row: names and types."""
        return head(self.X), head(self.y), None if self.sample_weight is None else head(self.sample_weight)

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Tasks task(*arguments, X, y, weights), one a partition."""
        from dask.delayed import delayed

        parts = [_delayed(self.X), _delayed(self.y)]
        weights = [None] * len(parts[0]) if self.sample_weight is None else _delayed(self.sample_weight)
        return [delayed(task, pure=False)(*arguments, *each) for each in zip(*parts, weights, strict=True)]

    def table(self, session: ClusterSession, schema: Schema, *, loss: Loss, bins: int) -> ClusterTable:
        """The table of all rows, encoded on the workers; arguments and errors as in `Table.from_data`.

        Raises:
            WorkersLost: the cluster lost its workers too often.
        """
        X, y, weights = self.heads
        # Names and types are refused here, and not by a worker.
        EncodedRows.of(X, y, schema, loss=loss, bins=bins, sample_weight=weights)
        encoding = PartEncoding(schema=schema, loss=loss, bins=bins, digest=code_digest())
        shape = _shape(schema.resolved(column_count(X, schema)), bins)
        session.watch(self.files)
        session.place(lambda: self.each(encoded, encoding), shape)
        return ClusterTable(session, shape)

    def counted(
        self, session: ClusterSession, columns: TypedColumns, queries: Sequence[ColumnQuery]
    ) -> "ClusterColumns":
        """The rows before their schema is estimated, counted on the workers.

        Args:
            session: of the fit.
            columns: the names and types.
            queries: all that the estimation will ask.

        Raises:
            SchemaError, WorkersLost: as in `table`.
        """
        shape = typed_view(*self.heads[:2], columns)
        counts, n_rows = no_counts(queries, shape), 0
        session.watch(self.files)
        parts = session.results(lambda: self.each(worker.counted, columns, tuple(queries), code_digest()))
        for rows, found in parts:
            n_rows += rows
            for query, own in zip(queries, found, strict=True):
                counts[query] += own
        return ClusterColumns(self, session, columns, counts, shape, n_rows)


@final
class ClusterColumns(CountedColumns):
    """Typed columns on a cluster, for one curator. Made by `Collections.counted`, before a budget moves."""

    __slots__ = ("_collections", "_session")

    def __init__(
        self, collections: Collections, session: ClusterSession, columns: TypedColumns,
        counts: Mapping[ColumnQuery, Any], shape: UndeclaredRows, n_rows: int,
    ) -> None:  # fmt: skip
        super().__init__(columns, counts, shape, n_rows)
        self._collections, self._session = collections, session

    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> ClusterTable:
        """The table under the schema that was estimated for these columns: the rows are read a second time.

        Raises:
            WorkersLost: the cluster lost its workers too often, or the rows are others than those that were counted.
        """
        encoding = PartEncoding(schema=schema, loss=loss, bins=bins, digest=code_digest())
        shape = _shape(schema, bins)
        self._session.place(
            lambda: self._collections.each(worker.encoded_columns, encoding, self._columns), shape, n_rows=self._n_rows
        )
        return ClusterTable(self._session, shape)


def _shape(schema: Schema, bins: int) -> TreeShape:
    return table_shape(
        schema,
        n_features=len(schema.features),
        classes=isinstance(schema.target, Categorical),
        weighted=schema.weighted,
        bins=bins,
    )


def collections_of(X: Any, y: Any, sample_weight: Any) -> Collections:
    """X, y and weights with the same partitions.

    Raises:
        SchemaError: one of them is no Dask collection, or they have other partitions.
    """
    for name, value in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        if not is_collection(value) and not (value is None and name == "sample_weight"):
            raise SchemaError(
                f"{name} is {_validate.kind_of(value)}, and rows on a cluster are Dask collections throughout: "
                "fit(frame[features], frame['label'])"
            )
    X = _by_rows(X, "X")
    y, weights = (
        None if each is None else _aligned(each, X, name) for each, name in ((y, "y"), (sample_weight, "sample_weight"))
    )
    paths = {path for each in (X, y, weights) for path in local_files(each)}
    return Collections(X=X, y=y, sample_weight=weights, files=WatchedFiles(sorted(paths)))


def _by_rows(values: Any, name: str) -> Any:
    """The collection with all columns in each partition."""
    if not _is_array(values):
        return values
    if values.ndim not in (1, 2) or any(np.isnan(size) for size in values.shape[1:]):
        raise SchemaError(f"{name} must be a Dask array of two dimensions with a known number of columns")
    return values if values.ndim == 1 or len(values.chunks[1]) == 1 else values.rechunk({1: -1})


def _aligned(values: Any, X: Any, name: str) -> Any:
    values = _by_rows(values, name)
    if _is_array(values) and _is_array(X) and values.chunks[0] != X.chunks[0]:
        known = not any(np.isnan(size) for each in (values, X) for size in each.chunks[0])
        if known and values.shape[0] == X.shape[0]:
            values = values.rechunk({0: X.chunks[0]})
    if values.npartitions != X.npartitions:
        raise SchemaError(
            f"{name} has {values.npartitions} partitions, and X has {X.npartitions}: they must be those of the same "
            "rows, as columns of one frame are"
        )
    return values


def _is_array(values: Any) -> bool:
    import dask.array as da

    return isinstance(values, da.Array)


def head(values: Any) -> Any:
    """A collection's names and types, as a table or column without rows."""
    if _is_array(values):
        return np.empty((0, *values.shape[1:]), dtype=values.dtype)
    return values._meta  # what Dask itself passes on: there is no other name for it


def _delayed(values: Any) -> list[Any]:
    if _is_array(values):
        return list(values.to_delayed().ravel())
    # Dask's later steps read several small files as one partition, as many as the columns asked for are few: those of
    # X and y would no longer be the same.
    return list(values.simplify().to_delayed(optimize_graph=False))


def mapped(X: Any, predict: Callable[[Any], NDArray[Any]]) -> Any:
    """The predictions of a collection's rows, as a collection with the same partitions; computed when it is.

    Args:
        X: Dask frame or array of features.
        predict: from a table in memory to an array, (n_rows,) or (n_rows, k).

    Returns:
        Of an array an array; of a frame a series, or a frame of k columns, with the frame's index.
    """
    X = _by_rows(X, "X")
    empty = predict(head(X))
    if _is_array(X):
        if empty.ndim == 1:
            return X.map_blocks(predict, dtype=empty.dtype, drop_axis=1, meta=empty)
        return X.map_blocks(predict, dtype=empty.dtype, chunks=(X.chunks[0], (empty.shape[1],)), meta=empty)
    return X.map_partitions(_framed, predict, meta=_framed(head(X), predict))


def _framed(X: Any, predict: Callable[[Any], NDArray[Any]]) -> Any:
    import pandas as pd

    found = predict(X)
    return pd.Series(found, index=X.index) if found.ndim == 1 else pd.DataFrame(found, index=X.index)
