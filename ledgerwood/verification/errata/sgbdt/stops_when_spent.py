"""S-GBDT's released code: the extra rounds end when no row has budget left, and the number of trees is released."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StopsWhenSpent(Deterministic):
    """How many extra trees are trained, for rows whose clipped gradients stay what they are.

    A row at the clip has spent all in the regular rounds; one below it has not, and training goes on.
    docs/errata.md#errata-sgbdt-stop.

    Args:
        trees: regular rounds, which a row at the clip just pays for.
        extra_trees: at most so many more.
        count_share: r1 of the price r1 + (1 - r1) (g / g*)^2 of a round.
    """

    name: ClassVar[str] = "sgbdt-stops-when-spent"
    source: ClassVar[str] = "released code, DPEnsemble::train"
    anchor: ClassVar[str] = "errata-sgbdt-stop"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    trees: int = 150
    extra_trees: int = 100
    count_share: float = 0.2

    def __post_init__(self) -> None:
        _validate.count("trees", self.trees, "trees")
        _validate.count("extra_trees", self.extra_trees, "trees")
        _validate.rate("count_share", self.count_share, "share of the noise")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-8, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients as shares of the clip: two rows at it and one at half of it; and without the latter."""
        return np.array([1.0, 1.0, 0.5]), np.array([1.0, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The number of extra trees."""
        prices = self.count_share + (1.0 - self.count_share) * np.minimum(np.abs(dataset), 1.0) ** 2
        left, grown = self.trees * (1.0 - prices), 0
        while grown < self.extra_trees and (fits := prices <= left).any():
            left, grown = left - prices * fits, grown + 1
        return (float(grown),)
