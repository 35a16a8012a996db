"""Parts of a table's rows: some consecutive rows of the source, with their own state, in memory or mapped from a file.

Which rows are in which part changes no release: docs/explanation/places.md#sums-over-parts.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import (
    Flags,
    cell_dtype,
    class_places,
    declared_cells,
    encode_classes,
    encode_numeric_target,
    encode_rows,
    key_cells,
    numeric_cells,
    scaled_labels,
    signs,
    weight_shares,
)
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.typed_columns import require_categories
from ledgerwood.curator.inputs.values import ALL_WHOLE, Keys, Weights, encode_weights
from ledgerwood.curator.views.tree_rows import NO_FILTER, Mask, Room, RowBudgets, RowState, TreeRows, TreeShape
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Date, Numeric, Schema
from ledgerwood.sparse_cells import AnyCells, SparseCells

EVERYBODY: Mask = np.empty(0, dtype=np.bool_)


class Keeping(Protocol):
    """Room on a disk for what need not be kept."""

    @property
    def full(self) -> bool:
        """Whether the disk had no room any more: what is made then lies in memory."""

    def room(self, n: int) -> NDArray[np.float64]:
        """float64 (n,), zeros."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EncodedRows:
    """Rows as a table keeps them.

    Args:
        cells: uint8 or uint16 (n_features, n_rows); in an array, or sparse.
        targets: float64 (n_rows,) in [-1, 1], NaN for none; None where the target has classes.
        classes: int32 (n_rows,), the place of each row's class among the sorted ones, -1 for none; None for numbers.
        weights: see `encode_weights`.
        left_out: which rows take no part, bool (n_rows,): see `encode_rows`.
    """

    cells: AnyCells
    targets: NDArray[np.float64] | None
    classes: NDArray[np.int32] | None
    weights: Weights
    left_out: Flags

    @classmethod
    def of(cls, X: Any, y: Any, schema: Schema, *, loss: Loss, bins: int, sample_weight: Any) -> Self:
        """Encode rows by the schema; arguments and errors as in `Table.from_data`."""
        cells, left_out = encode_rows(X, schema, bins=bins)
        require_categories(X, schema)
        targets, classes, shares = None, None, None
        match loss, schema.target:
            case "squared", Numeric() as target:
                targets = encode_numeric_target(y, target)
            case "squared" | "logistic", Categorical() as target:
                classes = encode_classes(y, target)
                shares = weight_shares(classes, target)
            case _:
                wanted = "a" if loss == "squared" else "a Categorical"
                raise SchemaError(f"the {loss} loss needs {wanted} target in the schema; got target={schema.target!r}")
        labels = sum(len(given) for given in (targets, classes) if given is not None)
        same_length(cells.shape[1], labels, "y")
        weights = encode_weights(sample_weight, schema, n_rows=labels, shares=shares)
        return cls(cells=cells, targets=targets, classes=classes, weights=weights, left_out=left_out)

    @classmethod
    def of_columns(
        cls,
        columns: Sequence[NDArray[np.float64] | Keys],
        labels: NDArray[np.float64] | Keys,
        schema: Schema,
        *,
        loss: Loss,
        bins: int,
    ) -> Self:
        """Encode typed columns by the schema that was estimated for them. Nothing is refused because of a row.

        A value or label outside its range is clamped, a category that is not listed goes to "other", a missing value to
        its own cell; a row whose label is missing, or of another class, is of no class and contributes 0. So does a row
        with a missing value where a draft declares that there is none.
        """
        n_rows = len(labels.codes if isinstance(labels, Keys) else labels)
        cells: NDArray[Any] = np.empty((len(columns), n_rows), dtype=cell_dtype(schema.features, bins))
        left_out = np.zeros(n_rows, dtype=np.bool_)
        for row, feature, column in zip(cells, schema.features, columns, strict=True):
            match feature, column:
                case Numeric() | Date(), np.ndarray():
                    row[:] = numeric_cells(column, feature, bins)
                    missing = np.isnan(column)
                case Categorical(), Keys():
                    row[:], missing = declared_cells(column, feature)
                case _:
                    raise SchemaError(f"{feature!r} is not of the type of its column")
            if not feature.missing:  # as a draft may declare it
                left_out |= missing
        targets, classes = None, None
        match loss, schema.target, labels:
            case "squared", Numeric() as target, np.ndarray() as found:
                targets = scaled_labels(found, target)
            case "squared" | "logistic", Categorical() as target, Keys() as found:
                classes = class_places(target)[key_cells(found, target)]
            case _:
                raise SchemaError(f"the {loss} loss cannot learn the target {schema.target!r} of these rows")
        return cls(cells=cells, targets=targets, classes=classes, weights=ALL_WHOLE, left_out=left_out)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.left_out)


