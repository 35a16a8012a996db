"""PrivaTree's Algorithm 1: a node whose rows are all of one class becomes a leaf."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureNode(Deterministic):
    """Whether the root is split. docs/errata.md#errata-privatree-stops."""

    name: ClassVar[str] = "privatree-pure-node"
    source: ClassVar[str] = "Algorithm 1, line 7; released code until commit f2922ff"
    anchor: ClassVar[str] = "errata-privatree-stops"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=0.1, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Classes, the last row of another one than the rest; and without it."""
        return np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3)

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the root is split."""
        return (float(np.unique(dataset).size > 1),)
