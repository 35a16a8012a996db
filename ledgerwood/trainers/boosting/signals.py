"""The choice of a tree's features by what earlier trees released: post-processing, which costs nothing.

docs/explanation/boosting.md#boosting-signal.
"""

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.trainers.parts.splits import cyclic_features

LEAST_CYCLE = 4.0
"""Trees that a cycle counts as, at least, for how long signals are remembered."""


def tree_signal(gradients: NDArray[np.float64], stddev: float) -> float:
    """What one tree's released gradients hold beyond their noise, in variances of it: sum(G**2) / s**2 - n_leaves.

    Its mean over the noise is the sum of the squared true sums, over s**2. Of several classes the gradients of a leaf
    add up to 0, and the mean of the released ones is noise: it is taken off, which leaves K - 1 variances a leaf.

    Args:
        gradients: released sums of a tree's leaves, (n_leaves,); or (n_leaves, K) of a leaf's classes.
        stddev: s, of the known noise on each.
    """
    freedom = gradients.size
    if gradients.ndim == 2:
        gradients = gradients - gradients.mean(axis=1, keepdims=True)
        freedom -= len(gradients)
    return float(np.sum((gradients / stddev) ** 2)) - freedom


@final
class FeatureChoice:
    """Weighted turns: features whose trees have shown more signal come more often; all of them come.

    A feature's weight is the mean signal of the trees that had it, the more recent the more; what is below 0 counts
    as 0. In each tree every feature earns credit by its weight, and the features with most credit are taken, which
    costs each of them one. With even weights that is a cycle.

    Args:
        n_features: d >= 1.
        per_tree: k, at most d.
        even_share: share of the turns that are spread evenly, in (0, 1].
        memory: in cycles of d / k trees: a signal counts for 1/e after so many.
    """

    def __init__(self, n_features: int, *, per_tree: int, even_share: float, memory: float) -> None:
        self._n, self._k, self._even = n_features, min(per_tree, n_features), even_share
        cycle = n_features / self._k
        self._first = math.ceil(cycle)  # trees in which all features come once
        self._keep = math.exp(-1.0 / (memory * max(cycle, LEAST_CYCLE)))
        self._trees = 0
        self._signal, self._visits, self._credit = np.zeros((3, n_features))

    def next_features(self) -> tuple[int, ...]:
        """The features of the next tree, rising; a cycle until every feature has come."""
        number, self._trees = self._trees, self._trees + 1
        if number < self._first or self._k == self._n:
            return tuple(sorted(cyclic_features(number, n_features=self._n, per_tree=self._k)))
        self._credit += self._k * self.shares
        taken = np.argsort(-self._credit, kind="stable")[: self._k]
        self._credit[taken] -= 1.0
        return tuple(sorted(taken.tolist()))

    def learn(self, features: tuple[int, ...], signal: float) -> None:
        """Remember what the tree of these features has shown; see `tree_signal`."""
        own = list(features)
        self._signal *= self._keep
        self._visits *= self._keep
        self._signal[own] += signal
        self._visits[own] += 1.0

    @property
    def shares(self) -> NDArray[np.float64]:
        """Each feature's share of the turns, float64 (d,), at most 1 / k; sums to 1."""
        weight = np.maximum(self._signal / np.maximum(self._visits, 1e-12), 0.0)
        even, total = np.full(self._n, 1.0 / self._n), float(weight.sum())
        if not total > 0.0:
            return even
        return capped_shares(self._even * even + (1.0 - self._even) * weight / total, 1.0 / self._k)


def capped_shares(shares: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Shares that sum to 1, none above `most`: what is above is spread over the others in proportion.

    Args:
        shares: positive, (n,), n * most >= 1.
        most: in (0, 1].
    """
    full = np.zeros(len(shares), dtype=np.bool_)
    for _ in range(len(shares)):
        room = 1.0 - most * int(full.sum())
        found = np.where(full, most, shares * (room / max(float(shares[~full].sum()), 1e-300)))
        above = ~full & (found > most)
        if not above.any():
            return np.asarray(found)
        full |= above
    return np.full(len(shares), most)
