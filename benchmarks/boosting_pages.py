"""Tables and pictures of `benchmarks.boosting`, from stored scores: docs/benchmarks/utility."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import ttest_rel

from benchmarks.boosting import EPSILONS, OURS, PLAIN
from benchmarks.drawing import MARKERS, panels

Found = Mapping[str, Any]
ALPHA = 0.05
"""Of all comparisons of one table together, by Holm's method."""


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


def shown(cell: Found | None) -> str:
    """Mean, and the spread over splits."""
    if cell is None:
        return ""
    scores = cell["scores"]
    return f"{np.mean(scores):.3f} ({np.std(scores):.3f})"


def models_of(study: Found) -> list[str]:
    """All models that were measured on some table, the recommended one first, what is not private left out."""
    names = {name: None for task in study.values() for name, cells in task["models"].items() if cells}
    return sorted((name for name in names if name != PLAIN), key=lambda name: name != OURS)


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


def wins(study: Found) -> Table:
    """Wins, ties and losses by model and budget."""
    found = comparisons(study)
    p_values = adjusted({key: p for key, (_, p) in found.items()})
    table = Table(title=f"{OURS}: wins / ties / losses over tables (paired splits, Holm over all cells, {ALPHA:g})")
    table.add_column("beside")
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    for model in models_of(study)[1:]:
        cells = []
        for epsilon in epsilons:
            keys = [key for key in found if key[:2] == (model, epsilon)]
            sure = [np.sign(found[key][0]) if p_values[key] < ALPHA else 0.0 for key in keys]
            cells.append(f"{sure.count(1.0)} / {sure.count(0.0)} / {sure.count(-1.0)}")
        table.add_row(model, *cells)
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
    epsilons = budgets(study)
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon}", justify="right")
    for model in models_of(study):
        cells = []
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
    """Median seconds of a fit."""
    table = Table(title="seconds of a fit, median over splits, least and largest over tables and budgets")
    for heading in ("model", "median", "least", "largest"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for model in models_of(study):
        own = [cell["seconds"] for task in study.values() for cell in task["models"].get(model, {}).values()]
        if own:
            table.add_row(model, f"{np.median(own):.2f}", f"{min(own):.2f}", f"{max(own):.2f}")
    return table


def draw(study: Found) -> Any:
    """Score against epsilon, a panel a table, with the models beside it, trivial and not private."""
    figure, axes = panels(len(study))
    for axis, (name, task) in zip(axes, study.items(), strict=True):
        for place, model in enumerate(models_of(study)):
            cells = task["models"].get(model, {})
            if not cells:
                continue
            at = sorted(cells, key=float)
            means, spreads = ([float(f(cells[e]["scores"])) for e in at] for f in (np.mean, np.std))
            axis.errorbar(
                [float(e) for e in at], means, spreads, label=model, marker=MARKERS[place % len(MARKERS)],
                linewidth=2.0 if model == OURS else 0.8, markersize=4, capsize=2,
            )  # fmt: skip
        plain = task["models"].get(PLAIN, {}).get("0")
        best = task["trivial"] if plain is None else float(np.mean(plain["scores"]))
        axis.axhline(best, color="black", linewidth=0.8, linestyle="--", label="not private")
        axis.axhline(task["trivial"], color="gray", linewidth=0.8, linestyle=":", label="trivial")
        way = best - task["trivial"]
        axis.set_ylim(*sorted((task["trivial"] - 0.15 * way, best + 0.05 * way)))
        axis.set_xscale("log")
        axis.set_xticks([float(e) for e in budgets(study)], budgets(study))
        axis.minorticks_off()
        axis.set_xlabel("epsilon")
        axis.set_ylabel(task["measure"])
        axis.set_title(name, fontsize=9)
    if axes:
        axes[0].legend(fontsize=6)
    figure.tight_layout()
    return figure
