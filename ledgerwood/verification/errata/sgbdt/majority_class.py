"""S-GBDT's released code: the two classes change names where the second is the more frequent one."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityClass(Deterministic):
    """Which of two classes a model calls 1. docs/errata.md#errata-sgbdt-data-reads."""

    name: ClassVar[str] = "sgbdt-majority-class"
    source: ClassVar[str] = "released code, Parser::parse_file"
    anchor: ClassVar[str] = "errata-sgbdt-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Two rows of class 0 and three of class 1; and one of the latter less: a tie."""
        return np.array([0.0, 0.0, 1.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 where the names of the classes were exchanged."""
        return (float(np.count_nonzero(dataset == 1.0) > np.count_nonzero(dataset == 0.0)),)
