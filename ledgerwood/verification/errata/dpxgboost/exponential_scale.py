"""DP-XGBoost's section 2: the exponential mechanism without the 2."""

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
class ExponentialScale(Finite):
    """A choice by exp(epsilon u / Delta u), where one row adds Delta u to one utility and takes it from all others.

    docs/errata.md#errata-dpxgboost-misprints.

    Args:
        epsilon: the claimed price, in nats.
        others: candidates besides the first.
    """

    name: ClassVar[str] = "dpxgboost-exponential-scale"
    source: ClassVar[str] = "Section 2, the exponential mechanism; Section 4.2 has it right"
    anchor: ClassVar[str] = "errata-dpxgboost-misprints"
    verdict: ClassVar[Verdict] = "misprint"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    others: int = 20

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("others", self.others, "candidates")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row that votes for the first candidate; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        votes = float(dataset.sum())
        return softmax(self.epsilon * np.append(votes, np.full(self.others, -votes)))

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
