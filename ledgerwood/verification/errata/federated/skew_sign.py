"""Maddock et al., released code: logarithmic candidates are mirrored where the exact skewness is negative."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkewSign(Deterministic):
    """The side on which the candidates are dense, within public bounds. docs/errata.md#errata-federated-data-reads."""

    name: ClassVar[str] = "federated-skew-sign"
    source: ClassVar[str] = "released code, SplitCandidateManager.find_split_candidates (log: skew of the column)"
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of a feature within public ends, 0 and 10; and without one of them."""
        return np.array([0.0, 1.0, 5.0, 8.0, 9.0, 10.0]), np.array([0.0, 1.0, 5.0, 9.0, 10.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the candidates are mirrored."""
        return (float(((dataset - dataset.mean()) ** 3).sum() < 0.0),)
