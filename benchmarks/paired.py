"""Methods on the same splits and budgets: the error of each, and its paired difference to the first one.

The error is 100 (1 - accuracy) of classes, and the RMSE of numbers: what both boosting papers report. Splits are one
fold of five for each seed, or the seed's held-out rows; the noise is `SecureRandom`'s. A fit runs on one thread: on a
shared machine a team of threads waits for its slowest member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks import data_sets
from benchmarks.measuring import FOLDS, Scores, Split, is_numeric, measure, non_private, trivial
from benchmarks.utility import Found, Parameters, Scale, System

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """A system with its parameters.

    Args:
        system: whose estimators are fitted.
        parameters: of them.
        times: the epsilon that is asked for, over the one that is named: above 1 for noise that costs more than its
            paper says.
    """

    system: System
    parameters: Parameters = field(default_factory=dict)
    times: float = 1.0

    def scores(self, data: data_sets.Data, epsilon: float, split: Split) -> Scores:
        """(RMSE, R2) or (AUC, accuracy) of a fit to the split's first rows, on its others."""
        train, test = split
        parameters = {"expected_rows": data.rows, "n_jobs": 1, **self.parameters}
        model = self.system.model(data, self.times * epsilon, parameters).fit(data.X[train], data.y[train])
        return measure(model, data.X[test], data.y[test])


class Scored(Protocol):
    """What can be compared."""

    def scores(self, data: data_sets.Data, epsilon: float, split: Split) -> Scores:
        """(RMSE, R2) or (AUC, accuracy) of a fit to the split's first rows, on its others."""


def one_each(scale: Scale, system: System, rows: int) -> list[Split]:
    """One split a seed: the first fold of each, where a system's paper has folds."""
    splits = scale.splits(system, rows)
    return splits[::FOLDS] if len(splits) == FOLDS * scale.seeds else splits


def error(data: data_sets.Data, scores: Floats) -> Floats:
    """What the papers report, of stored pairs (RMSE, R2) or (AUC, accuracy); shape (..., 2)."""
    return scores[..., 0] if is_numeric(data) else 100.0 * (1.0 - scores[..., 1])


def measure_of(data: data_sets.Data) -> str:
    """What `error` is of."""
    return "RMSE" if is_numeric(data) else "test error, %"


def spread_cell(values: Floats) -> dict[str, float]:
    """Mean and standard deviation over splits."""
    return {"mean": float(values.mean()), "spread": float(values.std(ddof=1)) if len(values) > 1 else 0.0}


def orders(
    data: data_sets.Data, splits: list[Split], methods: Mapping[str, Scored], epsilons: Sequence[float]
) -> Found:
    """Errors of each method at each budget, and those of the first less those of each other, split by split.

    Args:
        data: all rows.
        splits: rows for training and rows held out.
        methods: by name.
        epsilons: budgets.
    """
    first = next(iter(methods))
    errors: dict[str, Floats] = {}
    for label, method in methods.items():
        title = f"{data.name}: {label}"
        scores = [
            [method.scores(data, epsilon, split) for split in splits]
            for epsilon in track(epsilons, title, transient=True)
        ]
        errors[label] = error(data, np.array(scores))
    return {
        "measure": measure_of(data),
        "rows_columns": list(data.X.shape),
        "splits": len(splits),
        "epsilons": list(epsilons),
        "methods": {label: [spread_cell(at) for at in found] for label, found in errors.items()},
        "first less": {
            label: [spread_cell(at) for at in errors[first] - found]
            for label, found in errors.items()
            if label != first
        },
        "trivial": spread_cell(error(data, trivial(data, splits))),
    }


def compared(
    system: System, name: data_sets.Name, methods: Mapping[str, Scored], epsilons: Sequence[float], scale: Scale
) -> Found:
    """`orders` of a known data set, and scikit-learn's booster without privacy.

    Args:
        system: whose splits are used, and beside which scikit-learn's booster is fitted.
        name: the data set.
        methods: by name.
        epsilons: budgets.
        scale: seeds; few rows for a quick run.
    """
    data = scale.data(name)
    splits = one_each(scale, system, data.rows)
    plain = spread_cell(error(data, non_private(data, splits, **system.beside)))
    return {**orders(data, splits, methods, scale.epsilons(tuple(epsilons))), "not private": plain}


def draw(found: Mapping[str, Any]) -> Any:
    """Error against epsilon, a panel a data set, as both papers draw it."""
    from benchmarks import drawing

    figure, axes = drawing.panels(len(found))
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        values = []
        for place, (label, cells) in enumerate(entry["methods"].items()):
            means, spreads = [cell["mean"] for cell in cells], [cell["spread"] for cell in cells]
            style = f"{drawing.MARKERS[place % len(drawing.MARKERS)]}-"
            axis.errorbar(entry["epsilons"], means, spreads, fmt=style, markersize=4, capsize=2, label=label)
            values += means
        worst = entry["trivial"]["mean"]
        best = entry["not private"]["mean"] if "not private" in entry else min(values)
        if "not private" in entry:
            axis.axhline(best, color="gray", linewidth=1, label="not private")
        axis.axhline(worst, color="gray", linewidth=1, linestyle=":", label="trivial")
        axis.set_ylim(*drawing.window(values, (worst, best)))
        axis.set_xlabel("epsilon")
        axis.set_ylabel(entry["measure"])
        axis.set_title(name, fontsize=9)
        drawing.legend(axis)
    figure.tight_layout()
    return figure
