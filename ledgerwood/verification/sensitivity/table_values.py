"""The exact values of this library's own queries, release-free: for the owner of the data, and for tests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import Categorical, ColumnTable, GiniSplits, LeafLabels, Schema, SplitGains, Table
from ledgerwood.curator.queries.registry import COLUMNS, TREES
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid, UtilityRange
from ledgerwood.verification.sensitivity.distances import Gap, Shifts, shift_gap
from ledgerwood.verification.sensitivity.domains import Data

Integers = NDArray[np.int64]
Choices = SplitGains | GiniSplits | LeafLabels
"""Selections whose utilities are arrays (nodes, candidates)."""
_ALL = np.empty(0, dtype=np.bool_)
"""A sample of all rows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableGauge:
    """A query over tables, against its shift set."""

    read: Callable[[Data], Integers]
    grid: Grid
    shifts: Shifts

    @classmethod
    def of(cls, query: Any, schema: Schema, adjacency: Adjacency, claimed: object, *, bins: int) -> "TableGauge":
        """Returns the gauge of a query of `ledgerwood.curator`, against its stated or the given claim.

        Raises:
            InvalidParameter: no query whose exact value a table with a schema has, or a claim that is no shift set.
        """
        if query not in TREES and query not in COLUMNS and not isinstance(query, Choices):
            raise InvalidParameter(
                f"{type(query).__name__} is no function, and no query whose exact value a table with a schema has "
                "(unit: statistic)"
            )
        shifts: Any = query.sensitivity(adjacency) if claimed is None else claimed
        if not isinstance(shifts, BoxShifts | BallShifts | UtilityRange):
            raise InvalidParameter(f"claimed={shifts!r} must be a shift set, of a query of a table (unit: statistic)")
        grid = query.counts.grid if isinstance(query, LeafLabels) else query.grid
        return cls(read=_reader(query, schema, bins), grid=grid, shifts=shifts)

    def value(self, data: Data) -> Integers:
        """The value in steps of the grid."""
        return self.read(data)

    def gap(self, first: Integers, second: Integers, rows: int) -> Gap:
        """Against the shift set, exact."""
        return shift_gap(first, second, grid=self.grid, shifts=self.shifts)

    def shown(self, value: Integers) -> NDArray[np.float64]:
        """The value in the columns' units."""
        return np.asarray(value * np.array(self.grid.steps), dtype=np.float64)

    def exactly(self, first: Data, second: Data, rows: int) -> None:
        """Its gaps are of integers: there is nothing to be told."""


def _reader(query: Any, schema: Schema, bins: int) -> Callable[[Data], Integers]:
    loss: Literal["squared", "logistic"] = "logistic" if isinstance(schema.target, Categorical) else "squared"

    def read(data: Data) -> Integers:
        X, y, weights = (*data, None, None)[:3] if isinstance(data, tuple) else (data, None, None)
        if query in COLUMNS:
            return ColumnTable.from_data(X, schema, y=y).reader(query)(_ALL)
        table = Table.from_data(X, y, schema, loss=loss, bins=bins, sample_weight=weights)
        if not isinstance(query, Choices):
            return table.reader(query)(_ALL)
        utilities: Integers = table.evidence(query)(_ALL)
        return utilities.reshape(-1, query.classes) if isinstance(query, LeafLabels) else utilities

    return read
