"""Maddock et al., Table 1: queries of partially random trees without the roots, and one a tree where k = 1."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import Auditor, FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartialQueries(Specimen):
    """Forests of averaging trees, splits partially random. A row of class 1 is on the left of every candidate.

    Each query is the pair (rows of class 1, rows), of joint sensitivity sqrt 2: the row moves all of them by that.
    docs/errata.md#errata-federated-queries.

    Args:
        noise_multiplier: standard deviation over the sensitivity of a query.
        trees: T.
        depth: d.
        features: k, of each tree.
    """

    name: ClassVar[str] = "federated-partial-queries"
    source: ClassVar[str] = "Table 1 (C1 partially random, A1 cyclical); the released code counts half of the roots"
    anchor: ClassVar[str] = "errata-federated-queries"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE
    auditor: ClassVar[Auditor] = "likelihood ratio"

    noise_multiplier: float = 20.0
    trees: int = 25
    depth: int = 4
    features: int = 1

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "sensitivities")
        for name, unit in (("trees", "trees"), ("depth", "levels"), ("features", "features")):
            _validate.count(name, getattr(self, name), unit)

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(
            noise_multiplier=self.noise_multiplier / math.sqrt(self.claimed()), adjacency=self.adjacency
        )

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Classes: one row of class 1; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return 1.0

    def claimed(self) -> int:
        """Queries by Table 1."""
        return self.trees if self.features == 1 else self.trees * self.features * self.depth

    def queries(self) -> int:
        """Queries in which the row takes part: a left sum for each feature and level, and the root's total."""
        return self.trees * (self.features * self.depth + 1)

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Every query's two numbers, shape (n, 2 * queries)."""
        sums = np.tile([dataset.sum(), dataset.size], self.queries())
        return np.asarray(sums + self.noise_multiplier * math.sqrt(2.0) * rng.standard_normal((n, sums.size)))

    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """Each number is 1 more with the row: the sum of (x - 1/2) / variance."""
        return np.asarray((outputs - 0.5).sum(axis=1) / (2.0 * self.noise_multiplier**2))

    def _delta(self, epsilon: float) -> float:
        """One Gaussian pair, its shift the root of the number of queries over the multiplier."""
        mu = math.sqrt(self.queries()) / self.noise_multiplier
        event = GaussianEvent(noise_multiplier=1.0 / mu, adjacency=self.adjacency)
        return math.exp(float(event.log_profile(np.array([epsilon]), direction=Direction.REMOVE)[0]))

    def more_rows(self) -> tuple[Row, ...]:
        """Numbers of queries."""
        all_features = replace(self, features=14)
        return tuple(
            Row(f"queries, T = {s.trees}, d = {s.depth}, k = {s.features}", s.claimed(), s.queries())
            for s in (self, all_features)
        )
