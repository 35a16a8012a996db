"""DP-XGBoost: a split needs the minimum child weight on both sides, counted exactly."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MinChildWeight(Deterministic):
    """A root of two halves at `min_child_weight` 50 is split, or not. docs/errata.md#errata-dpxgboost-structure."""

    name: ClassVar[str] = "dpxgboost-min-child-weight"
    source: ClassVar[str] = "Section 4.3; released code, GlobalDPHistmaker::EnumerateSplitDP"
    anchor: ClassVar[str] = "errata-dpxgboost-structure"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of the feature, 50 on either side of one half; and one less above it."""
        rows = np.repeat([0.25, 0.75], 50)
        return rows, rows[:-1]

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 where the root is split."""
        below = int(np.count_nonzero(dataset < 0.5))
        return (float(min(below, dataset.size - below) >= 50),)
