"""What is declared of one column: a number in a range, or one of a list of categories."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import InvalidParameter

LEAST_WIDTH = 1e-300
"""Of a range: the steps of a smaller one are no numbers of float64, and rows at its ends could not be placed."""
MAX_CATEGORIES = 60_000
MAX_CATEGORY = 2**53
"""Numbers below it, and no others, are told apart by every type of column that may hold them, whole or float."""
LEAST_WEIGHT_BOUND, MOST_WEIGHT_BOUND = 2.0**-20, 2.0**20
MOST_WEIGHT_RATIO = 1024.0
"""Largest over smallest weight of a class: gradients of the smallest still have a thousand steps of the grid."""
Category = str | int | float | bool


@final
@dataclass(frozen=True, slots=True)
class Numeric:
    """A number in [low, high], in the column's own unit.

    Args:
        name: the column's name.
        low, high: public bounds, low < high. Values outside are clamped to them, labels included.
        missing: whether the value may be missing (NaN or null). If False, a row without the value contributes 0.
    """

    name: str
    low: float
    high: float
    missing: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        object.__setattr__(self, "low", _validate.real(f"low of {self.name!r}", self.low, "the column's unit"))
        object.__setattr__(self, "high", _validate.real(f"high of {self.name!r}", self.high, "the column's unit"))
        width = self.high - self.low
        if not LEAST_WIDTH <= width < math.inf:
            by = f"> low={self.low!r} by a finite width of at least {LEAST_WIDTH}"
            raise _validate.fail(f"high of {self.name!r}", self.high, by, "the column's unit")
        _validate.flag(f"missing of {self.name!r}", self.missing)

    def cells(self, bins: int) -> FeatureCells:
        """Even steps of [low, high], and one more cell for a missing value."""
        return FeatureCells(ordered=bins, equality=(bins,) if self.missing else ())


@final
@dataclass(frozen=True, slots=True)
class Categorical:
    """One of a public list of categories.

    Args:
        name: the column's name.
        categories: distinct strings, booleans, or numbers of size below 2**53. A feature value outside the list counts
            as "other"; a row with a label outside contributes 0. No string ends in NUL: numpy's strings lose it.
        missing: whether the value may be missing (NaN or null), as in `Numeric`.
        weights: of a target, the public weight of each class, in the order of `categories`; None: all classes weigh the
            same. A row of the largest weight counts as one row, the others as shares of it. Finite, > 0, the largest at
            most 1,024 times the smallest. Declared and never computed from the rows, see
            docs/explanation/several-classes.md#class-weights.
    """

    name: str
    categories: tuple[Category, ...]
    missing: bool = False
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_name(self.name)
        given: object = self.categories
        if isinstance(given, str | bytes):
            raise InvalidParameter(
                f"categories={self.categories!r} of {self.name!r} must be a sequence of categories, and one text would "
                f"be read as its letters: write Categorical({self.name!r}, ({self.categories!r}, ...)) with every "
                "category that can occur (unit: categories)"
            )
        _validate.flag(f"missing of {self.name!r}", self.missing)
        object.__setattr__(
            self, "categories", _validate.items(f"categories of {self.name!r}", self.categories, "categories")
        )
        if not 1 <= len(self.categories) <= MAX_CATEGORIES:
            raise _validate.fail(
                f"len(categories) of {self.name!r}", len(self.categories), f"in [1, {MAX_CATEGORIES}]", "categories"
            )
        for category in self.categories:
            # The types are the caller's word; NaN would never be found in a column.
            if not isinstance(category, str | int | float) or category != category:  # type: ignore[redundant-expr]
                raise _validate.fail(f"category of {self.name!r}", category, "a string, number or boolean", "category")
            if not isinstance(category, str) and abs(category) >= MAX_CATEGORY:
                bound = "of size below 2**53, or a string in a column of strings"
                raise _validate.fail(f"category of {self.name!r}", category, bound, "category")
            if isinstance(category, str) and category.endswith("\0"):
                raise _validate.fail(
                    f"category of {self.name!r}", category, "a string without NUL at its end", "category"
                )
        if len(set(self.categories)) != len(self.categories):
            raise _validate.fail(f"categories of {self.name!r}", self.categories, "distinct", "categories")
        if self.weights is not None:
            object.__setattr__(self, "weights", _class_weights(self.name, self.weights, len(self.categories)))

    @property
    def relative_weights(self) -> tuple[float, ...]:
        """Each category's weight over the largest one, in (0, 1]; all 1 where none are declared."""
        if self.weights is None:
            return (1.0,) * len(self.categories)
        return tuple(weight / max(self.weights) for weight in self.weights)

    @property
    def other_cell(self) -> int:
        """The index of the cell for values outside the list."""
        return len(self.categories)

    @property
    def missing_cell(self) -> int:
        """The index of the cell for missing values."""
        return len(self.categories) + 1

    def cells(self, bins: int) -> FeatureCells:
        """One cell a category, tested by equality (and a missing value, where declared)."""
        missing = (self.missing_cell,) if self.missing else ()
        return FeatureCells(ordered=0, equality=(*range(len(self.categories)), *missing))


def _class_weights(name: str, weights: object, categories: int) -> tuple[float, ...]:
    """The weights of a target's classes as floats.

    Raises:
        InvalidParameter: they are not such numbers, one for each category.
    """
    what, unit = f"weights of {name!r}", "weight of a class"
    if isinstance(weights, str):
        raise _validate.fail(
            what, weights, "one public number for each category, such as (1.0, 10.0), known from elsewhere: weights by "
            "the number of rows of each class would be a release that nobody has paid for", unit,
        )  # fmt: skip
    if isinstance(weights, Mapping):
        raise _validate.fail(what, weights, "a sequence of numbers in the order of the categories", unit)
    found = tuple(_validate.positive(what, weight, unit) for weight in _validate.items(what, weights, unit))
    if len(found) != categories:
        raise _validate.fail(what, found, f"{categories} numbers, one for each category", unit)
    if max(found) > MOST_WEIGHT_RATIO * min(found):
        bound = f"numbers of which the largest is at most {MOST_WEIGHT_RATIO:,.0f} times the smallest"
        raise _validate.fail(what, found, bound, unit)
    return found


def require_name(name: object) -> None:
    """Refuse a value that is not a non-empty string."""
    if not isinstance(name, str) or not name:
        raise _validate.fail("name", name, "a non-empty string", "column name")
