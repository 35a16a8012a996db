"""Single trees that PrivaTree is measured against, written from their papers; each says whether it is sound, and why.

Three of them are not private at what they claim and serve as figures only: nothing in the package imports this file.
All read categories as codes (`benchmarks.measuring.coded`), take the schema as public, and count privacy under
add-remove. The noise is `SecureRandom`'s or a numpy generator's that is seeded by the operating system.
"""

import hashlib
import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.mechanisms import Grid, PermuteAndFlipMechanism, RandomSource, SecureRandom

Codes = NDArray[np.float64]
Labels = NDArray[np.int64]
DEPTH = 4
TOGETHER = 5
"""Neighbouring values of which BDPT takes the mean."""
COUNTS = Grid(exponents=(0,))


# ---------------------------------------------------------------------------------------------------- trees and classes


@dataclass(frozen=True)
class Leaf:
    """A class, by its place."""

    label: int


@dataclass(frozen=True)
class Split:
    """Rows whose code is at most the threshold (or equal to it) go to the first child."""

    feature: int
    threshold: float
    equal: bool
    first: "Node"
    second: "Node"


@dataclass(frozen=True)
class Branch:
    """A child for each code of a feature."""

    feature: int
    children: tuple["Node", ...]


Node = Leaf | Split | Branch


def labels_of(node: Node, X: Codes) -> Labels:
    """The places of the predicted classes, shape (n_rows,)."""
    found = np.empty(len(X), dtype=np.int64)
    waiting = [(node, np.arange(len(X)))]
    while waiting:
        at, rows = waiting.pop()
        match at:
            case Leaf():
                found[rows] = at.label
            case Split():
                first = goes_first(X[rows, at.feature], at.threshold, equal=at.equal)
                waiting += [(at.first, rows[first]), (at.second, rows[~first])]
            case Branch():
                codes = X[rows, at.feature].astype(np.int64)
                waiting += [(child, rows[codes == code]) for code, child in enumerate(at.children)]
    return found


def goes_first(codes: Codes, threshold: float, *, equal: bool) -> NDArray[np.bool_]:
    """A split's test."""
    return codes == threshold if equal else codes <= threshold


def code_table(X: NDArray[Any], schema: Schema) -> Codes:
    """Categories as their places in the schema, others as the place after them; numbers clamped to their range."""
    columns = []
    for j, feature in enumerate(schema.features):
        column = X[:, j]
        if isinstance(feature, Categorical):
            places = {category: place for place, category in enumerate(feature.categories)}
            columns.append(np.array([places.get(value, len(places)) for value in column.tolist()], dtype=np.float64))
        else:
            columns.append(np.clip(column.astype(np.float64), feature.low, feature.high) + 0.0)
    return np.column_stack(columns)


class Baseline(ABC):
    """A classifier by one tree, or many, with the schema's declared classes.

    Args:
        epsilon: total, in nats, as its paper counts it; without meaning for what is not private.
        schema: public.
        depth: of its trees.
    """

    sound: ClassVar[bool]
    reason: ClassVar[str]

    def __init__(self, epsilon: float, schema: Schema, depth: int = DEPTH) -> None:
        if not isinstance(schema.target, Categorical):
            raise TypeError(f"the target must be Categorical, not {type(schema.target).__name__}")
        self.epsilon, self.schema, self.depth = epsilon, schema, depth
        self.classes_ = np.array(schema.target.categories)
        self.rng = np.random.default_rng()

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Learn from rows; labels that are no declared class are refused."""
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        self._learn(code_table(X, self.schema), np.array([places[label] for label in y.tolist()], dtype=np.int64))
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Classes, shape (n_rows,)."""
        return self.classes_[self._places(code_table(X, self.schema))]

    @abstractmethod
    def _learn(self, X: Codes, y: Labels) -> None: ...

    @abstractmethod
    def _places(self, X: Codes) -> Labels: ...


class OneTree(Baseline):
    """A single tree in `tree_`."""

    tree_: Node

    def _places(self, X: Codes) -> Labels:
        return labels_of(self.tree_, X)


# ----------------------------------------------------------------------------------------------------- the sound one


