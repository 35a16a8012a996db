"""Pictures of `benchmarks.boosting`, from stored scores: docs/benchmarks/utility."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.boosting import ALL, OURS, PLAIN
from benchmarks.boosting_pages import budgets, by_rows, closed, models_of
from benchmarks.drawing import MARKERS, panels

Found = Mapping[str, Any]
SMALL_PANEL = (3.4, 2.7)
"""Width and height in inches, four in a line."""
BELOW, ABOVE, BEYOND = 0.12, 0.02, 1.06
"""How far a panel reaches below trivial and above the best one, and its vanishing point, in shares of the way."""


def style(model: str) -> dict[str, Any]:
    """A model's own colour and marker, the same in every picture."""
    place = ALL.index(model)
    ours = model == OURS
    return {
        "color": "black" if ours else f"C{place}", "marker": MARKERS[place % len(MARKERS)],
        "linewidth": 2.2 if ours else 0.9, "markersize": 4.5 if ours else 3.5, "zorder": 5 if ours else 2,
    }  # fmt: skip


def draw(study: Found) -> Any:
    """Score against epsilon, a panel a table, between trivial (below) and not private (above); best is up."""
    figure, axes = panels(len(study), most=4, size=SMALL_PANEL)
    for axis, (name, task) in zip(axes, study.items(), strict=True):
        for model in models_of(study):
            cells = task["models"].get(model, {})
            at = sorted(cells, key=float)
            means, spreads = ([float(f(cells[e]["scores"])) for e in at] for f in (np.mean, np.std))
            axis.errorbar([float(e) for e in at], means, spreads, label=model, capsize=2, **style(model))
        plain = task["models"].get(PLAIN, {}).get("0")
        best = task["trivial"] if plain is None else float(np.mean(plain["scores"]))
        sign = np.sign(best - task["trivial"]) or 1.0
        means = [float(np.mean(cell["scores"])) for cells in task["models"].values() for cell in cells.values()]
        bounded(axis, task["trivial"], best, sign * max(sign * each for each in (best, *means)))
        axis.set_xscale("log")
        axis.set_xticks([float(e) for e in budgets(study)], budgets(study))
        axis.minorticks_off()
        axis.set_ylabel(task["measure"], fontsize=8)
        axis.tick_params(labelsize=7)
        rows, columns = task["rows_columns"]
        axis.set_title(f"{name} ({rows:,} x {columns})", fontsize=8)
    shared_legend(figure, axes)
    return figure


def bounded(axis: Any, trivial: float, plain: float, best: float) -> None:
    """Lines of trivial and not private, and limits around them; the better score is up, also of an error.

    Scores are spaced by the logarithm of their distance to a point a little beyond the best one, so that those near
    it can be told apart.
    """
    axis.axhline(plain, color="gray", linewidth=1.0, linestyle="--", label=PLAIN)
    axis.axhline(trivial, color="gray", linewidth=1.0, linestyle=":", label="trivial")
    way = best - trivial
    if way == 0.0:
        return
    end = trivial + BEYOND * way

    def height(score: Any) -> Any:
        return -np.log(np.maximum((end - score) / way, 1e-3))

    def score_of(height: Any) -> Any:
        return end - way * np.exp(-height)

    axis.set_yscale("function", functions=(height, score_of))
    axis.set_ylim(trivial - BELOW * way, best + ABOVE * way)
    ticks = trivial + way * np.array([0.0, 0.5, 0.75, 0.9, 1.0])
    axis.set_yticks(ticks, [f"{tick:.2f}" for tick in ticks])


def shared_legend(figure: Any, axes: list[Any]) -> None:
    """One legend above all panels."""
    labels: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
    figure.tight_layout()
    height = figure.get_size_inches()[1]
    figure.legend(
        labels.values(), labels.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=min(5, len(labels)),
        fontsize=9, frameon=False, borderaxespad=0.02 * height,
    )  # fmt: skip


def draw_shares(study: Found) -> Any:
    """The share of the way from trivial to not private against epsilon: the median over tables, and its quartiles."""
    (figure, (axis,)) = panels(1, size=(7.0, 4.0))
    for model in models_of(study):
        at, middle = [], []
        for epsilon in budgets(study):
            own = [share for task in study.values() if (share := closed(task, model, epsilon)) is not None]
            if own:
                at.append(float(epsilon))
                middle.append(np.quantile(own, (0.25, 0.5, 0.75)))
        if at:
            low, median, high = np.array(middle).T
            axis.plot(at, median, label=model, **style(model))
            if model == OURS:
                axis.fill_between(at, low, high, color="black", alpha=0.12, linewidth=0)
    axis.set_ylim(0.0, 1.02)
    axis.set_xscale("log")
    axis.set_xticks([float(e) for e in budgets(study)], budgets(study))
    axis.minorticks_off()
    axis.set_xlabel("epsilon")
    axis.set_ylabel("share of the way, median over tables")
    axis.legend(fontsize=7, loc="lower right", ncol=2)
    figure.tight_layout()
    return figure


def draw_rows(found: Found) -> Any:
    """Score against training rows at epsilon 1, a panel a table; None where nothing was measured."""
    curves = by_rows(found)
    if not curves:
        return None
    figure, axes = panels(len(curves), size=(4.2, 3.2))
    for axis, (name, points) in zip(axes, curves.items(), strict=True):
        task = next(task for each, task in found["rows"].items() if each.startswith(f"{name}, "))
        shown = []
        for model, own in points.items():
            at = [rows for rows, _ in own]
            means, spreads = ([float(f(cell["scores"])) for _, cell in own] for f in (np.mean, np.std))
            if model == PLAIN:
                axis.plot(at, means, color="gray", linestyle="--", label=PLAIN)
            else:
                axis.errorbar(at, means, spreads, label=model, capsize=2, **style(model))
            shown += means
        axis.axhline(task["trivial"], color="gray", linewidth=1.0, linestyle=":", label="trivial")
        way = max(shown) - task["trivial"]
        axis.set_ylim(task["trivial"] - BELOW * way, max(shown) + 0.06 * way)
        axis.set_xscale("log")
        ticks = sorted({rows for own in points.values() for rows, _ in own})
        axis.set_xticks(ticks, [f"{rows:,}" for rows in ticks], fontsize=7)
        axis.minorticks_off()
        axis.set_xlabel("training rows", fontsize=8)
        axis.set_ylabel(task["measure"], fontsize=8)
        axis.set_title(name, fontsize=9)
    shared_legend(figure, axes)
    return figure
