"""DPBoost's released code: a node is split if both sides hold 20 rows, counted exactly."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MinDataInLeaf(Deterministic):
    """The root is split at one half, or not at all. docs/errata.md#errata-dpboost-structure."""

    name: ClassVar[str] = "dpboost-min-data-in-leaf"
    source: ClassVar[str] = (
        "released code, SerialTreeLearner::BeforeFindBestSplit and FeatureHistogram; LightGBM's min_data_in_leaf = 20"
    )
    anchor: ClassVar[str] = "errata-dpboost-structure"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of the feature, 20 on either side of one half; and one less above it."""
        rows = np.repeat([0.25, 0.75], 20)
        return rows, rows[:-1]

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 where the root is split."""
        below = int(np.count_nonzero(dataset < 0.5))
        return (float(min(below, dataset.size - below) >= 20),)
