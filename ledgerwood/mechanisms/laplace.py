"""Laplace noise: the exact rounding of a true Laplace deviate to the statistic's grid.

Why the continuous profile holds: docs/explanation/exact-noise.md#post-processing; why the L1 norm is enough in several
columns: docs/explanation/shift-sets.md#laplace-l1.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.block_shifts import Shifts
from ledgerwood.mechanisms.exact.deviates import add_noise, require_fit, standard_laplace
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.sensitivity import quotient_down
from ledgerwood.recording.points import passes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMechanism:
    """Laplace noise with one scale b per column: independent, of density exp(-|x| / b) / (2 b).

    Args:
        scales: k numbers > 0, finite, in the columns' units; each at most 2**55 steps of its column's grid.
        noise_multiplier: the multiplier (scale / L1 sensitivity) that the event states, > 0 and at most the one that
            the scales give; None for that one. Releases with different sensitivities then have equal events, which
            rounding would otherwise make slightly different.

    Raises:
        InvalidParameter: no column, or a number that is not positive and finite.
    """

    scales: tuple[float, ...]
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        given = _validate.several("scales", self.scales, "columns")
        scales = tuple(_validate.positive("scales", s, "statistic") for s in given)
        object.__setattr__(self, "scales", scales)
        if self.noise_multiplier is not None:
            multiplier = _validate.positive("noise_multiplier", self.noise_multiplier, "scale / L1 sensitivity")
            object.__setattr__(self, "noise_multiplier", multiplier)

    @classmethod
    def of_multiplier(
        cls, multiplier: float, sensitivity: Shifts, *, proportions: tuple[float, ...]
    ) -> "LaplaceMechanism":
        """Returns noise with the stated `multiplier` for this sensitivity, with scales in these proportions.

        Args:
            multiplier: > 0, scale over L1 sensitivity.
            sensitivity: the sensitivity of the statistic.
            proportions: one number > 0 per column, in the columns' units.
        """
        # The last factor outweighs the two roundings of `event`.
        once = Fraction(_validate.positive("multiplier", multiplier, "scale / L1 sensitivity"))
        once *= Fraction(sensitivity.l1(proportions)) * (1 + Fraction(1, 2**50))
        scales = tuple(float_up(once * Fraction(p), "scale", "statistic") for p in proportions)
        return cls(scales=scales, noise_multiplier=multiplier)

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> LaplaceEvent:
        """LaplaceEvent of multiplier 1 / l1(scales), rounded down, or of the stated one, which costs no less.

        Raises:
            InvalidParameter: the stated multiplier is more than the scales give.
        """
        multiplier = quotient_down(1.0, sensitivity.l1(self.scales))
        if self.noise_multiplier is not None:
            if self.noise_multiplier > multiplier:
                bound = f"at most {multiplier!r}, which the scales {self.scales} give"
                raise _validate.fail("noise_multiplier", self.noise_multiplier, bound, "scale / L1 sensitivity")
            multiplier = self.noise_multiplier
        return LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid on which `randomise` cannot add this noise; errors as there."""
        require_fit(self.scales, grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k) plus an exact rounding of Laplace(scales_i) to column i's grid, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a scale above 2**55 grid steps.
        """
        return add_noise(statistic, grid, self.scales, standard_laplace(), source)
