"""S-GBDT's first guess with the noise of Theorem 20: the shift is 2 m*/n, the price that of m*/n."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InitialScoreScale(Specimen):
    """The mean of labels in [-m*, m*], with Laplace noise of scale m* / (n epsilon), where n is public.

    Public n, and so replace-one, is the theorem's best case: one scale for both neighbours, as its proof has it.
    The exact loss is the Laplace pair of shift 2 m*/n: twice epsilon. docs/errata.md#errata-sgbdt-initial-score.

    Args:
        epsilon: the claimed price, in nats.
        bound: m*, in units of the label.
        count: n, the number of rows.
    """

    name: ClassVar[str] = "sgbdt-initial-score-scale"
    source: ClassVar[str] = "Theorem 20; released code, Regression::compute_init_score"
    anchor: ClassVar[str] = "errata-sgbdt-initial-score"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    epsilon: float = 0.1
    bound: float = 1.0
    count: int = 100

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.positive("bound", self.bound, "units of the label")
        _validate.count("count", self.count, "rows")

    @property
    def claim(self) -> LaplaceEvent:
        """Theorem 20's Renyi divergences are those of a Laplace pair of multiplier 1 / epsilon."""
        return LaplaceEvent(noise_multiplier=1.0 / self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """All labels m*; and the last one replaced by -m*."""
        labels = np.full(self.count, self.bound)
        return labels, np.append(labels[:-1], -self.bound)

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        mean = float(np.clip(dataset, -self.bound, self.bound).mean())
        return mean + rng.laplace(0.0, self.bound / (dataset.size * self.epsilon), n)

    def _delta(self, epsilon: float) -> float:
        return float(np.exp(self._exact().log_profile(np.array([epsilon]), direction=Direction.REMOVE)[0]))

    def more_rows(self) -> tuple[Row, ...]:
        exact, order = self._exact(), np.array([2.0])
        return (
            Row("pure epsilon", self.claim.pure_epsilon(), exact.pure_epsilon()),
            Row("Rényi divergence of order 2", float(self.claim.renyi(order)[0]), float(exact.renyi(order)[0])),
        )

    def _exact(self) -> LaplaceEvent:
        """The shift is 2 m*/n, the scale m* / (n epsilon)."""
        return LaplaceEvent(noise_multiplier=0.5 / self.epsilon, adjacency=self.adjacency)
