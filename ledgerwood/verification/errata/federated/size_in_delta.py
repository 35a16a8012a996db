"""Maddock et al., released code: delta is one over the exact number of rows, and the noise follows it."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import optimize, stats

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SizeInDelta(Specimen):
    """Leaves that hold no row: nothing but noise, whose scale tells the number of rows elsewhere.

    docs/errata.md#errata-federated-data-reads.

    Args:
        epsilon: the claimed price, in nats.
        count: rows, without the one that differs.
        trees: T, one query each.
        leaves: empty ones of a tree.
    """

    name: ClassVar[str] = "federated-size-in-delta"
    source: ClassVar[str] = "released code, PrivateGBDT.fit (assign_budget with 1 / X.shape[0])"
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    count: int = 10
    trees: int = 200
    leaves: int = 15

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        for name, unit in (("count", "rows"), ("trees", "trees"), ("leaves", "leaves")):
            _validate.count(name, getattr(self, name), unit)
        if self.count < 2:
            raise _validate.fail("count", self.count, "at least 2", "rows")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=1.0 / self.count, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows, all in another leaf: one more; and `count`."""
        return np.ones(self.count + 1), np.ones(self.count)

    @property
    def witness(self) -> float:
        return self.epsilon

    def scale(self, dataset: FloatArray) -> float:
        """The least noise multiplier of `trees` queries for epsilon and a delta of one over the rows."""

        def excess(mu: float) -> float:
            above = float(stats.norm.cdf(mu / 2.0 - self.epsilon / mu))
            below = float(stats.norm.cdf(-mu / 2.0 - self.epsilon / mu))
            return above - math.exp(self.epsilon) * below - 1.0 / dataset.size

        return math.sqrt(self.trees) / float(optimize.brentq(excess, 1e-3, 50.0, xtol=1e-14))

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The sum of squares of all gradient and hessian sums, which is all that they tell, shape (n,)."""
        return np.asarray(self.scale(dataset) ** 2 * rng.chisquare(2 * self.trees * self.leaves, n))

    def _delta(self, epsilon: float) -> float:
        """Two chi-square laws of different scale: the log ratio is a line in the sum of squares."""
        numbers = 2 * self.trees * self.leaves
        wide, narrow = (self.scale(part) ** 2 for part in self.pair)
        slope = 0.5 / narrow - 0.5 / wide
        offset = 0.5 * numbers * math.log(wide / narrow)
        high, low = (offset + epsilon) / slope, max((offset - epsilon) / slope, 0.0)
        factor = math.exp(epsilon)
        more = stats.chi2.sf(high / wide, numbers) - factor * stats.chi2.sf(high / narrow, numbers)
        less = stats.chi2.cdf(low / narrow, numbers) - factor * stats.chi2.cdf(low / wide, numbers)
        return max(0.0, float(more), float(less))
