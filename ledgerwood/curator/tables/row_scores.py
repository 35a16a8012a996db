"""The rows' state while an ensemble grows: each row's target, and its score by the trees so far."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import Ensemble


@final
class RowScores:
    """Scores of one growing ensemble, and the targets that they are to meet; for the table alone.

    Args:
        targets: float64 (n_rows,), in [-1, 1]; NaN for a row that takes no part.

    Attributes:
        scores: float64 (n_rows,), by `prefix`.
        prefix: the ensemble that has been added up; None: the scores are no ensemble's, as after an interrupt.
    """

    __slots__ = ("prefix", "scores", "targets")

    def __init__(self, targets: NDArray[np.float64]) -> None:
        self.targets = targets
        self.scores = np.zeros(len(targets))
        self.prefix: Ensemble | None = Ensemble(initial_score=0.0)
