"""diffprivlib's forest, and PrivaTree's leaves: a label by permute-and-flip where a row is replaced."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedLabel(Finite):
    """One leaf of two classes, utilities their counts, `sensitivity=1, monotonic=True`.

    docs/errata.md#errata-peers-replaced.

    Args:
        epsilon: the claimed price, in nats.
    """

    name: ClassVar[str] = "peers-replaced-label"
    source: ClassVar[str] = "diffprivlib 0.6, models.forest (PermuteAndFlip); no neighbouring relation is stated"
    anchor: ClassVar[str] = "errata-peers-replaced"
    verdict: ClassVar[Verdict] = "slip"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Classes: four rows, the last of class 0; and of class 1 instead."""
        return np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of the two labels; class 1 has more rows."""
        other = 0.5 * math.exp(-self.epsilon * (2.0 * dataset.sum() - dataset.size))
        return np.array([other, 1.0 - other])

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
