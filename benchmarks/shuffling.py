"""What a Poisson price hides when the run is shuffled: Poisson, allocation, and the proven bounds of shuffled batches.

Run: python -m benchmarks.shuffling [--save]
"""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from ledgerwood.accounting import ShuffledBatches

SAVED = Path(__file__).parents[1] / "docs" / "benchmarks" / "shuffling.json"
CASES = ((0.5, 100, 1), (1.0, 100, 1), (2.0, 100, 1), (0.5, 1000, 1), (1.0, 1000, 1), (1.0, 1000, 10), (2.0, 100, 10))
DELTA = 1e-5


def row(multiplier: float, steps: int, epochs: int) -> dict[str, float]:
    """The costs of one case at delta 1e-5."""
    noise = {a: lw.GaussianEvent(noise_multiplier=multiplier, adjacency=a) for a in lw.Adjacency}
    zero, add = noise[lw.Adjacency.ZERO_OUT], noise[lw.Adjacency.ADD_REMOVE]
    poisson = lw.Repeated(lw.PoissonSampled(add, sampling_rate=1.0 / steps), count=steps * epochs)
    allocated = lw.Repeated(lw.RandomAllocation(add, steps=steps), count=epochs)
    lower, upper = ShuffledBatches(zero, steps=steps, epochs=epochs).epsilon_interval(DELTA)
    return {
        "multiplier": multiplier,
        "steps": steps,
        "epochs": epochs,
        "poisson": lw.price(poisson).epsilon(DELTA),
        "allocation": lw.price(allocated).epsilon(DELTA),
        "shuffled_zero_out": lower,
        "shuffled_add_remove": ShuffledBatches(add, steps=steps, epochs=epochs).epsilon_interval(DELTA)[0],
        "upper_zero_out": upper,
    }


def show(found: dict[str, Any]) -> Table:
    """The stored costs as a table."""
    table = Table(title=f"Epsilon at delta {found['delta']:g}")
    for name in ("noise multiplier", "batches", "passes", "Poisson", "allocation"):
        table.add_column(name)
    for name in ("shuffled, zero-out, at least", "shuffled, add-remove, at least", "shuffled, zero-out, at most"):
        table.add_column(name)
    for each in found["rows"]:
        table.add_row(*(f"{value:.4g}" for value in each.values()))
    return table


def main() -> None:
    """Print the table; with --save, store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    found = {"delta": DELTA, "rows": [row(*case) for case in CASES]}
    Console(width=160).print(show(found))
    if chosen.save:
        SAVED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
