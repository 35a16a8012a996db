"""The value of a leaf and the gain of a split for a constant hessian of 1, as both gain-based systems print them."""

import numpy as np

from ledgerwood.verification.errata.base import FloatArray, without_last

ONE_GRADIENT = without_last([-1.0])
"""One gradient of -1 in the leaf; and none."""


def leaf_value(gradients: FloatArray, regularization: float) -> float:
    """-S / (n + lambda); 0 for no rows."""
    return -float(gradients.sum()) / (gradients.size + regularization) if gradients.size else 0.0


def score(gradients: FloatArray, regularization: float) -> float:
    """S^2 / (n + lambda) of one side; 0 for no rows."""
    total = float(gradients.sum())
    return total * total / (gradients.size + regularization) if gradients.size else 0.0


def gain(gradients: FloatArray, right: FloatArray, regularization: float) -> float:
    """G(I_L, I_R), where `right` is 1 for the rows of the right side."""
    side = right > 0.0
    return score(gradients[~side], regularization) + score(gradients[side], regularization)


def softmax(exponents: FloatArray) -> FloatArray:
    """Returns the probabilities of an exponential mechanism."""
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())
