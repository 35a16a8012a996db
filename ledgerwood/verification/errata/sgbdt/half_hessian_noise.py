"""S-GBDT's released code, logistic loss: the hessian sum gets half of the noise that was accounted for."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalfHessianNoise(Specimen):
    """One leaf's sums of clipped gradients and hessians; the second noise is multiplied by 0.5.

    The accountant charges mu^2 = 2 / sigma^2; the halved draw makes it 2 ((1 - r1) + 4 r1) / sigma^2 for a row that
    reaches both bounds, as one of hessian 1/4 does whenever h* <= 1/4. docs/errata.md#errata-sgbdt-hessian.

    Args:
        sigma: the code's noise scale.
        hessian_share: r1, in (0, 1).
        gradient_bound, hessian_bound: g* <= 1/2 and h* <= 1/4, so that the row of the pair reaches both.
    """

    name: ClassVar[str] = "sgbdt-half-hessian-noise"
    source: ClassVar[str] = "released code, DPTree::add_leaf_noise"
    anchor: ClassVar[str] = "errata-sgbdt-hessian"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    sigma: float = 4.0
    hessian_share: float = 0.1
    gradient_bound: float = 0.5
    hessian_bound: float = 0.25

    def __post_init__(self) -> None:
        _validate.positive("sigma", self.sigma, "1")
        if _validate.rate("hessian_share", self.hessian_share, "share of the noise") >= 1.0:
            raise _validate.fail("hessian_share", self.hessian_share, "in (0, 1)", "share of the noise")
        for name, value, most in (
            ("gradient_bound", self.gradient_bound, 0.5),
            ("hessian_bound", self.hessian_bound, 0.25),
        ):
            if _validate.positive(name, value, "units of the statistic") > most:
                raise _validate.fail(name, value, f"at most {most}", "units of the statistic")

    @property
    def claim(self) -> GaussianEvent:
        """What the code's accountant charges for one full batch: Renyi divergence order / sigma^2."""
        return GaussianEvent(noise_multiplier=self.sigma / math.sqrt(2.0), adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row (gradient, hessian) at score 0, shape (1, 2); and none."""
        return np.array([[-0.5, 0.25]]), np.ones((0, 2))

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(gradient sum, hessian sum), shape (n, 2)."""
        bounds = np.array([self.gradient_bound, self.hessian_bound])
        sums = np.clip(dataset, -bounds, bounds).sum(axis=0)
        shares = 2.0 * np.array([1.0 - self.hessian_share, self.hessian_share])
        stddevs = np.array([1.0, 0.5]) * self.sigma * bounds / np.sqrt(shares)
        return np.asarray(sums + stddevs * rng.normal(0.0, 1.0, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        return gdp.delta(math.sqrt(self._mu_squared()), epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(
                f"Rényi divergence times sigma^2 / order, r1 = {share:g}",
                1.0,
                0.5 * self.sigma**2 * replace(self, hessian_share=share)._mu_squared(),
            )
            for share in (0.04, 0.1, 0.5)
        )

    def _mu_squared(self) -> float:
        return 2.0 * (1.0 - self.hessian_share + 4.0 * self.hessian_share) / self.sigma**2
