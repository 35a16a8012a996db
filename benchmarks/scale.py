"""Seconds of the library's loops beside xgboost's hist method and lightgbm: same machine, same threads, in turns.

A tree's seconds are the median of the times between trees of one fit, without the first one; a ratio is one of medians
over all rounds, in each of which ours and the peers' runs alternate. With one thread they are seconds of a core, which
hang little on what else the machine does; with several, seconds of the clock, beside the machine's load.

    python -m benchmarks.scale --save docs/benchmarks/scale.json
"""

import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed

from benchmarks import peers
from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator import Table
from ledgerwood.threads import available_cores, threads
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.base import trainer

PEERS = ("xgboost-cpu", "lightgbm")
BY_GINI: dict[str, Any] = {"split_method": "gini", "max_bins": 255}
"""One level of counts at a time; the defaults count pairs of cells."""
ROWS, COLUMNS, DEPTH, BINS, PEER_BINS, TREES = 1_000_000, 50, 6, 32, 256, 5
FOREST = 50
GROWING_ROWS, GROWING_COLUMNS = (100_000, 300_000, 1_000_000, 3_000_000), (10, 30, 100, 300, 1000)
Rows = tuple[NDArray[np.float32], NDArray[np.float64]]
Times = tuple[float, float]
"""Seconds of a clock, and of this process's cores."""


def rows(n_rows: int, n_columns: int) -> Rows:
    """Uniform features and a noisy additive label in [-1, 1]; seed 0."""
    generator = np.random.default_rng(0)
    X = generator.random((n_rows, n_columns), dtype=np.float32)
    return X, np.clip(X[:, 0] + X[:, 1] - 1.0 + 0.1 * generator.standard_normal(n_rows), -1.0, 1.0)


def schema(n_columns: int, *, classes: bool = False) -> Schema:
    """Of `rows`, with the label's sign as a class."""
    target = Categorical("y", (0, 1)) if classes else Numeric("y", -1, 1)
    return Schema.uniform(0.0, 1.0, n_features=n_columns, target=target)


@contextmanager
def tree_times() -> Iterator[list[Times]]:
    """When the block's fits began, and when each tree was done."""
    times: list[Times] = []

    @contextmanager
    def timer(_title: str, _verbose: int) -> Iterator[Callable[[int, int], None]]:
        times.append(now())
        yield lambda _done, _total: times.append(now())

    own, trainer.progress_bar = trainer.progress_bar, timer  # type: ignore[assignment]
    try:
        yield times
    finally:
        trainer.progress_bar = own


def a_tree(model: Any, given: Rows) -> list[Times]:
    """Seconds of each tree but the first one, with which rows are laid out."""
    with tree_times() as times:
        model.fit(*given)
    return [since(before, after) for before, after in itertools.pairwise(times[1:])]


def now() -> Times:
    """Of a clock, and of this process's cores."""
    return time.perf_counter(), time.process_time()


def since(start: Times, end: Times | None = None) -> Times:
    """Seconds from then on, of both."""
    end = now() if end is None else end
    return end[0] - start[0], end[1] - start[1]


def systems(n_columns: int, team: int, trees: int = TREES) -> dict[str, Callable[[], Any]]:
    """Unfitted estimators by name; all grow trees of depth 6 over all rows."""
    common: dict[str, Any] = {
        "schema": schema(n_columns), "n_estimators": trees + 1, "max_depth": DEPTH, "n_jobs": team,
    }  # fmt: skip
    return {
        "DPBoost": lambda: DPBoostRegressor(epsilon=10.0, preset="seq", max_bins=BINS, **common),
        "DP-XGBoost": lambda: DPXGBoostRegressor(epsilon=10.0, delta=0.0, preset="paper", subsample=1.0, **common),
        "S-GBDT": lambda: SGBDTRegressor(features_per_tree="all", **common),
        "federated default": lambda: FederatedGBDTRegressor(**common),
    }


