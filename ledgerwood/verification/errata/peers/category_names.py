"""DP-EBM's private bins: the names of categories are those of the training rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.verification.errata.base import FloatArray, Verdict
from ledgerwood.verification.errata.outputs import Finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryNames(Finite):
    """One category of many rows, and one of a single row. A name is kept if its noisy weight reaches the target.

    docs/errata.md#errata-peers-data-reads.

    Args:
        count: rows of the common category.
        max_bins: of a feature.
        stddev: of the noise of a weight.
    """

    name: ClassVar[str] = "peers-category-names"
    source: ClassVar[str] = "interpret-core 0.7, private_categorical_binning (np.unique of the column)"
    anchor: ClassVar[str] = "errata-peers-data-reads"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    count: int = 40
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
        """Categories: all rows of one but the last; and without that."""
        return np.append(np.zeros(self.count), 1.0), np.zeros(self.count)

    @property
    def witness(self) -> float:
        return 100.0

    def law(self, dataset: FloatArray) -> FloatArray:
        """Of the names that the model shows: both; the common one alone; neither.

        A small category is merged with the smallest other one as long as both together are below the target; of two
        categories either both names are kept or none.
        """
        gaps = (np.unique(dataset, return_counts=True)[1] - dataset.size / self.max_bins) / self.stddev
        if gaps.size == 1:
            return np.array([0.0, special.ndtr(gaps[0]), special.ndtr(-gaps[0])])
        shown = float(special.ndtr(gaps).prod())
        return np.array([shown, 0.0, 1.0 - shown])
