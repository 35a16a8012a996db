"""Maddock et al., released code: noisy sums are clipped to what the exact number of rows allows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSums(Specimen):
    """The gradient sum of one leaf whose rows all have gradient 0, bounds of 1, `gradient_clipping` on.

    A sum that was clipped is the number of rows itself. docs/errata.md#errata-federated-data-reads.

    Args:
        count: rows of the leaf, without the one that differs.
        stddev: of the noise of a sum, in units of the gradient.
    """

    name: ClassVar[str] = "federated-clipped-sums"
    source: ClassVar[str] = "released code, PrivacyAccountant._add_dp_noise (num_obs)"
    anchor: ClassVar[str] = "errata-federated-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    count: int = 10
    stddev: float = 20.0

    def __post_init__(self) -> None:
        _validate.count("count", self.count, "rows")
        _validate.positive("stddev", self.stddev, "units of the gradient")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=1.0, delta=1e-5, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients of 0: one more; and `count`."""
        return np.zeros(self.count + 1), np.zeros(self.count)

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The leaf's noisy sum, clipped, shape (n,)."""
        noisy = dataset.sum() + self.stddev * rng.standard_normal(n)
        return np.asarray(np.clip(noisy, -float(dataset.size), float(dataset.size)))

    def _delta(self, epsilon: float) -> float:
        """The same at every epsilon: between the smaller ends both laws are one; the ends have mass in one law only.

        With the row everything at or beyond the smaller ends is impossible without it, but for the ends themselves,
        which have no mass with it; so both directions lose the mass of |noise| >= count.
        """
        return float(2.0 * special.ndtr(-self.count / self.stddev))
