"""Tables of `benchmarks.boosting`, from stored scores: docs/benchmarks/utility."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import ttest_rel, wilcoxon

from benchmarks.boosting import ALL, EPSILONS, OURS, PLAIN
from benchmarks.measuring import HELD_OUT

Found = Mapping[str, Any]
WIDTH = 250
"""Of a console that shows a table without broken lines."""
ALPHA = 0.05
"""Of all comparisons of a study together, by Holm's method."""
TARGETS: dict[tuple[str, str], dict[str, float]] = {
    ("targets", "adult"): {"0.1": 0.895, "0.5": 0.908, "1": 0.913, "4": 0.916},
    ("targets", "abalone"): {"0.1": 2.63, "0.5": 2.46, "1": 2.37, "4": 2.22},
    ("tables", "pol"): {"0.1": 0.40, "0.5": 0.72, "1": 0.82, "4": 0.90},
    ("tables", "california_housing"): {"0.1": 0.60, "0.5": 0.69, "1": 0.72, "4": 0.76},
    ("tables", "magic_telescope"): {"0.1": 0.865, "0.5": 0.892, "1": 0.900, "4": 0.912},
    ("tables", "electricity"): {"0.1": 0.83, "0.5": 0.842, "1": 0.848, "4": 0.86},
}
"""What was aimed at, before it was measured, by study, table and epsilon."""
TARGET_SHARES = {"1": 0.85, "4": 0.92}
"""The share of the way from trivial to not private, in the median over all tables."""


def gain(ours: Sequence[float], other: Sequence[float], measure: str) -> tuple[float, float]:
    """Mean gain of ours over another model, split by split, and the two-sided p-value of Student's paired test.

    Models that were measured on fewer splits are compared on those that both have.
    """
    both = min(len(ours), len(other))
    found = (np.array(ours[:both]) - np.array(other[:both])) * (-1.0 if measure == "RMSE" else 1.0)
    if both < 2 or not found.std() > 0.0:
        return float(found.mean()), 1.0
    return float(found.mean()), float(ttest_rel(found, np.zeros_like(found)).pvalue)