class Peer:
    """The peers' process; None is said of everything where they cannot be installed."""

    def __init__(self) -> None:
        python = peers.environment("boosters", PEERS)
        script = Path(__file__).with_name("scale_peer.py")
        self._process = None
        if python is not None:
            self._process = subprocess.Popen(
                [str(python), "-W", "ignore", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )

    def seconds(
        self, what: str, team: int, shape: tuple[int, int], bins: int = PEER_BINS, trees: int = TREES
    ) -> list[Times]:
        """What was measured; empty without the peer."""
        if self._process is None:
            return []
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"what": what, "threads": team, "shape": shape, "bins": bins, "trees": trees, "depth": DEPTH}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return [(clock, cores) for clock, cores in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def measured(rounds: int, divisor: int) -> dict[str, Any]:
    """Seconds by name and number of threads: "name, k threads"."""
    found: dict[str, list[float]] = {}

    def add(name: str, team: int, seconds: list[Times]) -> None:
        found.setdefault(f"{name}, {team}", []).extend(each[team == 1] for each in seconds)

    shape, narrow = (ROWS // divisor, COLUMNS), (ROWS // divisor, 24)
    given, few = rows(*shape), rows(*narrow)
    yes = (few[1] > 0.0).astype(int)
    peer, teams = Peer(), sorted({1, available_cores()})
    forest = DPBoostRegressor(epsilon=10.0, schema=schema(COLUMNS), n_estimators=FOREST, max_depth=DEPTH)
    small = rows(10_000, COLUMNS)
    forest.fit(*small)
    for make in systems(COLUMNS, 1, 1).values():
        make().fit(*small)  # compiles
    few_rows = rows(10_000, 24)
    PrivaTreeClassifier(schema=schema(24, classes=True), **BY_GINI).fit(few_rows[0], (few_rows[1] > 0.0).astype(int))
    for number in range(rounds):
        for team in teams:
            print(f"round {number + 1} of {rounds}, {team} threads", file=sys.stderr, flush=True)
            for name, bins in (("xgboost", PEER_BINS), ("xgboost", BINS), ("lightgbm", PEER_BINS)):
                add(f"{name}, {bins} bins", team, peer.seconds(name, team, shape, bins))
            for name, make in systems(COLUMNS, team).items():
                add(name, team, a_tree(make(), given))
            add("xgboost predict", team, peer.seconds("xgboost predict", team, shape, trees=FOREST))
            forest.set_params(n_jobs=team)
            add("predict", team, [_seconds(lambda: forest.predict(given[0]))])
            for name in ("xgboost matrix", "lightgbm matrix") if number == 0 else ():
                add(name, team, peer.seconds(name, team, shape))
            with threads(team):
                add("encode", team, [_seconds(lambda: _encode(given, COLUMNS))])
            private = PrivaTreeClassifier(epsilon=1.0, schema=schema(24, classes=True), n_jobs=team, **BY_GINI)
            with tree_times() as times:
                private.fit(few[0], yes)
            add("PrivaTree", team, [since(times[0], times[-1])])
    for team in teams:
        add("xgboost, 24 columns", team, peer.seconds("xgboost", team, narrow))
        gridless = DPBoostRegressor(
            epsilon=10.0, schema=schema(COLUMNS), preset="seq", candidates="gridless", max_bins=60_000,
            n_estimators=TREES + 1, max_depth=DEPTH, n_jobs=team,
        )  # fmt: skip
        add("grid-less DPBoost", team, a_tree(gridless, given))
    peer.close()
    crowded = crowd(given, rounds)
    return {
        "shape": shape, "cores": available_cores(), "load": os.getloadavg(), "rounds": rounds,
        "seconds": {name: float(np.median(each)) for name, each in found.items() if each},
        "crowded": crowded, "plans": plans(), "growth": growth(divisor),
    }  # fmt: skip


def _seconds(call: Callable[[], Any]) -> Times:
    start = now()
    call()
    return since(start)


def _encode(given: Rows, n_columns: int) -> None:
    Table.from_data(*given, schema(n_columns), loss="squared", bins=BINS)


def _busy() -> None:
    while True:
        pass


def crowd(given: Rows, rounds: int) -> dict[str, float]:
    """Seconds of a DPBoost tree by threads, beside as many busy processes as there are cores but one."""
    found: dict[int, list[float]] = {1: [], 2: []}
    busy = [
        multiprocessing.get_context("spawn").Process(target=_busy, daemon=True)
        for _ in range(max(1, available_cores() - 1))
    ]
    for process in busy:
        process.start()
    try:
        for _ in range(rounds):
            for team, own in found.items():
                own.extend(clock for clock, _ in a_tree(systems(COLUMNS, team)["DPBoost"](), given))
    finally:
        for process in busy:
            process.kill()
            process.join()
    return {str(team): float(np.median(each)) for team, each in found.items()}


def plans() -> dict[str, float]:
    """Seconds of CPU of `make_plan` with a delta, by what is planned."""
    regression, classes = schema(COLUMNS), schema(COLUMNS, classes=True)
    cases: dict[str, Callable[[], Any]] = {
        "DPBoost": lambda: DPBoostRegressor(delta=1e-6, schema=regression).make_plan(regression),
        "DPBoost, classes": lambda: DPBoostClassifier(delta=1e-6, schema=classes).make_plan(classes),
        "S-GBDT, a tenth of the rows": lambda: SGBDTRegressor(schema=regression, subsample=0.1).make_plan(regression),
        "S-GBDT, preset paper": lambda: SGBDTRegressor(schema=regression, preset="paper").make_plan(regression),
        "S-GBDT, classes, a hundredth": lambda: SGBDTClassifier(schema=classes, subsample=0.01).make_plan(classes),
    }
    found = {}
    for name, make in cases.items():
        start = time.process_time()
        make()
        found[name] = time.process_time() - start
    return found


def growth(divisor: int) -> dict[str, list[list[float]]]:
    """(size, seconds of a core of a DPBoost tree) as rows grow, of 28 columns, and as columns grow, of 100,000 rows."""

    def point(n_rows: int, n_columns: int) -> float:
        trees = a_tree(systems(n_columns, 1, 3)["DPBoost"](), rows(n_rows, n_columns))
        return float(np.median([cores for _, cores in trees]))

    return {
        "rows": [[n // divisor, point(n // divisor, 28)] for n in GROWING_ROWS],
        "columns": [[n, point(100_000 // divisor, n)] for n in GROWING_COLUMNS],
    }


GOALS = (
    ("DPBoost, a tree", "DPBoost", "xgboost, 256 bins", "at most 1.0"),
    ("DP-XGBoost, a tree", "DP-XGBoost", "xgboost, 256 bins", "at most 1.0"),
    ("S-GBDT, a tree", "S-GBDT", "xgboost, 256 bins", "at most .20"),
    ("federated default, a tree", "federated default", "xgboost, 256 bins", "at most .20"),
    ("grid-less DPBoost, a tree", "grid-less DPBoost", "xgboost, 256 bins", "at most 5"),
    ("PrivaTree, 24 columns", "PrivaTree", "xgboost, 24 columns", "at most 1.0"),
    ("predict, 50 trees", "predict", "xgboost predict", "at most 1.0"),
    ("encode and check", "encode", "xgboost matrix", "at most .5 s"),
)


def print_scale(found: dict[str, Any], console: Console) -> None:
    """The tables of ratios, of threads, of plans and of growth."""
    seconds, teams = found["seconds"], sorted({1, found["cores"]})
    load = " / ".join(f"{each:.1f}" for each in found["load"])
    size = f"{found['shape'][0]:,} x {found['shape'][1]} float32, depth {DEPTH}"
    table = Printed(title=f"{size}; {found['cores']} cores, load {load}; medians of {found['rounds']} rounds")
    table.add_column("work")
    for team in teams:
        table.add_column("1 thread: ours, s of a core" if team == 1 else f"{team} threads: ours, s", justify="right")
        table.add_column("peer", justify="right")
        table.add_column("ratio", justify="right")
    table.add_column("goal")
    for title, ours, peer, goal in GOALS:
        cells = []
        for team in teams:
            mine, its = seconds.get(f"{ours}, {team}"), seconds.get(f"{peer}, {team}")
            both = mine is not None and its is not None
            cells += ["" if each is None else f"{each:.3f}" for each in (mine, its)]
            cells.append(f"{mine / its:.2f}" if both else "")
        table.add_row(title, *cells, goal)
    console.print(table)
    beside = ("xgboost, 256 bins", "xgboost, 32 bins", "lightgbm, 256 bins", "lightgbm matrix")
    for name in beside:
        console.print(
            f"{name}: " + ", ".join(f"{seconds.get(f'{name}, {team}', float('nan')):.3f} s" for team in teams)
        )
    crowded = found["crowded"]
    console.print(
        f"\nDPBoost beside busy processes: {crowded['1']:.3f} s a tree with one thread, {crowded['2']:.3f} s with two: "
        f"{crowded['2'] / crowded['1']:.2f} x (goal: at most 1.2)"
    )
    if len(teams) > 1:
        faster = seconds["DPBoost, 1"] / seconds[f"DPBoost, {teams[1]}"]
        console.print(
            f"DPBoost with {teams[1]} threads: {faster:.2f} x as fast as with one (goal on a free machine: 1.7)"
        )
    console.print("\nmake_plan with a delta, seconds of CPU (goal: at most .3):")
    for name, value in found["plans"].items():
        console.print(f"  {name}: {value:.2f}")
    for what, points in found["growth"].items():
        shown = ", ".join(f"{int(size):,}: {value:.3f}" for size, value in points)
        console.print(f"seconds of a core of a DPBoost tree by {what}: {shown}")


def draw_growth(found: dict[str, Any]) -> Any:
    """Seconds of a tree as rows and columns grow, beside a line of slope 1."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for panel, (what, points) in zip(panels, found["growth"].items(), strict=True):
        sizes, values = np.array(points).T
        panel.loglog(sizes, values, "o-", label="DPBoost, a tree")
        panel.loglog(sizes, values[-1] * sizes / sizes[-1], ":", label="linear")
        panel.set_xlabel(what)
        panel.set_ylabel("seconds of a core")
        panel.legend(frameon=False)
    return figure


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--divisor", type=int, default=1, help="of all numbers of rows: 100 for a quick look")
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file, for the documentation")
    arguments = parser.parse_args()
    found = measured(arguments.rounds, arguments.divisor)
    print_scale(found, Console(width=160))
    if arguments.save is not None:
        arguments.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
