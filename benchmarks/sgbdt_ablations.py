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

from benchmarks.measuring import FOLDS, Scores, cell, cross_validated, folds, measure, non_private, show
from benchmarks.sgbdt import ABALONE, ADULT, DELTA, Task
from benchmarks.sgbdt_streams import Batch, fit_with_arrival, spent_epsilons
from ledgerwood import datasets
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor

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
    paper: Parameters = {"preset": "paper", "subsample": 0.1}
    guess: Parameters = {"expected_rows": rows}
    return [
        Variant("defaults", "no filter, dynamic, clipped", guess),
        Variant("defaults", "GDP filter, 100 extra trees", {**guess, "extra_trees": EXTRA}),
        Variant(
            "defaults", "GDP filter, .6 T regular of T", {**guess, "n_estimators": some, "extra_trees": trees - some}
        ),
        Variant("defaults", "large gradients dropped", {**guess, "large_gradients": "drop"}),
        Variant("defaults", "static leaf noise", {**guess, "leaf_noise": "static"}),
        Variant("preset paper, rate .1", "no filter, dynamic, clipped", paper),
        Variant("preset paper, rate .1", "Renyi filter, 100 extra trees", {**paper, "extra_trees": EXTRA}),
        Variant("preset paper, rate .1", "large gradients dropped", {**paper, "large_gradients": "drop"}),
        Variant("preset paper, rate .1", "static leaf noise", {**paper, "leaf_noise": "static"}),
        Variant("no learning", "trivial (private mean)", TRIVIAL),
    ]


TRIVIAL: Parameters = {"n_estimators": 1, "max_depth": 0, "initial_score": "moments", "initial_share": 0.99}


def model_of(task: Task, data: datasets.Dataset, epsilon: float, parameters: Parameters) -> Any:
    """An estimator; static leaf noise without a damping of its own takes the one that the dynamic plan has."""
    kind = estimator(task)

    def made(parameters: Parameters) -> Any:
        return kind(epsilon=epsilon, delta=DELTA, schema=data.schema, **parameters)

    if parameters.get("leaf_noise") == "static" and parameters.get("preset") != "paper":
        dynamic = made({**parameters, "leaf_noise": "dynamic", "leaf_statistic": "moments"})
        parameters = {**parameters, "reg_lambda": dynamic.make_plan(data.schema).leaf_lambda}
    return made(parameters)


def ablation(task: Task, data: datasets.Dataset, seeds: int) -> list[dict[str, Any]]:
    """Mean and spread over folds of each variant at each epsilon."""
    rows = []
    splits = list(folds(len(data.y), seeds))
    for variant in variants(task, data.expected_rows):
        cells = []
        for epsilon in EPSILONS[task.name]:
            title = f"{task.name}: {variant.group}, {variant.name}, epsilon {epsilon:g}"

            def make(epsilon: float = epsilon, parameters: Parameters = variant.parameters) -> Any:
                return model_of(task, data, epsilon, parameters)

            cells.append({"epsilon": epsilon, **cell(cross_validated(data, make, splits, title))})
        rows.append({"group": variant.group, "name": variant.name, "cells": cells})
    return rows


# ----------------------------------------------------------------------------------------------------- late rows


def is_late(task: Task, data: datasets.Dataset) -> NDArray[np.bool_]:
    """Rows of the second batch: infants of the shells; people of 40 and more."""
    if task.name == "abalone":
        return np.asarray(data.X[:, 0] == "I")
    return np.asarray(data.X[:, 0].astype(float) >= 40.0)


@dataclass(frozen=True)
class Batches:
    """The rows for training by their numbers: those of the first batch, of the late one, and of both."""

    data: datasets.Dataset
    first: NDArray[np.intp]
    late: NDArray[np.intp]

    @property
    def both(self) -> NDArray[np.intp]:
        """First and late rows."""
        return np.concatenate((self.first, self.late))

    def rows(self, numbers: NDArray[np.intp]) -> Batch:
        """Features and labels."""
        return self.data.X[numbers], self.data.y[numbers]


Make = Callable[[Parameters], Any]


def at_once(make: Make, batches: Batches) -> Any:
    """T trees over all rows."""
    return make({}).fit(*batches.rows(batches.both))


def first_only(make: Make, batches: Batches) -> Any:
    """T trees over the first batch."""
    return make({}).fit(*batches.rows(batches.first))


