"""The base class of mechanisms, an event and a sampler that use the same fields, and the grid of their releases.

The grid is fixed point: public powers of two between real statistics and int64.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.mechanisms.exact.randomness import RandomSource

_MIN_EXPONENT = -1022  # the least normal float64
_MAX_EXPONENT = 960  # 2**63 steps are still finite


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Column i of a statistic counts in steps of 2**exponents[i], in that column's unit. Public, never read off data.

    Args:
        exponents: k whole numbers in [-1022, 960].

    Raises:
        InvalidParameter: no column, or an exponent that is not a whole number in range.
    """

    exponents: tuple[int, ...]

    def __post_init__(self) -> None:
        given = _validate.several("exponents", self.exponents, "columns")
        exponents = tuple(_validate.count("exponents", e, "powers of two", minimum=_MIN_EXPONENT) for e in given)
        for exponent in exponents:
            if exponent > _MAX_EXPONENT:
                raise _validate.fail("exponents", exponent, f"<= {_MAX_EXPONENT}", "powers of two")
        object.__setattr__(self, "exponents", exponents)

    @property
    def columns(self) -> int:
        """The number of columns k."""
        return len(self.exponents)

    @property
    def steps(self) -> tuple[float, ...]:
        """The step of each column, an exact power of two, in the column's unit."""
        return tuple(2.0**exponent for exponent in self.exponents)

    def to_real(self, integers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Grid integers (..., k) as float64 (..., k) in the columns' units; beyond 2**53 steps, rounded."""
        self.require(integers, "integers")
        real: NDArray[np.float64] = integers * np.array(self.steps)
        return real

    def require(self, integers: object, name: str) -> None:
        """Refuse what is not an int64 array (..., k); looks at its type and shape only."""
        if not isinstance(integers, np.ndarray) or integers.dtype != np.int64:
            kind = integers.dtype if isinstance(integers, np.ndarray) else type(integers).__name__
            raise _validate.fail(f"{name} type", str(kind), "an int64 array", "grid steps")
        if integers.ndim == 0 or integers.shape[-1] != self.columns:
            raise _validate.fail(f"{name} shape", integers.shape, f"(..., {self.columns})", "columns")


S_contra = TypeVar("S_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Mechanism(Protocol[S_contra, R_co]):
    """A way to add noise, in real units; frozen and public."""

    def event(self, sensitivity: S_contra, adjacency: Adjacency) -> Event:
        """The event of one release, from the fields that the sampler uses; multipliers are rounded down."""
        ...

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid on which `randomise` cannot add this noise, before any budget is spent."""
        ...

    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> R_co:
        """The release: `statistic`, int64 (..., k) in steps of `grid`, with noise from `source`."""
        ...
