"""A leaf's statistic as a value: it says what one row can change before there is a tree, and `of` asks it of one.

A plan holds a `LeafStatistic` and derives noise and cost from it; a training loop asks `statistic.of(tree, ensemble)`.
Here too is what holds of every query of gradients: the bounds of its parameters, and what a row moves in sums by leaf.
"""

import abc
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import STEP, LargeGradients
from ledgerwood.curator.queries.registry import TREES, Integers, Placed, Registry
from ledgerwood.curator.views.tree_rows import RowScores, TreeRows, TreeShape
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import AdjacencyMismatch, RoundViolation
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_CURVATURE_SCALE = 3.33
"""Largest c, rounded down from phi**2.5 = 3.33019..., for which (g, c h) of the logistic loss has L2 norm at most 1."""

MAX_CLIP = 2.0**8
"""Largest clip, in units of the gradient. A leaf's sum then stays below 2**63 steps for fewer than 2**35 rows, which a
ratio needs: a division, unlike a sum, does not survive a wrap-around."""
MAX_DAMPING = 2.0**40


def leaf_boxes(first: float, second: float, adjacency: Adjacency) -> BoxShifts:
    """The shifts of sums by leaf, where a row adds up to (first, second) to the one leaf that it is in."""
    match adjacency:
        case Adjacency.ADD_REMOVE | Adjacency.ZERO_OUT:
            return BoxShifts(boxes=((first, second),))
        case Adjacency.REPLACE_ONE:
            return one_leaf_or_two((0.0, 2.0 * second), (first, second))
    raise AdjacencyMismatch(f"no shift set is known under adjacency {adjacency!r}")


def one_leaf_or_two(within: tuple[float, ...], contribution: tuple[float, ...]) -> BoxShifts:
    """A replaced row changes inside one leaf by `within`, or takes its contribution from one leaf to another."""
    moved = BoxShifts.moved(boxes=(contribution,))
    return BoxShifts(boxes=(within, *moved.boxes), l1_boxes=(within, *moved.l1_boxes))


def gradient_clip(value: float, name: str = "clip") -> float:
    """A leaf query's or a gain's clip; an error calls it `name`."""
    clip = _validate.positive(name, value, "units of the gradient")
    if not STEP <= clip <= MAX_CLIP:
        raise _validate.fail(name, clip, f"in [{STEP}, {MAX_CLIP}]", "units of the gradient")
    return clip


def require_large_gradients(value: object) -> None:
    """Refuse what is no `LargeGradients`."""
    if value not in get_args(LargeGradients):
        raise _validate.fail("large_gradients", value, "'clip' or 'drop'", "name")


def class_place(value: object) -> int | None:
    """A query's `positive`: a plain whole number, since it is compared with the classes of the rows, or None."""
    return None if value is None else _validate.count("positive", value, "classes", minimum=0)


S_co = TypeVar("S_co", covariant=True)
MAX_LEAF_NUMBERS = 1 << 24
"""Most numbers of one query of leaves."""


