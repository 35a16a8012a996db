"""Public structure: complete binary trees as flat arrays in heap order, and sums of them.

A tree tests *cells*, the small whole numbers into which the public schema divides each feature
(`ledgerwood.curator.inputs.encoding`), so training and prediction route a row by the same comparison. Nothing here has
seen a training row: splits and leaf values are public choices or released values.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.feature_cells import FeatureCells as FeatureCells  # noqa: PLC0414 - what splits trees belongs here
from ledgerwood.feature_cells import marked_sets, padded_sets, require_thresholds, sets_of, stacked_sets
from ledgerwood.routing import add_class_trees, add_trees, route_rows
from ledgerwood.sparse_cells import AnyCells, SparseCells

MAX_DEPTH = 20
_LEAF_BITS = 16
"""Of a leaf's number, which a cell can hold."""
Scalar = TypeVar("Scalar", bound=np.generic)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitTests:
    """Tests that a node may make: the candidates for a split, or the ones that were chosen, one a node.

    Args:
        feature: int32 (k,), k >= 1, the feature that each tests, >= 0.
        split: uint16 (k,), the cell that it tests.
        equals: bool (k,), True: "cell == split" goes left; False: "cell < split" goes left.
        besides: int32 (k,), a cell of at least `split`, that of a missing value, which goes left with "cell < split";
            -1: none; -2 - i: the cells that line i of `left_sets` marks go left, and no others. None: -1 everywhere.
        left_sets: bool (n_sets, n_cells), sets of cells, for tests that part categories; cells beyond go right.

    Raises:
        InvalidParameter: no test, arrays of another type or shape, a negative feature, or a cell besides that is below
            `split`, belongs to a test of equality, or means a set that is not there.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]
    besides: NDArray[np.int32] | None = None
    left_sets: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, array, kind in (
            ("feature", self.feature, np.int32), ("split", self.split, np.uint16), ("equals", self.equals, np.bool_)
        ):  # fmt: skip
            if array.dtype != kind or array.ndim != 1 or len(array) != len(self.feature):
                found = f"{array.dtype} {array.shape}"
                raise _validate.fail(name, found, f"one {kind.__name__} a test", "tests")
            object.__setattr__(self, name, _owned(array))
        _own_besides(self)
        if not len(self.feature):
            raise _validate.fail("tests", 0, ">= 1", "tests")
        if self.feature.min() < 0:
            raise _validate.fail("feature", int(self.feature.min()), ">= 0", "features")

    def __len__(self) -> int:
        return len(self.feature)

    @classmethod
    def every(
        cls,
        cells: Sequence[FeatureCells],
        thresholds: Sequence[NDArray[np.int64]] | None = None,
        set_categories: int = 0,
    ) -> "SplitTests":
        """All tests that a schema's cells allow: thresholds, cells that are tested by equality, and small sets of them.

        A feature with thresholds and a missing value has each threshold twice: missing values go right, or left.

        Args:
            cells: the cells of each feature.
            thresholds: the thresholds of each feature the t of "cell < t", rising whole numbers in 1 .. ordered-1;
                None: all of them.
            set_categories: of a feature without order and with at most so many cells that are tested by equality, all
                sets of at least two of them, without the first one, that leave one more out: each partition once.

        Raises:
            InvalidParameter: features that cannot be split, more than 2**16 cells, or thresholds that are not theirs.
            ValueError: not one array of thresholds a feature.
        """
        if thresholds is None:
            thresholds = [np.arange(1, each.ordered) for each in cells]
        columns = [[np.empty(0, dtype=np.int64)] for _ in range(4)]
        sets: list[tuple[int, ...]] = []
        for feature, (each, own) in enumerate(zip(cells, thresholds, strict=True)):
            require_thresholds(feature, each, own)
            sides, equality = (-1, *each.equality), np.array(each.equality, dtype=np.int64)
            some = sets_of(each.equality) if not each.ordered and len(each.equality) <= set_categories else []
            none = np.zeros(len(some), dtype=np.int64)
            split = np.concatenate((np.tile(own, len(sides)), equality, none))
            equals = np.repeat((False, True, False), (len(sides) * len(own), len(equality), len(some)))
            lines = -2 - np.arange(len(sets), len(sets) + len(some))
            besides = np.concatenate((np.repeat(sides, len(own)), np.full(len(equality), -1), lines))
            sets += some
            for column, part in zip(columns, (np.full(len(split), feature), split, equals, besides), strict=True):
                column.append(part)
        features, splits, equal, also = (np.concatenate(column) for column in columns)
        return cls(
            feature=features.astype(np.int32),
            split=splits.astype(np.uint16),
            equals=equal.astype(np.bool_),
            besides=also.astype(np.int32),
            left_sets=marked_sets(sets) if sets else None,
        )

    def lowered(self) -> "Lowered":
        """The arrays in the form that the loops over rows take."""
        return _lowered(self)

    def taken(self, places: NDArray[np.int64]) -> "SplitTests":
        """The tests at these places, shape (n,), with their own sets alone; at -1, one that sends every row right."""
        none = places < 0
        besides, sets = None, None
        if self.besides is not None:
            besides = np.where(none, np.int32(-1), self.besides[places])
            if self.left_sets is not None and (besides < -1).any():
                used, lines = np.unique(-2 - besides[besides < -1], return_inverse=True)
                besides[besides < -1] = -2 - lines
                sets = self.left_sets[used]
        return SplitTests(
            feature=np.where(none, np.int32(0), self.feature[places]),
            split=np.where(none, np.uint16(0), self.split[places]),
            equals=self.equals[places] & ~none,
            besides=besides,
            left_sets=sets,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TreeStructure:
    """The splits of a complete binary tree of some depth d.

    Args:
        feature: int32 (2**d - 1,), the feature that each inner node tests, in heap order.
        split: uint16 (2**d - 1,), the cell that it tests.
        equals: bool (2**d - 1,), True: "cell == split" goes left; False: "cell < split" goes left.
        besides: int32 (2**d - 1,), as of `SplitTests`; None: no cell goes left besides.
        left_sets: bool (n_sets, n_cells), as of `SplitTests`; None: no test has a set.
    """

    feature: NDArray[np.int32]
    split: NDArray[np.uint16]
    equals: NDArray[np.bool_]
    besides: NDArray[np.int32] | None = None
    left_sets: NDArray[np.bool_] | None = None
    _features: int = field(init=False, repr=False, default=0)
    """Features 0 .. _features - 1 are what is tested: looked up once, since every query asks."""

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        if nodes & (nodes + 1) or len(self.split) != nodes or len(self.equals) != nodes:
            raise _validate.fail("len(feature)", nodes, "2**depth - 1, and the same for split and equals", "nodes")
        if nodes >= 2**MAX_DEPTH:
            raise _validate.fail("depth", nodes.bit_length(), f"at most {MAX_DEPTH}", "levels")
        for name, array in (("feature", self.feature), ("split", self.split), ("equals", self.equals)):
            object.__setattr__(self, name, _owned(array))
        _own_besides(self)
        if nodes:
            if self.feature.min() < 0:
                raise _validate.fail("feature", int(self.feature.min()), ">= 0", "features")
            object.__setattr__(self, "_features", int(self.feature.max()) + 1)

    def __repr__(self) -> str:
        return f"<TreeStructure of depth {self.depth}>"

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
        above, own = _sets(self), _besides(tests)
        return TreeStructure(
            feature=np.concatenate((self.feature, tests.feature)),
            split=np.concatenate((self.split, tests.split)),
            equals=np.concatenate((self.equals, tests.equals)),
            besides=np.concatenate((_besides(self), np.where(own < -1, own - np.int32(len(above)), own))),
            left_sets=stacked_sets(above, _sets(tests)),
        )

    def lowered(self) -> "Lowered":
        """The arrays in the form that the loops over rows take."""
        return _lowered(self)

    def tests_only(self, n_features: int) -> bool:
        """Returns whether every tested feature is one of 0 .. n_features - 1; the loops over rows do not look again."""
        return self._features <= n_features

    def route(self, cells: AnyCells) -> NDArray[np.int32]:
        """The leaf of each row, int32 (n_rows,), for cells of shape (n_features, n_rows)."""
        leaves = np.empty(cells.shape[1], dtype=np.int32)
        feature, *tests = self.lowered()
        if isinstance(cells, SparseCells):
            tested, places = np.unique(feature, return_inverse=True)
            for rows, own in cells.blocks(tested):
                route_rows(own.shape[1], own, places.astype(np.int32), *tests, leaves[rows])
        else:
            route_rows(len(leaves), cells, feature, *tests, leaves)
        return leaves

    def over(self, cells: AnyCells) -> "tuple[NDArray[Any], Lowered]":
        """Cells in an array, and tests of them that route each row to its leaf, for a loop over the rows.

        Of an array the cells as they are, and this tree's own tests. Of sparse cells each row's leaf takes their place,
        as a cell by which a tree of the same depth sends it there.
        """
        if not isinstance(cells, SparseCells):
            return cells, self.lowered()
        leaves = self.route(cells)
        upper = min(self.depth, _LEAF_BITS)
        lower = self.depth - upper
        parts = np.stack((leaves >> lower, leaves & (2**lower - 1))[: 1 + (lower > 0)])
        feature, below = [], []
        for level in range(self.depth):
            own, bits = (0, upper - level) if level < upper else (1, self.depth - level)
            feature.append(np.full(2**level, own, dtype=np.int32))
            first = np.arange(2**level) << bits
            below.append((first + (1 << bits - 1)) & (2 ** (upper if own == 0 else lower) - 1))
        none = np.full(len(self.feature), -1, dtype=np.int32), np.zeros((0, 0), dtype=np.bool_)
        joined = [np.concatenate(each) if each else np.empty(0, dtype=np.int32) for each in (feature, below)]
        kind = np.uint8 if upper <= _LEAF_BITS // 2 else np.uint16
        return parts.astype(kind), (joined[0], joined[1].astype(np.uint16), *none)


Lowered = tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32], NDArray[np.bool_]]
"""Of each test the feature, and which of its cells go left: those below one cell, and one besides, or -1 for none, or
-2 - i for the i-th set of cells instead; and the sets."""


def _lowered(of: "SplitTests | TreeStructure") -> Lowered:
    below = np.where(of.equals, np.uint16(0), of.split)
    return of.feature, below, np.where(of.equals, of.split.astype(np.int32), _besides(of)), _sets(of)


def _sets(of: "SplitTests | TreeStructure") -> NDArray[np.bool_]:
    return np.zeros((0, 0), dtype=np.bool_) if of.left_sets is None else of.left_sets


def _owned(array: NDArray[Scalar]) -> NDArray[Scalar]:
    # A copy: what views the caller's array, or what it is a view of, could still be written to after the checks.
    own = np.array(array)
    own.setflags(write=False)
    return own


def _besides(of: SplitTests | TreeStructure) -> NDArray[np.int32]:
    return np.full(len(of.feature), -1, dtype=np.int32) if of.besides is None else of.besides


def _own_besides(of: SplitTests | TreeStructure) -> None:
    """Take copies of the cells besides and of the sets, and check them."""
    if of.left_sets is not None:
        if of.left_sets.dtype != np.bool_ or of.left_sets.ndim != 2 or of.left_sets.shape[1] > 2**16:
            found = f"{of.left_sets.dtype} {of.left_sets.shape}"
            raise _validate.fail("left_sets", found, "bool (n_sets, at most 65536 cells)", "tests")
        object.__setattr__(of, "left_sets", _owned(of.left_sets))
    if of.besides is None:
        return
    object.__setattr__(of, "besides", _owned(of.besides))
    if of.besides.dtype != np.int32 or of.besides.shape != of.split.shape:
        raise _validate.fail("besides", f"{of.besides.dtype} {of.besides.shape}", f"int32 {of.split.shape}", "tests")
    # A cell below the split would go left twice: a histogram would count its rows twice.
    cell = (of.besides >= of.split) & (of.besides < 2**16) & ~of.equals
    a_set = (of.besides < -1) & (of.besides >= -1 - len(_sets(of))) & (of.split == 0) & ~of.equals
    wrong = ~((of.besides == -1) | cell | a_set)
    if wrong.any():
        bound = "-1, or a cell from split on, no equality, or -2 - i for line i of left_sets at split 0"
        raise _validate.fail("besides", int(of.besides[wrong][0]), bound, "cells")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tree:
    """A structure and the values of its leaves, learning rate included.

    Args:
        structure: the public splits.
        values: float64 (2**d,); or (2**d, K), one value of a leaf for each of K >= 2 classes.
        weights: float64 (2**d,), the released weight of each leaf's rows (their number, or a sum of weights or
            hessians), noise included, so that it may be negative; None: none was released.
        noise: float64, of the shape of `values`, the standard deviation of the known noise in each, given the weights;
            None: it is not known.
    """

    structure: TreeStructure
    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    noise: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        leaves, shape = self.structure.n_leaves, self.values.shape
        for name, array, wanted in (
            ("values", self.values, shape), ("weights", self.weights, (leaves,)), ("noise", self.noise, shape)
        ):  # fmt: skip
            if array is not None:
                object.__setattr__(self, name, _owned(array))
                if array.dtype != np.float64 or array.shape != wanted:
                    raise _validate.fail(name, f"{array.dtype} {array.shape}", f"float64 {wanted}", "leaves")
        if shape[:1] != (leaves,) or len(shape) > 2 or (len(shape) == 2 and shape[1] < 2):
            raise _validate.fail("values.shape", shape, f"({leaves},), or ({leaves}, K) for K >= 2 classes", "leaves")

    def __repr__(self) -> str:
        return f"<Tree of depth {self.structure.depth}, values of shape {self.values.shape}>"

    @property
    def n_classes(self) -> int:
        """K, where a leaf has a value for each class; 0 where it has one value."""
        return self.values.shape[1] if self.values.ndim == 2 else 0

    def scaled(self, factor: float) -> "Tree":
        """This tree with all values, and their noise, times a factor >= 0."""
        noise = None if self.noise is None else factor * self.noise
        return Tree(structure=self.structure, values=factor * self.values, weights=self.weights, noise=noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ensemble:
    """An initial score plus a sum of trees: one score a row, or one for each class, by trees that all classes share.

    Args:
        initial_score: of every row, and of every class.
        trees: with one value a leaf; or with K of them, where the ensemble has K classes.
        class_scores: what each of K >= 2 classes has beside the initial score; empty for one score a row.

    Raises:
        InvalidParameter: one class, or a tree of another number of classes.
    """

    initial_score: float
    trees: tuple[Tree, ...] = ()
    class_scores: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        # A list could grow after the rows were scored, and an array of numbers would have to fit the rows.
        object.__setattr__(self, "initial_score", float(self.initial_score))
        object.__setattr__(self, "trees", _validate.items("trees", self.trees, "trees"))
        scores = _validate.items("class_scores", self.class_scores, "classes")
        object.__setattr__(self, "class_scores", tuple(float(score) for score in scores))
        if len(scores) == 1:
            raise _validate.fail("class_scores", scores, "of at least 2 classes, or empty", "classes")
        for tree in self.trees:
            if tree.n_classes != len(scores):
                raise _validate.fail("classes of a tree", tree.n_classes, f"{len(scores)}, the ensemble's", "classes")

    def __repr__(self) -> str:
        classes = f", {len(self.class_scores)} classes" if self.class_scores else ""
        return f"<Ensemble of {len(self.trees):,} trees{classes}, initial score {self.initial_score:.4g}>"

    @classmethod
    def of_classes(cls, initial_scores: Sequence[float]) -> "Ensemble":
        """An ensemble without trees yet, of one score for each class.

        Args:
            initial_scores: of each of at least two classes.
        """
        if len(initial_scores) < 2:
            raise _validate.fail("initial_scores", initial_scores, "of at least 2 classes", "classes")
        return cls(initial_score=0.0, class_scores=tuple(initial_scores))

    @property
    def n_classes(self) -> int:
        """K, where each row has a score for each class; 0 where it has one score."""
        return len(self.class_scores)

    @property
    def start(self) -> NDArray[np.float64]:
        """The score of a row without any tree, float64 (); of K classes (K,)."""
        return self.initial_score + np.array(self.class_scores or 0.0)

    def extended(self, tree: Tree) -> "Ensemble":
        """This ensemble with one tree more."""
        return Ensemble(initial_score=self.initial_score, trees=(*self.trees, tree), class_scores=self.class_scores)

    def of_first(self, trees: int) -> "Ensemble":
        """This ensemble with so many of its trees, the first ones."""
        return Ensemble(initial_score=self.initial_score, trees=self.trees[:trees], class_scores=self.class_scores)

    def extends(self, other: "Ensemble") -> bool:
        """Returns whether this ensemble is `other` with zero or more trees added at the end."""
        return (
            self.initial_score == other.initial_score
            and self.class_scores == other.class_scores
            and len(self.trees) >= len(other.trees)
            and all(mine is theirs for mine, theirs in zip(self.trees, other.trees, strict=False))
        )

    def scores(self, cells: AnyCells) -> NDArray[np.float64]:
        """The score of each row, float64 (n_rows,), or (n_rows, K) of K classes, for cells (n_features, n_rows).

        Raises:
            InvalidParameter: fewer features than the trees test.
        """
        if not all(tree.structure.tests_only(len(cells)) for tree in self.trees):
            raise _validate.fail("len(cells)", len(cells), "as many as the trees were grown on", "features")
        scores = np.full((cells.shape[1], *self.start.shape), self.start)
        add_values(self.trees, cells, scores)
        return scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The ensemble as named arrays; trees of one depth are stacked along the first axis."""
        start: dict[str, NDArray[np.generic]] = {"initial_score": np.array(self.initial_score)}
        if self.class_scores:
            start["class_scores"] = np.array(self.class_scores)
        if not self.trees:
            return start
        structures = [tree.structure for tree in self.trees]
        arrays = {
            **start,
            "feature": np.stack([structure.feature for structure in structures]),
            "split": np.stack([structure.split for structure in structures]),
            "equals": np.stack([structure.equals for structure in structures]),
            "values": np.stack([tree.values for tree in self.trees]),
        }
        besides = np.stack([_besides(structure) for structure in structures])
        if (besides != -1).any():
            arrays["besides"] = besides
        if any(len(_sets(structure)) for structure in structures):
            arrays["left_sets"] = padded_sets([_sets(structure) for structure in structures])
        for name, found in (("weights", [t.weights for t in self.trees]), ("noise", [t.noise for t in self.trees])):
            if all(each is not None for each in found):
                arrays[name] = np.stack([each for each in found if each is not None])
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "Ensemble":
        """The inverse of `to_arrays`."""
        trees: list[Tree] = []
        if "feature" in arrays:
            besides = arrays.get("besides", np.full(arrays["feature"].shape, -1))
            sets = arrays.get("left_sets", np.zeros((len(besides), 0, 0), dtype=np.bool_))
            told = {name: arrays[name].astype(np.float64) for name in ("weights", "noise") if name in arrays}
            columns = (arrays["feature"], arrays["split"], arrays["equals"], besides, sets, arrays["values"])
            for place, (feature, split, equals, also, own, values) in enumerate(zip(*columns, strict=True)):
                structure = TreeStructure(
                    feature=feature.astype(np.int32),
                    split=split.astype(np.uint16),
                    equals=equals.astype(np.bool_),
                    besides=also.astype(np.int32),
                    left_sets=own.astype(np.bool_) if own.size else None,
                )
                more = {name: array[place] for name, array in told.items()}
                trees.append(Tree(structure=structure, values=values.astype(np.float64), **more))
        start: list[float] = arrays.get("class_scores", np.empty(0)).astype(np.float64).tolist()
        return cls(initial_score=float(arrays["initial_score"]), trees=tuple(trees), class_scores=tuple(start))


