"""Questions about the columns of a table: counts, sums, moments and histograms, each with its shift set.

Frozen and public, as the queries of trees are. The proofs are in docs/explanation/queries.md#columns.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood._directed import log2
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.registry import COLUMNS, Integers
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, SchemaError
from ledgerwood.mechanisms import BoxShifts, Grid
from ledgerwood.schema import MAX_CATEGORIES, Categorical, Date, Feature, Numeric, Ranged

SUM_BITS = 20
"""A value is a whole number of steps, less than 2**20 of them either way from the origin."""
_LEAST_REACH = Fraction(2) ** -1002
_MOST_REACH = Fraction(2) ** 980
MOST_BLOCKS = 64
"""Histograms are summed in at most 64 parts: a part has as many numbers as there are cells."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """Number of rows, shape (1,), whole; public under replace-one, and refused there."""

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1.

        Raises:
            AdjacencyMismatch: under replace-one, where it is 0 and nothing needs to be paid.
        """
        if adjacency is Adjacency.REPLACE_ONE:
            raise AdjacencyMismatch("RowCount has sensitivity 0 under replace-one (unit: rows): the number is public")
        return BoxShifts(boxes=((1.0,),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCount:
    """Number of rows whose value of the column is not missing, shape (1,), whole.

    Args:
        column: the column of the table's schema.
    """

    column: Feature

    def __post_init__(self) -> None:
        require_feature(self.column)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1; under replace-one too, where a value comes in the place of a missing one."""
        return BoxShifts(boxes=((1.0,),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSum:
    """Sum of (value - origin) over the rows that have a value, shape (1,), in the column's unit.

    Values are clamped to [low, high] of `column`; docs/explanation/queries.md#column-sums.

    Args:
        column: the column of the table's schema, or narrower bounds under the same name.
        origin: public; the middle of the bounds where None, which has the least sensitivity: half their width.
            0 is for the plain sum.

    Raises:
        InvalidParameter: values that are as far from the origin as 2**980, or all nearer than 2**-1002.
        SchemaError: a categorical column.
    """

    column: Feature
    origin: float | None = None

    def __post_init__(self) -> None:
        column = numeric(self.column, "a sum")
        origin = middle(column) if self.origin is None else _validate.real("origin", self.origin, "the column's unit")
        object.__setattr__(self, "origin", origin)
        Steps.of(column, origin)

    @property
    def steps(self) -> "Steps":
        """Converts the column's values to whole steps."""
        return Steps.of(numeric(self.column, "a sum"), self.origin or 0.0)

    @property
    def grid(self) -> Grid:
        """Steps of the sum."""
        return Grid(exponents=(self.steps.exponent,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """The largest distance of a value from the origin; where a row is replaced, the width if that is more."""
        reach, width = self.steps.reach, self.steps.width
        return BoxShifts(boxes=((max(reach, width) if adjacency is Adjacency.REPLACE_ONE else reach,),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMoments:
    """(number of values, sum of their distances from the middle of the bounds), shape (2,): what a mean is made of.

    Args:
        column: as in `ColumnSum`; the origin is the middle of its bounds.

    Raises:
        InvalidParameter, SchemaError: as in `ColumnSum`.
    """

    column: Feature

    def __post_init__(self) -> None:
        column = numeric(self.column, "moments")
        Steps.of(column, middle(column))

    @property
    def steps(self) -> "Steps":
        """Converts the column's values to whole steps."""
        column = numeric(self.column, "moments")
        return Steps.of(column, middle(column))

    @property
    def grid(self) -> Grid:
        """Whole rows, and steps of the sum."""
        return Grid(exponents=(0, self.steps.exponent))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """Box (1, half the width); a replaced row changes the sum by at most the width, and not the count."""
        reach, width = self.steps.reach, self.steps.width
        if adjacency is Adjacency.REPLACE_ONE:
            return BoxShifts(boxes=((0.0, width), (1.0, reach)))
        return BoxShifts(boxes=((1.0, reach),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnHistogram:
    """Number of rows in each cell of a column, shape (n_cells, 1), whole.

    A categorical column has one cell a category, one for other values, one for missing ones, in this order. A numeric
    one has the cells [edges[i], edges[i + 1]) and one for missing values; what lies outside is in the outermost.
    docs/explanation/queries.md#column-histograms.

    Args:
        column: the column of the table's schema.
        edges: the edges of a numeric column only: 2 to 60,001 rising numbers, public, in the column's unit.

    Raises:
        InvalidParameter: edges that are missing, not wanted, do not rise, or are too many.
    """

    column: Feature
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_feature(self.column)
        if isinstance(self.column, Categorical):
            if self.edges is not None:
                raise _validate.fail("edges", self.edges, "None for a categorical column", "the column's unit")
            return
        edges = tuple(_validate.real("edges", edge, "the column's unit") for edge in self.edges or ())
        if not 2 <= len(edges) <= MAX_CATEGORIES + 1:
            raise _validate.fail("len(edges)", len(edges), f"in [2, {MAX_CATEGORIES + 1}]", "edges")
        if not all(a < b for a, b in itertools.pairwise(edges)):
            raise InvalidParameter(f"edges of {self.column.name!r} must rise (unit: the column's): {edges!r}")
        if edges[-1] - edges[0] == math.inf:
            raise _validate.fail("edges", (edges[0], edges[-1]), "a finite width apart", "the column's unit")
        object.__setattr__(self, "edges", edges)

    @classmethod
    def even(cls, column: Feature, cells: int) -> "ColumnHistogram":
        """The bounds of a numeric column, cut into `cells` even cells.

        Raises:
            InvalidParameter: no whole number in [1, 60,000], or bounds too near each other for so many cells.
            SchemaError: a categorical column, whose cells are its categories.
        """
        bounds, count = numeric(column, "even cells"), _validate.count("cells", cells, "cells")
        if count > MAX_CATEGORIES:
            raise _validate.fail("cells", cells, f"at most {MAX_CATEGORIES}", "cells")
        inner = (bounds.low + (bounds.high - bounds.low) * (i / count) for i in range(1, count))
        return cls(column=bounds, edges=(bounds.low, *inner, bounds.high))

    @property
    def values(self) -> int:
        """The number of cells for values, which come first. After them come other (categorical) and missing."""
        return len(self.column.categories) if isinstance(self.column, Categorical) else len(self.edges or ()) - 1

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.values + (2 if isinstance(self.column, Categorical) else 1)

    @property
    def grid(self) -> Grid:
        """Whole rows."""
        return Grid(exponents=(0,))

    def sensitivity(self, adjacency: Adjacency) -> BoxShifts:
        """1 in one cell; a replaced row leaves one cell and enters another."""
        return BoxShifts.of_counts(adjacency)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Converts a value to a whole number: clamp, take the distance from the origin, truncate, clamp in integers.

    Args:
        low, high, origin: public, in the column's unit.
        exponent: a step is 2**exponent of that unit.
        least, most: the integers that a value can become.
    """

    low: float
    high: float
    origin: float
    exponent: int
    least: int
    most: int

    @classmethod
    def of(cls, column: Ranged, origin: float) -> "Steps":
        """Chooses the power of two for which the end further from the origin is >= 2**19 and < 2**20 steps.

        Raises:
            InvalidParameter: an end that is too far from the origin, or ends that are too near.
        """
        ends = [Fraction(end) - Fraction(origin) for end in (column.low, column.high)]
        reach = max(map(abs, ends))
        if not _LEAST_REACH <= reach < _MOST_REACH:
            raise InvalidParameter(
                f"column {column.name!r}: the further end of [{column.low!r}, {column.high!r}] must be at least "
                f"2**-1002 and less than 2**980 from origin={origin!r} (unit: the column's); rescale the column"
            )
        power = log2(reach)
        exponent = power - (Fraction(2) ** power > reach) + 1 - SUM_BITS  # 2**19 <= reach in steps < 2**20
        least, most = (math.trunc(end / Fraction(2) ** exponent) for end in ends)
        return cls(low=column.low, high=column.high, origin=origin, exponent=exponent, least=least, most=most)

    @property
    def reach(self) -> float:
        """The most that a row adds to a sum, in the column's unit; exact."""
        return math.ldexp(max(abs(self.least), abs(self.most)), self.exponent)

    @property
    def width(self) -> float:
        """The most by which two rows with values differ, in the column's unit; exact."""
        return math.ldexp(self.most - self.least, self.exponent)


def require_feature(column: object) -> None:
    """Refuse what is not a column of a schema.

    Raises:
        InvalidParameter: it is not.
    """
    # The very classes: a subclass could have bounds that change from one look to the next.
    if type(column) not in {Numeric, Categorical, Date}:
        raise _validate.fail("column", column, "a Numeric, Categorical or Date, such as schema.column(name)", "column")


def numeric(column: Feature, wanted: str) -> Ranged:
    """The column, if it holds numbers, or dates as numbers of days.

    Raises:
        SchemaError: it is categorical, and what is wanted needs numbers.
    """
    require_feature(column)
    if isinstance(column, Categorical):
        raise SchemaError(f"column {column.name!r} is categorical: {wanted} needs a Numeric; ask for a ColumnHistogram")
    return column


def middle(column: Ranged) -> float:
    """The middle of the column's bounds, to the nearest float64."""
    return column.low + (column.high - column.low) / 2.0


# ------------------------------------------------------------------------------------------------------ how it is done


def _any_table(_: RowCount, __: ColumnShape) -> None:
    """Every table has rows."""


@COLUMNS.carries_out(RowCount, check=_any_table)
def _rows(_: RowCount, rows: ColumnRows) -> Integers:
    return np.array([np.count_nonzero(rows.sampled) if rows.sampled.size else rows.n_rows], dtype=np.int64)


def _of_its_column(query: ColumnCount | ColumnSum | ColumnMoments | ColumnHistogram, shape: ColumnShape) -> None:
    shape.require(query.column)


@COLUMNS.carries_out(ColumnCount, check=_of_its_column)
def _count(query: ColumnCount, rows: ColumnRows) -> Integers:
    if isinstance(query.column, Categorical):
        cells = count_cells(ColumnHistogram(column=query.column), rows)
        return kernels.total(cells[: query.column.missing_cell])
    return np.array([np.count_nonzero(rows.here(query.column))], dtype=np.int64)


@COLUMNS.carries_out(ColumnMoments, check=_of_its_column)
def _moments(query: ColumnMoments, rows: ColumnRows) -> Integers:
    return _sums(query.column, query.steps, rows)


@COLUMNS.carries_out(ColumnSum, check=_of_its_column)
def _sum(query: ColumnSum, rows: ColumnRows) -> Integers:
    return _sums(query.column, query.steps, rows)[1:]


def _sums(column: Feature, steps: Steps, rows: ColumnRows) -> Integers:
    partial = np.zeros((kernels.n_chunks(rows.n_rows), 2), dtype=np.int64)
    kernels.column_moments(
        rows.n_rows, rows.columns[column.name], rows.sampled, steps.low, steps.high, steps.origin,
        2.0**-steps.exponent, steps.least, steps.most, partial,
    )  # fmt: skip
    return kernels.total(partial)


@COLUMNS.carries_out(ColumnHistogram, check=_of_its_column)
def count_cells(query: ColumnHistogram, rows: ColumnRows) -> Integers:
    """The exact numbers of rows, int64 (n_cells, 1)."""
    column = rows.columns[query.column.name]
    if query.edges is None:
        partial = np.zeros((min(kernels.n_chunks(rows.n_rows), MOST_BLOCKS), query.cells), dtype=np.int64)
        kernels.code_histogram(rows.n_rows, len(partial), column, rows.sampled, partial)
        return kernels.total(partial)[:, np.newaxis]
    # numpy sorts block by block, faster than a search for each row; the outermost cells take what is outside.
    edges = np.array([-np.inf, *query.edges[1:-1], np.inf])
    counts, _ = np.histogram(rows.present(query.column), bins=edges)
    missing = np.count_nonzero(np.isnan(column[rows.sampled] if rows.sampled.size else column))
    return np.append(counts, missing).astype(np.int64)[:, np.newaxis]
