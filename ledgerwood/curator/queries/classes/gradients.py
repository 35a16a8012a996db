"""Sums of the multinomial loss's gradients by leaf: one tree for all classes.

The proof is in docs/explanation/queries.md#class-gradients.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood._directed import root_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, STEP
from ledgerwood.curator.kernels import class_sums, sums
from ledgerwood.curator.queries.classes.counts import class_number
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafRows, LeafStatistic, gradient_clip, leaf_boxes
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.curator.views.tree_rows import RowBudgets, TreeShape
from ledgerwood.mechanisms import BlockShifts, Grid

LARGEST_CLASS_GRADIENT = root_up(Fraction(2))
"""sqrt(2), rounded up: no gradient of the multinomial loss is longer, for any number of classes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafClassGradients(LeafStatistic[BlockShifts]):
    """(number of rows, sum of clipped gradients for each class) of each leaf, shape (n_leaves, 1 + classes).

    The gradient of the multinomial loss is p - e: the probabilities of the classes by the row's scores, one for each
    class in their sorted order, less the unit vector of the row's class.

    Args:
        classes: the number K of the target's declared classes.
        clip: largest Euclidean norm of a row's gradient, > 0: a longer one is scaled down. From sqrt(2) on, none is.

    Raises:
        InvalidParameter: a number of classes outside [2, 2**10], or a clip outside its bounds.
    """

    classes: int
    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_number(self.classes))
        object.__setattr__(self, "clip", gradient_clip(self.clip))

    @property
    def grid(self) -> Grid:
        """Steps of all columns."""
        return Grid(exponents=(GRID_EXPONENT,) * self.width)

    @property
    def width(self) -> int:
        """The rows, and one gradient for each class."""
        return 1 + self.classes

    @property
    def uses_scores(self) -> bool:
        """True: the sums are of gradients."""
        return True

    @property
    def joint_classes(self) -> int:
        """K: a score of each row for each class, by trees that all classes share."""
        return self.classes

    @property
    def radius(self) -> float:
        """The largest Euclidean norm of a row's gradient."""
        return min(self.clip, LARGEST_CLASS_GRADIENT)

    def squared_radius(self, step: float) -> int:
        """The largest squared norm of a row's gradient, in squares of a step; floored from the exact number."""
        return math.floor((Fraction(self.radius) / Fraction(step)) ** 2)

    def sensitivity(self, adjacency: Adjacency) -> BlockShifts:
        """One row and a gradient of norm `radius` in one leaf; a replaced row: up to twice that, or two leaves.

        Derivation: docs/explanation/queries.md#class-gradients.
        """
        return BlockShifts(norms=leaf_boxes(1.0, self.radius, adjacency), sizes=(1, self.classes))


def _check_classes(statistic: LeafClassGradients, shape: TreeShape) -> None:
    shape.require_classes(statistic.classes)


@LEAVES.carries_out(LeafClassGradients, check=_check_classes, filtered=lambda _: True)
def _class_gradients(statistic: LeafClassGradients, leaves: LeafRows) -> Integers:
    return class_gradient_sums(statistic, leaves, leaves.rows.budgets, STEP)


def class_gradient_sums(statistic: LeafClassGradients, leaves: LeafRows, budgets: RowBudgets, step: float) -> Integers:
    """Numbers of rows and sums of clipped gradients by leaf, int64 (n_leaves, 1 + classes) in such steps."""
    rows, scores = leaves.rows, leaves.class_scores
    partial = rows.blocks(leaves.n_leaves, statistic.width)
    with rows.routing(leaves.query.structure) as routed:
        class_sums.class_gradient_sums(
            rows.n_rows, *leaves.routed, scores, rows.labelled, rows.weights, rows.sampled, statistic.radius,
            1.0 / step, statistic.squared_radius(step), budgets.left, budgets.costs, *budgets.weights, routed, partial,
        )  # fmt: skip
    return sums.total(partial)
