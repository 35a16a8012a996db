"""DPBoost's released code: a saved model holds the exact number of rows of every leaf and node."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCounts(Deterministic):
    """`leaf_count` of one leaf; inner values and gains are exact as well. docs/errata.md#errata-dpboost-data-reads."""

    name: ClassVar[str] = "dpboost-saved-counts"
    source: ClassVar[str] = "released code, Tree::ToString"
    anchor: ClassVar[str] = "errata-dpboost-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Four rows of one leaf; and three."""
        return np.ones(4), np.ones(3)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of rows in the leaf."""
        return (float(dataset.size),)
