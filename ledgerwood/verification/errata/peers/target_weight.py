"""DP-EBM's private bins: noisy weights are merged up to a target that is a share of the exact number of rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import Auditor, FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWeight(Specimen):
    """The first of the bins: its noisy weight, if that reaches the target; else nothing is cut.

    A weight that is shown is at least the target: between the targets of n and n + 1 rows it can only be of n.
    docs/errata.md#errata-peers-data-reads.

    Args:
        count: rows, without the one that differs.
        max_bins: of a feature.
        stddev: of the noise of a weight; 32.5 is for a tenth of epsilon 1, half of delta 1e-5, one feature.
    """

    name: ClassVar[str] = "peers-target-weight"
    source: ClassVar[str] = "interpret-core 0.7, private_numeric_binning (target_weight)"
    anchor: ClassVar[str] = "errata-peers-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE
    auditor: ClassVar[Auditor] = "likelihood ratio"

    count: int = 640
    max_bins: int = 32
    stddev: float = 32.5

    def __post_init__(self) -> None:
        _validate.count("count", self.count, "rows")
        _validate.count("max_bins", self.max_bins, "bins")
        _validate.positive("stddev", self.stddev, "rows")

    @property
    def claim(self) -> Budget:
        return Budget(epsilon=0.1, delta=5e-6, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Rows, none of them in the first bin: one more; and `count`."""
        return np.ones(self.count + 1), np.ones(self.count)

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The weight of the first bin, or 0 if it is merged with the next, shape (n,)."""
        weight = self.stddev * rng.standard_normal(n)
        return np.asarray(np.where(weight >= dataset.size / self.max_bins, weight, 0.0))

    def log_ratio(self, outputs: FloatArray) -> FloatArray:
        """Below the larger target only the smaller one shows a weight; above it both show the same."""
        more, less = (part.size / self.max_bins for part in self.pair)
        merged = special.log_ndtr(more / self.stddev) - special.log_ndtr(less / self.stddev)
        return np.where(outputs == 0.0, merged, np.where(outputs < more, -np.inf, 0.0))

    def _delta(self, epsilon: float) -> float:
        """The same at every epsilon: the mass between the targets, of weights that only the smaller target shows."""
        more, less = (special.ndtr(part.size / self.max_bins / self.stddev) for part in self.pair)
        return float(more - less)
