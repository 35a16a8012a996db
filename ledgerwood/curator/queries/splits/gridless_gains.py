"""Private splits by their gains among all thresholds of fine public grids, at a cost per row and not per threshold.

The candidates are those of `SplitTests.every`; the choice is by the exponential mechanism over all of them, proven in
docs/explanation/gains.md#gridless-gains.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.curator.grid import GRID_EXPONENT
from ledgerwood.curator.kernels import sorted_gains as kernels
from ledgerwood.curator.queries.registry import TREE_CHOICES, Integers
from ledgerwood.curator.queries.splits.gains import LevelGains, check_level, level_contributions
from ledgerwood.curator.queries.splits.tests import CandidateParts, LevelPoints, count_parts, count_tests
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import GridlessMechanism, NumericCandidates, RandomSource
from ledgerwood.mechanisms.choices.selection import MOST_POINTS

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
    """Chooses among all tests of the grid for every node of a tree's last level, by gain; releases a `SplitTests`.

    The candidates are those of `SplitTests.every(cells)` that the path to a node has not decided, as in `SplitGains`.
    Each has a public weight such that features weigh about the same: see `CandidateParts`.

    Args:
        structure, ensemble, loss, clip, damping, large_gradients, positive: as in `LevelGains`.
        cells: the cells of each feature of the table, as `Schema.cells` gives them; public.

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


def _check(query: GridlessGains, shape: TreeShape) -> None:
    check_level(query, shape)
    if len(query.cells) != shape.n_features:
        raise RoundViolation(f"candidates of {len(query.cells)} features: the table has {shape.n_features}")


@TREE_CHOICES.carries_out(GridlessGains, check=_check, over_parts="one part")
def _grouped_gains(query: GridlessGains, rows: TreeRows) -> GroupedGains:
    """The exact gains of all points, a group where the rows of a node do not tell points apart."""
    chosen, nodes, gradients, weights = level_contributions(query, rows)
    parts, level = query.parts, query.points
    visits = len(nodes) * len(parts)
    weighted = len(weights) > 0
    given = (weights.astype(np.int64) << kernels.WEIGHT_BITS) + gradients if weighted else gradients
    bounds = np.zeros(query.structure.n_leaves + 1, dtype=np.int64)
    totals = np.zeros((query.structure.n_leaves, 2), dtype=np.int64)
    own_rows, own_steps = np.empty(len(nodes), dtype=np.int64), np.empty(len(nodes), dtype=given.dtype)
    kernels.rows_by_node(chosen, nodes, given, weighted, bounds, totals, own_rows, own_steps)
    thresholds = parts.ordered > 0
    features, inverse = np.unique(parts.feature[thresholds], return_inverse=True)
    place = np.full(len(parts), -1, dtype=np.int64)
    place[thresholds] = inverse
    keys = np.empty((len(features), len(nodes)), dtype=np.uint16)
    steps = np.empty(keys.shape, dtype=given.dtype)
    kernels.sort_rows(visits, len(features), rows.cells, features, own_rows, own_steps, bounds, keys, steps)
    groups = np.where(thresholds[:, np.newaxis], np.int64(0), level.stop - level.first)
    kernels.count_groups(visits, len(parts), place, keys, bounds, level.first, level.stop, groups)
    stops = np.cumsum(groups.T.ravel())
    starts = np.ascontiguousarray((stops - groups.T.ravel()).reshape(groups.T.shape).T)
    ends, gains = np.empty(stops[-1], dtype=np.int64), np.empty(stops[-1], dtype=np.int64)
    shift = GRID_EXPONENT - query.grid.exponents[0]
    # An argument: numba's file cache would not see that a constant of another file changed.
    row = np.uint64(1 if weighted else 2**-GRID_EXPONENT)
    division = row, np.uint64(query.damping_steps), max(shift, 0), max(-shift, 0)
    kernels.fill_thresholds(
        visits, len(parts), place, keys, steps, weighted, bounds, totals, parts.besides, parts.weight, level.first,
        level.stop, level.start, starts, division, ends, gains,
    )  # fmt: skip
    kernels.fill_equalities(
        visits, len(parts), rows.cells, own_rows, own_steps, weighted, bounds, totals, parts.feature, parts.offsets,
        parts.equal, parts.width, parts.weight, level.equal_open, level.start, starts, division, ends, gains,
    )  # fmt: skip
    return GroupedGains(offsets=np.concatenate((starts[0], stops[-1:])), ends=ends, gains=gains)
