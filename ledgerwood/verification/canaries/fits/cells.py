"""Where canaries go: one row a cell, cells disjoint, and a tree that has each cell in its own leaf.

All of it follows from the public schema. docs/explanation/canaries.md#canary-cells.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Categorical, Numeric, Schema, encode_features
from ledgerwood.ensemble import MAX_DEPTH, TreeStructure
from ledgerwood.errors import InvalidParameter, SchemaError

_Allowed = tuple[tuple[int, int], ...]
"""Of each feature the cells low .. high-1 that a path leaves open."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryCells:
    """Disjoint cells of a schema, one canary's each.

    Args:
        structure: a complete tree that tests the features in turn, one a level, each at the middle of what is left.
        rows: the canaries' values, object (m, n_features): the middle of each cell.
        schema: resolved.
    """

    structure: TreeStructure
    rows: NDArray[Any]
    schema: Schema

    def __len__(self) -> int:
        return len(self.rows)

    def leaf(self, rows: NDArray[Any], *, bins: int) -> NDArray[np.int32]:
        """The leaf of each row, int32 (n,).

        Args:
            rows: (n, n_features).
            bins: even steps of a numeric feature's range.
        """
        return self.structure.route(encode_features(rows, self.schema, bins=bins))


def canary_cells(schema: Schema, canaries: int, *, bins: int) -> CanaryCells:
    """The first `canaries` leaves of the shallowest such tree that has as many.

    Args:
        schema: resolved: with its features.
        canaries: how many, >= 1.
        bins: even steps of a numeric feature's range.

    Raises:
        InvalidParameter: more canaries than cells.
    """
    _validate.count("canaries", canaries, "canaries")
    start = tuple((0, _steps(feature, bins)) for feature in schema.features)
    room = cell_count(schema, bins=bins)
    if canaries > room:
        raise _validate.fail("canaries", canaries, f"at most {room}, the cells of this schema", "canaries")
    depth = (canaries - 1).bit_length()
    while depth <= MAX_DEPTH - 1:
        structure, leaves = _even_tree(schema, start, depth)
        reachable = [leaf for leaf in leaves if leaf is not None]
        if len(reachable) >= canaries:
            rows = np.empty((canaries, len(start)), dtype=object)
            for place, leaf in enumerate(reachable[:canaries]):
                rows[place] = [
                    _value(feature, (low + high - 1) // 2, bins)
                    for feature, (low, high) in zip(schema.features, leaf, strict=True)
                ]
            return CanaryCells(structure=structure, rows=rows, schema=schema)
        depth += 1
    raise _validate.fail("canaries", canaries, f"at most what a tree of depth {MAX_DEPTH - 1} tells apart", "canaries")


def cell_count(schema: Schema, *, bins: int) -> int:
    """The number of cells of a resolved schema, as a plain integer: it may be more than a float tells apart."""
    return math.prod(_steps(feature, bins) for feature in schema.features)


def _steps(feature: Numeric | Categorical, bins: int) -> int:
    return bins if isinstance(feature, Numeric) else len(feature.categories)


def _even_tree(schema: Schema, start: _Allowed, depth: int) -> tuple[TreeStructure, list[_Allowed | None]]:
    """The tree, and what each leaf leaves open; None for a leaf that no row reaches."""
    inner = 2**depth - 1
    feature = np.zeros(inner, dtype=np.int32)
    split = np.zeros(inner, dtype=np.uint16)
    equals = np.zeros(inner, dtype=np.bool_)
    paths: list[_Allowed | None] = [start, *([None] * (2 * inner))]
    for node in range(inner):
        path = paths[node]
        if path is None:
            continue
        level = (node + 1).bit_length() - 1
        order = [(level + i) % len(path) for i in range(len(path))]
        chosen = next((j for j in order if path[j][1] - path[j][0] > 1), None)
        if chosen is None:  # one cell is left: "cell < 0" sends every row right
            paths[2 * node + 2] = path
            continue
        low, high = path[chosen]
        feature[node] = chosen
        if isinstance(schema.features[chosen], Numeric):
            middle = (low + high) // 2
            split[node] = middle
            left, right = (low, middle), (middle, high)
        else:
            split[node], equals[node] = low, True
            left, right = (low, low + 1), (low + 1, high)
        paths[2 * node + 1] = (*path[:chosen], left, *path[chosen + 1 :])
        paths[2 * node + 2] = (*path[:chosen], right, *path[chosen + 1 :])
    return TreeStructure(feature=feature, split=split, equals=equals), paths[inner:]


def _value(feature: Numeric | Categorical, cell: int, bins: int) -> object:
    if isinstance(feature, Categorical):
        return feature.categories[cell]
    return feature.low + (cell + 0.5) / bins * (feature.high - feature.low)


def extreme_labels(schema: Schema) -> tuple[object, object]:
    """The labels of a canary and of the rows that speak against it: the ends of the range, or the last and first class.

    Raises:
        SchemaError: no target.
        InvalidParameter: a single class.
    """
    match schema.target:
        case Numeric() as target:
            return target.high, target.low
        case Categorical() as target:
            if len(target.categories) < 2:
                raise InvalidParameter(f"target {target.name!r} has one class: a canary's label would tell nothing")
            return target.categories[-1], target.categories[0]
    raise SchemaError("a canary needs a label: declare the schema's target")
