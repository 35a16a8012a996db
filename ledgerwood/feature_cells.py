"""The cells of one feature: the small whole numbers into which the public schema divides it, and what splits them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCells:
    """The cells of one feature that a split may test.

    Args:
        ordered: number of ordered cells 0 .. ordered-1; "cell < t" splits them, for t in 1 .. ordered-1.
        equality: cells that "cell == c" may test (categories, a missing value).
    """

    ordered: int
    equality: tuple[int, ...]

    @classmethod
    def owned(cls, cells: object) -> "FeatureCells":
        """A copy of the cells, as whole numbers that no other object shares.

        Raises:
            InvalidParameter: not plain cells of whole numbers >= 0.
        """
        # A subclass, or a list of cells, could change after the checks.
        if type(cells) is not FeatureCells:
            raise _validate.fail("cells", cells, "FeatureCells of each feature", "cells")
        return FeatureCells(
            ordered=_validate.count("ordered", cells.ordered, "cells", minimum=0),
            equality=tuple(_validate.count("equality", cell, "cells", minimum=0) for cell in cells.equality),
        )


def require_thresholds(feature: int, cells: FeatureCells, thresholds: NDArray[np.int64]) -> None:
    """Refuse what are not rising thresholds of a feature's ordered cells.

    Raises:
        InvalidParameter: so it is, or the feature has more than 2**16 cells.
    """
    most = max(cells.ordered, 1 + max(cells.equality, default=-1))
    if most > 2**16:
        raise _validate.fail(f"cells of feature {feature}", most, "at most 65536, a missing value's included", "cells")
    name = f"thresholds of feature {feature}"
    if thresholds.dtype.kind not in "iu" or thresholds.ndim != 1:
        raise _validate.fail(name, f"{thresholds.dtype} {thresholds.shape}", "whole numbers (k,)", "cells")
    if len(thresholds) and not (
        thresholds[0] >= 1 and thresholds[-1] < cells.ordered and (thresholds[1:] > thresholds[:-1]).all()
    ):
        raise _validate.fail(name, thresholds.tolist(), f"rising, in 1 .. {cells.ordered - 1}", "cells")


def sets_of(equality: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The sets of at least two of the cells, without the first one, that do not have all others."""
    rest = equality[1:]
    return [each for size in range(2, len(rest)) for each in itertools.combinations(rest, size)]


def marked_sets(sets: Sequence[tuple[int, ...]]) -> NDArray[np.bool_]:
    """bool (n_sets, n_cells): each line marks the cells of one set; at least one set."""
    marked = np.zeros((len(sets), 1 + max(max(each) for each in sets)), dtype=np.bool_)
    for line, each in zip(marked, sets, strict=True):
        line[list(each)] = True
    return marked


def stacked_sets(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The sets of both, as wide as the wider one's; None if there is none."""
    if not len(first) and not len(second):
        return None
    wide = max(first.shape[1], second.shape[1])
    return np.concatenate([np.pad(each, ((0, 0), (0, wide - each.shape[1]))) for each in (first, second)])


def padded_sets(sets: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """As many sets, as wide, for each tree: those that are added are no test's."""
    lines, cells = max(len(each) for each in sets), max(each.shape[1] for each in sets)
    return np.stack([np.pad(each, ((0, lines - each.shape[0]), (0, cells - each.shape[1]))) for each in sets])
