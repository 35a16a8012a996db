"""PrivaTree's released code: without declared ranges the bins span the training rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange(Deterministic):
    """The largest edge of ten equal bins. docs/errata.md#errata-privatree-data-reads."""

    name: ClassVar[str] = "privatree-feature-range"
    source: ClassVar[str] = "released code, PrivateBinner.fit (a warning only); section VI-A, ranges from the data"
    anchor: ClassVar[str] = "errata-privatree-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=0.1, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of a feature; and without the largest."""
        return np.array([0.0, 0.5, 2.0]), np.array([0.0, 0.5])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The upper end of the range."""
        return (float(dataset.max()),)
