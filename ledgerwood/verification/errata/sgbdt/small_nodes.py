"""S-GBDT's released code: a node with too few rows becomes a leaf, by their exact number."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmallNodes(Deterministic):
    """Whether the root is split. docs/errata.md#errata-sgbdt-structure.

    Args:
        least: `min_samples_split`, at least 2 rows.
    """

    name: ClassVar[str] = "sgbdt-small-nodes"
    source: ClassVar[str] = "released code, DPTree::make_tree_DFS (min_samples_split)"
    anchor: ClassVar[str] = "errata-sgbdt-structure"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    least: int = 2

    def __post_init__(self) -> None:
        _validate.count("least", self.least, "rows", minimum=2)

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels of `least` rows; and of one row less."""
        return np.zeros(self.least), np.zeros(self.least - 1)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the root is split."""
        return (float(dataset.size >= self.least),)
