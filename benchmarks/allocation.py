"""Random allocation: certified intervals beside PLD_accounting's, Poisson samples of the same rate, and time.

Run: python -m benchmarks.allocation [--peer PYTHON] [--part costs | draws | trees ...] [--only PLACE ...] [--save]
where PYTHON is an interpreter that has PLD_accounting installed.

"costs" are the intervals; "draws" compares them with Monte Carlo estimates (benchmarks.allocation_draws); "trees" fits
models with both samplers (benchmarks.allocation_trees, which reads LEDGERWOOD_DATA).
"""

import argparse
import json
import platform
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks import allocation_draws, allocation_trees
from benchmarks.allocation_cases import CASES, Case

SAVED = Path(__file__).parents[1] / "docs" / "benchmarks" / "allocation.json"
PARTS = ("costs", "draws", "trees")
PATIENCE = 60
"""Seconds of a core, for a peer; where it has no answer by then the table says so."""


def ours(case: Case) -> dict[str, float]:
    """The interval, and the seconds of a core of its upper end."""
    price = lw.price(case.plan())
    start = time.process_time()
    price.epsilon(case.delta)
    seconds = time.process_time() - start
    low, high = price.epsilon_interval(case.delta)
    return {"low": low, "high": high, "seconds": seconds}


def peers(case: Case, python: str, patience: int) -> dict[str, Any]:
    """The peer's interval, or why there is none; of Laplace noise it has an upper end only."""
    command = [python, str(Path(__file__).with_name("allocation_peer.py")), str(patience)]
    done = subprocess.run(command, input=json.dumps(asdict(case)), capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return {"why": f"no answer in {patience} s"}
    if done.returncode:
        return {"why": (done.stderr.strip().splitlines() or ["failed"])[-1][:80]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def costs(case: Case, python: str | None, patience: int = PATIENCE) -> dict[str, Any]:
    """One row of the first table."""
    return {
        "case": asdict(case),
        "ours": ours(case),
        "peer": peers(case, python, patience) if python else None,
        "poisson": lw.price(case.sampled()).epsilon(case.delta),
    }


def contradictions(found: Sequence[dict[str, Any]]) -> int:
    """The number of cases in which one interval lies outside the other."""
    both = [(each["ours"], each["peer"]) for each in found if "high" in (each["peer"] or {})]
    return sum(a["high"] < (b["low"] or 0.0) or b["high"] < a["low"] for a, b in both)


def show(found: Sequence[dict[str, Any]]) -> Table:
    """The costs as a table."""
    table = Table(title="Random allocation: epsilon from below and from above, relative width, seconds")
    ends = ("width", "s")
    names = ("noise", "multiplier", "k of t", "passes", "delta")
    for name in (*names, "ledgerwood", *ends, "PLD_accounting", *ends, "Poisson"):
        table.add_column(name)
    for each in found:
        peer = each["peer"] or {}
        table.add_row(
            *Case(**each["case"]).named(),
            *_interval(each["ours"]),
            *(_interval(peer) if "high" in peer else (peer.get("why", "-"), "", "")),
            f"{each['poisson']:.5g}",
        )
    return table


def _interval(found: dict[str, Any]) -> tuple[str, str, str]:
    low, high, seconds = found["low"], found["high"], f"{found['seconds']:.2f}"
    if low is None:
        return f"at most {high:.5g}", "", seconds
    return f"{low:.5g} to {high:.5g}", f"{high / low - 1.0:.1e}" if low > 0.0 else "-", seconds


def _keep(part: str, rows: dict[int, dict[str, Any]]) -> None:
    """Write some rows of a part beside those that the file has already; a peer that was not asked keeps its figures."""
    stored = json.loads(SAVED.read_text(encoding="utf-8")) if SAVED.exists() else {}
    kept = {row["place"]: row for row in stored.get(part, [])}
    for place, row in rows.items():
        before, kept[place] = kept.get(place, {}), {**row, "place": place}
        if "peer" in row and row["peer"] is None and before.get("case") == row["case"]:
            kept[place]["peer"] = before["peer"]
    stored[part] = [kept[place] for place in sorted(kept)]
    stored["conditions"] = {"machine": platform.machine(), "python": platform.python_version()}
    SAVED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, print, and keep the results where asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocation", description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has PLD_accounting; else the file keeps the peer's figures")
    parser.add_argument("--patience", type=int, default=PATIENCE, help="seconds of a core that a peer is given")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="+", type=int, help="places of the rows of a part, from 0; all by default")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    options = parser.parse_args()
    ours(Case(multiplier=2.0, steps=3))  # imports, and transforms of the first size
    run = {
        "costs": (CASES, lambda case: costs(case, options.peer, options.patience), show),
        "draws": (allocation_draws.CHECKS, allocation_draws.drawn, allocation_draws.show),
        "trees": (allocation_trees.STUDIES, allocation_trees.compared, allocation_trees.show),
    }
    for part in options.part:
        asked, measure, table = run[part]
        places = [place for place in range(len(asked)) if options.only is None or place in options.only]
        rows = {}
        for place in places:
            rows[place] = measure(asked[place])
            if options.save:
                _keep(part, {place: rows[place]})
        Console(width=200).print(table(list(rows.values())))
        if part == "costs":
            Console().print(f"contradictions: {contradictions(list(rows.values()))}")
        if part == "draws":
            Console().print(f"contradictions: {allocation_draws.contradictions(list(rows.values()))}")


if __name__ == "__main__":
    main()
