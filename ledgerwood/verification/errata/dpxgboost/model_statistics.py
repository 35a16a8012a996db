"""DP-XGBoost's released code: a saved model holds every node's exact weight."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatistics(Deterministic):
    """`sum_hessian` and `base_weights` of the root, as they are saved. docs/errata.md#errata-dpxgboost-model."""

    name: ClassVar[str] = "dpxgboost-model-statistics"
    source: ClassVar[str] = "released code, GlobalDPHistmaker::SetStats and RegTree::SaveModel"
    anchor: ClassVar[str] = "errata-dpxgboost-model"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients; and without the last."""
        return np.array([-0.5, 0.25, 0.5]), np.array([-0.5, 0.25])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(sum_hessian, base_weight) for lambda .1."""
        return float(dataset.size), float(-dataset.sum()) / (dataset.size + 0.1)