@final
class RandomTree(OneTree):
    """diffprivlib's tree (Holohan and others 2019): splits drawn from the schema, all of the budget for the labels.

    A feature uniformly among those whose range is left, a threshold uniformly within the range; categories are codes,
    as PrivaTree's paper gives them to that library. One more row adds 1 to one count of one leaf, so permute-and-flip
    at epsilon nats a row costs epsilon under add-remove; leaves share no row.

    Args:
        source: of the labels' noise.
    """

    sound = True
    reason = "splits see no row; one permute-and-flip choice a leaf, each row in one leaf"

    def __init__(self, epsilon: float, schema: Schema, depth: int = DEPTH, source: RandomSource | None = None) -> None:
        super().__init__(epsilon, schema, depth)
        self.source = SecureRandom() if source is None else source

    def _learn(self, X: Codes, y: Labels) -> None:
        self.tree_ = self._grow(X, y, [range_of(feature) for feature in self.schema.features], self.depth)

    def _grow(self, X: Codes, y: Labels, ranges: list[tuple[float, float]], depth: int) -> Node:
        open_ones = [j for j, (low, high) in enumerate(ranges) if low < high]
        if depth == 0 or not open_ones:
            counts = np.bincount(y, minlength=len(self.classes_)).astype(np.int64)
            return Leaf(PermuteAndFlipMechanism(rate=self.epsilon).select(counts, COUNTS, self.source))
        j = int(self.rng.choice(open_ones))
        low, high = ranges[j]
        threshold = float(self.rng.uniform(low, high))
        first = goes_first(X[:, j], threshold, equal=False)
        below = [*ranges[:j], (low, threshold), *ranges[j + 1 :]]
        above = [*ranges[:j], (threshold, high), *ranges[j + 1 :]]
        one, other = (
            self._grow(X[first], y[first], below, depth - 1),
            self._grow(X[~first], y[~first], above, depth - 1),
        )
        return Split(j, threshold, False, one, other)


def range_of(feature: Numeric | Categorical) -> tuple[float, float]:
    """The public range of a column of codes."""
    if isinstance(feature, Numeric):
        return feature.low, feature.high
    return 0.0, float(len(feature.categories) - 1)


# -------------------------------------------------------------------------------------------- greedy and not sound


