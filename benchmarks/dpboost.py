"""DPBoost: utility on ten data sets, Tables 2 and 3 of its paper, and speed; its figures: `benchmarks.reproduce`.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.dpboost [--seeds 5] [--data name ...] [--quick] [--save file]
     [--figures folder] [--only utility|studies|table2|table3|speed]

Seeds fix the folds only; the noise is `SecureRandom` throughout. Abalone has all seeds for the defaults and the paper's
preset, a fifth of them for the others, and so have the other sets. Schemas are public knowledge
(`benchmarks.data_sets`). `--quick` takes 1,000 rows, two folds and two budgets.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from benchmarks import data_sets, dpboost_studies, drawing
from benchmarks.greedy_speed import speed_table
from benchmarks.measuring import folds, keep
from benchmarks.utility import WIDTH, Found, Parameters, Scale, System, Task, measured, print_utility
from ledgerwood.trainers import DPBoostClassifier, DPBoostRegressor

DELTA = 1e-5
EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
FEW_EPSILONS = (1.0, 4.0, 10.0)
QUICK_ROWS = 1_000
TREES, DEPTH, RATE, LAMBDA = 50, 6, 0.1, 0.1
"""The paper's."""
GRIDLESS: Parameters = {"candidates": "gridless", "max_bins": 60_000}

SYSTEM = System(
    name="DPBoost",
    regressor=DPBoostRegressor,
    classifier=DPBoostClassifier,
    splits=folds,
    beside={
        "max_iter": TREES, "max_depth": DEPTH, "max_leaf_nodes": None, "learning_rate": RATE,
        "l2_regularization": LAMBDA, "early_stopping": False,
    },
)  # fmt: skip

PURE: dict[str, Parameters] = {
    "defaults": {},
    "paper": {"preset": "paper"},
    "enhanced": {"preset": "enhanced"},
    "para": {"preset": "para"},
    "seq": {"preset": "seq"},
}
VARIANTS: dict[str, Parameters] = {
    **PURE,
    **{f"{name}, delta {DELTA:g}": {**parameters, "delta": DELTA} for name, parameters in PURE.items()},
}
GAIN = ("defaults", f"defaults, delta {DELTA:g}", "paper", f"paper, delta {DELTA:g}")
TASKS = (
    Task(
        name="abalone",
        epsilons=EPSILONS,
        variants=("defaults", "paper"),
        fewer=tuple(name for name in VARIANTS if name not in {"defaults", "paper"}),
        published={
            "target, as published": {1.0: "9.3", 2.0: "4.3", 10.0: "2.7"},
            "target, with sound improvements": {1.0: "3.2", 2.0: "2.9", 10.0: "2.6"},
            "official code (its accounting)": {1.0: "9.33", 2.0: "4.36", 4.0: "3.26", 10.0: "2.69"},
        },
    ),
    Task(name="adult", epsilons=FEW_EPSILONS, variants=GAIN, seeds=0.2),
    Task(name="a9a", epsilons=FEW_EPSILONS, variants=GAIN, seeds=0.2),
    *(
        Task(name=name, epsilons=FEW_EPSILONS, variants=("defaults", "paper"), seeds=0.2)
        for name in data_sets.NAMES
        if name not in {"abalone", "adult", "a9a"}
    ),
)


TIMED: dict[str, Parameters] = {
    "paper": PURE["paper"],
    "paper, grid-less": {**PURE["paper"], **GRIDLESS},
    "defaults": {},
}
STUDIES = ("table2", "table3")


def study(name: str, scale: Scale) -> Found:
    """Table 2 or Table 3."""
    if name == "table2":
        return dpboost_studies.seconds_a_tree(SYSTEM, TIMED, scale)
    return dpboost_studies.rows_left_out(SYSTEM, PURE["paper"], scale)


def draw(study: str, found: Mapping[str, Any]) -> Any:
    """The picture of the utility; None for a table."""
    return drawing.budgets(found) if study == "utility" else None


def main() -> None:
    """Measure, print, save, draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("utility", "studies", *STUDIES, "speed"))
    parser.add_argument("--data", nargs="*", choices=get_args(data_sets.Name), help="data sets of the utility tables")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    parser.add_argument("--figures", type=Path, help="draw the studies into this folder")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    scale = Scale(given.seeds, QUICK_ROWS if given.quick else None)
    found: dict[str, Any] = {}
    if given.only in (None, "utility"):
        found["utility"] = {}
        for task in TASKS:
            if not given.data or task.name in given.data:
                entry = {task.name: measured(SYSTEM, task, VARIANTS, scale)}
                print_utility(SYSTEM, entry, console)
                found["utility"] |= entry
                keep(given.save, {"utility": entry})
    for name in STUDIES:
        if given.only in (None, "studies", name):
            found[name] = study(name, scale)
            shown = dpboost_studies.print_seconds if name == "table2" else dpboost_studies.print_left_out
            shown(found[name], console)
            keep(given.save, {name: found[name]})
    if given.only in (None, "speed"):
        found["speed"] = speed_table(console, quick=given.quick)
        keep(given.save, {"speed": found["speed"]})
    drawing.save(given.figures, "dpboost", found, draw)


if __name__ == "__main__":
    main()
