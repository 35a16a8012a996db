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
from ledgerwood.curator.undeclared_queries import BinCounts
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import AdjacencyMismatch, RoundViolation
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

    One row moves the count by 1 and the sum by at most 1 (docs/explanation/queries.md#label-moments).
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
    """

    structure: TreeStructure
    ensemble: Ensemble
    loss: Loss
    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", _clip(self.clip))

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return Grid(exponents=(GRID_EXPONENT, GRID_EXPONENT))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, clip) in one leaf; see docs/explanation/queries.md#leaf-moments for a replaced row."""
        return _leaf_boxes(1.0, self.clip, adjacency)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafCurvatures:
    """(scaled hessian, clipped gradient) sums of the logistic loss in each leaf, shape (n_leaves, 2).

    Args:
        structure, ensemble, clip: as in `LeafMoments`.
        curvature_scale: the factor c in (0, 3.33] on the hessian; at 3.33 the joint norm is still 1.
    """

    structure: TreeStructure
    ensemble: Ensemble
    clip: float
    curvature_scale: float = MAX_CURVATURE_SCALE

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", _clip(self.clip))
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
        structure, ensemble, loss, clip: as in `LeafMoments`.
        damping: lambda > 0 of the denominator, in rows, taken down to a whole number of steps.
    """

    structure: TreeStructure
    ensemble: Ensemble
    loss: Loss
    clip: float
    damping: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", _clip(self.clip))
        damping = _validate.positive("damping", self.damping, "rows")
        if not STEP <= damping <= MAX_DAMPING:
            raise _validate.fail("damping", damping, f"in [{STEP}, {MAX_DAMPING}]", "rows")
        object.__setattr__(self, "damping", damping)

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    @property
    def damping_steps(self) -> int:
        """The damping that is used, in steps."""
        return int(self.damping / STEP)

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """clip / (1 + damping), plus one step for the division that is truncated.

        Derivation: docs/explanation/queries.md#leaf-ratios.
        """
        step = Fraction(STEP)
        bound = Fraction(self.clip) / (1 + self.damping_steps * step)
        once = (float_up(bound + step),)
        if adjacency is Adjacency.REPLACE_ONE:
            # In one leaf the count stands and the ratio moves by at most 2 bounds; in two leaves by one bound in each.
            return _one_leaf_or_two((float_up(2 * bound + step),), once)
        return BoxShifts(boxes=(once,))


LeafQuery = LeafMoments | LeafCurvatures | LeafRatios
AnyQuery = LabelMoments | LabelCount | LabelSum | LeafQuery | BinCounts


def known_query(query: object) -> AnyQuery:
    """The query, if it is one of this module's: a foreign one, or a subclass, could state any sensitivity.

    Raises:
        RoundViolation: it is not.
    """
    if isinstance(query, AnyQuery) and type(query) in get_args(AnyQuery):
        return query
    raise RoundViolation(f"{type(query).__name__} is not a query that this curator carries out")


def _leaf_boxes(first: float, second: float, adjacency: Adjacency) -> BoxShifts:
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


def _clip(value: float) -> float:
    clip = _validate.positive("clip", value, "units of the gradient")
    if not STEP <= clip <= MAX_CLIP:
        raise _validate.fail("clip", clip, f"in [{STEP}, {MAX_CLIP}]", "units of the gradient")
    return clip