def impurities(lefts: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of rows times the Gini impurity of each split, from class counts (n_splits, K) of one side and of all."""
    result = np.zeros(len(lefts))
    for side in (lefts, totals - lefts):
        rows = side.sum(axis=1)
        result += rows - (side**2).sum(axis=1) / np.maximum(rows, 1.0)
    return result


def choose(log_weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """A place with probability in proportion to the weight, by the Gumbel maximum."""
    return int(np.argmax(log_weights + rng.gumbel(size=len(log_weights))))


def impurity_sensitivity(rows: float) -> float:
    """By how much one more row changes the Gini impurity of n rows: 1 - (n / (n + 1))^2 - (1 / (n + 1))^2."""
    return 1.0 - (rows / (rows + 1.0)) ** 2 - (1.0 / (rows + 1.0)) ** 2


def smooth_impurity_sensitivity(rows: int, smoothing: float) -> float:
    """The largest exp(-smoothing k) times the sensitivity at n - k rows, at least one row."""
    fewer = np.arange(rows) if rows > 1 else np.zeros(1)
    return float(np.max(np.exp(-smoothing * fewer) * impurity_sensitivity(np.maximum(rows - fewer, 1.0))))


@final
class BDPT(OneTree):
    """Guan and others 2020, as PrivaTree's paper describes it; no code of it is published, so this is our reading.

    Half of the budget for splits, evenly over the levels: the exponential mechanism on the Gini impurity with its
    smooth sensitivity, among means of every 5 neighbouring values and single categories. Half for the leaves: Laplace
    noise in the class counts.
    """

    sound = False
    reason = "thresholds are means of 5 rows' exact values, and the exponential mechanism has a row-dependent scale"

    def _learn(self, X: Codes, y: Labels) -> None:
        self.tree_ = self._grow(X, np.eye(len(self.classes_))[y], self.depth)

    def _grow(self, X: Codes, one_hot: NDArray[np.float64], depth: int) -> Node:
        found = self._candidates(X, one_hot) if depth > 0 else None
        if found is None:
            noisy = one_hot.sum(axis=0) + self.rng.laplace(0.0, 2.0 / self.epsilon, one_hot.shape[1])
            return Leaf(int(noisy.argmax()))
        features, thresholds, lefts = found
        epsilon = self.epsilon / 2.0 / self.depth
        impurity = impurities(lefts, one_hot.sum(axis=0)) / len(X)
        place = choose(-epsilon * impurity / (2.0 * smooth_impurity_sensitivity(len(X), epsilon)), self.rng)
        j, threshold = int(features[place]), float(thresholds[place])
        equal = isinstance(self.schema.features[j], Categorical)
        first = goes_first(X[:, j], threshold, equal=equal)
        one, other = (self._grow(X[side], one_hot[side], depth - 1) for side in (first, ~first))
        return Split(j, threshold, equal, one, other)

    def _candidates(
        self, X: Codes, one_hot: NDArray[np.float64]
    ) -> tuple[Labels, NDArray[np.float64], NDArray[np.float64]] | None:
        """Features, thresholds and class counts of the first sides; None where no row is left."""
        if len(X) == 0:
            return None
        features, thresholds, lefts = [], [], []
        for j, feature in enumerate(self.schema.features):
            if isinstance(feature, Categorical):
                at = np.arange(len(feature.categories), dtype=np.float64)
                sums = np.zeros((len(at) + 1, one_hot.shape[1]))
                np.add.at(sums, X[:, j].astype(np.int64), one_hot)
                left = sums[:-1]
            else:
                order = np.argsort(X[:, j], kind="stable")
                values = X[order, j]
                at = means_of_neighbours(values)
                left = one_hot[order].cumsum(axis=0)[np.searchsorted(values, at, side="right") - 1]
            features.append(np.full(len(at), j))
            thresholds.append(at)
            lefts.append(left)
        return np.concatenate(features), np.concatenate(thresholds), np.concatenate(lefts)


def means_of_neighbours(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distinct means of every 5 neighbours of sorted values; the last ones may be fewer."""
    starts = np.arange(0, len(values), TOGETHER)
    means = np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))
    # A mean may be rounded below its smallest value, and would then have nobody at or below it.
    distinct: NDArray[np.float64] = np.unique(np.maximum(means, values[0]))
    return distinct


