"""DP-XGBoost's released code: the rows of a sample follow from a seed that is 0 by default."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import OneLaplace


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSample(OneLaplace):
    """A noisy number of sampled rows, where everybody knows which rows are sampled.

    docs/errata.md#errata-dpxgboost-sampling.

    Args:
        epsilon: the price of a tree without sampling, in nats.
        sampling_rate: gamma, in (0, 1).
    """

    name: ClassVar[str] = "dpxgboost-public-sample"
    source: ClassVar[str] = "Section 4.4; released code, XGBoost's row sampling with the default seed 0"
    anchor: ClassVar[str] = "errata-dpxgboost-sampling"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 1.0
    sampling_rate: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        if not 0.001 <= _validate.real("sampling_rate", self.sampling_rate, "probability") < 1.0:
            raise _validate.fail("sampling_rate", self.sampling_rate, "in [0.001, 1)", "probability")

    @property
    def claim(self) -> PureEvent:
        """log(1 + gamma (e^epsilon - 1))."""
        amplified = np.log1p(self.sampling_rate * np.expm1(self.epsilon))
        return PureEvent(epsilon=float(amplified), adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows up to and with the first that the public seed samples; and without that one."""
        place = int(np.argmax(self._sampled(100_000)))
        return np.ones(place + 1), np.ones(place)

    @property
    def witness(self) -> float:
        return self.claim.epsilon

    def law(self, dataset: FloatArray) -> tuple[float, float]:
        return float(dataset[self._sampled(dataset.size)].sum()), 1.0 / self.epsilon

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.claim.epsilon, self.pure_epsilon()),)

    def _sampled(self, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of the rows, in their order, are in the sample of every run."""
        return np.random.default_rng(0).random(rows) < self.sampling_rate
