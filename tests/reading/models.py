"""Small models of random trees for the tests of readers, and the words of the readers as Python."""

import math
import re

import numpy as np

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.reading import TreeModel, node_covers

FEATURES = (
    lw.Numeric("length", 0.0, 1.0, missing=True),
    lw.Categorical("sex", ("M", "F", "I")),
    lw.Numeric("width", -1.0, 1.0),
    lw.Categorical("place", ("a", "b", "c", "d"), missing=True),
)
NUMBER = lw.Schema(features=FEATURES, target=lw.Numeric("rings", 1, 29))
TWO = lw.Schema(features=FEATURES, target=lw.Categorical("kind", ("young", "old")))
THREE = lw.Schema(features=FEATURES, target=lw.Categorical("kind", ("young", "old", "middle")))
BINS = 4
CELLS = (5, 4, 4, 6)


def random_structure(seed, depth, schema=NUMBER):
    """Random tests, some of which send all rows right."""
    tests = SplitTests.every(schema.cells(BINS), set_categories=4)
    generator = np.random.default_rng(seed)
    structure = TreeStructure.root()
    for _ in range(depth):
        structure = structure.deeper(tests.taken(generator.integers(-1, len(tests), size=structure.n_leaves)))
    return structure


def random_model(schema, *, seed=0, trees=3, depth=3, classes=0, weights=True, labels=False):
    """A model of random trees: scores, scores of all classes in each leaf (`classes`), or labels."""
    generator = np.random.default_rng(seed)
    ensemble = Ensemble.of_classes(tuple(generator.normal(size=classes))) if classes else Ensemble(initial_score=0.25)
    for number in range(trees):
        structure = random_structure(100 * seed + number, depth, schema)
        shape = (structure.n_leaves, classes) if classes else (structure.n_leaves,)
        values = generator.normal(scale=0.3, size=shape)
        if labels:
            values = generator.integers(0, len(schema.target.categories), size=shape).astype(float)
        ensemble = ensemble.extended(
            Tree(
                structure=structure,
                values=values,
                weights=generator.normal(5.0, 5.0, size=structure.n_leaves) if weights else None,
                noise=np.full(shape, 0.1) if weights and not labels else None,
            )
        )
    return TreeModel(ensemble=ensemble, schema=schema, max_bins=BINS, labels=labels)


def random_cells(n, seed=0):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(0, cells, size=n) for cells in CELLS]).astype(np.uint8)


def row_of(cells):
    """The values of one row: a number in the middle of its cell, NaN where it is missing; a category."""
    found = {}
    for feature, cell in zip(FEATURES, cells, strict=True):
        if isinstance(feature, lw.Numeric):
            step = (feature.high - feature.low) / BINS
            found[feature.name] = feature.low + step * (cell + 0.5) if cell < BINS else math.nan
        else:
            found[feature.name] = (*feature.categories, "zzz", math.nan)[cell]
    return found


def holds(words, row):
    """Whether a condition in words holds for a row."""
    python = re.sub(r"(\w+) is (not )?missing", lambda m: f"{'not ' if m[2] else ''}gone({m[1]})", words)
    python = re.sub(r"(?<![<>!=])=(?!=)", "==", python)
    python = re.sub(r" in \(('\w+')\)", r" in (\1,)", python)
    return eval(python, {"gone": lambda value: isinstance(value, float) and math.isnan(value)}, row)


MODELS = {
    "number": random_model(NUMBER, depth=4),
    "two classes": random_model(TWO, depth=3, seed=1),
    "a forest a class": random_model(THREE, trees=6, depth=3, seed=2),
    "shared classes": random_model(THREE, classes=3, depth=3, seed=3),
    "labels": random_model(THREE, trees=1, depth=4, labels=True, weights=False, seed=4),
    "public volumes": random_model(NUMBER, depth=4, weights=False, seed=5),
}


def goes_left(tree, node, cell):
    structure = tree.structure
    feature, below, besides, sets = structure.lowered()
    if besides[node] < -1:
        line = sets[-2 - besides[node]]
        return cell < len(line) and bool(line[cell])
    return cell < below[node] or cell == besides[node]


def expected_output(model, given):
    """The weighted traversal, node by node, for features that are set to cells."""
    covers, found = node_covers(model).shares, model.start.copy()
    for at, tree in enumerate(model.trees):
        outputs, shares = model.leaf_outputs(at), covers[at]
        inner = len(tree.structure.feature)

        def walk(node, tree=tree, outputs=outputs, shares=shares, inner=inner):
            if node >= inner:
                return outputs[node - inner]
            feature, left, right = int(tree.structure.feature[node]), 2 * node + 1, 2 * node + 2
            if feature in given:
                return walk(left if goes_left(tree, node, given[feature]) else right)
            return sum(shares[side] / shares[node] * walk(side) for side in (left, right) if shares[side] > 0.0)

        found = found + walk(0)
    return found


def cells_of(axis, place):
    """One cell of each point, from its edges."""
    if not axis.edges:
        return list(range(len(axis.labels)))
    low, high = NUMBER.features[place].low, NUMBER.features[place].high
    cells = [round((edge - low) / (high - low) * BINS) for edge in axis.edges[:-1]]
    return [*cells, BINS] if axis.labels[-1] == "missing" else cells
