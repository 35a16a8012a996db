"""Public structure: complete binary trees as flat arrays in heap order, and sums of them.

A tree tests *cells*, the small whole numbers into which the public schema divides each feature
(`ledgerwood.curator.encoding`), so training and prediction route a row by the same comparison. Nothing here has seen a
training row: splits and leaf values are public choices or released values.
"""

import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numba
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate

MAX_DEPTH = 20
Scalar = TypeVar("Scalar", bound=np.generic)


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
        besides: int32 (k,), a cell of at least `split`, that of a missing value, which goes left with "cell < split";
            -1: none. None: none anywhere.

    Raises:
        InvalidParameter: no test, arrays of another type or shape, a negative feature, or a cell besides that is below
            `split` or belongs to a test of equality.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]
    besides: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        for name, array, kind in (
            ("feature", self.feature, np.int32),
            ("split", self.split, np.uint16),
            ("equals", self.equals, np.bool_),
        ):
            if array.dtype != kind or array.ndim != 1 or len(array) != len(self.feature):
                found = f"{array.dtype} {array.shape}"
                raise _validate.fail(name, found, f"one {kind.__name__} a test", "tests")
            object.__setattr__(self, name, _owned(array))
        if self.besides is not None:
            object.__setattr__(self, "besides", _owned(self.besides))
        _require_besides(self.split, self.equals, self.besides)
        if not len(self.feature):
            raise _validate.fail("tests", 0, ">= 1", "tests")
        if self.feature.min() < 0:
            raise _validate.fail("feature", int(self.feature.min()), ">= 0", "features")

    def __len__(self) -> int:
        return len(self.feature)

    @classmethod
    def every(cls, cells: Sequence[FeatureCells]) -> "SplitTests":
        """All tests that a schema's cells allow: thresholds, and cells that are tested by equality.

        A feature with thresholds and a missing value has each threshold twice: missing values go right, or left.

        Raises:
            InvalidParameter: features that cannot be split.
        """
        tests = []
        for feature, each in enumerate(cells):
            thresholds = range(1, each.ordered)
            tests += [(feature, split, False, -1) for split in thresholds]
            tests += [(feature, split, False, missing) for missing in each.equality for split in thresholds]
            tests += [(feature, split, True, -1) for split in each.equality]
        return cls(
            feature=np.array([test[0] for test in tests], dtype=np.int32),
            split=np.array([test[1] for test in tests], dtype=np.uint16),
            equals=np.array([test[2] for test in tests], dtype=np.bool_),
            besides=np.array([test[3] for test in tests], dtype=np.int32),
        )

    def lowered(self) -> "Lowered":
        """As the loops over rows take them."""
        return _lowered(self.feature, self.split, self.equals, self.besides)

    def taken(self, places: NDArray[np.int64]) -> "SplitTests":
        """The tests at these places, shape (n,); at -1, one that sends every row right."""
        none = places < 0
        return SplitTests(
            feature=np.where(none, np.int32(0), self.feature[places]),
            split=np.where(none, np.uint16(0), self.split[places]),
            equals=self.equals[places] & ~none,
            besides=None if self.besides is None else np.where(none, np.int32(-1), self.besides[places]),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeStructure:
    """The splits of a complete binary tree of some depth d.

    Args:
        feature: int32 (2**d - 1,), the feature that each inner node tests, in heap order.
        split: uint16 (2**d - 1,), the cell that it tests.
        equals: bool (2**d - 1,), True: "cell == split" goes left; False: "cell < split" goes left.
        besides: int32 (2**d - 1,), as of `SplitTests`; None: no cell goes left besides.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]
    besides: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        if nodes & (nodes + 1) or len(self.split) != nodes or len(self.equals) != nodes:
            raise _validate.fail("len(feature)", nodes, "2**depth - 1, and the same for split and equals", "nodes")
        if nodes >= 2**MAX_DEPTH:
            raise _validate.fail("depth", nodes.bit_length(), f"at most {MAX_DEPTH}", "levels")
        for array in (self.feature, self.split, self.equals):
            array.setflags(write=False)
        _require_besides(self.split, self.equals, self.besides)

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
            besides=np.concatenate((_besides(self), _besides(tests))),
        )

    def lowered(self) -> "Lowered":
        """As the loops over rows take it."""
        return _lowered(self.feature, self.split, self.equals, self.besides)

    def tests_only(self, n_features: int) -> bool:
        """Whether every tested feature is one of 0 .. n_features - 1; the loops over rows do not look again."""
        return self.depth == 0 or bool(0 <= self.feature.min() <= self.feature.max() < n_features)

    def route(self, cells: NDArray[np.unsignedinteger]) -> NDArray[np.int32]:
        """The leaf of each row, int32 (n_rows,), for cells of shape (n_features, n_rows)."""
        leaves = np.empty(cells.shape[1], dtype=np.int32)
        route_rows(len(leaves), cells, *self.lowered(), leaves)
        return leaves


Lowered = tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32]]
"""Of each test the feature, and which of its cells go left: those below one cell, and one besides, or -1 for none."""


def _lowered(
    feature: NDArray[np.int32],
    split: NDArray[np.uint16],
    equals: NDArray[np.bool_],
    besides: NDArray[np.int32] | None,
) -> Lowered:
    none = np.int32(-1) if besides is None else besides
    return feature, np.where(equals, np.uint16(0), split), np.where(equals, split.astype(np.int32), none)


def _owned(array: NDArray[Scalar]) -> NDArray[Scalar]:
    # A copy: what views the caller's array, or what it is a view of, could still be written to after the checks.
    own = np.array(array)
    own.setflags(write=False)
    return own


def _besides(of: SplitTests | TreeStructure) -> NDArray[np.int32]:
    return np.full(len(of.feature), -1, dtype=np.int32) if of.besides is None else of.besides


def _require_besides(split: NDArray[np.uint16], equals: NDArray[np.bool_], besides: NDArray[np.int32] | None) -> None:
    if besides is None:
        return
    if besides.dtype != np.int32 or besides.shape != split.shape:
        raise _validate.fail("besides", f"{besides.dtype} {besides.shape}", f"int32 {split.shape}", "tests")
    # A cell below the split would go left twice: a histogram would count its rows twice.
    wrong = (besides != -1) & ((besides < split) | (besides >= 2**16) | equals)
    if wrong.any():
        raise _validate.fail("besides", int(besides[wrong][0]), "-1, or a cell from split on, no equality", "cells")
    besides.setflags(write=False)


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
            add_tree(len(scores), cells, *structure.lowered(), tree.values, scores)
        return scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The ensemble as named arrays; trees of one depth are stacked along the first axis."""
        if not self.trees:
            return {"initial_score": np.array(self.initial_score)}
        structures = [tree.structure for tree in self.trees]
        arrays = {
            "initial_score": np.array(self.initial_score),
            "feature": np.stack([structure.feature for structure in structures]),
            "split": np.stack([structure.split for structure in structures]),
            "equals": np.stack([structure.equals for structure in structures]),
            "values": np.stack([tree.values for tree in self.trees]),
        }
        besides = np.stack([_besides(structure) for structure in structures])
        if (besides >= 0).any():
            arrays["besides"] = besides
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "Ensemble":
        """The inverse of `to_arrays`."""
        trees: list[Tree] = []
        if "feature" in arrays:
            besides = arrays.get("besides", np.full(arrays["feature"].shape, -1))
            columns = (arrays["feature"], arrays["split"], arrays["equals"], besides, arrays["values"])
            for feature, split, equals, also, values in zip(*columns, strict=True):
                structure = TreeStructure(
                    feature=feature.astype(np.int32),
                    split=split.astype(np.uint16),
                    equals=equals.astype(np.bool_),
                    besides=also.astype(np.int32),
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
def leaf_of(cells, row, feature, below, besides):  # type: ignore[no-untyped-def]
    """The leaf of one row: walk the heap from the root. The tree comes as `Lowered`."""
    node = 0
    inner = len(feature)
    while node < inner:
        cell = cells[feature[node], row]
        left = cell < below[node] or cell == besides[node]
        node = 2 * node + (1 if left else 2)
    return node - inner


@rows_kernel
def route_rows(n_rows, cells, feature, below, besides, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row into `leaves`, int32 (n_rows,)."""
    for row in numba.prange(n_rows):
        leaves[row] = leaf_of(cells, row, feature, below, besides)


@rows_kernel
def add_tree(n_rows, cells, feature, below, besides, values, scores):  # type: ignore[no-untyped-def]
    """Add the value of each row's leaf to `scores`, float64 (n_rows,)."""
    for row in numba.prange(n_rows):
        scores[row] += values[leaf_of(cells, row, feature, below, besides)]
