"""The federated framework: every preset on three data sets, the studies of its paper, messages, seconds a tree.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.federated [--seeds 5] [--data name ...] [--quick] [--save file]
     [--figures folder] [--only utility|studies|methods|candidates|batches|interactions|clients|skellam|speed]

30 % of the rows are held out, by seed; the noise is `SecureRandom` throughout, but where clients are compared with one
table, bit for bit. Schemas are public knowledge (`benchmarks.data_sets`), and so are the numbers of rows: the paper's
delta is 1/n of the rows that are trained on, which here is a constant that was declared beforehand. `--quick` takes
1,000 rows and two budgets.
"""

import argparse
import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import drawing, federated_clients, federated_speed, federated_studies
from benchmarks.federated_published import ACCURACY_TARGETS, CREDIT_1, EPSILONS, TARGETS, published
from benchmarks.federated_studies import DELTAS, ROWS, SYSTEM
from benchmarks.measuring import keep
from benchmarks.utility import WIDTH, Found, Parameters, Scale, Task, measured, print_utility
from ledgerwood.trainers.federated.presets import PAPER, Preset

QUICK_ROWS = 1_000
PRESETS: tuple[Preset, ...] = ("recommended", *(name for name in CREDIT_1), PAPER)  # type: ignore[arg-type]
"""All: the authors' own constants last, after the same components with ours."""
OWN_DELTAS = {"recommended": 5e-8, "dp_ebm": 1e-5}
"""Of S-GBDT's paper, and of the peer beside `dp_ebm`; all others have the paper's 1/n."""
TASKS = tuple(Task(name, EPSILONS, (), published=published(name)) for name in ROWS)
SWEEPS = federated_studies.SWEEPS
STUDIES = (*SWEEPS, "clients", "skellam", "speed")


def variants(name: str) -> dict[str, Parameters]:
    """Every preset by the name of its row."""
    found: dict[str, Parameters] = {}
    for preset in PRESETS:
        own = OWN_DELTAS.get(preset)
        label = "1/n" if own is None else f"{own:.0e}".replace("e-0", "e-")
        found[f"{preset}, delta {label}"] = {"preset": preset, "delta": DELTAS[name] if own is None else own}
    return found


def preset_of(row: Mapping[str, Any]) -> str:
    """The preset of a row of the tables."""
    return str(row["name"]).split(",", maxsplit=1)[0]


def utility(name: str, scale: Scale) -> Found:
    """Every preset on one data set."""
    own = variants(name)
    task = next(task for task in TASKS if task.name == name)
    return measured(SYSTEM, Task(task.name, EPSILONS, tuple(own), published=task.published), own, scale)


# ------------------------------------------------------------------------------------------------ beside what was asked


def scores(task: Mapping[str, Any], place: int) -> dict[str, dict[float, float]]:
    """By preset and epsilon the mean of a measure: 0 for AUC, 1 for accuracy."""
    return {preset_of(row): {entry["epsilon"]: entry["mean"][place] for entry in row["cells"]} for row in task["rows"]}


def standard_errors(task: Mapping[str, Any], place: int) -> dict[str, dict[float, float]]:
    """By preset and epsilon the standard error of a measure's mean over splits."""
    return {
        preset_of(row): {
            entry["epsilon"]: entry["spread"][place] / math.sqrt(max(row["splits"] - 1, 1)) for entry in row["cells"]
        }
        for row in task["rows"]
    }


def verdicts(task: Mapping[str, Any]) -> list[tuple[str, str, float, float, float]]:
    """Adult's targets: (preset, measure, epsilon, wanted, mean over splits)."""
    auc, accuracy = scores(task, 0), scores(task, 1)
    found = [
        (preset, "AUC", epsilon, wanted, auc[preset][epsilon])
        for preset, row in TARGETS.items()
        for epsilon, wanted in zip(EPSILONS, row, strict=True)
        if epsilon in auc[preset]
    ]
    for (preset, epsilon), wanted in ACCURACY_TARGETS.items():
        if epsilon in accuracy[preset]:
            found.append((preset, "accuracy", epsilon, wanted, accuracy[preset][epsilon]))
    return found


def print_targets(task: Mapping[str, Any], console: Console) -> None:
    """What was asked on Adult, and whether it is met; the standard error is that of a mean over splits."""
    table = Table(title="Adult: what was asked of the presets")
    for column in ("preset", "measure", "epsilon", "asked", "found", "standard error", ""):
        table.add_column(column, justify="left" if column in {"preset", "measure", ""} else "right")
    errors = (standard_errors(task, 0), standard_errors(task, 1))
    for preset, measure, epsilon, wanted, found in verdicts(task):
        error = errors[measure == "accuracy"][preset][epsilon]
        verdict = "met" if found >= wanted else f"short by {wanted - found:.4f}"
        table.add_row(preset, measure, f"{epsilon:g}", f"{wanted:.3f}", f"{found:.4f}", f"{error:.4f}", verdict)
    console.print(table)


