"""PrivaTree's released code since commit f2922ff: the sensitivity of the Gini impurity at a noisy number of rows."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySize(Finite):
    """One choice between two candidates, of one row or of two that the first candidate tells apart.

    Where the noisy number of rows is too large the sensitivity is too small, by as much as the noise is large:
    what is lost does not vanish with epsilon. docs/errata.md#errata-privatree-noisy-size.

    Args:
        epsilon: the price of the node, in nats.
        depth: of the tree in `tree_loss`.
    """

    name: ClassVar[str] = "privatree-noisy-size"
    source: ClassVar[str] = "released code from commit f2922ff, PrivaTreeClassifier.__find_best_split"
    anchor: ClassVar[str] = "errata-privatree-noisy-size"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.01
    depth: int = 4

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("depth", self.depth, "levels")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (side under the first candidate, class); all are on one side under the second. Two rows; and one."""
        rows = np.array([[0.0, 0.0], [1.0, 1.0]])
        return rows, rows[:-1]

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of the two candidates, over all noisy numbers of rows that have a probability in float64."""
        half = 0.5 * self.epsilon
        gap = 0.5 * (dataset.shape[0] - 1)  # the impurity of one or two rows, less that of the pure sides
        sizes = np.arange(1.0, dataset.shape[0] + 745.0 / half)
        ratio = math.exp(-half)
        weights = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(sizes - dataset.shape[0])
        weights[0] = ratio ** (dataset.shape[0] - 1) / (1.0 + ratio)  # all below 1 is 1
        sensitivity = 2.0 * sizes / (sizes + 1.0) ** 2
        worse = float(weights @ (0.5 * np.exp(-half * gap / (2.0 * sensitivity))))
        return np.array([1.0 - worse, worse])

    def tree_loss(self) -> float:
        """A loss, in nats, of a tree that costs 2 * depth * epsilon, half of it on the leaves.

        All levels of the leftmost path take the second candidate, and its leaf of one row of each class, or of one row,
        the class of the latter.
        """
        return self.depth * self.pure_epsilon() + math.log(2.0 - math.exp(-self.depth * self.epsilon))

    def more_rows(self) -> tuple[Row, ...]:
        losses = (
            Row(f"pure epsilon, a node of {e:g}", e, replace(self, epsilon=e).pure_epsilon()) for e in (0.01, 0.03)
        )
        node = 0.1 / (2 * self.depth)
        return (*losses, Row("a loss in a tree of 0.1 and depth 4", 0.1, replace(self, epsilon=node).tree_loss()))
