"""DP-XGBoost's section 4.4: sampling without replacement divides the price of a replaced row."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedSample(Specimen):
    """A gradient sum over a sample of fixed size, with Laplace noise for the sensitivity of one more row, g* = 1.

    Balle, Barthe and Gaboardi's formula for samples of fixed size takes the price of a replaced row, twice that of an
    added one. docs/errata.md#errata-dpxgboost-sampling.

    Args:
        epsilon: the price of a tree without sampling for one row more or less, in nats.
        sample: rows drawn.
        count: rows.
    """

    name: ClassVar[str] = "dpxgboost-replaced-sample"
    source: ClassVar[str] = "Section 4.4 (a fraction without replacement) with the sensitivities of Section 4"
    anchor: ClassVar[str] = "errata-dpxgboost-sampling"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    epsilon: float = 1.0
    sample: int = 1
    count: int = 10

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("sample", self.sample, "rows")
        if _validate.count("count", self.count, "rows") <= self.sample:
            raise _validate.fail("count", self.count, "larger than the sample", "rows")

    @property
    def claim(self) -> PureEvent:
        """log(1 + gamma (e^epsilon - 1))."""
        amplified = np.log1p(self.sample / self.count * np.expm1(self.epsilon))
        return PureEvent(epsilon=float(amplified), adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Gradients of 0 and a last one of 1; or of -1."""
        rows = np.zeros(self.count - 1)
        return np.append(rows, 1.0), np.append(rows, -1.0)

    @property
    def witness(self) -> float:
        return self.claim.epsilon

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        rows = np.argsort(rng.random((n, self.count)), axis=1)[:, : self.sample]
        return np.asarray(dataset[rows].sum(axis=1) + rng.laplace(0.0, 1.0 / self.epsilon, n))

    def _delta(self, epsilon: float) -> float:
        """The ratio of the two densities grows with the output, from its smallest value at -1 to the largest at 1."""
        rate, eps = self.sample / self.count, self.epsilon
        inner = math.exp(epsilon) * (1.0 - rate + rate * math.exp(-eps)) - (1.0 - rate)
        place = 0.5 * (math.log(inner / rate) + eps) / eps if inner > 0.0 else 0.0
        if place >= 1.0:
            return 0.0
        absent = 0.5 * (1.0 - rate) * math.exp(-eps * place)
        above = absent + rate * (1.0 - 0.5 * math.exp(eps * (place - 1.0)))
        return max(0.0, above - math.exp(epsilon) * (absent + 0.5 * rate * math.exp(-eps * (place + 1.0))))

    def more_rows(self) -> tuple[Row, ...]:
        rate, eps = self.sample / self.count, self.epsilon
        exact = math.log1p(rate * math.expm1(eps)) - math.log1p(rate * math.expm1(-eps))
        return (Row("pure epsilon", self.claim.epsilon, exact),)
