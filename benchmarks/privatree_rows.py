"""PrivaTree on the rows of its paper's tables: what the paper prints and really spends, and what a sound tree does.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.privatree_rows [--seeds 3] [--data name ...] [--save file]

The tabular benchmark that the paper takes its data from has all rows of the smaller class and as many of the larger
one, and for some tables only some of the columns. A seed fixes which rows of the larger class, and the five folds, with
equal shares of the classes in each; all noise is secure. The paper "computed the public feature ranges based on the
datasets"; here they are the declared ones of `benchmarks.data_sets`, and one row of the table has the rows' own, which
is not private. Electricity lacks the date, which our file does not have.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from benchmarks import data_sets, privatree_published
from benchmarks.measuring import FOLDS, cell, coded, keep
from benchmarks.utility import WIDTH, Found, Parameters, Scale
from ledgerwood import Adjacency, Numeric, Schema
from ledgerwood.trainers import PrivaTreeClassifier
from ledgerwood.trainers.privatree.plan import leaf_epsilon

EPSILONS = privatree_published.EPSILONS
SEEDS = 3
DEPTH = 4
BALANCED = ("magic_telescope", "bank", "credit_default", "electricity", "pol")
LEFT_OUT = {"credit_default": ("EDUCATION", "MARRIAGE")}
"""Columns that the paper's table of 21 does not have."""
NUMBERS_ONLY = ("bank",)
GINI: Parameters = {"split_method": "gini", "max_bins": 255, "max_depth": DEPTH}
VARIANTS: dict[str, Parameters] = {
    "defaults": {},
    "defaults, depth 4": {"max_depth": DEPTH},
    "by Gini, depth 4": GINI,
    "the paper's PrivaTree, made sound": {"preset": "paper"},
    "the paper's PrivaTree*, made sound": {"preset": "public_bins"},
}
OWN_RANGES = "UNSOUND defaults, the rows' own ranges"


def paper_rows(name: data_sets.Name, seed: int) -> data_sets.Data:
    """The paper's rows and columns of a data set.

    Args:
        name: one of those in `privatree_published.ROWS`.
        seed: of the choice among the larger class's rows.
    """
    data = data_sets.load(name)
    kept = [feature.name for feature in data.schema.features if feature.name not in LEFT_OUT.get(name, ())]
    if name in NUMBERS_ONLY:
        kept = [feature.name for feature in data.schema.features if isinstance(feature, Numeric)]
    data = data.columns(kept)
    return data.balanced(seed) if name in BALANCED else data


def own_ranges(data: data_sets.Data) -> data_sets.Data:
    """The same rows with the least and the largest value of each column as its range: not private."""
    features = []
    for feature, column in zip(data.schema.features, data.X.T, strict=True):
        if isinstance(feature, Numeric):
            values = column.astype(float)
            features.append(Numeric(feature.name, float(values.min()), float(values.max())))
        else:
            features.append(feature)
    schema = Schema(features=tuple(features), target=data.schema.target)
    return data_sets.Data(data.name, data.X, data.y, schema)


def spent(epsilon: float, *, columns: int, rows: int) -> float:
    """What the paper's algorithm spends at its "epsilon": m (epsilon - leaves) + leaves, with its own rule for them."""
    paper = leaf_epsilon(
        epsilon, depth=DEPTH, classes=2, rows=rows, error=0.01, adjacency=Adjacency.REPLACE_ONE
    )  # its factor 2 is this relation's range
    return columns * (epsilon - paper) + paper


Make = Callable[[data_sets.Data, float], Any]


def classifier(parameters: Parameters) -> Make:
    """PrivaTree's estimator of some parameters."""

    def make(data: data_sets.Data, epsilon: float) -> Any:
        rows = round(data.rows * (FOLDS - 1) / FOLDS)
        return PrivaTreeClassifier(epsilon=epsilon, schema=data.schema, expected_rows=rows, **parameters)

    return make


