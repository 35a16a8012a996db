"""The best split of each node by noisy numbers of rows by class: a threshold, or a set of categories.

Post-processing alone: of released counts, of the public tree and of public bins.
"""

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import CandidateBins
from ledgerwood.ensemble import SplitTests, TreeStructure

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


def least_gini_splits(structure: TreeStructure, bins: CandidateBins, counts: NDArray[np.number]) -> SplitTests:
    """For each leaf of the tree so far the split of least weighted Gini impurity, a `SplitTests` of (n_leaves,).

    Of a feature with order: each threshold, with each cell that is tested by equality (a missing value's) on the right
    and on the left, and each such cell against all others. Of categories: sets of them. Two classes: the bins in the
    order of their shares of the second class, cut at each place: one of these cuts is best among all sets (proof in
    docs/explanation/privatree.md#privatree-partitions). More classes: in the declared order.

    Counts below 0 count 0, and so do those of bins that no row of the leaf can be in, by the tests above it. A split
    that the path has decided is no candidate; a leaf without candidate, or without counts above 0 in all features that
    have one, sends every row right. The first of equals is chosen: the first feature, and in it the first threshold.

    Args:
        structure: the tree so far, its tests between the bins.
        bins: as counted. A bin counts as reached where its first cell is.
        counts: (n_leaves, bins.total, classes), finite.

    Raises:
        InvalidParameter: counts of another shape, or not finite.
    """
    given = np.asarray(counts, dtype=np.float64)
    if given.ndim != 3 or given.shape[:2] != (structure.n_leaves, bins.total) or given.shape[2] < 2:
        wanted = f"({structure.n_leaves}, {bins.total}, at least 2)"
        raise _validate.fail("counts.shape", given.shape, wanted, "leaves, bins, classes")
    if not np.isfinite(given).all():
        raise _validate.fail("counts", "NaN or infinite", "finite", "rows")
    reached = _reached(structure, bins)[..., np.newaxis]
    # The last number of each bin says whether it is reached: it is added up like the others.
    cells = np.concatenate((np.where(reached, np.maximum(given, 0.0), 0.0), reached), axis=-1)
    features = [cells[:, bins.offsets[place] : bins.offsets[place + 1]] for place in range(len(bins))]
    worth = [_impurities(_lefts(bins, place, own), own) for place, own in enumerate(features)]
    least = np.stack([each.min(axis=1, initial=np.inf) for each in worth], axis=1)
    places = least.argmin(axis=1)
    split, equals = np.zeros(structure.n_leaves, dtype=np.uint16), np.zeros(structure.n_leaves, dtype=np.bool_)
    besides = np.full(structure.n_leaves, -1, dtype=np.int32)
    sets: list[Flags] = []
    width = max((1 + max(each.equality, default=-1) for each in bins.cells if not each.ordered), default=0)
    for leaf, place in enumerate(places.tolist()):
        if np.isinf(least[leaf, place]):
            places[leaf] = 0
            continue
        candidate = int(worth[place][leaf].argmin())
        if bins.cells[place].ordered:
            split[leaf], equals[leaf], besides[leaf] = _ordered_test(bins, place, candidate)
        else:
            marked = np.zeros(width, dtype=np.bool_)
            categories = np.array(bins.cells[place].equality, dtype=np.int64)
            marked[categories] = _left_categories(features[place][leaf], candidate)
            besides[leaf] = -2 - len(sets)
            sets.append(marked)
    return SplitTests(
        feature=bins.features[places].astype(np.int32),
        split=split,
        equals=equals,
        besides=besides,
        left_sets=np.array(sets) if sets else None,
    )


def _impurities(left: Floats, own: Floats) -> Floats:
    """The sides' impurity weighted by their shares of the rows, (n_leaves, n_candidates); infinite for no candidate."""
    whole = own.sum(axis=1, keepdims=True)
    right = np.maximum(whole - left, 0.0)
    rows = whole[..., :-1].sum(axis=-1)
    impurity = 1.0 - (_purity(left[..., :-1]) + _purity(right[..., :-1])) / np.where(rows > 0, rows, 1.0)
    undecided = (left[..., -1] > 0) & (right[..., -1] > 0) & (rows > 0)
    return np.where(undecided, impurity, np.inf)


