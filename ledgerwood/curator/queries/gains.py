"""Private splits by their gains: one choice for every node of a tree's next level.

The gain of a split is S**2 / (n + damping), summed over its two sides: n rows, S the sum of their clipped gradients. It
is evaluated in integers, and what one row can change in it is proven in docs/explanation/gains.md.
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
from ledgerwood.curator.queries.sums import (
    GRID_EXPONENT,
    MAX_DAMPING,
    STEP,
    LargeGradients,
    Loss,
    class_place,
    gradient_clip,
    require_large_gradients,
)
from ledgerwood.ensemble import MAX_DEPTH, Ensemble, SplitTests, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import (
    ExponentialMechanism,
    Grid,
    PermuteAndFlipMechanism,
    RandomSource,
    UtilityRange,
)

Integers = NDArray[np.int64]
GainMechanism = ExponentialMechanism | PermuteAndFlipMechanism
MAX_CELLS = 1 << 24
"""Most nodes times cells, or tests, of one level: a histogram of 256 MiB, and as many candidates as a choice has."""
_CLIP_BITS = 28
"""A squared clip is at most 2**28 steps of the gain's grid: 2**35 rows then stay below 2**63 steps."""


def gain_range(clip: float, adjacency: Adjacency) -> UtilityRange:
    """How far apart a row may move the gains of a node: 4 clip**2, its two ends taken out to whole steps of the grid.

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


def require_no_sets(tests: SplitTests | TreeStructure) -> None:
    """Refuse tests that part categories by a set: which of them a path has decided is not worked out.

    Raises:
        InvalidParameter: there are such tests.
    """
    if tests.left_sets is not None:
        raise _validate.fail("left_sets", tests.left_sets.shape, "None, where splits are chosen by gains", "sets")


def _clip_steps(clip: float) -> int:
    return int(clip / STEP)


def _grid(clip_steps: int) -> Grid:
    bits = (clip_steps**2 - 1).bit_length()  # the least with clip_steps**2 <= 2**bits
    return Grid(exponents=(bits + 2 * GRID_EXPONENT - _CLIP_BITS,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelGains(abc.ABC):
    """What every choice of a level's splits by gain shares: the gain's own parameters, its grid and its range.

    Args:
        structure: the tree so far; its leaves are the nodes to be split. At depth 0 the node is the root.
        ensemble: the released ensemble whose scores give the gradients.
        loss: squared (on labels scaled to [-1, 1]) or logistic. Its hessian takes no part: a row counts 1.
        clip: largest absolute gradient that counts, in [2**-20, 2**8], in units of the gradient.
        damping: lambda of the denominator, in [0, 2**40] rows (of the largest weight), taken down to whole steps of
            2**-20.
        large_gradients: what becomes of a row beyond the clip; "drop" leaves it out of count and sum alike.
        positive: the class that is told from all others, as in `LeafMoments`; it changes no contribution's bound.

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
            raise RoundViolation(f"{type(self).__name__} is answered by {names}, not by {type(mechanism).__name__}")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitGains(LevelGains):
    """For every node of a tree's last level, one of the tests, by its gain; what is released is a `SplitTests`.

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
    def cells(self) -> "TestedCells":
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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestedCells:
    """The cells that some tests tell apart, of one feature after another; each feature's last one is all the others.

    Args:
        features: int64 (f,), the tested features, rising.
        offsets: int64 (f + 1,), where each feature's cells begin, and the end.
        start, stop: int64 (n_tests,): the cells from start to stop - 1 go left.
        besides: int64 (n_tests,), one more that does, or -1.
        last: int64 (n_tests,), the last cell of the tested feature; its first one is `start`.
    """

    features: Integers
    offsets: Integers
    start: Integers
    stop: Integers
    besides: Integers
    last: Integers

    @classmethod
    def of(cls, tests: SplitTests) -> "TestedCells":
        """Of public tests."""
        feature, below, besides = (array.astype(np.int64) for array in tests.lowered()[:3])
        features, place = np.unique(feature, return_inverse=True)
        widths = np.zeros(len(features), dtype=np.int64)
        np.maximum.at(widths, place, np.maximum(below, besides + 1))
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(widths + 1)))
        first = offsets[place]
        return cls(
            features=features,
            offsets=offsets,
            start=first,
            stop=first + below,
            besides=np.where(besides < 0, -1, first + besides),
            last=offsets[place + 1] - 1,
        )

    @property
    def total(self) -> int:
        """The number of cells."""
        return int(self.offsets[-1])

    def reached(self, structure: TreeStructure) -> NDArray[np.bool_]:
        """Which cells a row of each leaf may have, shape (n_leaves, total), by the tests above it."""
        feature = np.repeat(self.features, np.diff(self.offsets))
        cell = np.arange(self.total) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        others = np.zeros(self.total, dtype=np.bool_)
        others[self.offsets[1:] - 1] = True
        reached = np.ones((1, self.total), dtype=np.bool_)
        for level in range(structure.depth):
            nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
            tested, below, besides = (array[nodes, np.newaxis].astype(np.int64) for array in structure.lowered()[:3])
            elsewhere = feature != tested
            # The last cell stands for many: a test may part them.
            left = (cell < below) | (cell == besides) | (others & (cell < besides))
            children = np.stack((reached & (elsewhere | left), reached & (elsewhere | ~left | others)), axis=1)
            reached = children.reshape(-1, self.total)
        return reached


def require_choice(query: object, mechanism: object) -> None:
    """Refuse what does not choose among tests: a subclass could draw from another law than its event prices.

    Raises:
        RoundViolation: it does not.
    """
    if type(mechanism) not in get_args(GainMechanism):
        names = " or ".join(kind.__name__ for kind in get_args(GainMechanism))
        raise RoundViolation(f"{type(query).__name__} is answered by {names}, not by {type(mechanism).__name__}")


def chosen_tests(
    tests: SplitTests,
    structure: TreeStructure,
    mechanism: GainMechanism,
    utilities: Integers,
    grid: Grid,
    source: RandomSource,
) -> SplitTests:
    """One test for each leaf of the tree so far, among those that its path has not decided; shape (n_nodes,).

    Args:
        utilities: int64 (n_nodes, n_tests), in steps of the grid.
    """
    chosen = np.full(len(utilities), -1, dtype=np.int64)
    for node, candidates in enumerate(open_tests(tests, structure)):
        places = np.flatnonzero(candidates)
        if places.size:
            chosen[node] = places[mechanism.select(utilities[node, places], grid, source)]
    return tests.taken(chosen)


def open_tests(tests: SplitTests, structure: TreeStructure) -> NDArray[np.bool_]:
    """Which tests a path has not decided, shape (n_nodes, n_tests): some cell may go left, and some right."""
    cells = TestedCells.of(tests)
    open_cells = cells.reached(structure)
    below = np.zeros((len(open_cells), cells.total + 1), dtype=np.int64)
    np.cumsum(open_cells, axis=1, out=below[:, 1:])
    left = below[:, cells.stop] - below[:, cells.start]
    left += np.where(cells.besides < 0, 0, open_cells[:, cells.besides])
    everywhere = below[:, cells.last + 1] - below[:, cells.start]
    undecided: NDArray[np.bool_] = (left > 0) & (left < everywhere)
    return undecided
