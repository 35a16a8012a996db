"""Studies of DPBoost's paper (Li, Wu, Wen, He 2020) on sound code: convergence, seconds a tree, rows left out.

Figures 3, 7, 8: convergence to 1,000 trees in ensembles of 50, 20, 40, total epsilon 100. Table 2: seconds a tree.
Table 3: share of rows that gradient filtering leaves out, which is computed here from public data sets, outside of any
budget: of private rows nobody may see it. Its other figures compare methods: `benchmarks.reproduce.papers.dpboost`.
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

from benchmarks import data_sets, paired
from benchmarks.measuring import Scores, Split, class_scores, coded, is_numeric, measure, number_scores
from benchmarks.utility import Found, Parameters, Scale, System
from ledgerwood.curator import encode_features
from ledgerwood.ensemble import Ensemble

TOTAL_EPSILON = 100.0
PLACES = 20
"""Lengths at which a curve is scored."""

TIMED_DATA: tuple[data_sets.Name, ...] = ("abalone", "a9a", "adult", "electricity", "synthetic_regression")
FILTERED_DATA: tuple[data_sets.Name, ...] = ("abalone", "california_housing", "synthetic_regression")

PUBLISHED_SECONDS = {
    "abalone": "2.95 (2.85)",
    "a9a": ".019 (.007)",
    "synthetic_regression": ".96 (.36), 1,000,000 x 400",
}
PUBLISHED_FILTERED = {"abalone": "1.44 %", "synthetic_regression": "0, 1,000,000 x 400"}
"""Of the paper's Tables 2 (DPBoost, and LightGBM in brackets; ten cores) and 3."""


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
    model = system.model(data, TOTAL_EPSILON, {"expected_rows": data.rows, "n_jobs": 1, **parameters})
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


def convergence(system: System, name: data_sets.Name, variants: Mapping[str, Parameters], scale: Scale) -> Found:
    """Figures 3, 7 and 8: one fit of all trees a split, scored by its beginnings; variants state their ensembles.

    Returns:
        Errors of each variant and of what is not private, shape (splits, lengths), beside how they were measured.
    """
    trees = max(parameters["n_estimators"] for parameters in variants.values())
    lengths = np.unique(np.linspace(trees / PLACES, trees, PLACES).astype(int).clip(1)).tolist()
    data = scale.data(name)
    splits = paired.one_each(scale, system, data.rows)
    curves = {
        variant: [curve(system, data, parameters, lengths, split) for split in track(splits, variant, transient=True)]
        for variant, parameters in variants.items()
    }
    curves["not private"] = [plain_curve(system, data, lengths, split) for split in splits]
    return {
        "measure": paired.measure_of(data),
        "epsilon": TOTAL_EPSILON,
        "splits": len(splits),
        "lengths": lengths,
        "errors": {variant: paired.error(data, np.array(found)).tolist() for variant, found in curves.items()},
    }


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
