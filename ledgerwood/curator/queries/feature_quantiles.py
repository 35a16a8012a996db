"""Thresholds of several numeric features of a table of trees, by private quantiles among the borders of their cells.

Proof: docs/explanation/queries.md#feature-quantiles.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Repeated
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.row_counts import CellCounts, check_cells, count_cells
from ledgerwood.curator.views.tree_rows import TreeRows
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import JointQuantilesMechanism, RandomSource
from ledgerwood.mechanisms.choices.grid_quantiles import MOST_THRESHOLDS
from ledgerwood.schema import Numeric


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureQuantiles:
    """For each named feature thresholds that rise, jointly chosen; their shares of the rows are the mechanism's.

    A threshold t stands for the test "cell < t"; all t of 1 .. cells - 1 are candidates. Counted are whole rows,
    whatever they weigh; a row whose cell is `cells` or above, such as that of a missing value, is not among a feature's
    rows.

    Args:
        features: numeric, of the table's, at least one, each once.
        cells: how many cells of each, in [2, 1025].

    Raises:
        InvalidParameter: a feature that is no whole number >= 0 or is named twice, or a number of cells outside its
            bound.
    """

    features: tuple[int, ...]
    cells: int

    def __post_init__(self) -> None:
        counts = CellCounts(features=self.features, cells=self.cells)
        if not 2 <= counts.cells <= MOST_THRESHOLDS + 1:
            raise _validate.fail("cells", counts.cells, f"in 2..{MOST_THRESHOLDS + 1}", "cells of a feature")
        object.__setattr__(self, "features", counts.features)
        object.__setattr__(self, "cells", counts.cells)

    @property
    def counts(self) -> CellCounts:
        """What the choice is made by."""
        return CellCounts(features=self.features, cells=self.cells)

    def event(self, mechanism: JointQuantilesMechanism, adjacency: Adjacency) -> Repeated:
        """The mechanism's, once for each feature: a row is in all of them."""
        # A subclass could draw from another law than the one that its event prices.
        if type(mechanism) is not JointQuantilesMechanism:
            raise RoundViolation(
                f"FeatureQuantiles is answered by JointQuantilesMechanism, not by {type(mechanism).__name__}"
            )
        return Repeated(mechanism.event(adjacency), count=len(self.features))

    def select(self, mechanism: JointQuantilesMechanism, evidence: Integers, source: RandomSource) -> Integers:
        """Thresholds int64 (len(features), quantiles), rising, from the counts int64 (len(features) * cells, 1)."""
        counts = evidence.reshape(len(self.features), self.cells)
        places = [mechanism.select_from_counts(feature, source) for feature in counts]
        return np.array(places, dtype=np.int64) + 1


def _check(query: FeatureQuantiles, shape: TreeShape) -> None:
    check_cells(query.counts, shape)
    declared = shape.schema.resolved(shape.n_features).features
    if not all(isinstance(declared[feature], Numeric) for feature in query.features):
        raise RoundViolation(f"quantiles of features {query.features}: categories have no order")


@TREE_CHOICES.carries_out(FeatureQuantiles, check=_check)
def _counts(query: FeatureQuantiles, rows: TreeRows) -> Integers:
    """The numbers of rows that the choice is made by."""
    return count_cells(query.counts, rows)
