"""S-GBDT's released code, `custom_noise_scale`: the scale is passed where the number of compositions belongs."""

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
class CustomNoise(Specimen):
    """A count released by every tree, full batch, with noise that was found for fewer trees than are trained.

    `setup_accounting(custom_noise_scale)` is the function of one whole number, the compositions: the scale is cut to
    its whole part, noise is sought for so many trees, and replaces the custom one. docs/errata.md#errata-sgbdt-custom.

    Args:
        custom_scale: the parameter, at least 1.
        trees: the trees that are trained, more than that.
        mu: what the accountant books: the Gaussian parameter of floor(custom_scale) releases together.
    """

    name: ClassVar[str] = "sgbdt-custom-noise"
    source: ClassVar[str] = "released code, DPEnsemble::train and RDPAccountant::setup_accounting"
    anchor: ClassVar[str] = "errata-sgbdt-custom"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    custom_scale: float = 5.5
    trees: int = 20
    mu: float = 0.5

    def __post_init__(self) -> None:
        if _validate.real("custom_scale", self.custom_scale, "1") < 1.0:
            raise _validate.fail("custom_scale", self.custom_scale, ">= 1", "1")
        _validate.count("trees", self.trees, "trees", minimum=int(self.custom_scale) + 1)
        _validate.positive("mu", self.mu, "1")

    @property
    def claim(self) -> GaussianEvent:
        """The price of floor(custom_scale) releases."""
        return GaussianEvent(noise_multiplier=1.0 / self.mu, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return 1.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The noisy count of every tree, shape (n, trees)."""
        stddev = math.sqrt(int(self.custom_scale)) / self.mu
        return float(dataset.sum()) + rng.normal(0.0, stddev, (n, self.trees))

    def _delta(self, epsilon: float) -> float:
        return gdp.delta(self.mu * math.sqrt(self.trees / int(self.custom_scale)), epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        booked = int(self.custom_scale)
        return (Row("Rényi divergence over what is booked", 1.0, self.trees / booked),)
