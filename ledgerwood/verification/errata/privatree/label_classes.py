"""PrivaTree's released code: the classes are those that occur in the labels."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelClasses(Deterministic):
    """`classes_`, which every model holds. docs/errata.md#errata-privatree-data-reads."""

    name: ClassVar[str] = "privatree-label-classes"
    source: ClassVar[str] = "released code, PrivaTreeClassifier.fit (np.unique of the labels)"
    anchor: ClassVar[str] = "errata-privatree-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=0.1, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels, one of a class of its own; and without it."""
        return np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of classes of the model."""
        return (float(np.unique(dataset).size),)
