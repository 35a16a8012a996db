"""The gain of a split for gradients and a constant hessian of 1, as both gain-based systems print it."""

import numpy as np

from ledgerwood.verification.errata.base import FloatArray


def score(gradients: FloatArray, regularization: float) -> float:
    """S^2 / (n + lambda) of one side; 0 for no rows."""
    total = float(gradients.sum())
    return total * total / (gradients.size + regularization) if gradients.size else 0.0


def gain(gradients: FloatArray, right: FloatArray, regularization: float) -> float:
    """G(I_L, I_R), where `right` is 1 for the rows of the right side."""
    side = right > 0.0
    return score(gradients[~side], regularization) + score(gradients[side], regularization)


def softmax(exponents: FloatArray) -> FloatArray:
    """The law of an exponential mechanism."""
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())
