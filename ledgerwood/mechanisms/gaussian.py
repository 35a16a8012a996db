"""Gaussian noise, spherical and elliptical: the exact rounding of a true normal deviate to the statistic's grid.

Why the continuous profile holds: docs/explanation/exact-noise.md#post-processing; norms of the shift sets:
docs/explanation/shift-sets.md#boxes.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.block_shifts import BlockShifts, Shifts
from ledgerwood.mechanisms.exact.deviates import add_noise, require_fit, standard_normal
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.sensitivity import BoxShifts, quotient_down
from ledgerwood.recording.points import passes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMechanism:
    """Gaussian noise with one standard deviation for all columns, which share one unit.

    Args:
        stddev: > 0, finite, in the statistic's unit; at most 2**55 steps of the grid it is used on.

    Raises:
        InvalidParameter: a stddev that is not positive and finite.
    """

    stddev: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stddev", _validate.positive("stddev", self.stddev, "statistic"))

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> GaussianEvent:
        """GaussianEvent of multiplier stddev / (L2 norm of the shift set), rounded down."""
        norm = sensitivity.l2((1.0,) * (sensitivity.columns or 1))
        return GaussianEvent(noise_multiplier=quotient_down(self.stddev, norm), adjacency=adjacency)

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid on which `randomise` cannot add this noise; errors as there."""
        require_fit((self.stddev,) * grid.columns, grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k) plus an exact rounding of N(0, stddev**2) to `grid`, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a stddev above 2**55 grid steps.
        """
        return add_noise(statistic, grid, (self.stddev,) * grid.columns, standard_normal(), source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EllipticalGaussianMechanism:
    """Gaussian noise with one standard deviation per column: covariance diag(stddevs**2).

    Args:
        stddevs: k numbers > 0, finite, in the columns' units; each at most 2**55 steps of its column's grid.

    Raises:
        InvalidParameter: no column, or a stddev that is not positive and finite.
    """

    stddevs: tuple[float, ...]

    def __post_init__(self) -> None:
        given = _validate.several("stddevs", self.stddevs, "columns")
        stddevs = tuple(_validate.positive("stddevs", s, "statistic") for s in given)
        object.__setattr__(self, "stddevs", stddevs)

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> EllipticalGaussianEvent | GaussianEvent:
        """EllipticalGaussianEvent for a single box, or one of blocks; else GaussianEvent of multiplier 1 / l2(stddevs).

        The multiplier is rounded down. A block counts as one column of the block's least noise.
        """
        if isinstance(sensitivity, BoxShifts) and len(sensitivity.l2_boxes) == 1:
            sensitivity.l2(self.stddevs)  # refuses stddevs that do not fit the box
            return EllipticalGaussianEvent(
                sensitivities=sensitivity.l2_boxes[0], stddevs=self.stddevs, adjacency=adjacency
            )
        if isinstance(sensitivity, BlockShifts) and len(sensitivity.norms.l2_boxes) == 1:
            return EllipticalGaussianEvent(
                sensitivities=sensitivity.norms.l2_boxes[0],
                stddevs=sensitivity.least(self.stddevs),
                adjacency=adjacency,
            )
        multiplier = quotient_down(1.0, sensitivity.l2(self.stddevs))
        return GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid on which `randomise` cannot add this noise; errors as there."""
        require_fit(self.stddevs, grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k) plus an exact rounding of N(0, stddevs_i**2) to column i's grid, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a stddev above 2**55 grid steps.
        """
        return add_noise(statistic, grid, self.stddevs, standard_normal(), source)
