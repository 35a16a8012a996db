"""interpret's DP-EBM: the noise is scaled by the largest sample weight, and the model says by how much."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LargestWeight(Deterministic):
    """`noise_scale_boosting_`, which the model holds and exports. docs/errata.md#errata-peers-data-reads.

    Args:
        noise_multiplier: of all rounds, times the learning rate.
    """

    name: ClassVar[str] = "peers-largest-weight"
    source: ClassVar[str] = "interpret-core 0.7, EBMModel.fit (max_weight)"
    anchor: ClassVar[str] = "errata-peers-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    noise_multiplier: float = 2.0

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "largest weights")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Sample weights, the last of them the largest; and without it."""
        return np.array([1.0, 1.0, 3.0]), np.array([1.0, 1.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The scale of all noise."""
        return (self.noise_multiplier * float(dataset.max()),)
