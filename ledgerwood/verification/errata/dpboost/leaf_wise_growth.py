"""DPBoost's released code: the leaf that is split next is the one with the best exact gain."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict
from ledgerwood.verification.errata.gains import gain, score


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafWiseGrowth(Deterministic):
    """Which of two leaves the next split goes to. docs/errata.md#errata-dpboost-structure."""

    name: ClassVar[str] = "dpboost-leaf-wise-growth"
    source: ClassVar[str] = "released code, SerialTreeLearner::Train (ArgMax of best_split_per_leaf_)"
    anchor: ClassVar[str] = "errata-dpboost-structure"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (leaf, side, gradient), two leaves alike but for one row more in the second; and without it."""
        rows = np.array([[leaf, side, 1.0 - 2.0 * side] for leaf in (0.0, 1.0) for side in (0.0, 1.0)])
        return np.concatenate([rows, [[1.0, 0.0, 1.0]]]), rows

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of the leaf; of equal ones the first."""
        gains = []
        for leaf in (0.0, 1.0):
            _, side, gradients = dataset[dataset[:, 0] == leaf].T
            gains.append(gain(gradients, side, 0.1) - score(gradients, 0.1))
        return (float(np.argmax(gains)),)
