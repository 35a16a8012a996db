"""Sums of gradients by leaf, with numbers of rows or with hessians, and their ratios: damped means with static noise.

All contributions are whole steps of 2**-20 of a unit, or whole units. Proofs: docs/explanation/queries.md, for ratios
#leaf-ratios.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, STEP, LargeGradients, Loss
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.classes.gradients import LeafClassGradients, class_gradient_sums
from ledgerwood.curator.queries.leaf_statistics import (
    LEAVES,
    MAX_CURVATURE_SCALE,
    MAX_DAMPING,
    LeafRows,
    LeafStatistic,
    gradient_clip,
    leaf_boxes,
    one_leaf_or_two,
    require_large_gradients,
)
from ledgerwood.curator.queries.registry import Integers, no_refusal
from ledgerwood.curator.queries.units import MAX_BITS, refuse_weights, scaled_boxes, whole_bits
from ledgerwood.curator.views.tree_rows import NO_FILTER, RowBudgets, TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BallShifts, BlockShifts, BoxShifts, Grid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafMoments(LeafStatistic[BoxShifts]):
    """(number of rows, sum of clipped gradients) of each leaf, shape (n_leaves, 2).

    Args:
        loss: squared (on labels scaled to [-1, 1]) or logistic.
        clip: largest absolute gradient that counts, > 0, in units of the gradient.
        large_gradients: what becomes of a row beyond it; the bound of a contribution is the same.
    """

    loss: Loss
    clip: float
    large_gradients: LargeGradients = "clip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    @property
    def width(self) -> int:
        """2: rows and gradients."""
        return 2

    @property
    def uses_scores(self) -> bool:
        """True: the sums are of gradients."""
        return True

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, clip) in one leaf; see docs/explanation/queries.md#leaf-moments for a replaced row."""
        return leaf_boxes(1.0, self.clip, adjacency)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCurvatures(LeafStatistic[BallShifts]):
    """(scaled hessian, clipped gradient) sums of the logistic loss in each leaf, shape (n_leaves, 2).

    Args:
        clip, large_gradients: as in `LeafMoments`.
        curvature_scale: the factor c in (0, 3.33] on the hessian; at 3.33 the joint norm is still 1.
    """

    clip: float
    curvature_scale: float = MAX_CURVATURE_SCALE
    large_gradients: LargeGradients = "clip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        scale = _validate.positive("curvature_scale", self.curvature_scale, "gradient units a unit of hessian")
        if scale > MAX_CURVATURE_SCALE:
            raise _validate.fail(
                "curvature_scale", scale, f"at most {MAX_CURVATURE_SCALE}", "gradient units a unit of hessian"
            )
        object.__setattr__(self, "curvature_scale", scale)

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    @property
    def width(self) -> int:
        """2: hessians and gradients."""
        return 2

    @property
    def uses_scores(self) -> bool:
        """True: the sums are of gradients."""
        return True

    @property
    def radius(self) -> float:
        """Supremum over u = |g| in [0, 1] of |(min(u, clip), c u (1 - u))|, rounded up.

        Derivation: docs/explanation/queries.md#leaf-curvatures.
        """
        c, clip = self.curvature_scale, min(self.clip, 1.0)
        knots = [clip, max(clip, 0.5)]
        if c * c > 8.0:
            knots.append((3.0 - math.sqrt(1.0 - 8.0 / (c * c))) / 4.0)
        squares = [min(u, clip) ** 2 + (c * u * (1.0 - u)) ** 2 for u in knots if 0.0 < u <= 1.0]
        # Ten roundings at most on the way to a square; 16 ulps cover them. Never above what the whole box allows.
        return math.nextafter(math.sqrt(max(squares) * (1.0 + 2.0**-48)), math.inf)

    @property
    def squared_radius_steps(self) -> int:
        """The largest squared norm of a contribution, in squared steps: exact, so that no row is above `radius`."""
        return self.squared_radius(STEP)

    def squared_radius(self, step: float) -> int:
        """The squared radius in squares of another step."""
        return math.floor((Fraction(self.radius) / Fraction(step)) ** 2)

    def sensitivity(self, adjacency: Adjacency) -> BallShifts:
        """A ball; a replaced row moves two contributions, in one leaf or in two: twice the radius bounds both."""
        return BallShifts(radius=self.radius * (2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0))


LeafSums = LeafMoments | LeafCurvatures
"""Statistics that add up contributions of single rows, which other queries part by bin, by side or in whole units."""


