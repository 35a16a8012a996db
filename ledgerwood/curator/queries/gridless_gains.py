"""Private splits by their gains among all thresholds of fine public grids, at a cost per row and not per threshold.

The candidates are those of `SplitTests.every`; the law is that of the exponential mechanism over all of them, proven in
docs/explanation/gains.md#gridless-gains.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.curator.queries.candidate_points import CandidateParts, LevelPoints, count_parts, count_tests
from ledgerwood.curator.queries.gains import LevelGains
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.mechanisms import GridlessMechanism, NumericCandidates, RandomSource
from ledgerwood.mechanisms.choices.selection import MOST_POINTS

Integers = NDArray[np.int64]
_CELLS = 1 << 16
"""A cell is a uint16."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedGains:
    """Points of one gain, node after node; what the groups are depends on the rows, what they cover does not.

    Args:
        offsets: int64 (n_nodes + 1,), where each node's groups begin, and the end.
        ends: int64 (n_groups,), the point after a group's last one on the node's `LevelPoints`; rising in a node.
        gains: int64 (n_groups,), in steps of the query's grid.
    """

    offsets: Integers
    ends: Integers
    gains: Integers


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridlessGains(LevelGains):
    """For every node of a tree's last level, one of all tests of the grid, by its gain; released is a `SplitTests`.

    The candidates are those of `SplitTests.every(cells)` that the path to a node has not decided, as in `SplitGains`.
    Each has a public weight such that features weigh about the same: see `CandidateParts`.

    Args:
        structure, ensemble, loss, clip, damping, large_gradients, positive: as in `LevelGains`.
        cells: of each feature of the table, as `Schema.cells` gives them; public.

    Raises:
        InvalidParameter: a value outside its bound; no test at all; a cell tested by equality that is not distinct, in
            [ordered, 2**16); a level of more than 2**24 nodes times parts and tests of equality, or of 2**40 points.
    """

    cells: tuple[FeatureCells, ...]

    def __post_init__(self) -> None:
        LevelGains.__post_init__(self)  # a class with slots is made twice: super() would not know it
        object.__setattr__(self, "cells", tuple(_owned(each) for each in self.cells))
        # Before any array is made of them: so many may be asked for that none fits.
        tests = [count_tests(each) for each in self.cells]
        if not any(tests):
            raise _validate.fail("tests", 0, ">= 1", "tests")
        self._require_size(sum(count_parts(each) for each in self.cells))
        points = sum(max(tests) // each * each for each in tests if each)
        if points >= MOST_POINTS:
            raise _validate.fail("points", points, "< 2**40", "weighted tests of all features")

    @property
    def parts(self) -> CandidateParts:
        """The candidates of a node whose path has decided none."""
        return CandidateParts.of(self.cells)

    @property
    def points(self) -> LevelPoints:
        """The candidates of each node."""
        return LevelPoints.of(self.parts, self.structure)

    def event(self, mechanism: GridlessMechanism, adjacency: Adjacency) -> BoundedRangeEvent:
        """That of one node, for all nodes of the level: docs/explanation/gains.md#gain-levels."""
        self._require_mechanism(mechanism, (GridlessMechanism,))
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: GridlessMechanism, evidence: GroupedGains, source: RandomSource) -> SplitTests:
        """One test a node, shape (n_nodes,), from the gains of the groups."""
        parts, points = self.parts, self.points
        chosen = [_EVERY_ROW_RIGHT] * self.structure.n_leaves
        for node, total in enumerate(points.totals.tolist()):
            if total:
                groups = slice(int(evidence.offsets[node]), int(evidence.offsets[node + 1]))
                candidates = NumericCandidates(
                    positions=evidence.ends[groups][:-1], points=total, utilities=evidence.gains[groups]
                )
                point = mechanism.select((candidates,), self.grid, source).point
                chosen[node] = points.test(parts, node, point)
        return SplitTests(
            feature=np.array([test[0] for test in chosen], dtype=np.int32),
            split=np.array([test[1] for test in chosen], dtype=np.uint16),
            equals=np.array([test[2] for test in chosen], dtype=np.bool_),
            besides=np.array([test[3] for test in chosen], dtype=np.int32),
        )


_EVERY_ROW_RIGHT = (0, 0, False, -1)


def _owned(cells: object) -> FeatureCells:
    own = FeatureCells.owned(cells)
    ordered, equality = own.ordered, own.equality
    if ordered > _CELLS:
        raise _validate.fail("ordered", ordered, f"at most {_CELLS}", "cells")
    if len(set(equality)) != len(equality) or any(not ordered <= cell < _CELLS for cell in equality):
        raise _validate.fail("equality", equality, f"distinct, in [ordered={ordered}, {_CELLS})", "cells")
    return own
