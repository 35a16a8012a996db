"""diffprivlib's own tree, forest and regression on the same splits, as rows of PrivaTree's tables."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.baselines import code_table, range_of
from benchmarks.data_sets import Data
from benchmarks.measuring import Split, cell
from benchmarks.utility import Found

REQUIREMENTS = ("diffprivlib==0.6.6", "scikit-learn==1.5.2")
TREES = 10
LABELS = {
    "tree": "diffprivlib tree",
    "forest": f"diffprivlib forest, {TREES} trees",
    "regression": "diffprivlib logistic regression",
}
NOTES = {
    "tree": "epsilon under add-remove with declared bounds and classes: the random private tree, on codes",
    "forest": "each row is in one tree, but the parts' sizes depend on the number of rows: no proof under add-remove",
    "regression": "columns scaled by public bounds; takes its classes from the rows",
}


def rows(data: Data, epsilons: Sequence[float], splits: Sequence[Split], depth: int) -> list[Found]:
    """A row a model; none where the environment cannot be made."""
    table = tables(data, splits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **table)
        given = {"table": str(path), "splits": len(splits), "epsilons": list(epsilons), "depth": depth, "trees": TREES}
        script = Path(__file__).with_name("diffprivlib_peer.py")
        if peers.run("diffprivlib", REQUIREMENTS, script, given) is None:
            return []
        predicted = dict(np.load(path))
    return [row_of(name, table["y"], predicted, epsilons, splits) for name in LABELS]


def tables(data: Data, splits: Sequence[Split]) -> dict[str, NDArray[Any]]:
    """What the peer reads: codes, bounds, places of classes, rows of the splits."""
    classes = {label: place for place, label in enumerate(data.schema.target.categories)}
    ranges = np.array([range_of(feature) for feature in data.schema.features])
    return {
        "X": np.minimum(code_table(data.X, data.schema), ranges[:, 1]),
        "y": np.array([classes[label] for label in data.y.tolist()]),
        "low": ranges[:, 0],
        "high": ranges[:, 1],
        "classes": np.array(len(classes)),
        **{f"train{i}": train for i, (train, _) in enumerate(splits)},
        **{f"test{i}": test for i, (_, test) in enumerate(splits)},
    }


def row_of(
    name: str,
    y: NDArray[np.int64],
    predicted: dict[str, NDArray[Any]],
    epsilons: Sequence[float],
    splits: Sequence[Split],
) -> Found:
    """One model's accuracies."""
    cells = []
    for place, epsilon in enumerate(epsilons):
        scores = [
            [float(np.mean(predicted[f"{name}_split{i}_epsilon{place}"] == y[test]))]
            for i, (_, test) in enumerate(splits)
        ]
        cells.append({"epsilon": epsilon, **cell(np.array(scores))})
    return {"name": LABELS[name], "splits": len(splits), "cells": cells}
