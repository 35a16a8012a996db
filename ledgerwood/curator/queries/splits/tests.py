"""The tests that a level's splits are chosen from, and the choice of one for each node; whatever the utility is."""

from dataclasses import dataclass
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import ExponentialMechanism, Grid, PermuteAndFlipMechanism, RandomSource

GainMechanism = ExponentialMechanism | PermuteAndFlipMechanism
MAX_CELLS = 1 << 24
"""Most nodes times cells, or tests, of one level: a histogram of 256 MiB, and as many candidates as a choice has."""


def require_no_sets(tests: SplitTests | TreeStructure) -> None:
    """Refuse tests that part categories by a set: which of them a path has decided is not worked out.

    Raises:
        InvalidParameter: there are such tests.
    """
    if tests.left_sets is not None:
        raise _validate.fail("left_sets", tests.left_sets.shape, "None, where splits are chosen by gains", "sets")


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
        first: int64 (total,), the first of the feature's own cells, from 0, that each of these stands for.
    """

    features: Integers
    offsets: Integers
    start: Integers
    stop: Integers
    besides: Integers
    last: Integers
    first: Integers

    @classmethod
    def of(cls, tests: SplitTests) -> "TestedCells":
        """The splits among these public tests, each cell below the last one by itself."""
        feature, below, besides = _lowered(tests)
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
            first=np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)),
        )

    def joined(self, structure: TreeStructure | None = None) -> "TestedCells":
        """The same, with neighbouring cells as one where no test, and no node of a structure, tells them apart."""
        begins = np.zeros(self.total + 1, dtype=np.bool_)
        begins[self.offsets] = begins[self.stop] = begins[self.last] = True
        one = self.besides[self.besides >= 0]
        begins[one] = begins[one + 1] = True
        if structure is not None and structure.depth:
            feature, below, besides = _lowered(structure)
            place = np.searchsorted(self.features, feature)
            place[place == len(self.features)] = 0
            tested = self.features[place] == feature
            for cell in (below, besides, besides + 1):
                inside = tested & (cell >= 0) & (cell < np.diff(self.offsets)[place])
                begins[self.offsets[place[inside]] + cell[inside]] = True
        number = np.cumsum(begins) - 1  # of the cell that each one begins, or is in
        return TestedCells(
            features=self.features,
            offsets=number[self.offsets],
            start=number[self.start],
            stop=number[self.stop],
            besides=np.where(self.besides < 0, -1, number[self.besides]),
            last=number[self.last],
            first=self.first[begins[:-1]],
        )

    def lookup(self) -> Integers:
        """For each feature the place, among its own, of the cell that stands for each; (f, n), the rest as the last."""
        widths = np.diff(self.offsets)
        reach = int(self.first.max()) + 1
        found = np.zeros((len(self.features), reach), dtype=np.int64)
        found[np.repeat(np.arange(len(widths)), widths), self.first] = 1
        places: Integers = np.cumsum(found, axis=1) - 1
        return places

    @property
    def total(self) -> int:
        """The number of cells."""
        return int(self.offsets[-1])

    def reached(self, structure: TreeStructure) -> NDArray[np.bool_]:
        """Which cells a row of each leaf may have, shape (n_leaves, total), by the tests above it."""
        feature = np.repeat(self.features, np.diff(self.offsets))
        others = np.zeros(self.total, dtype=np.bool_)
        others[self.offsets[1:] - 1] = True
        reached = np.ones((1, self.total), dtype=np.bool_)
        for level in range(structure.depth):
            nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
            tested, below, besides = (array[nodes, np.newaxis] for array in _lowered(structure))
            elsewhere = feature != tested
            # The last cell stands for many: a test may part them.
            left = (self.first < below) | (self.first == besides) | (others & (self.first < besides))
            children = np.stack((reached & (elsewhere | left), reached & (elsewhere | ~left | others)), axis=1)
            reached = children.reshape(-1, self.total)
        return reached


def _lowered(of: SplitTests | TreeStructure) -> tuple[Integers, Integers, Integers]:
    feature, below, besides = (array.astype(np.int64) for array in of.lowered()[:3])
    return feature, below, besides


def require_choice(query: object, mechanism: object) -> None:
    """Refuse what does not choose among tests: a subclass could draw from another distribution than its event prices.

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
    cells = TestedCells.of(tests).joined(structure)
    open_cells = cells.reached(structure)
    below = np.zeros((len(open_cells), cells.total + 1), dtype=np.int64)
    np.cumsum(open_cells, axis=1, out=below[:, 1:])
    left = below[:, cells.stop] - below[:, cells.start]
    left += np.where(cells.besides < 0, 0, open_cells[:, cells.besides])
    everywhere = below[:, cells.last + 1] - below[:, cells.start]
    undecided: NDArray[np.bool_] = (left > 0) & (left < everywhere)
    return undecided
