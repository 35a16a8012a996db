"""Random allocation: certified intervals beside PLD_accounting's, Poisson samples of the same rate, and time.

Run: python -m benchmarks.allocation [--peer PYTHON] [--save]
where PYTHON is an interpreter that has PLD_accounting installed.
"""

import argparse
import json
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import ledgerwood as lw

A = lw.Adjacency.ADD_REMOVE
SAVED = Path(__file__).parents[1] / "docs" / "benchmarks" / "allocation.json"
PATIENCE = 180.0  # seconds, for a peer


@dataclass(frozen=True, kw_only=True)
class Case:
    """An allocation of Gaussian noise, and the delta of its price."""

    multiplier: float
    steps: int
    selected: int = 1
    epochs: int = 1
    delta: float = 1e-5

    def plan(self) -> lw.Event:
        """All passes."""
        noise = lw.GaussianEvent(noise_multiplier=self.multiplier, adjacency=A)
        one = lw.RandomAllocation(noise, selected=self.selected, steps=self.steps)
        return lw.Repeated(one, count=self.epochs)

    def sampled(self) -> lw.Event:
        """Poisson samples of the same rate, as often."""
        noise = lw.GaussianEvent(noise_multiplier=self.multiplier, adjacency=A)
        sample = lw.PoissonSampled(noise, sampling_rate=self.selected / self.steps)
        return lw.Repeated(sample, count=self.steps * self.epochs)


CASES = (
    Case(multiplier=1.0, steps=100),
    Case(multiplier=0.5, steps=100),
    Case(multiplier=1.0, steps=1000),
    Case(multiplier=1.0, steps=1000, epochs=10),
    Case(multiplier=0.3, steps=10_000, delta=1e-12),
    Case(multiplier=10.0, steps=100, epochs=100, delta=1e-3),
    Case(multiplier=1.0, steps=1_000_000),
    Case(multiplier=0.5, steps=999_983, delta=1e-8),
    Case(multiplier=1.0, steps=1_000_000, epochs=1000),
    Case(multiplier=1.0, steps=1000, selected=10),
    Case(multiplier=2.0, steps=10_000, selected=100, delta=1e-6),
)


def ours(case: Case) -> dict[str, float]:
    """The interval, and the seconds of its upper end."""
    price = lw.price(case.plan())
    start = time.perf_counter()
    price.epsilon(case.delta)
    seconds = time.perf_counter() - start
    low, high = price.epsilon_interval(case.delta)
    return {"low": low, "high": high, "seconds": seconds}


def peers(case: Case, python: str) -> dict[str, Any]:
    """The peer's interval, or why there is none."""
    command = [python, str(Path(__file__).with_name("allocation_peer.py"))]
    try:
        done = subprocess.run(
            command, input=json.dumps(asdict(case)), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"why": f"no answer in {PATIENCE:.0f} s"}
    if done.returncode:
        return {"why": (done.stderr.strip().splitlines() or ["failed"])[-1][:80]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def contradictions(found: list[dict[str, Any]]) -> int:
    """The number of cases in which one interval lies outside the other."""
    both = [(each["ours"], each["peer"]) for each in found if "low" in (each["peer"] or {})]
    return sum(a["high"] < b["low"] or b["high"] < a["low"] for a, b in both)


def show(found: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    table = Table(title="Gaussian random allocation: epsilon from below and from above, relative width, seconds")
    ends = ("width", "s")
    for name in ("multiplier", "k of t", "passes", "delta", "ledgerwood", *ends, "PLD_accounting", *ends, "Poisson"):
        table.add_column(name)
    for each in found:
        case, peer = each["case"], each["peer"] or {}
        table.add_row(
            f"{case['multiplier']:g}",
            f"{case['selected']} of {case['steps']:,}",
            str(case["epochs"]),
            f"{case['delta']:.0e}",
            *_interval(each["ours"]),
            *(_interval(peer) if "low" in peer else (peer.get("why", "-"), "", "")),
            f"{each['poisson']:.5g}",
        )
    return table


def _interval(found: dict[str, float]) -> tuple[str, str, str]:
    width = f"{found['high'] / found['low'] - 1.0:.1e}" if found["low"] > 0.0 else "-"
    return f"{found['low']:.5g} to {found['high']:.5g}", width, f"{found['seconds']:.2f}"


def main() -> None:
    """Measure, print, and keep the results where asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocation", description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has PLD_accounting")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    options = parser.parse_args()
    ours(Case(multiplier=2.0, steps=3))  # imports, and transforms of the first size
    found = [
        {
            "case": asdict(case),
            "ours": ours(case),
            "peer": peers(case, options.peer) if options.peer else None,
            "poisson": lw.price(case.sampled()).epsilon(case.delta),
        }
        for case in CASES
    ]
    Console(width=200).print(show(found))
    Console().print(f"contradictions: {contradictions(found)}")
    if options.save:
        SAVED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
