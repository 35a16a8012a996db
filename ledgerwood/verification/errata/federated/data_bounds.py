"""Maddock et al., released code: split candidates span the smallest and largest value of the training rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DataBounds(Deterministic):
    """The last of 32 equally spaced candidates. docs/errata.md#errata-federated-data-reads."""

    name: ClassVar[str] = "federated-data-bounds"
    source: ClassVar[str] = (
        "released code, SplitCandidateManager.find_split_candidates (nanmin, nanmax); the paper assumes public bounds"
    )
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of a feature; and without the largest."""
        return np.array([0.0, 1.0, 3.0, 8.0]), np.array([0.0, 1.0, 3.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The largest candidate."""
        return (float(np.linspace(dataset.min(), dataset.max(), 32, endpoint=False)[-1]),)
