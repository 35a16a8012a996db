"""The noise of a leaf's pair of sums: Gaussian, or Skellam, of which every client of a federation can add a share."""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import LeafCurvatures, LeafMoments, LeafStatistic, Release, WholeSums
from ledgerwood.curator.queries.leaf_sums import MAX_BITS
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    SkellamMechanism,
)

NoiseKind = Literal["gaussian", "skellam"]
LeafPair = LeafMoments | LeafCurvatures
_STDDEV_UNITS = 2.0**14
"""Of Skellam noise, at most: its sampler's tables stay small, and its law is a Gaussian's but for 1e-8 of its cost."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairNoise:
    """How a pair of sums is asked for and what noise it gets; its cost depends on no tree.

    Args:
        kind: "gaussian", elliptical for (rows, gradient); or "skellam", the same variance for both columns, on sums in
            whole units (`WholeSums`), which are chosen so that a stddev has 2**13 to 2**14 of them.
        leaf: what a row adds to its leaf.
        multiplier: of one query under add-remove.
        count_share: share of a Gaussian query's mu**2 for the number of rows.
    """

    kind: NoiseKind
    leaf: LeafPair
    multiplier: float
    count_share: float

    @property
    def mechanism(self) -> GaussianMechanism | EllipticalGaussianMechanism | SkellamMechanism:
        """What draws it."""
        if self.kind == "skellam":
            return SkellamMechanism(variance=(self._stddev * 2.0**self._bits) ** 2)
        if isinstance(self.leaf, LeafCurvatures):
            return GaussianMechanism(stddev=self._stddev)
        count, gradient = self.stddevs
        return EllipticalGaussianMechanism(stddevs=(count, gradient))

    @property
    def stddevs(self) -> tuple[float, float]:
        """Standard deviations of the noise of both columns, in the leaf statistic's units."""
        if self.kind == "skellam" or isinstance(self.leaf, LeafCurvatures):
            return self._stddev, self._stddev
        count = self.multiplier / math.sqrt(self.count_share)
        return count, self.multiplier * self.leaf.clip / math.sqrt(1.0 - self.count_share)

    @property
    def asked(self) -> LeafStatistic[BoxShifts | BallShifts]:
        """What is released of each leaf."""
        return WholeSums(leaf=self.leaf, bits=self._bits) if self.kind == "skellam" else self.leaf

    def real(self, release: Release[NDArray[np.int64]]) -> NDArray[np.float64]:
        """The released sums in the leaf statistic's units."""
        return release.real * 2.0**-self._bits if self.kind == "skellam" else release.real

    @property
    def _stddev(self) -> float:
        """Of both columns, where they have one: the multiplier times the norm of a row's pair."""
        if isinstance(self.leaf, LeafCurvatures):
            return self.multiplier * self.leaf.radius
        return self.multiplier * self.leaf.sensitivity(Adjacency.ADD_REMOVE).l2((1.0, 1.0))

    @property
    def _bits(self) -> int:
        return min(max(math.floor(math.log2(_STDDEV_UNITS / self._stddev)), 0), MAX_BITS)
