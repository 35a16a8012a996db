"""DP-XGBoost's released code: the sensitivity of the gain for a constant hessian, with the logistic loss."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.gains import softmax
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonGain(Finite):
    """Gains S^2 / (H + lambda) of badly predicted rows; by candidate, one more row joins its like or its opposite.

    A row's gradient is p - y and its hessian p (1 - p): 0.99 and 0.0099, both signs.
    docs/errata.md#errata-dpxgboost-newton.

    Args:
        epsilon: the price of the choice, in nats.
        count: rows of either sign besides the one that differs; their hessians sum to more than the default minimum, 1.
    """

    name: ClassVar[str] = "dpxgboost-newton-gain"
    source: ClassVar[str] = "equation 5; released code, GBTree::ConfigureUpdaters (binary:logistic) and exponentialMech"
    anchor: ClassVar[str] = "errata-dpxgboost-newton"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.05
    count: int = 200

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        if _validate.count("count", self.count, "rows") < 102:
            raise _validate.fail("count", self.count, "at least 102", "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (gradient, side under the first candidate, under the second); and without the last."""
        rows = np.repeat([[0.99, 0.0, 0.0], [-0.99, 1.0, 1.0]], self.count, axis=0)
        return np.concatenate([rows, [[0.99, 0.0, 1.0]]]), rows

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        gradients, *sides = dataset.T
        hessians = np.abs(gradients) * (1.0 - np.abs(gradients))
        gains = [
            sum(gradients[part].sum() ** 2 / (hessians[part].sum() + 0.1) for part in (side == 0.0, side == 1.0))
            for side in sides
        ]
        return softmax(self.epsilon * np.array(gains) / 6.0)

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
