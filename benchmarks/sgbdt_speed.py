"""Seconds and memory of S-GBDT, beside xgboost where it is installed."""

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import peers
from ledgerwood import Numeric, Schema, datasets
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.sgbdt.plan import IndividualFilter

ROWS, COLUMNS, DEPTH = 200_000, 50, 6
MANY_ROWS = 1_000_000


def synthetic(rows: int = ROWS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Uniform features and a noisy additive label in [-1, 1]; seed 0."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, COLUMNS))
    y = np.clip(np.sin(6 * X[:, 0]) * 0.5 + X[:, 1] * X[:, 2] - 0.5 + 0.1 * rng.standard_normal(rows), -1, 1)
    return X, y


def synthetic_model(trees: int, individual: IndividualFilter = "none") -> SGBDTRegressor:
    """Full batch, all features open to every tree, with or without an individual filter."""
    schema = Schema.uniform(0.0, 1.0, n_features=COLUMNS, target=Numeric("y", -1, 1))
    return SGBDTRegressor(
        epsilon=1.0, delta=1e-6, schema=schema, n_estimators=trees, max_depth=DEPTH, features_per_tree="all",
        filter=individual,
    )  # fmt: skip


def timed(call: Any) -> float:
    """The least of three runs, in seconds."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def seconds_a_tree(rows: int = ROWS, individual: IndividualFilter = "none") -> float:
    """On the synthetic rows after a warm-up, from the difference of two lengths, so that reading X is not counted."""
    X, y = synthetic(rows)
    synthetic_model(2, individual).fit(X, y)
    short, long = (timed(lambda trees=trees: synthetic_model(trees, individual).fit(X, y)) for trees in (10, 60))
    return (long - short) / 50


XGBOOST = """
import json, time
import numpy as np, xgboost
rng = np.random.default_rng(0)
X = rng.random((ROWS, COLUMNS))
y = np.sin(6 * X[:, 0]) * 0.5 + X[:, 1] * X[:, 2] - 0.5 + 0.1 * rng.standard_normal(ROWS)
parameters = {"tree_method": "hist", "max_depth": DEPTH, "nthread": 2}
matrix = xgboost.QuantileDMatrix(X.astype(np.float32), y)

def seconds(rounds):
    least = 1e9
    for _ in range(3):
        start = time.perf_counter()
        xgboost.train(parameters, matrix, rounds)
        least = min(least, time.perf_counter() - start)
    return least

seconds(2)
print(json.dumps((seconds(30) - seconds(5)) / 25))
"""
"""Seconds a tree of xgboost's hist method on the same rows, on two threads, after binning."""


def peak_memory() -> tuple[float, float]:
    """(size of the input, peak above the warm process before it, input included once) in MiB, in a new process."""
    script = (
        "import resource\n"
        "from benchmarks.sgbdt_speed import synthetic, synthetic_model\n"
        "synthetic_model(2).fit(*(a[:160_000].copy() for a in synthetic(160_000)))\n"
        "import gc; gc.collect()\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "base = int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "X, y = synthetic()\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "synthetic_model(20).fit(X, y)\n"
        "peak = next(int(l.split()[1]) * 1024 for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print((X.nbytes + y.nbytes) / 2**20, (peak - base) / 2**20)\n"
    )
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    size, above = map(float, output.split())
    return size, above


def speed_table(console: Console) -> None:
    """Print seconds and memory."""
    data = datasets.load("adult")
    adult = SGBDTClassifier(epsilon=0.5, delta=5e-8, schema=data.schema, n_estimators=200, max_depth=DEPTH)
    adult.fit(data.X, data.y)
    table = Table(title="speed and memory, after warm-up")
    for column in ("what", "ledgerwood", "target", "others"):
        table.add_column(column)
    table.add_row(
        "Adult, 200 trees of depth 6, full batch, in all",
        f"{timed(lambda: adult.fit(data.X, data.y)):.2f} s",
        "1.5 s",
        "official code 1.9 s",
    )
    sizes = f"ROWS, COLUMNS, DEPTH = {ROWS}, {COLUMNS}, {DEPTH}\n"
    boosted = peers.run("xgboost", ("xgboost-cpu",), sizes + XGBOOST)
    beside = "xgboost hist: cannot be installed here" if boosted is None else f"xgboost hist {boosted:.4f} s"
    table.add_row(f"{ROWS:,} x {COLUMNS}, depth {DEPTH}, a tree", f"{seconds_a_tree():.4f} s", "", beside)
    for individual, target in (("none", ".1 s"), ("gdp", ".15 s")):
        what = f"{MANY_ROWS:,} x {COLUMNS}, depth {DEPTH}, a tree" + (" with filter" if individual == "gdp" else "")
        table.add_row(what, f"{seconds_a_tree(MANY_ROWS, individual):.4f} s", target, "")
    size, above = peak_memory()
    table.add_row(
        f"{ROWS:,} x {COLUMNS}: peak above the process before, input included once",
        f"{above / size:.2f} x input",
        "3 x input",
        f"input {size:.0f} MiB, peak {above:.0f} MiB",
    )
    console.print(table)
    console.print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB\n")