def adjusted(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Holm's p-values of a family of tests."""
    found, least = {}, 0.0
    for rank, (key, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        least = max(least, min(1.0, (len(p_values) - rank) * p))
        found[key] = least
    return found


def targets(found: Found) -> Table:
    """What was aimed at beside what came out."""
    table = Table(title="mean (spread over splits), then the target, and whether the mean meets it")
    for heading in ("table", "measure", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)):
        table.add_column(heading)
    for (study, name), wanted in TARGETS.items():
        task = found.get(study, {}).get(name)
        if task is None:
            continue
        cells = []
        for epsilon, target in wanted.items():
            cell = task["models"].get(OURS, {}).get(epsilon)
            sign = -1.0 if task["measure"] == "RMSE" else 1.0
            if cell is None:
                cells.append(f"not measured, {target:g}")
                continue
            met = sign * (np.mean(cell["scores"]) - target) >= 0.0
            cells.append(f"{shown(cell)}, {target:g}: {'met' if met else 'MISSED'}")
        table.add_row(name, task["measure"], *cells)
    cells = []
    for epsilon in (f"{epsilon:g}" for epsilon in EPSILONS):
        own = [share for task in found["tables"].values() if (share := closed(task, OURS, epsilon)) is not None]
        target = TARGET_SHARES.get(epsilon, 0.0)
        verdict = f", {target:g}: {'met' if np.median(own) >= target else 'MISSED'}" if own and target else ""
        cells.append((f"{np.median(own):.3f}" if own else "") + verdict)
    table.add_row("all tables", "share, median", *cells)
    return table


def shown(cell: Found | None) -> str:
    """Mean, and the spread over splits."""
    if cell is None:
        return ""
    scores = cell["scores"]
    return f"{np.mean(scores):.3f} ({np.std(scores):.3f})"


def models_of(study: Found) -> list[str]:
    """All models that were measured on some table, the recommended one first, what is not private left out."""
    names = {name: None for task in study.values() for name, cells in task["models"].items() if cells}
    known = [name for name in ALL if name in names] + [name for name in names if name not in ALL]
    return [name for name in known if name != PLAIN]


def scores(study: Found, title: str) -> Iterator[Table]:
    """A table for each budget: tables by models."""
    models = models_of(study)
    for epsilon in budgets(study):
        table = Table(title=f"{title}, epsilon {epsilon}: mean (spread over splits)")
        for heading in ("table", "rows x columns", "measure", *models, PLAIN, "trivial"):
            table.add_column(heading, justify="left" if heading in {"table", "measure"} else "right")
        for name, task in study.items():
            rows, columns = task["rows_columns"]
            own = [shown(task["models"].get(model, {}).get(epsilon)) for model in models]
            plain = shown(task["models"].get(PLAIN, {}).get("0"))
            table.add_row(
                name, f"{rows:,} x {columns}", task["measure"], *own, plain, f"{task['trivial']:.3f}"
            )  # fmt: skip
        yield table


def budgets(study: Found) -> list[str]:
    """The budgets that some model was measured at, rising."""
    found = {epsilon for task in study.values() for cells in task["models"].values() for epsilon in cells}
    return [f"{epsilon:g}" for epsilon in EPSILONS if f"{epsilon:g}" in found]


def comparisons(study: Found) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Gain and p-value (before Holm) by (model, budget, table) of the recommended trees over each other model."""
    found = {}
    for name, task in study.items():
        ours = task["models"].get(OURS, {})
        for model, cells in task["models"].items():
            for epsilon, cell in cells.items():
                if model not in {OURS, PLAIN} and epsilon in ours:
                    found[model, epsilon, name] = gain(ours[epsilon]["scores"], cell["scores"], task["measure"])
    return found


def wins(study: Found, *, together: bool = True) -> Table:
    """Wins, ties and losses by model and budget.

    Args:
        study: of it.
        together: Holm's method over all cells; False: each comparison alone at 5 %, of which some are wrong by chance.
    """
    found = comparisons(study)
    alone = {key: p for key, (_, p) in found.items()}
    p_values = adjusted(alone) if together else alone
    family = f"Holm over all {len(found)} cells" if together else "each cell alone"
    table = Table(title=f"{OURS}: wins / ties / losses over tables (paired splits, {family}, {ALPHA:g})")
    table.add_column("beside")
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    for model in models_of(study)[1:]:
        cells = []
        for epsilon in epsilons:
            keys = [key for key in found if key[:2] == (model, epsilon)]
            sure = [np.sign(found[key][0]) if p_values[key] < ALPHA else 0.0 for key in keys]
            cells.append(f"{sure.count(1.0)} / {sure.count(0.0)} / {sure.count(-1.0)}" if keys else "")
        table.add_row(model, *cells)
    return table


def ahead(study: Found) -> Table:
    """On how many tables the mean score is ahead, and Wilcoxon's signed-rank test over tables (Demšar 2006)."""
    found = comparisons(study)
    table = Table(title=f"{OURS}: tables ahead / behind in the mean over splits (two-sided p by Wilcoxon over tables)")
    table.add_column("beside")
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    for model in models_of(study)[1:]:
        cells = []
        for epsilon in epsilons:
            gains = [gained for key, (gained, _) in found.items() if key[:2] == (model, epsilon)]
            p = float(wilcoxon(gains).pvalue) if len(gains) > 1 and any(gains) else 1.0
            signs = np.sign(gains).tolist()
            cells.append(f"{signs.count(1.0)} / {signs.count(-1.0)} ({p:.2g})" if gains else "")
        table.add_row(model, *cells)
    return table


def behind(study: Found) -> Table:
    """All cells where another model is ahead beyond chance, each comparison alone, the largest losses first."""
    found = comparisons(study)
    p_values = adjusted({key: p for key, (_, p) in found.items()})
    table = Table(title=f"where {OURS} are behind (paired splits, each cell alone, {ALPHA:g})")
    for heading in ("table", "epsilon", "behind", "by", "measure", "p", "p by Holm"):
        table.add_column(heading, justify="left" if heading in {"table", "behind", "measure"} else "right")
    for key, (gained, p) in sorted(found.items(), key=lambda pair: pair[1][0]):
        model, epsilon, name = key
        if gained < 0.0 and p < ALPHA:
            table.add_row(
                name, epsilon, model, f"{-gained:.3f}", study[name]["measure"], f"{p:.2g}", f"{p_values[key]:.2g}"
            )  # fmt: skip
    return table


def closed(task: Found, model: str, epsilon: str) -> float | None:
    """The share of the way from the trivial score to that without privacy; None where it was not measured."""
    cell, plain = task["models"].get(model, {}).get(epsilon), task["models"].get(PLAIN, {}).get("0")
    if cell is None or plain is None:
        return None
    trivial = task["trivial"]
    return float((np.mean(cell["scores"]) - trivial) / (np.mean(plain["scores"]) - trivial))


def shares(study: Found) -> Table:
    """The median over tables of `closed`."""
    table = Table(title="share of the way from trivial to not private: median over tables (least, largest)")
    table.add_column("model")
    table.add_column("tables", justify="right")
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    for model in models_of(study):
        cells = [str(sum(bool(task["models"].get(model)) for task in study.values()))]
        for epsilon in epsilons:
            own = [share for task in study.values() if (share := closed(task, model, epsilon)) is not None]
            cells.append(f"{np.median(own):.2f} ({min(own):.2f}, {max(own):.2f})" if own else "")
        table.add_row(model, *cells)
    return table


def levers(study: Found) -> Table:
    """What each lever gives: the mean over tables of what is lost without it."""
    table = Table(title="what is lost without a lever: mean over tables of AUC or R2 (standard error)")
    table.add_column("without")
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    names = {name: None for task in study.values() for name in task["models"]}
    whole, *others = names
    for name in others:
        cells = []
        for epsilon in epsilons:
            lost = [
                np.mean(task["models"][whole][epsilon]["scores"]) - np.mean(task["models"][name][epsilon]["scores"])
                for task in study.values()
                if epsilon in task["models"].get(name, {})
            ]
            cells.append(f"{np.mean(lost):+.3f} ({np.std(lost) / max(len(lost), 1) ** 0.5:.3f})" if lost else "")
        table.add_row(name, *cells)
    return table


def times(study: Found) -> Table:
    """CPU seconds of a fit."""
    table = Table(title="CPU seconds of a fit: median over splits, then over tables and budgets")
    for heading in ("model", "median", "least", "largest", "of the table", "at epsilon"):
        table.add_column(heading, justify="left" if heading in {"model", "of the table"} else "right")
    for model in [*models_of(study), PLAIN]:
        own = [
            (float(np.median(cell["seconds"])), name, epsilon)
            for name, task in study.items()
            for epsilon, cell in task["models"].get(model, {}).items()
            if cell["seconds"]
        ]
        if own:
            most, name, epsilon = max(own)
            seconds = [each[0] for each in own]
            last = "" if model == PLAIN else epsilon
            table.add_row(model, f"{np.median(seconds):.2f}", f"{min(seconds):.2f}", f"{most:.2f}", name, last)
    return table


def growing(found: Found) -> Table:
    """Scores over training rows."""
    curves = by_rows(found)
    models = list(dict.fromkeys(model for points in curves.values() for model in points))
    table = Table(title="score by training rows, epsilon 1: mean (spread over splits)")
    for heading in ("table", "rows", *models):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    for name, points in curves.items():
        for rows in sorted({rows for own in points.values() for rows, _ in own}):
            cells = [next((shown(cell) for at, cell in points.get(m, []) if at == rows), "") for m in models]
            table.add_row(name, f"{rows:,}", *cells)
    return table


def by_rows(found: Found) -> dict[str, dict[str, list[tuple[int, Found]]]]:
    """By table and model: training rows and scores; the last point has all training rows, from the study of tables."""
    curves: dict[str, dict[str, list[tuple[int, Found]]]] = {}
    for task_name, task in found.get("rows", {}).items():
        name, _, text = task_name.rpartition(", ")
        rows = int(text.removesuffix(" rows").replace(",", ""))
        for model, cells in task["models"].items():
            for cell in cells.values():
                curves.setdefault(name, {}).setdefault(model, []).append((rows, cell))
    for name, points in curves.items():
        whole = found["tables"].get(name)
        for model, own in points.items() if whole else ():
            cell = whole["models"].get(model, {}).get("0" if model == PLAIN else "1")
            if cell is not None:
                own.append((whole["rows_columns"][0] - round(HELD_OUT * whole["rows_columns"][0]), cell))
            own.sort(key=lambda pair: pair[0])
    return curves