class LeafStatistic(abc.ABC, Generic[S_co]):
    """The statistic of each leaf: its grid and its sensitivity, for every tree and ensemble."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def grid(self) -> Grid:
        """Steps of the statistic's columns."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """The number of numbers in a leaf."""

    @property
    @abc.abstractmethod
    def uses_scores(self) -> bool:
        """True if rows contribute by their scores, so that an ensemble is needed."""

    @property
    def joint_classes(self) -> int:
        """K, if rows contribute by a score for each of K classes, by trees that all classes share; else 0."""
        return 0

    @abc.abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """The shifts of all leaves' numbers between neighbouring tables."""

    def of(
        self, structure: TreeStructure, ensemble: Ensemble | None = None, *, positive: int | None = None
    ) -> "LeafQuery[S_co]":
        """The query of one tree's leaves.

        Args:
            structure: the public tree.
            ensemble: the released ensemble whose scores give the gradients; None for a statistic without scores.
            positive: the class, by its place among the sorted ones, that is told from all others; None if the target
                is a number, or for the second one of two classes.

        Raises:
            InvalidParameter: no ensemble where scores are needed, or more than 2**24 numbers.
        """
        return LeafQuery(statistic=self, structure=structure, ensemble=ensemble, positive=positive)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafQuery(Placed, Generic[S_co]):
    """A `LeafStatistic` of one tree's leaves. Made by `LeafStatistic.of`, which says what the fields are."""

    statistic: LeafStatistic[S_co]
    structure: TreeStructure
    ensemble: Ensemble | None = None
    positive: int | None = None

    def __post_init__(self) -> None:
        if self.ensemble is None and self.statistic.uses_scores:
            raise _validate.fail("ensemble", None, f"an Ensemble for {type(self.statistic).__name__}", "ensemble")
        numbers = self.structure.n_leaves * self.statistic.width
        if numbers > MAX_LEAF_NUMBERS:
            raise _validate.fail("leaves * width", numbers, f"at most {MAX_LEAF_NUMBERS}", "numbers")
        object.__setattr__(self, "positive", class_place(self.positive))
        if self.statistic.joint_classes and self.positive is not None:
            raise _validate.fail("positive", self.positive, "None: the statistic is of all classes", "classes")

    @property
    def grid(self) -> Grid:
        """That of the statistic."""
        return self.statistic.grid

    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """That of the statistic: it depends on neither tree nor ensemble."""
        return self.statistic.sensitivity(adjacency)

    @property
    def scored_by(self) -> Ensemble:
        """The ensemble of a statistic that needs one."""
        assert self.ensemble is not None  # `__post_init__`
        return self.ensemble


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafRows:
    """The view of the rows for the evaluator of a `LeafStatistic`.

    Args:
        rows: the rows of the query.
        query: the tree, the ensemble and the class.
    """

    rows: TreeRows
    query: LeafQuery[object]

    @property
    def n_leaves(self) -> int:
        """The leaves of the tree."""
        return self.query.structure.n_leaves

    @property
    def routed(self) -> tuple[Any, ...]:
        """Cells, and the tests of the tree, as a loop over rows reads them: see `TreeRows.over`."""
        return self.rows.over(self.query.structure)

    @property
    def state(self) -> RowScores:
        """The scores, brought up to the query's ensemble, and the targets."""
        return self.rows.scored(self.query.scored_by, self.query.positive)

    @property
    def class_scores(self) -> NDArray[np.float64]:
        """The scores of all classes, brought up to the query's ensemble; float64 (n_rows, n_classes)."""
        return self.rows.scored_jointly(self.query.scored_by)


LEAVES: Registry[TreeShape, LeafRows] = Registry("is not a statistic of leaves that this curator carries out")


def check_leaves(query: LeafQuery[object], shape: TreeShape) -> None:
    """Refuse a foreign query of leaves, or a tree, an ensemble or a class that the table does not have.

    Raises:
        RoundViolation: of such a query.
    """
    # A subclass could state any sensitivity.
    if type(query) is not LeafQuery:
        raise RoundViolation(f"{type(query).__name__} is not a LeafQuery")
    LEAVES.evaluation(query.statistic).check(query.statistic, shape)
    shape.require_structure(query.structure)
    if query.statistic.uses_scores:
        joint = query.statistic.joint_classes
        shape.require_ensemble(query.scored_by, joint)
        if joint:
            shape.require_classes(joint)
        else:
            shape.require_class(query.positive)


def _filtered(query: LeafQuery[object]) -> bool:
    return LEAVES.evaluation(query.statistic).filtered(query.statistic)


def _finished(query: LeafQuery[object], sums: Integers, shape: TreeShape) -> Integers:
    found: Integers = LEAVES.evaluation(query.statistic).finish(query.statistic, sums, shape)
    return found


def _of_ratios(query: LeafQuery[object]) -> bool:
    return LEAVES.evaluation(query.statistic).is_ratio(query.statistic)


@TREES.carries_out(LeafQuery, check=check_leaves, filtered=_filtered, finish=_finished, is_ratio=_of_ratios)
def _leaves(query: LeafQuery[object], rows: TreeRows) -> Integers:
    view = LeafRows(rows=rows, query=query)
    found: Integers = LEAVES.evaluation(query.statistic).evaluate(query.statistic, view)
    return found
