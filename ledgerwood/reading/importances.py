"""Feature importances of a released ensemble: post-processing, which has no privacy cost."""

import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import Ensemble


def feature_importances(ensemble: Ensemble, n_features: int) -> NDArray[np.float64]:
    """Share of each feature in the variance that the trees' tests make, float64 (n_features,); sums to 1, or is 0.

    A test counts with the squared difference of its two sides' mean values, summed over the classes where a leaf has a
    value for each, times the share of leaves below it. The
    number of rows of a leaf takes no part: it is private, and was not released.

    Args:
        ensemble: released.
        n_features: the number of features of the rows on which it was grown.
    """
    shares = np.zeros(n_features)
    for tree in ensemble.trees:
        feature, below, besides, _ = tree.structure.lowered()
        # A test that sends every row right has but one side.
        splits = (below > 0) | (besides != -1)
        levels = [slice(2**level - 1, 2 ** (level + 1) - 1) for level in range(tree.structure.depth)]
        reach = np.ones(1)
        reaches = []
        for level in levels:
            reaches.append(reach)
            half = np.where(splits[level], 0.5, 0.0)
            reach = np.column_stack((reach * half, reach * (1.0 - half))).ravel()
        values = tree.values.reshape(len(tree.values), -1)  # one column, or one for each class
        for level, reach in zip(reversed(levels), reversed(reaches), strict=True):
            left, right = values[0::2], values[1::2]
            apart = np.where(splits[level], ((left - right) ** 2).sum(axis=1), 0.0)
            np.add.at(shares, feature[level], reach * apart)
            values = np.where(splits[level, np.newaxis], 0.5 * (left + right), right)
    total = float(shares.sum())
    return shares / total if total > 0.0 else shares
