"""Maddock et al., released code: every node of a trained model holds its exact number of rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts(Deterministic):
    """`num_observations` of one leaf. docs/errata.md#errata-federated-data-reads."""

    name: ClassVar[str] = "federated-node-counts"
    source: ClassVar[str] = "released code, PrivateGBDT._build_tree (DecisionNode, num_observations)"
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Four rows of one leaf; and three."""
        return np.ones(4), np.ones(3)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of rows in the leaf."""
        return (float(dataset.size),)
