"""S-GBDT's released code: the categories to split on are those that occur in the training rows."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryList(Specimen):
    """One random split on a category, drawn from those that occur. docs/errata.md#errata-sgbdt-data-reads."""

    name: ClassVar[str] = "sgbdt-category-list"
    source: ClassVar[str] = "released code, Parser::parse_file and DPTree::find_best_split"
    anchor: ClassVar[str] = "errata-sgbdt-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Category codes with a third category, of one row; and without it."""
        return np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0])

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The category of the split, shape (n,)."""
        return rng.choice(np.unique(dataset), n)

    def _delta(self, epsilon: float) -> float:
        """By enumeration over all categories, in both directions."""
        first, second = (np.unique(part) for part in self.pair)
        everything = np.union1d(first, second)
        p, q = (np.isin(everything, part) / part.size for part in (first, second))
        factor = math.exp(epsilon)
        return max(float(np.maximum(p - factor * q, 0.0).sum()), float(np.maximum(q - factor * p, 0.0).sum()))
