"""A class for each leaf of a tree, privately chosen by the leaf's numbers of rows.

The proof is in docs/explanation/gini.md#leaf-labels.
"""

from dataclasses import dataclass
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.curator.queries.class_counts import LeafClassCounts, classes_by_leaf
from ledgerwood.curator.queries.leaf_statistics import LeafQuery, check_leaves
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.views.tree_rows import TreeRows
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, ExponentialMechanism, PermuteAndFlipMechanism, RandomSource, UtilityRange

LabelMechanism = ExponentialMechanism | PermuteAndFlipMechanism


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafLabels:
    """One class for each leaf, by its place among the sorted classes, int64 (n_leaves,).

    A class's utility is its number of rows in the leaf, whatever they weigh.

    Args:
        structure: the public tree.
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], or more than 2**24 leaves times classes.
    """

    structure: TreeStructure
    classes: int

    def __post_init__(self) -> None:
        counts = LeafClassCounts(classes=self.classes)
        counts.of(self.structure)  # not too many
        object.__setattr__(self, "classes", counts.classes)

    @property
    def counts(self) -> LeafQuery[BoxShifts]:
        """What the choices are made by."""
        return LeafClassCounts(classes=self.classes).of(self.structure)

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `label_range`."""
        return label_range(adjacency)

    def event(self, mechanism: LabelMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one leaf, for all of them; of a replaced row, which may change two leaves, twice that."""
        # A subclass could draw from another law than the one that its event prices.
        if type(mechanism) not in get_args(LabelMechanism):
            names = " or ".join(kind.__name__ for kind in get_args(LabelMechanism))
            raise RoundViolation(f"LeafLabels is answered by {names}, not by {type(mechanism).__name__}")
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: LabelMechanism, evidence: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """The choices, from the counts int64 (n_leaves * classes, 1)."""
        grid = self.counts.grid
        leaves = evidence.reshape(self.structure.n_leaves, self.classes)
        return np.array([mechanism.select(counts, grid, source) for counts in leaves], dtype=np.int64)


def label_range(adjacency: Adjacency) -> UtilityRange:
    """How far apart a row may move the utilities of the classes of a leaf: 1, or 2 where a row is replaced."""
    return UtilityRange(range=2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0)


def _check(query: LeafLabels, shape: TreeShape) -> None:
    check_leaves(query.counts, shape)


@TREE_CHOICES.carries_out(LeafLabels, check=_check)
def _counts(query: LeafLabels, rows: TreeRows) -> Integers:
    """The numbers of rows that the choices are made by."""
    return classes_by_leaf(query.structure, query.classes, rows)
