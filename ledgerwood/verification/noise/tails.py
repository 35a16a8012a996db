"""Tail probabilities of noise under the distribution that its mechanism states: uniform if the noise is right.

None of the samplers' arithmetic is used again. docs/explanation/noise-law.md#noise-law.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    SkellamMechanism,
)

Survival = Callable[[FloatArray], FloatArray]
"""Pr(|X| >= m) of whole m >= 1, X in grid steps."""
_LEAST = 1e-300


def tails_of(mechanism: object, steps: NDArray[np.int64], grid: Grid, coins: np.random.Generator) -> FloatArray:
    """Pr(|X| > m) + V Pr(|X| = m) of each m = |steps|, V uniform in (0, 1]: uniform in (0, 1] if the noise is right.

    Args:
        mechanism: additive noise.
        steps: the noise, int64 (n, k), in steps of the grid.
        grid: the grid of k columns.
        coins: draws V.

    Raises:
        InvalidParameter: noise whose distribution is not known here.
    """
    sizes = np.abs(steps.astype(np.float64))
    tails = np.empty(steps.shape)
    for column, survival in enumerate(_survivals(mechanism, grid)):
        size = sizes[:, column]
        inner = np.where(size > 0.0, survival(np.maximum(size, 1.0)), 1.0)
        outer = survival(size + 1.0)
        tails[:, column] = outer + (1.0 - coins.random(len(size))) * (inner - outer)
    return np.clip(tails, _LEAST, 1.0)


def _survivals(mechanism: object, grid: Grid) -> list[Survival]:
    """One a column."""
    match mechanism:
        case GaussianMechanism(stddev=stddev):
            return [functools.partial(_normal, step / stddev) for step in grid.steps]
        case EllipticalGaussianMechanism(stddevs=stddevs):
            return [functools.partial(_normal, s / d) for s, d in zip(grid.steps, stddevs, strict=True)]
        case LaplaceMechanism(scales=scales):
            return [functools.partial(_laplace, step / scale) for step, scale in zip(grid.steps, scales, strict=True)]
        case DiscreteLaplaceMechanism(scale=scale):
            return [functools.partial(_geometric, scale)] * grid.columns
        case DiscreteGaussianMechanism(scale=scale):
            return [functools.partial(_looked_up, _discrete_gaussian(scale))] * grid.columns
        case SkellamMechanism(variance=variance):
            return [functools.partial(_looked_up, _skellam(variance))] * grid.columns
    raise InvalidParameter(f"mechanism={mechanism!r} is noise whose distribution is not known here")


def _normal(step: float, m: FloatArray) -> FloatArray:
    """A normal deviate, rounded to the nearest step: m or more where it is above m - 1/2."""
    return np.asarray(special.erfc((m - 0.5) * (step / math.sqrt(2.0))))


def _laplace(step: float, m: FloatArray) -> FloatArray:
    return np.exp(-(m - 0.5) * step)


def _geometric(scale: float, m: FloatArray) -> FloatArray:
    return 2.0 * np.exp(-m / scale) / (1.0 + math.exp(-1.0 / scale))


def _looked_up(table: FloatArray, m: FloatArray) -> FloatArray:
    places = np.minimum(m, len(table) - 1.0).astype(np.int64)
    return table[places]


@functools.lru_cache(maxsize=8)
def _discrete_gaussian(scale: float) -> FloatArray:
    k = np.arange(math.ceil(40.0 * scale) + 3, dtype=np.float64)
    return _two_sided(np.exp(-(k * k) / (2.0 * scale * scale)))


@functools.lru_cache(maxsize=8)
def _skellam(variance: float) -> FloatArray:
    """e^-v I_k(v): scaled Bessel functions."""
    reach = math.ceil(14.0 * math.sqrt(variance)) + 60
    return _two_sided(np.asarray(special.ive(np.arange(reach, dtype=np.float64), variance), dtype=np.float64))


def _two_sided(weights: FloatArray) -> FloatArray:
    """Pr(|X| >= m), m = 0, 1, ..., and 0 beyond, from the weights of 0, 1, ... on either side."""
    upper = np.cumsum(weights[::-1])[::-1]
    total = weights[0] + 2.0 * upper[1]
    table = 2.0 * upper / total
    table[0] = 1.0
    return np.append(table, 0.0)
