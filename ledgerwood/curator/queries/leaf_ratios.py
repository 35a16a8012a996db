"""A damped mean of the gradients in each leaf: static leaf noise.

The proofs are in docs/explanation/queries.md#leaf-ratios.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, STEP, LargeGradients, Loss
from ledgerwood.curator.queries.gradients import (
    MAX_DAMPING,
    gradient_clip,
    one_leaf_or_two,
    require_large_gradients,
)
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafRows, LeafStatistic
from ledgerwood.curator.queries.leaf_sums import LeafMoments, moment_sums
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.curator.views.tree_shape import TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, Grid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRatios(LeafStatistic[BoxShifts]):
    """Sum of clipped gradients over (number of rows + damping) of each leaf, shape (n_leaves, 1): static leaf noise.

    Args:
        loss, clip, large_gradients: as in `LeafMoments`.
        damping: lambda > 0 of the denominator, in rows, taken down to a whole number of steps.
        leaf_clip: largest absolute ratio, in [2**-20, 2**8] units of the gradient, taken down to a whole number of
            steps (the geometric leaf clipping of DPBoost, 2020); None for no bound but the clip's.
        weighted: whether rows may have their own weights; the denominator then is their sum, and its bound larger.
    """

    loss: Loss
    clip: float
    damping: float
    large_gradients: LargeGradients = "clip"
    leaf_clip: float | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        damping = _validate.positive("damping", self.damping, "rows")
        if not STEP <= damping <= MAX_DAMPING:
            raise _validate.fail("damping", damping, f"in [{STEP}, {MAX_DAMPING}]", "rows")
        object.__setattr__(self, "damping", damping)
        if self.leaf_clip is not None:
            object.__setattr__(self, "leaf_clip", gradient_clip(self.leaf_clip, "leaf_clip"))
        # Another object could answer the table, which asks whether the bound fits, otherwise than the price.
        if not isinstance(self.weighted, bool):
            raise _validate.fail("weighted", self.weighted, "True or False", "flag")

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    @property
    def width(self) -> int:
        """1: the ratio."""
        return 1

    @property
    def uses_scores(self) -> bool:
        """True: the ratios use gradients, which depend on the scores."""
        return True

    @property
    def damping_steps(self) -> int:
        """The damping that is used, in steps."""
        return int(self.damping / STEP)

    @property
    def leaf_clip_steps(self) -> int | None:
        """The largest absolute ratio, in steps; None for no bound but the clip's."""
        return None if self.leaf_clip is None else int(self.leaf_clip / STEP)

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """clip / (1 + damping), or what `weighted` makes of it, plus one step for the division that is truncated.

        At most twice the leaf clip. Derivation: docs/explanation/queries.md#leaf-ratios,
        docs/explanation/queries.md#weighted-ratios and docs/explanation/queries.md#leaf-clipping.
        """
        step, damping, held = Fraction(STEP), self.damping_steps * Fraction(STEP), self.leaf_clip_steps
        alone = Fraction(self.clip) / (1 + damping)
        # sqrt(damping (damping + 2)), rounded down: 40 bits beyond the steps.
        root = Fraction(math.isqrt(self.damping_steps * (self.damping_steps + round(2 / STEP)) << 80), 1 << 60)
        bound = 2 * Fraction(self.clip) / (1 + damping + root) if self.weighted else alone
        # In one leaf both rows count, and the ratio moves by at most twice `alone`; in two leaves by one bound in each.
        once, within = (
            (float_up(move if held is None else min(move, 2 * held * step)),)
            for move in (bound + step, 2 * alone + step)
        )
        return one_leaf_or_two(within, once) if adjacency is Adjacency.REPLACE_ONE else BoxShifts(boxes=(once,))


def _check(statistic: LeafRatios, shape: TreeShape) -> None:
    if not statistic.weighted and shape.weighted:
        raise RoundViolation(
            "LeafRatios(weighted=False) states what one row changes where all weigh the same; the schema has a "
            "weight_bound: set weighted=True"
        )


@LEAVES.carries_out(LeafRatios, check=_check)
def _ratios(statistic: LeafRatios, leaves: LeafRows) -> Integers:
    sums = LeafMoments(loss=statistic.loss, clip=statistic.clip, large_gradients=statistic.large_gradients)
    return ratios(moment_sums(sums, leaves), statistic)


def ratios(moments: Integers, statistic: LeafRatios) -> Integers:
    """Sum / (count + damping) of each leaf in whole steps, truncated toward zero; Python integers, so exact."""
    steps, held = int(PER_UNIT), statistic.leaf_clip_steps
    found = []
    for count, total in moments.tolist():
        size = abs(total) * steps // (count + statistic.damping_steps)
        size = size if held is None else min(size, held)
        found.append([size if total >= 0 else -size])
    return np.array(found, dtype=np.int64)
