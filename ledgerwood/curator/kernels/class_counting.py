"""The exact numbers of rows by class, from a table's arrays. Only a table calls it."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.kernels import classes as class_kernels
from ledgerwood.ensemble import TreeStructure

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassedRows:
    """Rows of a sample by their class: what the counting loops take.

    Args:
        cells: uint8 or uint16 (n_features, n_rows).
        classes: int32 (n_rows,), -1 for none.
        n_classes: of the target.
        sampled: bool (n_rows,), or empty for all rows.
    """

    cells: NDArray[Any]
    classes: NDArray[np.int32]
    n_classes: int
    sampled: NDArray[np.bool_]

    def by_leaf(self, structure: TreeStructure) -> Integers:
        """int64 (n_leaves * n_classes, 1)."""
        codes = self._codes(structure)
        counts = np.bincount(codes, minlength=structure.n_leaves * self.n_classes + 1)
        return counts.astype(np.int64, copy=False)[:-1, np.newaxis]

    def by_cell(self, structure: TreeStructure, columns: NDArray[Any], places: Integers, offsets: Integers) -> Integers:
        """int64 (n_leaves, n_cells, n_classes), by the cells of some of the columns (n_columns, n_rows)."""
        codes = self._codes(structure)
        counts = np.empty((structure.n_leaves * self.n_classes, int(offsets[-1])), dtype=np.int64)
        class_kernels.cell_code_counts(len(codes), columns, places, offsets, codes, counts)
        return counts.reshape(structure.n_leaves, self.n_classes, -1).swapaxes(1, 2)

    def _codes(self, structure: TreeStructure) -> NDArray[np.int32]:
        codes = np.empty(len(self.classes), dtype=np.int32)
        class_kernels.class_codes(
            len(codes), self.cells, *structure.lowered(), self.classes, self.sampled, self.n_classes, codes
        )
        return codes
