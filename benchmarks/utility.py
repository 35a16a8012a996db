"""Utility of a system on many data sets: presets and budgets by rows held out, beside models that are not private."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import data_sets
from benchmarks.measuring import (
    FOLDS,
    HELD_OUT,
    Split,
    cell,
    cross_validated,
    folds,
    is_numeric,
    measures,
    trivial,
)
from benchmarks.measuring import non_private as boosted

Parameters = Mapping[str, Any]
Found = dict[str, Any]
ByEpsilon = Mapping[float, str]
WIDTH = 200
"""Of a console that shows a table without broken lines."""


@dataclass(frozen=True)
class System:
    """A system's two estimators, and what models beside it are given.

    Args:
        name: as titles have it.
        regressor, classifier: estimators with `epsilon`, `delta` and `schema`.
        splits: of a number of rows and of seeds.
        beside: parameters of scikit-learn's booster: the same trees, depth and rate.
    """

    name: str
    regressor: type
    classifier: type
    splits: Callable[[int, int], Iterator[Split]]
    beside: Parameters

    def model(self, data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
        """An estimator for this data set's label; `parameters` may name delta."""
        kind = self.regressor if is_numeric(data) else self.classifier
        return kind(epsilon=epsilon, schema=data.schema, **{"delta": 0.0, **parameters})

    @property
    def held_out(self) -> str:
        """How rows are held out, in words."""
        return f"{FOLDS} folds" if self.splits is folds else f"{HELD_OUT:.0%} held out"


@dataclass(frozen=True)
class Task:
    """One data set: its budgets, the variants that run on it, and what others have published for it.

    Args:
        name: the data set.
        epsilons: budgets, in nats.
        variants: names of variants that run on all splits.
        fewer: names of variants that run on the splits of a fifth of the seeds, at least of one.
        seeds: how many of the seeds that were asked for: 1 is all, .2 a fifth of them, but at least one.
        published: rows of others' figures, by epsilon.
    """

    name: data_sets.Name
    epsilons: tuple[float, ...]
    variants: tuple[str, ...]
    fewer: tuple[str, ...] = ()
    seeds: float = 1.0
    published: Mapping[str, ByEpsilon] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """How much is run: seeds, and for a quick run few rows, two splits and the first and last budget.

    Args:
        seeds: of splits; the noise is always `SecureRandom`'s.
        rows: some of the rows only; None for all.
    """

    seeds: int
    rows: int | None = None

    def data(self, name: data_sets.Name) -> data_sets.Data:
        """A data set."""
        found = data_sets.load(name)
        return found if self.rows is None else found.some(self.rows)

    def splits(self, system: System, rows: int, share: float = 1.0) -> list[Split]:
        """Train and test rows."""
        all_of_them = list(system.splits(rows, max(round(share * self.seeds), 1)))
        return all_of_them if self.rows is None else all_of_them[:2]

    def epsilons(self, epsilons: tuple[float, ...]) -> tuple[float, ...]:
        """Budgets."""
        return epsilons if self.rows is None else (epsilons[0], epsilons[-1])


def measured(system: System, task: Task, variants: Mapping[str, Parameters], scale: Scale) -> Found:
    """Mean and spread of each of the task's variants at each budget, as plain values."""
    data = scale.data(task.name)
    splits = scale.splits(system, data.rows, task.seeds)
    few = scale.splits(system, data.rows, task.seeds / 5)
    start = time.perf_counter()
    rows = []
    for variant in (*task.variants, *task.fewer):
        own = few if variant in task.fewer else splits
        cells = []
        for epsilon in scale.epsilons(task.epsilons):

            def make(epsilon: float = epsilon, variant: str = variant) -> Any:
                return system.model(data, epsilon, {"expected_rows": data.rows, **variants[variant]})

            title = f"{system.name}, {task.name}: {variant}, epsilon {epsilon:g}"
            cells.append({"epsilon": epsilon, **cell(cross_validated(data, make, own, title))})
        rows.append({"name": variant, "splits": len(own), "cells": cells})
    return {
        "measures": measures(data),
        "rows_columns": data.X.shape,
        "splits": len(splits),
        "held_out": system.held_out,
        "rows": rows,
        "non_private": cell(boosted(data, splits, **system.beside)),
        "trivial": cell(trivial(data, splits)),
        "published": {name: {str(e): text for e, text in row.items()} for name, row in task.published.items()},
        "seconds": time.perf_counter() - start,
    }


def title_of(system_name: str, task_name: str, found: Found) -> str:
    """What a table or a panel shows."""
    rows, columns = found["rows_columns"]
    shape = f"{rows:,} x {columns}"
    return f"{system_name} on {task_name} ({shape}): {' / '.join(found['measures'])}, spread of the first in brackets"


def table_of(system_name: str, task_name: str, found: Found) -> Table:
    """Variants by budgets; below them what is not private, and what others have published."""
    epsilons = [entry["epsilon"] for entry in found["rows"][0]["cells"]]
    table = Table(title=title_of(system_name, task_name, found))
    table.add_column("variant")
    table.add_column("splits", justify="right")
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for row in found["rows"]:
        table.add_row(row["name"], str(row["splits"]), *(show_spread(entry) for entry in row["cells"]))
    table.add_section()
    for name, label in (("trivial", "trivial: mean or larger class"), ("non_private", "not private (scikit-learn)")):
        table.add_row(label, str(found["splits"]), *([show_spread(found[name])] * len(epsilons)))
    table.add_section()
    for name, published in found["published"].items():
        table.add_row(name, "", *(published.get(str(epsilon), "") for epsilon in epsilons))
    return table


def show_spread(entry: Mapping[str, Any]) -> str:
    """Means, and after the first one its spread over splits."""
    first, second = entry["mean"]
    return f"{short(first)} ({entry['spread'][0]:.2g}) / {short(second)}"


def short(score: float) -> str:
    """Four digits, and no more than three places."""
    return f"{score:,.0f}" if abs(score) >= 1_000 else f"{score:.1f}" if abs(score) >= 100 else f"{score:.3f}"


def print_utility(system: System, found: Found, console: Console) -> None:
    """A table for each data set."""
    for name, task in found.items():
        console.print(table_of(system.name, name, task))
        console.print(f"{task['held_out']}, in {task['seconds']:.0f} s\n")
