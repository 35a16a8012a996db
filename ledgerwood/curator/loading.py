"""Rows as they are given to a fit: in memory, as the name of files that are read in a stream, or on a cluster.

What is public of them, names and types, is looked at in tables without rows where they are not in memory.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.curator.file_folds import FileFolds
from ledgerwood.curator.folds import AbstractFolds, Folds
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.batches import Batch, Roles, RowSource
from ledgerwood.curator.inputs.encoding import column_count
from ledgerwood.curator.inputs.sources import (
    require_label,
    require_labels_given,
    require_named,
    settled,
    source_of,
)
from ledgerwood.curator.inputs.typed_columns import TypedColumns
from ledgerwood.curator.inputs.values import UnitKeys, UnitReader, read_keys
from ledgerwood.curator.places.cluster import ClusterSession, session_on
from ledgerwood.curator.places.collections import Collections, collections_of, is_collection
from ledgerwood.curator.places.connections import client_of
from ledgerwood.curator.places.federated_columns import FederatedColumns
from ledgerwood.curator.places.federated_rows import AbstractOwners, FederatedTable, FitTerms
from ledgerwood.curator.queries.registry import not_a_sum, not_beyond_a_process
from ledgerwood.curator.tables.chunks import encoded_batch, from_source, largest_row_bytes, row_bytes
from ledgerwood.curator.tables.scratch import Scratch, scratch_folder
from ledgerwood.curator.tables.trees import Table, TreeTable, UndeclaredTable
from ledgerwood.curator.tables.undeclared_files import ColumnQuery, CountedColumns, UndeclaredFiles
from ledgerwood.errors import FilesChanged, ReplayFailed, RoundViolation, SchemaError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import is_recorded
from ledgerwood.schema import Categorical, Schema

Place = Scratch | ClusterSession | AbstractOwners | None
"""Where encoded rows lie while a fit runs: in files, on a cluster, at their owners', or in memory."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GivenRows:
    """The rows of a fit. Made by `given_rows`.

    Args:
        X, y, sample_weight, keys: tables and columns; of rows in files or on a cluster, without a row.
        source: of rows in files; None for others.
        roles: of the files' columns.
        scratch: the folder that was named for encoded rows.
        collections: of rows on a cluster; None for others.
        client: of the cluster.
        owners: of the rows of a federation; None for others.
    """

    X: Any
    y: Any
    sample_weight: Any
    keys: Any = None
    source: RowSource | None = None
    roles: Roles | None = None
    scratch: str | os.PathLike[str] | None = None
    collections: Collections | None = None
    client: Any = None
    owners: AbstractOwners | None = None

    @property
    def in_files(self) -> bool:
        """True for rows that are read in a stream."""
        return self.source is not None

    @property
    def on_cluster(self) -> bool:
        """True for rows that are on a cluster's workers."""
        return self.collections is not None

    @property
    def in_one_process(self) -> bool:
        """False for rows that are on a cluster's workers, or at their owners'."""
        return self.collections is None and self.owners is None

    def require_sums(self, needs_one_part: str, who: str, *, needs_one_process: str = "") -> None:
        """Refuse a plan that asks for more than sums over rows, where the rows lie in files or in several processes.

        Args:
            needs_one_part, needs_one_process: of the plan.
            who: asks, for the error.

        Raises:
            RoundViolation: so it is. Nothing was spent.
        """
        if needs_one_part and (self.in_files or not self.in_one_process):
            raise RoundViolation(f"{who}: {not_a_sum(needs_one_part)}. Nothing was spent")
        if needs_one_process and not self.in_one_process:
            raise RoundViolation(f"{who}: {not_beyond_a_process(needs_one_process)}. Nothing was spent")

    @contextmanager
    def place(
        self, *, private: bool = True, n_jobs: int | None = None, terms: FitTerms | None = None
    ) -> Iterator[Place]:
        """Where encoded rows lie until the block ends: a scratch folder, a session of several processes, or None.

        Args:
            private: whether a cluster's connections must be private: True unless the noise is a test's.
            n_jobs: threads of each worker of a cluster.
            terms: of the fit, which the owners of a federation's rows have to agree with.

        Raises:
            PrivacyError: a cluster that is not private, or whose workers have other code.
            FederationRefused: owners that do not take part.
        """
        if self.owners is not None:
            if terms is None:
                raise RoundViolation("rows at their owners' are trained on by `federate`, one fit at a time")
            with self.owners.session(terms):
                yield self.owners
        elif self.source is not None:
            with scratch_folder(self.scratch) as scratch:
                yield scratch
        elif self.collections is not None:
            with session_on(self.client, private=private, n_jobs=n_jobs) as session:
                yield session
        else:
            yield None

    def encoded(self, schema: Schema, place: Place, *, loss: Loss, bins: int) -> TreeTable:
        """The table of all rows; arguments and errors as in `Table.from_data`.

        Raises:
            ScratchFull: the disk is full.
            FilesChanged: a file changed while it was read.
            OSError: a file cannot be read.
            WorkersLost: a cluster lost its workers too often.
        """
        if isinstance(place, AbstractOwners):
            return FederatedTable(place, schema, bins=bins)
        if isinstance(place, ClusterSession):
            assert self.collections is not None  # `place`
            return self.collections.table(place, schema, loss=loss, bins=bins)
        if self.source is None or self.roles is None or not isinstance(place, Scratch):
            return Table.from_data(self.X, self.y, schema, loss=loss, bins=bins, sample_weight=self.sample_weight)
        with _told(self.source):
            return from_source(
                self.source, self.roles, n_features=column_count(self.X, schema), loss=loss, bins=bins, scratch=place
            )

    def units(self, schema: Schema, place: Place, *, loss: Loss, bins: int) -> tuple[Table, UnitKeys]:
        """The table of all rows, and their privacy units; arguments and errors as in `encoded` and `read_keys`."""
        assert not isinstance(place, ClusterSession | AbstractOwners)  # `given_rows` refuses keys there
        if self.source is None or self.roles is None or not isinstance(place, Scratch):
            table = Table.from_data(self.X, self.y, schema, loss=loss, bins=bins)
            return table, read_keys(self.keys, table.n_rows)
        reader = UnitReader()
        with _told(self.source):
            table = from_source(
                self.source, self.roles, n_features=column_count(self.X, schema), loss=loss, bins=bins,
                scratch=place, also=lambda batch: reader.add(batch.keys, len(batch)),
            )  # fmt: skip
        return table, reader.units()

    def tried(self, schema: Schema, place: Place, encodings: Collection[tuple[Loss, int]], *, at_once: int) -> None:
        """Read all rows once, before fits of them are paid for, so that what they would refuse is refused now.

        Args:
            schema: as declared.
            place: as `place` gave it; the room for `at_once` tables is tried.
            encodings: loss and bins of the fits.
            at_once: fits at a time.

        Raises:
            SchemaError, ScratchFull, FilesChanged, OSError: as in `encoded`.
        """
        if self.source is None or self.roles is None or not isinstance(place, Scratch):
            for loss, bins in encodings:
                self.encoded(schema, place, loss=loss, bins=bins)
            return
        n_rows, classes = 0, len(schema.target.categories) if isinstance(schema.target, Categorical) else 0
        with _told(self.source):
            for loss, bins in encodings:
                for head in self.source.heads(self.roles):
                    encoded_batch(head, schema, loss=loss, bins=bins)
            loss, bins = next(iter(encodings))
            for batch in self.source.batches(self.roles):
                n_rows += encoded_batch(batch, schema, loss=loss, bins=bins).n_rows
        place.try_room(at_once * n_rows * largest_row_bytes(column_count(self.X, schema), classes))

    def folds(self, folds: int, random: RandomSource, place: Place) -> AbstractFolds:
        """The rows in folds, by secret coins; arguments and errors as in `Folds` and `FileFolds`."""
        assert not isinstance(place, ClusterSession)  # validations refuse collections
        if self.source is None or self.roles is None or not isinstance(place, Scratch):
            return Folds(self.X, self.y, folds=folds, source=random)
        return FileFolds(self.source, self.roles, place, folds=folds, random=random)

    @property
    def again(self) -> tuple[Any, Any]:
        """X and y for another fit of all rows; of files as they were when these were looked at first."""
        return (self.X, self.y) if self.source is None or self.roles is None else (self.source, self.roles.label)

    def undeclared(
        self,
        columns: TypedColumns,
        queries: Sequence[ColumnQuery],
        place: Place,
        *,
        most_classes: int,
    ) -> UndeclaredTable | CountedColumns | FederatedColumns:
        """All rows, before their schema is estimated.

        Args:
            columns: the names and types.
            queries: all that the estimation will ask.
            place: as `place` gave it.
            most_classes: that the target may have.

        Raises:
            SchemaError: types or shapes that do not fit; of files also such as have no types.
            ScratchFull, FilesChanged, OSError: as in `encoded`.
        """
        if isinstance(place, AbstractOwners):
            return FederatedColumns(place, columns)
        if isinstance(place, ClusterSession):
            assert self.collections is not None  # `place`
            return self.collections.counted(place, columns, queries)
        if self.source is None or self.roles is None or not isinstance(place, Scratch):
            return UndeclaredTable.from_data(self.X, self.y, columns)
        with _told(self.source):
            return UndeclaredFiles.counted(self.source, self.roles, columns, queries, place, most_classes=most_classes)

    def scratch_need(self, schema: Schema, *, bins: int, expected_rows: int | None) -> int | None:
        """About how many bytes the encoded rows take, by `expected_rows` or else by the files' sizes.

        And those of one more part, which has all of its blocks before its first row is known. The number of rows has
        no part in it. None where neither is known.
        """
        size = None if self.source is None else self.source.size
        if self.source is not None and self.source.sparse:
            # Four bytes of text at least, with the space before them, for a value that takes five or six.
            return None if size is None else 2 * size
        n_features = column_count(self.X, schema)
        row, part = row_bytes(schema, n_features=n_features, bins=bins, weighted=schema.weighted)
        if expected_rows is None:
            if size is None:
                return None
            # A cell and its separator are two bytes at least in a text; a packed file may hold more rows.
            expected_rows = -(-size // (2 * (n_features + 1)))
        return (expected_rows + part) * row


@contextmanager
def _told(source: RowSource) -> Iterator[None]:
    """Says what a change of the files has cost. Encoding comes before paying."""
    try:
        yield
    except FilesChanged as error:
        raise FilesChanged(f"{error}. {source.cost}") from None


def given_rows(
    X: Any,
    y: Any,
    sample_weight: Any,
    schema: Schema | None,
    scratch: Any = None,
    keys: Any = None,
    client: Any = None,
    *,
    numeric_target: bool | None = None,
    named: tuple[str, ...] | None = None,
) -> GivenRows:
    """The rows that a fit was given; no value is looked at.

    Args:
        X: array-like or data frame, what `source_of` knows, or a Dask collection.
        y: array-like; for rows in files the name of the label's column; on a cluster a Dask collection.
        sample_weight: array-like or None; for rows in files the name of a column or None; on a cluster a Dask
            collection or None.
        schema: as declared.
        scratch: for rows in files, where encoded rows lie while the fit runs.
        keys: array-like or None, each row's privacy unit; for rows in files the name of a column or None.
        client: of the cluster; None for the current one.
        numeric_target: whether labels are numbers, for a federation whose schema may be estimated; None: it may not.
        named: the features of rows in files whose schema is estimated; None: all columns without another role.

    Raises:
        SchemaError: rows in files without a label's name or the columns; rows in CSV files without a schema;
            collections with other partitions, or with keys.
        InvalidParameter: a scratch folder for rows that are not in files, a client for rows that are not on a cluster,
            or no client.
        ReplayFailed: rows on a cluster, in a fit that is recorded.
    """
    if isinstance(X, AbstractOwners):
        return _at_owners(X, y, sample_weight, schema, scratch, keys, client, numeric_target)
    if is_collection(X):
        return _on_cluster(X, y, sample_weight, scratch, keys, client)
    if client is not None:
        raise _validate.fail("client", client, "None for rows that are no Dask collections", "client")
    source = source_of(X)
    if source is None:
        require_labels_given(X, y)
        if scratch is not None:
            raise _validate.fail("scratch", scratch, "None for rows in memory: it is for rows in files", "folder")
        return GivenRows(X=X, y=y, sample_weight=sample_weight, keys=keys)
    label = require_label(y)
    require_named(sample_weight, "weight", "sample_weight='weight'")
    require_named(keys, "key", "keys='unit'")
    roles, head = settled(source, Roles(schema=schema, label=label, weight=sample_weight, key=keys, named=named))
    return GivenRows(
        X=head.X, y=head.y, sample_weight=head.weights, keys=head.keys, source=source, roles=roles, scratch=scratch
    )


def _at_owners(
    X: AbstractOwners,
    y: Any,
    sample_weight: Any,
    schema: Schema | None,
    scratch: Any,
    keys: Any,
    client: Any,
    numeric_target: bool | None,
) -> GivenRows:
    if any(each is not None for each in (y, sample_weight, scratch, keys, client)):
        raise SchemaError("labels and weights of a federation are the owners': federate(estimator, clients=...)")
    if schema is None:
        if numeric_target is None:
            raise SchemaError(
                "a federation needs a declared schema here, which all owners agree on: schema=Schema(...)"
            )
        if X.noise != "server":
            raise SchemaError(
                f"schema=None: a schema is estimated from sums to which the server adds the noise, and "
                f"noise={X.noise!r} keeps them from it. Declare a schema, schema=Schema(...). Nothing was spent"
            )
        if X.unit is not PrivacyUnit.ROW:
            raise SchemaError(
                f"schema=None: a schema is estimated at the cost of a row, and unit is a {X.unit.value}, whose rows "
                "may have any number of categories. Declare a schema, schema=Schema(...). Nothing was spent"
            )
    if is_recorded():
        raise ReplayFailed("rows are at their owners', whom no recording sees: give rows in memory")
    head, labels = X.head(schema, numeric_target=bool(numeric_target))
    return GivenRows(X=head, y=labels, sample_weight=None, owners=X)


def _on_cluster(X: Any, y: Any, sample_weight: Any, scratch: Any, keys: Any, client: Any) -> GivenRows:
    if scratch is not None:
        raise _validate.fail("scratch", scratch, "None for rows on a cluster: it is for rows in files", "folder")
    if keys is not None:
        raise SchemaError(
            "keys of privacy units would have to leave the workers: learn from rows in memory or in files, whose keys "
            "are in the process that keeps the vault"
        )
    if is_recorded():
        raise ReplayFailed("rows are on a cluster, whose workers no recording sees: give rows in memory")
    collections = collections_of(X, y, sample_weight)
    head, labels, weights = collections.heads
    return GivenRows(X=head, y=labels, sample_weight=weights, collections=collections, client=client_of(client))


def batches_of(X: Any, schema: Schema, names: tuple[str, ...] | None) -> Iterator[Any] | None:
    """Tables of the features of rows in files, one after another, the first one without rows; None of rows in memory.

    Args:
        X: as in `given_rows`.
        schema: that a model was fitted by; its target's column is left alone.
        names: that the features had in the fit, in their order; None where they had none.

    Raises:
        SchemaError: columns that are not there.
    """
    found = _to_predict(X, schema, names, None)
    return None if found is None else (batch.X for batch in found)


def keyed_batches_of(X: Any, schema: Schema, names: tuple[str, ...] | None, key: str) -> Iterator[tuple[Any, Any]]:
    """Tables of the features of rows in files as `batches_of` gives them, each with the values of another column.

    Args:
        X, schema, names: as in `batches_of`.
        key: name of a column that tells rows apart, and is no feature.

    Raises:
        SchemaError: columns that are not there, or rows in memory.
    """
    found = _to_predict(X, schema, names, key)
    if found is None:
        raise SchemaError(f"X is {_validate.kind_of(X)} in memory: predict it as it is, beside its own columns")
    return ((batch.X, batch.keys) for batch in found)


def _to_predict(X: Any, schema: Schema, names: tuple[str, ...] | None, key: str | None) -> Iterator[Batch] | None:
    source = source_of(X)
    if source is None:
        return None
    target = () if schema.target is None else (schema.target.name,)
    roles, head = settled(source, Roles(schema=schema, label=None, weight=None, key=key, named=names, ignored=target))

    def batches() -> Iterator[Batch]:
        yield head
        yield from source.batches(roles)

    return batches()
