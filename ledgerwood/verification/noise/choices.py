"""The rank of a private choice in its distribution, from the best utility on: uniform if the choice is correct.

None of the samplers' arithmetic is used again. docs/explanation/noise-law.md#noise-law-choices.
"""

from typing import Any

import numpy as np

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import ExponentialMechanism, Grid, GridlessMechanism, PermuteAndFlipMechanism

_TIMES, _WEIGHTS = (0.5 * array for array in np.polynomial.legendre.leggauss(192) + np.array([[1.0], [0.0]]))
"""Of the quadrature over arrival times: exact for 384 candidates, and within 1e-12 for any number of them."""


def choice_uniform(
    mechanism: object, given: Any, grid: Grid, counts: Any, chosen: Any, coins: np.random.Generator
) -> float:
    """Pr(better) + V Pr(the chosen one), V uniform in (0, 1]; of equal utilities the first one is better.

    Args:
        mechanism: the exponential one, grid-less or not, or permute-and-flip.
        given: utilities int64 (n,); of the grid-less one its candidates.
        grid: of the utilities.
        counts: of points a candidate, or None for 1 each.
        chosen: what came out.
        coins: draws V.

    Raises:
        InvalidParameter: a mechanism whose distribution is not known here.
    """
    step = grid.steps[0]
    match mechanism:
        case ExponentialMechanism(rate=rate):
            utilities, place = given, int(chosen)
            probabilities = _exponential(given, rate * step, counts)
        case PermuteAndFlipMechanism(rate=rate):
            utilities, place = given, int(chosen)
            probabilities = _permute_and_flip(given, rate * step)
        case GridlessMechanism(rate=rate):
            cells = [feature.cells() for feature in given]
            utilities = np.concatenate([cell[2] for cell in cells])
            widths = [cell[1] * feature.weight for feature, cell in zip(given, cells, strict=True)]
            probabilities = _exponential(utilities, rate * step, np.concatenate(widths))
            before = sum(len(cell[0]) for cell in cells[: chosen.feature])
            place = before + int(np.searchsorted(cells[chosen.feature][0], chosen.point, side="right")) - 1
        case _:
            raise InvalidParameter(f"mechanism={mechanism!r} is a choice whose distribution is not known here")
    better = (utilities > utilities[place]) | ((utilities == utilities[place]) & (np.arange(len(utilities)) < place))
    tail = float(probabilities[better].sum()) + (1.0 - coins.random()) * float(probabilities[place])
    return min(max(tail, 1e-300), 1.0)


def _gaps(utilities: Any) -> FloatArray:
    gaps: FloatArray = (utilities.max().view(np.uint64) - utilities.view(np.uint64)).astype(np.float64)
    return gaps


def _exponential(utilities: Any, rate: float, counts: Any) -> FloatArray:
    weights = np.exp(-rate * _gaps(utilities)) * (1.0 if counts is None else counts)
    return np.asarray(weights / weights.sum())


def _permute_and_flip(utilities: Any, rate: float) -> FloatArray:
    """Give each candidate a uniform arrival time: i is taken at t if no other one's coin fell before.

    So p_i times the integral over t in (0, 1) of the product of 1 - p_j t over all others: a polynomial.
    """
    coins = np.exp(-rate * _gaps(utilities))
    left = np.log1p(-np.outer(coins, _TIMES))  # of a coin that is 1 too: no node is at the end
    others = np.exp(left.sum(axis=0) - left)
    found = coins * (others @ _WEIGHTS)
    return np.asarray(found / found.sum())
