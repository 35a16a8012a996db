"""S-GBDT with and without each of its parts, on Abalone and Adult: filter, leaf noise, large gradients, late rows.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.sgbdt_ablations [--seeds 3] [--save file] [--figure file]

Seeds fix the folds only; the noise is `SecureRandom` throughout. Adult has a third of the seeds, being ten times as
large. The spent budgets of rows (the paper's Figure 3) are those of Abalone, a public data set: of private rows nobody
may see them.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table as Printed

from benchmarks.sgbdt import ABALONE, ADULT, DELTA, Scores, Task, cross_validated, folds, measure, non_private, show
from benchmarks.sgbdt_streams import grown, spent_epsilons
from ledgerwood import datasets
from ledgerwood.curator import Table
from ledgerwood.ensemble import Ensemble
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.sgbdt import SGBDTPlan

EPSILONS = {"abalone": (0.1, 0.5, 1.0, 4.0), "adult": (0.1, 0.5, 1.0)}
EXTRA = 100
"""The paper's extra trees."""
SPENT_EPSILON = 0.5
Parameters = dict[str, Any]

PAPER = (
    ("Figure 5, dynamic or static leaf noise", "abalone, R2 at .53", ".457", ".41"),
    ("Figure 5, dynamic or static leaf noise", "adult, error at .55", "17.1 %", "19.4 % (the text has them exchanged)"),
    ("Figure 6, with or without filter", "abalone, R2 at .54", ".479", ".457"),
    ("Figure 7, streams with or without filter", "abalone, R2 at .55", ".40", ".34"),
    ("Figure 7, streams with or without filter", "adult, error at .54", "17.7 %", "19.6 %"),
)
"""What the paper reports: with the part, and without it."""


@dataclass(frozen=True)
class Variant:
    """One row of the table: what it belongs to, its name, and what it changes."""

    group: str
    name: str
    parameters: Parameters


def estimator(task: Task) -> type[SGBDTRegressor] | type[SGBDTClassifier]:
    """The estimator of the task's loss."""
    return SGBDTRegressor if task.name == "abalone" else SGBDTClassifier


def variants(task: Task, rows: int) -> list[Variant]:
    """Everything but the streams; the first is what the others are beside."""
    trees = 256 if task.name == "abalone" else 512
    some = round(0.6 * trees)
    paper: Parameters = {"preset": "paper", "sampling_rate": 0.1}
    guess: Parameters = {"expected_rows": rows}
    return [
        Variant("defaults", "no filter, dynamic, clipped", guess),
        Variant("defaults", "GDP filter, 100 extra trees", {**guess, "extra_trees": EXTRA}),
        Variant("defaults", "GDP filter, .6 T regular of T", {**guess, "n_trees": some, "extra_trees": trees - some}),
        Variant("defaults", "large gradients dropped", {**guess, "large_gradients": "drop"}),
        Variant("defaults", "static leaf noise", {**guess, "leaf_noise": "static"}),
        Variant("preset paper, rate .1", "no filter, dynamic, clipped", paper),
        Variant("preset paper, rate .1", "Renyi filter, 100 extra trees", {**paper, "extra_trees": EXTRA}),
        Variant("preset paper, rate .1", "large gradients dropped", {**paper, "large_gradients": "drop"}),
        Variant("preset paper, rate .1", "static leaf noise", {**paper, "leaf_noise": "static"}),
        Variant("no learning", "trivial (private mean)", TRIVIAL),
    ]


TRIVIAL: Parameters = {"n_trees": 1, "max_depth": 0, "initial_score": "moments", "initial_share": 0.99}


def model_of(task: Task, data: datasets.Dataset, epsilon: float, parameters: Parameters) -> Any:
    """An estimator; static leaf noise without a damping of its own takes the one that the dynamic plan has."""
    kind = estimator(task)

    def made(parameters: Parameters) -> Any:
        return kind(epsilon=epsilon, delta=DELTA, schema=data.schema, **parameters)

    if parameters.get("leaf_noise") == "static" and parameters.get("preset") != "paper":
        dynamic = made({**parameters, "leaf_noise": "dynamic", "leaf_statistic": "moments"})
        parameters = {**parameters, "l2_lambda": dynamic.make_plan(data.schema).leaf_damping}
    return made(parameters)


def ablation(task: Task, data: datasets.Dataset, seeds: int) -> list[dict[str, Any]]:
    """Mean and spread over folds of each variant at each epsilon."""
    rows = []
    for variant in variants(task, data.expected_rows):
        cells = []
        for epsilon in EPSILONS[task.name]:
            title = f"{task.name}: {variant.group}, {variant.name}, epsilon {epsilon:g}"

            def make(epsilon: float = epsilon, parameters: Parameters = variant.parameters) -> Any:
                return model_of(task, data, epsilon, parameters)

            cells.append(cell(epsilon, cross_validated(task, data, make, seeds, title)))
        rows.append({"group": variant.group, "name": variant.name, "cells": cells})
    return rows


