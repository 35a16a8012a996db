"""PrivaTree's equation 4: the geometric mechanism with the privacy parameter itself as the ratio of its law."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricRatio(Specimen):
    """One count with noise of the law (1 - epsilon) / (1 + epsilon) epsilon^|d|.

    docs/errata.md#errata-privatree-misprints.

    Args:
        epsilon: the claimed price and the ratio, in (0, 1), in nats.
    """

    name: ClassVar[str] = "privatree-geometric-ratio"
    source: ClassVar[str] = "Definition 2, equation 4"
    anchor: ClassVar[str] = "errata-privatree-misprints"
    verdict: ClassVar[Verdict] = "misprint"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        if self.epsilon >= 1.0:
            raise _validate.fail("epsilon", self.epsilon, "below 1", "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return self.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The count with the difference of two geometric numbers, shape (n,)."""
        first, second = rng.geometric(1.0 - self.epsilon, (2, n))
        return np.asarray(dataset.size + first - second, dtype=np.float64)

    def _delta(self, epsilon: float) -> float:
        """The set of all outputs above 0, of probability 1 / (1 + ratio) with the row, is best in one direction."""
        return max(0.0, (1.0 - self.epsilon * math.exp(epsilon)) / (1.0 + self.epsilon))

    def more_rows(self) -> tuple[Row, ...]:
        return (
            Row("pure epsilon", self.epsilon, -math.log(self.epsilon)),
            Row("pure epsilon of 0.01", 0.01, -math.log(replace(self, epsilon=0.01).epsilon)),
        )