def smooth_label_log_weights(counts: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Fletcher and Islam 2017: the largest class has utility 1, the others 0; sensitivity exp(-epsilon times the gap).

    The scale of the exponential mechanism moves with the rows. At a gap of j rows the smaller of two classes has
    log-odds -epsilon exp(j epsilon) / 2; one row more changes them by a factor of exp(epsilon): a loss that grows
    beyond epsilon from a gap of about log(2 / (exp(epsilon) - 1)) / epsilon rows on, and beyond any bound.
    """
    second, first = np.sort(counts)[-2:]
    utility = (np.arange(len(counts)) == counts.argmax()).astype(np.float64)
    odds = epsilon * np.exp(min((first - second) * epsilon, 50.0)) / 2.0
    # Beyond such odds the choice is certain, and larger ones would overflow.
    log_odds: NDArray[np.float64] = utility * min(odds, 1e6)
    return log_odds


@final
class DPGDF(OneTree):
    """Xin and others 2019, one tree of it, on categorical features; our reading, since no code of it is published.

    A branch for each category, no feature twice on a path. Half of the budget for splits, evenly over the levels: the
    exponential mechanism on n times the Gini impurity, which one row changes by less than 2. Half for the labels, by
    smooth sensitivity.
    """

    sound = False
    reason = "labels by an exponential mechanism whose scale depends on the rows: its loss grows with a leaf's margin"

    def __init__(self, epsilon: float, schema: Schema, depth: int = DEPTH) -> None:
        super().__init__(epsilon, schema, depth)
        self.categorical = tuple(j for j, f in enumerate(schema.features) if isinstance(f, Categorical))
        if not self.categorical:
            raise ValueError("DPGDF splits categorical features only, and the schema has none")

    def _learn(self, X: Codes, y: Labels) -> None:
        self.tree_ = self._grow(X.astype(np.int64), y, self.categorical, self.depth)

    def _grow(self, X: Labels, y: Labels, left: tuple[int, ...], depth: int) -> Node:
        classes = len(self.classes_)
        if len(y) == 0:
            return Leaf(int(self.rng.integers(classes)))
        if depth == 0 or not left:
            counts = np.bincount(y, minlength=classes).astype(np.float64)
            return Leaf(choose(smooth_label_log_weights(counts, self.epsilon / 2.0), self.rng))
        impurity = np.array([self._impurity(X[:, j], y, self._codes(j)) for j in left])
        chosen = left[choose(-self.epsilon / 2.0 / self.depth * impurity / 2.0, self.rng)]
        rest = tuple(j for j in left if j != chosen)
        sides = (X[:, chosen] == code for code in range(self._codes(chosen)))
        return Branch(chosen, tuple(self._grow(X[side], y[side], rest, depth - 1) for side in sides))

    def _codes(self, j: int) -> int:
        """Categories of a feature and "other"."""
        feature = self.schema.features[j]
        assert isinstance(feature, Categorical)
        return len(feature.categories) + 1

    def _impurity(self, codes: Labels, y: Labels, n_codes: int) -> float:
        """Number of rows times the Gini impurity over all branches."""
        classes = len(self.classes_)
        counts = np.bincount(codes * classes + y, minlength=n_codes * classes).reshape(n_codes, classes)
        rows = counts.sum(axis=1)
        return float(rows.sum() - ((counts**2).sum(axis=1) / np.maximum(rows, 1)).sum())


# ----------------------------------------------------------------------------- certified against poisoning, not private


@final
class DeepPartitionAggregation(Baseline):
    """Levine and Feizi 2021: a vote of trees on disjoint parts of the rows, each row's part given by its own hash.

    Trees are greedy, deterministic, and see their rows in an order that depends on their values only; a part without
    rows votes for the first class. One row more or less changes one vote.

    Args:
        epsilon: not used, it is not private.
        trees: number of parts.
    """

    sound = False
    reason = "not private at all: certifies predictions against poisoned rows"

    def __init__(self, epsilon: float, schema: Schema, depth: int = DEPTH, trees: int = 1000) -> None:
        super().__init__(epsilon, schema, depth)
        self.trees = trees

    def _learn(self, X: Codes, y: Labels) -> None:
        self.trees_: list[DecisionTreeClassifier | None] = []
        parts = np.array([part_of(row, label, self.trees) for row, label in zip(X, y.tolist(), strict=True)], dtype=int)
        order = np.lexsort((y, *X.T, parts))
        ends = np.searchsorted(parts[order], np.arange(self.trees + 1))
        for start, end in itertools.pairwise(ends):
            rows = order[start:end]
            tree = DecisionTreeClassifier(max_depth=self.depth, random_state=0)
            self.trees_.append(tree.fit(X[rows], y[rows]) if len(rows) else None)

    def votes(self, X: NDArray[Any]) -> Labels:
        """Votes for each class, shape (n_rows, K)."""
        return self._votes(code_table(X, self.schema))

    def _votes(self, X: Codes) -> Labels:
        found = np.zeros((len(X), len(self.classes_)), dtype=np.int64)
        rows = np.arange(len(X))
        for tree in self.trees_:
            found[rows, 0 if tree is None else tree.predict(X)] += 1
        return found

    def _places(self, X: Codes) -> Labels:
        return self._votes(X).argmax(axis=1)

    def certified_rows(self, X: NDArray[Any]) -> Labels:
        """How many rows may be added or taken away, in any mixture, before a prediction can change; shape (n_rows,)."""
        return certified_rows(self.votes(X))


def part_of(row: Codes, label: int, parts: int) -> int:
    """A row's part: a hash of its own values, whatever the other rows are."""
    digest = hashlib.blake2b(row.tobytes() + label.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % parts


def certified_rows(votes: Labels) -> Labels:
    """Of equal votes the first class wins: floor((own - max over others of (theirs + [they come first])) / 2)."""
    rows, classes = votes.shape
    chosen = votes.argmax(axis=1)
    others = votes + (np.arange(classes) < chosen[:, None])
    others[np.arange(rows), chosen] = -1
    radii: Labels = (votes[np.arange(rows), chosen] - others.max(axis=1)) // 2
    return radii
