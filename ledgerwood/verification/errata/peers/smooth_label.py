"""Forests of Fletcher and Islam: a label by the exponential mechanism with smooth sensitivity."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import FloatArray, Row, Verdict
from ledgerwood.verification.errata.outputs import Finite

_MOST = 700.0
"""Nats of log-odds: a rarer label has no probability in float64."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLabel(Finite):
    """One leaf of two labels; the commonest has utility 1, the other 0, and the sensitivity is e^(-epsilon gap).

    docs/errata.md#errata-peers-smooth-labels.

    Args:
        epsilon: the claimed price, in nats.
        gap: by how many rows the commonest label leads, without the row that is added.
    """

    name: ClassVar[str] = "peers-smooth-label"
    source: ClassVar[str] = "Fletcher and Islam 2017, smooth sensitivity of a leaf's majority label; so DPGDF (2019)"
    anchor: ClassVar[str] = "errata-peers-smooth-labels"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    epsilon: float = 0.1
    gap: int = 40

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon, "nats")
        _validate.count("gap", self.gap, "rows")
        if 0.5 * self.epsilon * math.exp(min(self.epsilon * (self.gap + 1), _MOST)) > _MOST:
            raise _validate.fail("gap", self.gap, f"such that log-odds are at most {_MOST:g}", "rows")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Labels, all of class 0: with a row more; and without."""
        return np.zeros(self.gap + 1), np.zeros(self.gap)

    @property
    def witness(self) -> float:
        return self.epsilon

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of the two labels; class 0 has all rows."""
        odds = math.exp(-0.5 * self.epsilon * math.exp(self.epsilon * dataset.size))
        return np.array([1.0, odds]) / (1.0 + odds)

    def more_rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(f"pure epsilon, {gap} rows ahead", self.epsilon, replace(self, gap=gap).pure_epsilon())
            for gap in (40, 60, 80)
        )
