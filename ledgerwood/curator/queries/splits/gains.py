"""Private splits by their gains or by the Gini impurity: one choice for every node of a tree's next level.

The gain of a split is S**2 / (n + damping), summed over its two sides: n rows, S the sum of their clipped gradients.
n times its Gini impurity is n_s - (sum over classes of n_sc**2) / n_s, summed over its two sides s. Both are evaluated
in integers, and what one row can change in them is proven in docs/explanation/gains.md and docs/explanation/gini.md.
"""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, STEP, LargeGradients, Loss
from ledgerwood.curator.inputs.values import Weights
from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.kernels.growing_histograms import ALL_ROWS, MAX_BINS, BinRows, LevelSums, bins_by_row
from ledgerwood.curator.kernels.sorted_gains import exact_gains
from ledgerwood.curator.kernels.sparse_sums import SparseBinRows, sums_by_bin
from ledgerwood.curator.queries.classes.counts import class_number, classes_by_cell
from ledgerwood.curator.queries.leaf_statistics import MAX_DAMPING, class_place, gradient_clip, require_large_gradients
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.splits.tests import (
    MAX_CELLS,
    GainMechanism,
    TestedCells,
    chosen_tests,
    open_tests,
    require_choice,
    require_level,
    require_no_sets,
)
from ledgerwood.curator.views.tree_rows import Mask, TreeRows, TreeShape
from ledgerwood.ensemble import MAX_DEPTH, Ensemble, SplitTests, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import Grid, RandomSource, UtilityRange
from ledgerwood.sparse_cells import SparseCells

_CLIP_BITS = 28
"""A squared clip is at most 2**28 steps of the gain's grid: 2**35 rows then stay below 2**63 steps."""


def gain_range(clip: float, adjacency: Adjacency) -> UtilityRange:
    """The range of a node's gains under a change of one row: 4 clip**2, both ends rounded to whole steps of the grid.

    Twice that under replace-one. What a plan prices a level with, before there is a tree.

    Derivation: docs/explanation/gains.md#gain-range, and docs/explanation/gains.md#gain-integers for the steps.

    Args:
        clip: as in `SplitGains`.
        adjacency: the relation.

    Raises:
        InvalidParameter: a clip outside its bound.
    """
    clip_steps = _clip_steps(gradient_clip(clip))
    step = Fraction(2) ** _grid(clip_steps).exponents[0]
    row = (Fraction(STEP) * clip_steps) ** 2 / step
    steps = math.ceil(row) + math.ceil(3 * row)
    # At most 2**31 + 4 steps, so a float64 exactly.
    return UtilityRange(range=float(step * steps * (2 if adjacency is Adjacency.REPLACE_ONE else 1)))


def _clip_steps(clip: float) -> int:
    return int(clip / STEP)


