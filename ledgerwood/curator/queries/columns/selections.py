"""Questions about a column whose answer is a choice: its most common cell, its quantiles, its bounds, its keys.

Frozen and public. A choice has no grid to be noised on; the query names the mechanisms that can answer it, and what one
of them costs under an adjacency. The proofs are in docs/explanation/queries.md#column-selections.

Some are asked before there is a schema. There columns are numbered in the table's order; the target has the number
after the last feature.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event, PureEvent
from ledgerwood.curator.inputs.encoding import key_cells
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.queries.columns.statistics import ColumnHistogram, count_cells, numeric
from ledgerwood.curator.queries.registry import COLUMN_CHOICES, UNDECLARED, UNDECLARED_CHOICES, Integers
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape, UndeclaredRows
from ledgerwood.errors import RoundViolation, SchemaError
from ledgerwood.mechanisms import (
    BoundedStabilityMechanism,
    BoxShifts,
    ExponentialMechanism,
    GaussianStabilityMechanism,
    Grid,
    JointQuantilesMechanism,
    NoisyMaxMechanism,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    RandomSource,
    StabilityHistogramMechanism,
    UtilityRange,
    log_edges,
)
from ledgerwood.mechanisms.choices.selection import MOST_POINTS
from ledgerwood.mechanisms.exact.deviates import require_fit
from ledgerwood.schema import Categorical, Category, Feature, require_name

Choice = ExponentialMechanism | PermuteAndFlipMechanism | NoisyMaxMechanism
"""What chooses an index by its utility."""
KeyMechanism = GaussianStabilityMechanism | BoundedStabilityMechanism
"""Which categories of an undeclared column show."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMode:
    """The index of the cell that most rows are in, among the cells of values: not "other", not missing.

    Args:
        histogram: the cells; a candidate's utility is its number of rows.
    """

    histogram: ColumnHistogram

    def __post_init__(self) -> None:
        if type(self.histogram) is not ColumnHistogram:
            raise _validate.fail("histogram", self.histogram, "a ColumnHistogram", "cells")

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> UtilityRange:
        """Range 1: one count moves, and all in one direction; 2 where a row goes from one cell to another."""
        return UtilityRange(range=2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0)

    def event(self, mechanism: Choice, adjacency: Adjacency) -> Event:
        """The mechanism's event, at this range."""
        _require(self, mechanism, get_args(Choice))
        if isinstance(mechanism, NoisyMaxMechanism):
            require_fit((mechanism.scale,), self.grid)
        return mechanism.event(self.sensitivity(adjacency), adjacency)

    def select(self, mechanism: Choice, evidence: NDArray[np.int64], source: RandomSource) -> int:
        """A cell's index, from the counts int64 (values,)."""
        return mechanism.select(evidence, self.grid, source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnQuantile:
    """A threshold with about a share q of the column's values below it; q is the mechanism's.

    Args:
        column: numeric, of the table's schema, or narrower bounds under the same name.
        points: the number of thresholds, evenly from low to high, in [2, 2**40).

    Raises:
        InvalidParameter: a number of points outside its bound.
        SchemaError: a categorical column.
    """

    column: Feature
    points: int = (1 << 20) + 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _points(self.column, self.points))

    def event(self, mechanism: QuantileMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's event; a replaced row that is missing on one side costs no more (queries.md)."""
        _require(self, mechanism, (QuantileMechanism,))
        return mechanism.event(adjacency)

    def select(self, mechanism: QuantileMechanism, evidence: NDArray[np.int64], source: RandomSource) -> float:
        """A threshold in the column's unit, from the rows' positions among them."""
        return threshold(self, mechanism.select(evidence, self.points, source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnQuantiles:
    """Several thresholds at once, which rise; their shares q are the mechanism's. For thousands of rows, not more.

    Args:
        column, points: as in `ColumnQuantile`.

    Raises:
        InvalidParameter, SchemaError: as in `ColumnQuantile`.
    """

    column: Feature
    points: int = (1 << 20) + 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _points(self.column, self.points))

    def event(self, mechanism: JointQuantilesMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's event."""
        _require(self, mechanism, (JointQuantilesMechanism,))
        return mechanism.event(adjacency)

    def select(
        self, mechanism: JointQuantilesMechanism, evidence: NDArray[np.int64], source: RandomSource
    ) -> tuple[float, ...]:
        """Thresholds in the column's unit."""
        return tuple(threshold(self, point) for point in mechanism.select(evidence, self.points, source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """Narrower bounds (low, high) of a column, among public edges inside of its declared ones.

    Args:
        column: numeric, of the table's schema.
        smallest: the finest magnitude that matters, > 0, in the column's unit (`mechanisms.log_edges`).

    Raises:
        InvalidParameter: `smallest` outside its bound.
        SchemaError: a categorical column.
    """

    column: Feature
    smallest: float

    def __post_init__(self) -> None:
        column = numeric(self.column, "bounds")
        smallest = _validate.positive("smallest", self.smallest, "the column's unit")
        object.__setattr__(self, "smallest", smallest)
        log_edges(column.low, column.high, smallest)

    def event(self, mechanism: PrivateBoundsMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's event; under replace-one the pure epsilon of its two counts, since a draw is one event."""
        _require(self, mechanism, (PrivateBoundsMechanism,))
        if adjacency is Adjacency.REPLACE_ONE:
            return PureEvent(epsilon=float_up(2 / Fraction(mechanism.scale)), adjacency=adjacency)
        return mechanism.event(adjacency)

    def select(
        self, mechanism: PrivateBoundsMechanism, evidence: NDArray[np.float64], source: RandomSource
    ) -> tuple[float, float]:
        """Two edges, from the values."""
        column = numeric(self.column, "bounds")
        return mechanism.select(evidence, log_edges(column.low, column.high, self.smallest), source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnKeys:
    """The keys of a column whose categories are not declared, with noisy counts; rare keys are not released.

    Args:
        name: the name of one of the table's `keys`.
    """

    name: str

    def __post_init__(self) -> None:
        require_name(self.name)

    def event(self, mechanism: StabilityHistogramMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's event."""
        _require(self, mechanism, (StabilityHistogramMechanism,))
        return mechanism.event(adjacency)

    def select(
        self, mechanism: StabilityHistogramMechanism, evidence: Mapping[str, int], source: RandomSource
    ) -> dict[str, int]:
        """The keys that show and their noisy counts."""
        return mechanism.select(evidence, source)


def positions(query: ColumnQuantile | ColumnQuantiles, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts the thresholds at or below each value, int64 (n,); NaN is not among the values."""
    column = numeric(query.column, "a quantile")
    # The share of the width first: a product of large bounds could overflow.
    share = (np.clip(values, column.low, column.high) - column.low) / (column.high - column.low)
    places: NDArray[np.int64] = np.floor(share * (query.points - 1)).astype(np.int64) + 1
    return places


def threshold(query: ColumnQuantile | ColumnQuantiles, point: int) -> float:
    """Threshold number `point` of 0 .. points - 1, in the column's unit, rounded to the nearest float64."""
    column = numeric(query.column, "a quantile")
    low, high = Fraction(column.low), Fraction(column.high)
    return float(low + (high - low) * Fraction(point, query.points - 1))


def _points(column: Feature, points: object) -> int:
    numeric(column, "a quantile")
    number = _validate.count("points", points, "thresholds")
    if not 2 <= number < MOST_POINTS:
        raise _validate.fail("points", points, "in [2, 2**40)", "thresholds")
    return number


def _require(query: object, mechanism: object, kinds: tuple[type, ...]) -> None:
    if type(mechanism) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise RoundViolation(f"{type(query).__name__} needs {names}, not {type(mechanism).__name__}")


# ------------------------------------------------------------------------------------------------------ how it is done


def _check_mode(query: ColumnMode, shape: ColumnShape) -> None:
    shape.require(query.histogram.column)


@COLUMN_CHOICES.carries_out(ColumnMode, check=_check_mode)
def _counts(query: ColumnMode, rows: ColumnRows) -> Integers:
    return count_cells(query.histogram, rows)[: query.histogram.values, 0]


def _of_its_column(query: ColumnQuantile | ColumnQuantiles | ColumnBounds, shape: ColumnShape) -> None:
    shape.require(query.column)


@COLUMN_CHOICES.carries_out(ColumnQuantile, check=_of_its_column, over_parts="one part")
def _quantile(query: ColumnQuantile, rows: ColumnRows) -> Integers:
    return positions(query, rows.present(query.column))


@COLUMN_CHOICES.carries_out(ColumnQuantiles, check=_of_its_column, over_parts="one part")
def _quantiles(query: ColumnQuantiles, rows: ColumnRows) -> Integers:
    return positions(query, rows.present(query.column))


@COLUMN_CHOICES.carries_out(ColumnBounds, check=_of_its_column, over_parts="one part")
def _values(query: ColumnBounds, rows: ColumnRows) -> NDArray[np.float64]:
    return rows.present(query.column)


def _check_keys(query: ColumnKeys, shape: ColumnShape) -> None:
    if query.name not in shape.keys:
        raise SchemaError(f"the table has no keys {query.name!r}; it has {sorted(shape.keys)}")


@COLUMN_CHOICES.carries_out(ColumnKeys, check=_check_keys, over_parts="sum by key")
def _keys(query: ColumnKeys, rows: ColumnRows) -> dict[str, int]:
    codes, known = rows.keys[query.name]
    codes = codes[rows.sampled] if rows.sampled.size else codes
    counts = np.bincount(codes[codes >= 0], minlength=len(known))
    return dict(zip(known, counts.tolist(), strict=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCounts:
    """Number of rows in each bin of a numeric column, shape (n_bins, 1); a missing value is in none.

    docs/explanation/queries.md#value-counts.

    Args:
        column: whose values are counted.
        edges: n_bins + 1 rising finite numbers in the column's unit, public: bin i is [edges[i], edges[i + 1]), and a
            value outside is in the outermost bin.
    """

    column: int
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)
        edges = tuple(_validate.real("edges", edge, "column") for edge in self.edges)
        if len(edges) < 2 or not all(a < b for a, b in itertools.pairwise(edges)):
            raise _validate.fail("edges", edges, "at least two increasing numbers", "column")
        object.__setattr__(self, "edges", edges)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 in one bin; a replaced row leaves one bin and enters another."""
        return BoxShifts.of_counts(adjacency)


def _check_numbers(query: ValueCounts, shape: UndeclaredRows) -> None:
    if isinstance(shape.column(query.column), Keys):
        raise RoundViolation(f"column {query.column} is not numeric: it has no bins")


@UNDECLARED.carries_out(ValueCounts, check=_check_numbers)
def _bins(query: ValueCounts, rows: UndeclaredRows) -> Integers:
    """The exact number of sampled rows in each bin of a numeric column, int64 (n_bins, 1)."""
    values = rows.column(query.column)
    assert not isinstance(values, Keys)  # `_check_numbers`
    chosen = values[rows.sampled] if rows.sampled.size else values
    bins = np.searchsorted(query.edges[1:-1], chosen[~np.isnan(chosen)], side="right")
    return np.bincount(bins, minlength=len(query.edges) - 1).astype(np.int64).reshape(-1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCounts:
    """Number of rows of each category of a public list, shape (n_categories, 1); other values are in none.

    docs/explanation/queries.md#listed-counts.

    Args:
        column: whose categories are counted, before its schema is known.
        categories: the list, as of `Categorical`.
    """

    column: int
    categories: tuple[Category, ...]

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)
        object.__setattr__(self, "categories", Categorical("column", self.categories).categories)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 for one category; a replaced row leaves one and enters another."""
        return BoxShifts.of_counts(adjacency)


def _check_listed(query: ListedCounts, shape: UndeclaredRows) -> None:
    if not isinstance(shape.column(query.column), Keys):
        raise RoundViolation(f"column {query.column} is numeric: it has no categories")


@UNDECLARED.carries_out(ListedCounts, check=_check_listed)
def _listed(query: ListedCounts, rows: UndeclaredRows) -> Integers:
    """The exact number of sampled rows of each listed category, int64 (n_categories, 1)."""
    column = rows.column(query.column)
    assert isinstance(column, Keys)  # `_check_listed`
    feature = Categorical("column", query.categories)
    cells = key_cells(column, feature)
    cells = cells[rows.sampled] if rows.sampled.size else cells
    return np.bincount(cells, minlength=feature.missing_cell + 1)[: feature.other_cell].astype(np.int64).reshape(-1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCounts:
    """The categories of a column, with noisy counts, by a stability histogram; missing values are not counted.

    Args:
        column: whose categories are counted.
    """

    column: int

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)

    def event(self, mechanism: KeyMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's.

        Raises:
            RoundViolation: another mechanism.
        """
        if type(mechanism) not in get_args(KeyMechanism):
            raise RoundViolation(f"{type(mechanism).__name__} is not a stability histogram with Gaussian noise")
        return mechanism.event(adjacency)

    def select(
        self, mechanism: KeyMechanism, evidence: Mapping[Category, int] | None, source: RandomSource
    ) -> tuple[tuple[Category, int], ...] | None:
        """(category, noisy number of rows) of those that show, in the order of the categories' names.

        Args:
            mechanism: which of them show.
            evidence: the exact number of rows of each category that occurs; None of a table that could not be read.
            source: random words.

        Returns:
            None where a `BoundedStabilityMechanism` found too many categories.
        """
        if evidence is None:
            if not isinstance(mechanism, BoundedStabilityMechanism):
                raise RoundViolation("categories that were not counted need a mechanism that says so")
            mechanism.select(None, source)
            return None
        # By name, with the type in front: the order of the keys is public, whatever the order of the rows.
        named = {f"{type(key).__name__} {key!r}": key for key in evidence}
        shown = mechanism.select({name: evidence[key] for name, key in named.items()}, source)
        return None if shown is None else tuple((named[name], count) for name, count in shown.items())


def _check_undeclared_keys(query: KeyCounts, shape: UndeclaredRows) -> None:
    if not isinstance(shape.column(query.column), Keys):
        raise RoundViolation(f"column {query.column} is numeric: it has no categories")


@UNDECLARED_CHOICES.carries_out(KeyCounts, check=_check_undeclared_keys, over_parts="sum by key")
def _undeclared_keys(query: KeyCounts, rows: UndeclaredRows) -> dict[Category, int]:
    """The exact number of sampled rows of each category that occurs."""
    column = rows.column(query.column)
    assert isinstance(column, Keys)  # `_check_keys`
    codes = column.codes[rows.sampled] if rows.sampled.size else column.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(column.keys))
    return dict(zip(column.keys, counts.tolist(), strict=True))
