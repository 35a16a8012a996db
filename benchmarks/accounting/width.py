"""How wide our intervals are: over a grid of sampled Gaussian plans, and against the peers as plans grow."""

import itertools
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.accounting import cases, inversion, sides
from benchmarks.accounting.agreement import refuted
from benchmarks.accounting.cases import Case
from benchmarks.accounting.tightness import EPSILON_ERROR, STEP, narrow, our_interval

COUNTS = (1, 100, 10**4, 10**6, 10**8)
RATES = (1e-6, 1e-4, 1e-2, 0.1, 1.0)
DELTAS = (1e-3, 1e-10, 1e-30)
MULTIPLIERS = (0.5, 2.0, 20.0)
SWEEP = tuple(10**k for k in range(9))
SWEEP_PLAN = (1e-3, 2.0, 1e-6)  # rate, multiplier, delta
_PEERS_UP_TO = {"dpa": 10**8, "prv": 10**5}


def verdict(interval: list[float] | None) -> str:
    """ "in goal", "wide", "unbounded" or, without an answer, "refused"."""
    if interval is None:
        return "refused"
    if not np.isfinite(interval[1]):
        return "unbounded"
    return "in goal" if narrow(*interval) else "wide"


def _grid() -> list[dict[str, Any]]:
    records = []
    for count, rate, delta, multiplier in itertools.product(COUNTS, RATES, DELTAS, MULTIPLIERS):
        case = Case(draws=cases.sampled(rate, count, multiplier), delta=delta)
        answer = our_interval(case, runs=1)
        low, high = answer.get("value", (0.0, np.inf))
        judge = inversion.epsilon(case.draws, delta, high) if 0.0 < high < np.inf else None
        records.append(
            {
                "count": count, "rate": rate, "delta": delta, "multiplier": multiplier,
                "interval": answer.get("value"), "error": answer.get("error"), "ms": answer.get("ms"),
                "verdict": verdict(answer.get("value")), "judge": judge, "refuted": refuted(judge, (low, high)),
            }
        )  # fmt: skip
    return records


def _sweep(slow: bool) -> list[dict[str, Any]]:
    rate, multiplier, delta = SWEEP_PLAN
    plans = [Case(draws=cases.sampled(rate, count, multiplier), delta=delta) for count in SWEEP]
    records = [{"count": count, "ledgerwood": our_interval(case)} for count, case in zip(SWEEP, plans, strict=True)]

    def column(name: str, peer: str, group: str, **options: Any) -> None:
        asked = [i for i, count in enumerate(SWEEP) if slow or count <= _PEERS_UP_TO[group]]
        questions = [sides.question("losses_epsilon", draws=plans[i].draws, delta=delta, **options) for i in asked]
        for i, answer in zip(asked, sides.ask(peer, questions), strict=True):
            records[i][name] = answer

    column("dpa below", "dp-accounting", "dpa", step=STEP, pessimistic=False)
    column("dpa above", "dp-accounting", "dpa", step=STEP)
    column("prv", "prv-accountant", "prv", epsilon_error=EPSILON_ERROR)
    return records


def measure(*, slow: bool) -> dict[str, list[dict[str, Any]]]:
    """The grid and the sweep over the number of draws."""
    return {"grid": _grid(), "sweep": _sweep(slow)}


def excess(record: dict[str, Any]) -> float:
    """Width in units of the goal."""
    low, high = record["interval"]
    return float((high - low) / max(1e-4, 1e-3 * high))


def show(console: Console, found: dict[str, list[dict[str, Any]]]) -> None:
    """Print the shares by delta, the worst, and the sweep."""
    grid = found["grid"]
    table = Table(title="our intervals over a grid: width at most 1e-4 or one part in 1000 is the goal")
    verdicts = ("in goal", "wide", "unbounded", "refused")
    for column in ("plans", "of", *verdicts, "judged", "refuted", "worst width / goal", "median ms", "largest ms"):
        table.add_column(column, justify="left" if column == "plans" else "right")

    def line(name: str, records: list[dict[str, Any]]) -> None:
        counts = [sum(record["verdict"] == one for record in records) for one in verdicts]
        finite = [excess(record) for record in records if record["verdict"] in ("in goal", "wide")]
        times = [record["ms"] for record in records if record["ms"] is not None] or [np.nan]
        table.add_row(
            name, str(len(records)), *map(str, counts), str(sum(record["judge"] is not None for record in records)),
            str(sum(record["refuted"] or False for record in records)), f"{max(finite, default=np.nan):.3g}",
            f"{np.median(times):.0f}",
            f"{max(times):.0f}",
        )  # fmt: skip

    line("all", grid)
    for key in ("delta", "count", "rate", "multiplier"):
        table.add_section()
        for value in dict.fromkeys(record[key] for record in grid):
            line(f"{key} {value:g}", [record for record in grid if record[key] == value])
    console.print(table)
    console.print("judged: by inversion of the loss's transform at the saddle point, where that converges")
    worst = sorted((r for r in grid if r["verdict"] == "wide"), key=excess, reverse=True)[:8]
    others = [r for r in grid if r["verdict"] in ("unbounded", "refused")][:8]
    for record in [*worst, *others, *[r for r in grid if r["refuted"]]]:
        plan = cases.label(cases.sampled(record["rate"], record["count"], record["multiplier"]))
        outcome = str(record["interval"] or record["error"]).replace("[", "\\[")
        console.print(f"  {plan}, delta {record['delta']:g}: {outcome}, judge {record['judge']}")

    rate, multiplier, delta = SWEEP_PLAN
    sweep = Table(title=f"width against the number of draws: G({multiplier:g})@{rate:g}, delta {delta:g}")
    for column in ("draws", "ledgerwood", "dp-accounting 1e-4", "prv-accountant .01"):
        sweep.add_column(column, justify="right")
    for record in found["sweep"]:
        sweep.add_row(f"{record['count']:g}", *(_shown(pair(record, library)) for library in LIBRARIES))
    console.print(sweep)


LIBRARIES = ("ledgerwood", "dp-accounting", "prv-accountant")


def pair(record: dict[str, Any], library: str) -> tuple[float, float] | None:
    """(lower, upper) of a library in one record of the sweep, where both are there."""
    if library == "dp-accounting":
        below, above = record.get("dpa below", {}), record.get("dpa above", {})
        return (below["value"], above["value"]) if "value" in below and "value" in above else None
    found = record.get({"ledgerwood": "ledgerwood", "prv-accountant": "prv"}[library], {})
    return (found["value"][0], found["value"][-1]) if "value" in found else None


def _shown(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"\\[{bounds[0]:.6f}, {bounds[1]:.6f}]  {bounds[1] - bounds[0]:.1e}"
