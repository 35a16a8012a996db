"""Trees that all classes share: the noise of a leaf's gradients, and its values by a step for the multinomial loss.

Everything here is made of released or public numbers. docs/explanation/several-classes.md#joint-classes.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import LeafClassGradients
from ledgerwood.mechanisms import EllipticalGaussianMechanism


def class_noise(
    leaf: LeafClassGradients, *, noise_multiplier: float, count_share: float
) -> EllipticalGaussianMechanism:
    """Gaussian noise of one tree's leaves, whose numbers of rows and gradients share mu**2.

    Args:
        leaf: the statistic.
        noise_multiplier: of the release under add-remove: mu is 1 / noise_multiplier, for any number of classes.
        count_share: share of mu**2 for the number of rows, in (0, 1).
    """
    count = noise_multiplier / math.sqrt(count_share)
    gradient = noise_multiplier * leaf.radius / math.sqrt(1.0 - count_share)
    return EllipticalGaussianMechanism(stddevs=(count, *[gradient] * leaf.classes))


def class_shares(counts: NDArray[np.float64], stddev: float) -> NDArray[np.float64]:
    """Shares of the classes by released numbers of rows, (K,); none is below what the noise hides.

    Args:
        counts: released, (K,).
        stddev: of their noise, > 0: a smaller count is taken for that many rows.
    """
    held = np.maximum(counts, stddev)
    return np.asarray(held / held.sum())


def share_scores(shares: NDArray[np.float64]) -> tuple[float, ...]:
    """The scores, of mean 0, by which every row has these probabilities: an ensemble's start."""
    logs = np.log(shares)
    return tuple((logs - logs.mean()).tolist())


def share_hessians(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """p (1 - p) of each class, (K,): the diagonal of a row's hessian where the classes have their overall shares.

    At most 1/4, and the mean over rows whose probabilities average to the shares is no larger (p (1 - p) is concave).
    """
    return np.asarray(shares * (1.0 - shares))


def class_values(
    released: NDArray[np.float64],
    *,
    hessians: NDArray[np.float64] | float,
    reg_lambda: float,
    pooling: float = 0.0,
    max_delta_step: float = math.inf,
) -> NDArray[np.float64]:
    """A step for the multinomial loss in each leaf, float64 (n_leaves, K), without a learning rate; of mean 0.

    Gradients of all classes add up to 0, so that their mean is noise, and is taken off; with it goes 1 / K of the
    noise's variance.

    Args:
        released: (n_leaves, 1 + K), numbers of rows and gradients, as `LeafClassGradients` has them.
        hessians: of a row, for each class, (K,), see `share_hessians`; or one number for all: 1/2 is Boehning's bound
            (1992), by which no step goes beyond the minimum of the leaf's quadratic bound.
        reg_lambda: lambda > 0, in units of the hessian.
        pooling: share by which a leaf's number of rows is drawn towards the mean of its tree, in [0, 1].
        max_delta_step: largest absolute value.
    """
    gradients = released[:, 1:] - released[:, 1:].mean(axis=1, keepdims=True)
    steps = -gradients / _curvatures(released, hessians, reg_lambda, pooling)
    held = np.clip(steps, -max_delta_step, max_delta_step)
    return np.asarray(held - held.mean(axis=1, keepdims=True))


def class_value_noise(
    released: NDArray[np.float64],
    *,
    hessians: NDArray[np.float64] | float,
    reg_lambda: float,
    pooling: float = 0.0,
    max_delta_step: float = math.inf,
    stddev: float,
) -> NDArray[np.float64]:
    """The standard deviation of the noise in each of `class_values`, at most, given the rows; (n_leaves, K).

    Of C diag(1/D) C g, with C = I - 11'/K and the same noise in all g: docs/explanation/reading.md#value-noise.

    Args:
        released, hessians, reg_lambda, pooling, max_delta_step: as of `class_values`.
        stddev: of the noise of each gradient.
    """
    inverse = 1.0 / _curvatures(released, hessians, reg_lambda, pooling)
    k = inverse.shape[1]
    mean, square = inverse.mean(axis=1, keepdims=True), (inverse**2).mean(axis=1, keepdims=True)
    apart = mean - inverse
    variance = inverse**2 + (2.0 * inverse * (apart - inverse) + apart**2 - 2.0 * mean * apart + square) / k
    return np.asarray(np.minimum(stddev * np.sqrt(np.maximum(variance, 0.0)), 2.0 * max_delta_step))


def _curvatures(
    released: NDArray[np.float64], hessians: NDArray[np.float64] | float, reg_lambda: float, pooling: float
) -> NDArray[np.float64]:
    """The denominators of the leaves' steps, (n_leaves, K)."""
    rows = released[:, 0]
    weight = np.maximum((1.0 - pooling) * rows + pooling * rows.mean(), 0.0)
    return np.asarray(np.multiply.outer(weight, np.broadcast_to(hessians, released.shape[1] - 1)) + reg_lambda)
