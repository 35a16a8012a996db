"""Candidates whose utilities are known from above, and exactly where they are asked for: what need not be known is not.

A choice among them has the distribution of the exponential mechanism over all points, whatever the bounds are.
Proof: docs/explanation/selection.md#bounded-choice.
"""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms.exact import choice
from ledgerwood.mechanisms.exact.randomness import RandomSource

Integers = NDArray[np.int64]
Cells = tuple[Integers, Integers, Integers]
"""First points, numbers of points (> 0) and utilities of stretches of points of one utility each; each (m,)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cover:
    """Stretches of points, one after another, that cover all of them.

    Args:
        starts: int64 (m,), each one's first point, rising from 0; m >= 1.
        widths: int64 (m,), in [1, 2**40), each one's number of points.
        utilities: int64 (m,): no point of a stretch has a larger utility.
        exact: bool (m,): all points of the stretch have this utility.
        families: int64 (m,): stretches of one family are looked into together at little more than the cost of one.
        attained: a utility that some point is expected to have; the nearer to the largest one, the fewer draws it
            takes. Nothing else depends on it.
    """

    starts: Integers
    widths: Integers
    utilities: Integers
    exact: NDArray[np.bool_]
    families: Integers
    attained: int


class AbstractBoundedCandidates(abc.ABC):
    """The points of one line in stretches with bounds on their utilities, which can be looked into.

    A copy of it, as a recording keeps one, has the exact utilities of all points.
    """

    __slots__ = ()

    weight = 1
    """Of a point, as in `NumericCandidates`."""

    @abc.abstractmethod
    def cover(self) -> Cover:
        """All stretches; always the same ones."""

    @abc.abstractmethod
    def within(self, places: Integers) -> Cells:
        """The exact cells of some stretches, in the order of their points.

        Args:
            places: int64 (k,), k >= 1, rising: stretches of the cover that are not exact.
        """

    def cells(self) -> Cells:
        """The exact cells of all points, in their order; neighbours of one utility are one cell, whatever the cover."""
        cover = self.cover()
        open_ = np.flatnonzero(~cover.exact)
        found = self.within(open_) if open_.size else (np.empty(0, dtype=np.int64),) * 3
        known = (cover.starts[cover.exact], cover.widths[cover.exact], cover.utilities[cover.exact])
        starts, widths, utilities = (np.concatenate(pair) for pair in zip(known, found, strict=True))
        order = np.argsort(starts)
        first = np.append(True, np.diff(utilities[order]) != 0)
        begins = np.flatnonzero(first)
        return starts[order][begins], np.add.reduceat(widths[order], begins), utilities[order][begins]

    def __deepcopy__(self, memo: object) -> "KnownCells":
        return KnownCells(*self.cells())


@final
@dataclass(frozen=True, slots=True, eq=False)
class KnownCells:
    """All cells of bounded candidates, for who compares choices.

    Args:
        starts, widths, utilities: see `Cells`.
    """

    starts: Integers
    widths: Integers
    utilities: Integers
    weight: int = 1

    def cells(self) -> Cells:
        """The cells as in `NumericCandidates`."""
        return self.starts, self.widths, self.utilities


def chosen_point(candidates: AbstractBoundedCandidates, rate: Fraction, source: RandomSource) -> int:
    """The point p with probability proportional to exp(rate * u_p), over all points.

    A stretch is drawn by its bound and a point of it uniformly. The point is kept with probability
    exp(-rate * (bound - u_p)); else the stretch is replaced by its exact cells, and another point is drawn.

    Args:
        candidates: the points.
        rate: nats a step of utility, a dyadic fraction.
        source: random words.
    """
    cover = candidates.cover()
    starts, widths, utilities = cover.starts, cover.widths, cover.utilities
    # Of each stretch its place in the cover, -1 where nothing is left to look into.
    places = np.where(cover.exact, -1, np.arange(starts.size))
    families = np.unique(cover.families[~cover.exact]).size
    tries = 0
    while True:
        drawn = choice.choose(choice.gaps_below_top(utilities), widths, rate, source)
        point = int(starts[drawn]) + int(source.integers(int(widths[drawn]), 1)[0])
        if places[drawn] < 0:
            return point
        bound = int(utilities[drawn])
        inside = places >= 0
        if tries < families:  # else all that is left, which costs no more than the draws before
            inside &= cover.families[places] == cover.families[places[drawn]]
            # Those that have some chance beside the best, or as much as this one had; more with each draw.
            inside &= utilities >= max(min(bound, cover.attained) - _steps(2.0 * 2.0**tries, rate), -(2**63))
        tries += 1
        found = candidates.within(places[inside])
        at = int(np.searchsorted(found[0], point, side="right")) - 1
        gap = bound - int(found[2][at])
        if gap < 0:
            raise AssertionError("no utility is above its bound")
        if choice.coin(gap, rate, source):
            return point
        kept = ~inside
        starts, widths, utilities, places = (
            np.concatenate((old[kept], new))
            for old, new in zip((starts, widths, utilities, places), (*found, np.full(found[0].size, -1)), strict=True)
        )


def _steps(nats: float, rate: Fraction) -> int:
    """Converts nats to whole steps, at most 2**62; only speed depends on them."""
    return math.floor(min(nats / max(float(rate), 2.0**-900), 2.0**62))