def reversed_pairs(task: Mapping[str, Any], epsilon: float) -> tuple[list[tuple[str, str]], int]:
    """Pairs (lower, higher) of the paper's order that stand the other way here, and how many pairs there are.

    Pairs that the paper has within .005 have no order; here a difference counts beyond two of its standard errors.
    """
    means, errors = scores(task, 0), standard_errors(task, 0)
    place = EPSILONS.index(epsilon)
    ordered = [
        (a, b) if CREDIT_1[a][place] < CREDIT_1[b][place] else (b, a)
        for a, b in combinations(CREDIT_1, 2)
        if abs(CREDIT_1[a][place] - CREDIT_1[b][place]) > 0.005
    ]
    turned = [
        (low, high)
        for low, high in ordered
        if means[low][epsilon] - means[high][epsilon] > 2.0 * math.hypot(errors[low][epsilon], errors[high][epsilon])
    ]
    return turned, len(ordered)


def print_order(task: Mapping[str, Any], console: Console) -> None:
    """The paper's presets in its order on Credit 1, beside what they reach on Credit 2."""
    auc = scores(task, 0)
    epsilons = [epsilon for epsilon in EPSILONS if epsilon in auc["tr_batched_ih_ebm"]]
    table = Table(
        title="AUC: the authors' on Credit 1 (other rows, own accounting), ours on Credit 2; rank in brackets"
    )
    table.add_column("preset")
    for epsilon in epsilons:
        table.add_column(f"Credit 1, {epsilon:g}", justify="right")
        table.add_column(f"Credit 2, {epsilon:g}", justify="right")
    cells: dict[str, list[str]] = {preset: [] for preset in sorted(CREDIT_1, key=lambda name: CREDIT_1[name][1])}
    for epsilon in epsilons:
        theirs = {preset: row[EPSILONS.index(epsilon)] for preset, row in CREDIT_1.items()}
        ours = {preset: auc[preset][epsilon] for preset in CREDIT_1}
        for preset, row in cells.items():
            for values in (theirs, ours):
                rank = 1 + sum(value > values[preset] for value in values.values())
                row.append(f"{values[preset]:.3f} ({rank})")
    for preset, row in cells.items():
        table.add_row(preset, *row)
    console.print(table)
    for epsilon in epsilons:
        turned, pairs = reversed_pairs(task, epsilon)
        names = "; ".join(f"{low} above {high}" for low, high in turned)
        console.print(
            f"epsilon {epsilon:g}: {len(turned)} of {pairs} ordered pairs stand the other way{': ' * bool(names)}"
            f"{names}"
        )
    console.print()


def print_found(found: Mapping[str, Any], console: Console) -> None:
    """The utility tables, with what was asked of Adult and the order on Credit 2."""
    for name, task in found.items():
        print_utility(SYSTEM, {name: task}, console)
        if name == "adult":
            print_targets(task, console)
        if name == "credit_default":
            print_order(task, console)


# ------------------------------------------------------------------------------------------------------------- commands


def run(study: str, scale: Scale) -> Found:
    """A study's values."""
    match study:
        case "clients":
            return federated_clients.clients(scale)
        case "skellam":
            return federated_clients.skellam(scale)
        case "speed":
            return federated_speed.speed(quick=scale.rows is not None)
    return federated_studies.swept(SWEEPS[study], scale)


def print_study(study: str, found: Mapping[str, Any], console: Console) -> None:
    """Its table."""
    match study:
        case "clients":
            federated_clients.print_clients(found, console)
        case "skellam":
            federated_clients.print_skellam(found, console)
        case "speed":
            federated_speed.print_speed(found, console)
        case _:
            federated_studies.print_sweep(SWEEPS[study], found, console)


def draw(study: str, found: Mapping[str, Any]) -> Any:
    """The picture of a study; None for a table."""
    if study == "utility":
        return drawing.budgets(found)
    return drawing.sweeps(SWEEPS[study].axis, found) if study in SWEEPS else None


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, save, draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("utility", "studies", *STUDIES))
    parser.add_argument("--data", nargs="*", choices=tuple(ROWS), help="data sets of the utility tables")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    parser.add_argument("--figures", type=Path, help="draw the studies into this folder")
    given = parser.parse_args(arguments)
    console = Console(width=WIDTH)
    scale = Scale(given.seeds, QUICK_ROWS if given.quick else None)
    found: dict[str, Any] = {}
    if given.only in (None, "utility"):
        found["utility"] = {}
        for name in ROWS:
            if not given.data or name in given.data:
                entry = {name: utility(name, scale)}
                print_found(entry, console)
                found["utility"] |= entry
                keep(given.save, {"utility": entry})
    for study in STUDIES:
        if given.only in (None, study) or (given.only == "studies" and study != "speed"):
            found[study] = run(study, scale)
            print_study(study, found[study], console)
            keep(given.save, {study: found[study]})
    drawing.save(given.figures, "federated", found, draw)


if __name__ == "__main__":
    main()
