"""The exponential mechanism over the points of public threshold grids, at a cost per row and not per point.

Points between two neighbouring data values share one utility: they are weighed together, and the point is drawn
afterwards. Proof: docs/explanation/selection.md#gridless-choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.choices.bounded import AbstractBoundedCandidates, chosen_point
from ledgerwood.mechanisms.choices.selection import (
    MOST_POINTS,
    ExponentialMechanism,
    UtilityRange,
    per_step,
    require_one_column,
    require_vector,
)
from ledgerwood.mechanisms.exact import choice
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumericCandidates:
    """The points 0 .. points - 1 of a feature's public thresholds; n rows cut them into n + 1 cells of one utility.

    Args:
        positions: int64 (n,), rising: how many thresholds are at or below each row's value, in [0, points]. Cell r is
            the points from positions[r - 1] to positions[r] - 1, which have exactly r rows below them; equal rows have
            a cell of no points between them. What falls or lies outside is moved: the cells always cover the grid.
        points: in [1, 2**40), public.
        utilities: int64 (n + 1,), one a cell, in steps of the grid that `select` is given.
        weight: >= 1, public: of one point, beside the points of other features; points * weight below 2**40.

    Raises:
        InvalidParameter: arrays of another type or shape, or a number outside its bound.
    """

    positions: Integers
    points: int
    utilities: Integers
    weight: int = 1

    def __post_init__(self) -> None:
        require_vector("positions", self.positions, "thresholds")
        require_vector("utilities", self.utilities, "grid steps")
        points = _validate.count("points", self.points, "thresholds")
        if self.utilities.size != self.positions.size + 1:
            raise _validate.fail("utilities", self.utilities.shape, "one more than the positions", "cells")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weight", _weight(self.weight, points))

    def cells(self) -> tuple[Integers, Integers, Integers]:
        """First points, numbers of points (> 0) and utilities of the cells that have points; each (m,), m >= 1."""
        edges = np.empty(self.utilities.size + 1, dtype=np.int64)
        edges[0], edges[-1] = 0, self.points
        inner = edges[1:-1]
        np.clip(np.maximum.accumulate(self.positions, out=inner), 0, self.points, out=inner)
        starts, widths = edges[:-1], np.diff(edges)
        full = widths > 0
        if full.all():  # without copies: there may be millions
            return starts, widths, self.utilities
        return starts[full], widths[full], self.utilities[full]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CategoricalCandidates:
    """The public categories of a feature, each a candidate.

    Args:
        utilities: int64 (k,), k >= 1, one a category, in steps of the grid that `select` is given.
        weight: >= 1, public: of one category, beside the points of other features; k * weight below 2**40.

    Raises:
        InvalidParameter: as in `NumericCandidates`.
    """

    utilities: Integers
    weight: int = 1

    def __post_init__(self) -> None:
        require_vector("utilities", self.utilities, "grid steps")
        if not self.utilities.size:
            raise _validate.fail("categories", 0, ">= 1", "categories")
        object.__setattr__(self, "weight", _weight(self.weight, self.utilities.size))

    def cells(self) -> tuple[Integers, Integers, Integers]:
        """The cells as in `NumericCandidates`, with one point each."""
        places = np.arange(self.utilities.size, dtype=np.int64)
        return places, np.ones_like(places), self.utilities


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A threshold or a category: the feature's place among those given, and the place of the point in it."""

    feature: int
    point: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridlessMechanism:
    """Point p with probability proportional to weight * exp(rate * u_p), over all points of all features.

    Source: S-GBDT, Algorithm 2 (whose intervals of reals are points of a public grid here);
    docs/explanation/selection.md#gridless-choice.

    Args:
        rate: in [1e-200, 1e200], nats per unit of utility.

    Raises:
        InvalidParameter: a rate outside its bounds.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", ExponentialMechanism(rate=self.rate).rate)

    def event(self, sensitivity: UtilityRange, adjacency: Adjacency) -> BoundedRangeEvent:
        """BoundedRangeEvent of rate * range; the range is a supremum over points (and categories), not over cells."""
        return ExponentialMechanism(rate=self.rate).event(sensitivity, adjacency)

    @passes("choice")
    def select(
        self,
        features: Sequence[NumericCandidates | CategoricalCandidates | AbstractBoundedCandidates],
        grid: Grid,
        source: RandomSource,
    ) -> Candidate:
        """One point.

        Args:
            features: at least one. Bounded candidates are alone: they are the points of all features.
            grid: one column, of the utilities.
            source: random words.

        Raises:
            InvalidParameter: no feature, bounded candidates beside others, a grid of several columns. Never because of
                a row: neither its utility nor how many cells the rows cut is looked at.
        """
        if not features:
            raise _validate.fail("features", len(features), ">= 1", "features")
        require_one_column(grid)
        bounded = [feature for feature in features if isinstance(feature, AbstractBoundedCandidates)]
        if bounded:
            if len(features) > 1:
                raise _validate.fail("features", len(features), "1 where candidates are bounded", "features")
            return Candidate(feature=0, point=chosen_point(bounded[0], per_step(self.rate, grid), source))
        cells = [feature.cells() for feature in features]
        counts = [counts * feature.weight for feature, (_, counts, _) in zip(features, cells, strict=True)]
        utilities = np.concatenate([cell[2] for cell in cells])
        gaps = choice.gaps_below_top(utilities)
        place = choice.choose(gaps, np.concatenate(counts), per_step(self.rate, grid), source)
        for index, (starts, widths, _) in enumerate(cells):
            if place < starts.size:
                point = int(starts[place]) + int(source.integers(int(widths[place]), 1)[0])
                return Candidate(feature=index, point=point)
            place -= starts.size
        raise AssertionError("the chosen cell is one of those given")


def _weight(value: object, points: int) -> int:
    weight = _validate.count("weight", value, "of a point")
    if weight * points >= MOST_POINTS:
        raise _validate.fail("points * weight", weight * points, "< 2**40", "points")
    return weight
