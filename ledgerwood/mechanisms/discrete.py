"""Integer noise on whole numbers, exact: discrete Laplace (the geometric mechanism), discrete Gaussian, Skellam."""

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    SkellamEvent,
    SkellamVectorEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.errors import UnsupportedEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.block_shifts import Shifts
from ledgerwood.mechanisms.exact import integer_laws
from ledgerwood.mechanisms.exact.deviates import geometric_noise, standard_laplace
from ledgerwood.mechanisms.exact.integer_laws import Inversion
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.sensitivity import BoxShifts
from ledgerwood.recording.points import passes

LARGEST_GAUSSIAN_SCALE = 1e5
LARGEST_LAPLACE_SCALE = 2.0**55
LARGEST_SKELLAM_VARIANCE = 1e9
_LEAST_SKELLAM_VARIANCE = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceMechanism:
    """Independent integer noise z of probability proportional to e^{-|z| / scale} on every whole number.

    Source: Ghosh, Roughgarden and Sundararajan 2009; sampler: docs/explanation/exact-noise.md#discrete-laplace-draws.

    Args:
        scale: > 0, at most 2**55, in the statistic's units, which are whole numbers.

    Raises:
        InvalidParameter: a scale outside its bound.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale, LARGEST_LAPLACE_SCALE))

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> DiscreteLaplaceEvent | PureEvent:
        """DiscreteLaplaceEvent for one number, else PureEvent of the L1 norm / scale: shift-sets.md#integer-shifts.

        Raises:
            InvalidParameter: a ball, which has no L1 norm without a number of columns.
        """
        whole = _one_number(sensitivity)
        if whole is not None:
            return DiscreteLaplaceEvent(scale=self.scale, sensitivity=whole, adjacency=adjacency)
        if sensitivity.columns is None:
            raise _validate.fail("sensitivity", sensitivity, "BoxShifts: a ball has no L1 norm here", "statistic")
        norm = sensitivity.l1((1.0,) * sensitivity.columns)
        return PureEvent(epsilon=float_up(Fraction(norm) / Fraction(self.scale)), adjacency=adjacency)

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid whose steps are not 1; errors as in `randomise`."""
        _require_whole(grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k), whole numbers, plus noise, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a grid whose steps are not 1.
        """
        return _added(statistic, grid, lambda n: geometric_noise(n, self.scale, standard_laplace(), source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianMechanism:
    """Independent integer noise z of probability proportional to e^{-z^2 / (2 scale^2)} on every whole number.

    Source: Canonne, Kamath and Steinke 2020; sampler: docs/explanation/exact-noise.md#integer-inversion.

    Args:
        scale: the distribution's sigma, in [.01, 1e5], in the statistic's units, which are whole numbers. For a larger
            sigma, `GaussianMechanism` on a grid of step 1 has the same privacy cost.

    Raises:
        InvalidParameter: a scale outside its bound.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale, LARGEST_GAUSSIAN_SCALE))
        if self.scale < 1e-2:
            raise _validate.fail("scale", self.scale, ">= 0.01", "statistic")

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> DiscreteGaussianEvent | ZeroConcentratedEvent:
        """DiscreteGaussianEvent for one number, else rho = L2 norm^2 / (2 scale^2): shift-sets.md#integer-shifts.

        Source of rho: Canonne, Kamath and Steinke 2020, Theorem 14.

        Raises:
            UnsupportedEvent: one number whose noise spreads over more integers than the event sums.
        """
        whole = _one_number(sensitivity)
        if whole is not None:
            return DiscreteGaussianEvent(scale=self.scale, sensitivity=whole, adjacency=adjacency)
        norm = sensitivity.l2((1.0,) * (sensitivity.columns or 1))
        return ZeroConcentratedEvent(
            rho=float_up(Fraction(norm) ** 2 / (2 * Fraction(self.scale) ** 2)), adjacency=adjacency
        )

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid whose steps are not 1; errors as in `randomise`."""
        _require_whole(grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k), whole numbers, plus noise, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a grid whose steps are not 1.
        """
        return _added(statistic, grid, lambda n: _gaussian(self.scale).draw(n, source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamMechanism:
    """Independent Skellam noise on every whole number: the difference of two Poisson variables of mean variance / 2.

    Shares of it may be added by several parties. Source: Agarwal, Kairouz and Liu 2021; sampler:
    docs/explanation/exact-noise.md#integer-inversion.

    Args:
        variance: in [1e-6, 1e9], in squared units of the statistic, which are whole numbers.

    Raises:
        InvalidParameter: a variance outside its bounds.
    """

    variance: float

    def __post_init__(self) -> None:
        variance = _validate.positive("variance", self.variance, "statistic squared")
        if not _LEAST_SKELLAM_VARIANCE <= variance <= LARGEST_SKELLAM_VARIANCE:
            raise _validate.fail("variance", self.variance, "in [1e-6, 1e9]", "statistic squared")
        object.__setattr__(self, "variance", variance)

    def event(self, sensitivity: Shifts, adjacency: Adjacency) -> SkellamEvent | SkellamVectorEvent:
        """SkellamEvent for one number, else SkellamVectorEvent of the L2 norm: shift-sets.md#integer-shifts.

        One number whose noise spreads over more integers than `SkellamEvent` sums has the vector's event, whose bound
        on Renyi divergences holds for any number of columns.
        """
        whole = _one_number(sensitivity)
        if whole is not None:
            with contextlib.suppress(UnsupportedEvent):
                return SkellamEvent(variance=self.variance, sensitivity=whole, adjacency=adjacency)
        norm = max(sensitivity.l2((1.0,) * (sensitivity.columns or 1)), 1.0)
        return SkellamVectorEvent(variance=self.variance, l2_sensitivity=norm, adjacency=adjacency)

    def share(self, clients: int) -> "SkellamMechanism":
        """The noise that one of several clients adds, so that the shares of `clients` of them have this variance.

        The sum of that many independent shares is Skellam noise of at least this variance, exactly: the share's
        variance is rounded up. More shares are more noise. Proof: docs/explanation/federated.md#noise-shares.

        Args:
            clients: n >= 1, how many honest clients whose noise arrives must carry this noise together.

        Raises:
            InvalidParameter: a number of clients that is no whole number >= 1, or so many that a share's variance is
                below 1e-6.
        """
        n = _validate.count("clients", clients, "clients")
        most = Fraction(self.variance) / Fraction(_LEAST_SKELLAM_VARIANCE)
        if n > most:
            raise _validate.fail(
                "clients", n, f"at most {math.floor(most)}: a share's variance is at least 1e-6", "clients"
            )
        return SkellamMechanism(variance=float_up(Fraction(self.variance) / n))

    def require_fit(self, grid: Grid) -> None:
        """Refuse a grid whose steps are not 1; errors as in `randomise`."""
        _require_whole(grid)

    @passes("noise")
    def randomise(self, statistic: NDArray[np.int64], grid: Grid, source: RandomSource) -> NDArray[np.int64]:
        """statistic int64 (..., k), whole numbers, plus noise, modulo 2**64.

        Raises:
            InvalidParameter: a shape that does not fit the grid, or a grid whose steps are not 1.
        """
        law = _poisson(0.5 * self.variance)
        return _added(statistic, grid, lambda n: law.draw(n, source) - law.draw(n, source))


@functools.lru_cache(maxsize=32)
def _gaussian(scale: float) -> Inversion:
    return Inversion(functools.partial(integer_laws.discrete_gaussian, scale))


@functools.lru_cache(maxsize=32)
def _poisson(mean: float) -> Inversion:
    return Inversion(functools.partial(integer_laws.poisson, mean))


def _added(statistic: NDArray[np.int64], grid: Grid, draw: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """The statistic plus as many integers as it has, once its grid is found to be one of whole numbers."""
    grid.require(statistic, "statistic")
    _require_whole(grid)
    return statistic + draw(statistic.size).reshape(statistic.shape)


def _one_number(sensitivity: Shifts) -> int | None:
    """The largest whole shift, where one number moves and no other."""
    if not isinstance(sensitivity, BoxShifts) or sensitivity.columns != 1:
        return None
    if sensitivity.l1_boxes != sensitivity.l2_boxes:  # a row that moves: two numbers change
        return None
    return max(1, math.floor(max(box[0] for box in sensitivity.boxes)))


def _scale(scale: float, most: float) -> float:
    value = _validate.positive("scale", scale, "statistic")
    if value > most:
        raise _validate.fail("scale", scale, f"<= {most!r}", "statistic")
    return value


def _require_whole(grid: Grid) -> None:
    if any(grid.exponents):
        raise _validate.fail("grid", grid.steps, "steps of 1: integer noise is for whole numbers", "statistic")
