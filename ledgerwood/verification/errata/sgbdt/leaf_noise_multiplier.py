"""S-GBDT's sigma_leaf, read as a noise multiplier. Theorem 10 is right; the name invites the slip."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafNoiseMultiplier(Specimen):
    """One leaf's (count, gradient sum) with the released code's noise, priced as a Gaussian of multiplier sigma_leaf.

    Stddevs sigma / sqrt(2 r1) and g* sigma / sqrt(2 (1 - r1)): a row at the clip is a Gaussian of mu = sqrt 2 / sigma.
    docs/errata.md#errata-sgbdt-leaf-noise.

    Args:
        sigma: sigma_leaf.
        count_share: r1, in (0, 1).
        bound: g*.
    """

    name: ClassVar[str] = "sgbdt-leaf-noise-multiplier"
    source: ClassVar[str] = "Theorem 10, Corollary 22; released code, DPTree::add_leaf_noise"
    anchor: ClassVar[str] = "errata-sgbdt-leaf-noise"
    verdict: ClassVar[Verdict] = "slip"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    sigma: float = 2.0
    count_share: float = 0.2
    bound: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive("sigma", self.sigma, "1")
        if _validate.rate("count_share", self.count_share, "share of the noise") >= 1.0:
            raise _validate.fail("count_share", self.count_share, "in (0, 1)", "share of the noise")
        _validate.positive("bound", self.bound, "units of the gradient")

    @property
    def claim(self) -> GaussianEvent:
        """The slip: sigma_leaf as a multiplier."""
        return GaussianEvent(noise_multiplier=self.sigma, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient at the clip; and an empty leaf."""
        return np.full(1, self.bound), np.ones(0)

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(count, sum), shape (n, 2)."""
        sums = np.array([dataset.size, np.clip(dataset, -self.bound, self.bound).sum()])
        shares = 2.0 * np.array([self.count_share, 1.0 - self.count_share])
        stddevs = self.sigma * np.array([1.0, self.bound]) / np.sqrt(shares)
        return np.asarray(sums + stddevs * rng.normal(0.0, 1.0, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        return gdp.delta(math.sqrt(2.0) / self.sigma, epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("noise multiplier", self.sigma, self.sigma / math.sqrt(2.0)),)
