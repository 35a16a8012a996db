"""DP-XGBoost's released code: a thread draws the noise of its first histogram, and of no other."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SketchNoise(Specimen):
    """One bin of two features' histograms: the second is counted on top of the first one's noisy count, with no noise.

    docs/errata.md#errata-dpxgboost-noise.

    Args:
        epsilon: the price of both histograms, in nats.
    """

    name: ClassVar[str] = "dpxgboost-sketch-noise"
    source: ClassVar[str] = (
        "released code, GlobalDPHistmaker::DPHistSketchEntry (randomized and weights are never reset)"
    )
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
        """Rows (in the bin of the first feature, of the second): three; and two."""
        return np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both weights, shape (n, 2)."""
        first, second = dataset.sum(axis=0)
        noisy = first + rng.laplace(0.0, 2.0 / self.epsilon, n)
        return np.stack([noisy, noisy + second], axis=1)

    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: the difference of the outputs has no noise, and differs."""
        return 1.0