def splits(data: data_sets.Data, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Train and test rows of five folds with equal shares of the classes."""
    return iter(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y))


def accuracies(
    tables: Sequence[data_sets.Data], make: Make, epsilon: float, title: str, folds: int = FOLDS
) -> NDArray[np.float64]:
    """Accuracy on the held-out rows of the first folds of each table, shape (n_splits, 1)."""
    found = []
    for seed, data in enumerate(track(tables, description=title, transient=True)):
        for train, test in itertools.islice(splits(data, seed), folds):
            model = make(data, epsilon).fit(data.X[train], data.y[train])
            found.append([float(np.mean(model.predict(data.X[test]) == data.y[test]))])
    return np.array(found)


def measured(name: data_sets.Name, scale: Scale) -> Found:
    """Accuracy of each variant at each budget, as plain values; of a quick run on some of the rows and two folds."""
    start = time.perf_counter()
    tables = [paper_rows(name, seed) for seed in range(scale.seeds)]
    folds = FOLDS
    if scale.rows is not None:
        tables, folds = [data.some(scale.rows) for data in tables], 2
    makes = [(label, tables, classifier(parameters)) for label, parameters in VARIANTS.items()]
    makes.append((OWN_RANGES, [own_ranges(data) for data in tables], classifier({})))
    measures = []
    for label, own, make in makes:
        cells = [
            {"epsilon": epsilon, **cell(accuracies(own, make, epsilon, f"{name}: {label}, epsilon {epsilon:g}", folds))}
            for epsilon in EPSILONS
        ]
        measures.append({"name": label, "cells": cells})
    plain = [data_sets.Data(name, coded(data).X, data.y, data.schema) for data in tables]
    tree = accuracies(plain, lambda _, __: DecisionTreeClassifier(max_depth=DEPTH), 0.0, f"{name}: not private", folds)
    shape = tables[0].X.shape
    return {
        "rows_columns": shape,
        "splits": len(tree),
        "rows": measures,
        "non_private": cell(tree),
        "spent": [spent(epsilon, columns=shape[1], rows=shape[0] * (FOLDS - 1) // FOLDS) for epsilon in EPSILONS],
        "seconds": time.perf_counter() - start,
    }


def study(scale: Scale) -> Found:
    """All data sets; some of their rows on one split of a quick run."""
    return {name: measured(name, Scale(min(scale.seeds, SEEDS), scale.rows)) for name in privatree_published.ROWS}


def table_of(name: str, found: Found) -> Table:
    """Methods by budgets, and what the paper prints."""
    rows, columns = found["rows_columns"]
    table = Table(title=f"{name}, the paper's {rows:,} rows x {columns}: accuracy, spread over folds in brackets")
    for label in ("tree", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)):
        table.add_column(label, justify="left" if label == "tree" else "right")

    def shown(entry: Found) -> str:
        return f"{entry['mean'][0]:.3f} ({entry['spread'][0]:.3f})"

    for row in found["rows"]:
        table.add_row(row["name"], *(shown(entry) for entry in row["cells"]))
    table.add_row("not private (scikit-learn), depth 4", *([shown(found["non_private"])] * len(EPSILONS)))
    table.add_section()
    printed, without = privatree_published.ROWS[name]
    for label, figures in zip(("PrivaTree (UNSOUND)", "PrivaTree* (UNSOUND)", "DiffPrivLib"), printed, strict=True):
        table.add_row(f"the paper's {label}", *figures.split())
    table.add_row("the paper's epsilon, all features counted", *(f"{epsilon:.3g}" for epsilon in found["spent"]))
    table.add_row("the paper's tree without privacy", *([f"{without:.3f}"] * len(EPSILONS)))
    return table


def print_rows(found: Found, console: Console) -> None:
    """A table for each data set."""
    for name, task in found.items():
        console.print(table_of(name, task))
        console.print(f"{task['splits']} folds, in {task['seconds']:.0f} s\n")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--data", nargs="*", choices=list(privatree_published.ROWS))
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file, as the study paper_rows")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    for name in given.data or privatree_published.ROWS:
        found = {name: measured(name, Scale(given.seeds))}
        print_rows(found, console)
        keep(given.save, {"paper_rows": found})


if __name__ == "__main__":
    main()
