"""The distribution of each feature over its cells that the released weights of all trees together tell.

One distribution for all trees: a leaf's own released weight is often nothing but noise, and thousands of them together
are not. docs/explanation/reading.md#node-covers.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import Tree, TreeStructure

Floats = NDArray[np.float64]
SWEEPS = 3
_LEAST = 0.01
"""Of a part's volume, the least share that it is given: what a row can reach is never at 0."""


def segment_starts(structures: Sequence[TreeStructure], cell_counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each feature the first cell of each run of cells that no test tells apart, rising from 0, int64 (k,)."""
    lowered = [structure.lowered() for structure in structures]
    none = np.empty(0, dtype=np.int64)
    tested, below, besides = (
        np.concatenate([none, *(np.asarray(each[part], dtype=np.int64) for each in lowered)]) for part in range(3)
    )
    widest = max((each[3].shape[1] for each in lowered), default=0)
    found = []
    for feature, cells in enumerate(cell_counts.tolist()):
        own = tested == feature
        sets = np.arange(widest + 1) if (besides[own] < -1).any() else none
        borders = np.unique(np.concatenate(([0], sets, below[own], besides[own], besides[own] + 1)))
        found.append(borders[(borders >= 0) & (borders < cells)])
    return found


def leaf_regions(structure: TreeStructure, feature: int, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which parts of a feature pass all of its tests on the way to each leaf, bool (n_leaves, k).

    Args:
        structure: the tests.
        feature: which one.
        starts: a cell of each part.
    """
    inner = len(structure.feature)
    found = np.ones((2 * inner + 1, len(starts)), dtype=np.bool_)
    _regions(feature, *structure.lowered(), starts, found)
    return found[inner:]


@numba.njit(cache=True)
def _regions(feature, tested, below, besides, sets, starts, found):  # type: ignore[no-untyped-def]
    """Write which parts reach each node, in heap order, bool (n_nodes, k); `found` starts as True."""
    for node in range(len(tested)):
        own, beside, line = tested[node] == feature, besides[node], -2 - besides[node]
        for place in range(len(starts)):
            reaches = found[node, place]
            left = right = reaches
            if own and reaches:
                cell = starts[place]
                if beside < -1:
                    left = cell < sets.shape[1] and sets[line, cell]
                else:
                    left = cell < below[node] or cell == beside
                right = not left
            found[2 * node + 1, place] = left
            found[2 * node + 2, place] = right


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureShares:
    """How one feature is taken to be distributed over its cells: evenly within each part.

    Args:
        starts: the first cell of each part, rising from 0, int64 (k,).
        shares: of each part, float64 (k,), sum 1.
        cells: how many cells there are.
    """

    starts: NDArray[np.int64]
    shares: Floats
    cells: int

    @classmethod
    def even(cls, starts: NDArray[np.int64], cells: int) -> "FeatureShares":
        """Each cell with the same share."""
        return cls(starts=starts, shares=np.diff(np.append(starts, cells)) / cells, cells=cells)

    def of_parts(self, starts: NDArray[np.int64]) -> Floats:
        """The shares of other parts, float64 (len(starts),)."""
        passed = np.concatenate(([0.0], np.cumsum(self.shares)))
        return np.diff(np.interp(np.append(starts, self.cells), np.append(self.starts, self.cells), passed))


def even_features(trees: Sequence[Tree], cell_counts: NDArray[np.int64]) -> tuple[FeatureShares, ...]:
    """Each feature of the trees with the parts that they tell apart, and all of its cells with equal shares."""
    every = segment_starts([tree.structure for tree in trees], cell_counts)
    return tuple(FeatureShares.even(starts, cells) for starts, cells in zip(every, cell_counts.tolist(), strict=True))


def told_features(
    trees: Sequence[Tree], cell_counts: NDArray[np.int64], weights: Sequence[Floats]
) -> tuple[tuple[FeatureShares, ...], list[Floats]]:
    """The distribution of each feature that all released weights together tell, and the shares of all trees' leaves.

    Features are taken to be independent. Least squares of the released weights, one feature after another while the
    others are held, with a ridge towards the volumes of its parts by the residuals' variance; then made positive.

    Args:
        trees: of one model.
        cell_counts: how many cells each feature has.
        weights: of each tree's leaves, with noise.
    """
    features = list(even_features(trees, cell_counts))
    observed, ends = np.concatenate(weights), np.cumsum([0, *(len(each) for each in weights)])
    shares = np.ones(len(observed))
    parts: list[tuple[int, NDArray[np.int64], NDArray[np.bool_]]] = []
    tested = [np.unique(tree.structure.feature) for tree in trees]
    for place, feature in enumerate(features):
        testing = [at for at, own in enumerate(tested) if place in own]
        if testing:
            rows = np.concatenate([np.arange(ends[at], ends[at + 1]) for at in testing])
            regions = np.concatenate([leaf_regions(trees[at].structure, place, feature.starts) for at in testing])
            parts.append((place, rows, regions))
            shares[rows] *= reached_shares(regions, feature.shares)
    total = max(float(observed.sum()) / len(trees), 0.0)
    for _ in range(SWEEPS if total > 0.0 else 0):
        variance = max(float(np.mean((observed - total * shares) ** 2)), 1e-12)
        for place, rows, regions in parts:
            feature = features[place]
            own = reached_shares(regions, feature.shares)
            others = np.divide(shares[rows], own, out=np.zeros(len(rows)), where=own > 0.0)
            volumes = FeatureShares.even(feature.starts, feature.cells).shares
            found = _refitted(observed[rows], total * others, regions, volumes, variance)
            features[place] = FeatureShares(starts=feature.starts, shares=found, cells=feature.cells)
            shares[rows] = others * reached_shares(regions, found)
    return tuple(features), [shares[first:end] for first, end in itertools.pairwise(ends.tolist())]


def leaf_shares(structure: TreeStructure, features: Sequence[FeatureShares]) -> Floats:
    """The share of each leaf where features are independent, float64 (n_leaves,)."""
    found = np.ones(structure.n_leaves)
    for place in np.unique(structure.feature).tolist():
        found *= reached_shares(leaf_regions(structure, place, features[place].starts), features[place].shares)
    return found


def _refitted(observed: Floats, scale: Floats, regions: NDArray[np.bool_], volumes: Floats, variance: float) -> Floats:
    """One feature's distribution by its part of the released weights, while all others are held; > 0, sum 1.

    Args:
        observed: released weights.
        scale: what each would be if all of the feature were in its region.
        regions: bool (len(observed), k).
        volumes: the prior mean; its standard deviation is the volume, or an even share of all parts if that is more.
        variance: of the noise of a weight.
    """
    prior = volumes**2 + len(volumes) ** -2.0
    curve, slope = np.zeros((len(volumes), len(volumes))), np.zeros(len(volumes))
    _add_equations(regions, scale, observed - scale * reached_shares(regions, volumes), curve, slope)
    curve = (np.tril(curve) + np.tril(curve, -1).T) / variance + np.diag(1.0 / prior)
    found = volumes + np.linalg.solve(curve, slope / variance)
    found = np.maximum(found, _LEAST * volumes)
    return np.asarray(found / found.sum())


def reached_shares(regions: NDArray[np.bool_], shares: Floats) -> Floats:
    """The sum of the shares of the parts of each region, float64 (n_regions,)."""
    found = np.zeros(len(regions))
    _add_shares(regions, shares, found)
    return found


@numba.njit(cache=True)
def _add_shares(regions, shares, found):  # type: ignore[no-untyped-def]
    for row in range(len(regions)):
        total = 0.0
        for place in range(len(shares)):
            if regions[row, place]:
                total += shares[place]
        found[row] = total


@numba.njit(cache=True)
def _add_equations(regions, scale, residuals, curve, slope):  # type: ignore[no-untyped-def]
    """Add the normal equations of rows `scale * regions` with these residuals: the lower half of (k, k), and (k,)."""
    inside = np.empty(regions.shape[1], dtype=np.int64)
    for row in range(len(regions)):
        size = 0
        for place in range(regions.shape[1]):
            if regions[row, place]:
                inside[size] = place
                size += 1
        own = scale[row]
        if own == 0.0 or size == 0:
            continue
        square, step = own * own, own * residuals[row]
        for one in range(size):
            slope[inside[one]] += step
            for other in range(one + 1):
                curve[inside[one], inside[other]] += square
