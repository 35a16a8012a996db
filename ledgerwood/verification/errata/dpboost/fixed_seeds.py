"""DPBoost's released code: all noise comes from generators with seeds that the source code holds."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSeeds(Deterministic):
    """One leaf of lambda .1, noise of epsilon 1 that is the same in every run. docs/errata.md#errata-dpboost-seeds."""

    name: ClassVar[str] = "dpboost-fixed-seeds"
    source: ClassVar[str] = "released code, GBDT::GBDT (lap(42)), SerialTreeLearner::randomseed, bagging_seed"
    anchor: ClassVar[str] = "errata-dpboost-seeds"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient; and none."""
        return -np.ones(1), np.ones(0)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The leaf with the first draw of seed 42, whatever `rng` a caller of the sampler passes."""
        noise = float(np.random.default_rng(42).laplace(0.0, 1.0 / 1.1))
        return (float(-dataset.sum()) / (dataset.size + 0.1) + noise,)
