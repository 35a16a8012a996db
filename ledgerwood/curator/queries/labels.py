"""The number of rows and the sum of their labels, for an initial score.

The proofs are in docs/explanation/queries.md#label-moments.
"""

from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.registry import TREES, Integers
from ledgerwood.curator.queries.units import (
    grid_of,
    refuse_weights,
    scaled_boxes,
    steps_per_unit,
    whole_bits,
)
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.mechanisms import BoxShifts, Grid

COARSER = 1
"""By how many binary places whole units of rows are coarser than those of labels, whose sum is worth more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMoments:
    """(number of rows, sum of labels scaled to [-1, 1]), shape (2,).

    One row moves the count by 1 and the sum by at most 1 (docs/explanation/queries.md#label-moments). Of a table with
    weights, here and in all sums of rows, a row of weight w is w / weight_bound of a row, in count and sum, and moves
    them by no more (docs/explanation/queries.md#row-weights).

    Args:
        bits: in [0, 20]: whole units of 2**-bits, for noise of whole numbers and rows without weights; a unit of
            rows is twice that (docs/explanation/queries.md#whole-sums). None: the grid of all sums.

    Raises:
        InvalidParameter: a number of bits outside [1, 20].
    """

    bits: int | None = None

    def __post_init__(self) -> None:
        if self.bits is not None:
            object.__setattr__(self, "bits", whole_bits("bits", self.bits))
            if self.bits < COARSER:
                raise _validate.fail("bits", self.bits, f"at least {COARSER}", "binary places")

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return grid_of(self.bits, 2)

    @property
    def units(self) -> tuple[float, float]:
        """Units to a row, and to a label of 1; (1, 1) on the grid of all sums, whose releases have no units."""
        return (1.0, 1.0) if self.bits is None else (2.0 ** (self.bits - COARSER), 2.0**self.bits)

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, 1), in units; a replaced row leaves the count and moves the sum by 2."""
        boxes = ((0.0, 2.0), (1.0, 1.0)) if adjacency is Adjacency.REPLACE_ONE else ((1.0, 1.0),)
        return scaled_boxes(BoxShifts(boxes=boxes), self.units)


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


def _check_moments(query: LabelMoments, shape: TreeShape) -> None:
    _check(query, shape)
    if query.bits is not None:
        refuse_weights(shape)


@TREES.carries_out(LabelMoments, check=_check_moments)
def _moments(query: LabelMoments, rows: TreeRows) -> Integers:
    sums = _sums(rows, steps_per_unit(query.bits))
    if query.bits is not None:
        sums[0] >>= COARSER  # exact: each row counts the same power of two
    return sums


@TREES.carries_out(LabelCount, check=_check)
def _count(_: LabelCount, rows: TreeRows) -> Integers:
    return _sums(rows)[:1]


@TREES.carries_out(LabelSum, check=_check)
def _sum(_: LabelSum, rows: TreeRows) -> Integers:
    return _sums(rows)[1:]


def _sums(rows: TreeRows, per_unit: float = PER_UNIT) -> Integers:
    partial = rows.blocks(2)
    kernels.target_sums(rows.n_rows, rows.targets, rows.weights, rows.sampled, per_unit, partial)
    return kernels.total(partial)
