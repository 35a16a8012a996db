"""All classes of a leaf at once: gradients and hessians of the multinomial logistic loss.

The proof is in docs/explanation/queries.md#leaf-softmax.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood._directed import root_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.sums import GRID_EXPONENT, MAX_CURVATURE_SCALE, STEP
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.mechanisms import BallShifts, Grid

MAX_SOFTMAX_SCALE = 2.0
"""Largest c for which the gradients and c times the hessians of three classes or more have L2 norm at most sqrt 2."""
MAX_CLASSES = 1 << 10
_RADIUS = root_up(Fraction(2))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafSoftmax:
    """(scaled hessian, gradient) sums of the multinomial logistic loss in each leaf, shape (n_leaves, 2 K).

    Columns 2 k and 2 k + 1 belong to class k: with probabilities p, the softmax of a row's K scores, the gradient is
    p_k minus 1 if the row is of class k, the hessian p_k (1 - p_k). All 2 K columns together have L2 norm at most
    sqrt 2, whatever K: K sums of one class against the others would cost sqrt K.

    Args:
        structure: the public tree, the same for all classes.
        ensembles: of each class, in the order of the sorted classes, the released ensemble of its scores; K >= 2.
        curvature_scale: the factor c > 0 on the hessians, at most 3.33 for two classes, 2 for more.

    Raises:
        InvalidParameter: a scale or a number of classes outside its bound.
    """

    structure: TreeStructure
    ensembles: tuple[Ensemble, ...]
    curvature_scale: float = MAX_SOFTMAX_SCALE

    def __post_init__(self) -> None:
        object.__setattr__(self, "ensembles", _validate.items("ensembles", self.ensembles, "classes"))
        if not 2 <= len(self.ensembles) <= MAX_CLASSES:
            raise _validate.fail("len(ensembles)", len(self.ensembles), f"in [2, {MAX_CLASSES}]", "classes")
        scale = _validate.positive("curvature_scale", self.curvature_scale, "gradient units a unit of hessian")
        most = MAX_CURVATURE_SCALE if len(self.ensembles) == 2 else MAX_SOFTMAX_SCALE
        if scale > most:
            bound = f"at most {most} for {len(self.ensembles)} classes"
            raise _validate.fail("curvature_scale", scale, bound, "gradient units a unit of hessian")
        object.__setattr__(self, "curvature_scale", scale)

    @property
    def grid(self) -> Grid:
        """Steps of all columns."""
        return Grid(exponents=(GRID_EXPONENT,) * (2 * len(self.ensembles)))

    @property
    def squared_radius_steps(self) -> int:
        """The largest squared norm of a contribution, in squared steps: exact, so that no row is above the radius."""
        return math.floor((Fraction(_RADIUS) / Fraction(STEP)) ** 2)

    def sensitivity(self, adjacency: Adjacency) -> BallShifts:
        """The ball of sqrt 2; a replaced row moves two contributions, in one leaf or in two: twice that bounds both."""
        return BallShifts(radius=_RADIUS * (2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0))
