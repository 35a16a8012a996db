"""Correlated Gaussian noise: matrix mechanisms and tree aggregation, each as one Gaussian event.

A strategy C turns the steps' contributions G (n_steps, d) into C G, to which noise N(0, s^2) is added; everything that
is computed from it afterwards (C^{-1} applied, prefix sums) is post-processing. One row moves C G by C D, and the whole
release is the Gaussian pair of the largest norm of C D. docs/explanation/events.md#matrix.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent, noise_multiplier_in_range
from ledgerwood.errors import InvalidParameter

_ULP = 2.0**-52
_MOST_STEPS = 4096


def matrix_gaussian(
    strategy: ArrayLike,
    *,
    noise_multiplier: float,
    participations: int = 1,
    separation: int = 1,
    adjacency: Adjacency,
) -> GaussianEvent:
    """Returns the event of a whole matrix mechanism.

    A row contributes in at most `participations` steps, any two of them at least `separation` steps apart. With one
    participation the sensitivity is the largest column norm of the strategy, exactly; with more it is bounded by
    the absolute values of the Gram matrix, which is exact where no entry is negative and the bound's two maxima
    meet. Steps may be chosen adaptively if the strategy is lower triangular (Denisov et al. 2022).

    Args:
        strategy: C, shape (n_outputs, n_steps), finite; at most 4096 steps.
        noise_multiplier: standard deviation of the noise / largest L2 change of one step's contribution under
            `adjacency` (a clipped contribution of norm c moves by c, and by 2 c under replace-one).
        participations: most steps that one row is in, >= 1; public.
        separation: least distance of two steps that one row is in, >= 1; public.
        adjacency: the relation; a row is added, removed or replaced in all of its steps at once.

    Raises:
        InvalidParameter: a value outside its bound, or a strategy of zeros.
    """
    matrix = _strategy(strategy)
    steps = matrix.shape[1]
    apart = _validate.count("separation", separation, "steps")
    most = min(_validate.count("participations", participations, "steps"), -(-steps // apart))
    multiplier = noise_multiplier_in_range("noise_multiplier", noise_multiplier)
    if most == 1:
        square = max(sum((Fraction(x) ** 2 for x in column.tolist() if x), Fraction()) for column in matrix.T)
    else:
        square = Fraction(_pattern_bound(matrix, most, apart))
    return _event(multiplier, square, adjacency)


def tree_gaussian(*, leaves: int, noise_multiplier: float, adjacency: Adjacency) -> GaussianEvent:
    """Returns the event of tree aggregation over `leaves` steps: each full dyadic block of steps is released once.

    A step is in one block of each size 1, 2, 4, ... up to `leaves`, and the first step is in all: the squared
    sensitivity is the number of these sizes, ceil(log2(leaves + 1)). docs/explanation/events.md#tree.

    Args:
        leaves: number of steps, >= 1, of which a row is in one; public.
        noise_multiplier: standard deviation of each block's noise / largest L2 change of one step under `adjacency`.
        adjacency: the relation.

    Raises:
        InvalidParameter: a value outside its bound.
    """
    levels = _validate.count("leaves", leaves, "steps").bit_length()
    return _event(noise_multiplier_in_range("noise_multiplier", noise_multiplier), Fraction(levels), adjacency)


def _event(multiplier: float, square: Fraction, adjacency: Adjacency) -> GaussianEvent:
    if square == 0:
        raise InvalidParameter("strategy must have an entry that is not 0: else nothing is released (unit: number)")
    effective = Fraction(multiplier) / Fraction(_directed.root_up(square))
    return GaussianEvent(noise_multiplier=_directed.float_down(effective), adjacency=adjacency)


def _strategy(value: ArrayLike) -> FloatArray:
    matrix = np.asarray(value)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "iuf":
        raise InvalidParameter(
            f"strategy has shape {matrix.shape} and dtype {matrix.dtype}; it must be a matrix of numbers, "
            "one column a step"
        )
    if matrix.shape[1] > _MOST_STEPS:
        raise InvalidParameter(f"strategy has {matrix.shape[1]} columns; at most {_MOST_STEPS} (unit: steps)")
    matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InvalidParameter("strategy must be finite (unit: per unit of a step's contribution)")
    return matrix


def _pattern_bound(matrix: FloatArray, most: int, separation: int) -> float:
    """The largest sum over a pattern of steps i of w_i, w_i the largest sum of |G_ij| over a pattern that holds i."""
    scale = float(np.abs(matrix).max())
    if scale == 0.0:
        return 0.0
    scaled = matrix / scale
    rows = matrix.shape[0]
    gram = np.abs(scaled.T @ scaled)
    # each product's rounding, by the norms of its columns; and that of the division above
    norms = np.sqrt(np.sum(scaled * scaled, axis=0))
    gram += 4.0 * (rows + 8) * _ULP * np.outer(norms, norms)
    weights = np.array([_best_pattern_with(gram[i], i, most, separation) for i in range(gram.shape[0])])
    best = float(_best_pattern(weights, most, separation)[most, -1])
    # sums of positive numbers: each addition rounds once
    bound = Fraction(best) * Fraction(scale) ** 2 * (1 + Fraction(8 * (gram.shape[0] + 8)) * Fraction(_ULP))
    return _directed.float_up(bound)


def _best_pattern_with(weights: FloatArray, step: int, most: int, separation: int) -> float:
    """The largest sum of weights over a pattern of at most `most` steps that holds `step`."""
    left = _best_pattern(weights[: max(step - separation + 1, 0)], most - 1, separation)[:, -1]
    right = _best_pattern(weights[step + separation :], most - 1, separation)[:, -1]
    return float(weights[step] + max(left[k] + right[most - 1 - k] for k in range(most)))


def _best_pattern(weights: FloatArray, most: int, separation: int) -> FloatArray:
    """best[k, i]: the largest sum of weights >= 0 over at most k of the first i steps, `separation` apart."""
    steps = weights.size
    best = np.zeros((most + 1, steps + 1))
    for k in range(1, most + 1):
        earlier = np.zeros(steps)
        if steps > separation:
            earlier[separation:] = best[k - 1, 1 : steps - separation + 1]
        best[k, 1:] = np.maximum.accumulate(weights + earlier)
    return best
