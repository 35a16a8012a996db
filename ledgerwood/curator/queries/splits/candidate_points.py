"""The candidates of a level's nodes among all tests of fine grids, as public points of one line a node.

Public: of the cells and the tree's structure alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import FeatureCells, TreeStructure

Integers = NDArray[np.int64]


def count_tests(cells: FeatureCells) -> int:
    """How many tests `SplitTests.every` makes of a feature."""
    return (1 + len(cells.equality)) * max(0, cells.ordered - 1) + len(cells.equality)


def count_parts(cells: FeatureCells) -> int:
    """How many parts and tests of equality `CandidateParts` has of a feature."""
    more = 1 + len(cells.equality)
    return (more if cells.ordered > 1 else 0) + (more if cells.equality else 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateParts:
    """The tests of features in parts: a feature's thresholds, once more for each cell besides, its tests of equality.

    A test of a feature that has n of them weighs max(1, P // n), where P is the most tests that a feature has: by the
    public cells alone.

    Args:
        feature: int64 (n_parts,), rising.
        ordered: int64 (n_parts,), the ordered cells, >= 2, of thresholds 1 .. ordered - 1; 0 for tests of equality.
        besides: int64 (n_parts,), a cell on the left of every threshold, or -1.
        offsets: int64 (n_parts + 1,), where each part's cells of `equal` begin, and the end; none for thresholds.
        equal: int64 (n_equal,), the cells tested by equality.
        width: int64 (n_parts,), the cells of the feature that its tests tell apart; from there on they are others.
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
    def of(cls, cells: Sequence[FeatureCells]) -> "CandidateParts":
        """The parts of the features that can be split; other features have none."""
        rows: list[tuple[int, ...]] = []
        equal: list[int] = []
        sizes = [count_tests(each) for each in cells]
        for number, (each, size) in enumerate(zip(cells, sizes, strict=True)):
            width = max(each.ordered - 1, *(cell + 1 for cell in each.equality), 0)
            weight = max(sizes) // max(1, size)
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
