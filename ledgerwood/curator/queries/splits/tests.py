"""The tests that a level's splits are chosen from, and the choice of one for each node, whatever the utility is.

The tests are public, of the cells and the tree's structure alone: all those of fine grids are points of one line for
each node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.ensemble import MAX_DEPTH, FeatureCells, SplitTests, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import ExponentialMechanism, Grid, PermuteAndFlipMechanism, RandomSource
from ledgerwood.mechanisms.choices.selection import MOST_POINTS

GainMechanism = ExponentialMechanism | PermuteAndFlipMechanism
MAX_CELLS = 1 << 24
"""Most nodes times cells, or tests, of one level: a histogram of 256 MiB, and as many candidates as a choice has."""
_LEAST_WEIGHT = 64
"""Of a test, where features have weights: rounding to a whole number changes none by more than 1 part in 128."""


def require_level(structure: TreeStructure, tests: SplitTests, classes: int) -> None:
    """Refuse a tree that is too deep, and a level of too many counts by class.

    Raises:
        InvalidParameter: so it is.
    """
    if structure.depth >= MAX_DEPTH:
        raise _validate.fail("depth", structure.depth + 1, f"at most {MAX_DEPTH}", "levels")
    size = structure.n_leaves * classes * max(TestedCells.of(tests).total, len(tests))
    if size > MAX_CELLS:
        raise _validate.fail("nodes * classes * cells", size, f"at most {MAX_CELLS}", "cells of a level")


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
        set_tests, set_cells: int64 (m,), further cells that go left, those of sets, and the test of each; in the order
            of the tests.
    """

    features: Integers
    offsets: Integers
    start: Integers
    stop: Integers
    besides: Integers
    last: Integers
    first: Integers
    set_tests: Integers
    set_cells: Integers

    @classmethod
    def of(cls, tests: SplitTests) -> "TestedCells":
        """The splits among these public tests, each cell below the last one by itself."""
        feature, below, besides = _lowered(tests)
        if (feature[1:] >= feature[:-1]).all():  # as `SplitTests.every` lists them: `numpy.unique` would sort
            begins = np.append(True, feature[1:] != feature[:-1])
            features, place = feature[begins], np.cumsum(begins) - 1
        else:
            features, place = np.unique(feature, return_inverse=True)
        widths = np.zeros(len(features), dtype=np.int64)
        np.maximum.at(widths, place, np.maximum(below, besides + 1))
        set_tests, set_cells = _set_cells(tests)
        np.maximum.at(widths, place[set_tests], set_cells + 1)
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
            set_tests=set_tests,
            set_cells=first[set_tests] + set_cells,
        )

    def joined(self, structure: TreeStructure | None = None) -> "TestedCells":
        """Merges neighbouring cells that no test, and no node of a structure, separates."""
        begins = np.zeros(self.total + 1, dtype=np.bool_)
        begins[self.offsets] = begins[self.stop] = begins[self.last] = True
        one = self.besides[self.besides >= 0]
        begins[one] = begins[one + 1] = True
        begins[self.set_cells] = begins[self.set_cells + 1] = True
        if structure is not None and structure.depth:
            feature, below, besides = _lowered(structure)
            nodes, cells = _set_cells(structure)
            every = np.arange(len(feature))
            cuts = ((every, below), (every, besides), (every, besides + 1), (nodes, cells), (nodes, cells + 1))
            for node, cell in cuts:
                place = np.searchsorted(self.features, feature[node])
                place[place == len(self.features)] = 0
                inside = (self.features[place] == feature[node]) & (cell >= 0) & (cell < np.diff(self.offsets)[place])
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
            set_tests=self.set_tests,
            set_cells=number[self.set_cells],
        )

    def lookup(self) -> Integers:
        """Maps each cell of each feature to the index of its representative; (f, n), the rest to the last."""
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

    def sides(self, counts: Integers) -> tuple[Integers, Integers]:
        """The rows of each class that each test sends left, and right, each int64 (n_nodes, n_tests, classes).

        Args:
            counts: int64 (n_nodes, total, classes), rows by cell.
        """
        below = np.zeros((counts.shape[0], self.total + 1, counts.shape[2]), dtype=np.int64)
        np.cumsum(counts, axis=1, out=below[:, 1:])
        left = below[:, self.stop] - below[:, self.start]
        besides = np.flatnonzero(self.besides >= 0)
        left[:, besides] += counts[:, self.besides[besides]]
        np.add.at(left.swapaxes(0, 1), self.set_tests, counts[:, self.set_cells].swapaxes(0, 1))
        return left, below[:, self.last + 1] - below[:, self.start] - left

    def reached(self, structure: TreeStructure) -> NDArray[np.bool_]:
        """The cells that a row of each leaf may have, shape (n_leaves, total), by the tests above it."""
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
            for node in np.flatnonzero(besides[:, 0] < -1):
                assert structure.left_sets is not None
                marked = np.flatnonzero(structure.left_sets[-2 - besides[node, 0]])
                left[node] = np.isin(self.first, marked) | (others & (self.first <= marked.max(initial=-1)))
            children = np.stack((reached & (elsewhere | left), reached & (elsewhere | ~left | others)), axis=1)
            reached = children.reshape(-1, self.total)
        return reached


