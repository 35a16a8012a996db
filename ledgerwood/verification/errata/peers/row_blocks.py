"""diffprivlib's forest: rows go to trees by their places, so that one row more moves the ends of all blocks."""

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
class RowBlocks(Finite):
    """Trees of one leaf each over blocks of rows, two classes; a row is appended.

    Every block but the first loses its first row and gains the next one's first, of the other class.
    docs/errata.md#errata-peers-blocks.

    Args:
        epsilon: the claimed price, of a tree and of the forest, in nats.
        trees: T.
        block: rows of a tree, even.
    """

    name: ClassVar[str] = "peers-row-blocks"
    source: ClassVar[str] = "diffprivlib 0.6, RandomForestClassifier.fit (shuffle=False, the default)"
    anchor: ClassVar[str] = "errata-peers-blocks"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1
    trees: int = 10
    block: int = 4

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("trees", self.trees, "trees")
        _validate.count("block", self.block, "rows")
        if self.block % 2:
            raise _validate.fail("block", self.block, "even", "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Classes; all of a block alike but its first row, and blocks take turns. With a row more; and without."""
        first = np.arange(self.trees + 1) % 2.0
        rows = np.repeat(1.0 - first, self.block)[: self.trees * self.block + 1]
        rows[:: self.block] = first
        return rows, rows[:-1]

    @property
    def witness(self) -> float:
        return self.epsilon

    def minorities(self, dataset: FloatArray) -> FloatArray:
        """The probability that each tree's label is the one of its block's minority, shape (trees,)."""
        places = np.arange(dataset.size) * self.trees // dataset.size
        ones = np.bincount(places, weights=dataset, minlength=self.trees)
        return np.asarray(0.5 * np.exp(-self.epsilon * np.abs(2.0 * ones - np.bincount(places))))

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of (label of the first tree, number of the others that take their minority): these are all alike."""
        first, *others = self.minorities(dataset)
        return np.outer([1.0 - first, first], stats.binom.pmf(np.arange(self.trees), self.trees - 1, others[0])).ravel()

    def loss(self) -> float:
        """The pure epsilon in nats: all trees take the minority. The first gains a row, the others exchange one."""
        with_row, without = (np.log(self.minorities(part)) for part in self.pair)
        return float(np.abs(with_row - without).sum())

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(Row(f"pure epsilon, {t} trees", self.epsilon, replace(self, trees=t).loss()) for t in (10, 100))
