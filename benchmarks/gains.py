"""Seconds of private splits, level by level, beside numpy's histogram of the same rows.

    python -m benchmarks.gains [--rows 1000000] [--columns 50] [--cells 32] [--depth 6]

Each level is one `select` of a curator's round: gradients, routing, histogram, exact gains, exponential mechanism.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed

from ledgerwood import Adjacency, Budget, Composed, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import Curator, SplitGains
from ledgerwood.curator.table import Table
from ledgerwood.ensemble import Ensemble, SplitTests, TreeStructure
from ledgerwood.mechanisms import ExponentialMechanism, SecureRandom

RUNS = 5
XGBOOST = 0.066
"""Seconds a tree of depth 6 of xgboost's hist method on 1,000,000 x 50 rows, two threads, after binning: measured once,
on a machine like this one."""


def least(call: Callable[[], object]) -> float:
    """Of some runs after a warm-up, in seconds."""
    call()
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def by_numpy(cells: NDArray[np.uint8], nodes: NDArray[np.int32], gradients: NDArray[np.float64], n_nodes: int) -> None:
    """Counts and sums of each node, feature and cell: two calls a feature, sums in floats."""
    width = int(cells.max()) + 1
    for column in cells:
        codes = nodes * width + column
        np.bincount(codes, minlength=n_nodes * width)
        np.bincount(codes, weights=gradients, minlength=n_nodes * width)


def main() -> None:
    """Print one row a level, and the whole tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 1_000_000), ("columns", 50), ("cells", 32), ("depth", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    generator = np.random.default_rng(0)
    cells = generator.integers(0, given.cells, (given.columns, given.rows)).astype(np.uint8)
    targets = generator.uniform(-1.0, 1.0, given.rows)
    schema = Schema.uniform(0.0, 1.0, n_features=given.columns, target=Numeric("y", -1, 1)).resolved(given.columns)
    table = Table(schema=schema, cells=cells, targets=targets)
    tests, mechanism = SplitTests.every(schema.cells(given.cells)), ExponentialMechanism(rate=0.01)
    structure, total = TreeStructure.root(), 0.0
    printed = Printed(title=f"{given.rows:,} x {given.columns}, {given.cells} cells a feature: seconds")
    for column in ("level", "nodes", "a level of private splits", "numpy's bincount, histogram only"):
        printed.add_column(column, justify="right")
    for level in range(given.depth):
        query = SplitGains(
            structure=structure,
            tests=tests,
            ensemble=Ensemble(initial_score=0.0),
            loss="squared",
            clip=1.0,
            damping=0.1,
        )
        event = query.event(mechanism, Adjacency.ADD_REMOVE)
        ledger = Ledger(Budget(epsilon=10.0, delta=0.0, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
        grant = ledger.grant(Composed((event,) * (RUNS + 2)), purpose="benchmark")
        curator = Curator(table, grant, SecureRandom())

        def select(curator=curator, event=event, query=query) -> SplitTests:  # type: ignore[no-untyped-def]
            with curator.open(event, purpose="level") as round_:
                chosen: SplitTests = round_.select(query, mechanism, purpose="level").value
                return chosen

        seconds = least(select)
        total += seconds
        nodes = structure.route(cells)
        beside = least(lambda nodes=nodes, n=structure.n_leaves: by_numpy(cells, nodes, targets, n))
        printed.add_row(str(level + 1), str(structure.n_leaves), f"{seconds:.4f}", f"{beside:.4f}")
        structure = structure.deeper(select())
    printed.add_row("all", "", f"{total:.4f}", "")
    console = Console()
    console.print(printed)
    console.print(f"xgboost hist, a tree of depth 6 on 1,000,000 x 50, stored: {XGBOOST} s (not private, no ledger)")


if __name__ == "__main__":
    main()