def _lowered(of: SplitTests | TreeStructure) -> tuple[Integers, Integers, Integers]:
    feature, below, besides = (array.astype(np.int64) for array in of.lowered()[:3])
    return feature, below, besides


def _set_cells(of: SplitTests | TreeStructure) -> tuple[Integers, Integers]:
    """The cells of all tests of sets, test after test: the test of each, and the cell among its feature's own."""
    none = np.empty(0, dtype=np.int64)
    if of.left_sets is None or of.besides is None:
        return none, none
    tests = np.flatnonzero(of.besides < -1)
    places, cells = np.nonzero(of.left_sets[-2 - of.besides[tests]])
    return tests[places], cells


def require_choice(query: object, mechanism: object) -> None:
    """Refuse what does not choose among tests: a subclass could draw from another distribution than its event prices.

    Raises:
        RoundViolation: it does not.
    """
    if type(mechanism) not in get_args(GainMechanism):
        names = " or ".join(kind.__name__ for kind in get_args(GainMechanism))
        raise RoundViolation(f"{type(query).__name__} needs {names}, not {type(mechanism).__name__}")


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
    """The tests that a path has not decided, shape (n_nodes, n_tests): some cell may go left, and some right."""
    cells = TestedCells.of(tests).joined(structure)
    open_cells = cells.reached(structure)
    below = np.zeros((len(open_cells), cells.total + 1), dtype=np.int64)
    np.cumsum(open_cells, axis=1, out=below[:, 1:])
    left = below[:, cells.stop] - below[:, cells.start]
    left += np.where(cells.besides < 0, 0, open_cells[:, cells.besides])
    np.add.at(left.T, cells.set_tests, open_cells[:, cells.set_cells].T)
    everywhere = below[:, cells.last + 1] - below[:, cells.start]
    undecided: NDArray[np.bool_] = (left > 0) & (left < everywhere)
    return undecided


def count_tests(cells: FeatureCells) -> int:
    """The number of tests that `SplitTests.every` makes of a feature."""
    return (1 + len(cells.equality)) * max(0, cells.ordered - 1) + len(cells.equality)


def count_parts(cells: FeatureCells) -> int:
    """The number of parts and tests of equality that `CandidateParts` has for a feature."""
    more = 1 + len(cells.equality)
    return (more if cells.ordered > 1 else 0) + (more if cells.equality else 0)


