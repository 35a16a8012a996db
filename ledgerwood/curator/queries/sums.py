"""Public descriptions of statistics, each with its shift set under an adjacency.

Frozen; built from public values only (tree structures, released ensembles, clip norms). The proofs are in
docs/explanation/queries.md. All contributions are whole steps of 2**-20 of a unit.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeVar, final, get_args

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import AdjacencyMismatch
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid

GRID_EXPONENT = -20
STEP = 2.0**GRID_EXPONENT
MAX_CURVATURE_SCALE = 3.33
"""Largest c, rounded down from phi**2.5 = 3.33019..., for which (g, c h) of the logistic loss has L2 norm at most 1."""

MAX_CLIP = 2.0**8
"""Largest clip, in units of the gradient. A leaf's sum then stays below 2**63 steps for fewer than 2**35 rows, which a
ratio needs: a division, unlike a sum, does not survive a wrap-around."""
MAX_DAMPING = 2.0**40

Loss = Literal["squared", "logistic"]
LargeGradients = Literal["clip", "drop"]
"""A row whose gradient is beyond the clip counts with the clip, or not at all (DPBoost's gradient-based filtering)."""
S_co = TypeVar("S_co", covariant=True)


class Query(Protocol[S_co]):
    """A statistic: what one row can change in it, and the grid on which it is an integer."""

    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """The shifts of the statistic between neighbouring tables."""

    @property
    def grid(self) -> Grid:
        """Steps of the statistic's columns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMoments:
    """(number of rows, sum of labels scaled to [-1, 1]), shape (2,).

    One row moves the count by 1 and the sum by at most 1 (docs/explanation/queries.md#label-moments). Of a table with
    weights, here and below, a row of weight w is w / weight_bound of a row, in count and sum, and moves them by no more
    (docs/explanation/queries.md#row-weights).
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
    """Number of rows, shape (1,); private under add-remove, so that it has a price."""

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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafMoments:
    """(number of rows, sum of clipped gradients) of each leaf, shape (n_leaves, 2).

    Args:
        structure: the public tree.
        ensemble: the released ensemble whose scores give the gradients.
        loss: squared (on labels scaled to [-1, 1]) or logistic.
        clip: largest absolute gradient that counts, > 0, in units of the gradient.
        large_gradients: what becomes of a row beyond it; the bound of a contribution is the same.
        positive: the class, by its place among the sorted ones, that is told from all others; None where the target is
            a number, or for the second one of two classes.
    """

    structure: TreeStructure
    ensemble: Ensemble
    loss: Loss
    clip: float
    large_gradients: LargeGradients = "clip"
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        object.__setattr__(self, "positive", class_place(self.positive))

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, clip) in one leaf; see docs/explanation/queries.md#leaf-moments for a replaced row."""
        return leaf_boxes(1.0, self.clip, adjacency)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafCurvatures:
    """(scaled hessian, clipped gradient) sums of the logistic loss in each leaf, shape (n_leaves, 2).

    Args:
        structure, ensemble, clip, large_gradients, positive: as in `LeafMoments`.
        curvature_scale: the factor c in (0, 3.33] on the hessian; at 3.33 the joint norm is still 1.
    """

    structure: TreeStructure
    ensemble: Ensemble
    clip: float
    curvature_scale: float = MAX_CURVATURE_SCALE
    large_gradients: LargeGradients = "clip"
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        object.__setattr__(self, "positive", class_place(self.positive))
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
        return math.floor((Fraction(self.radius) / Fraction(STEP)) ** 2)

    def sensitivity(self, adjacency: Adjacency) -> BallShifts:
        """A ball; a replaced row moves two contributions, in one leaf or in two: twice the radius bounds both."""
        return BallShifts(radius=self.radius * (2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafRatios:
    """Sum of clipped gradients over (number of rows + damping) of each leaf, shape (n_leaves, 1): static leaf noise.

    Args:
        structure, ensemble, loss, clip, large_gradients, positive: as in `LeafMoments`.
        damping: lambda > 0 of the denominator, in rows, taken down to a whole number of steps.
        leaf_clip: largest absolute ratio, in [2**-20, 2**8] units of the gradient, taken down to a whole number of
            steps (the geometric leaf clipping of DPBoost, 2020); None for no bound but the clip's.
        weighted: whether rows may have weights of their own; the denominator then is their sum, and its bound larger.
    """

    structure: TreeStructure
    ensemble: Ensemble
    loss: Loss
    clip: float
    damping: float
    large_gradients: LargeGradients = "clip"
    leaf_clip: float | None = None
    weighted: bool = False
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", gradient_clip(self.clip))
        require_large_gradients(self.large_gradients)
        object.__setattr__(self, "positive", class_place(self.positive))
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
        return _one_leaf_or_two(within, once) if adjacency is Adjacency.REPLACE_ONE else BoxShifts(boxes=(once,))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionFit:
    """How well an ensemble predicts the rows' labels, shape (1,): a sum with between 0 and 1 a row.

    A row of the logistic loss counts 1 if its class is predicted, else 0; one of the squared loss counts 1 - (error /
    width)**2, or 0 if that is negative. More is better (docs/explanation/queries.md#prediction-fit).

    Args:
        ensemble: the released ensemble.
        loss: squared (on labels and predictions in [-1, 1]) or logistic.
        width: the error that counts 0, in [2**-10, 2], for the squared loss; half a label range is 1.
    """

    ensemble: Ensemble
    loss: Loss
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", fit_width(self.width))

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 under every adjacency: a row counts between 0 and 1, and so does the one in its place."""
        return BoxShifts(boxes=((1.0,),))


LeafQuery = LeafMoments | LeafCurvatures | LeafRatios
SummedQuery = LeafMoments | LeafCurvatures
"""A leaf query that adds up contributions of single rows, so that what a row changes is its own contribution."""


def leaf_boxes(first: float, second: float, adjacency: Adjacency) -> BoxShifts:
    """The shifts of sums by leaf, where a row adds up to (first, second) to the one leaf that it is in."""
    match adjacency:
        case Adjacency.ADD_REMOVE | Adjacency.ZERO_OUT:
            return BoxShifts(boxes=((first, second),))
        case Adjacency.REPLACE_ONE:
            return _one_leaf_or_two((0.0, 2.0 * second), (first, second))
    raise AdjacencyMismatch(f"no shift set is known under adjacency {adjacency!r}")


def _one_leaf_or_two(within: tuple[float, ...], contribution: tuple[float, ...]) -> BoxShifts:
    """A replaced row changes inside one leaf by `within`, or takes its contribution from one leaf to another."""
    moved = BoxShifts.moved(boxes=(contribution,))
    return BoxShifts(boxes=(within, *moved.boxes), l1_boxes=(within, *moved.l1_boxes))


def fit_width(value: object) -> float:
    """A `PredictionFit`'s width."""
    width = _validate.positive("width", value, "half label ranges")
    if not 2.0**-10 <= width <= 2.0:
        raise _validate.fail("width", value, "in [2**-10, 2]", "half label ranges")
    return width


def gradient_clip(value: float, name: str = "clip") -> float:
    """A leaf query's or a gain's clip; an error calls it `name`."""
    clip = _validate.positive(name, value, "units of the gradient")
    if not STEP <= clip <= MAX_CLIP:
        raise _validate.fail(name, clip, f"in [{STEP}, {MAX_CLIP}]", "units of the gradient")
    return clip


def require_large_gradients(value: object) -> None:
    """Refuse what is no `LargeGradients`."""
    if value not in get_args(LargeGradients):
        raise _validate.fail("large_gradients", value, "'clip' or 'drop'", "name")


def class_place(value: object) -> int | None:
    """A query's `positive`: a plain whole number, since it is compared with the classes of the rows, or None."""
    return None if value is None else _validate.count("positive", value, "classes", minimum=0)
