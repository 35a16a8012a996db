"""S-GBDT's Algorithm 2 as printed: the interval above the largest value is a candidate twice."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BucketIndices(Specimen):
    """The grid-less exponential mechanism over one numeric feature of range [0, 1], with utility 0 everywhere.

    The printed loop ends at j = n, so that [v_n, v_{n+1}) with v_{n+1} = v_max stands beside B_{n+1} = [v_n, v_max] and
    its points weigh twice. Where "above all values" begins depends on the rows: up to log 2 is lost for any epsilon.
    docs/errata.md#errata-sgbdt-misprints.

    Args:
        epsilon: the claimed price, in nats.
        largest: the largest value of the rows that stay, in (0, 1); the row that differs has value 1.
    """

    name: ClassVar[str] = "sgbdt-bucket-indices"
    source: ClassVar[str] = "Algorithm 2, lines 3 to 5; Definition 25 has it right but for its indices"
    anchor: ClassVar[str] = "errata-sgbdt-misprints"
    verdict: ClassVar[Verdict] = "misprint"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1
    largest: float = 0.9

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        if not 0.0 < _validate.real("largest", self.largest, "units of the feature") < 1.0:
            raise _validate.fail("largest", self.largest, "in (0, 1)", "units of the feature")

    @property
    def claim(self) -> PureEvent:
        """Lemma 26."""
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Values of the feature: one, and the upper end of the range; and the first alone."""
        return np.array([self.largest, 1.0]), np.array([self.largest])

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Thresholds, shape (n,): a bucket by its width, then uniformly inside."""
        low, high = buckets(dataset)
        chosen = rng.choice(low.size, n, p=(high - low) / (high - low).sum())
        return rng.uniform(low[chosen], high[chosen])

    def _delta(self, epsilon: float) -> float:
        """Both densities are constant between the values of all rows: a sum over these pieces."""
        p, q, widths = self._densities()
        factor = math.exp(epsilon)
        return max(
            float((widths * np.maximum(p - factor * q, 0.0)).sum()),
            float((widths * np.maximum(q - factor * p, 0.0)).sum()),
        )

    def more_rows(self) -> tuple[Row, ...]:
        p, q, widths = self._densities()
        ratios = np.abs(np.log(p / q))[widths > 0.0]
        return (Row("pure epsilon", self.epsilon, float(ratios.max())),)

    def _densities(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        edges = np.unique(np.concatenate([np.array([0.0, 1.0]), *self.pair]))
        middles, widths = 0.5 * (edges[:-1] + edges[1:]), np.diff(edges)
        first, second = (density(part, middles) for part in self.pair)
        return first, second, widths


def buckets(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of B_0 to B_{n+1} as printed, each of shape (n + 2,)."""
    ordered = np.sort(values)
    last = ordered[-1:]
    return np.concatenate([[0.0], ordered, last]), np.concatenate([ordered, [1.0], [1.0]])


def density(values: FloatArray, points: FloatArray) -> FloatArray:
    """The density of the threshold at `points`, by counting the buckets that hold each."""
    low, high = buckets(values)
    inside = (low[:, None] <= points) & (points < high[:, None])
    weight: FloatArray = inside.sum(axis=0) / (high - low).sum()
    return weight
