"""The studies of DPBoost's paper (Li, Wu, Wen, He 2020): its Figures 2 to 8 and Tables 2 and 3, on sound code.

Figures 2, 5, 6: error against epsilon with 50, 20, 40 trees in one ensemble. Figures 3, 7, 8: convergence to 1,000
trees in ensembles of 50, 20, 40, total epsilon 100. Figure 4: with and without geometric leaf clipping. Table 2:
seconds a tree. Table 3: share of rows that gradient filtering leaves out, which is computed here from public data sets,
outside of any budget: of private rows nobody may see it.
"""

import copy
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from benchmarks import data_sets
from benchmarks.measuring import (
    Scores,
    Split,
    cell,
    class_scores,
    coded,
    is_numeric,
    measure,
    measures,
    number_scores,
    show,
)
from benchmarks.utility import Found, Parameters, Scale, System, Task, measured, print_utility
from ledgerwood.curator import encode_features
from ledgerwood.ensemble import Ensemble

EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
ENSEMBLES = {"figure2": 50, "figure5": 20, "figure6": 40}
CONVERGENCE = (50, 20, 40)
TREES, TOTAL_EPSILON = 1_000, 100.0
PLACES, CURVES = 20, 2
"""Lengths at which a curve is scored, and splits whose curves are averaged."""

BUDGET_DATA: tuple[data_sets.Name, ...] = ("abalone", "a9a")
CONVERGENCE_DATA: tuple[data_sets.Name, ...] = ("abalone", "magic_telescope")
CLIPPING_DATA: tuple[data_sets.Name, ...] = ("abalone", "california_housing", "synthetic_regression")
TIMED_DATA: tuple[data_sets.Name, ...] = ("abalone", "a9a", "adult", "electricity", "synthetic_regression")
FILTERED_DATA: tuple[data_sets.Name, ...] = ("abalone", "california_housing", "synthetic_regression")

PUBLISHED_SECONDS = {
    "abalone": "2.95 (2.85)",
    "a9a": ".019 (.007)",
    "synthetic_regression": ".96 (.36), 1,000,000 x 400",
}
PUBLISHED_FILTERED = {"abalone": "1.44 %", "synthetic_regression": "0, 1,000,000 x 400"}
"""Of the paper's Tables 2 (DPBoost, and LightGBM in brackets; ten cores) and 3."""


# ---------------------------------------------------------------------------------- error against epsilon, and clipping


def one_ensemble(system: System, variants: Mapping[str, Parameters], trees: int, scale: Scale) -> Found:
    """Figures 2, 5 and 6: each variant with one ensemble of `trees` trees."""
    beside = System(
        name=f"{system.name}, {trees} trees", regressor=system.regressor, classifier=system.classifier,
        splits=system.splits, beside={**system.beside, "max_iter": trees},
    )  # fmt: skip
    sized = {
        name: {**parameters, "n_estimators": trees, "trees_per_ensemble": 1 if name == "seq" else trees}
        for name, parameters in variants.items()
    }
    tasks = (Task(name, EPSILONS, tuple(sized), seeds=0.2) for name in BUDGET_DATA)
    return {task.name: measured(beside, task, sized, scale) for task in tasks}


def leaf_clipping(system: System, variants: Mapping[str, Parameters], scale: Scale) -> Found:
    """Figure 4: the paper's preset with and without geometric leaf clipping, on numbers."""
    tasks = (Task(name, EPSILONS, tuple(variants), seeds=0.2) for name in CLIPPING_DATA)
    return {task.name: measured(system, task, variants, scale) for task in tasks}


# ---------------------------------------------------------------------------------------------------------- convergence


def prefix(model: Any, trees: int) -> Any:
    """The fitted model with its first trees only."""
    shorter = copy.copy(model)
    whole = model.ensemble_
    shorter.ensemble_ = Ensemble(initial_score=whole.initial_score, trees=whole.trees[:trees])
    return shorter


