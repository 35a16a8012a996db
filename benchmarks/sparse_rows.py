"""Seconds of a tree and memory of a fit on a sparse one-hot table, beside xgboost's own sparse input.

The table is like a9a: each row is 1 in one column of each of 14 groups, and 0 elsewhere. Each fit has its own process.
A tree's seconds are the median of the times between trees, without the first one, of the process's cores; memory is the
most that was resident in the process at any time (VmHWM), the input and the imports included. xgboost takes what is
not stored as missing. PrivaTree has one tree: its time is that of the whole fit without the encoding.

    python -m benchmarks.sparse_rows --save docs/benchmarks/sparse_rows.json
"""

import argparse
import itertools
import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed
from scipy import sparse

from benchmarks import peers, scale
from ledgerwood import Categorical, Schema
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
)

GROUPS = 14
GOAL = 2 * 2**30
PEER = Path(__file__).with_name("sparse_rows_peer.py")


def rows(n_rows: int, n_columns: int) -> tuple[Any, NDArray[np.int64]]:
    """A one-hot table, CSR of float64, and labels 0 and 1; seed 0."""
    generator, width = np.random.default_rng(0), n_columns // GROUPS
    places = np.empty((n_rows, GROUPS), dtype=np.int32)
    for group in range(GROUPS):
        places[:, group] = group * width + np.minimum(generator.geometric(0.05, n_rows) - 1, width - 1)
    y = (0.5 * (places[:, 0] % 3 == 0) + 0.5 * (places[:, 1] % 2) + generator.random(n_rows) > 1.0).astype(np.int64)
    starts = np.arange(0, n_rows * GROUPS + 1, GROUPS, dtype=np.int32)
    return sparse.csr_array((np.ones(places.size), places.ravel(), starts), shape=(n_rows, n_columns)), y


def systems(n_columns: int, trees: int) -> dict[str, Callable[[], Any]]:
    """Unfitted classifiers by name, of trees of depth 6 but for one; `trees` is 1 more than are timed."""
    schema = Schema.uniform(0, 1, n_features=n_columns, target=Categorical("y", (0, 1)))
    many: dict[str, Any] = {"schema": schema, "n_estimators": trees, "max_depth": scale.DEPTH, "n_jobs": 1}
    return {
        "S-GBDT": lambda: SGBDTClassifier(features_per_tree="all", **many),
        "DPBoost": lambda: DPBoostClassifier(epsilon=10.0, preset="seq", max_bins=scale.BINS, **many),
        # Its sketch has more cells than a level of depth 6 may have here.
        "DP-XGBoost, depth 5": lambda: DPXGBoostClassifier(
            epsilon=10.0, delta=0.0, preset="paper", subsample=1.0, **many | {"max_depth": 5}
        ),
        "federated default": lambda: FederatedGBDTClassifier(**many),
        "PrivaTree": lambda: PrivaTreeClassifier(schema=schema, n_jobs=1, split_method="gini", max_bins=255),
    }


def fitted(name: str, n_rows: int, n_columns: int, trees: int) -> dict[str, Any]:
    """Seconds and bytes of one fit and its predictions, with one thread."""
    X, y = rows(n_rows, n_columns)
    held = peak_bytes()
    model = systems(n_columns, trees + 1)[name]()
    model.fit(X[:2000], y[:2000])  # compiles
    with scale.tree_times() as times:
        start = scale.now()
        model.fit(X, y)
    fit_bytes = peak_bytes()
    each = [scale.since(before, after)[1] for before, after in itertools.pairwise(times[1:])]
    done = scale.now()
    model.predict(X)
    whole = scale.since(times[0], times[-1])[1]
    return {
        "system": name, "tree": whole if name == "PrivaTree" else float(np.median(each)),
        "encode": scale.since(start, times[0])[1], "predict": scale.since(done)[1], "input": held, "fit": fit_bytes,
        "peak": peak_bytes(),
    }  # fmt: skip


def peak_bytes() -> int:
    """The most that was resident in this process until now."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def measured(n_rows: int, n_columns: int, trees: int) -> dict[str, Any]:
    """A fit of each system, and of xgboost."""
    fits = []
    for name in systems(n_columns, trees):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            fits.append(pool.apply(fitted, (name, n_rows, n_columns, trees)))
        print(json.dumps(fits[-1]), file=sys.stderr, flush=True)
    asked = {"rows": n_rows, "columns": n_columns, "trees": trees, "depth": scale.DEPTH, "groups": GROUPS}
    peer = peers.run("boosters", scale.PEERS, PEER, asked)
    return {
        "rows": n_rows, "columns": n_columns, "trees": trees, "load": os.getloadavg()[0],
        "fits": [*fits, *([] if peer is None else [peer])],
    }  # fmt: skip


def print_sparse(found: dict[str, Any], console: Console) -> None:
    """One line a system, the peer's last."""
    table = Printed(
        title=f"{found['rows']:,} x {found['columns']:,}, {GROUPS} values a row; one thread, seconds of a core, load "
        f"{found['load']:.1f}"
    )
    peer = next((each["tree"] for each in found["fits"] if each["system"] == "xgboost"), None)
    table.add_column("system")
    for name in ("a tree, s", "x xgboost", "encode, s", "predict, s", "input and imports, GiB", "fit", "and predict"):
        table.add_column(name, justify="right")
    for each in found["fits"]:
        table.add_row(
            each["system"], f"{each['tree']:.3f}", "" if peer is None else f"{each['tree'] / peer:.2f}",
            f"{each['encode']:.2f}", f"{each['predict']:.2f}",
            *(f"{each[what] / 2**30:.2f}" for what in ("input", "fit", "peak")),
        )  # fmt: skip
    console.print(table)
    console.print(f"goal: at most {GOAL / 2**30:g} GiB")


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=scale.TREES)
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file, for the documentation")
    given = parser.parse_args()
    found = measured(given.rows, given.columns, given.trees)
    print_sparse(found, Console(width=160))
    if given.save is not None:
        given.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
