"""diffprivlib's forest: without declared bounds, those of the training rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DataBounds(Deterministic):
    """`bounds`, which the fitted forest holds and from which thresholds are drawn.

    docs/errata.md#errata-peers-data-reads.
    """

    name: ClassVar[str] = "peers-data-bounds"
    source: ClassVar[str] = "diffprivlib 0.6, RandomForestClassifier.fit (bounds=None: a warning)"
    anchor: ClassVar[str] = "errata-peers-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=0.1, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of a feature, the last of them the largest; and without it."""
        return np.array([17.0, 45.0, 90.0]), np.array([17.0, 45.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(least, largest)."""
        return float(dataset.min()), float(dataset.max())
