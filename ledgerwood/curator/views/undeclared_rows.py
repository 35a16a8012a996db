"""Rows without a schema as an evaluator sees them."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.values import Keys
from ledgerwood.errors import RoundViolation

NO_SAMPLE = np.empty(0, dtype=np.bool_)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndeclaredRows:
    """The rows of one query; a check looks at the number and the type of the columns only.

    Args:
        columns: (n_rows,) each, and the target after the last one.
        sampled: bool (n_rows,), or empty where every row takes part.
    """

    columns: tuple[NDArray[np.float64] | Keys, ...]
    sampled: NDArray[np.bool_]

    def column(self, number: int) -> NDArray[np.float64] | Keys:
        """The column of this number.

        Raises:
            RoundViolation: there is none.
        """
        if number >= len(self.columns):
            raise RoundViolation(f"column {number} is not one of the table's {len(self.columns) - 1} and its target")
        return self.columns[number]
