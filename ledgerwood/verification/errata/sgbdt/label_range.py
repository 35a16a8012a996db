"""S-GBDT's released code: labels are scaled by their own least and largest value, and predictions scaled back."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRange(Deterministic):
    """The two ends of the scale on which a model predicts. docs/errata.md#errata-sgbdt-data-reads."""

    name: ClassVar[str] = "sgbdt-label-range"
    source: ClassVar[str] = "released code, DataSet::scale_y"
    anchor: ClassVar[str] = "errata-sgbdt-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels up to 29; and up to 9."""
        return np.array([4.0, 9.0, 29.0]), np.array([4.0, 9.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(least, largest): what is added to and multiplied with every prediction."""
        return float(dataset.min()), float(dataset.max())
