"""Seconds of a tree's exact sums, by candidate bin or by leaf only, and of the noise on them.

On 1,000,000 x 50 rows, depth 6, 32 bins a feature, on two threads, after a warm-up; medians of some trees. Trees are
public and part their rows in halves, so that no level has fewer rows to read than half of them.

    python -m benchmarks.histogram_speed
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Printed

from ledgerwood import Adjacency, Numeric, Schema
from ledgerwood.curator import BinSums, CandidateBins, LeafCurvatures, LeafMoments, SideSums, Table
from ledgerwood.ensemble import Ensemble, SplitTests, TreeStructure
from ledgerwood.mechanisms import GaussianMechanism, SecureRandom

ROWS, COLUMNS, DEPTH, BINS, TREES = 1_000_000, 50, 6, 32, 7
EVERYONE = np.empty(0, dtype=np.bool_)


def table_of(rows: int, schema: Schema) -> Table:
    """Uniform cells, and two classes; seed 0."""
    generator = np.random.default_rng(0)
    cells = generator.integers(0, BINS, (COLUMNS, rows), dtype=np.uint8)
    return Table(schema=schema, cells=cells, targets=generator.choice((-1.0, 1.0), rows))


def levels(generator: np.random.Generator) -> list[TreeStructure]:
    """Trees of depth 0, 1, ... to the last level's, each one level more than the one before, of halves."""
    grown = [TreeStructure.root()]
    for level in range(DEPTH):
        n = 2**level
        # A feature on no path twice: the second test of its middle would part nothing.
        feature = np.full(n, (level * 8 + generator.integers(8)) % COLUMNS, dtype=np.int32)
        split, equals = np.full(n, BINS // 2, dtype=np.uint16), np.zeros(n, dtype=np.bool_)
        grown.append(grown[-1].deeper(SplitTests(feature=feature, split=split, equals=equals)))
    return grown


def seconds(rows: int = ROWS) -> dict[str, float]:
    """By what is measured, seconds a tree."""
    schema = Schema.uniform(0.0, 1.0, n_features=COLUMNS, target=Numeric("y", -1, 1))
    table, bins = table_of(rows, schema), CandidateBins.of(schema.cells(BINS))
    generator, source = np.random.default_rng(1), SecureRandom()
    found: dict[str, list[float]] = {}
    for _ in range(TREES + 1):
        ensemble, tree = Ensemble(initial_score=generator.random()), levels(generator)
        counts = LeafMoments(loss="logistic", clip=1.0).of(tree[0], ensemble)
        for name, leaf in (
            ("counts", counts),
            ("hessians", LeafCurvatures(clip=1.0).of(tree[0], ensemble)),
        ):
            sums, noise = 0.0, 0.0
            for at in tree[:-1]:
                query = BinSums(leaf=replace(leaf, structure=at), bins=bins)
                start = time.perf_counter()
                exact = table.reader(query)(EVERYONE)
                middle = time.perf_counter()
                mechanism = GaussianMechanism(stddev=8.0 * query.sensitivity(Adjacency.ADD_REMOVE).l2((1.0, 1.0)))
                mechanism.randomise(exact, query.grid, source)
                noise += time.perf_counter() - middle
                sums += middle - start
            found.setdefault(f"histograms of {name} and gradients, {DEPTH} levels: exact sums", []).append(sums)
            found.setdefault(f"histograms of {name} and gradients, {DEPTH} levels: noise", []).append(noise)
            start = time.perf_counter()
            table.reader(replace(leaf, structure=tree[-1]))(EVERYONE)
            found.setdefault(f"random splits, sums of {name} and gradients in the leaves", []).append(
                time.perf_counter() - start
            )
            start = time.perf_counter()
            for at in tree[:-1]:
                tests = SplitTests(
                    feature=np.tile(np.arange(COLUMNS, dtype=np.int32), at.n_leaves),
                    split=generator.integers(1, BINS, at.n_leaves * COLUMNS).astype(np.uint16),
                    equals=np.zeros(at.n_leaves * COLUMNS, dtype=np.bool_),
                )
                table.reader(SideSums(leaf=replace(leaf, structure=at), tests=tests))(EVERYONE)
            found.setdefault(f"a random test a feature and node, sides by {name} and gradients", []).append(
                time.perf_counter() - start
            )
    # The first tree is the warm-up: it compiles, and lays the bins out by row.
    return {name: float(np.median(runs[1:])) for name, runs in found.items()}


def speed_table(console: Console, *, quick: bool = False) -> dict[str, Any]:
    """Measure and print; plain values by row."""
    rows = ROWS // 100 if quick else ROWS
    found = seconds(rows)
    table = Printed(title=f"seconds a tree of depth {DEPTH}, {rows:,} x {COLUMNS} rows, {BINS} bins, two threads")
    for column in ("what", "seconds"):
        table.add_column(column)
    for name, value in found.items():
        table.add_row(name, f"{value:.3f}")
    console.print(table)
    return found


if __name__ == "__main__":
    speed_table(Console())
