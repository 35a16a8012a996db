"""Divergences row by row: seconds, and the over-estimate found against the exact price of each row's own event.

Run: python -m benchmarks.individuals
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.accounting import ORDERS, event
from ledgerwood.accounting.individuals import IndividualGDP, IndividualRenyi

CURVES = (("gaussian", 0.01, 1.0), ("gaussian", 0.1, 5.0), ("gaussian", 0.5, 20.0), ("laplace", 0.01, 1.0))
STORED = "stored figures for 1e5 rows, extrapolated from 20 to 100: Opacus 728 s, dp-accounting 1516 s, autodp 3191 s"
"""No peer has a vectorised call; theirs are loops over rows at their own default orders, timed once on another day."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was priced, seconds to build the table and to read it, the limit, the error."""

    family: str
    sampling_rate: float
    noise_multiplier: float
    rows: int
    orders: int
    build: float
    read: float
    limit: float
    overestimate: float


def least_seconds(run: Callable[[], object], repeats: int) -> float:
    """The least of some runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def overestimate(family: str, sampling_rate: float, noise_multiplier: float, orders: np.ndarray) -> float:
    """The largest relative excess over the exact price at some sensitivities; negative would be a breach."""
    s = np.concatenate((np.geomspace(1e-6, 1.0, 25), np.linspace(0.05, 1.0, 20)))
    found = IndividualRenyi(event(family, sampling_rate, noise_multiplier), orders).at(s)
    own = np.array([event(family, sampling_rate, noise_multiplier / value).renyi(orders) for value in s.tolist()])
    excess = found / own - 1.0
    return float(excess.max() if excess.min() >= 0.0 else excess.min())


def rows(repeats: int = 3) -> list[Row]:
    """1e6 rows at one order, and 1e5 rows at 150 orders, sensitivities uniform in [0, 1]."""
    s = np.random.default_rng(0).uniform(0.0, 1.0, 1_000_000)
    found = []
    for family, rate, multiplier in CURVES:
        priced = event(family, rate, multiplier)
        for n, orders, limit in ((1_000_000, np.array([8.0]), 0.3), (100_000, np.array(ORDERS), 10.0)):
            table = IndividualRenyi(priced, orders)
            build = least_seconds(lambda e=priced, a=orders: IndividualRenyi(e, a), repeats)  # type: ignore[misc]
            read = least_seconds(lambda t=table, x=s[:n]: t.at(x), repeats)  # type: ignore[misc]
            error = overestimate(family, rate, multiplier, orders)
            found.append(Row(family, rate, multiplier, n, orders.size, build, read, limit, error))
    return found


def main() -> None:
    """Print the table."""
    table = Table(title="divergences row by row, seconds, least of some runs", caption=STORED)
    for column in ("family", "rate", "multiplier", "rows", "orders", "build", "read", "both", "limit", "over-estimate"):
        table.add_column(column, justify="right")
    for row in rows():
        head = row.family, f"{row.sampling_rate:g}", f"{row.noise_multiplier:g}", f"{row.rows:.0e}", str(row.orders)
        seconds = (f"{value:.3f}" for value in (row.build, row.read, row.build + row.read, row.limit))
        table.add_row(*head, *seconds, f"{row.overestimate:.1e}")
    console = Console(width=150)
    console.print(table)
    gdp, s = IndividualGDP(event("gaussian", 1.0, 2.0)), np.random.default_rng(0).uniform(0.0, 1.0, 1_000_000)
    console.print(f"mu squared of 1e6 rows: {1e3 * least_seconds(lambda: gdp.mu_squared(s), 5):.1f} ms")


if __name__ == "__main__":
    main()
