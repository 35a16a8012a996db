"""S-GBDT's Theorem 18 and Algorithm 7: from Renyi to (epsilon, delta) by log delta = rho - order * epsilon."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiConversion(Specimen):
    """One count with normal noise, of Renyi divergence rho at an order, converted as Algorithm 7 does.

    A Gaussian of mu^2 = 2 rho / order has exactly that divergence, and its delta has a closed form.
    docs/errata.md#errata-sgbdt-conversion.

    Args:
        order: the Renyi order, > 1.
        divergence: rho at that order, in nats.
        target: the delta that is asked for.
    """

    name: ClassVar[str] = "sgbdt-renyi-conversion"
    source: ClassVar[str] = "Theorem 18; Algorithm 7, line 6"
    anchor: ClassVar[str] = "errata-sgbdt-conversion"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    order: float = 50.0
    divergence: float = 0.5
    target: float = 1e-5

    def __post_init__(self) -> None:
        if _validate.real("order", self.order, "Renyi order") <= 1.0:
            raise _validate.fail("order", self.order, "> 1", "Renyi order")
        _validate.positive("divergence", self.divergence, "nats")
        if _validate.rate("target", self.target, "probability") >= 1.0:
            raise _validate.fail("target", self.target, "in (0, 1)", "probability")

    @property
    def claim(self) -> Budget:
        """The epsilon' that solves exp(rho - order * epsilon') = delta."""
        return Budget(epsilon=self.witness, delta=self.target, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One row; and none."""
        return np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return (self.divergence - math.log(self.target)) / self.order

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        return float(dataset.sum()) + rng.normal(0.0, 1.0 / self._mu(), n)

    def _delta(self, epsilon: float) -> float:
        return gdp.delta(self._mu(), epsilon)

    def more_rows(self) -> tuple[Row, ...]:
        # The same noise by a larger order: the printed rule tends to mu^2 / 2, whatever delta is.
        larger = replace(self, order=2000.0, divergence=2000.0 * self.divergence / self.order)
        return (
            Row(f"epsilon at delta {self.target:.4g}", self.witness, gdp.epsilon(self._mu(), self.target)),
            Row(
                f"delta at epsilon {larger.witness:.4g}, the same noise by order {larger.order:g}",
                self.target,
                larger.delta(larger.witness),
            ),
        )

    def _mu(self) -> float:
        return math.sqrt(2.0 * self.divergence / self.order)
