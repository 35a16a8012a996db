"""Splits chosen by released sums of gradients: from histograms, or among random candidates (Maddock et al. 2022).

Equation 5 on sums with noise; post-processing, which costs nothing.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import CandidateBins
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.trainers.parts.candidates import Thresholds
from ledgerwood.trainers.parts.splits import NodePath

Sums = NDArray[np.float64]
NONE = FeatureCells(ordered=0, equality=())


def gains(left: Sums, node: Sums, damping: float, least: float = -math.inf) -> NDArray[np.float64]:
    """Twice the gain of Equation 5 of each candidate, up to what all candidates of a node share; (n_nodes, n_tests).

    G**2 / (H + lambda) of the left side plus that of the right side; a weight below 0, which noise makes, is 0.

    Args:
        left: (n_nodes, n_tests, 2), weight and gradient of the rows that a test sends left.
        node: (n_nodes, 2).
        damping: lambda > 0.
        least: a side of a smaller released weight gains nothing: noise over almost no weight would win every choice.
    """
    right = node[:, np.newaxis, :] - left
    found = np.zeros(left.shape[:2])
    for side in (left, right):
        gain = side[..., 1] ** 2 / (np.maximum(side[..., 0], 0.0) + damping)
        found += np.where(side[..., 0] >= least, gain, 0.0)
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramTests:
    """The candidates of one tree, and the bins that are summed to know their sides.

    Args:
        bins: of the tree's features.
        tests: every candidate of these features.
        goes_left: bool (n_tests, bins.total), which bins a test sends left.
        owner: int64 (n_tests,), the place in `bins` of each test's feature.
    """

    bins: CandidateBins
    tests: SplitTests
    goes_left: NDArray[np.bool_]
    owner: NDArray[np.int64]

    @classmethod
    def of(
        cls, cells: Sequence[FeatureCells], thresholds: Sequence[Thresholds], features: Sequence[int]
    ) -> "HistogramTests | None":
        """The candidates of the features of one tree; None if no feature has one.

        Args:
            cells: of every feature of the schema.
            thresholds: of every feature.
            features: of the tree, rising.
        """
        own = [each if place in set(features) else NONE for place, each in enumerate(cells)]
        cuts = [t if place in set(features) else t[:0] for place, t in enumerate(thresholds)]
        if not any(len(cut) or each.equality for each, cut in zip(own, cuts, strict=True)):
            return None
        bins = CandidateBins.of(cells, thresholds, features)
        tests = SplitTests.every(own, cuts)
        masks, owners = [], []
        for place, feature in enumerate(features):
            masks.append(_goes_left(own[feature], len(cuts[feature]), int(bins.offsets[place]), bins.total))
            owners.append(np.full(len(masks[-1]), place))
        # `SplitTests.every` lists features in the schema's order.
        order = np.argsort(np.asarray(features), kind="stable")
        return cls(
            bins=bins,
            tests=tests,
            goes_left=np.concatenate([masks[place] for place in order]),
            owner=np.concatenate([owners[place] for place in order]),
        )

    def totals(self, sums: Sums) -> Sums:
        """Weight and gradient of each node: the mean over features of their bins' sums; (n_nodes, 2)."""
        return np.asarray(sums.sum(axis=1) / len(self.bins))

    def left(self, sums: Sums) -> Sums:
        """Weight and gradient of the rows that each test sends left; (n_nodes, n_tests, 2)."""
        found = np.empty((len(sums), len(self.owner), 2))
        for place, (start, end) in enumerate(itertools.pairwise(self.bins.offsets.tolist())):
            tests = self.owner == place  # a feature's tests add up its own bins only
            found[:, tests] = self.goes_left[tests, start:end].astype(np.float64) @ sums[:, start:end]
        return found

    def chosen(self, sums: Sums, damping: float, least: float = -math.inf) -> tuple[NDArray[np.int64], Sums]:
        """The best test of each node, and its children's sums (2 n_nodes, 2).

        Args:
            sums: (n_nodes, bins.total, 2), released.
            damping: lambda.
            least: see `gains`.
        """
        node, left = self.totals(sums), self.left(sums)
        best = np.argmax(gains(left, node, damping, least), axis=1)
        mine = left[np.arange(len(best)), best]
        return best, np.stack((mine, node - mine), axis=1).reshape(-1, 2)


def _goes_left(cells: FeatureCells, thresholds: int, offset: int, total: int) -> NDArray[np.bool_]:
    """Which bins each test of one feature sends left, in the order of `SplitTests.every`."""
    ordered = thresholds + 1 if cells.ordered else 0
    equal = [offset + ordered + number for number in range(len(cells.equality))]
    mask = np.zeros((thresholds * (1 + len(equal)) + len(equal), total), dtype=np.bool_)
    below = np.arange(total)[np.newaxis, :] - offset <= np.arange(thresholds)[:, np.newaxis]
    below &= np.arange(total)[np.newaxis, :] >= offset
    for side in range(1 + len(equal)):
        rows = slice(side * thresholds, (side + 1) * thresholds)
        mask[rows] = below
        if side:
            mask[rows, equal[side - 1]] = True
    for number, place in enumerate(equal):
        mask[thresholds * (1 + len(equal)) + number, place] = True
    return mask


def random_tests(
    paths: Sequence[NodePath], features: Sequence[int], generator: np.random.Generator
) -> tuple[SplitTests, NDArray[np.bool_]]:
    """One random open test of each feature at each node, node after node; and which of them are open.

    Where a feature is used up on the path, its place has a test that sends every row right.

    Args:
        paths: of the nodes.
        features: of the tree.
        generator: public randomness of structures.
    """
    n = len(paths) * len(features)
    feature, split = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.uint16)
    equals, is_open = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    uniform = generator.random(n).tolist()
    for place in range(n):
        path, own = paths[place // len(features)], features[place % len(features)]
        if path.weights([own], 1.0)[0]:
            split[place], equals[place] = path.test(own, uniform[place])
            feature[place], is_open[place] = own, True
    return SplitTests(feature=feature, split=split, equals=equals), is_open


def best_of(
    left: Sums, node: Sums, is_open: NDArray[np.bool_], damping: float, least: float = -math.inf
) -> tuple[NDArray[np.int64], Sums]:
    """The best open test of each node, -1 where there is none, and its children's sums (2 n_nodes, 2).

    Args:
        left: (n_nodes, f, 2), released.
        node: (n_nodes, 2), inherited.
        is_open: (n_nodes, f).
        damping: lambda.
        least: see `gains`.
    """
    score = np.where(is_open, gains(left, node, damping, least), -np.inf)
    best = np.where(is_open.any(axis=1), np.argmax(score, axis=1), -1)
    # A node without an open test sends every row right.
    mine = np.where((best >= 0)[:, np.newaxis], left[np.arange(len(best)), best], 0.0)
    return best, np.stack((mine, node - mine), axis=1).reshape(-1, 2)
