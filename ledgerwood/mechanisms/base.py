"""The base class of mechanisms: an event and a sampler that use the same fields."""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.grid import Grid

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
