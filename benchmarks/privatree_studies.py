"""The studies of PrivaTree's paper (Vos and others 2023): Figures 1 to 3, runtimes, and speed on a million rows.

Figure 1: accuracy against epsilon. Figure 2: accuracy over the budget's shares of quantiles, nodes and leaves.
Figure 3: guaranteed accuracy over poisoned rows; here of Deep Partition Aggregation, whose guarantee is by prediction.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.tree import DecisionTreeClassifier

from benchmarks import data_sets, privatree_published
from benchmarks.baselines import BDPT, DEPTH, DPGDF, DeepPartitionAggregation, RandomTree
from benchmarks.drawing import panels
from benchmarks.measuring import coded, folds
from benchmarks.utility import Found, Parameters, Scale
from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.trainers import PrivaTreeClassifier

DELTA = 1e-6
VARIANTS: dict[str, Parameters] = {
    "defaults": {},
    "selection, private quantiles": {"candidates": "quantiles", "candidate_bins": 10},
    "paper": {"preset": "paper"},
    "PrivaTree*, public bins": {"preset": "public_bins"},
    f"joint Gaussian, delta {DELTA:g}": {"preset": "joint_gaussian", "delta": DELTA},
    "random": {"preset": "random"},
}
"""Of PrivaTree, all sound: defaults select by the Gini impurity; "paper" pays for m features what they cost."""
FIGURE1_DATA: tuple[data_sets.Name, ...] = ("adult", "compas")
FIGURE1_EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FIGURE1_VARIANTS = ("defaults", "paper")
SHARED_DATA: tuple[data_sets.Name, ...] = ("vote", "magic_telescope")
SHARED: Parameters = {"preset": "paper", "max_depth": 3}
SHARED_EPSILON = 0.1
FITS_A_SEED = 10
LEAF_SHARES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85)
QUANTILE_SHARES = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Of what the leaves leave."""
CERTIFIED_DATA: tuple[data_sets.Name, ...] = ("adult", "compas")
POISONED = (0.0, 0.001, 0.0025, 0.005, 0.0075, 0.01)
"""Shares of the training rows that are added or taken away."""
SPEED_ROWS, SPEED_COLUMNS = 1_000_000, 24
RUNS = 5


