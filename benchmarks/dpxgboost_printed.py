"""DP-XGBoost as its paper has it, UNSOUND: not private at the epsilon that it claims, for public rows only.

Beside the sound trainer it shows what the printed figures rest on: the noise of equation 7, 2 g* / (N_min + 1 + lambda)
on the exact value of a leaf; exact minimum child weights; splits dropped where their exact gain is not positive; the
amplification of samples without replacement (docs/errata.md#errata-dpxgboost-leaf-noise and the entries after it).
Nothing in the library imports this, and no estimator has a switch for it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.measuring import Scores, Split, class_scores, coded, number_scores
from ledgerwood import Numeric
from ledgerwood.trainers.parts.candidates import quantile_thresholds

TREES, DEPTH, RATE, LAMBDA, SAMPLED = 20, 6, 0.3, 0.1, 0.1
BINS, CANDIDATES = 1024, 32
"""As the sound preset "paper" has them."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AsPrinted:
    """Parameters of section 5.

    Args:
        min_child_weight: N_min, in rows, compared with exact numbers of rows.
    """

    min_child_weight: float

    def scores(self, data: data_sets.Data, epsilon: float, split: Split) -> Scores:
        """(RMSE, R2) or (AUC, accuracy) of a fit to the split's first rows, on its others.

        All trees together claim `epsilon`, in nats.
        """
        train, test = split
        cells, target = binned(data), data.schema.target
        if isinstance(target, Numeric):
            middle, half = (target.low + target.high) / 2.0, (target.high - target.low) / 2.0
            labels = (data.y - middle) / half
        else:
            labels = np.where(data.y == target.categories[1], 1.0, -1.0)
        predicted = self.predicted(cells, labels, train, epsilon)[test]
        if isinstance(target, Numeric):
            return number_scores(np.clip(middle + half * predicted, target.low, target.high), data.y[test])
        return class_scores(predicted, labels[test] > 0.0)

    def predicted(self, cells: NDArray[np.int64], labels: Floats, train: NDArray[np.intp], epsilon: float) -> Floats:
        """Scores of all rows, of trees that are grown on the training rows."""
        rng, scores = np.random.default_rng(), np.zeros(len(labels))
        tree_epsilon = math.log1p(math.expm1(epsilon / TREES) / SAMPLED)  # section 4.4
        for _ in range(TREES):
            drawn = rng.choice(train, round(SAMPLED * len(train)), replace=False)
            gradients = scores[drawn] - labels[drawn]
            kept = np.abs(gradients) <= 1.0
            scores += RATE * self.tree(cells, drawn[kept], gradients[kept], tree_epsilon / 3.0, rng)
        return scores

    def tree(
        self,
        cells: NDArray[np.int64],
        rows: NDArray[np.intp],
        gradients: Floats,
        third: float,
        rng: np.random.Generator,
    ) -> Floats:
        """The leaf value of every row of the table: sections 4.1 to 4.3, with a third of the tree's epsilon each."""
        features = cells.shape[1]
        places = []
        for column in cells[rows].T:
            counts = np.bincount(column, minlength=BINS) + rng.laplace(0.0, features / third, BINS)
            places.append(quantile_thresholds(counts, CANDIDATES))
        nodes = np.zeros(len(cells), dtype=np.int64)
        values = np.zeros(len(cells))
        is_open = {0}
        for level in range(DEPTH):
            after: set[int] = set()
            own, parts = nodes[rows], 2**level
            tables = [self.gains(own, cells[rows, j], gradients, places[j], parts) for j in range(features)]
            gains = np.concatenate(tables, axis=1)
            features_of = np.repeat(np.arange(features), [len(each) for each in places])
            thresholds = np.concatenate(places)
            totals = np.bincount(own, gradients, parts) ** 2 / (np.bincount(own, minlength=parts) + LAMBDA)
            for node in is_open:
                gumbel = rng.gumbel(size=len(thresholds))
                chosen = int(np.argmax(third / DEPTH * gains[node] / 6.0 + gumbel))  # equation 5
                inside = nodes == node
                if gains[node, chosen] <= totals[node]:  # no candidate, or no exact gain: a leaf
                    values[inside] = self.leaf(gradients[own == node], third, rng)
                    nodes[inside] = -1
                    continue
                right = cells[:, features_of[chosen]] >= thresholds[chosen]
                nodes[inside] = 2 * node + right[inside]
                after |= {2 * node, 2 * node + 1}
            is_open, kept = after, nodes[rows] >= 0
            rows, gradients = rows[kept], gradients[kept]
        for node in is_open:
            values[nodes == node] = self.leaf(gradients[nodes[rows] == node], third, rng)
        return values

    def gains(
        self,
        nodes: NDArray[np.int64],
        column: NDArray[np.int64],
        gradients: Floats,
        thresholds: NDArray[np.int64],
        parts: int,
    ) -> Floats:
        """Exact gains, (parts, thresholds); minus infinity where a side has fewer rows than the minimum."""
        slots = len(thresholds) + 1
        at = nodes * slots + np.searchsorted(thresholds, column, side="right")
        sums = np.cumsum(np.bincount(at, gradients, parts * slots).reshape(parts, slots), axis=1)
        rows = np.cumsum(np.bincount(at, minlength=parts * slots).reshape(parts, slots), axis=1)
        left, left_rows = sums[:, :-1], rows[:, :-1]
        right, right_rows = sums[:, -1:] - left, rows[:, -1:] - left_rows
        found = left**2 / (left_rows + LAMBDA) + right**2 / (right_rows + LAMBDA)
        return np.where(np.minimum(left_rows, right_rows) >= self.min_child_weight, found, -np.inf)

    def leaf(self, gradients: Floats, third: float, rng: np.random.Generator) -> float:
        """Equation 4 with the noise of equation 7."""
        value = -gradients.sum() / (len(gradients) + LAMBDA)
        scale = 2.0 / (self.min_child_weight + 1.0 + LAMBDA) / third
        return float(value + rng.laplace(0.0, scale))


def binned(data: data_sets.Data) -> NDArray[np.int64]:
    """Columns in 1,024 even steps of their public ranges, categories as numbers: (rows, features)."""
    columns = []
    for column, feature in zip(coded(data).X.T, data.schema.features, strict=True):
        low, high = (
            (feature.low, feature.high) if isinstance(feature, Numeric) else (0.0, len(feature.categories) + 1.0)
        )
        shares = np.nan_to_num((column - low) / (high - low))
        columns.append(np.clip(np.floor(shares * BINS), 0, BINS - 1).astype(np.int64))
    return np.stack(columns, axis=1)
