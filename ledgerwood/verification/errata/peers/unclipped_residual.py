"""DP-EBM's regression: noise for the range of the labels, while residuals are not clipped."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnclippedResidual(Specimen):
    """Two rounds over one bin of noisy weight 1 at learning rate 1; the label range is 1.

    The first round's noise is in the score, so that the second one's residual is as large as it happens to be.
    docs/errata.md#errata-peers-residual.

    Args:
        noise_multiplier: standard deviation over the range of the labels, a round.
    """

    name: ClassVar[str] = "peers-unclipped-residual"
    source: ClassVar[str] = "interpret-core 0.7, BaseEBM.fit (domain_size) and boost; interpret issue 523"
    anchor: ClassVar[str] = "errata-peers-residual"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    noise_multiplier: float = 2.0

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "ranges of the labels")

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=self.noise_multiplier / math.sqrt(2.0), adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels in [0, 1]: one of 1; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both rounds' noisy sums of residuals, shape (n, 2)."""
        noise = self.noise_multiplier * rng.standard_normal((n, 2))
        first = dataset.sum() + noise[:, 0]
        second = dataset.sum() - dataset.size * first + noise[:, 1]
        return np.stack([first, second], axis=1)

    def _delta(self, epsilon: float) -> float:
        """Over the first round, the profile of the second, a Gaussian pair of shift 1 - x, at the epsilon left."""
        sigma = self.noise_multiplier
        points, weights = np.polynomial.legendre.leggauss(64)
        edges = 1.0 + sigma * np.linspace(-40.0, 40.0, 81)
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        x = (middle[:, None] + half[:, None] * points).ravel()
        mass = (half[:, None] * weights).ravel()
        loss, mu = (x - 0.5) / sigma**2, np.abs(1.0 - x) / sigma
        first, second = (np.exp(-0.5 * ((x - centre) / sigma) ** 2) / (sigma * _ROOT) for centre in (1.0, 0.0))
        remove = float(mass @ (first * _profile(mu, epsilon - loss)))
        add = float(mass @ (second * _profile(mu, epsilon + loss)))
        return min(1.0, max(remove, add))


_ROOT = math.sqrt(2.0 * math.pi)


def _profile(mu: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Of N(mu, 1) against N(0, 1), at any real epsilon; its second term in logarithms."""
    second = np.exp(epsilon + special.log_ndtr(-0.5 * mu - epsilon / mu))
    return np.asarray(np.maximum(special.ndtr(0.5 * mu - epsilon / mu) - second, 0.0))
