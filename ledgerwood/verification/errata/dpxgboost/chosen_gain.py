"""DP-XGBoost's released code: the split that was chosen is dropped if its exact gain is not positive."""

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
class ChosenGain(Finite):
    """Two candidates, of which the second is useless without a row: to choose it then shows as a leaf.

    g* = 1, lambda .1. docs/errata.md#errata-dpxgboost-structure.

    Args:
        epsilon: the price of the choice, in nats.
    """

    name: ClassVar[str] = "dpxgboost-chosen-gain"
    source: ClassVar[str] = (
        "Section 4.3 (a maximum gain that is too small); released code, GlobalDPHistmaker::FindSplitDP"
    )
    anchor: ClassVar[str] = "errata-dpxgboost-structure"
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
        """Rows (gradient, side under the first candidate, under the second); and without the last."""
        rows = np.array([[g, 0.5 - 0.5 * g, side] for g in (1.0, -1.0) for side in (0.0, 1.0)])
        return np.concatenate([rows, [[1.0, 0.0, 0.0]]]), rows

    @property
    def witness(self) -> float:
        return 100.0

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of a leaf, the first split, the second split."""
        gradients, *sides = dataset.T
        gains = np.array([gain(gradients, side, 0.1) for side in sides]) - score(gradients, 0.1)
        chosen, kept = softmax(self.epsilon * np.maximum(gains, 0.0) / 6.0), gains > 1e-6
        return np.append(chosen[~kept].sum(), np.where(kept, chosen, 0.0))

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
