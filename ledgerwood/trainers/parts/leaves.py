"""Leaf values from released sums: post-processing, free of charge."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Loss

LambdaRule = Literal["add", "floor"]


def pooled(weight: NDArray[np.float64], pooling: float) -> NDArray[np.float64]:
    """Released weights drawn towards their mean over the tree's leaves by the share `pooling` in [0, 1].

    The mean's noise is smaller by the root of the number of leaves, and a leaf of few rows is kept from a large step.
    """
    return np.asarray((1.0 - pooling) * weight + pooling * np.mean(weight))


def newton_leaves(
    weight: NDArray[np.float64], gradient: NDArray[np.float64], *, reg_lambda: float, rule: LambdaRule
) -> NDArray[np.float64]:
    """Minus the mean gradient of each leaf, damped; shape of `gradient`.

    Args:
        weight: released rows or hessian of each leaf; may be negative, by the noise.
        gradient: released sum of gradients of each leaf.
        reg_lambda: lambda > 0, in units of `weight`.
        rule: "add": -G / (max(W, 0) + lambda); "floor": -G / max(W, lambda), as printed in S-GBDT Algorithm 4.
    """
    denominator = np.maximum(weight, 0.0) + reg_lambda if rule == "add" else np.maximum(weight, reg_lambda)
    return -gradient / denominator


def lambda_by_noise(*, trees: int, learning_rate: float, stddev: float, score_noise: float) -> float:
    """lambda by the known noise of the gradients: trees' noises together add `score_noise` to a score, at most.

    A tree adds noise of stddev at most learning_rate * stddev / lambda, and the trees' noises are independent.
    """
    return learning_rate * math.sqrt(trees) * stddev / score_noise


def score_noise_by_rule(loss: Loss, rows: float | None, *, depth: int, stddev: float) -> float:
    """More noise may reach the scores where an average leaf's weight stands out of its tree's noise.

    A rule of public quantities, tuned on public data sets: docs/explanation/sgbdt.md#defaults.

    Args:
        loss: whose gradients are summed.
        rows: a public guess of the number of rows of one tree; None for a number between.
        depth: of the trees.
        stddev: of the noise on a leaf's gradients, in their unit.
    """
    factor, low, high, guess, weight = (1.0, 0.4, 1.6, 1.0, 0.25) if loss == "logistic" else (0.5, 0.3, 0.8, 0.45, 1.0)
    if rows is None:
        return guess
    return min(max(factor * math.sqrt(rows * weight / 2**depth / stddev), low), high)
