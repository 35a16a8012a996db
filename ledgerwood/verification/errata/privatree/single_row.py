"""PrivaTree's Algorithm 1: a node with at most one row becomes a leaf."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Deterministic, FloatArray, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRow(Deterministic):
    """Whether the left child of a fixed first split is split again. docs/errata.md#errata-privatree-stops."""

    name: ClassVar[str] = "privatree-single-row"
    source: ClassVar[str] = "Algorithm 1, line 7; released code until commit f2922ff (min_samples_split)"
    anchor: ClassVar[str] = "errata-privatree-stops"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=0.1, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows (side, class): two of two classes on the left; and one of them."""
        return np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array(
            [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
        )

    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """1 if the left child is split."""
        return (float(np.count_nonzero(dataset[:, 0] == 0.0) > 1),)