def weights_of_tests(cells: Sequence[FeatureCells], numeric_weight: float | None) -> tuple[int, ...]:
    """The public weight of each test of each feature; it depends on declared cells alone.

    Args:
        cells: of each feature.
        numeric_weight: r of Algorithms 2 and 3 of S-GBDT's paper: what all tests of a feature with thresholds weigh
            together, where a test of another feature weighs 1; to within 1 %, since weights are whole numbers. None: a
            feature with n tests has max(1, P // n) for each, where P is the largest number of tests of a feature.

    Raises:
        InvalidParameter: all tests weigh 2**40 or more.
    """
    sizes = [count_tests(each) for each in cells]
    if numeric_weight is None:
        weights = [max(sizes) // max(1, size) for size in sizes]
    else:
        numeric = [each.ordered > 1 for each in cells]
        most = max((size for size, own in zip(sizes, numeric, strict=True) if own), default=0)
        unit = _LEAST_WEIGHT * max(1.0, most / numeric_weight)
        weights = [
            round(unit * numeric_weight / size) if own else round(unit)
            for size, own in zip(sizes, numeric, strict=True)
        ]
    points = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
    if points >= MOST_POINTS:
        raise _validate.fail("points", points, "< 2**40", "weighted tests of all features")
    return tuple(weights)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateParts:
    """Tests of features in parts: a feature's thresholds, again for each extra left cell, then its tests of equality.

    Each test has a public weight: see `weights_of_tests`.

    Args:
        feature: int64 (n_parts,), rising.
        ordered: int64 (n_parts,), the ordered cells, >= 2, of thresholds 1 .. ordered - 1; 0 for tests of equality.
        besides: int64 (n_parts,), a cell on the left of every threshold, or -1.
        offsets: int64 (n_parts + 1,), where each part's cells of `equal` begin, and the end; none for thresholds.
        equal: int64 (n_equal,), the cells tested by equality.
        width: int64 (n_parts,), the number of cells that the feature's tests separate; all further cells count as
            "other".
        weight: int64 (n_parts,), of each test.
    """

    feature: Integers
    ordered: Integers
    besides: Integers
    offsets: Integers
    equal: Integers
    width: Integers
    weight: Integers

    @classmethod
    def of(cls, cells: Sequence[FeatureCells], numeric_weight: float | None = None) -> "CandidateParts":
        """The parts of the features that can be split; other features have none.

        Args:
            cells: of each feature.
            numeric_weight: as in `weights_of_tests`, which raises what it raises.
        """
        rows: list[tuple[int, ...]] = []
        equal: list[int] = []
        for number, (each, weight) in enumerate(zip(cells, weights_of_tests(cells, numeric_weight), strict=True)):
            width = max(each.ordered - 1, *(cell + 1 for cell in each.equality), 0)
            if each.ordered > 1:
                rows += [(number, each.ordered, besides, 0, width, weight) for besides in (-1, *each.equality)]
            if each.equality:
                rows.append((number, 0, -1, len(each.equality), width, weight))
                equal += each.equality
        feature, ordered, besides, counts, widths, weights = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
        return cls(
            feature=feature,
            ordered=ordered,
            besides=besides,
            offsets=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts))),
            equal=np.array(equal, dtype=np.int64),
            width=widths,
            weight=weights,
        )

    def __len__(self) -> int:
        return len(self.feature)

    def equal_of(self, part: int) -> int:
        """Where in `equal` the cell besides a part's thresholds is, which its feature tests by equality too."""
        last = int(np.searchsorted(self.feature, self.feature[part], side="right")) - 1
        own = slice(int(self.offsets[last]), int(self.offsets[last + 1]))
        return own.start + int(np.flatnonzero(self.equal[own] == self.besides[part])[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelPoints:
    """The candidates of each node in one line of points, part after part, each as many points as it weighs.

    By the public cells and the structure alone: docs/explanation/gains.md#gain-candidates.

    Args:
        first, stop: int64 (n_parts, n_nodes): thresholds first .. stop - 1 are undecided; of tests of equality, as many
            as stop - first are.
        equal_open: bool (n_nodes, n_equal), which cells' tests of equality are undecided.
        start: int64 (n_parts, n_nodes), the first point of each part in the node's line.
        totals: int64 (n_nodes,), the points of each node.
    """

    first: Integers
    stop: Integers
    equal_open: NDArray[np.bool_]
    start: Integers
    totals: Integers

    @classmethod
    def of(cls, parts: CandidateParts, structure: TreeStructure) -> "LevelPoints":
        """The candidate points of the leaves of a tree."""
        first = np.empty((len(parts), structure.n_leaves), dtype=np.int64)
        stop = np.empty(first.shape, dtype=np.int64)
        equal_open = np.empty((structure.n_leaves, len(parts.equal)), dtype=np.bool_)
        _open(
            parts.feature, parts.ordered, parts.besides, parts.offsets, parts.equal, parts.width,
            *structure.lowered()[:3], first, stop, equal_open,
        )  # fmt: skip
        ends = np.cumsum((stop - first) * parts.weight[:, np.newaxis], axis=0)
        start = np.concatenate((np.zeros((1, structure.n_leaves), dtype=np.int64), ends[:-1]))
        return cls(first=first, stop=stop, equal_open=equal_open, start=start, totals=ends[-1])

    def test(self, parts: CandidateParts, node: int, point: int) -> tuple[int, int, bool, int]:
        """The feature, the split, whether it is equality, and the cell besides, of the candidate that a point is of."""
        part = int(np.searchsorted(self.start[:, node], point, side="right")) - 1
        place = (point - int(self.start[part, node])) // int(parts.weight[part])
        feature = int(parts.feature[part])
        if parts.ordered[part]:
            return feature, int(self.first[part, node]) + place, False, int(parts.besides[part])
        own = slice(parts.offsets[part], parts.offsets[part + 1])
        return feature, int(parts.equal[own][self.equal_open[node, own]][place]), True, -1


@numba.njit(cache=True)
def _open(feature, ordered, besides, offsets, equal, width, tested, below, other, first, stop, equal_open):  # type: ignore[no-untyped-def]
    """Fill `LevelPoints`; the tree comes as `Lowered`: (tested, below, other)."""
    inner = len(tested)
    depth = 0
    while (1 << depth) - 1 < inner:
        depth += 1
    tests, lefts = np.empty(depth, dtype=np.int64), np.empty(depth, dtype=np.bool_)
    for node in range(inner + 1):
        for part in range(len(feature)):
            # The tests of this feature on the path from the root.
            n = 0
            at = inner + node
            while at > 0:
                parent = (at - 1) // 2
                if tested[parent] == feature[part]:
                    tests[n], lefts[n] = parent, at == 2 * parent + 1
                    n += 1
                at = parent
            path = tests[:n]
            least, most = _reached(path, lefts, below, other, width[part], -1)
            if ordered[part] == 0:
                first[part, node], stop[part, node] = 0, 0
                for place in range(offsets[part], offsets[part + 1]):
                    is_open = least < most and _reaches(path, lefts, below, other, width[part], equal[place])
                    equal_open[node, place] = is_open
                    stop[part, node] += is_open
            else:
                low = least + 1
                if besides[part] >= 0:
                    _, most = _reached(path, lefts, below, other, width[part], besides[part])
                    if _reaches(path, lefts, below, other, width[part], besides[part]):
                        low = 1
                first[part, node] = max(low, 1)
                stop[part, node] = max(min(most, ordered[part] - 1) + 1, first[part, node])


@numba.njit(cache=True)
def _reaches(path, lefts, below, other, width, cell):  # type: ignore[no-untyped-def]
    """Returns whether a row of this cell may be here; the cell `width` stands for all others, which a test may part."""
    for place in range(len(path)):
        test = path[place]
        left = cell < below[test] or cell == other[test]
        if cell == width:
            if lefts[place] and not left and not cell < other[test]:
                return False
        elif left != lefts[place]:
            return False
    return True


@numba.njit(cache=True)
def _reached(path, lefts, below, other, width, without):  # type: ignore[no-untyped-def]
    """The least and the largest cell that a row here may have, but for one; width + 1 and -1 where there is none."""
    # They are at an end of the line, or next to a cell at which a test, or the exception, cuts it.
    least, most = width + 1, -1
    for place in range(-2, len(path)):
        for near in range(-1, 2):
            for cut in range(2):
                if place == -2:
                    cell = without + near
                elif place == -1:
                    cell = 0 if cut == 0 else width + near
                else:
                    cell = np.int64(below[path[place]] if cut == 0 else other[path[place]]) + near
                if 0 <= cell <= width and cell != without and _reaches(path, lefts, below, other, width, cell):
                    least, most = min(least, cell), max(most, cell)
    return least, most
