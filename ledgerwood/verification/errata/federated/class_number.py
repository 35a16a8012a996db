"""Maddock et al., released code: the number of classes is counted in the labels."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassNumber(Deterministic):
    """How many columns of scores the model has. docs/errata.md#errata-federated-data-reads."""

    name: ClassVar[str] = "federated-class-number"
    source: ClassVar[str] = "released code, PrivateGBDT.fit (np.unique of the labels)"
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels, one of a class of its own; and without it."""
        return np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of classes; of two, one column is kept."""
        return (float(np.unique(dataset).size),)