def require_sums(statistic: object, what: str) -> LeafSums:
    """The statistic, if it is one of sums: a foreign one, or a subclass, could state any sensitivity.

    Args:
        what: is asked of it, for the error.

    Raises:
        RoundViolation: it is not.
    """
    if isinstance(statistic, LeafSums) and type(statistic) in (LeafMoments, LeafCurvatures):
        return statistic
    raise RoundViolation(f"{type(statistic).__name__} is not a statistic of leaves that {what}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSums(LeafStatistic[BoxShifts | BallShifts | BlockShifts]):
    """Sums of a leaf statistic in whole units of 2**-bits, of its shape.

    Each row's contribution is truncated toward zero to whole units before it is added, so that its norm is no larger.
    For noise that is drawn on whole numbers, and of which parties may add shares
    (docs/explanation/queries.md#whole-sums).

    Args:
        leaf: what is added up; its rows have no weights of their own.
        bits: in [0, 20]; a unit is 2**-bits of the leaf statistic's.
        weight_bits: in [0, bits]; a unit of the first column, if it counts rows, is 2**-weight_bits rows. None: `bits`.

    Raises:
        InvalidParameter: another statistic, a number of bits outside its bound, a clip of less than a unit, or other
            units for the first column of `LeafCurvatures`, whose columns share one ball.
    """

    leaf: LeafSums | LeafClassGradients
    bits: int
    weight_bits: int | None = None

    def __post_init__(self) -> None:
        # A subclass could state any sensitivity.
        if type(self.leaf) not in (LeafMoments, LeafCurvatures, LeafClassGradients):
            wanted = "LeafMoments or LeafCurvatures, or LeafClassGradients"
            raise _validate.fail("leaf", type(self.leaf).__name__, wanted, "statistic")
        bits = whole_bits("bits", self.bits, MAX_BITS)
        weight_bits = bits if self.weight_bits is None else whole_bits("weight_bits", self.weight_bits, bits)
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "weight_bits", weight_bits)
        if weight_bits < bits and isinstance(self.leaf, LeafCurvatures):
            raise _validate.fail("weight_bits", weight_bits, f"{bits} for LeafCurvatures, as bits", "binary places")
        if self.leaf.clip * self.units < 1.0:
            raise _validate.fail("clip", self.leaf.clip, f"at least a unit of 2**-{bits}", "units of the gradient")

    @property
    def units(self) -> float:
        """Units to one of the leaf statistic's, a power of two."""
        return 2.0**self.bits

    @property
    def coarser(self) -> int:
        """By how many binary places the first column's unit is coarser than the second's."""
        assert self.weight_bits is not None  # set on construction
        return self.bits - self.weight_bits

    @property
    def squared_radius_units(self) -> int:
        """The largest squared norm of a contribution to `LeafCurvatures`, in squared units."""
        assert isinstance(self.leaf, LeafCurvatures)
        return self.leaf.squared_radius(1.0 / self.units)

    @property
    def grid(self) -> Grid:
        """Whole units."""
        return Grid(exponents=(0,) * self.width)

    @property
    def width(self) -> int:
        """That of the leaf statistic."""
        return self.leaf.width

    @property
    def uses_scores(self) -> bool:
        """True: the sums are of gradients."""
        return True

    @property
    def joint_classes(self) -> int:
        """That of the leaf statistic."""
        return self.leaf.joint_classes

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts | BallShifts | BlockShifts:
        """That of the leaf statistic, in units."""
        shifts, units = self.leaf.sensitivity(adjacency), (2.0 ** (self.bits - self.coarser), self.units)
        match shifts:
            case BallShifts():
                return BallShifts(radius=shifts.radius * self.units)
            case BlockShifts():
                return BlockShifts(norms=scaled_boxes(shifts.norms, units), sizes=shifts.sizes)
        return scaled_boxes(shifts, units)


class RowSteps(NamedTuple):
    """What a row of a leaf query adds, and in which units: what kernels of single contributions need.

    Args:
        leaf: what is added up.
        per_unit: steps to a unit of the leaf statistic's.
        squared_radius: the largest squared norm of a contribution to `LeafCurvatures`, in squared steps; else 0.
        coarser: by how many binary places the first column's steps are coarser.
    """

    leaf: LeafSums
    per_unit: float
    squared_radius: int
    coarser: int

    @classmethod
    def of(cls, statistic: object, what: str) -> "RowSteps":
        """The steps of a statistic of sums, whole or on the fine grid; raises as `require_sums`."""
        if type(statistic) is WholeSums:
            leaf = require_sums(statistic.leaf, what)
            squared = statistic.squared_radius_units if isinstance(leaf, LeafCurvatures) else 0
            return cls(leaf, statistic.units, squared, statistic.coarser)
        leaf = require_sums(statistic, what)
        return cls(leaf, PER_UNIT, leaf.squared_radius_steps if isinstance(leaf, LeafCurvatures) else 0, 0)

    @property
    def clip_steps(self) -> int:
        """The clip, in steps of the second column."""
        return int(self.leaf.clip * self.per_unit)

    @property
    def largest(self) -> tuple[int, int]:
        """What no first and no second contribution is above, in size."""
        return int(self.per_unit) >> self.coarser, self.clip_steps


