"""Seconds of private splits, level by level, beside numpy's histogram of the same rows; and of grid-less ones.

    python -m benchmarks.gains [--rows 1000000] [--columns 50] [--cells 32] [--fine 60000] [--depth 6]

Each level is one `select` of a curator's round: gradients, routing, histogram (or rows in the order of their cells),
exact gains, exponential mechanism. The grid-less ones, on `--fine` cells, are timed on a tenth of the rows too.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed

from ledgerwood import Adjacency, Budget, Composed, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import Curator, GridlessGains, SplitGains
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble, SplitTests, TreeStructure
from ledgerwood.mechanisms import ExponentialMechanism, GridlessMechanism, SecureRandom

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


def by_numpy(
    cells: NDArray[np.unsignedinteger], nodes: NDArray[np.int32], gradients: NDArray[np.float64], n_nodes: int
) -> None:
    """Counts and sums of each node, feature and cell: two calls a feature, sums in floats."""
    width = int(cells.max()) + 1
    for column in cells:
        codes = nodes * width + column
        np.bincount(codes, minlength=n_nodes * width)
        np.bincount(codes, weights=gradients, minlength=n_nodes * width)


def level(
    table: Table, query: SplitGains | GridlessGains, mechanism: ExponentialMechanism | GridlessMechanism
) -> tuple[float, TreeStructure]:
    """Seconds of one level, and the tree with it."""
    event = query.event(mechanism, Adjacency.ADD_REMOVE)  # type: ignore[arg-type]  # they belong together
    ledger = Ledger(Budget(epsilon=10.0, delta=0.0, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(Composed((event,) * (RUNS + 2)), purpose="benchmark")
    curator = Curator(table, grant, SecureRandom())

    def select() -> SplitTests:
        with curator.open(event, purpose="level") as round_:
            chosen: SplitTests = round_.select(query, mechanism, purpose="level").value  # type: ignore[arg-type]
            return chosen

    return least(select), query.structure.deeper(select())


def rows_of(columns: int, rows: int, cells: int) -> tuple[Schema, NDArray[np.unsignedinteger], NDArray[np.float64]]:
    """Even cells and even labels."""
    generator = np.random.default_rng(0)
    kind = np.uint8 if cells <= 256 else np.uint16
    schema = Schema.uniform(0.0, 1.0, n_features=columns, target=Numeric("y", -1, 1)).resolved(columns)
    return schema, generator.integers(0, cells, (columns, rows), dtype=kind), generator.uniform(-1.0, 1.0, rows)


def listed(rows: int, columns: int, cells: int, depth: int) -> Printed:
    """One row a level, and the whole tree: all tests listed."""
    schema, drawn, targets = rows_of(columns, rows, cells)
    table = Table(schema=schema, cells=drawn, targets=targets)
    tests, mechanism = SplitTests.every(schema.cells(cells)), ExponentialMechanism(rate=0.01)
    structure, total = TreeStructure.root(), 0.0
    printed = Printed(title=f"{rows:,} x {columns}, {cells} cells a feature: seconds")
    for column in ("level", "nodes", "a level of private splits", "numpy's bincount, histogram only"):
        printed.add_column(column, justify="right")
    for number in range(depth):
        query = SplitGains(
            structure=structure,
            tests=tests,
            ensemble=Ensemble(initial_score=0.0),
            loss="squared",
            clip=1.0,
            damping=0.1,
        )
        nodes, n_nodes = structure.route(drawn), structure.n_leaves
        beside = least(lambda nodes=nodes, n_nodes=n_nodes: by_numpy(drawn, nodes, targets, n_nodes))
        seconds, structure = level(table, query, mechanism)
        printed.add_row(str(number + 1), str(n_nodes), f"{seconds:.4f}", f"{beside:.4f}")
        total += seconds
    printed.add_row("all", "", f"{total:.4f}", "")
    return printed


def gridless(rows: tuple[int, ...], columns: int, cells: int, depth: int) -> Printed:
    """One row a level, and the whole tree: all thresholds of a fine grid, for several numbers of rows."""
    printed = Printed(title=f"grid-less, {columns} features of {cells:,} cells: seconds")
    printed.add_column("level", justify="right")
    found = []
    for n in rows:
        printed.add_column(f"{n:,} rows", justify="right")
        schema, drawn, targets = rows_of(columns, n, cells)
        table = Table(schema=schema, cells=drawn, targets=targets)
        structure, seconds = TreeStructure.root(), []
        for _ in range(depth):
            query = GridlessGains(
                structure=structure,
                cells=schema.cells(cells),
                ensemble=Ensemble(initial_score=0.0),
                loss="squared",
                clip=1.0,
                damping=0.1,
            )
            one, structure = level(table, query, GridlessMechanism(rate=0.01))
            seconds.append(one)
        found.append([*seconds, sum(seconds)])
    for name, *times in zip([*map(str, range(1, depth + 1)), "all"], *found, strict=True):
        printed.add_row(name, *(f"{time_:.4f}" for time_ in times))
    return printed


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 1_000_000), ("columns", 50), ("cells", 32), ("fine", 60_000), ("depth", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    console = Console()
    console.print(listed(given.rows, given.columns, given.cells, given.depth))
    console.print(f"xgboost hist, a tree of depth 6 on 1,000,000 x 50, stored: {XGBOOST} s (not private, no ledger)")
    console.print(gridless((given.rows // 10, given.rows), given.columns, given.fine, given.depth))


if __name__ == "__main__":
    main()
