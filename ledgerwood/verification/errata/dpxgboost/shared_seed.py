"""DP-XGBoost's released code: trees that begin in one second have the same noise."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSeed(Specimen):
    """The first leaves of two trees, g* = 1 and lambda .1; a row is in the first of them.

    docs/errata.md#errata-dpxgboost-noise.

    Args:
        epsilon: the price of the leaves of both trees, in nats.
    """

    name: ClassVar[str] = "dpxgboost-shared-seed"
    source: ClassVar[str] = "released code, GlobalDPHistmaker::UpdateTree (seed = time(0))"
    anchor: ClassVar[str] = "errata-dpxgboost-noise"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (gradient, in the first tree's leaf, in the second's): three; and two."""
        rows = np.array([[-0.5, 1.0, 0.0], [0.5, 0.0, 1.0], [-1.0, 1.0, 0.0]])
        return rows, rows[:-1]

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both leaves, shape (n, 2)."""
        gradients, *leaves = dataset.T
        values = np.array([-gradients[leaf > 0.0].sum() / (leaf.sum() + 0.1) for leaf in leaves])
        return np.asarray(values + rng.laplace(0.0, 2.0 / 1.1 / self.epsilon, (n, 1)))

    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: the difference of the outputs has no noise, and differs."""
        return 1.0
