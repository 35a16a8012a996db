"""Importances of a released ensemble's features: post-processing, which has no privacy cost."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledgerwood.ensemble import Ensemble, Tree

Floats = NDArray[np.float64]


def feature_importances(ensemble: Ensemble, n_features: int) -> Floats:
    """Share of each feature in the variance that the trees' tests make, float64 (n_features,); sums to 1, or is 0.

    A test counts with the squared difference of its two sides' mean values, summed over the classes where a leaf has a
    value for each, times the share of leaves below it. The
    number of rows of a leaf takes no part: it is private, and was not released.

    Args:
        ensemble: released.
        n_features: the number of features of the rows on which it was grown.
    """
    shares = feature_effects(ensemble, n_features).effects
    total = float(shares.sum())
    return shares / total if total > 0.0 else shares


class FeatureEffects(NamedTuple):
    """What the tests of each feature count, before it is divided by their sum, (n_features,) each.

    Args:
        effects: with the noise that is in them.
        noise: the part that is expected from the known noise of the leaves' values alone.
        error: the standard deviation of `effects` by that noise, estimated.
        known: whether all trees say what their noise is; else the last two mean nothing.
    """

    effects: Floats
    noise: Floats
    error: Floats
    known: bool


def feature_effects(ensemble: Ensemble, n_features: int) -> FeatureEffects:
    """What the tests of each feature count, and what of it is noise: docs/explanation/reading.md#importance-noise.

    Args:
        ensemble, n_features: as of `feature_importances`.
    """
    effects, noise, variance = np.zeros((3, n_features))
    for tree in ensemble.trees:
        _add_effects(tree, effects, noise, variance)
    known = all(tree.noise is not None for tree in ensemble.trees)
    return FeatureEffects(effects, noise, np.sqrt(np.maximum(variance, 0.0)), known)


def _add_effects(tree: Tree, effects: Floats, noise: Floats, variance: Floats) -> None:
    """Add the tree's part to each."""
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
    variances = np.zeros(values.shape) if tree.noise is None else tree.noise.reshape(values.shape) ** 2
    one = np.ones(len(values), dtype=np.bool_)  # whether all leaves below a node have one released value
    for level, reach in zip(reversed(levels), reversed(reaches), strict=True):
        split, left, right = splits[level], values[0::2], values[1::2]
        # Of an undone split: leaves that share their sums share their noise.
        same = one[0::2] & one[1::2] & (left == right).all(axis=1)
        both, apart = variances[0::2] + variances[1::2], (left - right) ** 2
        loud = (split & ~same)[:, np.newaxis]
        # Of (d + z)**2, for Gaussian z, the variance is 2 v**2 + 4 d**2 v, and d**2 is in the mean what exceeds v.
        squares = 2.0 * both**2 + 4.0 * (apart - both) * both
        np.add.at(effects, feature[level], reach * np.where(split[:, np.newaxis], apart, 0.0).sum(axis=1))
        np.add.at(noise, feature[level], reach * np.where(loud, both, 0.0).sum(axis=1))
        np.add.at(variance, feature[level], reach**2 * np.where(loud, squares, 0.0).sum(axis=1))
        values = np.where(split[:, np.newaxis], 0.5 * (left + right), right)
        variances = np.where(loud, 0.25 * both, variances[1::2])
        one = np.where(split, same, one[1::2])
