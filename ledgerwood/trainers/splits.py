"""Splits that cost nothing: trees drawn from the public schema, without a look at the rows."""

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from ledgerwood.ensemble import FeatureCells, TreeStructure
from ledgerwood.mechanisms import RandomSource


def structure_generator(source: RandomSource) -> np.random.Generator:
    """A generator for public structure, seeded from the source; it says nothing of the source's later output."""
    return np.random.Generator(np.random.PCG64(source.uint64(4).tolist()))


def cyclic_features(tree: int, *, n_features: int, per_tree: int | None) -> tuple[int, ...]:
    """The features that tree number `tree` (from 0) may split on: `per_tree` of them in a cycle, or all where None."""
    if per_tree is None or per_tree >= n_features:
        return tuple(range(n_features))
    return tuple((tree * per_tree + i) % n_features for i in range(per_tree))


def random_tree(
    cells: Sequence[FeatureCells],
    *,
    depth: int,
    features: Sequence[int],
    numeric_weight: float,
    generator: np.random.Generator,
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
    """
    inner = 2**depth - 1
    feature = np.zeros(inner, dtype=np.int32)
    split = np.zeros(inner, dtype=np.uint16)
    equals = np.zeros(inner, dtype=np.bool_)
    uniform = generator.random((inner, 2)).tolist()
    paths = [_Path({})] * (2 * inner + 1)
    everything = range(len(cells))
    for node in range(inner):
        path = paths[node]
        # A feature that is empty on this path has weight 0.
        pool, weights = path.weights(cells, features, numeric_weight)
        if not pool and len(features) < len(cells):
            pool, weights = path.weights(cells, everything, numeric_weight)
        if not pool:
            paths[2 * node + 1] = paths[2 * node + 2] = path
            continue
        chosen = _pick(pool, weights, uniform[node][0])
        span = path.span(chosen, cells[chosen])
        thresholds = max(0, span.high - span.low - 1)
        tests = thresholds + len(span.equality)
        index = min(int(uniform[node][1] * tests), tests - 1)
        feature[node] = chosen
        if index < thresholds:
            cut = span.low + 1 + index
            split[node] = cut
            paths[2 * node + 1] = path.with_span(chosen, _Span(span.low, cut, ()))
            paths[2 * node + 2] = path.with_span(chosen, _Span(cut, span.high, span.equality))
        else:
            cell = span.equality[index - thresholds]
            rest = tuple(other for other in span.equality if other != cell)
            split[node], equals[node] = cell, True
            paths[2 * node + 1] = path.with_span(chosen, _Span(0, 0, ()))
            paths[2 * node + 2] = path.with_span(chosen, _Span(span.low, span.high, rest))
    return TreeStructure(feature=feature, split=split, equals=equals)


@final
class _Span:
    """What a path leaves open for one feature: ordered cells low .. high-1, and cells to test by equality."""

    __slots__ = ("equality", "high", "low")

    def __init__(self, low: int, high: int, equality: tuple[int, ...]) -> None:
        self.low = low
        self.high = high
        self.equality = equality

    @property
    def splittable(self) -> bool:
        return self.high - self.low > 1 or bool(self.equality)


@final
class _Path:
    """The spans that the splits above a node have narrowed."""

    __slots__ = ("_spans",)

    def __init__(self, spans: dict[int, _Span]) -> None:
        self._spans = spans

    def span(self, feature: int, cells: FeatureCells) -> _Span:
        return self._spans.get(feature) or _Span(0, cells.ordered, cells.equality)

    def with_span(self, feature: int, span: _Span) -> "_Path":
        return _Path({**self._spans, feature: span})

    def weights(
        self, cells: Sequence[FeatureCells], features: Sequence[int], numeric_weight: float
    ) -> tuple[list[int], list[float]]:
        pool = [j for j in features if self.span(j, cells[j]).splittable]
        return pool, [numeric_weight if cells[j].ordered else 1.0 for j in pool]


def _pick(pool: list[int], weights: list[float], uniform: float) -> int:
    mark = uniform * math.fsum(weights)
    for candidate, weight in zip(pool, weights, strict=True):
        mark -= weight
        if mark < 0.0:
            return candidate
    return pool[-1]
