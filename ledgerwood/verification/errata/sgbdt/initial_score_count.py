"""S-GBDT's first guess where the number of rows is private: the scale of the noise tells it."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InitialScoreCount(Specimen):
    """The mean of labels in [-m*, m*] with Laplace noise of scale 2 m* / (n epsilon), as in Algorithm 6, n private.

    Two Laplace laws of different scale: the ratio of their densities is unbounded, and the Renyi divergence infinite
    from order n + 1 on. Closed forms: docs/errata.md#errata-sgbdt-initial-score.

    Args:
        epsilon: the claimed price, in nats.
        bound: m*, in units of the label.
        count: n, the number of rows without the one that differs.
    """

    name: ClassVar[str] = "sgbdt-initial-score-count"
    source: ClassVar[str] = "Algorithm 6, Theorem 20"
    anchor: ClassVar[str] = "errata-sgbdt-initial-score"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1
    bound: float = 1.0
    count: int = 10

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
        """Labels m*, `count` of them, and one of -m*; and without the latter."""
        labels = np.full(self.count, self.bound)
        return np.append(labels, -self.bound), labels

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        mean = float(np.clip(dataset, -self.bound, self.bound).mean())
        return mean + rng.laplace(0.0, 2.0 * self.bound / (dataset.size * self.epsilon), n)

    def _delta(self, epsilon: float) -> float:
        """H_PQ where P is the narrower law: an interval around its centre. H_QP: the complement of one."""
        narrow, wide, distance = self._laws()
        top = math.log(wide / narrow) + distance / wide
        near, far = self._ends(top - epsilon)
        inside = _inside(near, far, 0.0, narrow) - math.exp(epsilon) * _inside(near, far, distance, wide)
        near, far = self._ends(top + epsilon)
        outside = _outside(near, far, distance, wide) - math.exp(epsilon) * _outside(near, far, 0.0, narrow)
        return max(inside, outside, 0.0)

    def renyi(self, order: float) -> float:
        """The Renyi divergence of the pair at an order > 1, in nats, the larger direction; inf from order n + 1 on."""
        return max(self._renyi(order, 1.0 - order), self._renyi(1.0 - order, order))

    def more_rows(self) -> tuple[Row, ...]:
        order, many = float(self.count + 1), replace(self, count=3342)
        return (
            Row("pure epsilon", self.claim.pure_epsilon(), math.inf),
            Row(f"Rényi divergence of order {order:g}", float(self.claim.renyi(order)[0]), self.renyi(order)),
            Row(f"delta at epsilon {self.epsilon:.4g}, {many.count} rows", 0.0, many.delta(self.epsilon)),
        )

    def _laws(self) -> tuple[float, float, float]:
        """Scale with the row, scale without it, and the distance of the two means."""
        unit = 2.0 * self.bound / self.epsilon
        return unit / (self.count + 1), unit / self.count, 2.0 * self.bound / (self.count + 1)

    def _ends(self, top: float) -> tuple[float, float]:
        """Where log p/q falls by `top` from its peak at P's centre: to the side of Q's centre, and away from it."""
        narrow, wide, distance = self._laws()
        steep, flat = 1.0 / narrow + 1.0 / wide, 1.0 / narrow - 1.0 / wide
        top = max(top, 0.0)
        near = top / steep if top <= steep * distance else distance + (top - steep * distance) / flat
        return near, top / flat

    def _renyi(self, of_p: float, of_q: float) -> float:
        """log integral p^u q^v / (order - 1) in three pieces, with P's centre at 0 and Q's at the distance."""
        narrow, wide, distance = self._laws()
        tail = of_p / narrow + of_q / wide
        if tail <= 0.0:
            return math.inf
        left, right = -of_q * distance / wide, -of_p * distance / narrow
        gap = left - right
        middle = distance * (math.exp(right) if gap == 0.0 else math.exp(right) * math.expm1(gap) / gap)
        total = (math.exp(left) + math.exp(right)) / tail + middle
        scale = of_p * math.log(2.0 * narrow) + of_q * math.log(2.0 * wide)
        return (math.log(total) - scale) / (max(of_p, of_q) - 1.0)


def _outside(near: float, far: float, centre: float, scale: float) -> float:
    """The mass of a Laplace law outside [-far, near]."""
    return _above(near - centre, scale) + _above(far + centre, scale)


def _inside(near: float, far: float, centre: float, scale: float) -> float:
    return 1.0 - _outside(near, far, centre, scale)


def _above(gap: float, scale: float) -> float:
    """The mass of a Laplace law beyond `gap` above its centre."""
    return 0.5 * math.exp(-gap / scale) if gap >= 0.0 else 1.0 - 0.5 * math.exp(gap / scale)
