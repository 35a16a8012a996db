"""DP-XGBoost's released code: a round may grow several trees, and the formula counts one."""

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
class RoundTrees(Specimen):
    """One round with `num_parallel_tree` 2 over one row: two leaves, each with noise for the budget of a tree.

    Classes work alike: a round over K classes grows K trees. docs/errata.md#errata-dpxgboost-rounds.

    Args:
        epsilon: the price of a tree, all of it on the leaf, in nats.
    """

    name: ClassVar[str] = "dpxgboost-round-trees"
    source: ClassVar[str] = (
        "README.md (num_boost_rounds, the number of trees built); released code, GBTree::DoBoost and BoostNewTrees"
    )
    anchor: ClassVar[str] = "errata-dpxgboost-rounds"
    verdict: ClassVar[Verdict] = "slip"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient of -1; and none."""
        return -np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves at lambda .1, shape (n, 2)."""
        value = -float(dataset.sum()) / (dataset.size + 0.1)
        return np.asarray(value + rng.laplace(0.0, 1.0 / 1.1 / self.epsilon, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        """Two independent Laplace pairs of the full sensitivity."""
        return twice(self.epsilon, epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        return (
            Row("pure epsilon", self.epsilon, 2.0 * self.epsilon),
            Row("pure epsilon, 10 classes", self.epsilon, 10.0 * self.epsilon),
        )