def _purity(counts: Floats) -> Floats:
    """(sum of squares) / sum over the last axis; 0 where there is nothing."""
    total = counts.sum(axis=-1)
    purity: Floats = (counts**2).sum(axis=-1) / np.where(total > 0, total, 1.0)
    return purity


def _lefts(bins: CandidateBins, place: int, own: Floats) -> Floats:
    """The numbers of rows that each candidate of a feature sends left, (n_leaves, n_candidates, classes + 1)."""
    n_ordered = int(bins.ordered[place])
    if not n_ordered:
        in_order = np.take_along_axis(own, _order(own)[..., np.newaxis], axis=1)
        return np.cumsum(in_order, axis=1)[:, :-1]
    # As `SplitTests.every` lists them.
    below = np.cumsum(own[:, :n_ordered], axis=1)[:, :-1]
    alone = own[:, n_ordered:]
    return np.concatenate((below, *(below + alone[:, [each]] for each in range(alone.shape[1])), alone), axis=1)


def _ordered_test(bins: CandidateBins, place: int, candidate: int) -> tuple[int, bool, int]:
    """Split, equals and besides of one of an ordered feature's candidates."""
    equality, thresholds = bins.cells[place].equality, bins.thresholds[place]
    listed = (1 + len(equality)) * len(thresholds)
    if candidate >= listed:
        return equality[candidate - listed], True, -1
    side, threshold = divmod(candidate, len(thresholds))
    return int(thresholds[threshold]), False, (-1, *equality)[side]


def _left_categories(own: Floats, candidate: int) -> Flags:
    """Which categories go left, bool (n_bins - 1,): the last bin, of those not listed, is always on the right."""
    left = np.zeros(len(own), dtype=np.bool_)
    left[_order(own[np.newaxis])[0, : candidate + 1]] = True
    # The impurity is the same with the sides exchanged; cells beyond a set go right.
    marked: Flags = left[:-1] ^ left[-1]
    return marked


def _order(own: Floats) -> Places:
    """A feature's bins in order, (n_leaves, n_bins): of two classes by the second one's share, else as declared."""
    n_leaves, n_bins, numbers = own.shape
    if numbers != 3:
        return np.broadcast_to(np.arange(n_bins), (n_leaves, n_bins))
    rows = own[..., :2].sum(axis=-1)
    share = np.where(rows > 0, own[..., 1] / np.where(rows > 0, rows, 1.0), 0.5)
    return np.argsort(share, axis=1, kind="stable")


def _reached(structure: TreeStructure, bins: CandidateBins) -> Flags:
    """Which bins a row of each leaf can be in, bool (n_leaves, bins.total), by the first cell of each."""
    first = []
    for each, own in zip(bins.cells, bins.thresholds, strict=True):
        ordered = [0, *own.tolist()] if each.ordered else []
        rest = [] if each.ordered else [1 + max(each.equality, default=-1)]
        first.append([*ordered, *each.equality, *rest])
    cell = np.concatenate([np.array(own, dtype=np.int64) for own in first])
    feature = np.repeat(bins.features, [len(own) for own in first])
    features, below, besides, sets = structure.lowered()
    reached = np.ones((1, len(cell)), dtype=np.bool_)
    for level in range(structure.depth):
        children = []
        for leaf, node in enumerate(range(2**level - 1, 2 ** (level + 1) - 1)):
            if besides[node] < -1:
                marked = sets[-2 - int(besides[node])]
                left = (cell < len(marked)) & np.append(marked, False)[np.minimum(cell, len(marked))]
            else:
                left = (cell < below[node]) | (cell == besides[node])
            elsewhere = feature != features[node]
            children += [reached[leaf] & (elsewhere | left), reached[leaf] & (elsewhere | ~left)]
        reached = np.array(children)
    return reached
