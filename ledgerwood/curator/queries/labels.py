"""The number of rows and the sum of their labels, for an initial score.

The proofs are in docs/explanation/queries.md#label-moments.
"""

from dataclasses import dataclass
from typing import final

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.registry import TREES, Integers
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.mechanisms import BoxShifts, Grid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMoments:
    """(number of rows, sum of labels scaled to [-1, 1]), shape (2,).

    One row moves the count by 1 and the sum by at most 1 (docs/explanation/queries.md#label-moments). Of a table with
    weights, here and in all sums of rows, a row of weight w is w / weight_bound of a row, in count and sum, and moves
    them by no more (docs/explanation/queries.md#row-weights).
    """

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, 1); a replaced row leaves the count and moves the sum by 2."""
        if adjacency is Adjacency.REPLACE_ONE:
            return BoxShifts(boxes=((0.0, 2.0), (1.0, 1.0)))
        return BoxShifts(boxes=((1.0, 1.0),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCount:
    """Number of rows, shape (1,); private under add-remove, so that it has a privacy cost."""

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 under every adjacency (under replace-one a row that is invalid counts 0)."""
        return BoxShifts(boxes=((1.0,),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSum:
    """Sum of labels scaled to [-1, 1], shape (1,)."""

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1, or 2 where a row is replaced."""
        width = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        return BoxShifts(boxes=((width,),))


def _check(_: object, shape: TreeShape) -> None:
    """Of several classes none is the positive one, so that there is no sum of labels."""
    shape.require_class(None)


@TREES.carries_out(LabelMoments, check=_check)
def _moments(_: LabelMoments, rows: TreeRows) -> Integers:
    return _sums(rows)


@TREES.carries_out(LabelCount, check=_check)
def _count(_: LabelCount, rows: TreeRows) -> Integers:
    return _sums(rows)[:1]


@TREES.carries_out(LabelSum, check=_check)
def _sum(_: LabelSum, rows: TreeRows) -> Integers:
    return _sums(rows)[1:]


def _sums(rows: TreeRows) -> Integers:
    partial = rows.blocks(2)
    kernels.target_sums(rows.n_rows, rows.targets, rows.weights, rows.sampled, PER_UNIT, partial)
    return kernels.total(partial)
