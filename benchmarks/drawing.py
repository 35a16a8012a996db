"""The studies' figures, from stored values; matplotlib is imported when one is drawn."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Found = Mapping[str, Any]
WIDTH, HEIGHT = 4.4, 4.6
MARKERS = "osD^vPX"


def panels(count: int, *, most: int = 3, size: tuple[float, float] = (WIDTH, HEIGHT)) -> tuple[Any, list[Any]]:
    """A figure with panels side by side, at most `most` in a line; `size` is a panel's, in inches."""
    from matplotlib.figure import Figure  # not pyplot, which keeps every figure open

    columns = min(count, most)
    lines = -(-count // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * lines))
    axes = figure.subplots(lines, columns, squeeze=False)
    flat = list(axes.ravel())
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]


def legend(axis: Any) -> None:
    """Below the panel, where it hides nothing."""
    axis.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2)


def window(values: list[float], reference: tuple[float, float]) -> tuple[float, float]:
    """Limits that show the values, but no further from the trivial model than twice its own distance from the best."""
    trivial, best = reference
    far = trivial + 2.0 * (trivial - best)
    low, high = min(*values, trivial, best), max(*values, trivial, best)
    low, high = (low, min(high, far)) if trivial > best else (max(low, far), high)
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def budgets(found: Found) -> Any:
    """Score against epsilon, a panel a data set; the second score is in the tables."""
    figure, axes = panels(len(found))
    for axis, (name, task) in zip(axes, found.items(), strict=True):
        values = []
        for place, row in enumerate(task["rows"]):
            epsilons = [entry["epsilon"] for entry in row["cells"]]
            means = [entry["mean"][0] for entry in row["cells"]]
            spreads = [entry["spread"][0] for entry in row["cells"]]
            style = f"{MARKERS[place % len(MARKERS)]}{':' if row['name'].startswith('UNSOUND') else '-'}"
            axis.errorbar(epsilons, means, spreads, fmt=style, markersize=4, capsize=2, label=row["name"])
            values += means
        trivial, best = task["trivial"]["mean"][0], task["non_private"]["mean"][0]
        axis.axhline(best, color="gray", linewidth=1, label="not private")
        axis.axhline(trivial, color="gray", linewidth=1, linestyle=":", label="trivial")
        for mark, (label, row) in zip("x+*1", task["published"].items(), strict=False):
            points = {float(epsilon): found for epsilon, text in row.items() if (found := number(text)) is not None}
            axis.plot(list(points), list(points.values()), linestyle="none", marker=mark, color="k", label=label)
        axis.set_ylim(*window(values, (trivial, best)))
        axis.set_xscale("log")
        axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axis.minorticks_off()
        axis.set_xlabel("epsilon")
        axis.set_ylabel(task["measures"][0])
        axis.set_title(name, fontsize=9)
        legend(axis)
    figure.tight_layout()
    return figure


def number(text: str) -> float | None:
    """The first number of a published figure; None where there is none."""
    first = text.split("/", maxsplit=1)[0].strip()
    try:
        return float(first)
    except ValueError:
        return None


def curves(found: Found) -> Any:
    """Error against the number of trees, with its spread over splits, a panel a data set."""
    figure, axes = panels(len(found))
    for axis, (name, study) in zip(axes, found.items(), strict=True):
        for place, (variant, errors) in enumerate(study["errors"].items()):
            style = "k--" if variant == "not private" else f"{MARKERS[place % len(MARKERS)]}-"
            spreads = np.std(errors, axis=0, ddof=1 if len(errors) > 1 else 0)
            axis.errorbar(
                study["lengths"], np.mean(errors, axis=0), spreads, fmt=style, markersize=3, capsize=2, label=variant
            )
        axis.set_xlabel(f"trees, total epsilon {study['epsilon']:g}")
        axis.set_ylabel(study["measure"])
        if study["measure"] == "RMSE":
            axis.set_yscale("log")
        axis.set_title(name, fontsize=9)
        legend(axis)
    figure.tight_layout()
    return figure


def sweeps(what: str, found: Found) -> Any:
    """Score against a parameter's values, which are named in words, a panel a data set."""
    figure, axes = panels(len(found))
    for axis, (name, study) in zip(axes, found.items(), strict=True):
        for place, row in enumerate(study["rows"]):
            values = [entry["at"] for entry in row["cells"]]
            means, spreads = ([entry[key][0] for entry in row["cells"]] for key in ("mean", "spread"))
            style = f"{MARKERS[place % len(MARKERS)]}-"
            axis.errorbar(values, means, spreads, fmt=style, markersize=4, capsize=2, label=row["name"])
        axis.set_xscale("log")
        ticks = sorted({entry["at"] for row in study["rows"] for entry in row["cells"]})
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set_xlabel(f"{what}, total epsilon {study['epsilon']:g}")
        axis.set_ylabel(study["measures"][0])
        axis.set_title(name, fontsize=9)
        legend(axis)
    figure.tight_layout()
    return figure


def bins(found: Found) -> Any:
    """Score against the number of a sketch's bins, a panel a data set."""
    figure, axes = panels(len(found))
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        means = [each["mean"][0] for each in entry["cells"]]
        spreads = [each["spread"][0] for each in entry["cells"]]
        axis.errorbar(entry["bins"], means, spreads, fmt="o-", markersize=4, capsize=2, label="private sketch")
        axis.axhline(entry["exact"]["mean"][0], color="gray", label="exact quantiles, not private")
        axis.set_xscale("log", base=2)
        axis.set_xlabel(f"bins of the sketch, epsilon {entry['epsilon']:g}")
        axis.set_ylabel(entry["measures"][0])
        axis.set_title(name, fontsize=9)
        legend(axis)
    figure.tight_layout()
    return figure


def save(folder: Path | None, system: str, found: Found, draw: Callable[[str, Found], Any]) -> None:
    """Draw what has a picture into a folder."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for study, values in found.items():
        figure = None if study == "speed" else draw(study, values)
        if figure is not None:
            figure.savefig(folder / f"{system}_{study}.svg")
