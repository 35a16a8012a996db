"""Private choice of one of n candidates by their utilities: exponential mechanism, permute-and-flip, noisy maximum.

Each draws from its distribution exactly, and its event uses the same rate as its sampler.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.exact import choice
from ledgerwood.mechanisms.exact.deviates import standard_laplace, unbounded_noise
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes

Utilities = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityRange:
    """The range of a utility vector's change: sup of max_i d_i - min_i d_i over the changes d between neighbours.

    For utilities that each change by at most s it is at most 2 s; where all of them move in one direction (a count
    under add-remove, a monotone score), at most s.

    Args:
        range: > 0, in the utility's unit.

    Raises:
        InvalidParameter: a range that is not positive and finite.
    """

    range: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", _validate.positive("range", self.range, "utility"))


class Selection(Protocol):
    """A mechanism that releases the index of a candidate."""

    def event(self, sensitivity: UtilityRange, adjacency: Adjacency) -> BoundedRangeEvent | PureEvent:
        """The event of one choice, from the fields that the sampler uses; rounded up."""
        ...

    def select(self, utilities: Utilities, grid: Grid, source: RandomSource) -> int:
        """The index of the chosen candidate; utilities int64 (n,) in steps of the one-column `grid`, n >= 1.

        Raises:
            InvalidParameter: no candidate, not an int64 vector, a grid of several columns. Never because of a value.
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """Candidate i with probability proportional to count_i * exp(rate * u_i).

    Source: McSherry and Talwar 2007; that it is bounded-range: Dong, Durfee and Rogers 2020, Proposition 2;
    docs/explanation/selection.md#exponential-choice.

    Args:
        rate: in [1e-200, 1e200], nats per unit of utility.

    Raises:
        InvalidParameter: a rate outside its bounds.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _rate("rate", self.rate))

    def event(self, sensitivity: UtilityRange, adjacency: Adjacency) -> BoundedRangeEvent:
        """BoundedRangeEvent of rate * range."""
        return BoundedRangeEvent(epsilon=_product_up(self.rate, sensitivity.range), adjacency=adjacency)

    @passes("choice")
    def select(self, utilities: Utilities, grid: Grid, source: RandomSource, *, counts: Utilities | None = None) -> int:
        """Select as `Selection.select`.

        Args:
            utilities: int64 (n,).
            grid: one column.
            source: random words.
            counts: int64 (n,) in [0, 2**40), at least one positive: how many points of a public candidate set have
                each utility (an interval of a public grid); None for 1 each. A candidate of count 0 is never chosen.

        Raises:
            InvalidParameter: also for counts that are not such an array.
        """
        _require(utilities, grid)
        if counts is None:
            counts = np.ones(utilities.size, dtype=np.int64)
        require_vector("counts", counts, "points")
        if counts.shape != utilities.shape or not ((counts >= 0) & (counts < MOST_POINTS)).all() or not counts.any():
            raise _validate.fail("counts", counts.shape, "int64, one in [0, 2**40) a candidate, one > 0", "points")
        present = np.flatnonzero(counts)
        gaps = choice.gaps_below_top(utilities[present])
        return int(present[choice.choose(gaps, counts[present], per_step(self.rate, grid), source)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlipMechanism:
    """Candidates in random order; each is taken with probability exp(-rate * (its distance from the largest utility)).

    All coins are tossed first, and one of the candidates whose coin came up is drawn: that is the same distribution.
    Never worse in expected utility than the exponential mechanism of the same pure epsilon, and not bounded-range:
    its event is pure. Source: McKenna and Sheldon 2020, Theorem 1; docs/explanation/selection.md#permute-and-flip.

    Args:
        rate: in [1e-200, 1e200], nats per unit of utility.

    Raises:
        InvalidParameter: a rate outside its bounds.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _rate("rate", self.rate))

    def event(self, sensitivity: UtilityRange, adjacency: Adjacency) -> PureEvent:
        """PureEvent of rate * range."""
        return PureEvent(epsilon=_product_up(self.rate, sensitivity.range), adjacency=adjacency)

    @passes("choice")
    def select(self, utilities: Utilities, grid: Grid, source: RandomSource) -> int:
        """Select as `Selection.select`."""
        _require(utilities, grid)
        taken = choice.heads(choice.gaps_below_top(utilities), per_step(self.rate, grid), source)
        return int(taken[source.integers(taken.size, 1)[0]])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMaxMechanism:
    """The candidate whose utility plus exact Laplace noise is largest; of equal ones the first.

    Source: Dwork and Roth 2014 (report noisy max); proof in docs/explanation/selection.md#noisy-max.

    Args:
        scale: > 0, finite, of the noise, in the utility's unit; at most 2**55 steps of the grid.

    Raises:
        InvalidParameter: a scale that is not positive and finite.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive("scale", self.scale, "utility"))

    def event(self, sensitivity: UtilityRange, adjacency: Adjacency) -> PureEvent:
        """PureEvent of range / scale."""
        return PureEvent(
            epsilon=float_up(Fraction(sensitivity.range) / Fraction(self.scale), "epsilon", "nats"), adjacency=adjacency
        )

    @passes("choice")
    def select(self, utilities: Utilities, grid: Grid, source: RandomSource) -> int:
        """Select as `Selection.select`; a scale above 2**55 grid steps raises too."""
        _require(utilities, grid)
        law = standard_laplace()
        sums = [u + unbounded_noise(self.scale, grid, law, source) for u in utilities.tolist()]
        return sums.index(max(sums))


MOST_POINTS = 1 << 40
"""Of a public set of candidates, their weights counted; whatever has points has fewer."""
_MOST_CANDIDATES = 1 << 24


def _rate(name: str, value: float) -> float:
    rate = _validate.positive(name, value, "nats per unit of utility")
    if not 1e-200 <= rate <= 1e200:
        raise _validate.fail(name, value, "in [1e-200, 1e200]", "nats per unit of utility")
    return rate


def _product_up(rate: float, range_: float) -> float:
    return float_up(Fraction(rate) * Fraction(range_), "epsilon", "nats")


def per_step(rate: float, grid: Grid) -> Fraction:
    """Nats a grid step, exactly.

    Raises:
        InvalidParameter: a rate that no float64 of full precision holds.
    """
    exact = Fraction(rate) * Fraction(2) ** grid.exponents[0]
    if not 2.0**-1000 <= exact <= 2.0**1000:
        raise _validate.fail("rate", rate, "between 2**-1000 and 2**1000 nats a grid step", "nats per unit of utility")
    return exact


def require_vector(name: str, values: object, unit: str) -> None:
    """Looks at type and shape only."""
    if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.ndim != 1:
        kind = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise _validate.fail(name, kind, "an int64 vector", unit)


def require_one_column(grid: Grid) -> None:
    """Refuse a grid of several columns."""
    if grid.columns != 1:
        raise _validate.fail("grid", grid, "one column", "columns")


def _require(utilities: Utilities, grid: Grid) -> None:
    """Looks at types and shapes only."""
    require_one_column(grid)
    require_vector("utilities", utilities, "grid steps")
    if not 1 <= utilities.size <= _MOST_CANDIDATES:
        raise _validate.fail("candidates", utilities.size, "in 1..2**24", "candidates")
