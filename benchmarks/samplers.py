"""Draws a second of the exact samplers, beside numpy (which is not private) and, where it is installed, OpenDP.

Run: python -m benchmarks.samplers
"""

import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from ledgerwood.curator import FeatureQuantiles, Numeric, Schema
from ledgerwood.curator import Table as Rows
from ledgerwood.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    JointQuantilesMechanism,
    LaplaceMechanism,
    NoisyMaxMechanism,
    NumericCandidates,
    PermuteAndFlipMechanism,
    QuantileMechanism,
    RandomizedResponseMechanism,
    SecureRandom,
    SkellamMechanism,
    SparseVectorMechanism,
)

BATCHES = {"64 leaves x 2": (64, 2), "1,000": (1_000, 1), "1,000,000": (1_000_000, 1)}
STEPS = (0, 20, 40, 50)


def seconds(call: Callable[[], object]) -> float:
    """The fastest of a few runs, after a warm-up."""
    call()
    best = float("inf")
    for _ in range(5):
        repeats, spent = 0, 0.0
        start = time.perf_counter()
        while spent < 0.05:
            call()
            repeats += 1
            spent = time.perf_counter() - start
        best = min(best, spent / repeats)
    return best


def main() -> None:
    source = SecureRandom()
    generator = np.random.default_rng()
    table = Table(title="Exact noise on one thread, SecureRandom: million draws a second (microseconds a call)")
    table.add_column("noise")
    table.add_column("scale in grid steps")
    for batch in BATCHES:
        table.add_column(batch, justify="right")
    for bits in STEPS:
        rows: dict[str, list[str]] = {}
        for rows_columns in BATCHES.values():
            statistic = np.zeros(rows_columns, dtype=np.int64)
            columns = rows_columns[1]
            grid = Grid(exponents=(-bits,) * columns)
            mechanisms = {
                "Gaussian": GaussianMechanism(stddev=1.3),
                "elliptical Gaussian": EllipticalGaussianMechanism(
                    stddevs=tuple(1.3 / (1 + i) for i in range(columns))
                ),
                "Laplace": LaplaceMechanism(scales=(1.3,) * columns),
            }
            for name, mechanism in mechanisms.items():
                spent = seconds(lambda m=mechanism, s=statistic, g=grid: m.randomise(s, g, source))
                rows.setdefault(name, []).append(cell(statistic.size, spent))
            spent = seconds(
                lambda s=statistic, b=bits: s + np.rint(generator.standard_normal(s.shape) * 1.3 * 2.0**b).astype(int)
            )
            rows.setdefault("numpy, rounded float (a breach)", []).append(cell(statistic.size, spent))
        for name, cells in rows.items():
            table.add_row(name, f"1.3 x 2^{bits}", *cells)
        table.add_section()
    Console().print(table)
    Console().print(whole_numbers(source))
    Console().print(selections(source))
    Console().print(quantiles_of_features(source))


def whole_numbers(source: SecureRandom) -> Table:
    """The integer laws, on whole numbers."""
    table = Table(title="Exact integer noise on one thread, SecureRandom: million draws a second (microseconds a call)")
    for heading in ("noise", "scale", *BATCHES):
        table.add_column(heading, justify="left" if heading == "noise" else "right")
    for scale in (1.0, 30.0, 1000.0):
        mechanisms = {
            "discrete Laplace": DiscreteLaplaceMechanism(scale=scale),
            "discrete Gaussian": DiscreteGaussianMechanism(scale=scale),
            "Skellam": SkellamMechanism(variance=scale**2),
        }
        for name, mechanism in mechanisms.items():
            cells = []
            for shape in BATCHES.values():
                statistic, grid = np.zeros(shape, dtype=np.int64), Grid(exponents=(0,) * shape[1])
                spent = seconds(lambda m=mechanism, s=statistic, g=grid: m.randomise(s, g, source))
                cells.append(cell(statistic.size, spent))
            table.add_row(name, f"{scale:g}", *cells)
        for name, calls in beside(scale):
            cells = [
                cell(shape[0] * shape[1], seconds(call)) for shape, call in zip(BATCHES.values(), calls, strict=False)
            ]
            table.add_row(name, f"{scale:g}", *cells, *("",) * (len(BATCHES) - len(cells)))
        table.add_section()
    for categories in (2, 100):
        answers = RandomizedResponseMechanism(epsilon=1.0, categories=categories)
        cells = []
        for shape in BATCHES.values():
            rows = np.ones(shape, dtype=np.int64)
            spent = seconds(lambda m=answers, r=rows: m.randomise(r, source))
            cells.append(cell(rows.size, spent))
        table.add_row(f"randomised response, {categories} categories", "", *cells)
    return table


