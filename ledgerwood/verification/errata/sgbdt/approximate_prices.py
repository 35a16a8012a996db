"""S-GBDT's released code, approximate filter with Newton leaves: the table is looked up at the least hessian."""

import bisect
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
class ApproximatePrices(Specimen):
    """One row of gradient below the clip, charged by the next entry of a table that is ordered by (gradient, hessian).

    Pairs are compared by their first member: the next entry above (g, h) is the next gradient with the *least* hessian.
    Full batch, and the noise of the accounting (not halved). docs/errata.md#errata-sgbdt-cache.

    Args:
        sigma: the code's noise scale.
        hessian_share: r1, in (0, 1).
        gradient: |g| of the row, in (0, bound); its hessian is |g| (1 - |g|).
        bound: g* <= 1/2, the clip of the gradient.
        hessian_bound: h* <= 1/4.
        steps: entries of the table along each axis.
    """

    name: ClassVar[str] = "sgbdt-approximate-prices"
    source: ClassVar[str] = "released code, RDPAccountant::approximate_rho"
    anchor: ClassVar[str] = "errata-sgbdt-cache"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    sigma: float = 2.0
    hessian_share: float = 0.5
    gradient: float = 0.3333
    bound: float = 0.5
    hessian_bound: float = 0.25
    steps: int = 1000

    def __post_init__(self) -> None:
        _validate.positive("sigma", self.sigma, "1")
        _validate.rate("hessian_share", self.hessian_share, "share of the noise")
        if _validate.positive("bound", self.bound, "units of the gradient") > 0.5:
            raise _validate.fail("bound", self.bound, "at most 1/2", "units of the gradient")
        if _validate.positive("hessian_bound", self.hessian_bound, "units of the hessian") > 0.25:
            raise _validate.fail("hessian_bound", self.hessian_bound, "at most 1/4", "units of the hessian")
        if not 0.0 < _validate.real("gradient", self.gradient, "units of the gradient") < self.bound:
            raise _validate.fail("gradient", self.gradient, "in (0, bound)", "units of the gradient")
        _validate.count("steps", self.steps, "entries", minimum=2)

    @property
    def claim(self) -> GaussianEvent:
        """The entry that the look-up returns."""
        gradients = [(step + 1.0) / self.steps * self.bound for step in range(self.steps)]
        hessians = [(step + 1.0) / self.steps * self.hessian_bound for step in range(self.steps)]
        row = bisect.bisect_left(gradients, self.gradient)
        above = gradients[row] > self.gradient
        column = 0 if above else min(bisect.bisect_right(hessians, self._hessian()), self.steps - 1)
        mu = self._mu(gradients[row], hessians[column])
        return GaussianEvent(noise_multiplier=1.0 / mu, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row (gradient, hessian), shape (1, 2); and none."""
        return np.array([[self.gradient, self._hessian()]]), np.ones((0, 2))

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(gradient sum, hessian sum), shape (n, 2)."""
        bounds = np.array([self.bound, self.hessian_bound])
        sums = np.clip(dataset, -bounds, bounds).sum(axis=0)
        stddevs = self.sigma * bounds / np.sqrt(2.0 * np.array([1.0 - self.hessian_share, self.hessian_share]))
        return np.asarray(sums + stddevs * rng.normal(0.0, 1.0, (n, 2)))

    def _delta(self, epsilon: float) -> float:
        return gdp.delta(self._mu(self.gradient, min(self._hessian(), self.hessian_bound)), epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        order = np.array([2.0])
        exact = self._mu(self.gradient, min(self._hessian(), self.hessian_bound)) ** 2
        return (Row("Rényi divergence of order 2", float(self.claim.renyi(order)[0]), exact),)

    def _hessian(self) -> float:
        return self.gradient * (1.0 - self.gradient)

    def _mu(self, gradient: float, hessian: float) -> float:
        share = self.hessian_share
        squares = (1.0 - share) * (gradient / self.bound) ** 2 + share * (hessian / self.hessian_bound) ** 2
        return math.sqrt(2.0 * squares) / self.sigma
