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
    rows, gradients = released[:, 0], released[:, 1:]
    weight = np.maximum((1.0 - pooling) * rows + pooling * rows.mean(), 0.0)
    gradients = gradients - gradients.mean(axis=1, keepdims=True)
    steps = -gradients / (np.multiply.outer(weight, np.broadcast_to(hessians, gradients.shape[1:])) + reg_lambda)
    held = np.clip(steps, -max_delta_step, max_delta_step)
    return np.asarray(held - held.mean(axis=1, keepdims=True))