def half_and_half(make: Make, batches: Batches) -> Any:
    """T trees, paid for together; the batch arrives after half of them."""
    model = make({})
    trees = model.make_plan(batches.data.schema).n_estimators
    return fit_with_arrival(model, batches.rows(batches.first), batches.rows(batches.both), early=trees // 2)


def twice_the_trees(make: Make, batches: Batches) -> Any:
    """2 T trees, paid for together; the batch arrives after T."""
    trees = make({}).make_plan(batches.data.schema).n_estimators
    model = make({"n_estimators": 2 * trees})
    return fit_with_arrival(model, batches.rows(batches.first), batches.rows(batches.both), early=trees)


def late_alone(make: Make, batches: Batches) -> Any:
    """T trees over the first rows, then T over the late ones: nobody takes part in more than T."""
    model = make({}).partial_fit(*batches.rows(batches.first), keys=batches.first)
    return model.partial_fit(*batches.rows(batches.late), keys=batches.late)


def filtered(make: Make, batches: Batches) -> Any:
    """T trees over the first rows, then T over the late ones and what the first ones have left."""
    model = make({}).partial_fit(*batches.rows(batches.first), keys=batches.first)
    return model.partial_fit(*batches.rows(batches.both), keys=batches.both)


STREAMS = {
    "all rows from the start, T trees": at_once,
    "first batch only, T trees": first_only,
    "no filter: T / 2 trees, the batch arrives, T / 2": half_and_half,
    "no filter: T trees, the batch arrives, T": twice_the_trees,
    "GDP filter: T trees, the batch arrives, T extra": filtered,
    "T trees, then T on the late rows alone": late_alone,
}


def streams(task: Task, data: datasets.Dataset, seeds: int) -> list[dict[str, Any]]:
    """Mean and spread over folds of each way to learn from a batch that arrives late; held-out rows are of both."""
    late = is_late(task, data)
    cells: dict[str, list[dict[str, Any]]] = {name: [] for name in STREAMS}
    for epsilon in EPSILONS[task.name]:

        def make(parameters: Parameters, epsilon: float = epsilon) -> Any:
            return model_of(task, data, epsilon, {"expected_rows": data.expected_rows, **parameters})

        scores: dict[str, list[Scores]] = {name: [] for name in STREAMS}
        splits = list(folds(len(data.y), seeds))
        for train, test in track(splits, description=f"{task.name}: streams, epsilon {epsilon:g}", transient=True):
            batches = Batches(data, train[~late[train]], train[late[train]])
            for name, learn in STREAMS.items():
                scores[name].append(measure(learn(make, batches), data.X[test], data.y[test]))
        for name, values in scores.items():
            cells[name].append({"epsilon": epsilon, **cell(np.array(values))})
    return [{"group": "late rows", "name": name, "cells": found} for name, found in cells.items()]


# --------------------------------------------------------------------------------------------------------- spent


def spent(task: Task, data: datasets.Dataset) -> dict[str, list[float]]:
    """Sorted epsilons that the rows have lost, at 201 even places, without and with extra trees."""
    found: dict[str, list[float]] = {}
    for name, extra in (("no filter", 0), (f"{EXTRA} extra trees", EXTRA)):
        # No row of a plan without extra trees is ever cut: its filter only counts.
        parameters = {"expected_rows": data.expected_rows, "filter": "gdp", "extra_trees": extra}
        plan = model_of(task, data, SPENT_EPSILON, parameters).make_plan(data.schema)
        epsilons = spent_epsilons(plan, (data.X, data.y), data.schema, places=201)
        found[name] = epsilons.tolist()
        found[name + ", mean"] = [float(epsilons.mean())]
    return found


# ------------------------------------------------------------------------------------------------- table and figure


def measured(task: Task, seeds: int) -> dict[str, Any]:
    """Everything of one data set, as plain values."""
    data = datasets.load(task.name)
    rows = ablation(task, data, seeds) + streams(task, data, seeds)
    plain = non_private(data, list(folds(len(data.y), 1))).mean(axis=0).tolist()
    return {"measures": task.measures, "splits": FOLDS * seeds, "rows": rows, "non_private": plain}


def print_table(name: str, found: dict[str, Any], console: Console) -> None:
    """Variants by epsilons."""
    title = f"{name}: {' / '.join(found['measures'])}, {found['splits']} folds, delta {DELTA:g}"
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
    """The figure: a row of panels for each data set, and the spent budgets below; what is far off is not drawn."""
    from matplotlib.figure import Figure  # not pyplot, which keeps every figure open

    limits = {"abalone": (2.1, 3.5), "adult": (0.78, 0.935)}
    groups = ("defaults", "preset paper, rate .1", "late rows")
    figure = Figure(figsize=(12, 10))
    axes = figure.subplots(3, 3)
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
            axis.set_ylim(*limits[name])
            axis.legend(fontsize=6, loc="upper right" if name == "abalone" else "lower right")
            axis.set_xlabel("epsilon")
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
    parser.add_argument("--seeds", type=int, default=3, help="of Abalone; Adult has a third of them")
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
