"""Leaf values from released sums: post-processing, free of charge."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

DampingRule = Literal["add", "floor"]


def pooled(weight: NDArray[np.float64], pooling: float) -> NDArray[np.float64]:
    """Released weights drawn towards their mean over the tree's leaves by the share `pooling` in [0, 1].

    The mean's noise is smaller by the root of the number of leaves, and a leaf of few rows is kept from a large step.
    """
    return np.asarray((1.0 - pooling) * weight + pooling * np.mean(weight))


def newton_leaves(
    weight: NDArray[np.float64], gradient: NDArray[np.float64], *, damping: float, rule: DampingRule
) -> NDArray[np.float64]:
    """Minus the mean gradient of each leaf, damped; shape of `gradient`.

    Args:
        weight: released rows or hessian of each leaf; may be negative, by the noise.
        gradient: released sum of gradients of each leaf.
        damping: lambda > 0, in units of `weight`.
        rule: "add": -G / (max(W, 0) + lambda); "floor": -G / max(W, lambda), as printed in S-GBDT Algorithm 4.
    """
    denominator = np.maximum(weight, 0.0) + damping if rule == "add" else np.maximum(weight, damping)
    return -gradient / denominator
