"""S-GBDT's released code, individual filter with Newton leaves: prices are cached under a key without the hessian."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.errata.base import Auditor, FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCache(Specimen):
    """Two rows whose gradients are clipped to the same size; the second is charged what the first one's hessian costs.

    The noise here is that of the accounting (not halved), to show this defect alone. docs/errata.md#errata-sgbdt-cache.

    Args:
        sigma: the code's noise scale.
        hessian_share: r1, in (0, 1).
        bound: g*, the clip of the gradient.
        hessian_bound: h*.
        sampling_rate: gamma, below 1: only then the code caches.
        first_gradient: |g| of the row that is priced first, in (bound, 1); its hessian is |g| (1 - |g|).
        order: the Renyi order of the filter.
    """

    name: ClassVar[str] = "sgbdt-price-cache"
    source: ClassVar[str] = "released code, RDPAccountant::gen_rho"
    anchor: ClassVar[str] = "errata-sgbdt-cache"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE
    auditor: ClassVar[Auditor] = "likelihood ratio"

    sigma: float = 2.0
    hessian_share: float = 0.5
    bound: float = 0.3
    hessian_bound: float = 0.25
    sampling_rate: float = 0.1
    first_gradient: float = 0.99
    order: float = 16.0

    def __post_init__(self) -> None:
        _validate.positive("sigma", self.sigma, "1")
        _validate.rate("sampling_rate", self.sampling_rate, "probability")
        _validate.rate("hessian_share", self.hessian_share, "share of the noise")
        if not 0.0 < _validate.real("hessian_bound", self.hessian_bound, "units of the hessian") <= 0.25:
            raise _validate.fail("hessian_bound", self.hessian_bound, "in (0, 1/4]", "units of the hessian")
        if not 0.0 < _validate.real("bound", self.bound, "units of the gradient") <= 0.5:
            raise _validate.fail("bound", self.bound, "in (0, 1/2]", "units of the gradient")
        if not self.bound < _validate.real("first_gradient", self.first_gradient, "units of the gradient") < 1.0:
            raise _validate.fail("first_gradient", self.first_gradient, "in (bound, 1)", "units of the gradient")

    @property
    def claim(self) -> PoissonSampled:
        """What the filter books for the second row: the first row's price."""
        return self._sampled(min(self.first_gradient * (1.0 - self.first_gradient) / self.hessian_bound, 1.0))

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (leaf, gradient, hessian): one in leaf 0, priced first, one of hessian 1/4 in leaf 1; and the first."""
        first = [0.0, self.first_gradient, self.first_gradient * (1.0 - self.first_gradient)]
        return np.array([first, [1.0, -0.5, 0.25]]), np.array([first])

    @property
    def witness(self) -> float:
        return 0.5

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(gradient sum, hessian sum) of both leaves, shape (n, 2, 2)."""
        bounds = np.array([self.bound, self.hessian_bound])
        drawn = rng.random((n, len(dataset))) < self.sampling_rate
        member = dataset[:, :1] == np.arange(2.0)  # (rows, leaves)
        sums = np.einsum("nr,rl,rk->nlk", drawn, member, np.clip(dataset[:, 1:], -bounds, bounds))
        return np.asarray(sums + rng.normal(0.0, 1.0, (n, 2, 2)) * self._stddevs())

    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """Of leaf 1: log(1 - gamma + gamma dN(mu) / dN(0)); leaf 0 has one law."""
        stddevs = self._stddevs()
        mean = np.array([-self.bound, self.hessian_bound]) / stddevs
        present = (outputs[:, 1] / stddevs) @ mean - 0.5 * float(mean @ mean)
        return np.asarray(np.log1p(self.sampling_rate * np.expm1(present)))

    def _stddevs(self) -> FloatArray:
        """Of the noise of a gradient sum and of a hessian sum."""
        shares = 2.0 * np.array([1.0 - self.hessian_share, self.hessian_share])
        return np.asarray(self.sigma * np.array([self.bound, self.hessian_bound]) / np.sqrt(shares))

    def _delta(self, epsilon: float) -> float:
        """Leaf 0 has one law on both data sets and is independent of leaf 1, whose row reaches both bounds."""
        exact, point = self._sampled(1.0), np.array([epsilon])
        return float(np.exp(max(exact.log_profile(point, direction=way)[0] for way in Direction)))

    def more_rows(self) -> tuple[Row, ...]:
        charged, exact = self.claim.renyi(self.order)[0], self._sampled(1.0).renyi(self.order)[0]
        return (Row(f"Rényi divergence of order {self.order:g}", float(charged), float(exact)),)

    def _sampled(self, relative_hessian: float) -> PoissonSampled:
        """A row at the gradient's bound and `relative_hessian` of the hessian's."""
        mu_squared = 2.0 * (1.0 - self.hessian_share + self.hessian_share * relative_hessian**2) / self.sigma**2
        event = GaussianEvent(noise_multiplier=1.0 / math.sqrt(mu_squared), adjacency=self.adjacency)
        return PoissonSampled(event, sampling_rate=self.sampling_rate)
