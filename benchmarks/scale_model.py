"""A model of time and memory for a fit on a cluster, from constants that are measured on one machine.

Seconds are those of a core, which depend little on what else the machine does, but for a round's latency: that is of
the clock. The model and its limits: docs/explanation/scale.md.

    python -m benchmarks.scale_model --save docs/explanation/scale_model.json
"""

import argparse
import gc
import json
import math
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Printed

from benchmarks.scale import BINS, a_tree, now, rows, schema, since
from ledgerwood.curator import Table
from ledgerwood.curator.places.cluster import ClusterSession
from ledgerwood.curator.tables.chunks import row_bytes
from ledgerwood.threads import threads
from ledgerwood.trainers import DPBoostRegressor, SGBDTRegressor

FEATURES, DEPTH, TREES = 28, 6, 300
FAN_IN = 8
TASKS = (64, 256)
"""Tasks of a round without work: their difference is what a task costs."""
NETWORK = 1.25e9
"""Bytes a second between two machines: 10 Gbit/s, assumed."""
CASES = tuple((n, workers) for n in (10**9, 10**11) for workers in (10, 100, 1000))


def systems(trees: int, depth: int = DEPTH) -> dict[str, Any]:
    """Unfitted estimators; the two whose loops differ most."""
    common: dict[str, Any] = {"schema": schema(FEATURES), "n_estimators": trees, "max_depth": depth, "n_jobs": 1}
    return {
        "S-GBDT": SGBDTRegressor(features_per_tree="all", **common),
        "DPBoost": DPBoostRegressor(epsilon=10.0, delta=0.0, max_bins=BINS, **common),
    }


def loops(n_rows: int) -> dict[str, Any]:
    """Seconds of a core and bytes, for a row."""
    given = rows(n_rows, FEATURES)
    found: dict[str, Any] = {"rows": n_rows}
    for each in systems(2).values():
        each.fit(*rows(5_000, FEATURES))  # compiles
    with threads(1):
        took = []
        for _ in range(3):
            start = now()
            Table.from_data(*given, schema(FEATURES), loss="squared", bins=BINS)
            took.append(since(start)[1])
    found["encode"] = float(np.median(took)) / (n_rows * FEATURES)
    found["row bytes"] = row_bytes(schema(FEATURES), n_features=FEATURES, bins=BINS, weighted=False)[0]
    for name in systems(1):
        found[name] = {
            str(depth): float(np.median([cores for _, cores in a_tree(systems(6, depth)[name], given)])) / n_rows
            for depth in (2, 4, DEPTH)
        }
        gc.collect()
        tracemalloc.start()
        systems(2)[name].fit(*given)
        found[name]["peak bytes"] = tracemalloc.get_traced_memory()[1] / n_rows
        tracemalloc.stop()
    return found


def messages() -> dict[str, Any]:
    """Questions a tree, and the mean bytes of a question and of an answer, on a cluster inside this process."""
    import dask.array as da
    from distributed import Client

    own, found, trees = ClusterSession.answered, {}, 8
    X, y = (da.from_array(each, chunks=(1000, *each.shape[1:])) for each in rows(2000, FEATURES))
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        for name, model in systems(trees).items():
            sizes: list[tuple[int, int]] = []

            def answered(self: ClusterSession, question: Any, sizes: list[tuple[int, int]] = sizes) -> Any:
                sums = own(self, question)
                sizes.append((len(pickle.dumps(question)), sums.nbytes))
                return sums

            ClusterSession.answered = answered  # type: ignore[method-assign]
            try:
                model.fit(X, y)
            finally:
                ClusterSession.answered = own  # type: ignore[method-assign]
            asked, answer = np.mean(sizes, axis=0)
            found[name] = {"questions": len(sizes) / trees, "question bytes": asked, "answer bytes": answer}
    return found


def small_sum(number: int) -> Any:
    """What a worker returns for a tree's leaves, without the work."""
    return np.full((64, 2), number, dtype=np.int64)


def dask_rounds(teams: list[int], rounds: int = 20) -> dict[str, Any]:
    """Medians of rounds without work: clock, and seconds of the core of client and scheduler, by workers and tasks."""
    from distributed import Client, LocalCluster

    found: dict[str, Any] = {}
    for workers in teams:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            for tasks in (workers, *TASKS):
                took = []
                for number in range(rounds):
                    start = now()
                    futures = [client.submit(small_sum, number * tasks + each, pure=False) for each in range(tasks)]
                    np.sum(client.gather(futures), axis=0)
                    took.append(since(start))
                    del futures
                clock, cores = np.median(took, axis=0)
                found[f"{workers} workers, {tasks} tasks"] = {"clock": clock, "cores": cores}
    few, many = (found[f"{teams[-1]} workers, {tasks} tasks"]["cores"] for tasks in TASKS)
    latency = found[f"{teams[0]} workers, {teams[0]} tasks"]["clock"]
    return {"rounds": found, "task": (many - few) / (TASKS[1] - TASKS[0]), "latency": latency}


