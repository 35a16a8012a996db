"""Seconds of trees that are grown by private gains, beside xgboost and the published code of DP-XGBoost.

Every tree is over all rows, of depth 6, on two threads, after a warm-up; the difference of two lengths leaves reading,
binning and paying out.
"""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.sgbdt_speed import XGBOOST, synthetic, timed
from ledgerwood import Numeric, Schema
from ledgerwood.trainers import DPBoostRegressor, DPXGBoostRegressor

COLUMNS, DEPTH, CANDIDATES, FINE_BINS = 50, 6, 32, 60_000
MANY_ROWS, PEER_ROWS, ROWS = 1_000_000, 200_000, 100_000
SHORT, LONG = 2, 6
STORED_PEER = 0.925
"""Seconds a tree of the published code on 200,000 x 50 rows, measured once on two cores."""
DP_XGBOOST = ("dp-xgboost==0.2.10", "numpy<2", "scipy")
"""Compiles for some minutes at first use."""


def dpboost(bins: int, candidates: str) -> Callable[[int], Any]:
    """DPBoost, one tree an ensemble, so that each has all rows."""
    schema = Schema.uniform(0.0, 1.0, n_features=COLUMNS, target=Numeric("y", -1, 1))
    return lambda trees: DPBoostRegressor(
        epsilon=10.0,
        schema=schema,
        preset="seq",
        candidates=candidates,
        max_bins=bins,
        n_estimators=trees,
        max_depth=DEPTH,
    )


def dpxgboost(sampling_rate: float) -> Callable[[int], Any]:
    """DP-XGBoost with the paper's sketch."""
    schema = Schema.uniform(0.0, 1.0, n_features=COLUMNS, target=Numeric("y", -1, 1))
    return lambda trees: DPXGBoostRegressor(
        epsilon=10.0, schema=schema, preset="paper", n_estimators=trees, max_depth=DEPTH, subsample=sampling_rate
    )


def seconds_a_tree(make: Callable[[int], Any], rows: int) -> float:
    """The least of three runs of each length, after a warm-up."""
    X, y = synthetic(rows)
    make(SHORT).fit(X, y)
    short, long = (timed(lambda trees=trees: make(trees).fit(X, y)) for trees in (SHORT, LONG))
    return (long - short) / (LONG - SHORT)


def speed_table(console: Console, *, quick: bool = False) -> dict[str, Any]:
    """Measure and print; plain values by row."""
    divisor = 100 if quick else 1
    many, some, few = (rows // divisor for rows in (MANY_ROWS, PEER_ROWS, ROWS))
    cases = (
        (f"DPBoost, {CANDIDATES} public candidates a feature", dpboost(CANDIDATES, "grid"), many, "1 s"),
        ("DPBoost, grid-less", dpboost(FINE_BINS, "gridless"), few, "1 s"),
        ("DPBoost, grid-less", dpboost(FINE_BINS, "gridless"), many, "reported"),
        ("DP-XGBoost, private sketch, all rows", dpxgboost(1.0), some, ""),
        ("DP-XGBoost, private sketch, all rows", dpxgboost(1.0), many, ""),
        ("DP-XGBoost, private sketch, a tenth of the rows", dpxgboost(0.1), many, ""),
    )
    found: dict[str, Any] = {}
    for name, make, rows, target in cases:
        found[f"{name}, {rows:,} x {COLUMNS}"] = {"seconds": seconds_a_tree(make, rows), "target": target}
    sizes = f"ROWS, COLUMNS, DEPTH = {many}, {COLUMNS}, {DEPTH}\n"
    beside = peers.run("xgboost", ("xgboost-cpu",), sizes + XGBOOST)
    found[f"xgboost hist, not private, {many:,} x {COLUMNS}"] = {"seconds": beside, "target": ""}
    found[f"dp-xgboost (published code), {some:,} x {COLUMNS}"] = {"seconds": peer_seconds(some), "target": ""}
    print_speed(found, console)
    return found


def print_speed(found: dict[str, Any], console: Console) -> None:
    """A row a case."""
    table = Table(title=f"seconds a tree of depth {DEPTH}, two threads, all rows in every tree")
    for column in ("what", "seconds", "target"):
        table.add_column(column)
    for name, row in found.items():
        seconds = "cannot be installed here" if row["seconds"] is None else f"{row['seconds']:.3f}"
        table.add_row(name, seconds, row["target"])
    console.print(table)
    console.print(f"dp-xgboost was measured once elsewhere at {STORED_PEER} s on {PEER_ROWS:,} x {COLUMNS}\n")


def peer_seconds(rows: int) -> float | None:
    """The published code, live; None where it cannot be built."""
    given = {"task": "speed", "rows": rows, "columns": COLUMNS, "depth": DEPTH}
    seconds: float | None = peers.run("dp_xgboost", DP_XGBOOST, peers.FOLDER.parent / "dpxgboost_peer.py", given)
    return seconds
