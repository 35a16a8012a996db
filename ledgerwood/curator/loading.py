"""Rows as they are given to a fit: in memory, or as the name of files that are read in a stream.

What is public of them, names and types, is looked at in tables without rows where they lie in files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from ledgerwood import _validate
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import column_count
from ledgerwood.curator.inputs.sources import Roles, RowSource, require_label, source_of
from ledgerwood.curator.tables.chunks import from_source, row_bytes
from ledgerwood.curator.tables.scratch import Scratch, scratch_folder
from ledgerwood.curator.tables.trees import Table
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GivenRows:
    """The rows of a fit. Made by `given_rows`.

    Args:
        X, y, sample_weight: tables and columns; of rows in files, without a row.
        source: of rows in files; None for rows in memory.
        roles: of the files' columns.
        scratch: the folder that was named for encoded rows.
    """

    X: Any
    y: Any
    sample_weight: Any
    source: RowSource | None = None
    roles: Roles | None = None
    scratch: str | os.PathLike[str] | None = None

    @property
    def in_files(self) -> bool:
        """True for rows that are read in a stream."""
        return self.source is not None

    @contextmanager
    def place(self) -> Iterator[Scratch | None]:
        """The scratch folder, until the block ends; None for rows in memory, which need none."""
        if self.source is None:
            yield None
            return
        with scratch_folder(self.scratch) as scratch:
            yield scratch

    def encoded(self, schema: Schema, scratch: Scratch | None, *, loss: Loss, bins: int) -> Table:
        """The table of all rows; arguments and errors as in `Table.from_data`.

        Raises:
            ScratchFull: the disk is full.
            OSError: a file cannot be read.
        """
        if self.source is None or self.roles is None or scratch is None:
            return Table.from_data(self.X, self.y, schema, loss=loss, bins=bins, sample_weight=self.sample_weight)
        return from_source(
            self.source, self.roles, n_features=column_count(self.X, schema), loss=loss, bins=bins, scratch=scratch
        )

    def scratch_need(self, schema: Schema, *, bins: int, expected_rows: int | None) -> int | None:
        """About how many bytes the encoded rows take, by `expected_rows` or else by the files' sizes.

        The number of rows has no part in it. None where neither is known.
        """
        n_features = column_count(self.X, schema)
        row = row_bytes(schema, n_features=n_features, bins=bins, weighted=schema.weight_bound is not None)
        if expected_rows is not None:
            return expected_rows * row
        size = None if self.source is None else self.source.size
        # A cell and its separator are two bytes at least in a text; a packed file may hold more rows.
        return None if size is None else -(-size // (2 * (n_features + 1))) * row


def given_rows(X: Any, y: Any, sample_weight: Any, schema: Schema | None, scratch: Any = None) -> GivenRows:
    """The rows that a fit was given; no value is looked at.

    Args:
        X: array-like or data frame, or what `source_of` knows.
        y: array-like; for rows in files the name of the label's column.
        sample_weight: array-like or None; for rows in files the name of a column or None.
        schema: as declared.
        scratch: for rows in files, where encoded rows lie while the fit runs.

    Raises:
        SchemaError: rows in files without a schema, without a label's name, or without the columns.
        InvalidParameter: a scratch folder for rows in memory.
    """
    source = source_of(X)
    if source is None:
        if scratch is not None:
            raise _validate.fail("scratch", scratch, "None for rows in memory: it is for rows in files", "folder")
        return GivenRows(X=X, y=y, sample_weight=sample_weight)
    label = require_label(y)
    if schema is None:
        raise SchemaError(
            "schema=None: rows in files need a declared schema; declare it, or take that of a model that estimated it "
            "from rows in memory, model.schema_"
        )
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise SchemaError(
            f"rows in files have their weights beside them, and sample_weight is a {type(sample_weight).__name__}: "
            "name the weights' column: fit(rows, 'label', sample_weight='weight')"
        )
    roles = Roles(schema=schema, label=label, weight=sample_weight)
    head = next(source.heads(roles))
    return GivenRows(X=head.X, y=head.y, sample_weight=head.weights, source=source, roles=roles, scratch=scratch)


def batches_of(X: Any, schema: Schema, names: tuple[str, ...] | None) -> Iterator[Any] | None:
    """Tables of the features of rows in files, one after another, the first one without rows; None of rows in memory.

    Args:
        X: as in `given_rows`.
        schema: that a model was fitted by; its target's column is left alone.
        names: of the features of a schema with one range for all columns; None where they had none.

    Raises:
        SchemaError: columns that are not there.
    """
    source = source_of(X)
    if source is None:
        return None
    target = () if schema.target is None else (schema.target.name,)
    roles = Roles(schema=schema, label=None, weight=None, named=names, ignored=target)

    def batches() -> Iterator[Any]:
        yield next(source.heads(roles)).X
        for batch in source.batches(roles):
            yield batch.X

    return batches()