def cell(epsilon: float, scores: NDArray[np.float64]) -> dict[str, Any]:
    """Plain values of the scores of all folds, shape (n, 2)."""
    return {"epsilon": epsilon, "mean": scores.mean(axis=0).tolist(), "spread": scores.std(axis=0).tolist()}


# ----------------------------------------------------------------------------------------------------- late rows


def is_late(task: Task, data: datasets.Dataset) -> NDArray[np.bool_]:
    """Rows of the second batch: infants of the shells; people of 40 and more."""
    if task.name == "abalone":
        return np.asarray(data.X[:, 0] == "I")
    return np.asarray(data.X[:, 0].astype(float) >= 40.0)


@dataclass(frozen=True)
class Stream:
    """A way to learn from a batch that arrives late.

    Args:
        name: of the row in the table.
        rounds, extra: trees that are paid for, and extra ones, in units of T.
        early: trees before the arrival, in units of T.
        tables: whose rows take part before and after it.
    """

    name: str
    rounds: float
    extra: float
    early: float
    tables: tuple[str, str]

    def ensemble(self, make_plan: Callable[[Parameters], SGBDTPlan], tables: dict[str, Table]) -> Ensemble:
        """What is learnt from first, late and all rows, which begin with the first ones."""
        whole = make_plan({}).rounds
        parameters: Parameters = {"n_trees": round(self.rounds * whole)}
        if self.extra > 0.0:
            parameters["extra_trees"] = round(self.extra * whole)
        before, after = (tables[name] for name in self.tables)
        joined = 0 if self.tables[1] == "late" else before.n_rows
        return grown(make_plan(parameters), before, after, early=round(self.early * whole), joined=joined).ensemble


STREAMS = (
    Stream("all rows from the start, T trees", 1.0, 0.0, 1.0, ("all", "all")),
    Stream("first batch only, T trees", 1.0, 0.0, 1.0, ("first", "first")),
    Stream("no filter: T / 2 trees, the batch arrives, T / 2", 1.0, 0.0, 0.5, ("first", "all")),
    Stream("no filter: T trees, the batch arrives, T", 2.0, 0.0, 1.0, ("first", "all")),
    Stream("GDP filter: T trees, the batch arrives, T / 2 extra", 1.0, 0.5, 1.0, ("first", "all")),
    Stream("GDP filter: T trees, the batch arrives, T extra", 1.0, 1.0, 1.0, ("first", "all")),
    # Each row takes part in T of the 2 T trees, whose rows are disjoint; the filter only counts.
    Stream("T trees, then T on the late rows alone", 1.0, 1.0, 1.0, ("first", "late")),
)


def streams(task: Task, data: datasets.Dataset, seeds: int) -> list[dict[str, Any]]:
    """Mean and spread over folds of each way to learn from a batch that arrives late; held-out rows are of both."""
    late = is_late(task, data)
    cells: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in STREAMS}
    for epsilon in EPSILONS[task.name]:
        scores: dict[str, list[Scores]] = {stream.name: [] for stream in STREAMS}
        splits = list(folds(len(data.y), seeds))
        for train, test in track(splits, description=f"{task.name}: streams, epsilon {epsilon:g}", transient=True):
            rows = {"first": train[~late[train]], "late": train[late[train]]}
            rows["all"] = np.concatenate((rows["first"], rows["late"]))

            def make(parameters: Parameters, epsilon: float = epsilon) -> Any:
                return model_of(task, data, epsilon, {"expected_rows": data.expected_rows, **parameters})

            model = make({"n_trees": 1}).fit(data.X[train[:2]], data.y[train[:2]])
            loss, bins = model.plan_.loss, model.plan_.bins
            tables = {
                name: Table.from_data(data.X[part], data.y[part], data.schema, loss=loss, bins=bins)
                for name, part in rows.items()
            }
            for stream in STREAMS:
                model.ensemble_ = stream.ensemble(lambda given: make(given).make_plan(data.schema), tables)
                scores[stream.name].append(measure(task, model, data.X[test], data.y[test]))
        for name, values in scores.items():
            cells[name].append(cell(epsilon, np.array(values)))
    return [{"group": "late rows", "name": name, "cells": found} for name, found in cells.items()]


# --------------------------------------------------------------------------------------------------------- spent


