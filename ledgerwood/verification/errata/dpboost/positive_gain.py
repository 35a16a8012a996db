"""DPBoost's released code: a split that does not improve on its node has probability 0."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.gains import gain, score, softmax
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PositiveGain(Finite):
    """Three candidates with the code's own sensitivity of 3, g* = 1, lambda .1; the last is useless without a row.

    The gain is that of the split less that of the node; where this is not positive it is set to 0, and a gain of 0 is
    left out of the choice. docs/errata.md#errata-dpboost-structure.

    Args:
        epsilon: the price of the choice, in nats.
    """

    name: ClassVar[str] = "dpboost-positive-gain"
    source: ClassVar[str] = "released code, FeatureHistogram::FindBestThresholdSequence and SerialTreeLearner::Train"
    anchor: ClassVar[str] = "errata-dpboost-structure"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (gradient, side under each of two like candidates, under the last); and without the last row."""
        rows = np.array([[g, 0.5 - 0.5 * g, 0.5 - 0.5 * g, side] for g in (1.0, -1.0) for side in (0.0, 1.0)])
        return np.concatenate([rows, [[1.0, 0.0, 0.0, 0.0]]]), rows

    @property
    def witness(self) -> float:
        return 100.0

    def law(self, dataset: FloatArray) -> FloatArray:
        gradients, *sides = dataset.T
        gains = np.array([gain(gradients, side, 0.1) for side in sides]) - score(gradients, 0.1)
        return softmax(np.where(gains > 0.0, self.epsilon * gains / 6.0, -np.inf))

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
