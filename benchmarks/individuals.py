"""Divergences row by row: seconds, and the over-estimate found against the exact price of each row's own event; and
what a round under the individual filter costs beside one without.

Run: python -m benchmarks.individuals
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.accounting import ORDERS, event
from ledgerwood import (
    Adjacency,
    Budget,
    Composed,
    FilteredEvent,
    GDPEvent,
    Ledger,
    Numeric,
    PoissonSampled,
    PrivacyUnit,
    RenyiEvent,
    Repeated,
    Schema,
)
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.individuals import IndividualGDP, IndividualRenyi
from ledgerwood.curator import Curator, LeafCurvatures, LeafMoments
from ledgerwood.curator import Table as Curated
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, SecureRandom

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


def filtered_rounds(repeats: int = 9) -> Iterator[tuple[str, str, float, float]]:
    """(noise, statistic, seconds of a round without the filter, with it): 1e6 rows in one leaf, all threads."""
    n, generator = 1_000_000, np.random.default_rng(0)
    schema = Schema.uniform(0.0, 1.0, n_features=1, target=Numeric("y", -1.0, 1.0))
    root = TreeStructure(feature=np.zeros(0, np.int32), split=np.zeros(0, np.uint16), equals=np.zeros(0, np.bool_))
    start = Ensemble(initial_score=0.0)
    moments = LeafMoments(loss="squared", clip=0.25).of(root, start)
    curvatures = LeafCurvatures(clip=0.5).of(root, start)
    labels = {"moments": generator.uniform(-1.0, 1.0, n), "curvature": np.where(generator.random(n) < 0.5, -1.0, 1.0)}
    for rate in (1.0, 0.1):
        choices: tuple[tuple[str, Any, Any], ...] = (
            ("moments", moments, EllipticalGaussianMechanism(stddevs=(1e4, 1e3))),
            ("curvature", curvatures, GaussianMechanism(stddev=1e3)),
        )
        for name, query, mechanism in choices:
            table = Curated(schema=schema, cells=np.zeros((1, n), np.uint8), targets=labels[name])
            one = mechanism.event(query.sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE)
            plain = one if rate == 1.0 else PoissonSampled(one, sampling_rate=rate)
            limit = (
                GDPEvent(mu=1e3 * one.mu(), adjacency=one.adjacency)
                if rate == 1.0
                else RenyiEvent(orders=(8.0,), divergences=(0.1,), adjacency=one.adjacency)
            )
            filtered = FilteredEvent(plain, limit=limit)
            ledger = Ledger(Budget(epsilon=100.0, delta=1e-6, adjacency=one.adjacency), unit=PrivacyUnit.ROW)
            grant = ledger.grant(Composed((filtered, Repeated(plain, count=repeats + 1))), purpose="benchmark")
            curator = Curator(table, grant, SecureRandom())

            def unfiltered(
                curator: Curator = curator, event: Event = plain, q: Any = query, m: Any = mechanism
            ) -> None:
                with curator.open(event, purpose="plain") as round_:
                    round_.release(q, m, purpose="plain")

            rounds = curator.open(filtered, purpose="filtered")
            unfiltered()
            rounds.release(query, mechanism, purpose="warm-up")
            without = least_seconds(unfiltered, repeats)
            with_it = least_seconds(lambda r=rounds, q=query, m=mechanism: r.release(q, m, purpose="x"), repeats)  # type: ignore[misc]
            yield ("full batch" if rate == 1.0 else f"sampled at {rate:g}"), name, without, with_it


def main() -> None:
    """Print the tables."""
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
    rounds = Table(title="a round of 1e6 rows, seconds, least of some runs; 8 bytes a row; limit .04 for the filter")
    for column in ("noise", "statistic", "without filter", "with filter", "filter"):
        rounds.add_column(column, justify="right")
    for noise, statistic, without, with_it in filtered_rounds():
        rounds.add_row(noise, statistic, f"{without:.4f}", f"{with_it:.4f}", f"{with_it - without:.4f}")
    console.print(rounds)


if __name__ == "__main__":
    main()
