"""Private splits by the Gini impurity: one choice for every node of a tree's next level.

n times the Gini impurity of a split is n_s - (sum over classes of n_sc**2) / n_s, summed over its two sides s. It is
evaluated in integers, and what one row can change in it is proven in docs/explanation/gini.md.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.curator.grid import GRID_EXPONENT
from ledgerwood.curator.queries.class_counts import class_number, classes_by_cell
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.splits.tests import (
    MAX_CELLS,
    GainMechanism,
    TestedCells,
    chosen_tests,
    require_choice,
    require_no_sets,
)
from ledgerwood.curator.views.tree_rows import TreeRows
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.ensemble import MAX_DEPTH, SplitTests, TreeStructure
from ledgerwood.mechanisms import Grid, RandomSource, UtilityRange

_STEPS_BITS = -GRID_EXPONENT


def gini_range(adjacency: Adjacency) -> UtilityRange:
    """How far apart a row may move the utilities of a node: 2, or 4 where a row is replaced; whole steps included.

    docs/explanation/gini.md#gini-range.
    """
    return UtilityRange(range=4.0 if adjacency is Adjacency.REPLACE_ONE else 2.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GiniSplits:
    """For every node of a tree's last level, one of the tests, by the Gini impurity of its sides; a `SplitTests`.

    The cost does not depend on the number of features or tests. A test that the path to a node has decided already is
    not a candidate there; where a path has decided all tests, the node sends every row right. A row counts whatever it
    weighs; one of no class counts nowhere.

    Args:
        structure: the tree so far; its leaves are the nodes to be split.
        tests: the candidates, the same at every node; public.
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], tests of sets, a tree that is too deep, or a level of
            more than 2**24 nodes times classes times cells or tests.
    """

    structure: TreeStructure
    tests: SplitTests
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        require_no_sets(self.structure)
        require_no_sets(self.tests)
        if self.structure.depth >= MAX_DEPTH:
            raise _validate.fail("depth", self.structure.depth + 1, f"at most {MAX_DEPTH}", "levels")
        size = self.structure.n_leaves * self.classes * max(self.cells.total, len(self.tests))
        if size > MAX_CELLS:
            raise _validate.fail("nodes * classes * cells", size, f"at most {MAX_CELLS}", "cells of a level")

    @property
    def cells(self) -> TestedCells:
        """The cells that the tests tell apart."""
        return TestedCells.of(self.tests)

    @property
    def grid(self) -> Grid:
        """Steps of the utility."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `gini_range`."""
        return gini_range(adjacency)

    def event(self, mechanism: GainMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one node, for all nodes of the level: docs/explanation/gini.md#gini-range."""
        require_choice(self, mechanism)
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: GainMechanism, evidence: Integers, source: RandomSource) -> SplitTests:
        """One test a node, shape (n_nodes,), from the utilities int64 (n_nodes, n_tests) in steps of `grid`."""
        return chosen_tests(self.tests, self.structure, mechanism, evidence, self.grid, source)

    def utilities(self, counts: Integers) -> Integers:
        """Minus n times the Gini impurity of each test, up to what is the same for all tests of a node.

        Args:
            counts: int64 (n_nodes, n_cells, classes), rows by cell of `cells` and class.
        """
        cells = self.cells
        below = np.zeros((counts.shape[0], cells.total + 1, self.classes), dtype=np.int64)
        np.cumsum(counts, axis=1, out=below[:, 1:])
        left = below[:, cells.stop] - below[:, cells.start]
        besides = np.flatnonzero(cells.besides >= 0)
        left[:, besides] += counts[:, cells.besides[besides]]
        both = below[:, cells.last + 1] - below[:, cells.start]
        return purity(left) + purity(both - left)


def _check(query: GiniSplits, shape: TreeShape) -> None:
    shape.require_classes(query.classes)
    shape.require_structure(query.structure)
    shape.require_tests(query.tests)


@TREE_CHOICES.carries_out(GiniSplits, check=_check)
def _impurities(query: GiniSplits, rows: TreeRows) -> Integers:
    """The utility of each test at each node, int64 (n_nodes, n_tests) in grid steps."""
    cells = query.cells
    counts = classes_by_cell(query.structure, query.classes, rows, rows.cells, cells.features, cells.offsets)
    return query.utilities(counts)


def purity(counts: Integers) -> Integers:
    """(sum of squares) / sum over the last axis, in steps of 2**-20, truncated; 0 where there is no row.

    Args:
        counts: int64 (..., classes), numbers of rows.
    """
    total = counts.sum(axis=-1)
    if total.size and total.max() >= 2**31:
        return _purity_of_many(counts)
    # The squares sum to less than 2**62; so does the fraction's numerator, less than 2**51.
    squares = (counts * counts).sum(axis=-1)
    rows = np.maximum(total, 1)
    whole, rest = np.divmod(squares, rows)
    steps: Integers = (whole << _STEPS_BITS) + ((rest << _STEPS_BITS) // rows)
    return steps


def _purity_of_many(counts: Integers) -> Integers:
    """The same in Python's integers, which have no end."""
    lines = counts.reshape(-1, counts.shape[-1]).tolist()
    steps = [(sum(c * c for c in line) << _STEPS_BITS) // max(sum(line), 1) for line in lines]
    return np.array(steps, dtype=np.int64).reshape(counts.shape[:-1])
