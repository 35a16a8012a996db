"""Shapley values of trees whose branches are weighed by covers, over many rows at once.

For one leaf and one row the game is a product: a feature that is set counts 1 if the row passes all of its tests on the
way to the leaf, else 0, and a feature that is not set counts the product of its branches' shares. Only which features
pass matters, so that the values of each pattern are computed once for each leaf of a tree of few levels.
docs/explanation/reading.md#row-contributions.
"""
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import TreeStructure
from ledgerwood.threads import share_out

TABLE_DEPTH = 7
"""Up to this depth the values of all patterns are in a table: 2**14 of them a tree, at most, for each slot."""
THREADED_LEAVES = 20_000
"""Below this many leaves of rows threads cost more than they give."""
ROWS = 256
"""Rows of a block that a thread takes."""


def add_contributions(
    structure: TreeStructure,
    left: NDArray[np.float64],
    outputs: NDArray[np.float64],
    cells: NDArray[np.uint8 | np.uint16],
    found: NDArray[np.float64],
) -> None:
    """Add the Shapley values of one tree to `found`, float64 (n_rows, n_features, n_outputs).

    Args:
        structure: the tests, of at least one level.
        left: the share of each inner node's rows that goes left.
        outputs: of each leaf, float64 (n_leaves, n_outputs).
        cells: of the rows, (n_features, n_rows).
        found: added to.
    """
    depth, leaves = structure.depth, structure.n_leaves
    feature, below, besides, sets = structure.lowered()
    slots = np.zeros(len(feature), dtype=np.int64)
    features = np.full((leaves, depth), -1, dtype=np.int64)
    branches = np.ones((leaves, depth))
    _slots(feature, left, slots, features, branches)
    tabled = depth <= TABLE_DEPTH
    table = np.zeros((leaves, 2**depth, depth) if tabled else (0, 0, 0))
    if tabled:
        _fill(features, branches, table)
    arguments = (
        cells, feature, below, besides, sets, slots, features, branches, table, np.ascontiguousarray(outputs), found,
    )  # fmt: skip
    if cells.shape[1] * leaves < THREADED_LEAVES:
        _add(0, cells.shape[1], *arguments)
    else:
        share_out(_add, cells.shape[1], ROWS, arguments)


@numba.njit(cache=True)
def _slots(feature, left, slots, features, branches):
    """The different features on the way to each leaf, one a slot, and the product of the branches' shares of each.

    Args:
        feature, left: of each inner node.
        slots: int64, of each inner node, the slot of its feature; written.
        features: int64 (n_leaves, depth), the feature of each slot, -1 for none; written.
        branches: float64 (n_leaves, depth), starts at 1; written.
    """
    inner = len(feature)
    path = np.empty(features.shape[1], dtype=np.int64)
    for leaf in range(inner + 1):
        at, level = inner + leaf, features.shape[1]
        while at > 0:
            level -= 1
            path[level] = at
            at = (at - 1) // 2
        known, node = 0, 0
        for level in range(features.shape[1]):
            slot = 0
            while slot < known and features[leaf, slot] != feature[node]:
                slot += 1
            if slot == known:
                features[leaf, slot] = feature[node]
                known += 1
            slots[node] = slot
            branches[leaf, slot] *= left[node] if path[level] == 2 * node + 1 else 1.0 - left[node]
            node = path[level]


@numba.njit(cache=True)
def _fill(features, branches, table):
    """The Shapley value of each slot for each pattern of slots that pass, of each leaf with value 1."""
    sums = np.empty(features.shape[1] + 1)
    for leaf in range(len(features)):
        known = 0
        while known < features.shape[1] and features[leaf, known] >= 0:
            known += 1
        for pattern in range(2**known):
            _values(pattern, known, branches[leaf], sums, table[leaf, pattern])


@numba.njit(cache=True)
def _values(pattern, known, branches, sums, values):
    """The Shapley values of the product game of one leaf; `values` (>= known,) is written.

    The value of slot j is (o_j - z_j) times the sum over sets S of other slots that pass of |S|! (m - 1 - |S|)! / m!
    times the z of all other slots that are not in S: those sums are elementary symmetric polynomials.

    Args:
        pattern: bit j says whether slot j passes (o_j).
        known: m, the number of slots.
        branches: z_j, of each slot.
        sums: room for m + 1 numbers.
        values: of each slot.
    """
    failing = 1.0
    zeros = 0  # of slots that fail with z = 0, for which nothing is divided by
    for slot in range(known):
        if not (pattern >> slot) & 1:
            if branches[slot] == 0.0:
                zeros += 1
            else:
                failing *= branches[slot]
    for slot in range(known):
        passes = (pattern >> slot) & 1
        others = failing
        if passes:
            if zeros > 0:
                others = 0.0
        elif branches[slot] == 0.0:
            values[slot] = 0.0  # neither set nor not set does the feature let the row pass
            continue
        else:
            others = failing / branches[slot] if zeros == 0 else 0.0
        if others == 0.0:
            values[slot] = 0.0
            continue
        # sums[k]: over sets of k of the other passing slots, the product of the z of those that are not in the set.
        size = 0
        sums[0] = 1.0
        for other in range(known):
            if other == slot or not (pattern >> other) & 1:
                continue
            sums[size + 1] = sums[size]
            for k in range(size, 0, -1):
                sums[k] = sums[k] * branches[other] + sums[k - 1]
            sums[0] *= branches[other]
            size += 1
        weight = 1.0 / known  # |S|! (m - 1 - |S|)! / m! for no slot in S
        total = 0.0
        for k in range(size + 1):
            total += weight * sums[k]
            if k + 1 < known:
                weight *= (k + 1.0) / (known - 1.0 - k)
        values[slot] = (passes - branches[slot]) * others * total


@numba.njit(cache=True, nogil=True)
def _add(first, end, cells, feature, below, besides, sets, slots, features, branches, table, outputs, found):
    """Add one tree's contributions of the rows from `first` to `end` - 1."""
    inner, depth, width = len(feature), features.shape[1], outputs.shape[1]
    passing = np.empty(2 * inner + 1, dtype=np.int64)
    sums, own = np.empty(depth + 1), np.empty(depth)
    known = np.zeros(inner + 1, dtype=np.int64)
    for leaf in range(inner + 1):
        while known[leaf] < depth and features[leaf, known[leaf]] >= 0:
            known[leaf] += 1
    for row in range(first, end):
        passing[0] = 2**depth - 1
        for node in range(inner):
            cell = cells[feature[node], row]
            beside = besides[node]
            left = cell < below[node] or cell == beside
            if beside < -1:
                left = cell < sets.shape[1] and sets[-2 - beside, cell]
            bit = 1 << slots[node]
            passing[2 * node + 1] = passing[node] if left else passing[node] & ~bit
            passing[2 * node + 2] = passing[node] & ~bit if left else passing[node]
        for leaf in range(inner + 1):
            m = known[leaf]
            pattern = passing[inner + leaf] & (2**m - 1)
            if len(table) == 0:
                _values(pattern, m, branches[leaf], sums, own)
            for slot in range(m):
                value = table[leaf, pattern, slot] if len(table) > 0 else own[slot]
                if value != 0.0:
                    for place in range(width):
                        found[row, features[leaf, slot], place] += value * outputs[leaf, place]