def beside(scale: float) -> Iterator[tuple[str, list[Callable[[], object]]]]:
    """The same laws by others: name, and a call for each batch (of OpenDP not the largest: it would take minutes)."""
    generator, sizes = np.random.default_rng(), [rows * columns for rows, columns in BATCHES.values()]
    p = -np.expm1(-1.0 / scale)
    yield (
        "numpy, two geometric (floats inside)",
        [lambda n=n: generator.geometric(p, n) - generator.geometric(p, n) for n in sizes],
    )
    yield (
        "numpy, two Poisson (floats inside)",
        [lambda n=n: generator.poisson(0.5 * scale**2, n) - generator.poisson(0.5 * scale**2, n) for n in sizes],
    )
    if importlib.util.find_spec("opendp") is None:
        return
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    for name, measurement in (
        ("OpenDP, discrete Laplace", dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=scale)),
        ("OpenDP, discrete Gaussian", dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=scale)),
    ):
        yield name, [lambda m=measurement, n=n: m([0] * n) for n in sizes[:2]]


def selections(source: SecureRandom) -> Table:
    """One choice among n candidates, or from n rows on a grid of 2**30 points."""
    sizes = (100, 1_000, 100_000)
    table = Table(title="One exact choice on one thread, SecureRandom: milliseconds")
    table.add_column("choice")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    unit, points = Grid(exponents=(-4,)), 2**30
    utilities = [np.arange(size, dtype=np.int64) % 97 for size in sizes]
    rows = [np.sort(source.integers(points, size)) for size in sizes]
    features = [
        (NumericCandidates(positions=r, points=points, utilities=np.append(u, 0)),)
        for r, u in zip(rows, utilities, strict=True)
    ]
    deciles = tuple(i / 10 for i in range(1, 10))
    run = SparseVectorMechanism(threshold_scale=9.0, query_scale=9.0).start(unit, source)
    calls: dict[str, list[Callable[[], object]]] = {
        "exponential": [lambda u=u: ExponentialMechanism(rate=1.0).select(u, unit, source) for u in utilities],
        "permute-and-flip": [lambda u=u: PermuteAndFlipMechanism(rate=1.0).select(u, unit, source) for u in utilities],
        "noisy maximum": [lambda u=u: NoisyMaxMechanism(scale=1.0).select(u, unit, source) for u in utilities],
        "grid-less, one feature": [lambda f=f: GridlessMechanism(rate=1.0).select(f, unit, source) for f in features],
        "median": [lambda r=r: QuantileMechanism(quantile=0.5, rate=0.5).select(r, points, source) for r in rows],
        "deciles, jointly": [
            lambda r=r: JointQuantilesMechanism(quantiles=deciles, rate=0.5).select(r, points, source) for r in rows[:2]
        ],
        "sparse vector, one query": [lambda: run.above(-(10**9), 0)],
    }
    for name, each in calls.items():
        cells = [f"{seconds(call) * 1e3:,.3f}" for call in each]
        table.add_row(name, *cells, *("",) * (len(sizes) - len(cells)))
    return table


def quantiles_of_features(source: SecureRandom) -> Table:
    """Nine quantiles of each of 24 features of 256 cells, from the rows to the thresholds."""
    sizes = (10_000, 100_000, 1_000_000)
    table = Table(title="Nine exact joint quantiles of 24 features, SecureRandom: seconds")
    table.add_column("rate, nats a row")
    for size in sizes:
        table.add_column(f"{size:,} rows", justify="right")
    cells = np.random.default_rng(0).binomial(255, 0.4, (24, sizes[-1])).astype(np.uint8)
    schema = Schema.uniform(0.0, 1.0, n_features=24, target=Numeric("y", 0.0, 1.0))
    query = FeatureQuantiles(features=tuple(range(24)), cells=256)
    for rate in (0.001, 0.1):
        mechanism = JointQuantilesMechanism(quantiles=tuple(i / 10 for i in range(1, 10)), rate=rate)
        spent = []
        for size in sizes:
            rows = Rows(schema=schema, cells=np.ascontiguousarray(cells[:, :size]), targets=np.zeros(size))
            read = rows.evidence(query)
            everyone = np.empty(0, dtype=np.bool_)
            spent.append(seconds(lambda r=read, m=mechanism, e=everyone: query.select(m, r(e), source)))
        table.add_row(f"{rate:g}", *(f"{each:.3f}" for each in spent))
    return table


def cell(draws: int, spent: float) -> str:
    return f"{draws / spent / 1e6:.2f} ({spent * 1e6:,.0f})"


if __name__ == "__main__":
    main()
