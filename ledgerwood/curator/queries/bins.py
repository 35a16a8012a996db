"""Bins of several features' cells, between candidates for a split: what histograms of a tree's level count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.kernels import histograms as kernels
from ledgerwood.curator.kernels.growing_histograms import NamedRoom, fresh
from ledgerwood.curator.kernels.sparse_sums import sums_by_bin
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import RoundViolation
from ledgerwood.feature_cells import require_thresholds
from ledgerwood.sparse_cells import AnyCells, SparseCells

MAX_SUMS = 1 << 24
"""Most sums of one query: 256 MiB in two columns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateBins:
    """The bins of some features: of each its ordered bins, then its equality cells, then the rest.

    A row has exactly one bin of each feature. Thresholds t_1 < ... < t_k make k + 1 ordered bins, bin i of cells from
    t_i to t_{i+1} - 1; each cell that is tested by equality (a category, a missing value) is a bin; of a feature
    without order a last bin holds the cells that are none of these: categories which are not listed.

    Args:
        features: int64 (f,), which features, each once.
        cells: the cells of each of these features.
        thresholds: the thresholds of each of these features, rising whole numbers in 1 .. ordered-1; int64.

    Raises:
        InvalidParameter: no feature, one that is negative or named twice, foreign cells, or thresholds that are not
            theirs.
    """

    features: NDArray[np.int64]
    cells: tuple[FeatureCells, ...]
    thresholds: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        features = np.array(self.features, dtype=np.int64)
        features.setflags(write=False)
        if features.ndim != 1 or not len(features) or features.min() < 0 or len(np.unique(features)) < len(features):
            raise _validate.fail(
                "features", self.features, "at least one feature, each >= 0 and named once", "features"
            )
        object.__setattr__(self, "features", features)
        # What is binned, what is priced and what is kept of the rows by bin must be of the same cells.
        object.__setattr__(self, "cells", tuple(FeatureCells.owned(each) for each in self.cells))
        if not len(features) == len(self.cells) == len(self.thresholds):
            raise _validate.fail("len(features)", len(features), "one cells and one thresholds each", "features")
        owned = []
        for number, each, given in zip(features.tolist(), self.cells, self.thresholds, strict=True):
            # Held to the same bounds as a split's candidates.
            require_thresholds(number, each, np.asarray(given))
            own = np.array(given, dtype=np.int64)
            own.setflags(write=False)
            owned.append(own)
        object.__setattr__(self, "thresholds", tuple(owned))

    @classmethod
    def of(
        cls,
        cells: Sequence[FeatureCells],
        thresholds: Sequence[NDArray[np.int64]] | None = None,
        features: Sequence[int] | None = None,
    ) -> "CandidateBins":
        """The bins of a schema's cells.

        Args:
            cells: the cells of every feature.
            thresholds: the thresholds of every feature; None: all borders of its ordered cells.
            features: which of them are binned; None: all.
        """
        if thresholds is None:
            thresholds = [np.arange(1, each.ordered) for each in cells]
        chosen = range(len(cells)) if features is None else features
        return cls(
            features=np.array(list(chosen), dtype=np.int64),
            cells=tuple(cells[feature] for feature in chosen),
            thresholds=tuple(thresholds[feature] for feature in chosen),
        )

    def __len__(self) -> int:
        # Not that of the array, whose shape can be set even where its numbers cannot.
        return len(self.cells)

    @property
    def ordered(self) -> NDArray[np.int64]:
        """The number of ordered bins of each feature, int64 (f,); 0 of one that has no order."""
        return np.array(
            [len(own) + 1 if each.ordered else 0 for each, own in zip(self.cells, self.thresholds, strict=True)]
        )

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first bin of each feature, and the total number of bins: int64 (f + 1,)."""
        besides = np.array([len(each.equality) + (each.ordered == 0) for each in self.cells])
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.ordered + besides)))

    @property
    def total(self) -> int:
        """The number of bins of all features."""
        return int(self.offsets[-1])

    def lookup(self, place: int, n_cells: int) -> NDArray[np.uint8 | np.uint16]:
        """The bin, from 0, of each cell of the feature at this place; (n_cells,).

        Args:
            place: in `features`.
            n_cells: that a row of the table may have; one that no row of this feature has is in its last bin.
        """
        each, own, ordered = self.cells[place], self.thresholds[place], int(self.ordered[place])
        last = ordered + len(each.equality) - (each.ordered > 0)
        bins: NDArray[Any] = np.full(n_cells, last, dtype=np.uint8 if last < 256 else np.uint16)
        span = min(each.ordered, n_cells)
        bins[:span] = np.searchsorted(own, np.arange(span), side="right")
        for number, cell in enumerate(each.equality):
            if cell < n_cells:
                bins[cell] = ordered + number
        return bins


def require_size(name: str, number: int) -> None:
    """Refuse more sums than one query may have."""
    if number > MAX_SUMS:
        raise _validate.fail(name, number, f"at most {MAX_SUMS}", "sums")


def require_bins(bins: object, shape: TreeShape) -> None:
    """Refuse foreign bins, or those of features that are not there.

    Raises:
        RoundViolation: of such bins.
    """
    if type(bins) is not CandidateBins or bins.features.max() >= shape.n_features:
        raise RoundViolation(f"bins of features outside {shape.features}")


@final
class _LastBins:
    """The bins that were asked for last, and each row's."""

    __slots__ = ("bins", "by_row")

    def __init__(self) -> None:
        self.bins: CandidateBins | None = None
        self.by_row: AnyCells = np.empty((0, 0), dtype=np.uint8)


