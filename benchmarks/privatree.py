"""PrivaTree: accuracy of one tree on twelve data sets beside other private trees, the studies of its paper, seconds.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.privatree [--seeds 5] [--data name ...] [--quick] [--peers]
     [--save file] [--figures folder] [--only utility|figure1|figure2|certified|runtime|speed|paper_rows]
     [--variants name ...]

Trees of depth 4, five folds a seed, `SecureRandom` throughout; seeds fix the folds only. Schemas are public knowledge
(`benchmarks.data_sets`). Trees that are not private at what they claim are marked UNSOUND, say why below the table, and
run on a fifth of the seeds. `--peers` runs diffprivlib in an environment of its own. `--quick` takes 1,000 rows, two
folds and two budgets. `--variants` measures some variants of PrivaTree anew, beside the stored rows of all others.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.tree import DecisionTreeClassifier

from benchmarks import data_sets, diffprivlib_rows, drawing, privatree_published, privatree_rows, privatree_studies
from benchmarks.baselines import BDPT, DEPTH, DPGDF, Baseline, RandomTree
from benchmarks.measuring import Split, cell, coded, folds, keep
from benchmarks.utility import WIDTH, Found, Scale
from ledgerwood import Categorical

EPSILONS = (0.01, 0.1, 0.5, 1.0)
DELTA = 1e-6
QUICK_ROWS = 1_000
FEW_ROWS = 1_000
"""Below which four times the seeds are run: folds of few rows scatter."""
VARIANTS = privatree_studies.VARIANTS
BASELINES: tuple[type[Baseline], ...] = (RandomTree, BDPT, DPGDF)


@dataclass(frozen=True)
class Task:
    """One data set; `fewer` seeds where a fit takes long."""

    name: data_sets.Name
    seeds: float = 1.0


TASKS = (
    Task("adult"),
    Task("bank"),
    Task("california_median"),
    Task("credit_default"),
    Task("electricity"),
    Task("magic_telescope"),
    Task("compas"),
    Task("breast_w", seeds=4.0),
    Task("mushroom"),
    Task("nursery_binary"),
    Task("nursery"),
    Task("vote", seeds=4.0),
)


def label_of(kind: type[Baseline]) -> str:
    """A row's name."""
    name = "random private tree" if kind is RandomTree else kind.__name__
    return name if kind.sound else f"UNSOUND {name}"


def has_categories(data: data_sets.Data) -> bool:
    """Whether some feature is categorical: DPGDF splits no other."""
    return any(isinstance(feature, Categorical) for feature in data.schema.features)


def accuracies(
    data: data_sets.Data, make: Callable[[], Any], splits: Sequence[Split], title: str
) -> NDArray[np.float64]:
    """Accuracy on the held-out rows of each split, shape (n_splits, 1)."""
    found = []
    for train, test in track(splits, description=title, transient=True):
        model = make().fit(data.X[train], data.y[train])
        found.append([float(np.mean(model.predict(data.X[test]) == data.y[test]))])
    return np.array(found)


def accuracy_row(
    data: data_sets.Data, make: Callable[[float], Any], epsilons: Sequence[float], splits: Sequence[Split], name: str
) -> Found:
    """A row of the tables: a cell for each budget."""
    cells = []
    for epsilon in epsilons:
        title = f"{data.name}: {name}, epsilon {epsilon:g}"
        cells.append({"epsilon": epsilon, **cell(accuracies(data, lambda e=epsilon: make(e), splits, title))})
    return {"name": name, "splits": len(splits), "cells": cells}


