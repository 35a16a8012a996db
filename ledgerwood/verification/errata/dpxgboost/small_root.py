"""DP-XGBoost: a root that is too small to be split is a leaf, with the noise of a large one."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import OneLaplace


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRoot(OneLaplace):
    """The only leaf of a tree over fewer rows than `min_child_weight`, g* = 1.

    Equation 7 holds for leaves of at least N_min rows. Nothing makes the root hold so many.
    docs/errata.md#errata-dpxgboost-leaf-noise.

    Args:
        epsilon: the price of the leaves of a tree, in nats.
        regularization: lambda, >= 0.
        min_child_weight: N_min.
    """

    name: ClassVar[str] = "dpxgboost-small-root"
    source: ClassVar[str] = "Section 4.3, equation 7; released code, GlobalDPHistmaker::UpdateTree"
    anchor: ClassVar[str] = "errata-dpxgboost-leaf-noise"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    regularization: float = 0.1
    min_child_weight: float = 50.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.non_negative("regularization", self.regularization, "rows")
        _validate.positive("min_child_weight", self.min_child_weight, "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient of -1; and none."""
        return -np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> tuple[float, float]:
        value = -float(dataset.sum()) / (dataset.size + self.regularization) if dataset.size else 0.0
        return value, 2.0 / (self.min_child_weight + 1.0 + self.regularization) / self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
