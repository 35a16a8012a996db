"""PrivaTree (Vos, Vos, Li, Erkin, Verwer): the paper's Theorem 3 and Algorithm 1, and the authors' released code."""

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, PureClaim, Row, specimen, without_last
from ledgerwood.verification.errata.outputs import CountedClasses, Finite

TRAINING = PureEvent(epsilon=0.1, adjacency=Adjacency.ADD_REMOVE)
"""A whole training; an output without noise breaks any claim."""


@specimen("errata-privatree-composition", "Theorem 3, Algorithm 1, line 11; released code until commit f2922ff")
class FeatureComposition(Finite, PureClaim):
    """Histograms of all features are composed in parallel, though every row is in each of them.

    One split of categorical features and one leaf, which takes half of epsilon, as the proof composes them. A row more
    raises one count of every feature and one of the leaf. Of a geometric count only its being above the old one tells
    anything: its loss is that share, one of two values.
    """

    pair = without_last([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    """Rows (category, the same in all features; class), the last of a category of its own; and without it."""

    epsilon: float = 0.1  # the claim, in nats
    features: int = 14  # m

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """The distribution of (features with a positive count of category 1, class 0; label of category 1's leaf)."""
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
        """The pure epsilon in nats in closed form; attained if no count is above 0 and the label is the other one."""
        return 0.5 * self.epsilon * (self.features + 1)


@specimen("errata-privatree-stops", "Algorithm 1, line 7; released code until commit f2922ff")
class PureNode(Deterministic):
    """A node whose rows are all of one class becomes a leaf."""

    claim = TRAINING
    pair = without_last([0.0, 0.0, 0.0, 1.0])
    """Classes, the last row of another one than the rest; and without it."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the root is split."""
        return (float(np.unique(dataset).size > 1),)


@specimen("errata-privatree-stops", "Algorithm 1, line 7; released code until commit f2922ff (min_samples_split)")
class SingleRow(Deterministic):
    """A node with at most one row becomes a leaf, here the left child of a fixed first split."""

    claim = TRAINING
    pair = without_last([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    """Rows (side, class): two of two classes on the left; and one of them."""

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the left child is split."""
        return (float(np.count_nonzero(dataset[:, 0] == 0.0) > 1),)


@specimen("errata-privatree-noisy-size", "released code from commit f2922ff, PrivaTreeClassifier.__find_best_split")
class NoisySize(Finite, PureClaim):
    """The sensitivity of the Gini impurity is taken at a noisy number of rows.

    Where that number is too large the sensitivity is too small, by as much as the noise is large: what is lost does not
    vanish with epsilon. One choice between two candidates, of one row or of two that the first candidate tells apart.
    """

    pair = without_last([[0.0, 0.0], [1.0, 1.0]])
    """Rows (side under the first candidate, class); all are on one side under the second. Two rows; and one."""

    epsilon: float = 0.01  # the privacy cost of the node, in nats
    depth: int = 4  # of the tree in `tree_loss`

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """Probabilities of the two candidates, over all noisy numbers of rows that have a probability in float64."""
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


@specimen(
    "errata-privatree-public-size",
    "Section IV (the dataset size is publicly known), Algorithm 1",
    verdict="slip",
    adjacency=Adjacency.REPLACE_ONE,
)
class ReplacedRow(Finite, PureClaim):
    """The number of rows is assumed to be public: then a row is replaced, and every count moves twice.

    One feature's class histogram and a leaf of all rows, which takes half of epsilon, where a row moves to another bin,
    with another class. Two counts of the histogram change; the label's two counts change by one each.
    """

    pair = np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4)
    """Classes, which are their bins too: four rows, the last of class 0; and of class 1 instead."""

    epsilon: float = 1.0

    def distribution(self, dataset: FloatArray) -> FloatArray:
        """The distribution of (count of class 0 above 0, count of class 1 above 3, label); the bins are 0 and 1."""
        half, ones = 0.5 * self.epsilon, int(dataset.sum())
        above = 1.0 / (1.0 + math.exp(-half))
        coins = [[1.0 - above, above] if more else [above, 1.0 - above] for more in (ones < 4, ones > 3)]
        other = 0.5 * math.exp(-half * (2 * ones - 4))
        return np.kron(np.kron(coins[0], coins[1]), [other, 1.0 - other])


@specimen("errata-privatree-data-reads", "released code, PrivaTreeClassifier.fit (np.unique of the labels)")
class LabelClasses(CountedClasses):
    """The classes are those that occur in the labels; every model holds them as `classes_`."""

    claim = TRAINING
    pair = without_last([0.0, 1.0, 2.0])


@specimen(
    "errata-privatree-data-reads",
    "released code, PrivateBinner.fit (a warning only); section VI-A, ranges from the data",
)
class FeatureRange(Deterministic):
    """Without declared ranges the bins, ten equal ones, span the training rows."""

    claim = TRAINING
    pair = without_last([0.0, 0.5, 2.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The largest edge, the upper end of the range."""
        return (float(dataset.max()),)


@specimen("errata-privatree-misprints", "Definition 2, equation 4", verdict="misprint")
class GeometricRatio(PureClaim):
    """The geometric mechanism has the privacy parameter itself, which is below 1, as the ratio of its distribution.

    One count with noise of probability (1 - epsilon) / (1 + epsilon) epsilon^|d|.
    """

    pair = without_last([1.0])

    epsilon: float = 0.1

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The count with the difference of two geometric numbers, shape (n,)."""
        first, second = rng.geometric(1.0 - self.epsilon, (2, n))
        return np.asarray(dataset.size + first - second, dtype=np.float64)

    def _delta(self, epsilon: float) -> float:
        """The set of all outputs above 0, of probability 1 / (1 + ratio) with the row, is best in one direction."""
        return max(0.0, (1.0 - self.epsilon * math.exp(epsilon)) / (1.0 + self.epsilon))

    def pure_epsilon(self) -> float:
        return -math.log(self.epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        return *PureClaim.more_rows(self), Row("pure epsilon of 0.01", 0.01, replace(self, epsilon=0.01).pure_epsilon())
