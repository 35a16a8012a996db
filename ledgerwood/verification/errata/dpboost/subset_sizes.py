"""DPBoost's Algorithm 2: the trees of an ensemble get disjoint subsets whose sizes are shares of the number of rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict
from ledgerwood.verification.errata.outputs import twice


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSizes(Specimen):
    """Two trees of one leaf each, of floor(n / 2) rows each, n private; g* = 1.

    One row more makes both subsets grow, so that both leaves change: nothing is disjoint about sizes.
    docs/errata.md#errata-dpboost-subsets.

    Args:
        epsilon: the price of the leaves of a tree, in nats, and by Theorem 8 of the ensemble.
        regularization: lambda, > 0.
    """

    name: ClassVar[str] = "dpboost-subset-sizes"
    source: ClassVar[str] = "Algorithm 2, line 8, Theorem 8; released code, GBDT::BaggingHelper (balance_partition)"
    anchor: ClassVar[str] = "errata-dpboost-subsets"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    regularization: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.positive("regularization", self.regularization, "rows")

    @property
    def claim(self) -> PureEvent:
        """Theorem 8: disjoint inputs, so the dearest tree counts."""
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Two gradients of -1; and one."""
        return -np.ones(2), -np.ones(1)

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves, shape (n, 2)."""
        rows = np.argsort(rng.random((n, dataset.size)), axis=1)[:, : dataset.size // 2 * 2]
        subsets = dataset[rows].reshape(n, 2, dataset.size // 2)
        values = -subsets.sum(axis=2) / (dataset.size // 2 + self.regularization)
        return np.asarray(values + rng.laplace(0.0, 1.0 / (1.0 + self.regularization) / self.epsilon, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        """Two independent Laplace pairs of the full sensitivity."""
        return twice(self.epsilon, epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        return (
            Row("pure epsilon", self.epsilon, 2.0 * self.epsilon),
            Row("pure epsilon, 50 trees, 49 rows and one more", self.epsilon, 50.0 * self.epsilon),
        )