def curve(
    system: System, data: data_sets.Data, parameters: Parameters, lengths: list[int], split: Split
) -> list[Scores]:
    """Scores on held-out rows of the first so many trees of one fit; a shorter ensemble ends in a flat line."""
    train, test = split
    model = system.model(data, TOTAL_EPSILON, {"expected_rows": data.rows, **parameters})
    model.fit(data.X[train], data.y[train])
    return [measure(prefix(model, length), data.X[test], data.y[test]) for length in lengths]


def plain_curve(system: System, data: data_sets.Data, lengths: list[int], split: Split) -> list[Scores]:
    """The same of scikit-learn's booster, which is not private."""
    train, test = split
    rows = coded(data)
    booster = HistGradientBoostingRegressor if is_numeric(data) else HistGradientBoostingClassifier
    model = booster(**{**system.beside, "max_iter": lengths[-1]})
    with threadpool_limits(1):
        model.fit(rows.X[train], rows.y[train])
        if is_numeric(data):
            staged = [number_scores(found, data.y[test]) for found in model.staged_predict(rows.X[test])]
        else:
            positive = data.y[test] == model.classes_[1]
            staged = [class_scores(s.ravel(), positive) for s in model.staged_decision_function(rows.X[test])]
    return [staged[length - 1] for length in lengths]


def convergence(system: System, variants: Mapping[str, Parameters], scale: Scale) -> Found:
    """Figures 3, 7 and 8: one fit of all trees, scored by its beginnings; variants state their ensembles."""
    trees = max(parameters["n_estimators"] for parameters in variants.values())
    lengths = np.unique(np.linspace(trees / PLACES, trees, PLACES).astype(int).clip(1)).tolist()
    found: Found = {}
    for name in CONVERGENCE_DATA:
        data = scale.data(name)
        splits = scale.splits(system, data.rows, 0.2)[:CURVES]
        rows = []
        for variant, parameters in variants.items():
            title = f"{system.name}, {name}: convergence, {variant}"
            curves = [curve(system, data, parameters, lengths, split) for split in track(splits, title, transient=True)]
            rows.append({"name": variant, "cells": [cell(at) for at in np.array(curves).swapaxes(0, 1)]})
        plain = np.array([plain_curve(system, data, lengths, split) for split in splits]).swapaxes(0, 1)
        found[name] = {
            "measures": measures(data),
            "epsilon": TOTAL_EPSILON,
            "splits": len(splits),
            "lengths": lengths,
            "rows": [*rows, {"name": "not private", "cells": [cell(at) for at in plain]}],
        }
    return found


def print_convergence(title: str, found: Found, console: Console) -> None:
    """Curves at five of their lengths."""
    for name, study in found.items():
        table = Table(title=f"{title}, {name}: {' / '.join(study['measures'])}, total epsilon {study['epsilon']:g}")
        table.add_column("variant")
        places = np.unique(np.linspace(0, len(study["lengths"]) - 1, 5).astype(int)).tolist()
        for place in places:
            table.add_column(f"{study['lengths'][place]} trees", justify="right")
        for row in study["rows"]:
            table.add_row(row["name"], *(show(row["cells"][place]["mean"]) for place in places))
        console.print(table)


# ------------------------------------------------------------------------------------------- seconds, and rows left out


def seconds_a_tree(system: System, variants: Mapping[str, Parameters], scale: Scale) -> Found:
    """Table 2: seconds of a whole second fit, reading of the rows included, over its trees; epsilon 5."""
    found: Found = {}
    for name in track(TIMED_DATA, "seconds a tree", transient=True):
        data = scale.data(name)
        seconds = {}
        for variant, parameters in variants.items():
            model = system.model(data, 5.0, {"expected_rows": data.rows, **parameters}).fit(data.X, data.y)
            start = time.perf_counter()
            model.fit(data.X, data.y)
            seconds[variant] = (time.perf_counter() - start) / len(model.ensemble_.trees)
        rows = coded(data)
        booster = HistGradientBoostingRegressor if is_numeric(data) else HistGradientBoostingClassifier
        start = time.perf_counter()
        booster(**system.beside).fit(rows.X, rows.y)
        seconds["not private (scikit-learn)"] = (time.perf_counter() - start) / system.beside["max_iter"]
        found[name] = {"rows_columns": data.X.shape, "seconds": seconds}
    return found


