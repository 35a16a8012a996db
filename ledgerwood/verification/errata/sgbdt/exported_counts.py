"""S-GBDT's released code: an exported tree carries the exact number of rows of every node."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCounts(Deterministic):
    """`n_node_samples` of one leaf, full batch. docs/errata.md#errata-sgbdt-export."""

    name: ClassVar[str] = "sgbdt-exported-counts"
    source: ClassVar[str] = "released code, DPTree::exportTree"
    anchor: ClassVar[str] = "errata-sgbdt-export"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Four rows of one leaf; and three."""
        return np.ones(4), np.ones(3)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of rows in the leaf."""
        return (float(dataset.size),)
