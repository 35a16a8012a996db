"""Seconds of questions to a table of columns, noise included, beside numpy's own sums, which are not private.

Run: python -m benchmarks.questions [--rows 1000000] [--threads 2]
"""

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from ledgerwood.curator import (
    ColumnCount,
    ColumnHistogram,
    ColumnKeys,
    ColumnMode,
    ColumnMoments,
    ColumnQuantile,
    ColumnSum,
    ColumnTable,
    Curator,
)
from ledgerwood.mechanisms import (
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    LaplaceMechanism,
    QuantileMechanism,
    SecureRandom,
    StabilityHistogramMechanism,
)

A = lw.Adjacency.ADD_REMOVE
AGE = lw.Numeric("age", 17.0, 90.0)
REGION = lw.Categorical("region", tuple(f"r{i}" for i in range(20)))
RUNS = 25


def seconds(call: Callable[[], object]) -> float:
    """The fastest of a few runs, after one that compiles."""
    call()
    spent = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    numba.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    ages = generator.uniform(10.0, 95.0, options.rows)
    codes = generator.integers(0, 22, options.rows).astype(np.uint16)
    towns = (generator.integers(0, 1000, options.rows), tuple(f"t{i}" for i in range(1000)))
    table = ColumnTable(
        schema=lw.Schema(features=(AGE, REGION)),
        columns={"age": ages, "region": codes},
        keys={"town": towns},
        rows=options.rows,
    )
    counting = DiscreteLaplaceMechanism(scale=10.0)
    even = ColumnHistogram.even(AGE, 256)
    edges = np.array(even.edges)
    statistics = {
        "count": (ColumnCount(column=AGE), counting, lambda: np.count_nonzero(np.isfinite(ages))),
        "sum": (ColumnSum(column=AGE), LaplaceMechanism(scales=(365.0,)), lambda: np.clip(ages, 17.0, 90.0).sum()),
        "count and sum": (
            ColumnMoments(column=AGE),
            EllipticalGaussianMechanism(stddevs=(17.0, 450.0)),
            lambda: (np.count_nonzero(np.isfinite(ages)), np.clip(ages, 17.0, 90.0).sum()),
        ),
        "histogram, 22 categories": (ColumnHistogram(column=REGION), counting, lambda: np.bincount(codes)),
        "histogram, 256 cells": (even, counting, lambda: np.histogram(ages, edges)),
    }
    selections = {
        "most common of 20": (
            ColumnMode(histogram=ColumnHistogram(column=REGION)),
            ExponentialMechanism(rate=0.1),
            lambda: np.bincount(codes).argmax(),
        ),
        "median": (
            ColumnQuantile(column=AGE),
            QuantileMechanism(quantile=0.5, rate=0.1),
            lambda: np.quantile(ages, 0.5),
        ),
        "keys, 1,000": (
            ColumnKeys(name="town"),
            StabilityHistogramMechanism.for_delta(10.0, 1e-7),
            lambda: np.bincount(towns[0]),
        ),
    }
    shown = Table(title=f"{options.rows:,} rows, {options.threads} threads, SecureRandom: milliseconds a question")
    for heading in ("question", "private", "numpy, not private"):
        shown.add_column(heading, justify="left" if heading == "question" else "right")
    for name, (query, mechanism, plain) in (statistics | selections).items():
        choice = name in selections
        event = query.event(mechanism, A) if choice else mechanism.event(query.sensitivity(A), A)
        whole = lw.PoissonSampled(lw.Repeated(event, count=RUNS + 1), sampling_rate=1.0)
        ledger = lw.Ledger(lw.Budget(epsilon=1e6, delta=0.1, adjacency=A), unit=lw.PrivacyUnit.ROW)
        with Curator(table, ledger.grant(whole, purpose=name), SecureRandom()).open(whole, purpose=name) as round_:
            ask = round_.select if choice else round_.release
            spent = seconds(lambda ask=ask, q=query, m=mechanism: ask(q, m, purpose="timing"))
        shown.add_row(name, f"{spent * 1e3:.2f}", f"{seconds(plain) * 1e3:.2f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
