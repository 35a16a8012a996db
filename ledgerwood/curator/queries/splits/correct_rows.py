"""Private splits by the number of rows that a tree classifies correctly: one choice for every node of a level.

A row is classified correctly or not: it adds 0 or 1 to the utility of every candidate, whatever labels and further
tests complete the tree. So the range is 1, half of the Gini impurity's, and the last level's tests can be chosen
together with the labels of their leaves. The proofs are in docs/explanation/gini.md#correct-rows.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.curator.kernels import cell_pairs as kernels
from ledgerwood.curator.queries.classes.counts import class_number, classes_by_cell, codes_by_class, label_range
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.splits.tests import (
    MAX_CELLS,
    GainMechanism,
    TestedCells,
    chosen_tests,
    open_tests,
    require_choice,
    require_level,
)
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.mechanisms import Grid, RandomSource, UtilityRange
from ledgerwood.sparse_cells import SparseCells


def pairs_fit(tests: SplitTests, *, nodes: int, classes: int) -> bool:
    """Returns whether the counts by pairs of cells, of which `CorrectSplits` looks ahead, are at most 2**24.

    Args:
        tests: the candidates.
        nodes: of the level.
        classes: of the target.
    """
    return nodes * classes * TestedCells.of(tests).total ** 2 <= MAX_CELLS


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectSplits:
    """Chooses a test for every node of a tree's last level by the rows that its sides' labels can classify correctly.

    The utility is the sum over both sides of the rows of the side's commonest class; with `lookahead`, of the rows of
    the commonest classes after the best further test on each side. Which tests and labels follow is not released.
    Candidates are open tests, as of `GiniSplits`, and may be tests of sets; rows count whatever they weigh.

    Args:
        structure: the tree so far; its leaves are the nodes to be split.
        tests: the candidates, the same at every node, and of the further tests; public.
        classes: the number of the target's declared classes.
        lookahead: whether one further level of tests is tried; it changes no cost.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], a tree that is too deep, or a level of more than 2**24
            nodes times classes times cells or tests; with `lookahead`, times squared cells.
    """

    structure: TreeStructure
    tests: SplitTests
    classes: int
    lookahead: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        _validate.flag("lookahead", self.lookahead)
        require_level(self.structure, self.tests, self.classes)
        nodes = self.structure.n_leaves
        if self.lookahead and not pairs_fit(self.tests, nodes=nodes, classes=self.classes):
            size = nodes * self.classes * self.cells.total**2
            raise _validate.fail("nodes * classes * cells**2", size, f"at most {MAX_CELLS}", "pairs of cells")

    @property
    def cells(self) -> TestedCells:
        """The cells that the tests tell apart."""
        return TestedCells.of(self.tests)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `label_range`: whatever completes a tree, a row adds 0 or 1 to the rows that it classifies correctly."""
        return label_range(adjacency)

    def event(self, mechanism: GainMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one node, for all nodes of the level: docs/explanation/gini.md#correct-rows."""
        require_choice(self, mechanism)
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: GainMechanism, evidence: Integers, source: RandomSource) -> SplitTests:
        """One test a node, shape (n_nodes,), from the utilities int64 (n_nodes, n_tests) in rows."""
        return chosen_tests(self.tests, self.structure, mechanism, evidence, self.grid, source)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledTests:
    """A test for every node of a level, and the labels of the leaves below.

    Args:
        tests: one a node.
        labels: int64 (2 * n_nodes,), places among the sorted classes: of the left leaf, then of the right one.
    """

    tests: SplitTests
    labels: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSplits:
    """Chooses, for every node of a tree's last level, a test and the labels of its two sides, all in one choice.

    The utility is the number of the node's rows that these labels classify correctly, so that labels need no budget of
    their own. Candidates are all pairs of labels with the open tests, as of `GiniSplits`; where a path has decided all
    tests, with the first test. Both labels may be the same.

    Args:
        structure: the tree so far; its leaves are the nodes to be split.
        tests: the candidates, the same at every node; public.
        classes: the number of the target's declared classes.

    Raises:
        InvalidParameter: as of `CorrectSplits`, or more than 2**24 nodes times tests times squared classes.
    """

    structure: TreeStructure
    tests: SplitTests
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        require_level(self.structure, self.tests, self.classes)
        size = self.structure.n_leaves * len(self.tests) * self.classes**2
        if size > MAX_CELLS:
            raise _validate.fail("nodes * tests * classes**2", size, f"at most {MAX_CELLS}", "candidates of a level")

    @property
    def cells(self) -> TestedCells:
        """The cells that the tests tell apart."""
        return TestedCells.of(self.tests)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `label_range`."""
        return label_range(adjacency)

    def event(self, mechanism: GainMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one node, for all nodes of the level: docs/explanation/gini.md#correct-rows."""
        require_choice(self, mechanism)
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: GainMechanism, evidence: Integers, source: RandomSource) -> LabelledTests:
        """The choices, from the utilities int64 (n_nodes, n_tests * classes**2) in rows, as `places` numbers them."""
        pairs = self.classes**2
        chosen = np.zeros(len(evidence), dtype=np.int64)
        for node, candidates in enumerate(open_tests(self.tests, self.structure)):
            tests = np.flatnonzero(candidates) if candidates.any() else np.zeros(1, dtype=np.int64)
            places = (tests[:, np.newaxis] * pairs + np.arange(pairs)).ravel()
            chosen[node] = places[mechanism.select(evidence[node, places], self.grid, source)]
        labels = np.stack(np.divmod(chosen % pairs, self.classes), axis=1).ravel()
        return LabelledTests(tests=self.tests.taken(chosen // pairs), labels=labels)

    def places(self, tests: Integers, labels: Integers) -> Integers:
        """Places among a node's candidates: test after test, in each left label after left label.

        Args:
            tests: int64 (n_nodes,), places of tests.
            labels: int64 (2 * n_nodes,), as in `LabelledTests`.
        """
        places: Integers = (tests * self.classes + labels[::2]) * self.classes + labels[1::2]
        return places


def _check(query: CorrectSplits | LabelledSplits, shape: TreeShape) -> None:
    shape.require_classes(query.classes)
    shape.require_structure(query.structure)
    shape.require_tests(query.tests)


def _correct(query: CorrectSplits, counts: Integers, _: TreeShape) -> Integers:
    """The utility of each test at each node, int64 (n_nodes, n_tests)."""
    cells = query.cells
    if not query.lookahead:
        left, right = cells.sides(counts)
        best: Integers = left.max(axis=-1) + right.max(axis=-1)
        return best
    nodes, width = query.structure.n_leaves, cells.total
    below = np.zeros((nodes, query.classes, width + 1, width), dtype=np.int64)
    np.cumsum(counts.reshape(nodes, query.classes, width, width), axis=2, out=below[:, :, 1:])
    found = np.empty((nodes, len(query.tests)), dtype=np.int64)
    parts = found.size
    set_at = np.searchsorted(cells.set_tests, np.arange(len(query.tests) + 1))
    kernels.rows_after_two_splits(
        parts * len(query.tests), parts, below, cells.start, cells.stop, cells.besides, cells.last, set_at,
        cells.set_cells, found,
    )  # fmt: skip
    return found


@TREE_CHOICES.carries_out(CorrectSplits, check=_check, finish=_correct)
def _counts(query: CorrectSplits, rows: TreeRows) -> Integers:
    """The rows by node, cell and class, int64 (n_nodes, n_cells, classes), or by class code and pair of cells."""
    cells, n_nodes = query.cells, query.structure.n_leaves
    if not query.lookahead:
        return classes_by_cell(query.structure, query.classes, rows, rows.cells, cells.features, cells.offsets)
    codes = codes_by_class(query.structure, query.classes, rows)
    counts = np.zeros((n_nodes * query.classes, cells.total, cells.total), dtype=np.int64)
    f = len(cells.features)
    if not isinstance(rows.cells, SparseCells):
        kernels.pair_counts(len(codes) * f, f, rows.cells, cells.features, cells.offsets, codes, counts)
        return counts
    for some, spelled_out in rows.cells.blocks(cells.features):
        own = codes[some]
        kernels.pair_counts(len(own) * f, f, spelled_out, np.arange(f), cells.offsets, own, counts)
    return counts


def _labelled(query: LabelledSplits, counts: Integers, _: TreeShape) -> Integers:
    """The utility of each candidate at each node, int64 (n_nodes, n_tests * classes**2)."""
    left, right = query.cells.sides(counts)
    return (left[..., np.newaxis] + right[..., np.newaxis, :]).reshape(len(counts), -1)


@TREE_CHOICES.carries_out(LabelledSplits, check=_check, finish=_labelled)
def _class_counts(query: LabelledSplits, rows: TreeRows) -> Integers:
    """The rows by node, cell and class, int64 (n_nodes, n_cells, classes)."""
    cells = query.cells
    return classes_by_cell(query.structure, query.classes, rows, rows.cells, cells.features, cells.offsets)
