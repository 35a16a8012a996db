"""DPBoost's experiments: labels are scaled to [-1, 1] by their own smallest and largest value."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScaling(Deterministic):
    """The two numbers that scale every prediction back. docs/errata.md#errata-dpboost-data-reads."""

    name: ClassVar[str] = "dpboost-label-scaling"
    source: ClassVar[str] = "Section 4; released code, run_exp.py"
    anchor: ClassVar[str] = "errata-dpboost-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=1.0, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels, the last of them the largest; and without it."""
        return np.array([1.0, 8.0, 9.0, 29.0]), np.array([1.0, 8.0, 9.0])

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """(least, largest)."""
        return float(dataset.min()), float(dataset.max())
