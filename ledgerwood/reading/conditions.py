"""Conditions on one feature in words of the schema: its name, thresholds in its unit, categories by name.

A condition is a mark on each cell of the feature. What a user wrote is shown on one line: a name or a category with
characters that cannot be printed is shown as Python would write it.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Categorical, Date, Feature, Ranged
from ledgerwood.ensemble import TreeStructure

Mark = NDArray[np.bool_]


def left_mark(structure: TreeStructure, node: int, cells: int) -> Mark:
    """Which cells of the tested feature an inner node sends left, bool (cells,)."""
    _, below, besides, sets = structure.lowered()
    mark = np.arange(cells) < int(below[node])
    beside = int(besides[node])
    if beside < -1:
        mark[:] = False
        line = sets[-2 - beside][:cells]
        mark[: len(line)] = line
    elif 0 <= beside < cells:
        mark[beside] = True
    return mark


def shown_name(name: str) -> str:
    """The name on one line, without characters that could hide what it says."""
    return name if name.isprintable() and name == name.strip() else repr(name)


def shown_number(value: float, step: float) -> str:
    """A number with as many digits as tell it from others that are `step` apart, at least."""
    exact = f"{value:.12g}"
    if len(exact) <= 7:
        return exact
    digits = max(0, 2 - math.floor(math.log10(step))) if step > 0.0 else 6
    return f"{round(value, digits):.12g}"


def threshold(feature: Ranged, cell: int, bins: int) -> float:
    """The border below a cell of a numeric feature, in its unit; of dates in days since 1970-01-01."""
    return feature.low + cell * ((feature.high - feature.low) / bins)


def words(feature: Feature, mark: Mark, bins: int) -> str:
    """The condition that a value's cell is marked, such as "0.25 <= length < 0.5 or length is missing"."""
    if mark.all():
        return f"any {shown_name(feature.name)}"
    if isinstance(feature, Categorical):
        return _category_words(feature, mark)
    return _number_words(feature, mark, bins)


def cell_names(feature: Feature, bins: int) -> tuple[str, ...]:
    """A name for each cell: steps of the range, categories, "other", "missing"."""
    if isinstance(feature, Categorical):
        names = [*map(repr, feature.categories), "other"]
    else:
        borders = [shown_border(feature, cell, bins) for cell in range(bins + 1)]
        names = [f"[{low}, {high})" for low, high in itertools.pairwise(borders)]
    return (*names, "missing") if feature.missing else tuple(names)


def shown_border(feature: Ranged, cell: int, bins: int) -> str:
    """The border below a cell, in words."""
    if isinstance(feature, Date):
        return feature.spelled(threshold(feature, cell, bins))
    return shown_number(threshold(feature, cell, bins), (feature.high - feature.low) / bins)


def runs(mark: Mark) -> list[tuple[int, int]]:
    """The first cell and the end of each run of marked cells."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mark, [False])).astype(np.int8)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True))


def _number_words(feature: Ranged, mark: Mark, bins: int) -> str:
    name, ordered = shown_name(feature.name), mark[:bins]
    missing = bool(feature.missing and mark[bins])
    if not ordered.any():
        return f"{name} is missing"
    if ordered.all():
        return f"{name} is not missing"
    found = []
    for first, end in runs(ordered):
        low = f"{shown_border(feature, first, bins)} <= " if first > 0 and end < bins else ""
        rest = f" < {shown_border(feature, end, bins)}" if end < bins else f" >= {shown_border(feature, first, bins)}"
        found.append(f"{low}{name}{rest}")
    return " or ".join([*found, *([f"{name} is missing"] if missing else [])])


def _category_words(feature: Categorical, mark: Mark) -> str:
    name, listed = shown_name(feature.name), mark[: len(feature.categories)]
    missing = bool(feature.missing and mark[feature.missing_cell])
    if not mark[feature.other_cell]:
        inside = [repr(each) for each, marked in zip(feature.categories, listed, strict=True) if marked]
        if not inside:
            return f"{name} is missing"
        found = f"{name} = {inside[0]}" if len(inside) == 1 else f"{name} in ({', '.join(inside)})"
        return f"{found} or {name} is missing" if missing else found
    outside = [repr(each) for each, marked in zip(feature.categories, listed, strict=True) if not marked]
    if not outside:
        return f"{name} is not missing"
    found = f"{name} != {outside[0]}" if len(outside) == 1 else f"{name} not in ({', '.join(outside)})"
    return f"{found} and {name} is not missing" if feature.missing and not missing else found