def _grid(clip_steps: int) -> Grid:
    bits = (clip_steps**2 - 1).bit_length()  # the least with clip_steps**2 <= 2**bits
    return Grid(exponents=(bits + 2 * GRID_EXPONENT - _CLIP_BITS,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelGains(abc.ABC):
    """The common base of choices of a level's splits by gain: the gain's parameters, its grid and its range.

    Args:
        structure: the tree so far; its leaves are the nodes to be split. At depth 0 the node is the root.
        ensemble: the released ensemble whose scores give the gradients.
        loss: squared (on labels scaled to [-1, 1]) or logistic. Its hessian takes no part: a row counts 1.
        clip: largest absolute gradient that counts, in [2**-20, 2**8], in units of the gradient.
        damping: lambda of the denominator, in [0, 2**40] rows (of the largest weight), taken down to whole steps of
            2**-20.
        large_gradients: what becomes of a row beyond the clip; "drop" leaves it out of count and sum alike.
        positive: the positive class, which is separated from all others, as in `LeafMoments`; it changes no
            contribution's bound.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    structure: TreeStructure
    ensemble: Ensemble
    loss: Loss
    clip: float
    damping: float
    large_gradients: LargeGradients = "clip"
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        object.__setattr__(self, "positive", class_place(self.positive))
        if self.loss not in get_args(Loss):
            raise _validate.fail("loss", self.loss, "'squared' or 'logistic'", "name")
        damping = _validate.non_negative("damping", self.damping, "rows")
        if damping > MAX_DAMPING:
            raise _validate.fail("damping", damping, f"in [0, {MAX_DAMPING}]", "rows")
        object.__setattr__(self, "damping", damping)
        require_no_sets(self.structure)
        if self.structure.depth >= MAX_DEPTH:
            raise _validate.fail("depth", self.structure.depth + 1, f"at most {MAX_DEPTH}", "levels")

    @property
    def clip_steps(self) -> int:
        """The largest absolute gradient, in steps of 2**-20: what the sensitivity is stated of."""
        return _clip_steps(self.clip)

    @property
    def damping_steps(self) -> int:
        """The damping that is used, in steps of 2**-20 rows."""
        return int(self.damping / STEP)

    @property
    def grid(self) -> Grid:
        """Steps of the gain: the finest with which a squared clip is at most 2**28 steps."""
        return _grid(self.clip_steps)

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """See `gain_range`."""
        return gain_range(self.clip, adjacency)

    def _require_size(self, per_node: int) -> None:
        size = self.structure.n_leaves * per_node
        if size > MAX_CELLS:
            raise _validate.fail("nodes * cells", size, f"at most {MAX_CELLS}", "cells of a level")

    def _require_mechanism(self, mechanism: object, kinds: tuple[type, ...]) -> None:
        # A subclass could draw from another law than the one that its event prices.
        if type(mechanism) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise RoundViolation(f"{type(self).__name__} needs {names}, not {type(mechanism).__name__}")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitGains(LevelGains):
    """Chooses a test for every node of a tree's last level by its gain, and releases a `SplitTests`.

    A test that the path to a node has decided already is not a candidate there. Where a path has decided all tests, the
    node sends every row right. Both follow from the public structure alone. The gain has neither a factor 1/2 nor the
    parent's term, which is the same for all candidates of a node (docs/explanation/gains.md#gain).

    Args:
        structure, ensemble, loss, clip, damping, large_gradients, positive: as in `LevelGains`.
        tests: the candidates, the same at every node; public.

    Raises:
        InvalidParameter: a value outside its bound, or a level of more than 2**24 nodes times cells or tests.
    """

    tests: SplitTests

    def __post_init__(self) -> None:
        LevelGains.__post_init__(self)  # a class with slots is made twice: super() would not know it
        require_no_sets(self.tests)
        self._require_size(max(self.cells.total, len(self.tests)))

    @property
    def cells(self) -> TestedCells:
        """The cells that the tests tell apart."""
        return TestedCells.of(self.tests)

    def event(self, mechanism: GainMechanism, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """That of one node, for all nodes of the level: docs/explanation/gains.md#gain-levels."""
        require_choice(self, mechanism)
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: GainMechanism, evidence: Integers, source: RandomSource) -> SplitTests:
        """One test a node, shape (n_nodes,), from the gains int64 (n_nodes, n_tests) in steps of `grid`."""
        return chosen_tests(self.tests, self.structure, mechanism, evidence, self.grid, source)

    def open_tests(self) -> NDArray[np.bool_]:
        """See the function of this name."""
        return open_tests(self.tests, self.structure)

    def sees_as(self, other: "SplitGains") -> bool:
        """Returns whether each row contributes the same to both, to the same cells, for any leaves."""
        return (
            self.tests is other.tests
            and self.ensemble is other.ensemble
            and self.positive == other.positive
            and self.loss == other.loss
            and self.clip == other.clip
            and self.large_gradients == other.large_gradients
        )


def check_level(query: LevelGains, shape: TreeShape) -> None:
    """Refuse a tree, an ensemble or a class that the table does not have.

    Raises:
        RoundViolation: of such a query.
    """
    shape.require_class(query.positive)
    shape.require_ensemble(query.ensemble)
    shape.require_structure(query.structure)


def _check(query: SplitGains, shape: TreeShape) -> None:
    check_level(query, shape)
    shape.require_tests(query.tests)


_SMALL = 4
"""A sample of less than this part of the rows is binned by itself."""


@final
class _GainLevels:
    """What is kept between the levels of one tree: the rows by leaf, and the sums of the last level.

    Kept for one set of contributions and cells, and only read for the same ones.
    """

    __slots__ = ("last", "rows", "tests")

    def __init__(self) -> None:
        self.tests: SplitTests | None = None
        self.rows: BinRows | SparseBinRows | None = None
        self.last: tuple[SplitGains, Mask, LevelSums] | None = None


def _summed_cells(query: SplitGains) -> tuple[TestedCells, bool]:
    """The cells by which rows are summed, and whether they are few enough to be kept from level to level."""
    every, joined = query.cells, query.cells.joined()
    few = bool(np.diff(joined.offsets).max() <= MAX_BINS)
    return (joined, True) if few else (every, False)


def _gains(query: SplitGains, sums: Integers, shape: TreeShape) -> Integers:
    """The exact gain of each test at each node, int64 (n_nodes, n_tests) in grid steps."""
    cells, _ = _summed_cells(query)
    return exact_gains(
        sums, cells.start, cells.stop, cells.besides, int(cells.offsets[1]), query.damping_steps,
        query.grid.exponents[0], weighted=shape.weighted,
    )  # fmt: skip


@TREE_CHOICES.carries_out(SplitGains, check=_check, finish=_gains)
def _gain_sums(query: SplitGains, rows: TreeRows) -> Integers:
    """The sums by node and cell that gains are made of, int64 (n_nodes, n_cells, 2)."""
    cells, few = _summed_cells(query)
    if not few:
        chosen, nodes, gradients, weights = level_contributions(query, rows)
        if isinstance(rows.cells, SparseCells):
            counts = weights if len(weights) else np.ones_like(nodes)
            return sums_by_bin(
                rows.cells, cells.features, cells.offsets, _placed(nodes, chosen, rows.n_rows, -1),
                query.structure.n_leaves, _placed(counts, chosen, rows.n_rows),
                _placed(gradients, chosen, rows.n_rows),
            )  # fmt: skip
        sums = np.empty((query.structure.n_leaves, cells.total, 2), dtype=np.int64)
        kernels.cell_sums(
            len(nodes), len(cells.features), rows.cells, cells.features, cells.offsets, chosen, nodes, gradients,
            weights, sums,
        )  # fmt: skip
        return sums
    return _level_sums(query, cells, rows).of(query.structure, rows.cells)


def _placed(values: NDArray[np.int32], chosen: Integers, n_rows: int, others: int = 0) -> NDArray[np.int32]:
    """Values of the chosen rows among those of all rows, int32 (n_rows,)."""
    if not len(chosen) and len(values) == n_rows:
        return values
    found = np.full(n_rows, others, dtype=np.int32)
    found[chosen] = values
    return found


def _level_sums(query: SplitGains, cells: TestedCells, rows: TreeRows) -> LevelSums:
    """What gives the sums of the rows' (1, gradient), or (weight, weighted gradient)."""
    kept, room = rows.memory(_GainLevels), rows.named_room("gains")
    before = kept.last
    if before is not None and query.sees_as(before[0]) and np.array_equal(rows.sampled, before[1]):
        return before[2]
    kept.last = None  # two trees' at once are not needed
    own = kept.rows
    if own is None or kept.tests is not query.tests or not own.complete:
        # Of tests that are another tree's, too, the bins of all rows are wanted, whatever this tree's sample.
        some = np.flatnonzero(rows.sampled) if kept.tests is not query.tests else ALL_ROWS
        kept.rows = None
        own = bins_by_row(
            cells.offsets, rows.cells, cells.features, cells.lookup(), room,
            chosen=some if _SMALL * len(some) < rows.n_rows else ALL_ROWS,
        )  # fmt: skip
        kept.tests, kept.rows = query.tests, own
    counts, gradients, largest = row_steps(query, rows)
    found = LevelSums(own, counts, gradients, largest, room)
    kept.last = query, rows.sampled.copy(), found
    return found


def row_steps(query: LevelGains, rows: TreeRows) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[int, int]]:
    """What each row adds to a count and to a sum, int32 (n_rows,), 0 for one that takes no part; the most of each."""
    state = rows.scored(query.ensemble, query.positive)
    counts, gradients = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows, dtype=np.int32)
    histogram_kernels.row_contributions(
        rows.n_rows, state.scores, state.targets, rows.weights, rows.sampled, query.loss == "logistic", 0.0,
        query.clip, PER_UNIT, query.clip_steps, 0, query.large_gradients == "drop", counts, gradients,
    )  # fmt: skip
    most = int(PER_UNIT)
    if not len(rows.weights):
        # A row counts 1, and many more of them fit a sum of packed ones.
        np.sign(counts, out=counts)
        most = 1
    return counts, gradients, (most, query.clip_steps)


