"""PrivaTree's Theorem 3: histograms of all features composed in parallel, though every row is in each of them."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from scipy import stats

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureComposition(Finite):
    """One split of `features` categorical features and one leaf, as the proof composes them.

    A row more raises one count of every feature and one of the leaf. Of a geometric count only its being above
    the old one tells anything: its loss is that share, one of two values. docs/errata.md#errata-privatree-composition.

    Args:
        epsilon: the claimed price, half of it on the leaf, in nats.
        features: m.
    """

    name: ClassVar[str] = "privatree-feature-composition"
    source: ClassVar[str] = "Theorem 3, Algorithm 1, line 11; released code until commit f2922ff"
    anchor: ClassVar[str] = "errata-privatree-composition"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1
    features: int = 14

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("features", self.features, "features")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (category, the same in all features; class), the last of a category of its own; and without it."""
        rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        return rows, rows[:-1]

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of (features whose count of category 1 and class 0 is above 0, label of the leaf of category 1)."""
        count = np.count_nonzero(dataset[:, 0] == 1.0)
        above = 1.0 / (1.0 + math.exp(-0.5 * self.epsilon))
        if not count:
            above = 1.0 - above
        successes = np.arange(self.features + 1)
        other = 0.5 * math.exp(-0.5 * self.epsilon * count)
        return np.outer(stats.binom.pmf(successes, self.features, above), [1.0 - other, other]).ravel()

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"pure epsilon, {m} features", self.epsilon, replace(self, features=m).loss()) for m in (8, 14, 26, 419)
        )

    def loss(self) -> float:
        """The pure epsilon in nats: of no count above 0, and the other label."""
        return 0.5 * self.epsilon * (self.features + 1)
