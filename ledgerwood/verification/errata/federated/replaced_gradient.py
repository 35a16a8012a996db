"""Maddock et al., section 2.2: data sets that differ on a single individual, and the sensitivity of a row more."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedGradient(Specimen):
    """One pair of sums (gradient, hessian) in which a row is replaced by one of the opposite gradient.

    docs/errata.md#errata-federated-neighbours.

    Args:
        noise_multiplier: standard deviation over the printed sensitivity.
        gradient: of the row, in (0, 1); the hessian is gradient * (1 - gradient).
    """

    name: ClassVar[str] = "federated-replaced-gradient"
    source: ClassVar[str] = "Section 2.2 (neighbouring data sets), section 4.2 (sensitivity)"
    anchor: ClassVar[str] = "errata-federated-neighbours"
    verdict: ClassVar[Verdict] = "slip"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    noise_multiplier: float = 2.0
    gradient: float = 0.99

    def __post_init__(self) -> None:
        _validate.positive("noise_multiplier", self.noise_multiplier, "sensitivities")
        _validate.positive("gradient", self.gradient, "units of the gradient")
        if self.gradient >= 1.0:
            raise _validate.fail("gradient", self.gradient, "below 1", "units of the gradient")

    @property
    def claim(self) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients p - y; the last row's sign is exchanged."""
        return np.array([0.5, -0.5, self.gradient]), np.array([0.5, -0.5, -self.gradient])

    @property
    def witness(self) -> float:
        return 1.0

    def stddev(self) -> float:
        """By the printed sensitivity, sqrt(17) / 4."""
        return self.noise_multiplier * math.sqrt(17.0) / 4.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Both sums, shape (n, 2)."""
        size = np.abs(dataset)
        sums = np.array([dataset.sum(), (size * (1.0 - size)).sum()])
        return np.asarray(sums + self.stddev() * rng.standard_normal((n, 2)))

    def _delta(self, epsilon: float) -> float:
        """The hessian stays, the gradient sum moves by twice the gradient."""
        event = GaussianEvent(noise_multiplier=self.stddev() / (2.0 * self.gradient), adjacency=self.adjacency)
        return math.exp(float(event.log_profile(np.array([epsilon]), direction=Direction.REMOVE)[0]))

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("sensitivity", math.sqrt(17.0) / 4.0, 2.0 * self.gradient),)
