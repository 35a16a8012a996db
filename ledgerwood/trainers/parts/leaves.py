"""Leaf values from released sums: post-processing, which costs nothing.

Minimum child weights compare released numbers of rows only: a split one of whose sides seems to have fewer rows than
the minimum is undone. What the two ways cost, and why an exact number of rows would cost everything:
docs/explanation/dpxgboost.md#dpxgboost-minimum.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import SplitTests, TreeStructure

LambdaRule = Literal["add", "floor"]


def pooled(weight: NDArray[np.float64], pooling: float) -> NDArray[np.float64]:
    """Draws released weights towards their mean over the tree's leaves by the share `pooling` in [0, 1].

    The mean's noise is smaller by the root of the number of leaves, and a leaf of few rows is kept from a large step.
    """
    return np.asarray((1.0 - pooling) * weight + pooling * np.mean(weight))


def newton_leaves(
    weight: NDArray[np.float64], gradient: NDArray[np.float64], *, reg_lambda: float, rule: LambdaRule = "add"
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


def merged_leaves(sums: NDArray[np.float64], minimum: float) -> NDArray[np.float64]:
    """The released sums of a complete tree's leaves; those below an undone split all have the sums of that node.

    A node's sums are those of the leaves below it. A split is undone if one of its sides has fewer than `minimum` rows,
    and every split below an undone one is. (What is below a split does not change the sums of its sides: from the root
    down or from the leaves up, the same splits are undone.)

    Args:
        sums: (n_leaves, k), n_leaves a power of two; column 0 is the number of rows, with its noise.
        minimum: in rows.
    """
    levels = [sums]
    while len(levels[-1]) > 1:
        levels.append(levels[-1][0::2] + levels[-1][1::2])
    values, undone = levels.pop(), np.zeros(1, dtype=np.bool_)
    for below in reversed(levels):
        light = np.minimum(below[0::2, 0], below[1::2, 0]) < minimum
        undone = np.repeat(undone | light, 2)
        values = np.where(undone[:, np.newaxis], np.repeat(values, 2, axis=0), below)
    return values


def without_light_splits(
    structure: TreeStructure, rows: NDArray[np.float64], split: NDArray[np.bool_], minimum: float
) -> tuple[TreeStructure, NDArray[np.bool_]]:
    """A tree whose last level keeps only splits that leave `minimum` rows on either side.

    An undone split sends every row right, and the nodes below it are not split.

    Args:
        structure: of depth 1 at least.
        rows: (n_leaves,), the released number of rows of each leaf.
        split: bool (n_leaves / 2,), which nodes of the last level may be split: False below an undone split.
        minimum: in rows.

    Returns:
        The tree, and which of its leaves may be split, bool (n_leaves,).
    """
    kept = split & (np.minimum(rows[0::2], rows[1::2]) >= minimum)
    above = len(structure.feature) - len(kept)
    feature, split_at, equals = structure.feature, structure.split, structure.equals
    besides = (None, None) if structure.besides is None else np.split(structure.besides, [above])
    parent = TreeStructure(feature=feature[:above], split=split_at[:above], equals=equals[:above], besides=besides[0])
    last = SplitTests(feature=feature[above:], split=split_at[above:], equals=equals[above:], besides=besides[1])
    return parent.deeper(last.taken(np.where(kept, np.arange(len(kept)), -1))), np.repeat(kept, 2)
