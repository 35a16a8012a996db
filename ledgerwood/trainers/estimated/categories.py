"""The most frequent categories of a column by released counts: docs/explanation/bought-schema.md#many-categories."""

from collections.abc import Sequence

from ledgerwood.curator import MAX_CATEGORIES, Category, TypedColumn
from ledgerwood.schema import OpenCategorical


def most_categories(column: TypedColumn) -> int:
    """How many categories of a column are kept."""
    given = column.given
    asked = given.max_categories if isinstance(given, OpenCategorical) else None
    return MAX_CATEGORIES if asked is None else asked


def most_frequent(found: Sequence[tuple[Category, float]], most: int) -> tuple[Category, ...]:
    """The categories with the largest counts, in the order in which they were found or listed.

    Args:
        found: released (category, noisy number of rows).
        most: how many, at most; of equal counts the first ones.
    """
    ranked = sorted(range(len(found)), key=lambda place: -found[place][1])[:most]
    return tuple(found[place][0] for place in sorted(ranked))
