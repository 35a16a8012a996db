"""DPBoost's released code: training starts from the exact mean of the labels, and the model holds it."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoostFromAverage(Deterministic):
    """LightGBM's `boost_from_average`, on by default. docs/errata.md#errata-dpboost-data-reads."""

    name: ClassVar[str] = "dpboost-boost-from-average"
    source: ClassVar[str] = "released code, GBDT::BoostFromAverage and Tree::AddBias"
    anchor: ClassVar[str] = "errata-dpboost-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels; and without the last."""
        return np.array([-1.0, 0.5, 1.0]), np.array([-1.0, 0.5])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The score that is added to every leaf of the first tree."""
        return (float(dataset.mean()),)
