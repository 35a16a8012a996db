"""PrivaTree's assumption that the number of rows is public: then a row is replaced, and every count moves twice."""

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
class ReplacedRow(Finite):
    """One feature's class histogram and a leaf of all rows where a row moves to another bin, with another class.

    Two counts of the histogram change; the label's two counts change by one each.
    docs/errata.md#errata-privatree-public-size.

    Args:
        epsilon: the claimed price, half of it on the leaf, in nats.
    """

    name: ClassVar[str] = "privatree-replaced-row"
    source: ClassVar[str] = "Section IV (the dataset size is publicly known), Algorithm 1"
    anchor: ClassVar[str] = "errata-privatree-public-size"
    verdict: ClassVar[Verdict] = "slip"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Classes, which are their bins too: four rows, the last of class 0; and of class 1 instead."""
        rows = np.array([1.0, 1.0, 1.0, 0.0])
        return rows, np.ones(4)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of (count of class 0 above 0, count of class 1 above 3, label), the classes' bins being 0 and 1."""
        half, ones = 0.5 * self.epsilon, int(dataset.sum())
        above = 1.0 / (1.0 + math.exp(-half))
        coins = [[1.0 - above, above] if more else [above, 1.0 - above] for more in (ones < 4, ones > 3)]
        other = 0.5 * math.exp(-half * (2 * ones - 4))
        return np.kron(np.kron(coins[0], coins[1]), [other, 1.0 - other])

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.epsilon, self.pure_epsilon()),)
