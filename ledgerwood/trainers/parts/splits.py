"""Splits that cost nothing: trees drawn from the public schema, without a look at the rows."""

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import final

import numpy as np

from ledgerwood.ensemble import FeatureCells, TreeStructure
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import passes

Cuts = Sequence[Sequence[int]]
"""For each feature the t of the tests "cell < t", rising."""


def structure_generator(source: RandomSource) -> np.random.Generator:
    """A generator for public structure, seeded from the source; it says nothing of the source's later output."""
    return np.random.Generator(np.random.PCG64(source.uint64(4).tolist()))


def cyclic_features(tree: int, *, n_features: int, per_tree: int | None) -> tuple[int, ...]:
    """The features that tree number `tree` (from 0) may split on: `per_tree` of them in a cycle, or all where None."""
    if per_tree is None or per_tree >= n_features:
        return tuple(range(n_features))
    return tuple((tree * per_tree + i) % n_features for i in range(per_tree))


def combined_features(tree: int, *, n_features: int, per_tree: int | None) -> tuple[int, ...]:
    """Like `cyclic_features`, through all sets of `per_tree` features in the order of `itertools.combinations`."""
    if per_tree is None or per_tree >= n_features:
        return tuple(range(n_features))
    place = tree % math.comb(n_features, per_tree)
    return next(itertools.islice(itertools.combinations(range(n_features), per_tree), place, None))


@passes("structure")
def random_tree(
    cells: Sequence[FeatureCells],
    *,
    depth: int,
    features: Sequence[int],
    numeric_weight: float,
    generator: np.random.Generator,
    cuts: Cuts | None = None,
) -> TreeStructure:
    """A totally random complete tree (S-GBDT, section VI-C), with no split that its own path has already decided.

    Each node draws a feature among those that can still be split on its path, a numeric one with weight
    `numeric_weight` and a categorical one with weight 1, and then one of the feature's tests evenly. Where the tree's
    features are used up, any feature of the schema will do; where all are, the node sends every row right.

    Args:
        cells: the schema's cells, one entry a feature.
        depth: levels of splits, >= 0.
        features: the tree's features.
        numeric_weight: the paper's r, > 0.
        generator: see `structure_generator`.
        cuts: the candidates; None for every border of the cells.
    """
    inner = 2**depth - 1
    feature = np.zeros(inner, dtype=np.int32)
    split = np.zeros(inner, dtype=np.uint16)
    equals = np.zeros(inner, dtype=np.bool_)
    uniform = generator.random((inner, 2)).tolist()
    paths = [NodePath(cells, borders(cells) if cuts is None else cuts)] * (2 * inner + 1)
    everything = range(len(cells))
    for node in range(inner):
        path = paths[node]
        # A feature that is empty on this path has weight 0.
        pool, weights = path.weights(features, numeric_weight)
        if not pool and len(features) < len(cells):
            pool, weights = path.weights(everything, numeric_weight)
        if not pool:
            paths[2 * node + 1] = paths[2 * node + 2] = path
            continue
        feature[node] = _pick(pool, weights, uniform[node][0])
        split[node], equals[node] = path.test(int(feature[node]), uniform[node][1])
        paths[2 * node + 1], paths[2 * node + 2] = path.parted(
            int(feature[node]), int(split[node]), equals=bool(equals[node])
        )
    return TreeStructure(feature=feature, split=split, equals=equals)


def borders(cells: Sequence[FeatureCells]) -> list[range]:
    """Every border between the ordered cells of each feature."""
    return [range(1, each.ordered) for each in cells]


@final
class _Span:
    """The part of one feature that a path leaves open: ordered cells low .. high-1, and cells to test by equality."""

    __slots__ = ("equality", "high", "low")

    def __init__(self, low: int, high: int, equality: tuple[int, ...]) -> None:
        self.low = low
        self.high = high
        self.equality = equality


@final
class NodePath:
    """The part of each feature that the splits above a node leave open.

    Args:
        cells: the schema's cells, one entry a feature.
        cuts: the candidates.
    """

    __slots__ = ("_cells", "_cuts", "_spans")

    def __init__(self, cells: Sequence[FeatureCells], cuts: Cuts, spans: dict[int, _Span] | None = None) -> None:
        self._cells = cells
        self._cuts = cuts
        self._spans = {} if spans is None else spans

    def weights(self, features: Sequence[int], numeric_weight: float) -> tuple[list[int], list[float]]:
        """Returns the features that can still be split, and the weight of each."""
        pool = [j for j in features if sum(self._counts(j))]
        return pool, [numeric_weight if self._cells[j].ordered else 1.0 for j in pool]

    def test(self, feature: int, uniform: float) -> tuple[int, bool]:
        """One of the feature's open tests, of which there is at least one: its cell, and whether it is an equality.

        Args:
            feature: which one.
            uniform: in [0, 1), where among the tests.
        """
        thresholds, equalities = self._counts(feature)
        index = min(int(uniform * (thresholds + equalities)), thresholds + equalities - 1)
        span = self._span(feature)
        if index < thresholds:
            own = self._cuts[feature]
            return own[bisect.bisect_right(own, span.low) + index], False
        return span.equality[index - thresholds], True

    def parted(self, feature: int, cell: int, *, equals: bool) -> "tuple[NodePath, NodePath]":
        """The paths to the left and to the right child of a node with this test."""
        span = self._span(feature)
        if equals:
            rest = tuple(other for other in span.equality if other != cell)
            return self._with(feature, _Span(0, 0, ())), self._with(feature, _Span(span.low, span.high, rest))
        left, right = _Span(span.low, cell, ()), _Span(cell, span.high, span.equality)
        return self._with(feature, left), self._with(feature, right)

    def _span(self, feature: int) -> _Span:
        each = self._cells[feature]
        return self._spans.get(feature) or _Span(0, each.ordered, each.equality)

    def _counts(self, feature: int) -> tuple[int, int]:
        span, own = self._span(feature), self._cuts[feature]
        inside = bisect.bisect_left(own, span.high) - bisect.bisect_right(own, span.low)
        return max(inside, 0), len(span.equality)

    def _with(self, feature: int, span: _Span) -> "NodePath":
        return NodePath(self._cells, self._cuts, {**self._spans, feature: span})


def _pick(pool: list[int], weights: list[float], uniform: float) -> int:
    mark = uniform * math.fsum(weights)
    for candidate, weight in zip(pool, weights, strict=True):
        mark -= weight
        if mark < 0.0:
            return candidate
    return pool[-1]