def private_tree(data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    """PrivaTree's estimator; `parameters` may name delta."""
    given = {"delta": 0.0, "max_depth": DEPTH, "expected_rows": data.rows, **parameters}
    return PrivaTreeClassifier(epsilon=epsilon, schema=data.schema, **given)


# ------------------------------------------------------------------------------------------------- shares of the budget


def figure2(scale: Scale) -> Found:
    """Accuracy on the training rows over the shares; each cell is a mean of fits to all rows."""
    found: Found = {}
    for name in SHARED_DATA:
        data = scale.data(name)
        fits = FITS_A_SEED * scale.seeds if scale.rows is None else 2
        numeric = any(isinstance(feature, Numeric) for feature in data.schema.features)
        cells = []
        for leaves in track(LEAF_SHARES, f"{name}: shares", transient=True):
            for quantiles in QUANTILE_SHARES if numeric else (0.5,):
                own = {**SHARED, "leaf_share": leaves, "quantile_share": quantiles}
                mean, spread = training_accuracy(data, own, fits)
                rest = (1.0 - leaves) * quantiles if numeric else 0.0
                cells.append({"leaves": leaves, "quantiles": rest, "mean": mean, "spread": spread})
        plan = private_tree(data, SHARED_EPSILON, SHARED).make_plan(data.schema)
        rest = (1.0 - plan.leaf_share) * plan.quantile_share if numeric else 0.0
        mean, spread = training_accuracy(data, SHARED, fits)
        rule = {"leaves": plan.leaf_share, "quantiles": rest, "mean": mean, "spread": spread}
        found[name] = {
            "rows_columns": data.X.shape, "epsilon": SHARED_EPSILON, "fits": fits, "cells": cells, "rule": rule,
        }  # fmt: skip
    return found


def training_accuracy(data: data_sets.Data, parameters: Parameters, fits: int) -> tuple[float, float]:
    """Mean and spread over fits."""
    found = []
    for _ in range(fits):
        model = private_tree(data, SHARED_EPSILON, parameters).fit(data.X, data.y)
        found.append(float(np.mean(model.predict(data.X) == data.y)))
    return statistics.fmean(found), statistics.pstdev(found)


def print_shares(found: Found, console: Console) -> None:
    """The best shares, and the rule's."""
    table = Table(title="Figure 2: accuracy on the training rows over the budget's shares, depth 3")
    for column in ("data set", "epsilon", "", "quantiles", "splits", "leaves", "accuracy (spread)"):
        table.add_column(column, justify="left" if column in {"data set", ""} else "right")
    for name, study in found.items():
        best = max(study["cells"], key=lambda cell: cell["mean"])
        worst = min(study["cells"], key=lambda cell: cell["mean"])
        for label, cell in (("best", best), ("rule", study["rule"]), ("worst", worst)):
            splits = 1.0 - cell["quantiles"] - cell["leaves"]
            shares = (f"{share:.2f}" for share in (cell["quantiles"], splits, cell["leaves"]))
            shown = f"{cell['mean']:.3f} ({cell['spread']:.3f})"
            table.add_row(name, f"{study['epsilon']:g}", label, *shares, shown)
    console.print(table)


def draw_shares(found: Mapping[str, Any]) -> Any:
    """Accuracy over the shares of leaves and quantiles; a curve where there is nothing to take quantiles of."""
    figure, axes = panels(len(found))
    for axis, (name, study) in zip(axes, found.items(), strict=True):
        cells, rule = study["cells"], study["rule"]
        leaves, means = [cell["leaves"] for cell in cells], [cell["mean"] for cell in cells]
        if any(cell["quantiles"] for cell in cells):
            quantiles = [cell["quantiles"] for cell in cells]
            drawn = axis.scatter(leaves, quantiles, c=means, s=120)
            figure.colorbar(drawn, ax=axis, label="accuracy")
            axis.plot(rule["leaves"], rule["quantiles"], "ro", fillstyle="none", markersize=14)
            axis.set_ylabel("share of the quantiles")
        else:
            axis.errorbar(leaves, means, [cell["spread"] for cell in cells], fmt="o-", markersize=4, capsize=2)
            axis.plot(rule["leaves"], rule["mean"], "ro", fillstyle="none", markersize=14)
            axis.set_ylabel("accuracy")
        axis.set_xlabel(f"share of the leaves, epsilon {study['epsilon']:g}")
        axis.set_title(name, fontsize=9)
    figure.tight_layout()
    return figure


# ------------------------------------------------------------------------------------------ certified against poisoning


def certified(scale: Scale) -> Found:
    """Share of held-out rows that 1,000 trees on disjoint parts predict right, whatever so many poisoned rows say."""
    found: Found = {}
    for name in track(CERTIFIED_DATA, "certified", transient=True):
        data = scale.data(name)
        splits = list(folds(data.rows, 1))[:2] if scale.rows else list(folds(data.rows, 1))
        shares = []
        for train, test in splits:
            model = DeepPartitionAggregation(0.0, data.schema).fit(data.X[train], data.y[train])
            right = model.predict(data.X[test]) == data.y[test]
            radii = model.certified_rows(data.X[test])
            shares.append([float(np.mean(right & (radii >= round(share * len(train))))) for share in POISONED])
        found[name] = {
            "rows_columns": data.X.shape,
            "trees": 1000,
            "poisoned": list(POISONED),
            "certified": np.mean(shares, axis=0).tolist(),
        }
    return found


def print_certified(found: Found, console: Console) -> None:
    """Data sets by shares of poisoned rows."""
    table = Table(title="Deep Partition Aggregation, 1,000 trees: accuracy under poisoned rows")
    table.add_column("data set")
    for share in POISONED:
        table.add_column(f"{share:.2%}", justify="right")
    for name, entry in found.items():
        table.add_row(name, *(f"{value:.3f}" for value in entry["certified"]))
    console.print(table)


def draw_certified(found: Mapping[str, Any]) -> Any:
    """Certified accuracy over the share of poisoned rows."""
    figure, axes = panels(len(found))
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        axis.plot(100 * np.array(entry["poisoned"]), entry["certified"], "o-", markersize=4, label="DPA, 1,000 trees")
        axis.set_xlabel("poisoned rows, % of the training rows")
        axis.set_ylabel("certified accuracy")
        axis.set_title(name, fontsize=9)
        axis.legend(fontsize=6)
    figure.tight_layout()
    return figure


# -------------------------------------------------------------------------------------------------------------- seconds


def seconds_of(make: Any, X: Any, y: Any, runs: int = RUNS) -> float:
    """Median seconds of a fit after one that warms up."""
    make().fit(X, y)
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        make().fit(X, y)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def runtime(names: Sequence[data_sets.Name], scale: Scale) -> Found:
    """Table V: seconds of one fit on all rows, epsilon .1."""
    found: Found = {}
    for name in track(names, "runtime", transient=True):
        data = scale.data(name)
        seconds = {label: seconds_of(make, data.X, data.y) for label, make in makers(data).items()}
        plain = coded(data)
        seconds["not private"] = seconds_of(lambda: DecisionTreeClassifier(max_depth=DEPTH), plain.X, plain.y)
        found[name] = {"rows_columns": data.X.shape, "seconds": seconds}
    return found


def makers(data: data_sets.Data) -> dict[str, Callable[[], Any]]:
    """Models of the runtime table, by name, at epsilon .1."""
    found: dict[str, Callable[[], Any]] = {
        variant: lambda p=parameters: private_tree(data, 0.1, p) for variant, parameters in VARIANTS.items()
    }
    found["random private tree"] = lambda: RandomTree(0.1, data.schema)
    found["BDPT"] = lambda: BDPT(0.1, data.schema)
    if any(isinstance(feature, Categorical) for feature in data.schema.features):
        found["DPGDF"] = lambda: DPGDF(0.1, data.schema)
    return found


def print_runtime(found: Found, console: Console) -> None:
    """Data sets by methods, the paper's PrivaTree beside."""
    names = list(dict.fromkeys(label for entry in found.values() for label in entry["seconds"]))
    table = Table(title="Table V: seconds of one fit, epsilon .1, all rows (the paper's are of five folds together)")
    for column in ("data set", "rows x columns", *names, "paper's PrivaTree"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for name, entry in found.items():
        rows, columns = entry["rows_columns"]
        seconds = (f"{entry['seconds'][label]:.3f}" if label in entry["seconds"] else "-" for label in names)
        table.add_row(name, f"{rows:,} x {columns}", *seconds, privatree_published.SECONDS.get(name, ""))
    console.print(table)


def uniform_rows(rows: int, columns: int) -> data_sets.Data:
    """Uniform columns, of which three make the class."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, columns))
    y = (np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(rows) > X[:, 2]).astype(np.int64)
    schema = Schema.uniform(0, 1, n_features=columns, target=Categorical("class", (0, 1)))
    return data_sets.Data("uniform", X, y, schema)


def speed(scale: Scale) -> Found:
    """Seconds of a fit of depth 4 on 1,000,000 x 24 uniform rows, reading of the rows included; epsilon .1."""
    rows = SPEED_ROWS if scale.rows is None else scale.rows
    data = uniform_rows(rows, SPEED_COLUMNS)
    seconds = {
        variant: seconds_of(lambda p=parameters: private_tree(data, 0.1, p), data.X, data.y, 3)
        for variant, parameters in VARIANTS.items()
    }
    seconds["random private tree"] = seconds_of(lambda: RandomTree(0.1, data.schema), data.X, data.y, 3)
    return {"uniform": {"rows_columns": data.X.shape, "seconds": seconds}}


def print_speed(found: Found, console: Console) -> None:
    """Variants, and the paper's seconds on as many rows."""
    (entry,) = found.values()
    rows, columns = entry["rows_columns"]
    table = Table(title=f"Seconds of one fit, depth {DEPTH}, {rows:,} x {columns}")
    for label in (*entry["seconds"], "paper, five folds"):
        table.add_column(label, justify="right")
    shown = (f"{seconds:.2f}" for seconds in entry["seconds"].values())
    table.add_row(*shown, privatree_published.HIGGS_SECONDS)
    console.print(table)
