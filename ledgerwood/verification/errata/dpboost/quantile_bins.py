"""DPBoost's released code: the split values are the borders of LightGBM's bins, cut from the training rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileBins(Deterministic):
    """Two bins of equal count; their border is a threshold of the model. docs/errata.md#errata-dpboost-data-reads."""

    name: ClassVar[str] = "dpboost-quantile-bins"
    source: ClassVar[str] = "Algorithm 1, line 6 (each split value); released code, LightGBM's BinMapper"
    anchor: ClassVar[str] = "errata-dpboost-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of a feature; and without the last."""
        return np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 2.0, 4.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The border: half of the rows are below."""
        return (float(np.median(dataset)),)
