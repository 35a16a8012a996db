"""Covers: which share of the rows each node of a released tree is taken to have.

No exact number of rows is private, and none is kept. docs/explanation/reading.md#node-covers.
"""

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.reading.marginals import FeatureShares, even_features, leaf_shares, told_features
from ledgerwood.reading.models import TreeModel

CoverSource = Literal["released weights", "public volumes"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeCovers:
    """The share of the rows of each node of each tree, and where it comes from.

    Args:
        shares: of each tree float64 (2**(depth+1) - 1,), in heap order: node i has the children 2 i + 1 and 2 i + 2,
            and the inner nodes come before the leaves. Each node's share is the sum of its children's, the root's is 1
            but for rounding. 0 where no row can be, by the tests above; > 0 everywhere else.
        features: the distribution of each feature by which all trees' shares are computed.
        source: "released weights" (of each leaf's rows, with their noise) or "public volumes" (shares of the space
            that the schema declares).
    """

    shares: tuple[NDArray[np.float64], ...]
    features: tuple[FeatureShares, ...]
    source: CoverSource

    def __post_init__(self) -> None:
        for each in self.shares:
            each.setflags(write=False)

    def __str__(self) -> str:
        return f"covers of the nodes of {len(self.shares)} trees, by {self.source}"


def node_covers(model: Any) -> NodeCovers:
    """The share of the rows of each node of each tree, from released or public values alone, at no privacy cost.

    Where every tree keeps released weights of its leaves (numbers of rows, or sums of weights or hessians, with their
    noise), they are used, and `source` is "released weights": all of them together tell how each feature is
    distributed, and a node's share is the product of what its tests leave of each. Else `source` is "public volumes":
    each cell of a feature has an equal share: a bin, a category, "other", a missing value. Either way features are
    taken to be independent, and the shares of all trees are those of one distribution.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.

    Raises:
        InvalidParameter: a model without trees.
    """
    read = TreeModel.of(model)
    counts = read.cell_counts
    weights = [tree.weights for tree in read.trees if tree.weights is not None]
    released = bool(weights) and len(weights) == len(read.trees)
    if released:
        features, leaves = told_features(read.trees, counts, weights)
    else:
        features = even_features(read.trees, counts)
        leaves = [leaf_shares(tree.structure, features) for tree in read.trees]
    return NodeCovers(
        shares=tuple(map(_summed_up, leaves)),
        features=features,
        source="released weights" if released else "public volumes",
    )


def _summed_up(leaves: NDArray[np.float64]) -> NDArray[np.float64]:
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(levels[-1][0::2] + levels[-1][1::2])
    return np.concatenate(levels[::-1])
