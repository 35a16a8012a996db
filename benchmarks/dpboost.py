"""DPBoost: utility on ten data sets, the studies of its paper, and speed; each one command with a table and a picture.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.dpboost [--seeds 5] [--data name ...] [--quick] [--save file]
     [--figures folder] [--only utility|studies|figure2|figure4|figure5|figure6|convergence|table2|table3|speed]

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
from benchmarks.utility import WIDTH, Parameters, Scale, System, Task, measured, print_utility
from ledgerwood.trainers import DPBoostClassifier, DPBoostRegressor

DELTA = 1e-5
EPSILONS = dpboost_studies.EPSILONS
FEW_EPSILONS = (1.0, 4.0, 10.0)
QUICK_ROWS, QUICK_TREES = 1_000, 4
TREES, DEPTH, RATE, LAMBDA = 50, 6, 0.1, 0.1
"""The paper's."""
LAST_HALVING = 40
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


def study_variants(trees: int) -> dict[str, Mapping[str, Parameters]]:
    """What each study compares; curves have so many trees."""
    # Halves of halves leave nobody to a later tree: as in the paper, PARA ends early.
    last = min(trees, LAST_HALVING)
    convergence: dict[str, Parameters] = {
        f"paper, ensembles of {size}": {**PURE["paper"], "n_estimators": trees, "trees_per_ensemble": size}
        for size in dpboost_studies.CONVERGENCE
    }
    convergence[f"para, {last} trees"] = {**PURE["para"], "n_estimators": last, "trees_per_ensemble": last}
    convergence["seq"] = {**PURE["seq"], "n_estimators": trees}
    return {
        "budgets": {name: PURE[name] for name in ("paper", "para", "seq")},
        "convergence": convergence,
        "clipping": {"paper": PURE["paper"], "paper, no leaf clipping": {**PURE["paper"], "geometric_clipping": False}},
        "timing": {"paper": PURE["paper"], "paper, grid-less": {**PURE["paper"], **GRIDLESS}, "defaults": {}},
        "filtering": {"filtered": PURE["paper"]},
    }


STUDIES = (*dpboost_studies.ENSEMBLES, "convergence", "figure4", "table2", "table3")


def draw(study: str, found: Mapping[str, Any]) -> Any:
    """The picture of a study; None for a table."""
    if study == "convergence":
        return drawing.curves(found)
    return None if study.startswith("table") else drawing.budgets(found)


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
    trees = QUICK_TREES if given.quick else dpboost_studies.TREES
    studies = [study for study in STUDIES if given.only in (None, "studies", study)]
    found: dict[str, Any] = {}
    if given.only in (None, "utility"):
        found["utility"] = {}
        for task in TASKS:
            if not given.data or task.name in given.data:
                entry = {task.name: measured(SYSTEM, task, VARIANTS, scale)}
                print_utility(SYSTEM, entry, console)
                found["utility"] |= entry
                keep(given.save, {"utility": entry})
    for study in studies:
        found[study] = dpboost_studies.run(SYSTEM, study, study_variants(trees), scale, console)
        keep(given.save, {study: found[study]})
    if given.only in (None, "speed"):
        found["speed"] = speed_table(console, quick=given.quick)
        keep(given.save, {"speed": found["speed"]})
    drawing.save(given.figures, "dpboost", found, draw)


if __name__ == "__main__":
    main()
