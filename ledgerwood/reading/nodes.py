"""One tree as nodes that a row can reach: what text, pictures and rules show of it."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.reading.conditions import Mark, left_mark
from ledgerwood.reading.covers import NodeCovers, node_covers
from ledgerwood.reading.models import TreeModel


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadNode:
    """A node, with its subtree.

    Args:
        share: of the rows, by the covers.
        values: the mean of the leaves' values below it by their shares, in the outputs' units, (n_outputs,).
        noise: of a leaf, the standard deviation of the known noise in each value, in the same units; else None.
        feature: that it tests, or -1 of a leaf.
        mark: which of the feature's cells go left, bool; None of a leaf.
        left, right: the nodes below; None of a leaf.
        leaves: how many leaves there are below, itself included.
    """

    share: float
    values: NDArray[np.float64]
    noise: NDArray[np.float64] | None = None
    feature: int = -1
    mark: Mark | None = None
    left: "ReadNode | None" = None
    right: "ReadNode | None" = None
    leaves: int = 1


def read_tree(model: TreeModel, place: int, covers: NodeCovers | None = None) -> ReadNode:
    """The root of one tree, without tests that send all rows that can reach them the same way.

    Args:
        model: whose tree it is.
        place: of the tree in the ensemble, from 0.
        covers: of the model; computed where None.
    """
    tree, shares = model.trees[place], (node_covers(model) if covers is None else covers).shares[place]
    structure, counts = tree.structure, model.cell_counts
    values, noise = model.leaf_outputs(place), model.leaf_noise(place)
    inner = len(structure.feature)

    def node(at: int) -> ReadNode:
        share = float(shares[at])
        if at >= inner:
            leaf = at - inner
            return ReadNode(share=share, values=values[leaf], noise=None if noise is None else noise[leaf])
        if shares[2 * at + 1] == 0.0:
            return node(2 * at + 2)
        if shares[2 * at + 2] == 0.0:
            return node(2 * at + 1)
        left, right = node(2 * at + 1), node(2 * at + 2)
        feature = int(structure.feature[at])
        return ReadNode(
            share=share,
            values=(left.share * left.values + right.share * right.values) / (left.share + right.share),
            feature=feature,
            mark=left_mark(structure, at, int(counts[feature])),
            left=left,
            right=right,
            leaves=left.leaves + right.leaves,
        )

    return node(0)
