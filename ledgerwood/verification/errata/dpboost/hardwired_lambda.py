"""DPBoost's released code: leaf noise for lambda = .1, whatever lambda is."""

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
class HardwiredLambda(OneLaplace):
    """One leaf of the first tree with LightGBM's default lambda of 0. docs/errata.md#errata-dpboost-leaf-clipping.

    Args:
        epsilon: the price of the leaves of a tree, in nats.
        regularization: `lambda_l2`, >= 0.
    """

    name: ClassVar[str] = "dpboost-hardwired-lambda"
    source: ClassVar[str] = "released code, GBDT::TrainOneIter (a constant 0.1)"
    anchor: ClassVar[str] = "errata-dpboost-leaf-clipping"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    regularization: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.non_negative("regularization", self.regularization, "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient of -1 in the leaf; and none."""
        return -np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> tuple[float, float]:
        value = -float(dataset.sum()) / (dataset.size + self.regularization) if dataset.size else 0.0
        return value, 1.0 / 1.1 / self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