def level_contributions(
    query: LevelGains, rows: TreeRows
) -> tuple[Integers, NDArray[np.int32], NDArray[np.int32], Weights]:
    """The rows that contribute, int64 (m,) (empty: all of them); their nodes, gradients and weights, int32 (m,)."""
    state = rows.scored(query.ensemble, query.positive)
    nodes = np.empty(rows.n_rows, dtype=np.int32)
    gradients = np.empty(rows.n_rows, dtype=np.int32)
    kernels.node_gradients(
        rows.n_rows, *rows.over(query.structure), state.scores, state.targets, rows.weights,
        rows.sampled, query.loss == "logistic", query.clip, PER_UNIT, query.clip_steps,
        query.large_gradients == "drop", nodes, gradients,
    )  # fmt: skip
    # A sample is gathered once: to ask each feature's loop whether a row is in it costs more than the sums.
    chosen = np.flatnonzero(nodes >= 0)
    if len(chosen) < len(nodes):
        return chosen, nodes[chosen], gradients[chosen], rows.weights[chosen] if len(rows.weights) else rows.weights
    return np.empty(0, dtype=np.int64), nodes, gradients, rows.weights


_STEPS_BITS = -GRID_EXPONENT


def gini_range(adjacency: Adjacency) -> UtilityRange:
    """The range of a node's utilities under a change of one row: 2, or 4 if a row is replaced; in whole steps.

    docs/explanation/gini.md#gini-range.
    """
    return UtilityRange(range=4.0 if adjacency is Adjacency.REPLACE_ONE else 2.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GiniSplits:
    """Chooses a test for every node of a tree's last level by the Gini impurity, and releases a `SplitTests`.

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
        require_level(self.structure, self.tests, self.classes)

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
        """Minus n times the Gini impurity of each test, up to a constant for all tests of a node.

        Args:
            counts: int64 (n_nodes, n_cells, classes), rows by cell of `cells` and class.
        """
        left, right = self.cells.sides(counts)
        return purity(left) + purity(right)


def _check_impurities(query: GiniSplits, shape: TreeShape) -> None:
    shape.require_classes(query.classes)
    shape.require_structure(query.structure)
    shape.require_tests(query.tests)


def _impurities(query: GiniSplits, counts: Integers, _: TreeShape) -> Integers:
    """The utility of each test at each node, int64 (n_nodes, n_tests) in grid steps."""
    return query.utilities(counts)


@TREE_CHOICES.carries_out(GiniSplits, check=_check_impurities, finish=_impurities)
def _class_counts(query: GiniSplits, rows: TreeRows) -> Integers:
    """The rows by node, cell and class, int64 (n_nodes, n_cells, classes)."""
    cells = query.cells
    return classes_by_cell(query.structure, query.classes, rows, rows.cells, cells.features, cells.offsets)


def purity(counts: Integers) -> Integers:
    """(sum of squares) / sum over the last axis, in steps of 2**-20, truncated; 0 if there is no row.

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
