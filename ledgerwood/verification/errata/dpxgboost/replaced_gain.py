"""DP-XGBoost's equation 5, and DPBoost's code since November 2020: 3 g*^2 where a row is replaced."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.gains import gain, softmax
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedGain(Finite):
    """One split by exp(epsilon G / 6), g* = 1, lambda .1. A row of gradient -1 moves between two cells of the features.

    The left sides hold gradients of 1, the right sides of -1. The first candidate has the row on the right and loses
    almost 4 when it moves, the `alike` others gain as much. docs/errata.md#errata-dpxgboost-gain.

    Args:
        epsilon: the price of the choice, in nats.
        count: rows of either sign besides the one that moves.
        alike: candidates that gain.
    """

    name: ClassVar[str] = "dpxgboost-replaced-gain"
    source: ClassVar[str] = (
        "Section 2 (data sets of n rows that differ by one instance), equation 5; DPBoost's code from commit 1174730"
    )
    anchor: ClassVar[str] = "errata-dpxgboost-gain"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    epsilon: float = 1.0
    count: int = 1000
    alike: int = 20

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("count", self.count, "rows")
        _validate.count("alike", self.alike, "candidates")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (gradient, cell), the cell 2 times the side under the first candidate plus that under the others."""
        rows = np.repeat([[1.0, 0.0], [-1.0, 3.0]], self.count, axis=0)
        return np.concatenate([rows, [[-1.0, 2.0]]]), np.concatenate([rows, [[-1.0, 1.0]]])

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        gradients, cells = dataset.T
        first, others = (gain(gradients, side, 0.1) for side in (cells // 2.0, cells % 2.0))
        return softmax(self.epsilon * np.append(first, np.full(self.alike, others)) / 6.0)

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