@final
class RowPart:
    """Some consecutive rows of a table.

    Args:
        shape: what is public of the table.
        cells, classes, weights: as in `EncodedRows`.
        targets: float64 (n_rows,); None: of two classes, +1 for the second one.
        present: which rows take part, bool (n_rows,); empty where all do. The others have no target and no class.
        offset: the first row's place in the public order of the source.
        room: for the state of the rows.
        keeping: where evaluators keep what they made of the rows until the next query; None: in memory.
    """

    __slots__ = ("_keeping", "offset", "present", "rows")

    def __init__(
        self,
        *,
        shape: TreeShape,
        cells: AnyCells,
        targets: NDArray[np.float64] | None,
        classes: NDArray[np.int32] | None,
        weights: Weights = ALL_WHOLE,
        present: Mask = EVERYBODY,
        offset: int = 0,
        room: Room = np.zeros,
        keeping: Keeping | None = None,
    ) -> None:
        if targets is None:
            assert classes is not None  # one of the two is given
            targets = room(len(classes))
            # Of several classes none is the positive one: a query has to name it.
            targets[:] = signs(classes, 1) if shape.n_classes == 2 else np.nan
        self.offset = offset
        self._keeping = keeping
        self.present = present
        state = RowState(targets, room, np.zeros if keeping is None else keeping.room)
        self.rows = TreeRows(shape=shape, cells=cells, classes=classes, weights=weights, state=state, sampled=EVERYBODY)

    @property
    def n_rows(self) -> int:
        """The number of rows of the part."""
        return self.rows.n_rows

    def leave_out(self, rows: Flags) -> None:
        """Let these rows contribute 0 to whatever is asked; before anything is. bool (n_rows,) of the part's rows."""
        if not rows.any():
            return
        self.present = self._taking_part(~rows)
        # A filter charges a row that was not drawn: without a label it is charged nothing.
        scores = self.rows.state.scored[None]
        if self._keeping is not None:  # in place: what is not mapped from a file would lie in memory
            scores.targets[rows] = np.nan
            if self.rows.classes is not None:
                self.rows.classes[rows] = -1
            return
        scores.targets = np.where(self.present, scores.targets, np.nan)
        if self.rows.classes is not None:
            self.rows = dataclasses.replace(self.rows, classes=np.where(self.present, self.rows.classes, np.int32(-1)))

    def view(self, sampled: Mask, budgets: RowBudgets) -> TreeRows:
        """The rows as an evaluator sees them, of a sample and budgets of the whole table."""
        own = slice(self.offset, self.offset + self.n_rows)
        if sampled.size:
            sampled = sampled[own]
        if budgets is not NO_FILTER:
            budgets = RowBudgets(budgets.left[own], budgets.costs, budgets.weights)
        return self.seen(sampled, budgets)

    def seen(self, sampled: Mask, budgets: RowBudgets) -> TreeRows:
        """The rows as an evaluator sees them, of a sample and budgets of this part."""
        return dataclasses.replace(self.rows, sampled=self._taking_part(sampled), budgets=budgets)

    def rest(self) -> None:
        """After a query: drop what was kept for the next one, where there is no room for it but in memory."""
        # What is kept of sparse rows is as long as what they store, and lies in memory.
        if self._keeping is not None and (self._keeping.full or isinstance(self.rows.cells, SparseCells)):
            self.rows.state.memories.clear()
            self.rows.state.buffers.clear()

    def _taking_part(self, sampled: Mask) -> Mask:
        """The sample without the rows that take no part."""
        if not self.present.size:
            return sampled
        return self.present & sampled if sampled.size else self.present
