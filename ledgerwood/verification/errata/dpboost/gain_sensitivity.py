"""DPBoost's Lemma 1: the gain's sensitivity is taken where all gradients agree; it is largest where they do not."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.gains import gain, softmax
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GainSensitivity(Finite):
    """One split by the exponential mechanism exp(epsilon G / (2 Delta)), with Lemma 1's Delta and g* = 1.

    `alike` candidates keep all rows on the left, one more sends the last row to the right. All gradients are 1, the
    last row's is -1: it takes almost 3 from the gain of the first, and adds 1 / (1 + lambda) to that of the other.
    docs/errata.md#errata-dpboost-gain.

    Args:
        epsilon: the price of the choice, in nats.
        regularization: lambda, > 0.
        count: rows besides the last one.
        alike: candidates that keep all rows together.
    """

    name: ClassVar[str] = "dpboost-gain-sensitivity"
    source: ClassVar[str] = "Lemma 1, Corollary 1; released code until commit 1174730"
    anchor: ClassVar[str] = "errata-dpboost-gain"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    regularization: float = 0.1
    count: int = 1000
    alike: int = 100

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.positive("regularization", self.regularization, "rows")
        _validate.count("count", self.count, "rows")
        _validate.count("alike", self.alike, "candidates")

    @property
    def claim(self) -> PureEvent:
        """Theorem 2 with this sensitivity."""
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (gradient, side under the last candidate): `count` of gradient 1, one of -1; and without the latter."""
        rows = np.tile([1.0, 0.0], (self.count, 1))
        return np.concatenate([rows, [[-1.0, 1.0]]]), rows

    @property
    def witness(self) -> float:
        return self.epsilon

    def sensitivity(self) -> float:
        """Lemma 1, for g* = 1."""
        lam = self.regularization
        return (3.0 * lam + 2.0) / ((lam + 1.0) * (lam + 2.0))

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of all candidates, the one that differs last."""
        gradients, side = dataset.T
        together = gain(gradients, np.zeros(side.size), self.regularization)
        gains = np.append(np.full(self.alike, together), gain(gradients, side, self.regularization))
        return softmax(self.epsilon * gains / (2.0 * self.sensitivity()))

    def more_rows(self) -> tuple[Row, ...]:
        larger = replace(self, regularization=10.0, alike=10_000)
        return (
            Row("pure epsilon", self.epsilon, self.pure_epsilon()),
            Row("pure epsilon, lambda 10, 10000 candidates alike", self.epsilon, larger.pure_epsilon()),
        )
