"""Queries on the rows' scores by a released ensemble: how well they fit, and which labels have which scores.

A statistic is a value: it says what one row can change, for every ensemble, and `of` makes the query of one ensemble.
"""

import abc
import itertools
from dataclasses import dataclass
from typing import Generic, TypeVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.stated import numbers
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT, Loss
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.leaf_statistics import class_place, leaf_boxes
from ledgerwood.curator.queries.registry import TREES, Integers, Placed, Registry, no_refusal
from ledgerwood.curator.queries.units import grid_of, in_units, refuse_weights, steps_per_unit, whole_bits
from ledgerwood.curator.views.tree_rows import RowScores, TreeRows, TreeShape
from ledgerwood.ensemble import Ensemble
from ledgerwood.mechanisms import BoxShifts, Grid

S_co = TypeVar("S_co", covariant=True)
MAX_EDGES = 1 << 12


class ScoreStatistic(abc.ABC, Generic[S_co]):
    """A statistic of rows and their scores: its grid and its sensitivity, for every ensemble."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def grid(self) -> Grid:
        """Steps of the statistic's columns."""

    @abc.abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """The shifts of the statistic between neighbouring tables."""

    def of(self, ensemble: Ensemble, *, positive: int | None = None) -> "ScoreQuery[S_co]":
        """The query of one ensemble's scores.

        Args:
            ensemble: the released ensemble that gives the scores.
            positive: the positive class, which is separated from all others, as in `LeafStatistic.of`.
        """
        return ScoreQuery(statistic=self, ensemble=ensemble, positive=positive)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreQuery(Placed, Generic[S_co]):
    """A `ScoreStatistic` of one ensemble. Made by `ScoreStatistic.of`, which says what the fields are."""

    statistic: ScoreStatistic[S_co]
    ensemble: Ensemble
    positive: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive", class_place(self.positive))

    @property
    def grid(self) -> Grid:
        """That of the statistic."""
        return self.statistic.grid

    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """That of the statistic: it depends on no ensemble."""
        return self.statistic.sensitivity(adjacency)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredRows:
    """The view of the rows for the evaluator of a `ScoreStatistic`.

    Args:
        rows: the rows of the query.
        state: their scores by the query's ensemble, and their targets.
    """

    rows: TreeRows
    state: RowScores


SCORES: Registry[TreeShape, ScoredRows] = Registry("is not a statistic of scores that this curator carries out")


def _check(query: ScoreQuery[object], shape: TreeShape) -> None:
    SCORES.evaluation(query.statistic).check(query.statistic, shape)
    shape.require_ensemble(query.ensemble)
    shape.require_class(query.positive)


@TREES.carries_out(ScoreQuery, check=_check)
def _scores(query: ScoreQuery[object], rows: TreeRows) -> Integers:
    view = ScoredRows(rows=rows, state=rows.scored(query.ensemble, query.positive))
    found: Integers = SCORES.evaluation(query.statistic).evaluate(query.statistic, view)
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionFit(ScoreStatistic[BoxShifts]):
    """A score of how well an ensemble predicts the rows' labels, shape (1,): each row adds between 0 and 1.

    A row of the logistic loss counts 1 if its class is predicted, else 0; one of the squared loss counts 1 - (error /
    width)**2, or 0 if that is negative. More is better (docs/explanation/queries.md#prediction-fit).

    Args:
        loss: squared (on labels and predictions in [-1, 1]) or logistic.
        width: the error that counts 0, in [2**-10, 2], for the squared loss; half a label range is 1.
    """

    loss: Loss
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", fit_width(self.width))

    @property
    def grid(self) -> Grid:
        """Steps of the column."""
        return Grid(exponents=(GRID_EXPONENT,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 under every adjacency: a row counts between 0 and 1, and so does the one in its place."""
        return BoxShifts(boxes=((1.0,),))


@SCORES.carries_out(PredictionFit, check=no_refusal)
def _fit(statistic: PredictionFit, scored: ScoredRows) -> Integers:
    rows, state = scored.rows, scored.state
    partial = rows.blocks(1)
    kernels.fit_sums(
        rows.n_rows, state.scores, state.targets, rows.weights, rows.sampled, statistic.loss == "logistic",
        statistic.width, PER_UNIT, partial,
    )  # fmt: skip
    return kernels.total(partial)


def fit_width(value: object) -> float:
    """A `PredictionFit`'s width."""
    width = _validate.positive("width", value, "half label ranges")
    if not 2.0**-10 <= width <= 2.0:
        raise _validate.fail("width", value, "in [2**-10, 2]", "half label ranges")
    return width


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCounts(ScoreStatistic[BoxShifts]):
    """(number of rows, sum of labels in [-1, 1]) of the rows of each bin of scores, shape (len(edges) + 1, 2).

    A row is in the one bin of its own score, so that it moves one count by 1 and one sum by at most 1; a replaced row
    moves inside one bin, or from one bin to another (docs/explanation/federated.md#score-counts). What a
    recalibration of an ensemble needs.

    Args:
        edges: between the bins, rising; a score that equals an edge is above it.
        bits: in [0, 20]: whole units of 2**-bits, for noise of whole numbers and rows without weights
            (docs/explanation/queries.md#whole-sums). None: the grid of all sums.

    Raises:
        InvalidParameter: edges that do not rise, or more than 2**12, or a number of bits outside its bound.
    """

    edges: tuple[float, ...]
    bits: int | None = None

    def __post_init__(self) -> None:
        edges = numbers("edges", self.edges)
        if not 1 <= len(edges) <= MAX_EDGES or not all(a < b for a, b in itertools.pairwise(edges)):
            raise _validate.fail("edges", f"{len(edges)} edges", f"1 to {MAX_EDGES}, rising", "scores")
        object.__setattr__(self, "edges", tuple(edges))
        if self.bits is not None:
            object.__setattr__(self, "bits", whole_bits("bits", self.bits))

    @property
    def grid(self) -> Grid:
        """Steps of both columns."""
        return grid_of(self.bits, 2)

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, 1) in one bin; as of leaves for a replaced row."""
        return in_units(leaf_boxes(1.0, 1.0, adjacency), self.bits)


def _check_counts(statistic: ScoreCounts, shape: TreeShape) -> None:
    if statistic.bits is not None:
        refuse_weights(shape)


@SCORES.carries_out(ScoreCounts, check=_check_counts)
def _counts(statistic: ScoreCounts, scored: ScoredRows) -> Integers:
    rows, state = scored.rows, scored.state
    partial = rows.blocks(len(statistic.edges) + 1, 2)
    kernels.score_sums(
        rows.n_rows, state.scores, state.targets, rows.weights, rows.sampled, np.array(statistic.edges),
        steps_per_unit(statistic.bits), partial,
    )  # fmt: skip
    return kernels.total(partial)
