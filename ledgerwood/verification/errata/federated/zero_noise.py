"""Maddock et al., released code: histogram splits on one feature a tree have noise at the root only."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroNoise(Specimen):
    """The root's and its left child's histograms of two bins, gradient sums, `split_method` hist_based and k = 1.

    The accounting takes the root's noisy histogram to be reused at all depths; the trees sum the rows again.
    docs/errata.md#errata-federated-zero-noise.

    Args:
        noise_multiplier: that of the root.
    """

    name: ClassVar[str] = "federated-zero-noise"
    source: ClassVar[str] = (
        "released code, PrivacyAccountant._compute_gaussian_composition, PrivateGBDT._form_private_gradient_histogram"
    )
    anchor: ClassVar[str] = "errata-federated-zero-noise"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    noise_multiplier: float = 18.7

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "sensitivities")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (bin, gradient), all in the left child; and without the last."""
        rows = np.array([[0.0, 0.5], [1.0, -0.5], [1.0, 0.5]])
        return rows, rows[:-1]

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both bins of the root, with noise, and of its child, shape (n, 4)."""
        sums = np.bincount(dataset[:, 0].astype(np.int64), weights=dataset[:, 1], minlength=2)
        noisy = sums + self.noise_multiplier * rng.standard_normal((n, 2))
        return np.hstack([noisy, np.tile(sums, (n, 1))])

    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: the child's sums have no noise, and differ."""
        return 1.0