def modelled(found: dict[str, Any], name: str, n_rows: int, workers: int) -> dict[str, float]:
    """Seconds of one tree by what takes them, GB of memory a worker, bytes through client and scheduler a tree."""
    said, dask, loops = found["messages"][name], found["dask"], found["loops"]
    questions, asked, answer = said["questions"], said["question bytes"], said["answer bytes"]
    sums, merges = workers, 0
    while sums > FAN_IN:
        sums = math.ceil(sums / FAN_IN)
        merges += sums
    levels = math.ceil(math.log(workers, FAN_IN))
    crossing = workers * asked + sums * answer
    return {
        "rows": n_rows / workers * loops[name][str(DEPTH)],
        "tasks": questions * (workers + merges) * dask["task"],
        "latency": questions * (1 + levels) * dask["latency"],
        "network": questions * (workers * asked + (1 + levels) * FAN_IN * answer) / NETWORK,
        "encode": n_rows / workers * FEATURES * loops["encode"],
        "memory": n_rows / workers * loops[name]["peak bytes"] / 1e9,
        "megabytes": questions * crossing / 1e6,
    }


def print_constants(found: dict[str, Any], console: Console) -> None:
    """What the model is made of."""
    loops, dask = found["loops"], found["dask"]
    console.print(f"{loops['rows']:,} rows of {FEATURES} features; load {found['load'][0]:.1f}")
    console.print(f"encode: {loops['encode'] * 1e9:.1f} ns a row and feature; {loops['row bytes']} bytes a row on disk")
    for name, said in found["messages"].items():
        own = loops[name]
        deeper = (own[str(DEPTH)] - own["2"]) / (DEPTH - 2)
        console.print(
            f"{name}: c = {own[str(DEPTH)] * 1e9:.0f} ns a row and tree of depth {DEPTH}, {deeper * 1e9:.0f} a level "
            f"beyond the second; peak {own['peak bytes']:.0f} bytes a row; q = {said['questions']:.2f} questions, "
            f"a = {said['question bytes']:,.0f} bytes, b = {said['answer bytes']:,.0f} bytes on average"
        )
    console.print(f"Dask: s = {dask['task'] * 1e3:.2f} ms a task, l = {dask['latency'] * 1e3:.1f} ms a round")
    for name, took in dask["rounds"].items():
        console.print(f"  {name}: {took['clock'] * 1e3:.1f} ms by the clock, {took['cores'] * 1e3:.1f} ms of a core")


def print_model(found: dict[str, Any], console: Console) -> None:
    """A table for each system."""
    for name in found["messages"]:
        table = Printed(title=f"{name}: {FEATURES} features, depth {DEPTH}, one core a worker")
        heads = ("rows", "workers", "encoding, s", "a tree, s", "rows' share", "tasks, s", "latency, s", "network, s",
                 f"{TREES} trees", "memory a worker, GB", "MB a tree at client and scheduler")  # fmt: skip
        for head in heads:
            table.add_column(head, justify="right")
        for n_rows, workers in CASES:
            of = modelled(found, name, n_rows, workers)
            tree = of["rows"] + of["tasks"] + of["latency"] + of["network"]
            table.add_row(
                f"{n_rows:.0e}".replace("+", ""), f"{workers:,}", f"{of['encode']:,.0f}", f"{tree:,.2f}",
                f"{of['rows'] / tree:.0%}", f"{of['tasks']:.3f}", f"{of['latency']:.3f}", f"{of['network']:.4f}",
                _time(of["encode"] + TREES * tree), f"{of['memory']:,.1f}", f"{of['megabytes']:,.2f}",
            )  # fmt: skip
        console.print(table)


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8], help="of the clusters whose rounds are timed")
    parser.add_argument("--save", type=Path, help="write the constants to this JSON file, for the documentation")
    arguments = parser.parse_args()
    found: dict[str, Any] = {
        "loops": loops(arguments.rows),
        "messages": messages(),
        "dask": dask_rounds(arguments.workers),
    }
    found["load"] = os.getloadavg()
    print_model(found, Console(width=180))
    if arguments.save is not None:
        arguments.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
