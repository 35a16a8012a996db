"""Public structure: complete binary trees as flat arrays in heap order, and sums of them.

A tree tests *cells*, the small whole numbers into which the public schema divides each feature
(`ledgerwood.curator.encoding`), so training and prediction route a row by the same comparison. Nothing here has seen a
training row: splits and leaf values are public choices or released values.
"""

import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate

MAX_DEPTH = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCells:
    """The cells of one feature that a split may test.

    Args:
        ordered: number of ordered cells 0 .. ordered-1; "cell < t" splits them, for t in 1 .. ordered-1.
        equality: cells that "cell == c" may test (categories, a missing value).
    """

    ordered: int
    equality: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitTests:
    """Tests that a node may make: the candidates for a split, or the ones that were chosen, one a node.

    Args:
        feature: int32 (k,), k >= 1, the feature that each tests, >= 0.
        split: uint16 (k,), the cell that it tests.
        equals: bool (k,), True: "cell == split" goes left; False: "cell < split" goes left.

    Raises:
        InvalidParameter: no test, arrays of another type or shape, or a negative feature.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name, array, kind in (
            ("feature", self.feature, np.int32),
            ("split", self.split, np.uint16),
            ("equals", self.equals, np.bool_),
        ):
            if array.dtype != kind or array.ndim != 1 or len(array) != len(self.feature):
                found = f"{array.dtype} {array.shape}"
                raise _validate.fail(name, found, f"one {kind.__name__} a test", "tests")
            array.setflags(write=False)
        if not len(self.feature):
            raise _validate.fail("tests", 0, ">= 1", "tests")
        if self.feature.min() < 0:
            raise _validate.fail("feature", int(self.feature.min()), ">= 0", "features")

    def __len__(self) -> int:
        return len(self.feature)

    @classmethod
    def every(cls, cells: Sequence[FeatureCells]) -> "SplitTests":
        """All tests that a schema's cells allow: each threshold, and each cell that is tested by equality.

        Raises:
            InvalidParameter: features that cannot be split.
        """
        tests = [
            (feature, split, equals)
            for feature, each in enumerate(cells)
            for splits, equals in ((range(1, each.ordered), False), (each.equality, True))
            for split in splits
        ]
        return cls(
            feature=np.array([test[0] for test in tests], dtype=np.int32),
            split=np.array([test[1] for test in tests], dtype=np.uint16),
            equals=np.array([test[2] for test in tests], dtype=np.bool_),
        )

    def taken(self, places: NDArray[np.int64]) -> "SplitTests":
        """The tests at these places, shape (n,); at -1, one that sends every row right."""
        none = places < 0
        return SplitTests(
            feature=np.where(none, np.int32(0), self.feature[places]),
            split=np.where(none, np.uint16(0), self.split[places]),
            equals=self.equals[places] & ~none,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeStructure:
    """The splits of a complete binary tree of some depth d.

    Args:
        feature: int32 (2**d - 1,), the feature that each inner node tests, in heap order.
        split: uint16 (2**d - 1,), the cell that it tests.
        equals: bool (2**d - 1,), True: "cell == split" goes left; False: "cell < split" goes left.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        if nodes & (nodes + 1) or len(self.split) != nodes or len(self.equals) != nodes:
            raise _validate.fail("len(feature)", nodes, "2**depth - 1, and the same for split and equals", "nodes")
        if nodes >= 2**MAX_DEPTH:
            raise _validate.fail("depth", nodes.bit_length(), f"at most {MAX_DEPTH}", "levels")
        for array in (self.feature, self.split, self.equals):
            array.setflags(write=False)

    @property
    def depth(self) -> int:
        """Number of tests between the root and a leaf."""
        return len(self.feature).bit_length()

    @property
    def n_leaves(self) -> int:
        """2**depth: empty leaves are leaves like the others."""
        return len(self.feature) + 1

    @classmethod
    def root(cls) -> "TreeStructure":
        """No test: depth 0, one leaf."""
        return cls(feature=np.empty(0, np.int32), split=np.empty(0, np.uint16), equals=np.empty(0, np.bool_))

    def deeper(self, tests: SplitTests) -> "TreeStructure":
        """This tree with one level more, test i at what is leaf i now.

        Raises:
            InvalidParameter: not one test a leaf, or too deep.
        """
        if len(tests) != self.n_leaves:
            raise _validate.fail("len(tests)", len(tests), f"{self.n_leaves}, one a leaf", "tests")
        return TreeStructure(
            feature=np.concatenate((self.feature, tests.feature)),
            split=np.concatenate((self.split, tests.split)),
            equals=np.concatenate((self.equals, tests.equals)),
        )

    def tests_only(self, n_features: int) -> bool:
        """Whether every tested feature is one of 0 .. n_features - 1; the loops over rows do not look again."""
        return self.depth == 0 or bool(0 <= self.feature.min() <= self.feature.max() < n_features)

    def route(self, cells: NDArray[np.unsignedinteger]) -> NDArray[np.int32]:
        """The leaf of each row, int32 (n_rows,), for cells of shape (n_features, n_rows)."""
        leaves = np.empty(cells.shape[1], dtype=np.int32)
        route_rows(len(leaves), cells, self.feature, self.split, self.equals, leaves)
        return leaves


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A structure and the value of each leaf, float64 (2**d,), learning rate included."""

    structure: TreeStructure
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.values.shape != (self.structure.n_leaves,):
            raise _validate.fail("values.shape", self.values.shape, f"({self.structure.n_leaves},)", "leaves")
        self.values.setflags(write=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ensemble:
    """An initial score plus a sum of trees."""

    initial_score: float
    trees: tuple[Tree, ...] = ()

    def extended(self, tree: Tree) -> "Ensemble":
        """This ensemble with one tree more."""
        return Ensemble(initial_score=self.initial_score, trees=(*self.trees, tree))

    def extends(self, other: "Ensemble") -> bool:
        """Whether this ensemble is `other` with zero or more trees added at the end."""
        return (
            self.initial_score == other.initial_score
            and len(self.trees) >= len(other.trees)
            and all(mine is theirs for mine, theirs in zip(self.trees, other.trees, strict=False))
        )

    def scores(self, cells: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
        """The score of each row, float64 (n_rows,), for cells of shape (n_features, n_rows).

        Raises:
            InvalidParameter: fewer features than the trees test.
        """
        scores = np.full(cells.shape[1], self.initial_score)
        for tree in self.trees:
            structure = tree.structure
            if not structure.tests_only(len(cells)):
                raise _validate.fail("len(cells)", len(cells), "as many as the trees were grown on", "features")
            add_tree(len(scores), cells, structure.feature, structure.split, structure.equals, tree.values, scores)
        return scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The ensemble as named arrays; trees of one depth are stacked along the first axis."""
        if not self.trees:
            return {"initial_score": np.array(self.initial_score)}
        return {
            "initial_score": np.array(self.initial_score),
            "feature": np.stack([tree.structure.feature for tree in self.trees]),
            "split": np.stack([tree.structure.split for tree in self.trees]),
            "equals": np.stack([tree.structure.equals for tree in self.trees]),
            "values": np.stack([tree.values for tree in self.trees]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "Ensemble":
        """The inverse of `to_arrays`."""
        trees: list[Tree] = []
        if "feature" in arrays:
            columns = (arrays["feature"], arrays["split"], arrays["equals"], arrays["values"])
            for feature, split, equals, values in zip(*columns, strict=True):
                structure = TreeStructure(
                    feature=feature.astype(np.int32), split=split.astype(np.uint16), equals=equals.astype(np.bool_)
                )
                trees.append(Tree(structure=structure, values=values.astype(np.float64)))
        return cls(initial_score=float(arrays["initial_score"]), trees=tuple(trees))


THREADED_ROWS = 150_000
"""Below this many rows a team of threads costs more than it gives, and far more on a busy machine."""


def rows_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over rows for one thread and for all; its first argument, the number of rows, decides."""
    alone = types.FunctionType(loop.__code__, loop.__globals__, loop.__name__)
    # numba's file cache knows a function by its qualified name: two ways to compile need two names.
    alone.__qualname__ = f"{loop.__qualname__}_alone"
    serial, parallel = numba.njit(cache=True)(alone), numba.njit(parallel=True, cache=True)(loop)

    @functools.wraps(loop)
    def run(n_rows: int, *arguments: object) -> None:
        (parallel if n_rows >= THREADED_ROWS else serial)(n_rows, *arguments)

    return run


@numba.njit(inline="always")
def leaf_of(cells, row, feature, split, equals):  # type: ignore[no-untyped-def]
    """The leaf of one row: walk the heap from the root."""
    node = 0
    inner = len(feature)
    while node < inner:
        cell = cells[feature[node], row]
        left = cell == split[node] if equals[node] else cell < split[node]
        node = 2 * node + (1 if left else 2)
    return node - inner


@rows_kernel
def route_rows(n_rows, cells, feature, split, equals, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row into `leaves`, int32 (n_rows,)."""
    for row in numba.prange(n_rows):
        leaves[row] = leaf_of(cells, row, feature, split, equals)


@rows_kernel
def add_tree(n_rows, cells, feature, split, equals, values, scores):  # type: ignore[no-untyped-def]
    """Add the value of each row's leaf to `scores`, float64 (n_rows,)."""
    for row in numba.prange(n_rows):
        scores[row] += values[leaf_of(cells, row, feature, split, equals)]
