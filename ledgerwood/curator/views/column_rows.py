"""Tables of columns as an evaluator sees them: their public shape, and the columns of the rows that take part.

With a schema, and without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.values import Keys
from ledgerwood.errors import RoundViolation, SchemaError
from ledgerwood.schema import Categorical, Feature


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """The public shape of a table of columns.

    Args:
        features: the columns, by name.
        keys: the names of columns whose categories are not public.
    """

    features: Mapping[str, Feature]
    keys: frozenset[str]

    def require(self, column: Feature) -> None:
        """Refuse a column that the table does not have, or has as another kind.

        Raises:
            SchemaError: of such a column.
        """
        held = self.features.get(column.name)
        if held is None:
            raise SchemaError(f"the table has no column {column.name!r}; it has {sorted(self.features)}")
        if type(held) is not type(column):
            raise SchemaError(f"column {column.name!r} is {held!r} in the table, and {column!r} in the question")
        # Codes are places in the list of categories: they mean something in that list only.
        if isinstance(held, Categorical) and isinstance(column, Categorical) and held.categories != column.categories:
            raise SchemaError(
                f"column {column.name!r} has the categories {held.categories}, not {column.categories}, in the table"
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRows:
    """The rows of one query. An evaluator makes sums and counts of them; only `ColumnBounds` hands on values.

    Args:
        columns: by name, each (n_rows,): float64 with NaN for a missing value, or codes.
        keys: by name, each row's code, -1 for none, and the keys.
        n_rows: drawn or not.
        sampled: bool (n_rows,), or empty where every row takes part.
    """

    columns: Mapping[str, NDArray[Any]]
    keys: Mapping[str, tuple[NDArray[np.int64], tuple[str, ...]]]
    n_rows: int
    sampled: NDArray[np.bool_]

    def here(self, column: Feature) -> NDArray[np.bool_]:
        """A mask of the valid rows that have a value of a numeric column, (n_rows,)."""
        finite: NDArray[np.bool_] = np.isfinite(self.columns[column.name])
        return finite & self.sampled if self.sampled.size else finite

    def present(self, column: Feature) -> NDArray[np.float64]:
        """The values of a numeric column of the rows that take part and have one."""
        present: NDArray[np.float64] = self.columns[column.name][self.here(column)]
        return present


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
