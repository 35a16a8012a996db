"""DP-XGBoost's released code: gradients are filtered in the histograms, and not in the leaves."""

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
class UnfilteredStatistics(OneLaplace):
    """One leaf of many rows and one label far outside [-1, 1], g* = 1.

    Only its clip bounds the leaf, at g* on both sides: the sensitivity is 2 g*, not 2 g* / (N_min + 1 + lambda).
    docs/errata.md#errata-dpxgboost-leaf-noise.

    Args:
        epsilon: the price of the leaves of a tree, in nats.
        regularization: lambda, >= 0.
        min_child_weight: N_min; the leaf holds twice as many rows.
        label: that of the row that differs.
    """

    name: ClassVar[str] = "dpxgboost-unfiltered-statistics"
    source: ClassVar[str] = "released code, GlobalDPHistmaker::CreateHistDP (GetNodeStats) and UpdateTree"
    anchor: ClassVar[str] = "errata-dpxgboost-leaf-noise"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    regularization: float = 0.1
    min_child_weight: int = 50
    label: float = 1e5

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.non_negative("regularization", self.regularization, "rows")
        _validate.count("min_child_weight", self.min_child_weight, "rows")
        _validate.positive("label", self.label, "units of the label")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients of 0.5 and that of the far label at score 0; and without the latter."""
        rows = np.full(2 * self.min_child_weight, 0.5)
        return np.append(rows, -self.label), rows

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> tuple[float, float]:
        value = -float(dataset.sum()) / (dataset.size + self.regularization)
        return min(max(value, -1.0), 1.0), 2.0 / (self.min_child_weight + 1.0 + self.regularization) / self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
