"""Sums of leaves in whole units: for noise that is drawn on whole numbers, and of which parties may add shares.

The proof is in docs/explanation/queries.md#whole-sums.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.sums import GRID_EXPONENT, LeafCurvatures, LeafMoments
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid

MAX_BITS = -GRID_EXPONENT


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeSums:
    """What a leaf query adds up, in whole units of 2**-bits, shape (n_leaves, 2).

    Each row's contribution is truncated toward zero to whole units before it is added, so that its norm is no larger.

    Args:
        leaf: the query; its rows have no weights of their own.
        bits: in [0, 20]; a unit is 2**-bits of the leaf query's.

    Raises:
        InvalidParameter: another query, a number of bits outside its bound, or a clip of less than a unit.
    """

    leaf: LeafMoments | LeafCurvatures
    bits: int

    def __post_init__(self) -> None:
        # A subclass could state any sensitivity.
        if type(self.leaf) not in (LeafMoments, LeafCurvatures):
            raise _validate.fail("leaf", type(self.leaf).__name__, "LeafMoments or LeafCurvatures", "query")
        bits = _validate.count("bits", self.bits, "binary places", minimum=0)
        if bits > MAX_BITS:
            raise _validate.fail("bits", bits, f"at most {MAX_BITS}", "binary places")
        object.__setattr__(self, "bits", bits)
        if self.leaf.clip * self.units < 1.0:
            raise _validate.fail("clip", self.leaf.clip, f"at least a unit of 2**-{bits}", "units of the gradient")

    @property
    def units(self) -> float:
        """Units to one of the leaf query's, a power of two."""
        return 2.0**self.bits

    @property
    def squared_radius_units(self) -> int:
        """Of `LeafCurvatures`: the largest squared norm of a contribution, in squared units."""
        assert isinstance(self.leaf, LeafCurvatures)
        return math.floor((Fraction(self.leaf.radius) * Fraction(self.units)) ** 2)

    @property
    def grid(self) -> Grid:
        """Whole units."""
        return Grid(exponents=(0, 0))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts | BallShifts:
        """That of the leaf query, in units."""
        shifts = self.leaf.sensitivity(adjacency)
        if isinstance(shifts, BallShifts):
            return BallShifts(radius=shifts.radius * self.units)
        return BoxShifts(boxes=self._scaled(shifts.l2_boxes), l1_boxes=self._scaled(shifts.l1_boxes))

    def _scaled(self, boxes: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        # By a power of two: exact.
        return tuple(tuple(bound * self.units for bound in box) for box in boxes)
