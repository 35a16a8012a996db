"""Rows on disk: a table whose parts are mapped from files of a scratch folder, encoded from a source in a stream.

No more than one batch of the source is in memory at once, and none of it is kept there. docs/explanation/places.md.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.batches import Batch, Roles, RowSource
from ledgerwood.curator.inputs.encoding import cell_dtype, signs
from ledgerwood.curator.tables.parts import EVERYBODY, EncodedRows, RowPart
from ledgerwood.curator.tables.scratch import Arena, Scratch
from ledgerwood.curator.tables.trees import Table, table_shape
from ledgerwood.curator.views.tree_rows import TreeShape
from ledgerwood.errors import SchemaError
from ledgerwood.mechanisms.exact.coins import MOST_ROWS
from ledgerwood.schema import Categorical, Schema
from ledgerwood.sparse_cells import SparseCells, row_dtype

PART_ROWS = 1 << 20
PART_CELLS = 1 << 28
"""Most rows, and most bytes of cells, of a part: what evaluators need in memory is in proportion to a part."""
PART_STORED = 1 << 25
"""Most sparse cells that are held in memory at once, about."""
_LEAST_ROWS = 1 << 14


def part_rows(width: int) -> int:
    """The rows of each part but the last one, for so many bytes of cells a row."""
    return max(min(PART_ROWS, _LEAST_ROWS), min(PART_ROWS, PART_CELLS // max(1, width)))


def row_bytes(schema: Schema, *, n_features: int, bins: int, weighted: bool) -> tuple[int, int]:
    """The bytes that an encoded row and its state take in the scratch folder, and the rows of a part."""
    numbers, classes = _state(schema)
    cells = n_features * np.dtype(cell_dtype(schema.resolved(n_features).features, bins)).itemsize
    return cells + 8 * numbers + 4 * (classes > 0) + 4 * weighted + 1, part_rows(cells)


def largest_row_bytes(n_features: int, classes: int) -> int:
    """Bounds the bytes that an encoded row and its state take, under any schema of this number of columns."""
    return 2 * n_features + 8 * _numbers(classes) + 4 + 1


def from_source(
    source: RowSource,
    roles: Roles,
    *,
    n_features: int,
    loss: Loss,
    bins: int,
    scratch: Scratch,
    also: Callable[[Batch], None] = lambda _: None,
) -> Table:
    """Encode all rows of a source. What is refused is refused by names and types; nothing was spent.

    Args:
        source: of the rows.
        roles: which columns are what.
        n_features: columns of the table.
        loss, bins: as in `Table.from_data`.
        scratch: where the encoded rows lie.
        also: is shown each batch, those without rows first.

    Raises:
        SchemaError: names or types that are not the schema's, or 2**35 rows.
        ScratchFull: the disk is full.
        OSError: the source cannot be read.
    """
    declared = roles.declared
    schema = declared.resolved(n_features)
    for head in source.heads(roles):  # of every file, before a row of the first one is read
        encoded_batch(head, declared, loss=loss, bins=bins)
        also(head)
    weighted = roles.weight is not None or schema.weighted

    def encoded() -> Iterator[EncodedRows]:
        for batch in source.batches(roles):
            also(batch)
            yield encoded_batch(batch, declared, loss=loss, bins=bins)

    dtype = cell_dtype(schema.features, bins)
    return written(encoded(), schema, weighted=weighted, bins=bins, dtype=dtype, scratch=scratch)


def encoded_batch(batch: Batch, schema: Schema, *, loss: Loss, bins: int) -> EncodedRows:
    """The rows of a batch as a table keeps them."""
    return EncodedRows.of(batch.X, batch.y, schema, loss=loss, bins=bins, sample_weight=batch.weights)


def written(
    batches: Iterable[EncodedRows], schema: Schema, *, weighted: bool, bins: int | None, dtype: type, scratch: Scratch
) -> Table:
    """A table on disk of encoded rows, which are taken over one batch after another.

    Args:
        batches: in the public order of the rows.
        schema: resolved.
        weighted: whether the rows have weights.
        bins: as in `Table.from_data`; None for cells that are no even steps.
        dtype: of the cells.
        scratch: where the encoded rows lie.

    Raises:
        ScratchFull: the disk is full.
        SchemaError: 2**35 rows.
    """
    shape = table_shape(
        schema,
        n_features=len(schema.features),
        classes=isinstance(schema.target, Categorical),
        weighted=weighted,
        bins=bins,
    )
    writer = _Writer(shape, dtype, scratch)
    for batch in batches:
        writer.add(batch)
    return Table.of_parts(shape, writer.parts())


def _state(schema: Schema) -> tuple[int, int]:
    """How many float64 numbers a row's state has, its leaf in a half of one; and how many classes there are."""
    classes = len(schema.target.categories) if isinstance(schema.target, Categorical) else 0
    return _numbers(classes), classes


def _numbers(classes: int) -> int:
    # Target and score, of each class that is told from all others where there are several; and the leaf.
    forests = classes + 1 if classes > 2 else 1
    return 2 * forests + 1


