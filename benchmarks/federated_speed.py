"""Seconds of the framework's trees on 1,000,000 x 50 rows, depth 6, two threads, after a warm-up.

Whole trees of the estimators, from the difference of two lengths, which leaves reading and calibration out; below
them, of `benchmarks.histogram_speed`, exact sums and noise apart.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import histogram_speed
from benchmarks.sgbdt_speed import synthetic, timed
from benchmarks.utility import Found, Parameters
from ledgerwood import Categorical, Schema
from ledgerwood.trainers import FederatedGBDTClassifier

ROWS, COLUMNS, DEPTH, BINS = 1_000_000, 50, 6, 32
SHORT = 2
QUICK = 100
TREES: tuple[tuple[str, Parameters, int, str], ...] = (
    ("random splits, Newton", {}, 42, ".1 s"),
    ("private histograms, 32 bins, Newton", {"split_method": "histogram", "n_candidates": BINS - 1}, 8, ".25 s"),
    ("private histograms, 32 bins, gradient", {
        "split_method": "histogram", "update": "gradient", "n_candidates": BINS - 1,
    }, 8, ""),
)  # fmt: skip
"""Name, parameters, the longer of two lengths, target."""


def maker(parameters: Parameters) -> Callable[[int], Any]:
    """Of a number of trees an estimator."""
    schema = Schema.uniform(0.0, 1.0, n_features=COLUMNS, target=Categorical("y", (0, 1)))
    return lambda trees: FederatedGBDTClassifier(
        epsilon=1.0, delta=1e-6, schema=schema, preset="tr_newton", n_estimators=trees, max_depth=DEPTH, max_bins=BINS,
        **parameters,
    )  # fmt: skip


def seconds_a_tree(make: Callable[[int], Any], long: int, X: Any, y: Any) -> float:
    """The least of three runs of each length, after a warm-up."""
    make(SHORT).fit(X, y)
    few, many = (timed(lambda trees=trees: make(trees).fit(X, y)) for trees in (SHORT, long))
    return (many - few) / (long - SHORT)


def speed(*, quick: bool) -> Found:
    """Plain values by what was timed."""
    rows = ROWS // QUICK if quick else ROWS
    X, label = synthetic(rows)
    y = (label > np.float64(0.0)).astype(np.int64)
    trees = {
        name: {"seconds": seconds_a_tree(maker(parameters), long, X, y), "target": target}
        for name, parameters, long, target in TREES
    }
    parts = {name: {"seconds": seconds, "target": ""} for name, seconds in histogram_speed.seconds(rows).items()}
    return {"trees": trees, "parts": parts, "shape": {"rows": rows, "columns": COLUMNS}}


def print_speed(found: Mapping[str, Any], console: Console) -> None:
    """Whole trees, then their parts."""
    rows, columns = found["shape"]["rows"], found["shape"]["columns"]
    table = Table(title=f"seconds a tree of depth {DEPTH}, {rows:,} x {columns}, two threads")
    for column in ("what", "seconds", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for section in ("trees", "parts"):
        for name, row in found[section].items():
            table.add_row(name, f"{row['seconds']:.3f}", row["target"])
        table.add_section()
    console.print(table)