def binned(bins: CandidateBins, rows: TreeRows) -> AnyCells:
    """The bin of each row, uint8 or uint16 (n_binned_features, n_rows), kept until others are asked for.

    Args:
        bins: that `require_bins` has seen.
        rows: sampled or not: all are binned.
    """
    last = rows.memory(_LastBins)
    if last.bins is not bins:
        last.bins = None  # until all rows are binned
        last.by_row = bin_rows(bins, rows.cells, rows.named_room("candidates"))
        last.bins = bins
    return last.by_row


def sums_of_bins(bins: CandidateBins, rows: TreeRows, contributions: NDArray[np.int32]) -> NDArray[np.int64]:
    """The sums over all rows by bin, int64 (bins.total, 1); one contribution a row, int32 (n_rows,)."""
    columns = binned(bins, rows)
    if not isinstance(columns, SparseCells):
        return kernels.one_column(columns, bins.offsets, contributions)
    nothing = np.zeros(len(contributions), dtype=np.int32)
    return sums_by_bin(columns, np.arange(len(bins)), bins.offsets, nothing, 1, contributions, nothing)[0, :, :1]


def bin_rows(bins: CandidateBins, cells: AnyCells, room: NamedRoom = fresh) -> AnyCells:
    """The bin of each row, (f, n_rows); the cells themselves where they are the bins.

    Args:
        bins: the bins of features that are there.
        cells: (n_features, n_rows).
        room: for the bins.
    """
    n_cells = 2 ** (8 * cells.dtype.itemsize)
    lookups = [bins.lookup(place, n_cells) for place in range(len(bins))]
    if len(bins) == len(cells) and all(
        feature == place and np.array_equal(lookup[: each.ordered + len(each.equality)], _same(each))
        for place, (feature, each, lookup) in enumerate(zip(bins.features, bins.cells, lookups, strict=True))
    ):
        return cells
    if isinstance(cells, SparseCells):
        return cells.mapped(bins.features, lookups)
    dtype, n_rows = np.result_type(*lookups), cells.shape[1]
    size = len(bins) * n_rows
    binned = room("bins", -(-size * dtype.itemsize // 8)).view(dtype)[:size].reshape(len(bins), n_rows)
    for place, (feature, lookup) in enumerate(zip(bins.features, lookups, strict=True)):
        np.take(lookup, cells[feature], out=binned[place])
    return binned


def _same(each: FeatureCells) -> NDArray[np.int64]:
    """The cells of an ordered feature, where each may be its own bin; the rest of another feature is not at its end."""
    return np.arange(each.ordered + len(each.equality)) if each.ordered else np.full(1, -1)