def print_seconds(found: Found, console: Console) -> None:
    """Data sets by variants."""
    names = list(next(iter(found.values()))["seconds"])
    table = Table(title="Table 2: seconds a tree, reading of the rows included")
    for column in ("data set", "rows x columns", *names, "paper (LightGBM beside)"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for name, entry in found.items():
        shape = "{:,} x {}".format(*entry["rows_columns"])
        values = (f"{entry['seconds'][variant]:.4f}" for variant in names)
        table.add_row(name, shape, *values, PUBLISHED_SECONDS.get(name, ""))
    console.print(table)


def filtered_shares(model: Any, data: data_sets.Data) -> NDArray[np.float64]:
    """Of each tree the share of rows whose gradient is beyond the clip, squared loss; public data only."""
    target = data.schema.target
    labels = 2.0 * (data.y - target.low) / (target.high - target.low) - 1.0
    cells = encode_features(data.X, model.schema_, bins=model.plan_.max_bins)
    scores = np.full(data.rows, model.ensemble_.initial_score)
    shares = []
    for tree in model.ensemble_.trees:
        shares.append(np.mean(np.abs(scores - labels) > model.plan_.clip))
        scores += Ensemble(initial_score=0.0, trees=(tree,)).scores(cells)
    return np.array(shares)


def rows_left_out(system: System, parameters: Parameters, scale: Scale) -> Found:
    """Table 3: mean and largest share over the trees, by epsilon."""
    found: Found = {}
    for name in track(FILTERED_DATA, "rows left out", transient=True):
        data = scale.data(name)
        found[name] = {}
        for epsilon in scale.epsilons((1.0, 4.0, 10.0)):
            model = system.model(data, epsilon, {"expected_rows": data.rows, **parameters})
            shares = filtered_shares(model.fit(data.X, data.y), data)
            found[name][str(epsilon)] = {"mean": float(shares.mean()), "most": float(shares.max())}
    return found


def print_left_out(found: Found, console: Console) -> None:
    """Data sets by budgets."""
    epsilons = list(next(iter(found.values())))
    table = Table(title="Table 3: share of rows that gradient filtering leaves out, mean and most over the trees")
    for column in ("data set", *(f"epsilon {float(epsilon):g}" for epsilon in epsilons), "paper"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for name, row in found.items():
        values = (f"{row[epsilon]['mean']:.2%}, {row[epsilon]['most']:.2%}" for epsilon in epsilons)
        table.add_row(name, *values, PUBLISHED_FILTERED.get(name, ""))
    console.print(table)


# ------------------------------------------------------------------------------------------------------------ all of it


def run(
    system: System, study: str, variants: Mapping[str, Mapping[str, Parameters]], scale: Scale, console: Console
) -> Found:
    """Measure and print one study; `variants` holds those of budgets, convergence, clipping, timing and filtering."""
    if study in ENSEMBLES:
        found = one_ensemble(system, variants["budgets"], ENSEMBLES[study] if scale.rows is None else 2, scale)
        print_utility(system, found, console)
    elif study == "convergence":
        found = convergence(system, variants["convergence"], scale)
        print_convergence("Figures 3, 7, 8", found, console)
    elif study == "figure4":
        found = leaf_clipping(system, variants["clipping"], scale)
        print_utility(system, found, console)
    elif study == "table2":
        found = seconds_a_tree(system, variants["timing"], scale)
        print_seconds(found, console)
    else:
        found = rows_left_out(system, variants["filtering"]["filtered"], scale)
        print_left_out(found, console)
    return found