def spent(task: Task, data: datasets.Dataset) -> dict[str, list[float]]:
    """Sorted epsilons that the rows have lost, at 201 even places, without and with extra trees."""
    found: dict[str, list[float]] = {}
    for name, extra in (("no filter", 0), (f"{EXTRA} extra trees", EXTRA)):
        # No row of a plan without extra trees is ever cut: its filter only counts.
        parameters = {"expected_rows": data.expected_rows, "filter": "gdp", "extra_trees": extra}
        plan = model_of(task, data, SPENT_EPSILON, parameters).make_plan(data.schema)
        table = Table.from_data(data.X, data.y, data.schema, loss=plan.loss, bins=plan.bins)
        epsilons = spent_epsilons(plan, table, DELTA, places=201)
        found[name] = epsilons.tolist()
        found[name + ", mean"] = [float(epsilons.mean())]
    return found


# ------------------------------------------------------------------------------------------------- table and figure


def measured(task: Task, seeds: int) -> dict[str, Any]:
    """Everything of one data set, as plain values."""
    data = datasets.load(task.name)
    rows = ablation(task, data, seeds) + streams(task, data, seeds)
    plain = non_private(task, data, 1).mean(axis=0).tolist()
    return {"measures": task.measures, "seeds": seeds, "rows": rows, "non_private": plain}


def print_table(name: str, found: dict[str, Any], console: Console) -> None:
    """Variants by epsilons."""
    title = f"{name}: {' / '.join(found['measures'])}, 5 folds x {found['seeds']} seeds, delta {DELTA:g}"
    table = Printed(title=title)
    table.add_column("settings")
    table.add_column("variant")
    for entry in found["rows"][0]["cells"]:
        table.add_column(f"epsilon {entry['epsilon']:g}", justify="right")
    group = ""
    for row in found["rows"]:
        if row["group"] != group:
            table.add_section()
        table.add_row(
            row["group"] if row["group"] != group else "", row["name"], *(show(c["mean"]) for c in row["cells"])
        )
        group = row["group"]
    console.print(table)
    console.print(f"not private: {show(found['non_private'])}\n")


def draw(found: dict[str, Any]) -> Any:
    """The figure: a row of panels for each data set, and the spent budgets below."""
    import matplotlib.pyplot as plt

    groups = ("defaults", "preset paper, rate .1", "late rows")
    figure, axes = plt.subplots(3, 3, figsize=(12, 10))
    for line, name in zip(axes, ("abalone", "adult"), strict=False):
        task = found[name]
        for axis, group in zip(line, groups, strict=True):
            for row in (row for row in task["rows"] if row["group"] == group):
                epsilons = [entry["epsilon"] for entry in row["cells"]]
                means = [entry["mean"][0] for entry in row["cells"]]
                style = "o-" if row["name"].startswith(("no filter", "all rows")) else "s--"
                axis.semilogx(epsilons, means, style, markersize=4, label=row["name"])
            axis.axhline(task["non_private"][0], color="gray", linewidth=1)
            axis.set_title(f"{name}: {group}", fontsize=9)
            axis.set_ylabel(task["measures"][0])
            axis.legend(fontsize=6)
        line[0].set_xlabel("epsilon")
    for axis in axes[2, 1:]:
        axis.remove()
    for name, values in found["spent"].items():
        if len(values) > 1:
            axes[2, 0].plot(np.linspace(0.0, 1.0, len(values)), values, label=name)
        else:
            axes[2, 0].axhline(values[0], linestyle=":", color="gray")
    axes[2, 0].set_xlabel("rows of Abalone, sorted")
    axes[2, 0].set_ylabel("spent epsilon (mean dotted)")
    axes[2, 0].legend(fontsize=7)
    figure.tight_layout()
    return figure


def main() -> None:
    """Measure, print, save, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file, for the documentation")
    parser.add_argument("--figure", type=Path, help="draw them into this file")
    arguments = parser.parse_args()
    console = Console(width=170)
    found: dict[str, Any] = {}
    for task, seeds in ((ABALONE, arguments.seeds), (ADULT, max(arguments.seeds // 3, 1))):
        found[task.name] = measured(task, seeds)
        print_table(task.name, found[task.name], console)
    found["spent"] = spent(ABALONE, datasets.load("abalone"))
    table = Printed(title="what the paper reports (its accounting, tuned on the test folds)")
    for column in ("part", "where", "with", "without"):
        table.add_column(column)
    for line in PAPER:
        table.add_row(*line)
    console.print(table)
    for name, values in found["spent"].items():
        if len(values) == 1:
            console.print(f"spent epsilon of Abalone's rows at budget {SPENT_EPSILON}: {name} {values[0]:.3f}")
    if arguments.save is not None:
        arguments.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if arguments.figure is not None:
        draw(found).savefig(arguments.figure)


if __name__ == "__main__":
    main()
