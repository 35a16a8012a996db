"""The studies of the federated framework's paper (Maddock et al. 2022): each component over what it depends on.

Split method x update over the number of trees; candidates over how many there are; trees that share gradients;
features a tree. On all data each study changes one thing of the preset `tr_newton`, at one epsilon and delta 1/n.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import data_sets
from benchmarks.measuring import HELD_OUT, cell, cross_validated, holdouts, measures
from benchmarks.utility import Found, Parameters, Scale, System, short
from ledgerwood.trainers import FederatedGBDTClassifier, FederatedGBDTRegressor

ROWS: dict[data_sets.Name, int] = {"adult": 45_222, "credit_default": 30_000, "bank": 45_211}
"""Numbers of rows, which are public: declared, and not counted."""
DELTAS: dict[data_sets.Name, float] = {name: 1.0 / round((1.0 - HELD_OUT) * rows) for name, rows in ROWS.items()}
"""The paper's delta, one over the rows that are trained on: a constant before any row is read."""
DATA: tuple[data_sets.Name, ...] = ("adult", "credit_default")
EPSILON = 1.0
BASE: Parameters = {"preset": "tr_newton"}
MANY_TREES = 100

SYSTEM = System(
    name="federated framework",
    regressor=FederatedGBDTRegressor,
    classifier=FederatedGBDTClassifier,
    splits=holdouts,
    beside={"max_iter": 200, "max_depth": 4, "max_leaf_nodes": None, "learning_rate": 0.1},
)


@dataclass(frozen=True)
class Sweep:
    """One parameter of the estimators over some values, for some variants of the rest.

    Args:
        title: what is shown.
        axis: what the values are, in words.
        parameter: whose values they are.
        values: rising.
        variants: the rest of the parameters by the row's name.
        largest: of a variant whose trees take long, the largest value that is measured.
        seeds: how many of the seeds that were asked for, a share, but at least one.
    """

    title: str
    axis: str
    parameter: str
    values: tuple[int, ...]
    variants: Mapping[str, Parameters]
    largest: Mapping[str, int] = field(default_factory=dict)
    seeds: float = 0.6


METHODS: dict[str, Parameters] = {
    f"{split}, {update}".replace("_", " "): {**BASE, "split_method": split, "update": update}
    for split in ("histogram", "partially_random", "totally_random")
    for update in ("averaging", "gradient", "newton")
}
SWEEPS: dict[str, Sweep] = {
    "methods": Sweep(
        title="split method and update over the number of trees",
        axis="trees",
        parameter="n_estimators",
        values=(5, 10, 25, 50, 100, 200),
        variants=METHODS,
        largest={name: 50 for name in METHODS if name.startswith("histogram")},
        seeds=0.4,
    ),
    "candidates": Sweep(
        title="candidates over how many there are, 256 public steps a feature",
        axis="candidates a feature",
        parameter="n_candidates",
        values=(4, 8, 16, 32, 64),
        variants={
            rule.replace("_", " "): {**BASE, "candidates": rule, "max_bins": 256}
            for rule in ("uniform", "log", "quantiles", "iterative_hessian")
        },
        largest={"quantiles": 32},
    ),
    "batches": Sweep(
        title=f"trees that share gradients, of {MANY_TREES}",
        axis=f"trees a batch, of {MANY_TREES}",
        parameter="trees_per_batch",
        values=(1, 5, 10, 25, 34, 50, 75, 100),
        variants={
            "tr_newton": {**BASE, "n_estimators": MANY_TREES},
            "tr_newton, recalibrated": {**BASE, "n_estimators": MANY_TREES, "recalibrate": True},
            "tr_batched_ih_ebm": {"preset": "tr_batched_ih_ebm", "n_estimators": MANY_TREES},
        },
    ),
    "interactions": Sweep(
        title="features a tree",
        axis="features a tree",
        parameter="features_per_tree",
        values=(1, 2, 3, 5, 8, 14, 23),
        variants={
            "windows of neighbours": {**BASE, "feature_cycle": "windows"},
            "all combinations in turn": {**BASE, "feature_cycle": "combinations"},
            "random": {**BASE, "feature_cycle": "random"},
            "recommended, windows": {"preset": "recommended"},
        },
    ),
}


def allowed(sweep: Sweep, variant: str, data: data_sets.Data) -> list[int]:
    """The values that a variant is measured at: no more features a tree than there are, and no tree that takes long."""
    most = sweep.largest.get(variant, sweep.values[-1])
    if sweep.parameter == "features_per_tree":
        most = min(most, data.X.shape[1])
    return [value for value in sweep.values if value <= most]


def swept(sweep: Sweep, scale: Scale) -> Found:
    """Every variant at every value, on every data set, as plain values."""
    found: Found = {}
    for name in DATA:
        data = scale.data(name)
        splits = scale.splits(SYSTEM, data.rows, sweep.seeds)
        rows = []
        for variant, parameters in sweep.variants.items():
            cells = []
            for value in allowed(sweep, variant, data):
                given = {
                    "expected_rows": data.rows, "delta": DELTAS[name], **parameters, sweep.parameter: value,
                }  # fmt: skip

                def make(data: data_sets.Data = data, given: Parameters = given) -> Any:
                    return SYSTEM.model(data, EPSILON, given)

                title = f"{name}: {variant}, {value} {sweep.axis}"
                cells.append({"at": value, **cell(cross_validated(data, make, splits, title))})
            rows.append({"name": variant, "cells": cells})
        found[name] = {
            "measures": measures(data),
            "rows_columns": data.X.shape,
            "epsilon": EPSILON,
            "splits": len(splits),
            "rows": rows,
        }
    return found


def print_sweep(sweep: Sweep, found: Mapping[str, Any], console: Console) -> None:
    """A table for each data set: variants by values."""
    for name, study in found.items():
        table = Table(
            title=f"{name}: {sweep.title}; {' / '.join(study['measures'])}, epsilon {study['epsilon']:g}, delta 1/n, "
            f"{study['splits']} splits"
        )
        values = sorted({entry["at"] for row in study["rows"] for entry in row["cells"]})
        table.add_column(sweep.axis)
        for value in values:
            table.add_column(str(value), justify="right")
        for row in study["rows"]:
            cells = {entry["at"]: " / ".join(map(short, entry["mean"])) for entry in row["cells"]}
            table.add_row(row["name"], *(cells.get(value, "") for value in values))
        console.print(table)
