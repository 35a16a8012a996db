"""One tree as plain nodes with tests of encoded rows, as other libraries store it.

Tests that send every row the same way are left out, and so are nodes that no row can reach: what remains has a positive
cover everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Categorical, Date, Numeric, Ranged
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.exports.rows import least_floats
from ledgerwood.reading.models import TreeModel


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTest:
    """A test of one feature of an encoded row.

    Args:
        feature: its place in the schema.
        below: smaller numbers go left, all others right, NaN as `missing` says; of a test of categories 0.
        codes: the categories that go right, by their numbers, rising; all others go left. Empty of a test by `below`.
        missing: whether a missing value goes left.
    """

    feature: int
    below: float
    codes: tuple[int, ...]
    missing: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeTree:
    """A tree of the nodes that rows can reach: node 0 is the root, and each right child stands behind the left one.

    Where few categories go left, the model's left side is the right one here, whose categories a test lists.

    Args:
        tests: of each node; None of a leaf.
        left, right: int64 (n_nodes,), the children, -1 of a leaf.
        places: int64 (n_nodes,), where each node is in the model's complete tree, in heap order.
        leaves: int64 (n_nodes,), the number of each leaf in that tree, -1 of other nodes.
        covers: float64 (n_nodes,), the share of the rows in each node, > 0.
    """

    tests: tuple[NodeTest | None, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    places: NDArray[np.int64]
    leaves: NDArray[np.int64]
    covers: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.tests)

    def node_values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value of each node, float64 (n_nodes,): a leaf's own, and above the mean of both sides by their covers.

        Args:
            values: of the leaves of the model's tree, (n_leaves,).
        """
        found = np.where(self.leaves >= 0, values[self.leaves], 0.0)
        for node in range(len(self) - 1, -1, -1):
            if self.leaves[node] < 0:
                sides = [self.left[node], self.right[node]]
                found[node] = np.average(found[sides], weights=self.covers[sides])
        return found


def node_trees(read: TreeModel, shares: Sequence[NDArray[np.float64]]) -> list[NodeTree]:
    """The trees of a model as nodes with tests of encoded rows.

    Args:
        read: the model.
        shares: the cover of each node of each tree, in heap order, as `node_covers` gives them.

    Raises:
        InvalidParameter: a test that no threshold can express, which no trainer of this library makes.
    """
    tests = _Tests(read)
    return [_pruned(tree.structure, own, tests) for tree, own in zip(read.trees, shares, strict=True)]


class _Tests:
    """The tests of a model's nodes; each kind is looked at once."""

    __slots__ = ("_floats", "_found", "_read", "cell_counts")

    def __init__(self, read: TreeModel) -> None:
        self._read, self.cell_counts = read, read.cell_counts
        self._floats: dict[int, NDArray[np.float32]] = {}
        self._found: dict[tuple[int, bytes], tuple[NodeTest, bool]] = {}

    def of(self, feature: int, left: NDArray[np.bool_]) -> tuple[NodeTest, bool]:
        """The test that parts these cells of a feature from the others, and whether the sides are swapped."""
        key = feature, left.tobytes()
        if key not in self._found:
            declared = self._read.features[feature]
            match declared:
                case Numeric() | Date():
                    self._found[key] = self._of_numbers(feature, declared, left), False
                case Categorical():
                    self._found[key] = _of_codes(feature, declared, left)
        return self._found[key]

    def _of_numbers(self, feature: int, declared: Ranged, left: NDArray[np.bool_]) -> NodeTest:
        bins = self._read.max_bins
        missing = bool(left[bins] if declared.missing else left[bins // 2])
        count = int(left[:bins].sum())
        if not left[:count].all():
            raise InvalidParameter(
                f"a tree tests single bins of {declared.name!r}, {np.flatnonzero(left[:bins]).tolist()}: only a "
                "threshold of a numeric feature can be exported (unit: bins)"
            )
        if feature not in self._floats:
            self._floats[feature] = least_floats(declared, bins)
        ends = {0: -np.inf, bins: np.inf}
        below = float(ends[count] if count in ends else self._floats[feature][count - 1])
        return NodeTest(feature=feature, below=below, codes=(), missing=missing)


def _of_codes(feature: int, declared: Categorical, left: NDArray[np.bool_]) -> tuple[NodeTest, bool]:
    goes = left[: declared.other_cell + 1]
    missing = bool(left[declared.missing_cell if declared.missing else declared.other_cell])
    if goes.all() or not goes.any():  # what is there goes one way, what is missing the other
        return NodeTest(feature=feature, below=np.inf if goes.all() else -np.inf, codes=(), missing=missing), False
    swapped = bool(2 * goes.sum() <= len(goes))
    codes = tuple(np.flatnonzero(goes if swapped else ~goes).tolist())
    return NodeTest(feature=feature, below=0.0, codes=codes, missing=missing != swapped), swapped


def _pruned(structure: TreeStructure, shares: NDArray[np.float64], tests: _Tests) -> NodeTree:
    feature, below, besides, sets = structure.lowered()
    counts = tests.cell_counts
    inner = len(feature)

    def reached(node: int) -> int:
        """The first node from here downwards where rows go both ways."""
        while node < inner:
            left, right = shares[2 * node + 1] > 0.0, shares[2 * node + 2] > 0.0
            if left and right:
                break
            node = 2 * node + (1 if left else 2)
        return node

    nodes, left, right = [reached(0)], list[int](), list[int]()
    found: list[NodeTest | None] = []
    for node in nodes:  # which grows: the children of a node are behind it
        if node >= inner:
            found.append(None)
            left.append(-1)
            right.append(-1)
            continue
        cells = np.arange(counts[feature[node]])
        if besides[node] < -1:
            own = sets[-2 - besides[node]]
            goes = np.pad(own, (0, max(len(cells) - len(own), 0)))[: len(cells)]
        else:
            goes = (cells < below[node]) | (cells == besides[node])
        test, swapped = tests.of(int(feature[node]), goes)
        found.append(test)
        left.append(len(nodes))
        right.append(len(nodes) + 1)
        nodes += [reached(2 * node + 1 + swapped), reached(2 * node + 2 - swapped)]
    places = np.array(nodes)
    return NodeTree(
        tests=tuple(found),
        left=np.array(left),
        right=np.array(right),
        places=places,
        leaves=np.where(places >= inner, places - inner, -1),
        covers=shares[places],
    )
