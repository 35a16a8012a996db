"""DP-XGBoost's Algorithm 1: a noisy sum over the exact number of rows."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import OneLaplace


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAverage(OneLaplace):
    """One leaf, g* = 1: two Laplace laws whose scales tell the count.

    The shift of the sum costs up to epsilon; the ratio of the heights, (n + 1 + lambda) / (n + lambda), comes on top.
    docs/errata.md#errata-dpxgboost-noisy-average.

    Args:
        epsilon: the claimed price, in nats.
        regularization: lambda, >= 0; > 0 for an empty leaf.
        count: n, the rows of the leaf without the one that differs.
    """

    name: ClassVar[str] = "dpxgboost-noisy-average"
    source: ClassVar[str] = "Section 4.3, Algorithm 1; not used by the released code"
    anchor: ClassVar[str] = "errata-dpxgboost-noisy-average"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE
    ends: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    epsilon: float = 0.1
    regularization: float = 0.1
    count: int = 1

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.non_negative("regularization", self.regularization, "rows")
        _validate.count("count", self.count, "rows", minimum=0)
        if self.count == 0 and self.regularization == 0.0:
            raise _validate.fail("regularization", self.regularization, "> 0 for an empty leaf", "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients of 1, `count` of them, and one of -1; and without the latter."""
        rows = np.ones(self.count)
        return np.append(rows, -1.0), rows

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> tuple[float, float]:
        rows = dataset.size + self.regularization
        return -float(dataset.sum()) / rows, 2.0 / self.epsilon / rows

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"pure epsilon, {count} rows", self.epsilon, replace(self, count=count).pure_epsilon())
            for count in (0, 1, 5, 50, 500)
        )