def measured(
    task: Task, epsilons: Sequence[float], scale: Scale, *, variants: Sequence[str], baselines: bool, peers: bool
) -> Found:
    """Accuracy of PrivaTree's variants, of the baselines and of what is not private, as plain values."""
    data = scale.data(task.name)
    splits = all_splits(data, scale, task.seeds)
    few = splits[: max(len(splits) // 5, 2)]
    start = time.perf_counter()
    rows = []
    for name in variants:
        parameters = VARIANTS[name]
        rows.append(
            accuracy_row(
                data, lambda e, p=parameters: privatree_studies.private_tree(data, e, p), epsilons, splits, name
            )
        )
    for kind in BASELINES if baselines else ():
        if kind is DPGDF and not has_categories(data):
            continue
        own = splits if kind.sound else few
        rows.append(accuracy_row(data, lambda e, k=kind: k(e, data.schema), epsilons, own, label_of(kind)))
    if peers:
        rows += diffprivlib_rows.rows(data, epsilons, few, DEPTH)
    plain = coded(data)
    tree = data_sets.Data(data.name, plain.X, data.y, data.schema)
    classes, counts = np.unique(data.y, return_counts=True)
    return {
        "measures": ("accuracy",),
        "rows_columns": data.X.shape,
        "classes": {str(label): int(count) for label, count in zip(classes, counts, strict=True)},
        "splits": len(splits),
        "rows": rows,
        "non_private": cell(accuracies(tree, lambda: DecisionTreeClassifier(max_depth=DEPTH), splits, "not private")),
        "trivial": cell(larger_class(data, splits)),
        "published": {
            name: {str(epsilon): text for epsilon, text in row.items()}
            for name, row in privatree_published.published(task.name).items()
        },
        "seconds": time.perf_counter() - start,
    }


def beside(stored: Mapping[str, Any], fresh: Mapping[str, Any]) -> Found:
    """What is stored of a data set, with the rows that were measured anew."""
    rows = {row["name"]: row for row in fresh["rows"]}
    return {**stored, "rows": [rows.get(row["name"], row) for row in stored["rows"]]}


def all_splits(data: data_sets.Data, scale: Scale, share: float) -> list[Split]:
    """Train and test rows of all folds of all seeds; two folds of a quick run."""
    splits = list(folds(data.rows, max(round(share * scale.seeds), 1)))
    return splits if scale.rows is None else splits[:2]


def larger_class(data: data_sets.Data, splits: Sequence[Split]) -> NDArray[np.float64]:
    """Accuracy of the larger class, not private either; shape (n_splits, 1)."""
    found = []
    for train, test in splits:
        classes, counts = np.unique(data.y[train], return_counts=True)
        found.append([float(np.mean(data.y[test] == classes[counts.argmax()]))])
    return np.array(found)


# ------------------------------------------------------------------------------------------------------------- tables


def table_of(name: str, found: Found) -> Table:
    """Methods by budgets; below them what is not private, and what others have published."""
    epsilons = [entry["epsilon"] for entry in found["rows"][0]["cells"]]
    rows, columns = found["rows_columns"]
    share = max(found["classes"].values()) / sum(found["classes"].values())
    shape = f"{rows:,} x {columns}, {len(found['classes'])} classes, the largest {share:.3f} of the rows"
    table = Table(title=f"PrivaTree on {name} ({shape}): accuracy, spread over splits in brackets")
    table.add_column("tree of depth 4")
    table.add_column("splits", justify="right")
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for row in found["rows"]:
        table.add_row(row["name"], str(row["splits"]), *(show(entry) for entry in row["cells"]))
    table.add_section()
    for key, label in (("trivial", "larger class"), ("non_private", "not private (scikit-learn)")):
        table.add_row(label, str(found["splits"]), *([show(found[key])] * len(epsilons)))
    table.add_section()
    for label, published in found["published"].items():
        table.add_row(label, "", *(published.get(str(epsilon), "") for epsilon in epsilons))
    return table


def show(entry: Mapping[str, Any]) -> str:
    """A mean and its spread."""
    return f"{entry['mean'][0]:.3f} ({entry['spread'][0]:.3f})"


def print_utility(found: Found, console: Console) -> None:
    """A table for each data set."""
    for name, task in found.items():
        console.print(table_of(name, task))
        if name in privatree_published.OTHER_ROWS:
            console.print(f"other rows than the paper, which has {privatree_published.OTHER_ROWS[name]}")
        console.print(f"5 folds, in {task['seconds']:.0f} s\n")


def print_notes(console: Console) -> None:
    """Why a baseline is sound, or is not."""
    for kind in BASELINES:
        console.print(f"{label_of(kind)}: {kind.reason}")
    for model, label in diffprivlib_rows.LABELS.items():
        console.print(f"{label}: {diffprivlib_rows.NOTES[model]}")


# ------------------------------------------------------------------------------------------------------------ commands

STUDIES = ("figure1", "figure2", "certified", "runtime", "speed", "paper_rows")


def figure1(scale: Scale, names: Sequence[str] = (), stored: Mapping[str, Any] | None = None) -> Found:
    """Accuracy against epsilon on Adult and COMPAS; of some variants, beside what is stored."""
    found = {}
    for task in TASKS:
        if task.name in privatree_studies.FIGURE1_DATA:
            epsilons = scale.epsilons(privatree_studies.FIGURE1_EPSILONS)
            variants = [name for name in privatree_studies.FIGURE1_VARIANTS if name in (names or VARIANTS)]
            entry = measured(task, epsilons, scale, variants=variants, baselines=not names, peers=False)
            if names and stored:
                entry = beside(stored[task.name], entry)
            found[task.name] = {**entry, "published": {}}
    return found


def run(study: str, scale: Scale) -> Found:
    """A study's values."""
    match study:
        case "figure1":
            return figure1(scale)
        case "figure2":
            return privatree_studies.figure2(scale)
        case "certified":
            return privatree_studies.certified(scale)
        case "runtime":
            return privatree_studies.runtime([task.name for task in TASKS], scale)
        case "paper_rows":
            return privatree_rows.study(scale)
    return privatree_studies.speed(scale)


def print_study(study: str, found: Found, console: Console) -> None:
    """Its table."""
    match study:
        case "figure1":
            print_utility(found, console)
        case "figure2":
            privatree_studies.print_shares(found, console)
        case "certified":
            privatree_studies.print_certified(found, console)
        case "runtime":
            privatree_studies.print_runtime(found, console)
        case "paper_rows":
            privatree_rows.print_rows(found, console)
        case _:
            privatree_studies.print_speed(found, console)


def drawn(task: Mapping[str, Any]) -> Found:
    """What a panel has room for: the other library's rows, and papers' figures of others' trees, are in the table."""
    others = set(diffprivlib_rows.LABELS.values())
    published = {label: row for label, row in task["published"].items() if "PrivaTree" in label or "authors" in label}
    return {**task, "rows": [row for row in task["rows"] if row["name"] not in others], "published": published}


def draw(study: str, found: Mapping[str, Any]) -> Any:
    """The picture of a study; None for a table."""
    match study:
        case "utility" | "figure1":
            return drawing.budgets({name: drawn(task) for name, task in found.items()})
        case "figure2":
            return privatree_studies.draw_shares(found)
        case "certified":
            return privatree_studies.draw_certified(found)
    return None


def main() -> None:
    """Measure, print, save, draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("utility", *STUDIES))
    parser.add_argument("--data", nargs="*", choices=[task.name for task in TASKS], help="of the utility tables")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--peers", action="store_true", help="run diffprivlib too")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    parser.add_argument("--figures", type=Path, help="draw the studies into this folder")
    parser.add_argument("--variants", nargs="*", choices=list(VARIANTS), default=[], help="beside what --save has")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    scale = Scale(given.seeds, QUICK_ROWS if given.quick else None)
    stored = json.loads(given.save.read_text()) if given.variants and given.save else {}
    variants = tuple(given.variants or VARIANTS)
    found: dict[str, Any] = {}
    if given.only in (None, "utility"):
        found["utility"] = {}
        for task in TASKS:
            if not given.data or task.name in given.data:
                epsilons = scale.epsilons(EPSILONS)
                values = measured(
                    task, epsilons, scale, variants=variants, baselines=not given.variants, peers=given.peers
                )
                if stored:
                    values = beside(stored["utility"][task.name], values)
                print_utility({task.name: values}, console)
                found["utility"][task.name] = values
                keep(given.save, {"utility": {task.name: values}})
        print_notes(console)
    for study in STUDIES:
        if given.only in (None, study):
            few = study == "figure1" and given.variants
            found[study] = figure1(scale, given.variants, stored.get(study)) if few else run(study, scale)
            print_study(study, found[study], console)
            keep(given.save, {study: found[study]})
    drawing.save(given.figures, "privatree", found, draw)


if __name__ == "__main__":
    main()
