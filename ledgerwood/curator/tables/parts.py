"""Parts of a table's rows: some consecutive rows of the source, with their own state, in memory or mapped from a file.

Which rows are in which part changes no release: docs/explanation/places.md#sums-over-parts.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import (
    Cells,
    Flags,
    encode_classes,
    encode_numeric_target,
    encode_rows,
    signs,
)
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.typed_columns import require_categories
from ledgerwood.curator.inputs.values import ALL_WHOLE, Weights, encode_weights
from ledgerwood.curator.views.tree_rows import NO_FILTER, Mask, Room, RowBudgets, RowState, TreeRows, TreeShape
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Numeric, Schema

EVERYBODY: Mask = np.empty(0, dtype=np.bool_)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EncodedRows:
    """Rows as a table keeps them.

    Args:
        cells: uint8 or uint16 (n_features, n_rows).
        targets: float64 (n_rows,) in [-1, 1], NaN for none; None where the target has classes.
        classes: int32 (n_rows,), the place of each row's class among the sorted ones, -1 for none; None for numbers.
        weights: see `encode_weights`.
        left_out: which rows take no part, bool (n_rows,): see `encode_rows`.
    """

    cells: Cells
    targets: NDArray[np.float64] | None
    classes: NDArray[np.int32] | None
    weights: Weights
    left_out: Flags

    @classmethod
    def of(cls, X: Any, y: Any, schema: Schema, *, loss: Loss, bins: int, sample_weight: Any) -> Self:
        """Encode rows by the schema; arguments and errors as in `Table.from_data`."""
        cells, left_out = encode_rows(X, schema, bins=bins)
        require_categories(X, schema)
        targets, classes = None, None
        match loss, schema.target:
            case "squared", Numeric() as target:
                targets = encode_numeric_target(y, target)
            case "squared" | "logistic", Categorical() as target:
                classes = encode_classes(y, target)
            case _:
                wanted = "a" if loss == "squared" else "a Categorical"
                raise SchemaError(f"the {loss} loss needs {wanted} target in the schema; got target={schema.target!r}")
        labels = sum(len(given) for given in (targets, classes) if given is not None)
        same_length(cells.shape[1], labels, "y")
        weights = encode_weights(sample_weight, schema, n_rows=labels)
        return cls(cells=cells, targets=targets, classes=classes, weights=weights, left_out=left_out)

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
        keeps: whether evaluators may keep what they made of the rows until the next query; a part on disk keeps nothing
            in memory.
    """

    __slots__ = ("_keeps", "offset", "present", "rows")

    def __init__(
        self,
        *,
        shape: TreeShape,
        cells: NDArray[Any],
        targets: NDArray[np.float64] | None,
        classes: NDArray[np.int32] | None,
        weights: Weights = ALL_WHOLE,
        present: Mask = EVERYBODY,
        offset: int = 0,
        room: Room = np.zeros,
        keeps: bool = True,
    ) -> None:
        if targets is None:
            assert classes is not None  # one of the two is given
            targets = room(len(classes))
            # Of several classes none is the positive one: a query has to name it.
            targets[:] = signs(classes, 1) if shape.n_classes == 2 else np.nan
        self.offset = offset
        self._keeps = keeps
        self.present = present
        self.rows = TreeRows(
            shape=shape, cells=cells, classes=classes, weights=weights, state=RowState(targets, room), sampled=EVERYBODY
        )

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
        return dataclasses.replace(self.rows, sampled=self._taking_part(sampled), budgets=budgets)

    def rest(self) -> None:
        """After a query: drop what was kept for the next one, where the part keeps nothing."""
        if not self._keeps:
            self.rows.state.memories.clear()

    def _taking_part(self, sampled: Mask) -> Mask:
        """The sample without the rows that take no part."""
        if not self.present.size:
            return sampled
        return self.present & sampled if sampled.size else self.present