def _each_row_pays(_: object) -> bool:
    return True


@LEAVES.carries_out(LeafMoments, check=no_refusal, filtered=_each_row_pays)
def _moments(statistic: LeafMoments, leaves: LeafRows) -> Integers:
    return moment_sums(statistic, leaves, leaves.rows.budgets)


@LEAVES.carries_out(LeafCurvatures, check=no_refusal, filtered=_each_row_pays)
def _curvatures(statistic: LeafCurvatures, leaves: LeafRows) -> Integers:
    return _curvature_sums(statistic, leaves, leaves.rows.budgets, PER_UNIT, statistic.squared_radius_steps)


def _check_whole(statistic: WholeSums, shape: TreeShape) -> None:
    if type(statistic.leaf) is not LeafClassGradients:
        require_sums(statistic.leaf, "has whole sums")
    refuse_weights(shape)


@LEAVES.carries_out(WholeSums, check=_check_whole)
def _whole(statistic: WholeSums, leaves: LeafRows) -> Integers:
    if isinstance(statistic.leaf, LeafMoments):
        sums = moment_sums(statistic.leaf, leaves, NO_FILTER, statistic.units)
        sums[:, 0] >>= statistic.coarser  # exact: each row adds one row
        return sums
    if isinstance(statistic.leaf, LeafClassGradients):
        sums = class_gradient_sums(statistic.leaf, leaves, NO_FILTER, 1.0 / statistic.units)
        sums[:, 0] >>= statistic.coarser
        return sums
    return _curvature_sums(statistic.leaf, leaves, NO_FILTER, statistic.units, statistic.squared_radius_units)


def moment_sums(
    statistic: LeafMoments, leaves: LeafRows, budgets: RowBudgets = NO_FILTER, per_unit: float = PER_UNIT
) -> Integers:
    """Numbers of rows and sums of clipped gradients by leaf, int64 (n_leaves, 2) in steps of 1 / per_unit."""
    rows, state = leaves.rows, leaves.state
    partial = rows.blocks(leaves.n_leaves, 2)
    with rows.routing(leaves.query.structure) as routed:
        kernels.moment_sums(
            rows.n_rows, *leaves.routed, state.scores, state.targets, rows.weights, rows.sampled,
            statistic.loss == "logistic", statistic.clip, per_unit, int(statistic.clip * per_unit),
            statistic.large_gradients == "drop", budgets.left, budgets.costs, *budgets.weights, routed, partial,
        )  # fmt: skip
    return kernels.total(partial)


def _curvature_sums(
    statistic: LeafCurvatures, leaves: LeafRows, budgets: RowBudgets, per_unit: float, squared_radius: int
) -> Integers:
    rows, state = leaves.rows, leaves.state
    partial = rows.blocks(leaves.n_leaves, 2)
    with rows.routing(leaves.query.structure) as routed:
        kernels.curvature_sums(
            rows.n_rows, *leaves.routed, state.scores, state.targets, rows.weights, rows.sampled,
            statistic.curvature_scale, statistic.clip, per_unit, squared_radius, statistic.large_gradients == "drop",
            budgets.left, budgets.costs, *budgets.weights, routed, partial,
        )  # fmt: skip
    return kernels.total(partial)


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
        """clip / (1 + damping), or the bound for `weighted`, plus one step for the truncated division.

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


def _check_ratios(statistic: LeafRatios, shape: TreeShape) -> None:
    if not statistic.weighted and shape.weighted:
        raise RoundViolation(
            "LeafRatios(weighted=False) is for rows of equal weight; the schema has weights: set weighted=True"
        )


def _divided(statistic: LeafRatios, moments: Integers, _: TreeShape) -> Integers:
    return ratios(moments, statistic)


@LEAVES.carries_out(LeafRatios, check=_check_ratios, finish=_divided, is_ratio=lambda _: True)
def _ratios(statistic: LeafRatios, leaves: LeafRows) -> Integers:
    """The sums that are divided once those of all rows are there."""
    sums = LeafMoments(loss=statistic.loss, clip=statistic.clip, large_gradients=statistic.large_gradients)
    return moment_sums(sums, leaves)


def ratios(moments: Integers, statistic: LeafRatios) -> Integers:
    """Sum / (count + damping) of each leaf in whole steps, truncated toward zero; Python integers, so exact."""
    steps, held = int(PER_UNIT), statistic.leaf_clip_steps
    found = []
    for count, total in moments.tolist():
        size = abs(total) * steps // (count + statistic.damping_steps)
        size = size if held is None else min(size, held)
        found.append([size if total >= 0 else -size])
    return np.array(found, dtype=np.int64)