@final
class _Sections:
    """The arrays of one part: cells, classes, weights, which rows take part, and room for their state.

    Args:
        shape: of the table.
        dtype: of a cell.
        rows: their number.
        scratch: where they lie.
        stored: sparse cells for which there is room, all at once; None: room for every cell.
    """

    __slots__ = ("_numbers", "cells", "classes", "places", "present", "sparse", "targets", "weights")

    def __init__(
        self, shape: TreeShape, dtype: type, rows: int, scratch: Scratch, *, stored: int | None = None
    ) -> None:
        numbers, classes = _state(shape.schema)
        self.sparse: SparseCells | None = None
        self.cells, self.places, self.classes, self.weights, self.present, *self._numbers = scratch.arrays(
            ((shape.n_features, rows) if stored is None else (stored,), dtype),
            ((stored or 0,), row_dtype(rows)),
            ((rows if classes else 0,), np.int32),
            ((rows if shape.weighted else 0,), np.int32),
            ((rows,), np.bool_),
            *[((rows,), np.float64)] * numbers,
        )
        self.targets: NDArray[np.float64] = self._numbers.pop()

    def room(self, n: int) -> NDArray[np.float64]:
        """See `Room`; for what no plan of this library asks, in memory."""
        if self._numbers and len(self._numbers[-1]) >= n:
            return self._numbers.pop()[:n]
        return np.zeros(n)

    def part(self, shape: TreeShape, offset: int, keeping: Arena) -> RowPart:
        """The part of all rows that the arrays have room for."""
        classes = self.classes if shape.n_classes else None
        return RowPart(
            shape=shape,
            cells=self.cells if self.sparse is None else self.sparse,
            targets=self.targets,
            classes=classes,
            weights=self.weights,
            present=EVERYBODY if self.present.all() else self.present,
            offset=offset,
            room=self.room,
            keeping=keeping,
        )


@final
class _Writer:
    """Fills parts with the rows of one batch after another.

    Sparse ones are held until there are enough of them for a part: how much room they need is not known before.
    """

    __slots__ = ("_arena", "_done", "_dtype", "_filled", "_held", "_offset", "_open", "_rows", "_scratch", "_shape")

    def __init__(self, shape: TreeShape, dtype: type, scratch: Scratch) -> None:
        self._shape, self._dtype, self._scratch = shape, dtype, scratch
        self._arena = Arena(scratch)
        self._rows = part_rows(shape.n_features * np.dtype(dtype).itemsize)
        self._done: list[RowPart] = []
        self._open: _Sections | None = None
        self._held: list[EncodedRows] = []
        self._filled, self._offset = 0, 0

    def add(self, rows: EncodedRows) -> None:
        """Take a batch over.

        Raises:
            ScratchFull: the disk is full.
            SchemaError: 2**35 rows.
        """
        if isinstance(rows.cells, SparseCells):
            self._hold(rows)
            return
        begin = 0
        while begin < rows.n_rows:
            if self._open is None:
                self._open = self._sections(self._rows)
            end = min(rows.n_rows, begin + self._rows - self._filled)
            _copy(self._shape, rows, slice(begin, end), self._open, slice(self._filled, self._filled + end - begin))
            self._filled += end - begin
            begin = end
            if self._filled == self._rows:
                self._close(self._open)

    def parts(self) -> list[RowPart]:
        """All parts, the last one as long as its rows; of no rows one part."""
        if self._held:
            self._let_go()
        if self._open is not None:
            whole, last = self._open, self._sections(self._filled)
            for found, kept in ((whole.cells, last.cells), *_columns(self._shape, whole, last)):
                kept[...] = found[..., : self._filled]
            self._close(last)
        elif not self._done:
            self._close(self._sections(0))
        return self._done

    def _hold(self, rows: EncodedRows) -> None:
        self._held.append(rows)
        stored = sum(len(_sparse(each).rows) for each in self._held)
        if sum(each.n_rows for each in self._held) >= PART_ROWS or stored >= PART_STORED:
            self._let_go()

    def _let_go(self) -> None:
        """A part of all that is held."""
        held, self._held = self._held, []
        self._filled = sum(each.n_rows for each in held)
        stored = sum(len(_sparse(each).rows) for each in held)
        sections = _Sections(self._shape, self._dtype, self._filled, self._scratch, stored=stored)
        first, *more = (_sparse(each) for each in held)
        sections.sparse = first.stack_into(more, sections.places, sections.cells)
        begin = 0
        for each in held:
            _copy(self._shape, each, slice(None), sections, slice(begin, begin + each.n_rows))
            begin += each.n_rows
        self._close(sections)

    def _sections(self, rows: int) -> _Sections:
        return _Sections(self._shape, self._dtype, rows, self._scratch)

    def _close(self, sections: _Sections) -> None:
        self._done.append(sections.part(self._shape, self._offset, self._arena))
        self._offset += self._filled
        self._open, self._filled = None, 0
        if self._offset >= MOST_ROWS:
            raise SchemaError("a table has fewer than 2**35 rows: docs/explanation/queries.md#leaf-ratios")


def _sparse(rows: EncodedRows) -> SparseCells:
    assert isinstance(rows.cells, SparseCells)  # as `_Writer.add` has seen
    return rows.cells


def _columns(shape: TreeShape, one: _Sections, other: _Sections) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The arrays of both with one number a row, beside the state that is not there yet."""
    yield one.targets, other.targets
    yield one.present, other.present
    if shape.n_classes:
        yield one.classes, other.classes
    if shape.weighted:
        yield one.weights, other.weights


def _copy(shape: TreeShape, rows: EncodedRows, of: slice, sections: _Sections, at: slice) -> None:
    absent = rows.left_out[of]
    if not isinstance(rows.cells, SparseCells):
        sections.cells[:, at] = rows.cells[:, of]
    sections.present[at] = ~absent
    if rows.classes is not None:
        # As `RowPart.leave_out`: such a row has no label.
        sections.classes[at] = classes = np.where(absent, np.int32(-1), rows.classes[of])
        sections.targets[at] = signs(classes, 1) if shape.n_classes == 2 else np.nan
    else:
        assert rows.targets is not None  # one of the two is given
        sections.targets[at] = np.where(absent, np.nan, rows.targets[of])
    if shape.weighted:
        sections.weights[at] = rows.weights[of]
