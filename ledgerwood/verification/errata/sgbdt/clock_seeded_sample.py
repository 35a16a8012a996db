"""S-GBDT's released code: which rows are sampled is decided by `rand()`, seeded with the second of the start."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.errata.base import FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSeededSample(Specimen):
    """One count with normal noise over a sample, seen by somebody who knows the second at which training began.

    The first tree's shuffle follows from that second, and with it the row's place; the sample is the first N rows of
    the shuffle, and only N ~ Binomial(rows, rate) is drawn from a better source. Given the place, the row is in with
    probability Pr[N >= place], which is near 0 or near 1. docs/errata.md#errata-sgbdt-clock.

    Args:
        noise_multiplier: stddev of the count.
        sampling_rate: gamma.
        count: rows, the one that differs included; the others are in other leaves.
    """

    name: ClassVar[str] = "sgbdt-clock-seeded-sample"
    source: ClassVar[str] = "released code, random_unique and S_BDT.__cinit__"
    anchor: ClassVar[str] = "errata-sgbdt-clock"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    noise_multiplier: float = 1.0
    sampling_rate: float = 0.1
    count: int = 1000

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "standard deviations per unit of sensitivity")
        if _validate.rate("sampling_rate", self.sampling_rate, "probability") >= 1.0:
            raise _validate.fail("sampling_rate", self.sampling_rate, "in (0, 1)", "probability")
        _validate.count("count", self.count, "rows")

    @property
    def claim(self) -> PoissonSampled:
        """A secret Poisson sample."""
        return self._sampled(self.sampling_rate)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Membership of the leaf: `count` - 1 rows outside and one inside; and without the latter."""
        others = np.zeros(self.count - 1)
        return np.append(others, 1.0), others

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """(place of the last of `count` rows in the shuffle, noisy count of sampled rows in the leaf), shape (n, 2)."""
        place = rng.integers(1, self.count + 1, n)
        inside = (dataset.sum() > 0.0) & (place <= rng.binomial(self.count, self.sampling_rate, n))
        return np.stack([place, inside + rng.normal(0.0, self.noise_multiplier, n)], axis=1)

    def _delta(self, epsilon: float) -> float:
        """The mean over the known place of the sampled Gaussian at the rate that is left, by enumeration."""
        point = np.array([epsilon])
        rates = [rate for rate in self.rates() if rate > 1e-20]  # the others add less than that
        return max(
            math.fsum(math.exp(self._sampled(rate).log_profile(point, direction=way)[0]) for rate in rates) / self.count
            for way in Direction
        )

    def rates(self) -> tuple[float, ...]:
        """Pr[N >= place] for every place from 1 to `count`."""
        from scipy.stats import binom

        tail = binom.sf(np.arange(self.count), self.count, self.sampling_rate)
        return tuple(float(value) for value in np.minimum(tail, 1.0))

    def _sampled(self, rate: float) -> PoissonSampled:
        event = GaussianEvent(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency)
        return PoissonSampled(event, sampling_rate=rate)
