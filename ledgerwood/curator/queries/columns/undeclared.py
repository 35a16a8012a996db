"""Public descriptions of what may be asked of a column before its schema is known. Proofs: docs/explanation/queries.md.

Columns are numbered in the table's order; the target has the number after the last feature.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.queries.registry import UNDECLARED, UNDECLARED_CHOICES, Integers
from ledgerwood.curator.views.undeclared_rows import UndeclaredRows
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, GaussianStabilityMechanism, Grid, RandomSource
from ledgerwood.schema import Category


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
            raise _validate.fail("edges", edges, "at least two numbers that rise", "column")
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
class KeyCounts:
    """Which categories a column holds, with noisy numbers of rows, by a stability histogram; a missing value has none.

    Args:
        column: whose categories are counted.
    """

    column: int

    def __post_init__(self) -> None:
        _validate.count("column", self.column, "columns", minimum=0)

    def event(self, mechanism: GaussianStabilityMechanism, adjacency: Adjacency) -> Event:
        """The mechanism's.

        Raises:
            RoundViolation: another mechanism.
        """
        if type(mechanism) is not GaussianStabilityMechanism:
            raise RoundViolation(f"{type(mechanism).__name__} is not a stability histogram with Gaussian noise")
        return mechanism.event(adjacency)

    def select(
        self, mechanism: GaussianStabilityMechanism, evidence: Mapping[Category, int], source: RandomSource
    ) -> tuple[tuple[Category, int], ...]:
        """(category, noisy number of rows) of those that show, in the order of the categories' names.

        Args:
            mechanism: which of them show.
            evidence: the exact number of rows of each category that occurs.
            source: random words.
        """
        # By name, with the type in front: the order of the keys is public, whatever the order of the rows.
        named = {f"{type(key).__name__} {key!r}": key for key in evidence}
        shown = mechanism.select({name: evidence[key] for name, key in named.items()}, source)
        return tuple((named[name], count) for name, count in shown.items())


def _check_keys(query: KeyCounts, shape: UndeclaredRows) -> None:
    if not isinstance(shape.column(query.column), Keys):
        raise RoundViolation(f"column {query.column} is numeric: it has no categories")


@UNDECLARED_CHOICES.carries_out(KeyCounts, check=_check_keys)
def _keys(query: KeyCounts, rows: UndeclaredRows) -> dict[Category, int]:
    """The exact number of sampled rows of each category that occurs."""
    column = rows.column(query.column)
    assert isinstance(column, Keys)  # `_check_keys`
    codes = column.codes[rows.sampled] if rows.sampled.size else column.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(column.keys))
    return dict(zip(column.keys, counts.tolist(), strict=True))