def add_values(trees: Sequence[Tree], cells: AnyCells, scores: NDArray[np.float64]) -> None:
    """Add the value of each row's leaf in each of the trees, in their order, to `scores`, float64 (n_rows,).

    Args:
        trees: that test features of the cells.
        cells: of shape (n_features, n_rows).
        scores: added to; (n_rows, K) where the leaves have K values.
    """
    add = add_trees if scores.ndim == 1 else add_class_trees
    # Sets are of one tree: such trees come one by one, all others together, so that a row's cells are read once.
    for alone, group in itertools.groupby(trees, key=lambda tree: tree.structure.left_sets is not None):
        together = list(group)
        for run in ([each] for each in together) if alone else (together,):
            lowered = [tree.structure.lowered() for tree in run]
            feature, below, besides = (np.concatenate([each[place] for each in lowered]) for place in range(3))
            nodes = np.cumsum([0, *(len(each[0]) for each in lowered)])
            values = np.concatenate([tree.values for tree in run])
            tests = below, besides, lowered[0][3], values
            if isinstance(cells, SparseCells):
                tested, places = np.unique(feature, return_inverse=True)
                for rows, block in cells.blocks(tested):
                    own = scores[rows]
                    add(len(own), block, nodes, places.astype(np.int32), *tests, own)
            else:
                add(len(scores), cells, nodes, feature, *tests, scores)
